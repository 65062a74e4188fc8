//! The data folder: made, locked, and opened or refused.

use std::error::Error;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};
use uuid::Uuid;

/// The version of the tables. A folder with a newer one is left alone (SPEC 5).
const SCHEMA_VERSION: u32 = 1;

const SCHEMA: &str = include_str!("schema.sql");

/// Why a data folder cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenFault {
    /// Another process works in it.
    #[error("the data folder {} is in use by another process", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// It cannot be made, read or written, or holds something else.
    #[error("the data folder {} cannot be used: {source}", path.display())]
    Unreadable {
        /// The folder.
        path: PathBuf,
        /// What went wrong.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A newer Askwell wrote it.
    #[error(
        "the data folder {} has version {found}, this program knows versions up to {known}",
        path.display()
    )]
    Version {
        /// The folder.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The newest version known.
        known: u32,
    },
}

impl OpenFault {
    /// A folder that cannot be used.
    pub(crate) fn unreadable(
        path: &Path,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> OpenFault {
        OpenFault::Unreadable {
            path: path.to_owned(),
            source: source.into(),
        }
    }
}

/// A folder that this process has to itself.
pub(super) struct Folder {
    database: PathBuf,
    /// Which life of the store this is.
    pub(super) epoch: String,
    // The operating system gives the lock back when the file is closed, by kill -9 too.
    _lock: File,
}

impl Folder {
    /// Opens a folder for writing, and makes it where it is missing.
    pub(super) fn open(path: &Path) -> Result<(Folder, Connection), OpenFault> {
        make(path).map_err(|fault| OpenFault::unreadable(path, fault))?;
        let lock = lock(path)?;
        let database = path.join("askwell.db");
        let writer = connect(&database).map_err(|fault| OpenFault::unreadable(path, fault))?;
        let found: u32 = writer
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(|fault| OpenFault::unreadable(path, fault))?;
        if found > SCHEMA_VERSION {
            return Err(OpenFault::Version {
                path: path.to_owned(),
                found,
                known: SCHEMA_VERSION,
            });
        }
        let epoch = prepare(&writer, found).map_err(|fault| OpenFault::unreadable(path, fault))?;
        let folder = Folder {
            database,
            epoch,
            _lock: lock,
        };
        Ok((folder, writer))
    }

    /// A connection that only reads.
    pub(super) fn reader(&self) -> rusqlite::Result<Connection> {
        let reader = connect(&self.database)?;
        reader.pragma_update(None, "query_only", true)?;
        Ok(reader)
    }
}

fn make(path: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        // Answers and secrets of the development mode lie here: for this user only.
        builder.mode(0o700);
    }
    builder.create(path)
}

fn lock(path: &Path) -> Result<File, OpenFault> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path.join("lock"))
        .map_err(|fault| OpenFault::unreadable(path, fault))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenFault::Locked {
            path: path.to_owned(),
        }),
        Err(TryLockError::Error(fault)) => Err(OpenFault::unreadable(path, fault)),
    }
}

fn connect(database: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(database)?;
    // Only a checkpoint can be in the way for a moment: nobody else writes.
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // A commit is told only when it is on the disk (PROTOCOL 6, I4).
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.set_prepared_statement_cache_capacity(128);
    Ok(connection)
}

/// Makes the tables where there are none, and gives the store's epoch.
fn prepare(writer: &Connection, found: u32) -> rusqlite::Result<String> {
    let change = writer.unchecked_transaction()?;
    if found == 0 {
        change.execute_batch(SCHEMA)?;
        change.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    }
    // Nobody of an earlier process is left: its leases are over, and what it hinted is due again.
    change.execute(
        "UPDATE runs SET lease_until = 0 WHERE lease_until IS NOT NULL",
        [],
    )?;
    change.execute(
        "UPDATE runs SET ready_at = ready_from, pushes = 0 \
         WHERE ready_at IS NOT NULL AND pushes > 0",
        [],
    )?;
    let known: Option<String> = change
        .query_row("SELECT value FROM meta WHERE name = 'epoch'", [], |row| {
            row.get(0)
        })
        .optional()?;
    let epoch = if let Some(epoch) = known {
        epoch
    } else {
        let epoch = Uuid::new_v4().simple().to_string();
        change.execute(
            "INSERT INTO meta (name, value) VALUES ('epoch', ?1)",
            [&epoch],
        )?;
        epoch
    };
    change.commit()?;
    Ok(epoch)
}
