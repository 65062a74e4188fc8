//! A private RabbitMQ with an Erlang name server (epmd) of its own.

use std::ffi::OsString;
use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::json;
use tempfile::TempDir;

use super::{STARTS, installed};
use crate::ports;
use crate::process::Process;

const LIMIT: Duration = Duration::from_secs(90);

/// The scripts themselves: Debian's wrappers in `/usr/sbin` switch to another user.
const SERVER: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
const CTL: &str = "/usr/lib/rabbitmq/bin/rabbitmqctl";

/// A private RabbitMQ node on loopback ports, run by the present user. Dropping it kills the broker
/// and its epmd and removes its data.
#[derive(Debug)]
pub struct Rabbit {
    broker: Process,
    epmd: Process,
    node: Node,
}

/// What stays the same over restarts.
#[derive(Debug)]
struct Node {
    folder: TempDir,
    amqp: u16,
    dist: u16,
    epmd: u16,
    ctl: u16,
}

impl Rabbit {
    /// Starts it empty and returns when it takes connections.
    ///
    /// # Errors
    /// When RabbitMQ is not installed or does not start.
    pub async fn start() -> Result<Self> {
        let mut tries = 1;
        loop {
            let node = Node::new()?;
            let started = match node.launch_epmd().await {
                Ok(epmd) => node.launch().await.map(|broker| (epmd, broker)),
                Err(error) => Err(error),
            };
            match started {
                Ok((epmd, broker)) => return Ok(Self { broker, epmd, node }),
                Err(error) if tries == STARTS => return Err(error),
                Err(_) => tries += 1,
            }
        }
    }

    /// `amqp://guest:guest@127.0.0.1:PORT/%2f`
    pub fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}/%2f", self.node.amqp)
    }

    /// The same in another virtual host.
    pub fn url_in(&self, vhost: &str) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}/{vhost}", self.node.amqp)
    }

    /// Makes virtual hosts of these names, in one go.
    ///
    /// # Errors
    /// When `rabbitmqctl` fails.
    pub async fn add_vhosts(&self, names: &[String]) -> Result<()> {
        let vhosts: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
        let permissions: Vec<_> = names
            .iter()
            .map(|name| {
                json!({"user": "guest", "vhost": name, "configure": ".*", "write": ".*", "read": ".*"})
            })
            .collect();
        let file = self.node.folder.path().join("vhosts.json");
        let definitions = json!({ "vhosts": vhosts, "permissions": permissions });
        std::fs::write(&file, definitions.to_string())?;
        let file = file.to_string_lossy();
        self.ctl(&["import_definitions", &file]).await.map(drop)
    }

    /// The AMQP port on 127.0.0.1; the same after a restart.
    pub fn port(&self) -> u16 {
        self.node.amqp
    }

    /// The broker's process: freeze it, read its lines.
    pub fn process(&self) -> &Process {
        &self.broker
    }

    /// The process of its own Erlang name server.
    pub fn epmd(&self) -> &Process {
        &self.epmd
    }

    /// kill -9 of the broker. [`Rabbit::restart`] brings it back.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn kill(&self) -> Result<()> {
        self.broker.kill().await
    }

    /// An orderly end (SIGTERM), also of a frozen one.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn stop(&self) -> Result<()> {
        self.broker.thaw()?;
        self.broker.terminate(LIMIT).await.map(drop)
    }

    /// Starts it again on the same ports and data; kills it first if it still runs.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn restart(&mut self) -> Result<()> {
        self.broker.kill().await?;
        self.broker = self.node.launch().await?;
        Ok(())
    }

    /// Raises or lifts the memory alarm: under it the broker takes no publishes and blocks the
    /// connections that publish.
    ///
    /// # Errors
    /// When `rabbitmqctl` fails.
    pub async fn alarm(&self, on: bool) -> Result<()> {
        let mark = if on { "0.0000001" } else { "0.8" };
        self.ctl(&["set_vm_memory_high_watermark", mark])
            .await
            .map(drop)
    }

    /// `rabbitmqctl -q WORDS` against this node; gives what it prints.
    ///
    /// # Errors
    /// When it fails, with its output.
    pub async fn ctl(&self, words: &[&str]) -> Result<String> {
        let mut ctl = tokio::process::Command::new(CTL);
        ctl.envs(self.node.environment()).arg("-q").args(words);
        let out = tokio::time::timeout(LIMIT, ctl.kill_on_drop(true).output())
            .await
            .with_context(|| format!("rabbitmqctl {words:?} gave no answer within {LIMIT:?}"))??;
        if !out.status.success() {
            bail!(
                "rabbitmqctl {words:?}: {}{}",
                String::from_utf8_lossy(&out.stdout),
                String::from_utf8_lossy(&out.stderr)
            );
        }
        Ok(String::from_utf8_lossy(&out.stdout).trim_end().to_owned())
    }
}

