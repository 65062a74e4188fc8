//! A private Redis, as safe as our deploy files set it: every write is on disk before its reply.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::{STARTS, installed};
use crate::ports;
use crate::process::Process;

const LIMIT: Duration = Duration::from_secs(30);

/// A private `redis-server` on a loopback port. Dropping it kills it and removes its data.
#[derive(Debug)]
pub struct Redis {
    process: Process,
    port: u16,
    folder: TempDir,
    settings: Vec<String>,
}

impl Redis {
    /// Starts it empty and returns when it takes connections.
    ///
    /// # Errors
    /// When Redis is not installed or does not start.
    pub async fn start() -> Result<Self> {
        Self::start_with(&[]).await
    }

    /// As [`Redis::start`], with more settings, as `["--cluster-enabled", "yes"]`.
    ///
    /// # Errors
    /// When Redis is not installed or does not start.
    pub async fn start_with(settings: &[&str]) -> Result<Self> {
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let folder = tempfile::tempdir()?;
        let mut tries = 1;
        loop {
            let port = ports::free()?;
            match launch(port, &folder, &settings).await {
                Ok(process) => {
                    return Ok(Self {
                        process,
                        port,
                        folder,
                        settings,
                    });
                }
                Err(error) if tries == STARTS => return Err(error),
                Err(_) => tries += 1,
            }
        }
    }

    /// `redis://127.0.0.1:PORT/`
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// The port on 127.0.0.1; the same after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The running process: freeze it, read its lines.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// kill -9. [`Redis::restart`] brings it back.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn kill(&self) -> Result<()> {
        self.process.kill().await
    }

    /// An orderly end (SIGTERM), also of a frozen one.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn stop(&self) -> Result<()> {
        self.process.thaw()?;
        self.process.terminate(LIMIT).await.map(drop)
    }

    /// Starts it again on the same port and data; kills it first if it still runs.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn restart(&mut self) -> Result<()> {
        self.process.kill().await?;
        self.process = launch(self.port, &self.folder, &self.settings).await?;
        Ok(())
    }

    /// One command, through `redis-cli`; gives what it prints.
    ///
    /// # Errors
    /// When the server cannot be reached or answers with an error.
    pub async fn command(&self, words: &[&str]) -> Result<String> {
        let mut cli = tokio::process::Command::new("redis-cli");
        cli.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-e"]);
        let out = cli.args(words).kill_on_drop(true).output();
        let out = tokio::time::timeout(LIMIT, out)
            .await
            .with_context(|| format!("redis-cli {words:?} gave no answer within {LIMIT:?}"))??;
        if !out.status.success() {
            bail!(
                "redis-cli {words:?}: {}{}",
                String::from_utf8_lossy(&out.stdout),
                String::from_utf8_lossy(&out.stderr)
            );
        }
        Ok(String::from_utf8_lossy(&out.stdout).trim_end().to_owned())
    }
}

async fn launch(port: u16, folder: &TempDir, settings: &[String]) -> Result<Process> {
    let program = installed(
        &["/usr/bin/redis-server", "/usr/local/bin/redis-server"],
        "redis-server",
    )?;
    let mut command = Command::new(program);
    command.current_dir(folder.path());
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
    command.arg("--dir").arg(folder.path());
    command.args(["--appendonly", "yes", "--appendfsync", "always"]);
    command.args(["--maxmemory-policy", "noeviction", "--save", ""]);
    command.args(["--daemonize", "no", "--logfile", ""]);
    command.args(settings);
    let process = Process::start("redis-server", &command)?;
    process.line("Ready to accept connections", LIMIT).await?;
    Ok(process)
}
