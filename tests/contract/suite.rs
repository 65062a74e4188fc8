//! The contract of the ports: one suite that every backend passes unchanged (DESIGN 3).
//!
//! Each public function of the modules below is one promise. A test file names a function that
//! opens a fresh [`Subject`] and calls [`contract!`](crate::contract!) with it; a backend whose
//! clock can be moved calls [`contract_over_time!`](crate::contract_over_time!) too.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a promise that does not hold panics; that is how a test fails"
)]

pub mod atomicity;
pub mod commits;
pub mod due;
pub mod fixture;
pub mod leases;
pub mod lists;
pub mod logs;
pub mod news;
pub mod over_time;
pub mod threads;

pub use fixture::Subject;

/// Makes a test of each promise in the modules named, for the backend that `$open` opens.
#[doc(hidden)]
#[macro_export]
macro_rules! promises {
    ($open:path; $($module:ident: $($promise:ident)*;)*) => {
        $(
            mod $module {
                $(
                    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    async fn $promise() {
                        $crate::contract::$module::$promise($open().await).await;
                    }
                )*
            }
        )*
    };
}

/// Tests that a backend keeps the contract. `$open` is the path, from the root of the crate, of
/// an `async fn() -> Subject` that opens a fresh store.
#[macro_export]
macro_rules! contract {
    ($open:path) => {
        $crate::promises! { $open;
            commits:
                a_start_is_written_whole
                values_come_back_as_they_were_sent
                an_answer_of_null_is_not_no_answer
                the_same_op_gets_the_same_reply
                the_same_op_gets_the_same_reply_after_a_cancel
                other_writers_leave_the_op_alone
                a_worker_without_the_right_is_lost
                a_known_command_is_not_carried_out_again
                commands_are_known_by_caller_run_and_id
                an_answer_at_its_deadline_is_late
                an_expiry_waits_for_its_time
                checks_come_in_their_order
                the_journal_keeps_the_order_of_first_writing;
            atomicity:
                a_conflict_writes_nothing
                a_lost_commit_writes_nothing
                an_untimely_commit_writes_nothing
                a_known_command_writes_nothing
                a_start_of_an_id_that_is_taken_conflicts
                a_commit_of_another_owners_run_is_a_fault
                one_of_two_hundred_wins
                twenty_answers_all_go_through
                a_bad_commit_spoils_no_other;
            threads:
                a_start_makes_the_thread
                a_supersede_is_one_commit
                a_conflict_in_the_second_run_writes_nothing
                a_conflict_in_the_thread_writes_nothing
                earlier_runs_come_in_the_order_of_their_ends
                threads_of_one_name_belong_to_their_owners;
            leases:
                a_claim_makes_the_run_running
                the_same_nonce_gets_the_same_lease
                another_worker_is_held_off
                of_many_claims_one_wins
                a_lease_that_is_over_stays_its_holders
                a_renewal_moves_the_end_and_nothing_else
                who_writes_with_old_knowledge_does_not_shorten_a_lease
                only_the_holder_renews
                nobody_claims_before_the_time
                what_is_not_to_be_done_is_not_claimable
                a_stalled_run_may_be_claimed
                an_answer_to_a_running_run_leaves_the_lease;
            logs:
                frames_are_dense_under_concurrency
                events_come_from_the_point_asked_for
                a_trimmed_log_says_so
                a_head_never_goes_back
                heads_come_in_the_order_asked_for
                owners_of_one_name_have_their_own_logs
                a_snapshot_agrees_with_its_seq_while_commits_go_on;
            lists:
                open_asks_are_listed_newest_first
                settled_asks_are_not_listed
                runs_are_listed_newest_first
                runs_are_found_by_agent_thread_and_status
                pages_stay_in_place_while_runs_are_added
                nobody_sees_what_others_started
                agents_are_known_by_revision;
            due:
                a_ready_run_is_hinted_by_one_sweeper
                a_hint_that_was_not_taken_comes_again_soon
                a_ready_run_is_not_due_before_its_time
                a_run_that_needs_no_hint_is_not_due
                an_ask_is_due_at_its_deadline
                a_lease_is_due_at_its_end
                no_more_than_the_limit_is_taken;
            news:
                a_hint_goes_to_one_taker
                every_subscriber_hears_of_a_commit
                nobody_hears_of_what_was_not_written
                who_commits_hints_what_is_due;
        }
    };
}

/// Tests the promises that take days. Its subjects have [`Subject::travel`].
#[macro_export]
macro_rules! contract_over_time {
    ($open:path) => {
        $crate::promises! { $open;
            over_time:
                hints_are_repeated_ever_less_often
                a_commit_begins_the_hints_anew
                live_things_are_never_forgotten
                ended_runs_are_forgotten_in_their_time
                a_threads_runs_stay_as_long_as_the_thread
                commands_are_forgotten_but_not_an_asks
                a_persons_head_outlives_their_runs
                agents_are_forgotten_in_their_time;
        }
    };
}
