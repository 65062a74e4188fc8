//! What the walk keeps instead of the thread's stack: frames, and the budget of work.

use serde_json::map::Iter;
use serde_json::{Map, Value};

use super::MAX_WORK;
use crate::json::Measure;

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
    /// The budget for one answer.
    pub(super) fn new(answer: &Measure) -> Self {
        Budget {
            left: MAX_WORK,
            number_cost: 1 + answer.longest_number as u64 / 64,
        }
    }

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

    pub(super) fn object(self) -> Option<&'a Map<String, Value>> {
        match self {
            Instance::Value(value) => value.as_object(),
            Instance::Name(_) => None,
        }
    }

    pub(super) fn array(self) -> Option<&'a [Value]> {
        match self {
            Instance::Value(value) => value.as_array().map(Vec::as_slice),
            Instance::Name(_) => None,
        }
    }
}

/// One step down into the answer.
#[derive(Clone, Copy)]
pub(super) enum Token<'a> {
    Key(&'a str),
    Index(usize),
}

/// Which properties (by their order) or items have been taken.
#[derive(Default)]
pub(super) struct Taken(Vec<u64>);

impl Taken {
    pub(super) fn add(&mut self, n: usize) {
        let word = n / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (n % 64);
    }

    pub(super) fn has(&self, n: usize) -> bool {
        self.0
            .get(n / 64)
            .is_some_and(|word| word & (1 << (n % 64)) != 0)
    }

    /// The work of joining it to another.
    pub(super) fn cost(&self) -> u64 {
        self.0.len() as u64 / 8
    }

    pub(super) fn join(&mut self, other: &Taken) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }
}

/// A node being applied.
pub(super) struct Frame<'a> {
    pub(super) node: usize,
    pub(super) at: Instance<'a>,
    /// How this value is reached from that of the frame below.
    pub(super) token: Option<Token<'a>>,
    /// Nobody is told what does not fit: a branch that may fail.
    pub(super) quiet: bool,
    pub(super) valid: bool,
    pub(super) taken: Taken,
    /// Which of the node's `applies`, and how far in it.
    pub(super) apply: usize,
    pub(super) place: Place<'a>,
}

/// How far a frame is in one `Apply`; empty at its beginning.
#[derive(Default)]
pub(super) struct Place<'a> {
    /// The next branch or item.
    pub(super) next: usize,
    /// Branches or items that fitted.
    pub(super) hits: u64,
    pub(super) entries: Option<Iter<'a>>,
    /// The property in hand, and whether a keyword has claimed it.
    pub(super) entry: Option<(&'a str, &'a Value)>,
    pub(super) claimed: bool,
    /// The next pattern to try on the property in hand.
    pub(super) pattern: usize,
}

/// What a frame does next.
pub(super) enum Next<'a> {
    Call(Call<'a>),
    Return,
}

/// A node to be applied, and the keyword by which.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) node: usize,
    pub(super) at: Instance<'a>,
    pub(super) token: Option<Token<'a>>,
    pub(super) keyword: &'static str,
    pub(super) quiet: bool,
}

/// What a node said of its value.
pub(super) struct Outcome {
    pub(super) valid: bool,
    pub(super) taken: Taken,
}

impl<'a> Frame<'a> {
    /// A frame at its beginning.
    pub(super) fn open(call: Call<'a>) -> Self {
        Frame {
            node: call.node,
            at: call.at,
            token: call.token,
            quiet: call.quiet,
            valid: true,
            taken: Taken::default(),
            apply: 0,
            place: Place::default(),
        }
    }

    /// A call on the same value.
    pub(super) fn here(&self, node: usize, keyword: &'static str, quiet: bool) -> Call<'a> {
        Call {
            node,
            at: self.at,
            token: None,
            keyword,
            quiet,
        }
    }

    /// A call on a property or an item.
    pub(super) fn below(
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
    pub(super) fn note(&mut self, said: Option<Outcome>) {
        if said.is_some_and(|outcome| !outcome.valid) {
            self.valid = false;
        }
    }
}
