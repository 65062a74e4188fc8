//! The flow suite on RabbitMQ and Redis, each story on two gateways and two workers.
#![allow(
    clippy::unwrap_used,
    reason = "a system that does not start fails the test"
)]

use askwell_tests::flow::AGENTS;
use askwell_tests::system::System;

async fn open() -> System {
    System::distributed(AGENTS, 2, 2).await.unwrap()
}

askwell_tests::flow!(crate::open);
