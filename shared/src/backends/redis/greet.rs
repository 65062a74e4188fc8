//! What is asked of a server before it is used: whether it keeps what it is given, how it is laid
//! out, and which life it is in.

use std::sync::Arc;

use deadpool_redis::redis::aio::MultiplexedConnection;
use deadpool_redis::redis::{self, RedisError};

use super::keys::META;
use super::{Broken, OpenFault};
use crate::id::{PARTITION_HASH, PARTITIONS};

/// The version of keys and indexes. A store with a newer one is left alone (SPEC 5).
const LAYOUT: u32 = 1;

/// A server that is fit.
pub(super) struct Greeting {
    /// Its replication id: numbers of another life do not compare (PROTOCOL 2).
    pub(super) epoch: Arc<str>,
    /// Whether it wants replicas to have what it writes.
    pub(super) replicated: bool,
}

/// Asks a server.
pub(super) async fn greet(connection: &mut MultiplexedConnection) -> Result<Greeting, Broken> {
    let info: String = redis::cmd("INFO").query_async(connection).await?;
    let role = field(&info, "role").unwrap_or_default();
    if role != "master" {
        return Err(Broken::Role(role.to_owned()));
    }
    match field(&info, "maxmemory_policy") {
        Some("noeviction") | None => {}
        Some(policy) => {
            return Err(OpenFault::Evicting {
                policy: policy.to_owned(),
            }
            .into());
        }
    }
    if field(&info, "cluster_enabled") == Some("1") {
        let cluster: String = redis::cmd("CLUSTER")
            .arg("INFO")
            .query_async(connection)
            .await?;
        let nodes = field(&cluster, "cluster_size").and_then(|nodes| nodes.parse().ok());
        if let Some(nodes @ 2..) = nodes {
            return Err(OpenFault::Sharded { nodes }.into());
        }
    }
    let epoch = field(&info, "master_replid").ok_or(Broken::Damaged("no replication id".into()))?;
    lay_out(connection).await?;
    Ok(Greeting {
        epoch: Arc::from(epoch),
        replicated: replicated(connection).await?,
    })
}

/// How full the memory is: used bytes and the limit, 0 where there is none.
pub(super) fn memory(info: &str) -> Option<(u64, u64)> {
    let number = |name| field(info, name)?.parse().ok();
    Some((number("used_memory")?, number("maxmemory")?))
}

/// A field of INFO, or of CLUSTER INFO.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .map(str::trim)
}

/// Compares how the store is laid out with this program, and notes it in a new store.
async fn lay_out(connection: &mut MultiplexedConnection) -> Result<(), Broken> {
    let ours = [
        ("v", LAYOUT.to_string()),
        ("partitions", PARTITIONS.to_string()),
        ("hash", PARTITION_HASH.to_owned()),
    ];
    for (name, ours) in &ours {
        let read = async |connection: &mut MultiplexedConnection| {
            let mut get = redis::cmd("HGET");
            get.arg(META).arg(name);
            get.query_async::<Option<String>>(connection).await
        };
        let mut found = read(connection).await?;
        if found.is_none() {
            // Another process may note it at the same moment: the first one counts.
            let mut note = redis::cmd("HSETNX");
            note.arg(META).arg(name).arg(ours);
            note.query_async::<()>(connection).await?;
            found = read(connection).await?;
        }
        if found.as_ref() != Some(ours) {
            return Err(OpenFault::Layout {
                what: name,
                found: found.unwrap_or_default(),
                known: ours.clone(),
            }
            .into());
        }
    }
    Ok(())
}

/// Whether the server is told to write only with replicas. Hosted servers may keep their
/// configuration to themselves; then nobody waits.
async fn replicated(connection: &mut MultiplexedConnection) -> Result<bool, RedisError> {
    let mut get = redis::cmd("CONFIG");
    get.arg("GET").arg("min-replicas-to-write");
    match get.query_async::<Vec<String>>(connection).await {
        Ok(pair) => Ok(pair.get(1).is_some_and(|count| count != "0")),
        Err(error) if error.code().is_some() => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "# Memory\r\nused_memory:840\r\nused_memory_human:840B\r\nmaxmemory:1000\r\n\
        # Replication\r\nrole:master\r\nmaster_replid:abc\r\nmaster_replid2:000\r\n";

    #[test]
    fn fields_are_found_by_their_whole_name() {
        assert_eq!(field(INFO, "master_replid"), Some("abc"));
        assert_eq!(field(INFO, "master"), None);
        assert_eq!(memory(INFO), Some((840, 1_000)));
        assert_eq!(memory("role:master"), None);
    }
}
