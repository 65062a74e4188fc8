//! What both programs do alike: how they log, how they stop, and what a failed start is worth.

use std::fmt::Display;
use std::io;
use std::process;

use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, LogSettings};

/// A start or an end that failed: one line, and the exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// 2 for a bad configuration, 1 for a failure (SPEC 8).
    pub exit: u8,
    /// The place and the rule.
    pub line: String,
}

/// A configuration that cannot be used.
pub fn misconfigured(line: impl Display) -> Failure {
    Failure {
        exit: 2,
        line: line.to_string(),
    }
}

/// A failure that no configuration causes.
pub fn failed(line: impl Display) -> Failure {
    Failure {
        exit: 1,
        line: line.to_string(),
    }
}

/// Begins to log to standard error. The error is a bad filter.
pub fn start_log(settings: &LogSettings) -> Result<(), Failure> {
    // The client of RabbitMQ logs returned messages whole, with the answers in them, and each end
    // of a connection as an error; our own lines say what matters. Naming it in the filter undoes
    // this.
    let directives = format!("lapin=off,{}", settings.filter);
    let filter = EnvFilter::try_new(directives).map_err(|_| {
        misconfigured("ASKWELL_LOG (--log): must be directives such as info or askwell=debug")
    })?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    match settings.format {
        LogFormat::Text => lines.with_ansi(false).init(),
        LogFormat::Json => lines.json().init(),
    }
    Ok(())
}

/// The first SIGTERM or ctrl-C cancels `stop`, the second ends the process at once.
pub fn stop_on_signal(stop: CancellationToken) -> io::Result<()> {
    #[cfg(unix)]
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::spawn(async move {
        for _ in 0..2 {
            #[cfg(unix)]
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminated.recv() => {}
            }
            #[cfg(not(unix))]
            let _ = tokio::signal::ctrl_c().await;
            if stop.is_cancelled() {
                process::exit(1);
            }
            tracing::info!("draining");
            stop.cancel();
        }
    });
    Ok(())
}
