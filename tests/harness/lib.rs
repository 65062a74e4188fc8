//! What Askwell's tests with real processes stand on, in reading order:
//!
//! - [`process`]: a program of ours or a server, with its lines, signals and a certain end.
//! - [`ports`]: loopback ports that nobody else is likely to take.
//! - [`servers`]: private Redis and RabbitMQ, which can be killed, frozen and started again.
//! - [`proxy`]: a connection that can be cut, slowed down or made half-open.
//! - [`askwell`]: one embedded process with clients that look at the wire byte for byte.
//! - [`client`]: HTTP calls and sockets; [`system`]: a whole system of real processes.
//! - [`world`]: models that stream and tools that act, with a ledger of all that came.
//! - [`mod@contract`]: what the ports promise, as one suite for every backend.
//!
//! Nothing here uses a server or a port that it did not open itself, and nothing is skipped: a test
//! whose server or program is missing fails and says what to install or build.

pub mod askwell;
pub mod client;
#[path = "../contract/suite.rs"]
pub mod contract;
#[path = "../flow/suite.rs"]
pub mod flow;
pub mod ports;
pub mod process;
pub mod proxy;
pub mod servers;
pub mod system;
pub mod world;
