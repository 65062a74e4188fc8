//! `askwell`: the whole system in one process on the embedded store, or a gateway before workers
//! of their own (SPEC 8). Configuration, ports, serve.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use askwell_gateway::auth::{self, Auth};
use askwell_gateway::door::Door;
use askwell_gateway::{DRAIN, Setup, serve, token};
use askwell_shared::backends::{self, Choice};
use askwell_shared::config::{self, Args, Config, Mode, WorkerSettings};
use askwell_shared::config::{agents_file, duration};
use askwell_shared::ports::Ports;
use askwell_shared::program::{Failure, failed, misconfigured, start_log, stop_on_signal};
use askwell_shared::sweep::Sweeper;
use clap::{Parser, Subcommand};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Lets an agent ask a person, and goes on with the answer.
#[derive(Parser)]
#[command(name = "askwell", version)]
struct Cli {
    #[command(flatten)]
    args: Args,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Prints a token made with the configured secret
    Token {
        /// Whom it names
        #[arg(long)]
        sub: String,
        /// A role; may be given several times
        #[arg(long = "role")]
        roles: Vec<String>,
        /// How long it holds, such as 15m or 1h
        #[arg(long, default_value = "1h")]
        ttl: String,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Some(Command::Token { sub, roles, ttl }) => print_token(&cli.args, &sub, &roles, &ttl),
        None => run(&cli.args).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { exit, line }) => {
            eprintln!("askwell: {line}");
            ExitCode::from(exit)
        }
    }
}

async fn run(args: &Args) -> Result<(), Failure> {
    let config = Config::check(args).map_err(misconfigured)?;
    start_log(&config.log)?;
    let agents = load_agents(&config)?;
    let listener = TcpListener::bind(config.listen).await.map_err(|fault| {
        let listen = config.listen;
        misconfigured(format!("ASKWELL_LISTEN (--listen): {listen}: {fault}"))
    })?;
    let address = listener.local_addr().map_err(failed)?;
    let ports = backends::open(Choice::from(&config.mode))
        .await
        .map_err(misconfigured)?;
    let development = config.auth == config::Auth::Development;
    let setup = Setup {
        ports: ports.clone(),
        auth: make_auth(&config)?,
        door: Door {
            origins: config.origins.clone(),
            development,
        },
        node: format!("g-{:08x}", rand::random::<u32>()),
    };
    if development {
        tracing::warn!(
            "development mode: whoever reaches {address} may sign in as anyone; \
             set ASKWELL_JWT_SECRET to end it"
        );
    }

    if !development && config.origins.is_empty() {
        tracing::warn!(
            "no page may connect, this server's own included: name the origins of pages in \
             ASKWELL_ORIGINS"
        );
    }

    let stop = CancellationToken::new();
    stop_on_signal(stop.clone()).map_err(failed)?;
    let swept = ports.clone();
    let (ready, worker_ready) = oneshot::channel();
    let worker = agents.map(|agents| work(ports, agents, &config.worker, stop.clone(), ready));
    // The worker inside sweeps; without one the gateway does (SPEC 2: every process looks).
    let sweeping = worker.is_none().then(|| {
        let (sweeper, stop) = (Sweeper::new(swept), stop.clone());
        tokio::spawn(async move { stop.run_until_cancelled(sweeper.run()).await })
    });
    let gateway = tokio::spawn(serve(listener, setup, stop.clone()));
    // With the worker inside, a start is answered only once its agents are known.
    if worker.is_none() || worker_ready.await.is_ok() {
        println!("listening on http://{address}");
    }
    let ended = ended(gateway, worker, &stop).await;
    if let Some(sweeping) = sweeping {
        let _ = sweeping.await;
    }
    ended
}

/// Waits for the end of both parts; what one of them leaves undone after the drain is dropped.
async fn ended(
    gateway: JoinHandle<io::Result<()>>,
    worker: Option<JoinHandle<()>>,
    stop: &CancellationToken,
) -> Result<(), Failure> {
    let served = gateway.await;
    // A gateway that ended by itself takes the worker along.
    let asked = stop.is_cancelled();
    stop.cancel();
    if let Some(worker) = worker
        && timeout(DRAIN, worker).await.is_err()
    {
        tracing::warn!("the worker did not drain in time");
    }
    served.map_err(failed)?.map_err(failed)?;
    if asked {
        Ok(())
    } else {
        Err(failed("the gateway ended"))
    }
}

/// The worker inside: the one place that names it.
fn work(
    ports: Ports,
    agents: askwell_worker::agents::Agents,
    settings: &WorkerSettings,
    stop: CancellationToken,
    ready: oneshot::Sender<()>,
) -> JoinHandle<()> {
    let options = askwell_worker::Options {
        concurrency: settings.concurrency,
        lease: settings.lease,
    };
    let ready = || {
        // Nobody waits any more where the process is on its way out.
        let _ = ready.send(());
    };
    tokio::spawn(askwell_worker::serve(ports, agents, options, stop, ready))
}

fn load_agents(config: &Config) -> Result<Option<askwell_worker::agents::Agents>, Failure> {
    if matches!(config.mode, Mode::Gateway { .. }) {
        return Ok(None);
    }
    let file = config.worker.agents.as_deref();
    let agents = agents_file::load(file).map_err(misconfigured)?;
    let name = file.map_or_else(|| "demo agents".into(), Path::to_string_lossy);
    askwell_worker::agents::load(agents, &|name| std::env::var(name).ok())
        .map(Some)
        .map_err(|fault| misconfigured(format!("{name}: {fault}")))
}

fn make_auth(config: &Config) -> Result<Auth, Failure> {
    let secret = match (&config.auth, &config.mode) {
        (config::Auth::Secret(secret), _) => secret.expose().as_bytes().to_vec(),
        (config::Auth::Development, Mode::Embedded { data }) => token::development_secret(data)
            .map_err(|fault| {
                let folder = data.display();
                misconfigured(format!("ASKWELL_DATA (--data): {folder}: {fault}"))
            })?,
        (config::Auth::Development, Mode::Gateway { .. }) => Vec::new(),
        (config::Auth::Jwks(_), _) => {
            return Err(misconfigured(
                "ASKWELL_JWKS_URL (--jwks-url): this version checks tokens by \
                 ASKWELL_JWT_SECRET alone",
            ));
        }
    };
    let (audience, issuer) = (config.audience.clone(), config.issuer.clone());
    Auth::new(&secret, audience, issuer)
        .map_err(|rule| misconfigured(format!("ASKWELL_JWT_SECRET (--jwt-secret): {rule}")))
}

fn print_token(args: &Args, sub: &str, roles: &[String], ttl: &str) -> Result<(), Failure> {
    let config = Config::check(args).map_err(misconfigured)?;
    let ttl: Duration =
        duration::parse(ttl).map_err(|rule| misconfigured(format!("--ttl: {rule}")))?;
    let token = make_auth(&config)?
        .issue(sub, roles, ttl, auth::now())
        .map_err(|rule| misconfigured(format!("--sub and --role: {rule}")))?;
    println!("{token}");
    Ok(())
}
