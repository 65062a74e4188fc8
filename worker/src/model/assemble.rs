//! Puts the calls of one reply together from the pieces of a stream.
//!
//! Servers that speak a dialect only nearly leave out indexes, say 0 for all of them, send ids late,
//! twice or anew with each piece, and repeat arguments. So no single mark decides which call a piece
//! belongs to, but what fits together (see [`Assembly::push`]). Both the streams of choices and those
//! of content blocks or output items feed this: an index is whatever number the dialect gives a call.

use std::collections::HashSet;

use serde_json::{Map, Value};

pub use super::arguments::decode_input;
use super::arguments::{is_blank, is_whole, read};
use super::{ModelCall, ToolOffer};

/// Stands in the history for a tool whose name never came: providers refuse an empty one.
const NAMELESS: &str = "unknown";

/// What one chunk says about one call. Everything may be missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Piece {
    /// The place that the provider gives the call.
    pub index: Option<i64>,
    /// The call's id; blank counts as missing.
    pub id: Option<String>,
    /// The tool's name; blank counts as missing.
    pub name: Option<String>,
    /// A piece of the arguments' JSON, or a whole value.
    pub arguments: Option<Value>,
    /// The vendor's own fields, to be sent back with the call.
    pub extra: Map<String, Value>,
}

/// How the reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The provider says, or lets one believe, that it said all.
    Whole,
    /// The provider stopped at a limit or a filter: what is not plainly whole was cut.
    Cut,
}

/// A call, and what stands for it in the history.
#[derive(Debug, Clone, PartialEq)]
pub struct Assembled {
    /// For the engine.
    pub call: ModelCall,
    /// The arguments as JSON text of an object, `{}` where they could not be read.
    pub arguments: String,
    /// Where the provider had placed it; a second call split out of one place has none.
    pub index: Option<i64>,
    /// The vendor's own fields.
    pub extra: Map<String, Value>,
}

/// The calls of one reply while it streams.
#[derive(Debug)]
pub struct Assembly<'a> {
    offers: &'a [ToolOffer],
    drafts: Vec<Draft>,
    touched: HashSet<usize>,
}

#[derive(Debug, Default)]
struct Draft {
    index: Option<i64>,
    id: Option<String>,
    name: String,
    pieces: Vec<String>,
    extra: Map<String, Value>,
}

impl<'a> Assembly<'a> {
    /// An empty reply to a request that offered these tools.
    pub fn new(offers: &'a [ToolOffer]) -> Self {
        Self {
            offers,
            drafts: Vec::new(),
            touched: HashSet::new(),
        }
    }

    /// Whether no call has begun.
    pub fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    /// Says that the following pieces come in a chunk of their own. Within one chunk a name without
    /// an id is another call, since nobody sends one call twice in a list.
    pub fn next_chunk(&mut self) {
        self.touched.clear();
    }