impl Node {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let amqp = ports::free()?;
        let settings = [
            format!("listeners.tcp.1 = 127.0.0.1:{amqp}"),
            "log.console = true".to_owned(),
            "log.console.level = info".to_owned(),
            "log.file = false".to_owned(),
            "vm_memory_high_watermark.relative = 0.8".to_owned(),
            "disk_free_limit.absolute = 50MB".to_owned(),
            // The default of 512 MB is kept in memory per node.
            "raft.wal_max_size_bytes = 33554432".to_owned(),
        ];
        fs::write(folder.path().join("rabbitmq.conf"), settings.join("\n"))?;
        fs::write(folder.path().join("enabled_plugins"), "[].\n")?;
        // Instead of the machine's own file in /etc.
        fs::write(folder.path().join("env.conf"), "")?;
        Ok(Self {
            folder,
            amqp,
            dist: ports::free()?,
            epmd: ports::free()?,
            ctl: ports::free()?,
        })
    }

    /// For the broker and its tools alike.
    fn environment(&self) -> Vec<(&'static str, OsString)> {
        let path = |name: &str| self.folder.path().join(name).into_os_string();
        let text = |text: String| OsString::from(text);
        vec![
            // The Erlang cookie lies in the home folder.
            ("HOME", path("")),
            (
                "RABBITMQ_NODENAME",
                text(format!("askwell-{}@localhost", self.amqp)),
            ),
            ("RABBITMQ_NODE_IP_ADDRESS", text("127.0.0.1".to_owned())),
            ("RABBITMQ_NODE_PORT", text(self.amqp.to_string())),
            ("RABBITMQ_DIST_PORT", text(self.dist.to_string())),
            ("ERL_EPMD_ADDRESS", text("127.0.0.1".to_owned())),
            ("ERL_EPMD_PORT", text(self.epmd.to_string())),
            // Each tool that runs at the same time takes the next port of this range.
            ("RABBITMQ_CTL_DIST_PORT_MIN", text(self.ctl.to_string())),
            (
                "RABBITMQ_CTL_DIST_PORT_MAX",
                text((self.ctl + 100).to_string()),
            ),
            ("RABBITMQ_CONF_ENV_FILE", path("env.conf")),
            ("RABBITMQ_CONFIG_FILE", path("rabbitmq.conf")),
            ("RABBITMQ_ADVANCED_CONFIG_FILE", path("advanced.config")),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", path("enabled_plugins")),
            ("RABBITMQ_BASE", path("")),
            ("RABBITMQ_MNESIA_BASE", path("mnesia")),
            ("RABBITMQ_LOG_BASE", path("log")),
            ("RABBITMQ_LOGS", text("-".to_owned())),
            ("RABBITMQ_PID_FILE", path("pid")),
            ("RABBITMQ_GENERATED_CONFIG_DIR", path("config")),
            (
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                // Erlang's schedulers spin for work by default, which takes a small machine's cores
                // from the programs under test.
                text(
                    "-kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none"
                        .to_owned(),
                ),
            ),
            // The script then becomes the Erlang process instead of staying between it and us.
            ("RUNNING_UNDER_SYSTEMD", text("1".to_owned())),
        ]
    }

    /// epmd in the foreground: left to Erlang, it would be a daemon that outlives the broker.
    async fn launch_epmd(&self) -> Result<Process> {
        let mut command = Command::new(installed(&["/usr/bin/epmd"], "erlang-base")?);
        command.args(["-d", "-d", "-address", "127.0.0.1"]);
        command.args(["-port", &self.epmd.to_string()]);
        let process = Process::start("epmd", &command)?;
        process.line("entering the main select", LIMIT).await?;
        Ok(process)
    }

    async fn launch(&self) -> Result<Process> {
        let mut command = Command::new(installed(&[SERVER], "rabbitmq-server")?);
        command.current_dir(self.folder.path());
        command.envs(self.environment());
        let process = Process::start("rabbitmq-server", &command)?;
        process.line("Server startup complete", LIMIT).await?;
        Ok(process)
    }
}
