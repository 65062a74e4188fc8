//! A whole system of real processes for the flow suite, whatever its backend.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::client::{Api, Client, PATIENCE, SECRET, token};
use crate::process::{Process, binary};
use crate::servers::{Rabbit, Redis};
use crate::world::World;

/// The one RabbitMQ of a test binary, in which each system has a virtual host of its own; starting
/// a broker takes seconds.
static BROKER: OnceCell<Rabbit> = OnceCell::const_new();

/// How many systems one test binary may start.
const VHOSTS: usize = 48;

/// Which virtual host is the next system's.
static NEXT_VHOST: AtomicUsize = AtomicUsize::new(0);

async fn broker() -> Result<&'static Rabbit> {
    BROKER
        .get_or_try_init(|| async {
            let broker = Rabbit::start().await?;
            let names: Vec<String> = (0..VHOSTS).map(|number| format!("s{number}")).collect();
            broker.add_vhosts(&names).await?;
            anyhow::Ok(broker)
        })
        .await
}

/// A system under test: its gateways and what lies outside.
pub struct System {
    /// Models and tools.
    pub world: World,
    /// The gateways' addresses, at least one.
    pub gateways: Vec<String>,
    /// The processes; the embedded system is one.
    pub processes: Vec<Process>,
    /// The workers, of a distributed system.
    pub workers: Vec<Process>,
    /// The store, of a distributed system.
    pub redis: Option<Redis>,
    environment: Vec<(String, String)>,
    folder: TempDir,
}

/// Changes to the ordinary environment of a program.
pub type Environment<'a> = &'a [(&'a str, &'a str)];

impl System {
    /// The embedded system with the agents of `file`, in which `{world}` stands for the world's
    /// address.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn embedded(file: &str) -> Result<Self> {
        System::embedded_with(file, &[]).await
    }

    /// The same with other environment variables.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn embedded_with(file: &str, environment: Environment<'_>) -> Result<Self> {
        let world = World::start().await?;
        let folder = tempfile::tempdir()?;
        let agents = folder.path().join("agents.toml");
        std::fs::write(&agents, file.replace("{world}", &world.url))?;
        let mut system = System {
            world,
            gateways: Vec::new(),
            processes: Vec::new(),
            workers: Vec::new(),
            redis: None,
            environment: Vec::new(),
            folder,
        };
        system.start_embedded(environment).await?;
        Ok(system)
    }

    /// Gateways and workers, on a Redis of their own and in a virtual host of their own of the
    /// test binary's RabbitMQ.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn distributed(file: &str, gateways: usize, workers: usize) -> Result<Self> {
        let number = NEXT_VHOST.fetch_add(1, Ordering::SeqCst);
        anyhow::ensure!(number < VHOSTS, "more systems than virtual hosts");
        let (broker, redis) = tokio::try_join!(broker(), Redis::start())?;
        let amqp = broker.url_in(&format!("s{number}"));
        let url = redis.url();
        let mut system = System::on(file, &amqp, &url).await?;
        system.redis = Some(redis);
        system.grow(gateways, workers).await?;
        Ok(system)
    }

    /// A system of no processes yet, on these servers.
    ///
    /// # Errors
    /// When the world cannot be served.
    pub async fn on(file: &str, amqp: &str, redis: &str) -> Result<Self> {
        let world = World::start().await?;
        let folder = tempfile::tempdir()?;
        let agents = folder.path().join("agents.toml");
        std::fs::write(&agents, file.replace("{world}", &world.url))?;
        let environment = [
            ("ASKWELL_AMQP_URL", amqp),
            ("ASKWELL_REDIS_URL", redis),
            ("ASKWELL_JWT_SECRET", SECRET),
        ];
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Ok(System {
            world,
            gateways: Vec::new(),
            processes: Vec::new(),
            workers: Vec::new(),
            redis: None,
            environment: environment.iter().map(own).collect(),
            folder,
        })
    }

    /// Starts more gateways and workers and waits until they serve.
    ///
    /// # Errors
    /// When one does not start.
    pub async fn grow(&mut self, gateways: usize, workers: usize) -> Result<()> {
        let mut started = Vec::new();
        for _ in 0..workers {
            started.push(self.start_worker()?);
        }
        for _ in 0..gateways {
            let mut command = askwell()?;
            command.envs(self.environment.iter().cloned());
            let process = Process::start("askwell", &command)?;
            let line = process.line("listening on ", PATIENCE).await?;
            let url = line.split("listening on ").nth(1).context("no address")?;
            self.gateways.push(url.to_owned());
            self.processes.push(process);
        }
        for worker in started {
            worker.line("working", PATIENCE).await?;
            self.workers.push(worker);
        }
        Ok(())
    }

    /// Starts a worker and does not wait for it.
    ///
    /// # Errors
    /// When it is not built.
    pub fn start_worker(&self) -> Result<Process> {
        let mut command = program("askwell-worker")?;
        command
            .envs(self.environment.iter().cloned())
            .env("ASKWELL_AGENTS", self.folder.path().join("agents.toml"));
        Process::start("askwell-worker", &command)
    }

    /// The folder of this system, which goes with it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    async fn start_embedded(&mut self, environment: Environment<'_>) -> Result<()> {
        let mut command = askwell()?;
        command
            .env("ASKWELL_DATA", self.folder.path().join("data"))
            .env("ASKWELL_AGENTS", self.folder.path().join("agents.toml"))
            .env("ASKWELL_JWT_SECRET", SECRET);
        for (name, value) in environment {
            command.env(name, value);
        }
        let process = Process::start("askwell", &command)?;
        let line = process.line("listening on ", PATIENCE).await?;
        let url = line
            .split("listening on ")
            .nth(1)
            .context("no address")?
            .to_owned();
        self.gateways = vec![url];
        self.processes = vec![process];
        Ok(())
    }

    /// Kills the embedded system with SIGKILL and starts it again on the same folder.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn kill_and_start(&mut self) -> Result<()> {
        for process in self.processes.drain(..) {
            process.kill().await?;
        }
        self.start_embedded(&[]).await
    }

    /// HTTP calls of a person, to one of the gateways.
    pub fn api(&self, sub: &str) -> Api {
        self.api_with(sub, &[])
    }

    /// HTTP calls of a caller with roles.
    pub fn api_with(&self, sub: &str, roles: &[&str]) -> Api {
        Api::new(
            self.gateways.last().map_or("", |url| url),
            &token(sub, roles),
        )
    }

    /// A socket of a person, at one of the gateways.
    ///
    /// # Errors
    /// When it is not welcomed.
    pub async fn socket(&self, sub: &str) -> Result<Client> {
        self.socket_at(0, sub).await
    }

    /// A socket of a person at the gateway of this number, counted round.
    ///
    /// # Errors
    /// When it is not welcomed.
    pub async fn socket_at(&self, gateway: usize, sub: &str) -> Result<Client> {
        let url = &self.gateways[gateway % self.gateways.len()];
        Client::sign_in(url, &token(sub, &[])).await
    }
}

/// The program `askwell`, with nothing of the environment of the one who runs the tests.
///
/// # Errors
/// When it is not built.
pub fn askwell() -> Result<Command> {
    program("askwell")
}

fn program(name: &str) -> Result<Command> {
    let mut command = Command::new(binary(name)?);
    for (name, _) in std::env::vars() {
        if name.starts_with("ASKWELL_") {
            command.env_remove(name);
        }
    }
    command
        .env("ASKWELL_LISTEN", "127.0.0.1:0")
        .env("ASKWELL_LOG", "warn,askwell=info");
    Ok(command)
}
