//! `askwell-worker`: a worker of a fleet (SPEC 8). Configuration, ports, serve.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use askwell_shared::backends::{self, Choice};
use askwell_shared::config::{Args, WorkerConfig, agents_file};
use askwell_shared::program::{Failure, failed, misconfigured, start_log, stop_on_signal};
use askwell_worker::{Options, agents, serve};
use clap::Parser;
use tokio_util::sync::CancellationToken;

/// What is left after so long when a worker stops is dropped as by kill -9 (SPEC 8).
const DRAIN: Duration = Duration::from_secs(25);

/// Advances runs of agents: takes them from RabbitMQ, keeps them in Redis.
#[derive(Parser)]
#[command(name = "askwell-worker", version)]
struct Cli {
    #[command(flatten)]
    args: Args,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Cli::parse().args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { exit, line }) => {
            eprintln!("askwell-worker: {line}");
            ExitCode::from(exit)
        }
    }
}

async fn run(args: &Args) -> Result<(), Failure> {
    let config = WorkerConfig::check(args).map_err(misconfigured)?;
    start_log(&config.log)?;
    let file = config.worker.agents.as_deref();
    let defined = agents_file::load(file).map_err(misconfigured)?;
    let name = file.map_or_else(|| "demo agents".into(), Path::to_string_lossy);
    let agents = agents::load(defined, &|name| std::env::var(name).ok())
        .map_err(|fault| misconfigured(format!("{name}: {fault}")))?;
    let choice = Choice::Distributed {
        redis: config.redis,
        amqp: config.amqp,
    };
    let ports = backends::open(choice).await.map_err(misconfigured)?;
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone()).map_err(failed)?;
    let options = Options {
        concurrency: config.worker.concurrency,
        lease: config.worker.lease,
    };
    let ready = || println!("working");
    let mut working = tokio::spawn(serve(ports, agents, options, stop.clone(), ready));
    tokio::select! {
        ended = &mut working => return ended.map_err(failed),
        () = stop.cancelled() => {}
    }
    if let Ok(ended) = tokio::time::timeout(DRAIN, working).await {
        return ended.map_err(failed);
    }
    tracing::warn!("not all runs were given back in time");
    Ok(())
}
