//! The threads that read, each with a connection of its own, so that no reading waits for a
//! writing and none holds up a worker of the runtime.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::Broken;
use crate::ports::Fault;

/// Readings that may wait; more callers wait at the door.
const WAITING: usize = 1_024;

type Reading = Box<dyn FnOnce(&Connection) + Send>;

/// The way to the reading threads. Dropping it ends them, after what waits.
pub(super) struct Readers {
    queue: Option<mpsc::Sender<Reading>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    /// Starts a thread for each connection.
    pub(super) fn start(connections: Vec<Connection>) -> std::io::Result<Readers> {
        let (queue, waiting) = mpsc::channel::<Reading>(WAITING);
        let waiting = Arc::new(Mutex::new(waiting));
        // Made first: where a thread cannot be started, dropping it ends those that were.
        let mut readers = Readers {
            queue: Some(queue),
            threads: Vec::new(),
        };
        for connection in connections {
            let waiting = Arc::clone(&waiting);
            let thread = thread::Builder::new()
                .name("askwell-reader".to_owned())
                .spawn(move || {
                    while let Some(reading) = next(&waiting) {
                        reading(&connection);
                    }
                })?;
            readers.threads.push(thread);
        }
        Ok(readers)
    }

    /// Reads one state of the store: all that `reading` sees is of one moment.
    pub(super) async fn read<T, F>(&self, op: &'static str, reading: F) -> Result<T, Fault>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Broken> + Send + 'static,
    {
        let (reply, told) = oneshot::channel();
        let reading: Reading = Box::new(move |connection| {
            // The caller may be gone.
            drop(reply.send(at_one_moment(connection, reading)));
        });
        let gone = || Fault::new(op, "the reading threads have ended");
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        queue.send(reading).await.map_err(|_| gone())?;
        told.await
            .map_err(|_| gone())?
            .map_err(|broken| Fault::new(op, broken))
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue = None;
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

fn next(waiting: &Mutex<mpsc::Receiver<Reading>>) -> Option<Reading> {
    waiting
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .blocking_recv()
}

fn at_one_moment<T>(
    connection: &Connection,
    reading: impl FnOnce(&Connection) -> Result<T, Broken>,
) -> Result<T, Broken> {
    let moment = connection.unchecked_transaction()?;
    let value = reading(&moment)?;
    moment.finish()?;
    Ok(value)
}
