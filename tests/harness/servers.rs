//! Private servers: each has a folder, ports and processes of its own and is gone with its value.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

mod rabbit;
mod redis;

pub use rabbit::Rabbit;
pub use redis::Redis;

/// How often a start is tried with new ports: another process may have taken one in between.
const STARTS: u32 = 3;

/// The first of `paths` that is there.
fn installed(paths: &[&str], package: &str) -> Result<PathBuf> {
    match paths.iter().find(|path| Path::new(path).is_file()) {
        Some(path) => Ok(PathBuf::from(path)),
        None => bail!(
            "{} is not there: install the package {package}, or let `tests/run rust` do it",
            paths.join(" or ")
        ),
    }
}