    /// Adds a piece. A known id belongs to its call; a new one begins a call, at a used index too,
    /// unless the piece can only go on with the arguments there. Without an id the index decides,
    /// without both the piece belongs to the last call.
    pub fn push(&mut self, mut piece: Piece) {
        piece.id = piece.id.filter(|id| !id.trim().is_empty());
        piece.name = piece
            .name
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty());
        let place = match &piece.id {
            Some(id) => self.place_by_id(id, &piece),
            None => self.place_without_id(&piece),
        };
        let at = place.unwrap_or_else(|| {
            self.drafts.push(Draft::default());
            self.drafts.len() - 1
        });
        self.touched.insert(at);
        let name = piece
            .name
            .map(|name| self.name_after(&self.drafts[at], &name));
        let draft = &mut self.drafts[at];
        draft.index = draft.index.or(piece.index);
        if draft.id.is_none() {
            draft.id = piece.id;
        }
        if let Some(name) = name {
            draft.name = name;
        }
        match piece.arguments {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => draft.pieces.push(text),
            Some(value) => draft.pieces.push(value.to_string()),
        }
        merge(&mut draft.extra, piece.extra);
    }

    /// The calls in the order in which they began, each with an id of its own. None is dropped
    /// without a word: what could not be read is a call whose input tells the model why.
    pub fn finish(self, ending: Ending) -> Vec<Assembled> {
        let mut ids = HashSet::new();
        let mut calls = Vec::new();
        for draft in self.drafts {
            let tool = sendable(&draft.name);
            let parameters = self
                .offers
                .iter()
                .find(|offer| offer.name == tool)
                .map_or(&Value::Null, |offer| &offer.parameters);
            let (mut id, mut index, mut extra) = (draft.id, draft.index, draft.extra);
            for read in read(&draft.pieces, ending == Ending::Cut) {
                let input = if draft.name.is_empty() {
                    Err("This call names no tool, so it was not made.".to_owned())
                } else if draft.name == tool {
                    read.input
                        .and_then(|input| decode_input(parameters, &input))
                } else {
                    Err(format!("This call was not made: no tool is named {tool}."))
                };
                let id = id.take().filter(|id| ids.insert(id.clone()));
                calls.push(Assembled {
                    call: ModelCall {
                        id: id.unwrap_or_else(own_id),
                        tool: tool.clone(),
                        input,
                    },
                    arguments: read.history,
                    index: index.take(),
                    extra: std::mem::take(&mut extra),
                });
            }
        }
        calls
    }

    fn place_by_id(&self, id: &str, piece: &Piece) -> Option<usize> {
        let bears = |draft: &Draft| draft.id.as_deref() == Some(id);
        let drafts = self.drafts.iter();
        let known = drafts
            .clone()
            .rposition(|draft| bears(draft) && draft.index == piece.index)
            .or_else(|| drafts.clone().rposition(bears));
        if let Some(at) = known {
            let draft = &self.drafts[at];
            let moved =
                piece.index.is_some() && draft.index.is_some() && piece.index != draft.index;
            if moved {
                return self.goes_on(at, piece).then_some(at);
            }
            let again = piece.name.is_some() && self.touched.contains(&at);
            return (!again).then_some(at);
        }
        let at = match piece.index {
            Some(index) => self.last_at(index)?,
            None => self.drafts.len().checked_sub(1)?,
        };
        let draft = &self.drafts[at];
        let late = draft.id.is_none()
            && !self.touched.contains(&at)
            && (piece.name.is_none() || draft.name.is_empty() || named_alike(draft, piece))
            && !is_whole(&draft.pieces);
        (late || self.goes_on(at, piece)).then_some(at)
    }

    fn place_without_id(&self, piece: &Piece) -> Option<usize> {
        let last = self.drafts.len().checked_sub(1);
        let at = match piece.index.map(|index| self.last_at(index)) {
            Some(Some(at)) => at,
            Some(None) if piece.name.is_some() => return None,
            _ => last?,
        };
        let draft = &self.drafts[at];
        let Some(name) = &piece.name else {
            return Some(at);
        };
        if self.touched.contains(&at) {
            return None;
        }
        let same_call = draft.name.is_empty() || draft.name == *name || self.grows(draft, name);
        same_call.then_some(at)
    }

    fn last_at(&self, index: i64) -> Option<usize> {
        self.drafts
            .iter()
            .rposition(|draft| draft.index == Some(index))
    }

    /// Whether a piece with an id or index of its own can still only be more of the call at `at`:
    /// some servers make up a new id for each piece.
    fn goes_on(&self, at: usize, piece: &Piece) -> bool {
        let draft = &self.drafts[at];
        let text = match &piece.arguments {
            Some(Value::String(text)) => text.trim_start(),
            _ => "",
        };
        match &piece.name {
            None => text.is_empty() || !is_whole(&draft.pieces),
            Some(_) => {
                named_alike(draft, piece)
                    && !is_blank(&draft.pieces)
                    && !text.is_empty()
                    && !text.starts_with('{')
                    && !is_whole(&draft.pieces)
            }
        }
    }

    fn offers(&self, name: &str) -> bool {
        self.offers.iter().any(|offer| offer.name == name)
    }

    fn begins_an_offer(&self, start: &str) -> bool {
        self.offers
            .iter()
            .any(|offer| offer.name.starts_with(start))
    }

    /// Whether `more` can be more of the name of a call whose arguments have not begun.
    fn grows(&self, draft: &Draft, more: &str) -> bool {
        is_blank(&draft.pieces)
            && !(self.offers(&draft.name) && self.offers(more))
            && (more.starts_with(&draft.name)
                || self.begins_an_offer(&format!("{}{more}", draft.name)))
    }

    /// The name of a call after a piece that names it: once, with each piece, or in pieces.
    fn name_after(&self, draft: &Draft, more: &str) -> String {
        let joined = format!("{}{more}", draft.name);
        let grown = draft.name != more && self.grows(draft, more);
        if draft.name.is_empty() || (grown && more.starts_with(&draft.name)) {
            more.to_owned()
        } else if grown {
            joined
        } else if !self.offers(&draft.name) && self.offers(more) {
            more.to_owned()
        } else {
            draft.name.clone()
        }
    }
}

/// Adds fields to others: objects field by field, anything else in the place of what was there;
/// `null` takes nothing away.
pub(crate) fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (name, value) in from {
        match (into.get_mut(&name), value) {
            (Some(_), Value::Null) => {}
            (Some(Value::Object(there)), Value::Object(more)) => merge(there, more),
            (Some(there), value) => *there = value,
            (None, value) => {
                into.insert(name, value);
            }
        }
    }
}

fn named_alike(draft: &Draft, piece: &Piece) -> bool {
    piece.name.as_deref() == Some(draft.name.as_str())
}

fn own_id() -> String {
    format!("call_{}", uuid::Uuid::new_v4().simple())
}

/// A name that every provider takes back.
fn sendable(name: &str) -> String {
    if name.is_empty() {
        return NAMELESS.to_owned();
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.chars()
        .take(64)
        .map(|c| if plain(c) { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests;
