//! Every interleaving of small worlds (DESIGN 6): the real `Run::apply`, `Run::next`,
//! `Run::claim`, `Run::indexes`, `Thread` and order of checks of a commit, between two workers, two
//! gateways and a sweeper that crash, stand still, and lose replies and hints.

#![allow(clippy::unwrap_used, reason = "all of this target is a test")]

mod broken;
mod client;
mod explorer;
mod hold;
mod invariants;
mod kept;
mod reading;
mod rules;
mod store;
mod sweeper;
mod worker;
mod world;
mod worlds;

use broken::Invariant;
use explorer::explore;
use rules::{Mistake, Rules};

fn check(name: &str, rules: &Rules) {
    let explored = explore(rules);
    println!(
        "{name}: {} states, {} steps, {} ends, {:.1} s",
        explored.states,
        explored.steps,
        explored.ends,
        explored.took.as_secs_f64()
    );
    if let Some((broken, steps)) = explored.broken {
        panic!("{name}: {broken}\n  {}", steps.join("\n  "));
    }
    assert!(explored.ends > 0, "{name} never ends");
}

/// A planted mistake is found, by the invariant that is named.
fn finds(rules: Rules, mistake: Mistake, invariant: Invariant) {
    let explored = explore(&rules.with(mistake));
    let (broken, steps) = explored.broken.unwrap_or_else(|| {
        panic!("{mistake:?} is not found in {} states", explored.states);
    });
    println!(
        "{mistake:?}: {broken}\n  {}\n  after {} states, {:.1} s",
        steps.join("\n  "),
        explored.states,
        explored.took.as_secs_f64()
    );
    assert_eq!(broken.invariant, invariant, "{broken}");
}

#[test]
fn two_asks_of_a_turn_are_answered_by_two_gateways() {
    check("two asks", &worlds::two_asks());
}

#[test]
fn two_answers_race_beside_a_call() {
    check("racing answers", &worlds::racing_answers());
}

#[test]
fn a_worker_stands_still_in_a_call() {
    check("standing still", &worlds::standing_still());
}

#[test]
fn the_end_of_a_run_in_a_thread_is_not_known() {
    check("unknown ends", &worlds::ends_of_unknown_outcome());
}

#[test]
fn the_runs_of_a_thread_go_one_at_a_time() {
    check("superseded thread", &worlds::superseded_thread());
}

#[test]
fn a_start_queues_behind_a_waiting_head() {
    check("queueing thread", &worlds::queueing_thread());
}

#[test]
fn a_commit_of_unknown_outcome_meets_a_settlement() {
    check("unknown outcome", &worlds::unknown_outcome());
}

#[test]
fn an_answer_races_the_deadline() {
    check("deadline", &worlds::deadline());
}

#[test]
fn a_failed_run_is_retried() {
    check("retried", &worlds::retried());
}

#[test]
fn a_run_that_loses_every_worker_is_set_aside() {
    check("set aside", &worlds::set_aside());
}

#[test]
fn an_approved_call_goes_on_beside_an_open_ask() {
    check("approval", &worlds::approval());
}

#[test]
fn a_run_is_given_back_and_taken_again() {
    check("given back", &worlds::given_back());
}

#[test]
fn finds_that_a_settlement_queues_a_held_run() {
    finds(
        worlds::racing_answers(),
        Mistake::SettledWhileRunningQueues,
        Invariant::LeaseHolds,
    );
}

#[test]
fn finds_that_tokens_are_not_compared() {
    finds(
        worlds::racing_answers(),
        Mistake::NoTokenCheck,
        Invariant::OldFence,
    );
}

#[test]
fn finds_two_runs_of_a_thread_at_work() {
    finds(
        worlds::queueing_thread(),
        Mistake::TwoHeads,
        Invariant::OneHead,
    );
}

#[test]
fn finds_that_others_overwrite_the_op_slot() {
    finds(
        worlds::unknown_outcome(),
        Mistake::SharedOpSlot,
        Invariant::SameOp,
    );
}

#[test]
fn finds_that_a_settled_ask_is_settled_again() {
    finds(
        worlds::racing_answers(),
        Mistake::NoOpenCheck,
        Invariant::SettledOnce,
    );
}

#[test]
fn finds_that_nobody_hints_again() {
    finds(
        worlds::queueing_thread(),
        Mistake::NoHintAgain,
        Invariant::NoDeadEnd,
    );
}

#[test]
fn finds_that_commands_are_not_kept() {
    let mut world = worlds::two_asks();
    world.budget = rules::Budget {
        repeats: 1,
        ..rules::Budget::default()
    };
    finds(world, Mistake::CommandsIgnored, Invariant::SameReply);
}

#[test]
fn finds_that_a_lost_command_is_turned_away() {
    finds(
        worlds::two_asks(),
        Mistake::CommandsIgnored,
        Invariant::TurnedAway,
    );
}

#[test]
fn finds_that_a_lease_is_renewed_behind_the_sweepers_back() {
    finds(
        worlds::racing_answers(),
        Mistake::LateRenewal,
        Invariant::LeaseHolds,
    );
}

#[test]
fn finds_that_a_call_is_made_again_without_asking() {
    finds(
        worlds::standing_still(),
        Mistake::NoRedo,
        Invariant::CallOnce,
    );
}
