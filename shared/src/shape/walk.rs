//! The walk over an answer: which nodes apply to which of its values. It keeps its own stack of
//! frames, so that no shape and no answer can exhaust the thread's, and a budget of work.

use serde_json::map::Iter;
use serde_json::{Map, Value};

use super::compile::{Apply, Node};
use super::{MAX_MISFITS, MAX_WORK};
use crate::code::Misfit;
use crate::json::{self, Measure};

/// The most bytes of a misfit's pointer; a deeper place is named by the nearest one above it.
const MAX_POINTER: usize = 256;

/// The budget is used up.
#[derive(Debug)]
pub(super) struct Exhausted;

/// Work left, in visits of a node, of which each costs a microsecond or less.
pub(super) struct Budget {
    left: u64,
    /// What reading one number of the answer costs at most.
    pub(super) number_cost: u64,
}

impl Budget {
    pub(super) fn take(&mut self, work: u64) -> Result<(), Exhausted> {
        self.left = self.left.checked_sub(work).ok_or(Exhausted)?;
        Ok(())
    }
}

/// What a node is applied to: a value of the answer, or the name of a property.
#[derive(Clone, Copy)]
pub(super) enum Instance<'a> {
    Value(&'a Value),
    Name(&'a str),
}

impl<'a> Instance<'a> {
    pub(super) fn as_str(self) -> Option<&'a str> {
        match self {
            Instance::Value(value) => value.as_str(),
            Instance::Name(name) => Some(name),
        }
    }

    pub(super) fn with_value<T>(self, look: impl FnOnce(&Value) -> T) -> T {
        match self {
            Instance::Value(value) => look(value),
            Instance::Name(name) => look(&Value::String(name.to_owned())),
        }
    }

    fn object(self) -> Option<&'a Map<String, Value>> {
        match self {
            Instance::Value(value) => value.as_object(),
            Instance::Name(_) => None,
        }
    }

    fn array(self) -> Option<&'a [Value]> {
        match self {
            Instance::Value(value) => value.as_array().map(Vec::as_slice),
            Instance::Name(_) => None,
        }
    }
}

/// One step down into the answer.
#[derive(Clone, Copy)]
enum Token<'a> {
    Key(&'a str),
    Index(usize),
}

/// Which properties (by their order) or items have been taken.
#[derive(Default)]
struct Taken(Vec<u64>);

impl Taken {
    fn add(&mut self, n: usize) {
        let word = n / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (n % 64);
    }

    fn has(&self, n: usize) -> bool {
        self.0
            .get(n / 64)
            .is_some_and(|word| word & (1 << (n % 64)) != 0)
    }

    fn join(&mut self, other: &Taken) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }
}

/// A node being applied.
struct Frame<'a> {
    node: usize,
    at: Instance<'a>,
    /// How this value is reached from that of the frame below.
    token: Option<Token<'a>>,
    /// Nobody is told what does not fit: a branch that may fail.
    quiet: bool,
    valid: bool,
    taken: Taken,
    /// Which of the node's `applies`, and how far in it.
    apply: usize,
    place: Place<'a>,
}

/// How far a frame is in one `Apply`; empty at its beginning.
#[derive(Default)]
struct Place<'a> {
    /// The next branch or item.
    next: usize,
    /// Branches or items that fitted.
    hits: u64,
    entries: Option<Iter<'a>>,
    /// The property in hand, and whether a keyword has claimed it.
    entry: Option<(&'a str, &'a Value)>,
    claimed: bool,
    /// The next pattern to try on the property in hand.
    pattern: usize,
}

/// What a frame does next.
enum Next<'a> {
    Call(Call<'a>),
    Return,
}

/// A node to be applied, and the keyword by which.
#[derive(Clone, Copy)]
struct Call<'a> {
    node: usize,
    at: Instance<'a>,
    token: Option<Token<'a>>,
    keyword: &'static str,
    quiet: bool,
}

