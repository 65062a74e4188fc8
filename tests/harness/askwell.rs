//! A running `askwell` with the embedded store and agents of the test's own.

pub mod client;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::ports;
use crate::process::{Process, binary};
use client::{Client, Http, LIMIT, token};

/// The secret that these processes check tokens with.
pub const SECRET: &str = "a secret of the tests, of no use elsewhere";

/// One process on its own data folder and port, which it keeps over restarts.
#[derive(Debug)]
pub struct Askwell {
    process: Process,
    folder: TempDir,
    port: u16,
    env: Vec<(String, String)>,
}

impl Askwell {
    /// Starts with this file of agents, and waits until it serves.
    ///
    /// # Errors
    /// It does not.
    pub async fn start(agents: &str) -> Result<Self> {
        Askwell::start_with(agents, &[("ASKWELL_JWT_SECRET", SECRET)]).await
    }

    /// Starts with this file of agents (empty: the demo agents) and these variables alone.
    ///
    /// # Errors
    /// It does not start.
    pub async fn start_with(agents: &str, env: &[(&str, &str)]) -> Result<Self> {
        let folder = TempDir::new()?;
        let mut env: Vec<(String, String)> = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        if !agents.is_empty() {
            let file = folder.path().join("agents.toml");
            std::fs::write(&file, agents)?;
            env.push(("ASKWELL_AGENTS".to_owned(), file.display().to_string()));
        }
        let port = ports::free()?;
        let process = launch(folder.path(), port, &env).await?;
        Ok(Askwell {
            process,
            folder,
            port,
            env,
        })
    }

    /// Starts again on the same data and port, after the process has ended.
    ///
    /// # Errors
    /// It does not.
    pub async fn restart(&mut self) -> Result<()> {
        self.process = launch(self.folder.path(), self.port, &self.env).await?;
        Ok(())
    }

    /// The process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Its address, `http://127.0.0.1:<port>`.
    pub fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Its data folder.
    pub fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }

    /// A token of [`SECRET`] for an hour.
    ///
    /// # Errors
    /// Never with this secret.
    pub fn token(&self, sub: &str, roles: &[&str]) -> Result<String> {
        token(SECRET, sub, roles, 3600)
    }

    /// A caller over HTTP with a token of [`SECRET`].
    ///
    /// # Errors
    /// Never with this secret.
    pub fn http(&self, sub: &str, roles: &[&str]) -> Result<Http> {
        Ok(Http::new(&self.base()).with(&self.token(sub, roles)?))
    }

    /// A person's socket, welcomed, with its snapshot read.
    ///
    /// # Errors
    /// The server wants none of it.
    pub async fn client(&self, sub: &str) -> Result<Client> {
        Client::open(&self.base(), &self.token(sub, &[])?).await
    }
}

async fn launch(folder: &Path, port: u16, env: &[(String, String)]) -> Result<Process> {
    let mut command = Command::new(binary("askwell")?);
    // A developer's own settings are none of the test's.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ASKWELL_") {
            command.env_remove(name);
        }
    }
    command.current_dir(folder);
    command.env("ASKWELL_LISTEN", format!("127.0.0.1:{port}"));
    command.env("ASKWELL_DATA", folder.join("data"));
    command.envs(env.iter().map(|(name, value)| (name, value)));
    let process = Process::start("askwell", &command)?;
    process
        .line("listening on http://", LIMIT)
        .await
        .context("askwell does not serve")?;
    Ok(process)
}
