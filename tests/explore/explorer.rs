//! Visits every state of a game, breadth first, so that the first trace found is a shortest one.

use std::collections::{HashSet, VecDeque};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use crate::broken::Broken;

/// More states than this are a world that does not end, or one too large to be worth its time.
const MOST_STATES: usize = 4_000_000;

/// States, and what can happen in each.
pub(crate) trait Game {
    /// A state. States of one hash are taken for one state.
    type State: Clone + Hash;
    /// Something that can happen.
    type Action: Clone + Debug;

    /// Where it begins.
    fn start(&self) -> Self::State;
    /// What can happen.
    fn moves(&self, state: &Self::State) -> Moves<Self::Action>;
    /// What that does, or which invariant it breaks.
    fn step(&self, state: &Self::State, action: &Self::Action) -> Result<Self::State, Broken>;
    /// Checks a state in which nothing more happens by itself.
    fn end(&self, state: &Self::State) -> Result<(), Broken>;
}

/// What can happen in a state.
pub(crate) struct Moves<A> {
    /// What happens by itself. Where there is none, everything must be over.
    pub(crate) by_itself: Vec<A>,
    /// Faults and other things that may happen and may stay away.
    pub(crate) by_chance: Vec<A>,
}

/// What was seen.
#[derive(Debug)]
pub(crate) struct Explored {
    /// Different states.
    pub(crate) states: usize,
    /// Steps between them.
    pub(crate) steps: usize,
    /// States in which nothing more happens.
    pub(crate) ends: usize,
    /// How long it took.
    pub(crate) took: Duration,
    /// The first invariant that broke, and how one gets there.
    pub(crate) broken: Option<(Broken, Vec<String>)>,
}

/// Explores a game until an invariant breaks or every state was seen.
pub(crate) fn explore<G: Game>(game: &G) -> Explored {
    let began = Instant::now();
    let mut seen = HashSet::new();
    let mut came: Vec<(usize, Option<G::Action>)> = Vec::new();
    let mut next = VecDeque::new();
    let mut explored = Explored {
        states: 0,
        steps: 0,
        ends: 0,
        took: Duration::ZERO,
        broken: None,
    };

    let start = game.start();
    seen.insert(hash(&start));
    came.push((0, None));
    next.push_back((0, start));
    'states: while let Some((number, state)) = next.pop_front() {
        let moves = game.moves(&state);
        if moves.by_itself.is_empty() {
            explored.ends += 1;
            if let Err(broken) = game.end(&state) {
                explored.broken = Some((broken, trace(&came, number)));
                break;
            }
        }
        for action in moves.by_itself.into_iter().chain(moves.by_chance) {
            explored.steps += 1;
            let after = match game.step(&state, &action) {
                Ok(after) => after,
                Err(broken) => {
                    let mut steps = trace(&came, number);
                    steps.push(format!("{action:?}"));
                    explored.broken = Some((broken, steps));
                    break 'states;
                }
            };
            if seen.insert(hash(&after)) {
                came.push((number, Some(action)));
                assert!(came.len() < MOST_STATES, "the world does not end");
                next.push_back((came.len() - 1, after));
            }
        }
    }
    explored.states = seen.len();
    explored.took = began.elapsed();
    explored
}

fn trace<A: Debug>(came: &[(usize, Option<A>)], mut number: usize) -> Vec<String> {
    let mut steps = Vec::new();
    while let (from, Some(action)) = &came[number] {
        steps.push(format!("{action:?}"));
        number = *from;
    }
    steps.reverse();
    steps
}

/// The hash by which states are told apart.
pub(crate) fn hash(state: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}
