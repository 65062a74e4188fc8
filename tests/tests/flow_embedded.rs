//! The flow suite on the embedded backend, each story in a process of its own.
#![allow(
    clippy::unwrap_used,
    reason = "a system that does not start fails the test"
)]

use askwell_tests::flow::AGENTS;
use askwell_tests::system::System;

async fn open() -> System {
    System::embedded(AGENTS).await.unwrap()
}

askwell_tests::flow!(crate::open);
