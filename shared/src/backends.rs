//! The backends, and the one place that picks between them.

pub mod embedded;
pub mod redis;

use std::path::PathBuf;

use crate::ports::Ports;

pub use embedded::OpenFault;

/// Which backend keeps the runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Everything in this process, on SQLite in this folder.
    Embedded {
        /// The data folder; made if it is missing.
        folder: PathBuf,
    },
}

/// Opens the ports of the chosen backend. A fault here is one of the configuration or of the
/// machine: trying again does not help.
pub async fn open(choice: Choice) -> Result<Ports, OpenFault> {
    match choice {
        Choice::Embedded { folder } => {
            let path = folder.clone();
            // Opening reads and syncs files, which must not hold up a worker of the runtime.
            tokio::task::spawn_blocking(move || embedded::open(&folder, embedded::system_clock()))
                .await
                .unwrap_or_else(|panic| Err(OpenFault::unreadable(&path, panic)))
        }
    }
}
