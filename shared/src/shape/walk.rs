//! The walk over an answer: which nodes apply to which of its values. It keeps its own stack of
//! frames, so that no shape and no answer can exhaust the thread's, and a budget of work. The
//! keywords on one and the same value are here; those that go down into it are in `below`.

use serde_json::Value;

use super::MAX_MISFITS;
use super::compile::{Apply, Node};
use super::frame::{Budget, Call, Exhausted, Frame, Instance, Next, Outcome, Place, Taken, Token};
use crate::code::Misfit;
use crate::json::{self, Measure};

/// The most bytes of a misfit's pointer; a deeper place is named by the nearest one above it.
const MAX_POINTER: usize = 256;

/// The check of one answer.
pub(super) struct Walk<'s, 'a> {
    nodes: &'s [Node],
    pub(super) tracks: bool,
    pub(super) budget: Budget,
    frames: Vec<Frame<'a>>,
    pub(super) misfits: Vec<Misfit>,
}

impl<'s, 'a> Walk<'s, 'a> {
    pub(super) fn new(nodes: &'s [Node], tracks: bool, answer: &Measure) -> Self {
        Walk {
            nodes,
            tracks,
            budget: Budget::new(answer),
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
                let pointer = self.pointer(token);
                self.tell(pointer, call.keyword);
            }
            return Ok(Some(Outcome {
                valid,
                taken: Taken::default(),
            }));
        }
        let mut frame = Frame::open(call);
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

    /// Takes in a branch on the same value that had to fit.
    fn join(&mut self, frame: &mut Frame<'a>, outcome: &Outcome) -> Result<(), Exhausted> {
        if !outcome.valid {
            frame.valid = false;
        } else if self.tracks {
            self.budget.take(outcome.taken.cost())?;
            frame.taken.join(&outcome.taken);
        }
        Ok(())
    }

    /// The property or item in hand, one before the next, is taken.
    pub(super) fn claim(&mut self, frame: &mut Frame<'a>) {
        frame.place.claimed = true;
        if self.tracks {
            frame.taken.add(frame.place.next - 1);
        }
    }

    pub(super) fn fail(&mut self, frame: &mut Frame<'a>, keyword: &'static str) {
        frame.valid = false;
        if !frame.quiet {
            let pointer = self.pointer(frame.token);
            self.tell(pointer, keyword);
        }
    }

    fn tell(&mut self, pointer: String, keyword: &'static str) {
        let misfit = Misfit::at(pointer, keyword);
        if !self.misfits.contains(&misfit) {
            self.misfits.push(misfit);
        }
    }

    /// The place that the frames lead to, and a step on from there.
    fn pointer(&self, token: Option<Token<'a>>) -> String {
        let mut pointer = String::new();
        let steps = self.frames.iter().map(|frame| frame.token);
        for token in steps.chain([token]).flatten() {
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
