//! What a user sees, from end to end, on every backend (issue "The main job"). Each public
//! function of the modules below is one story; [`flow!`](crate::flow!) makes a test of each.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a story that goes otherwise panics; that is how a test fails"
)]

pub mod answers;
pub mod callers;
pub mod endings;
pub mod races;
pub mod tools;
pub mod trace;

use serde_json::{Value, json};

use crate::world::Answer;

/// The agents of the suite.
pub const AGENTS: &str = include_str!("agents.toml");

/// A turn that asks for a size.
pub fn size() -> Answer {
    Answer::calls("", &[("c1", "question", which_size())])
}

/// The input of [`size`].
pub fn which_size() -> Value {
    json!({"question": "Which size?", "choices": ["S", "M", "L"]})
}

/// The tool messages of a request to a model: call ids and contents, in order.
pub fn results(request: &Value) -> Vec<(String, String)> {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    results
        .map(|message| (text(&message["tool_call_id"]), text(&message["content"])))
        .collect()
}

/// Makes a test of each story in the modules named, on the system that `$open` opens.
#[doc(hidden)]
#[macro_export]
macro_rules! stories {
    ($open:path; $($module:ident: $($story:ident)*;)*) => {
        $(
            mod $module {
                $(
                    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    async fn $story() {
                        let mut system = $open().await;
                        $crate::flow::$module::$story(&mut system).await;
                    }
                )*
            }
        )*
    };
}

/// Tests the whole suite on a backend. `$open` is the path, from the root of the crate, of an
/// `async fn() -> System` that opens a fresh system with [`AGENTS`].
#[macro_export]
macro_rules! flow {
    ($open:path) => {
        $crate::stories! { $open;
            trace:
                the_trace_of_the_protocol
                a_sibling_tool_ends_before_the_answer
                a_sibling_tool_ends_after_the_answer
                two_asks_answered_in_order
                two_asks_answered_the_other_way_round
                text_streams_before_it_is_saved;
            answers:
                a_misfit_leaves_the_ask_waiting
                several_questions_and_drafts
                a_shape_is_checked_at_the_door
                hostile_shapes_are_told_the_model_and_open_nothing
                numbers_keep_their_digits
                an_approval_is_edited_approved_refused
                a_guard_refuses_to_the_model_alone;
            callers:
                the_caller_table
                a_stranger_learns_nothing
                every_code_over_http
                every_code_over_the_socket
                a_backend_starts_and_answers_its_own;
            endings:
                refusal_and_expiry_read_the_same_and_are_kept_apart
                an_expiry_is_told_where_the_agent_wants_it
                cancel_in_every_state
                limits_ask_nobody_in_vain
                a_failed_run_is_retried
                a_thread_goes_one_at_a_time
                a_newer_message_supersedes;
            races:
                two_answers_at_the_same_moment
                the_same_command_twice
                three_answers_beside_a_tool
                many_asks_at_once
                a_device_that_comes_back_sees_all;
            tools:
                the_next_request_is_what_the_provider_wants
                a_call_that_goes_wrong_is_told_the_model
                a_provider_that_fails_is_tried_again;
        }
    };
}
