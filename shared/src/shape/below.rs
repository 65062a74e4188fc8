//! The keywords that go on from an object to its properties, and from a list to its items.
//!
//! Each is called with what its last call said, and gives the next call until there is none.

use super::compile::Apply;
use super::frame::{Call, Exhausted, Frame, Instance, Outcome, Token};
use super::walk::Walk;

impl<'a> Walk<'_, 'a> {
    pub(super) fn properties(
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

    pub(super) fn names(
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

    pub(super) fn items(
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

    pub(super) fn contains(
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

    pub(super) fn unevaluated_properties(
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

    pub(super) fn unevaluated_items(
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
}
