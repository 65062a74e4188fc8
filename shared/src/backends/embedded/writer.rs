//! The one thread that writes. Changes that wait are grouped in one transaction, since a sync of
//! the disk costs the same for one as for a hundred.

use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::Broken;
use crate::ports::Fault;

/// Changes that may wait; more callers wait at the door.
const WAITING: usize = 1_024;

/// Changes in one transaction, so that the first of them does not wait for ever.
const GROUP: usize = 256;

/// A change that waits for its turn.
trait Change: Send {
    /// Makes the change. `false`: it failed, and nothing of it may stay.
    fn make(&mut self, connection: &Connection) -> bool;

    /// Tells the caller, once it is known whether the group is durable.
    fn tell(self: Box<Self>, group: Result<(), &str>);
}

struct Waiting<T, F> {
    op: &'static str,
    change: Option<F>,
    made: Option<Result<T, Broken>>,
    reply: oneshot::Sender<Result<T, Fault>>,
}

impl<T, F> Change for Waiting<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, Broken> + Send,
{
    fn make(&mut self, connection: &Connection) -> bool {
        self.made = self.change.take().map(|change| change(connection));
        matches!(self.made, Some(Ok(_)))
    }

    fn tell(self: Box<Self>, group: Result<(), &str>) {
        let reply = match (self.made, group) {
            (Some(Err(broken)), _) => Err(Fault::new(self.op, broken)),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (_, Err(why)) => Err(Fault::new(self.op, why)),
            (None, Ok(())) => Err(Fault::new(self.op, "it was not carried out")),
        };
        // The caller may be gone; what is durable stays so.
        drop(self.reply.send(reply));
    }
}

/// The way to the writing thread. Dropping it ends the thread, after what waits.
pub(super) struct Writer {
    queue: Option<mpsc::Sender<Box<dyn Change>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(connection: Connection) -> std::io::Result<Writer> {
        let (queue, waiting) = mpsc::channel(WAITING);
        let thread = thread::Builder::new()
            .name("askwell-writer".to_owned())
            .spawn(move || write(&connection, waiting))?;
        Ok(Writer {
            queue: Some(queue),
            thread: Some(thread),
        })
    }

    /// Makes a change and waits until it is durable. A change that fails leaves nothing behind.
    pub(super) async fn change<T, F>(&self, op: &'static str, change: F) -> Result<T, Fault>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Broken> + Send + 'static,
    {
        let (reply, told) = oneshot::channel();
        let waiting = Waiting {
            op,
            change: Some(change),
            made: None,
            reply,
        };
        let gone = || Fault::new(op, "the writing thread has ended");
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        queue.send(Box::new(waiting)).await.map_err(|_| gone())?;
        told.await.map_err(|_| gone())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // Waited for, so that the folder is free when the last user of the store has gone. A
            // panic there was told to every caller already.
            drop(thread.join());
        }
    }
}

fn write(connection: &Connection, mut waiting: mpsc::Receiver<Box<dyn Change>>) {
    while let Some(first) = waiting.blocking_recv() {
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(next) = waiting.try_recv()
        {
            group.push(next);
        }
        let durable = commit(connection, &mut group);
        if let Err(fault) = &durable {
            tracing::error!(%fault, changes = group.len(), "a group of changes was not written");
            if !connection.is_autocommit()
                && let Err(fault) = connection.execute_batch("ROLLBACK")
            {
                tracing::error!(%fault, "its transaction stays open");
            }
        }
        let durable = durable.map_err(|fault| format!("the group was not written: {fault}"));
        for change in group {
            change.tell(durable.as_ref().copied().map_err(String::as_str));
        }
    }
}

fn commit(connection: &Connection, group: &mut [Box<dyn Change>]) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    for change in group {
        connection.execute_batch("SAVEPOINT change")?;
        if !change.make(connection) {
            // Where SQLite has rolled back everything by itself (a full disk), there is no such
            // savepoint any more, and this fails for the whole group: as it must.
            connection.execute_batch("ROLLBACK TO change")?;
        }
        connection.execute_batch("RELEASE change")?;
    }
    connection.execute_batch("COMMIT")
}