/// What a node said of its value.
struct Outcome {
    valid: bool,
    taken: Taken,
}

/// The check of one answer.
pub(super) struct Walk<'s, 'a> {
    nodes: &'s [Node],
    tracks: bool,
    budget: Budget,
    frames: Vec<Frame<'a>>,
    pub(super) misfits: Vec<Misfit>,
}

impl<'s, 'a> Walk<'s, 'a> {
    pub(super) fn new(nodes: &'s [Node], tracks: bool, answer: &Measure) -> Self {
        Walk {
            nodes,
            tracks,
            budget: Budget {
                left: MAX_WORK,
                number_cost: 1 + answer.longest_number as u64 / 64,
            },
            frames: Vec::new(),
            misfits: Vec::new(),
        }
    }

    /// Walks the whole answer, or up to the last misfit that is told.
    pub(super) fn run(&mut self, answer: &'a Value) -> Result<(), Exhausted> {
        let mut said = self.enter(Call {
            node: 0,
            at: Instance::Value(answer),
            token: None,
            keyword: "false",
            quiet: false,
        })?;
        while let Some(mut frame) = self.frames.pop() {
            let next = self.advance(&mut frame, said.take())?;
            match next {
                Next::Return => {
                    said = Some(Outcome {
                        valid: frame.valid,
                        taken: frame.taken,
                    });
                }
                Next::Call(call) => {
                    self.frames.push(frame);
                    said = self.enter(call)?;
                }
            }
            if self.misfits.len() >= MAX_MISFITS {
                break;
            }
        }
        Ok(())
    }

    /// Opens a frame, or answers at once for a boolean schema.
    fn enter(&mut self, call: Call<'a>) -> Result<Option<Outcome>, Exhausted> {
        let node = &self.nodes[call.node];
        // Most keywords charge for themselves; this is for those that find nothing to do.
        let keywords = node.assertions.len() + node.applies.len();
        self.budget.take(1 + keywords as u64 / 8)?;
        if let Some(valid) = node.verdict {
            if !valid && !call.quiet {
                // What is not allowed at all is named by its parent: it may be the person's own
                // text (SPEC 3.6). A property that the shape names is not.
                let token = call.token.filter(|_| call.keyword == "properties");
                let pointer = self.pointer(None, token);
                self.tell(pointer, call.keyword);
            }
            return Ok(Some(Outcome {
                valid,
                taken: Taken::default(),
            }));
        }
        let mut frame = Frame {
            node: call.node,
            at: call.at,
            token: call.token,
            quiet: call.quiet,
            valid: true,
            taken: Taken::default(),
            apply: 0,
            place: Place::default(),
        };
        for assertion in &node.assertions {
            if !assertion.test.holds(frame.at, &mut self.budget)? {
                self.fail(&mut frame, assertion.keyword);
            }
        }
        self.frames.push(frame);
        Ok(None)
    }

