//! The settings of both binaries as clap reads them: every one a variable and a flag (SPEC 8).

use std::fmt;

pub(super) const LISTEN: &str = "ASKWELL_LISTEN (--listen)";
pub(super) const AMQP_URL: &str = "ASKWELL_AMQP_URL (--amqp-url)";
pub(super) const REDIS_URL: &str = "ASKWELL_REDIS_URL (--redis-url)";
pub(super) const JWKS_URL: &str = "ASKWELL_JWKS_URL (--jwks-url)";
pub(super) const ORIGINS: &str = "ASKWELL_ORIGINS (--origins)";
pub(super) const CONCURRENCY: &str = "ASKWELL_CONCURRENCY (--concurrency)";
pub(super) const LEASE: &str = "ASKWELL_LEASE (--lease)";
pub(super) const LIMITS: &str = "ASKWELL_LIMITS (--limits)";
pub(super) const LOG_FORMAT: &str = "ASKWELL_LOG_FORMAT (--log-format)";

/// What is set, unchecked. A binary flattens it into its own command line and hands it to
/// [`Config::check`](super::Config::check) or [`WorkerConfig::check`](super::WorkerConfig::check).
///
/// Everything is text here, so that every fault is told in our own words. `--help` shows no
/// values: addresses may hold passwords.
#[derive(Clone, Default, clap::Args)]
pub struct Args {
    /// Address to listen on; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, env = "ASKWELL_LISTEN", hide_env_values = true)]
    pub listen: Option<String>,
    /// File of agents [default: the demo agents]
    #[arg(long, env = "ASKWELL_AGENTS", hide_env_values = true)]
    pub agents: Option<String>,
    /// Data folder of the embedded store [default: ./.askwell]
    #[arg(long, env = "ASKWELL_DATA", hide_env_values = true)]
    pub data: Option<String>,
    /// RabbitMQ, amqp:// or amqps://; with --redis-url
    #[arg(long, env = "ASKWELL_AMQP_URL", hide_env_values = true)]
    pub amqp_url: Option<String>,
    /// Redis, redis:// or rediss://; with --amqp-url
    #[arg(long, env = "ASKWELL_REDIS_URL", hide_env_values = true)]
    pub redis_url: Option<String>,
    /// Secret with which tokens are signed (HS256)
    #[arg(long, env = "ASKWELL_JWT_SECRET", hide_env_values = true)]
    pub jwt_secret: Option<String>,
    /// Address of the keys with which tokens are signed
    #[arg(long, env = "ASKWELL_JWKS_URL", hide_env_values = true)]
    pub jwks_url: Option<String>,
    /// Audience that tokens must name [default: not checked]
    #[arg(long, env = "ASKWELL_JWT_AUDIENCE", hide_env_values = true)]
    pub jwt_audience: Option<String>,
    /// Issuer that tokens must name [default: not checked]
    #[arg(long, env = "ASKWELL_JWT_ISSUER", hide_env_values = true)]
    pub jwt_issuer: Option<String>,
    /// Origins whose pages may connect, separated by commas
    #[arg(long, env = "ASKWELL_ORIGINS", hide_env_values = true)]
    pub origins: Option<String>,
    /// Runs that a worker advances at once [default: 64]
    #[arg(long, env = "ASKWELL_CONCURRENCY", hide_env_values = true)]
    pub concurrency: Option<String>,
    /// How long a worker's lease on a run lasts [default: 10s]
    #[arg(long, env = "ASKWELL_LEASE", hide_env_values = true)]
    pub lease: Option<String>,
    /// What callers may use [default: commands=5,burst=20,systemCommands=1000,socketsPerUser=20,socketsPerAddress=100,sockets=50000]
    #[arg(long, env = "ASKWELL_LIMITS", hide_env_values = true)]
    pub limits: Option<String>,
    /// What is logged, such as info or askwell=debug [default: info]
    #[arg(long, env = "ASKWELL_LOG", hide_env_values = true)]
    pub log: Option<String>,
    /// Form of the log: text or json [default: text]
    #[arg(long, env = "ASKWELL_LOG_FORMAT", hide_env_values = true)]
    pub log_format: Option<String>,
}

impl fmt::Debug for Args {
    // Three of them hold secrets, and nothing is checked yet.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Args(..)")
    }
}