    /// Takes what the last call said, and goes on to the next call or the end.
    fn advance(
        &mut self,
        frame: &mut Frame<'a>,
        mut said: Option<Outcome>,
    ) -> Result<Next<'a>, Exhausted> {
        let nodes = self.nodes;
        loop {
            if !frame.valid && frame.quiet {
                return Ok(Next::Return);
            }
            let Some(apply) = nodes[frame.node].applies.get(frame.apply) else {
                return Ok(Next::Return);
            };
            let call = match apply {
                Apply::All(keyword, node) => self.all(frame, keyword, *node, said.take())?,
                Apply::Dependent(keyword, key, node) => match frame.at.object() {
                    Some(map) if map.contains_key(key) => {
                        self.all(frame, keyword, *node, said.take())?
                    }
                    _ => None,
                },
                Apply::Any(branches) => self.branches(frame, branches, false, said.take())?,
                Apply::One(branches) => self.branches(frame, branches, true, said.take())?,
                Apply::Not(node) => self.not(frame, *node, said.take()),
                Apply::If {
                    test,
                    then,
                    otherwise,
                } => self.condition(frame, *test, (*then, *otherwise), said.take())?,
                Apply::Properties { .. } => self.properties(frame, apply, said.take())?,
                Apply::Names(node) => self.names(frame, *node, said.take())?,
                Apply::Items { .. } => self.items(frame, apply, said.take()),
                Apply::Contains { .. } => self.contains(frame, apply, said.take()),
                Apply::UnevaluatedProperties(node) => {
                    self.unevaluated_properties(frame, *node, said.take())?
                }
                Apply::UnevaluatedItems(node) => {
                    self.unevaluated_items(frame, *node, said.take())?
                }
            };
            if let Some(call) = call {
                return Ok(Next::Call(call));
            }
            frame.apply += 1;
            frame.place = Place::default();
        }
    }

    fn all(
        &mut self,
        frame: &mut Frame<'a>,
        keyword: &'static str,
        node: usize,
        said: Option<Outcome>,
    ) -> Result<Option<Call<'a>>, Exhausted> {
        match said {
            None => Ok(Some(frame.here(node, keyword, frame.quiet))),
            Some(outcome) => {
                self.join(frame, &outcome)?;
                Ok(None)
            }
        }
    }

    fn branches(
        &mut self,
        frame: &mut Frame<'a>,
        branches: &[usize],
        only_one: bool,
        said: Option<Outcome>,
    ) -> Result<Option<Call<'a>>, Exhausted> {
        if let Some(outcome) = said
            && outcome.valid
        {
            frame.place.hits += 1;
            self.join(frame, &outcome)?;
        }
        // Once decided, the other branches matter only for what they take.
        let decided = match frame.place.hits {
            0 => false,
            1 => !only_one && !self.tracks,
            _ => only_one,
        };
        if let Some(node) = branches.get(frame.place.next)
            && !decided
        {
            frame.place.next += 1;
            return Ok(Some(frame.here(*node, "", true)));
        }
        if only_one && frame.place.hits != 1 {
            self.fail(frame, "oneOf");
        } else if frame.place.hits == 0 {
            self.fail(frame, "anyOf");
        }
        Ok(None)
    }

    fn not(
        &mut self,
        frame: &mut Frame<'a>,
        node: usize,
        said: Option<Outcome>,
    ) -> Option<Call<'a>> {
        match said {
            None => Some(frame.here(node, "", true)),
            Some(outcome) => {
                if outcome.valid {
                    self.fail(frame, "not");
                }
                None
            }
        }
    }

    fn condition(
        &mut self,
        frame: &mut Frame<'a>,
        test: usize,
        (then, otherwise): (Option<usize>, Option<usize>),
        said: Option<Outcome>,
    ) -> Result<Option<Call<'a>>, Exhausted> {
        frame.place.next += 1;
        match (frame.place.next, said) {
            (2, Some(outcome)) => {
                let (branch, keyword) = if outcome.valid {
                    self.join(frame, &outcome)?;
                    (then, "then")
                } else {
                    (otherwise, "else")
                };
                Ok(branch.map(|node| frame.here(node, keyword, frame.quiet)))
            }
            (_, Some(outcome)) => {
                self.join(frame, &outcome)?;
                Ok(None)
            }
            (_, None) => Ok(Some(frame.here(test, "", true))),
        }
    }

    fn properties(
        &mut self,
        frame: &mut Frame<'a>,
        apply: &Apply,
        said: Option<Outcome>,
    ) -> Result<Option<Call<'a>>, Exhausted> {
        let (
            Apply::Properties {
                named,
                patterns,
                rest,
            },
            Some(map),
        ) = (apply, frame.at.object())
        else {
            return Ok(None);
        };
        frame.note(said);
        loop {
            let Some((key, value)) = frame.place.entry else {
                let entries = frame.place.entries.get_or_insert_with(|| map.iter());
                let Some((key, value)) = entries.next() else {
                    return Ok(None);
                };
                self.budget.take(1)?;
                frame.place.next += 1;
                frame.place.entry = Some((key, value));
                frame.place.pattern = 0;
                frame.place.claimed = false;
                if let Some(node) = named.get(key) {
                    self.claim(frame);
                    return Ok(Some(frame.below(
                        *node,
                        value,
                        Token::Key(key),
                        "properties",
                    )));
                }
                continue;
            };
            while let Some((pattern, node)) = patterns.get(frame.place.pattern) {
                frame.place.pattern += 1;
                self.budget.take(pattern.cost(key))?;
                if Instance::Name(key).with_value(|name| pattern.matches(name)) {
                    self.claim(frame);
                    let token = Token::Key(key);
                    return Ok(Some(frame.below(*node, value, token, "patternProperties")));
                }
            }
            frame.place.entry = None;
            if let Some(node) = rest
                && !frame.place.claimed
            {
                self.claim(frame);
                let token = Token::Key(key);
                return Ok(Some(frame.below(
                    *node,
                    value,
                    token,
                    "additionalProperties",
                )));
            }
        }
    }

    fn names(
        &mut self,
        frame: &mut Frame<'a>,
        node: usize,
        said: Option<Outcome>,
    ) -> Result<Option<Call<'a>>, Exhausted> {
        let Some(map) = frame.at.object() else {
            return Ok(None);
        };
        if said.is_some_and(|outcome| !outcome.valid) {
            self.fail(frame, "propertyNames");
            return Ok(None);
        }
        self.budget.take(1)?;
        let entries = frame.place.entries.get_or_insert_with(|| map.iter());
        Ok(entries.next().map(|(key, _)| Call {
            node,
            at: Instance::Name(key),
            token: None,
            keyword: "propertyNames",
            quiet: true,
        }))
    }

    fn items(
        &mut self,
        frame: &mut Frame<'a>,
        apply: &Apply,
        said: Option<Outcome>,
    ) -> Option<Call<'a>> {
        let Apply::Items {
            first,
            first_keyword,
            rest,
            rest_keyword,
        } = apply
        else {
            return None;
        };
        frame.note(said);
        let n = frame.place.next;
        let item = frame.at.array()?.get(n)?;
        let (node, keyword) = match (first.get(n), rest) {
            (Some(node), _) => (*node, *first_keyword),
            (None, Some(node)) => (*node, *rest_keyword),
            (None, None) => return None,
        };
        frame.place.next += 1;
        self.claim(frame);
        Some(frame.below(node, item, Token::Index(n), keyword))
    }

    fn contains(
        &mut self,
        frame: &mut Frame<'a>,
        apply: &Apply,
        said: Option<Outcome>,
    ) -> Option<Call<'a>> {
        let Apply::Contains {
            node,
            least,
            most,
            takes,
        } = apply
        else {
            return None;
        };
        let items = frame.at.array()?;
        if said.is_some_and(|outcome| outcome.valid) {
            frame.place.hits += 1;
            if *takes {
                self.claim(frame);
            }
        }
        let n = frame.place.next;
        let decided = most.is_none() && !self.tracks && frame.place.hits >= *least;
        if let Some(item) = items.get(n)
            && !decided
        {
            frame.place.next += 1;
            let mut call = frame.below(*node, item, Token::Index(n), "contains");
            call.quiet = true;
            return Some(call);
        }
        let hits = frame.place.hits;
        if hits == 0 && *least > 0 {
            self.fail(frame, "contains");
        } else if hits < *least {
            self.fail(frame, "minContains");
        } else if most.is_some_and(|most| hits > most) {
            self.fail(frame, "maxContains");
        }
        None
    }

    fn unevaluated_properties(
        &mut self,
        frame: &mut Frame<'a>,
        node: usize,
        said: Option<Outcome>,
    ) -> Result<Option<Call<'a>>, Exhausted> {
        let Some(map) = frame.at.object() else {
            return Ok(None);
        };
        // What a failed branch has taken is unknown: telling more would mislead.
        if !frame.valid && frame.place.entries.is_none() {
            return Ok(None);
        }
        frame.note(said);
        loop {
            let entries = frame.place.entries.get_or_insert_with(|| map.iter());
            let Some((key, value)) = entries.next() else {
                return Ok(None);
            };
            self.budget.take(1)?;
            frame.place.next += 1;
            if !frame.taken.has(frame.place.next - 1) {
                self.claim(frame);
                let token = Token::Key(key);
                return Ok(Some(frame.below(
                    node,
                    value,
                    token,
                    "unevaluatedProperties",
                )));
            }
        }
    }

    fn unevaluated_items(
        &mut self,
        frame: &mut Frame<'a>,
        node: usize,
        said: Option<Outcome>,
    ) -> Result<Option<Call<'a>>, Exhausted> {
        let Some(items) = frame.at.array() else {
            return Ok(None);
        };
        if !frame.valid && frame.place.next == 0 {
            return Ok(None);
        }
        frame.note(said);
        loop {
            let n = frame.place.next;
            let Some(item) = items.get(n) else {
                return Ok(None);
            };
            self.budget.take(1)?;
            frame.place.next += 1;
            if !frame.taken.has(n) {
                self.claim(frame);
                return Ok(Some(frame.below(
                    node,
                    item,
                    Token::Index(n),
                    "unevaluatedItems",
                )));
            }
        }
    }

    /// Takes in a branch on the same value that had to fit.
    fn join(&mut self, frame: &mut Frame<'a>, outcome: &Outcome) -> Result<(), Exhausted> {
        if !outcome.valid {
            frame.valid = false;
        } else if self.tracks {
            self.budget.take(outcome.taken.0.len() as u64 / 8)?;
            frame.taken.join(&outcome.taken);
        }
        Ok(())
    }

    /// The property or item in hand, one before the next, is taken.
    fn claim(&mut self, frame: &mut Frame<'a>) {
        frame.place.claimed = true;
        if self.tracks {
            frame.taken.add(frame.place.next - 1);
        }
    }

    fn fail(&mut self, frame: &mut Frame<'a>, keyword: &'static str) {
        frame.valid = false;
        if !frame.quiet {
            let pointer = self.pointer(frame.token, None);
            self.tell(pointer, keyword);
        }
    }

    fn tell(&mut self, pointer: String, keyword: &'static str) {
        let misfit = Misfit::at(pointer, keyword);
        if !self.misfits.contains(&misfit) {
            self.misfits.push(misfit);
        }
    }

    /// The place that the frames lead to, and up to two steps on from there.
    fn pointer(&self, token: Option<Token<'a>>, then: Option<Token<'a>>) -> String {
        let mut pointer = String::new();
        let steps = self.frames.iter().map(|frame| frame.token);
        for token in steps.chain([token, then]).flatten() {
            let end = pointer.len();
            match token {
                Token::Key(key) => json::push_pointer(&mut pointer, key),
                Token::Index(n) => json::push_pointer(&mut pointer, &n.to_string()),
            }
            if pointer.len() > MAX_POINTER {
                pointer.truncate(end);
                break;
            }
        }
        pointer
    }
}

impl<'a> Frame<'a> {
    /// A call on the same value.
    fn here(&self, node: usize, keyword: &'static str, quiet: bool) -> Call<'a> {
        Call {
            node,
            at: self.at,
            token: None,
            keyword,
            quiet,
        }
    }

    /// A call on a property or an item.
    fn below(
        &self,
        node: usize,
        value: &'a Value,
        token: Token<'a>,
        keyword: &'static str,
    ) -> Call<'a> {
        Call {
            node,
            at: Instance::Value(value),
            token: Some(token),
            keyword,
            quiet: self.quiet,
        }
    }

    /// Takes in what was said of a property or an item.
    fn note(&mut self, said: Option<Outcome>) {
        if said.is_some_and(|outcome| !outcome.valid) {
            self.valid = false;
        }
    }
}
