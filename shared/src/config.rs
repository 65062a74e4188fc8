//! Configuration (SPEC 8): variables and flags, and the file of agents, checked at start.
//!
//! [`Config::check`] and [`WorkerConfig::check`] decide without reading anything; what they refuse
//! is one line that names the variable and the rule, and the binary exits 2 with it.

pub mod agents_file;
mod args;
pub mod duration;
mod fault;
mod limits;
mod reader;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::url::Url;

pub use args::Args;
pub use fault::ConfigFault;
pub use limits::GatewayLimits;

/// The configuration of `askwell`.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The whole system in one process, or a gateway only.
    pub mode: Mode,
    /// Whose tokens are believed.
    pub auth: Auth,
    /// The audience that a token must name; `None`: not checked.
    pub audience: Option<String>,
    /// The issuer that a token must name; `None`: not checked.
    pub issuer: Option<String>,
    /// Origins whose pages may connect, as browsers write them.
    pub origins: Vec<String>,
    /// What callers may use.
    pub limits: GatewayLimits,
    /// The worker inside; a gateway uses nothing of it but the lease.
    pub worker: WorkerSettings,
    /// What is logged and how.
    pub log: LogSettings,
}

/// Which parts of the system a process of `askwell` is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// Everything, on the embedded store.
    Embedded {
        /// The data folder.
        data: PathBuf,
    },
    /// A gateway; workers are processes of their own.
    Gateway {
        /// RabbitMQ.
        amqp: Url,
        /// Redis.
        redis: Url,
    },
}

/// Whose tokens are believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// Those of a secret that the process makes itself, on a loopback address only.
    Development,
    /// Those signed with this secret.
    Secret(Secret),
    /// Those signed with a key of this set.
    Jwks(Url),
}

/// A secret, which `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret itself: to sign and check, never to log.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// What a worker needs, wherever it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerSettings {
    /// The file of agents; `None`: the demo agents.
    pub agents: Option<PathBuf>,
    /// Runs that it advances at once.
    pub concurrency: usize,
    /// How long a lease lasts.
    pub lease: Duration,
}

/// What is logged and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// Directives such as `info` or `askwell=debug`.
    pub filter: String,
    /// The form of a line.
    pub format: LogFormat,
}

/// The form of a line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The configuration of `askwell-worker`.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// RabbitMQ.
    pub amqp: Url,
    /// Redis.
    pub redis: Url,
    /// What it runs.
    pub worker: WorkerSettings,
    /// What is logged and how.
    pub log: LogSettings,
}

impl Config {
    /// Checks the settings of `askwell` and names the first rule that is not met.
    pub fn check(args: &Args) -> Result<Self, ConfigFault> {
        let listen = listen(args)?;
        let auth = auth(args)?;
        let mode = match urls(args)? {
            None => Mode::Embedded {
                data: PathBuf::from(set(args.data.as_ref()).unwrap_or("./.askwell")),
            },
            Some(_) if auth == Auth::Development => {
                return Err(fault(
                    "ASKWELL_JWT_SECRET (--jwt-secret) or ASKWELL_JWKS_URL (--jwks-url)",
                    "must be set for a gateway, which is one with ASKWELL_AMQP_URL and \
                     ASKWELL_REDIS_URL",
                ));
            }
            Some((amqp, redis)) => Mode::Gateway { amqp, redis },
        };
        if auth == Auth::Development && !listen.ip().to_canonical().is_loopback() {
            return Err(fault(
                args::LISTEN,
                "must be a loopback address as long as neither ASKWELL_JWT_SECRET nor \
                 ASKWELL_JWKS_URL is set",
            ));
        }
        let mut worker = worker(args)?;
        if matches!(mode, Mode::Gateway { .. }) {
            worker.agents = None;
        }
        Ok(Config {
            listen,
            mode,
            auth,
            audience: set(args.jwt_audience.as_ref()).map(str::to_owned),
            issuer: set(args.jwt_issuer.as_ref()).map(str::to_owned),
            origins: origins(args)?,
            limits: set(args.limits.as_ref()).map_or(Ok(GatewayLimits::default()), |text| {
                GatewayLimits::parse(text).map_err(|rule| fault(args::LIMITS, rule))
            })?,
            worker,
            log: log(args)?,
        })
    }
}

impl WorkerConfig {
    /// Checks the settings of `askwell-worker` and names the first rule that is not met. What only
    /// `askwell` uses is not looked at.
    pub fn check(args: &Args) -> Result<Self, ConfigFault> {
        let Some((amqp, redis)) = urls(args)? else {
            return Err(fault(
                "ASKWELL_AMQP_URL (--amqp-url) and ASKWELL_REDIS_URL (--redis-url)",
                "must both be set: a worker of its own takes its runs from there",
            ));
        };
        Ok(WorkerConfig {
            amqp,
            redis,
            worker: worker(args)?,
            log: log(args)?,
        })
    }
}

fn fault(name: &str, rule: impl Into<String>) -> ConfigFault {
    ConfigFault::Setting {
        name: name.to_owned(),
        rule: rule.into(),
    }
}

/// An empty value counts as unset: compose files pass on variables that nobody set.
fn set(value: Option<&String>) -> Option<&str> {
    value.map(String::as_str).filter(|value| !value.is_empty())
}

fn listen(args: &Args) -> Result<SocketAddr, ConfigFault> {
    let text = set(args.listen.as_ref()).unwrap_or("127.0.0.1:8080");
    // The one host name: any other would need a resolver, whose answer may change.
    let localhost = text
        .strip_prefix("localhost:")
        .and_then(|port| port.parse().ok())
        .map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    localhost.or_else(|| text.parse().ok()).ok_or_else(|| {
        let rule = "must be an address and a port, such as 127.0.0.1:8080, [::1]:8080 or \
                    localhost:0";
        fault(args::LISTEN, rule)
    })
}

fn auth(args: &Args) -> Result<Auth, ConfigFault> {
    let secret = set(args.jwt_secret.as_ref());
    let jwks = set(args.jwks_url.as_ref());
    match (secret, jwks) {
        (None, None) => Ok(Auth::Development),
        (Some(secret), None) => Ok(Auth::Secret(Secret(secret.to_owned()))),
        (None, Some(url)) => Url::parse(url, &["http", "https"])
            .map(Auth::Jwks)
            .map_err(|rule| fault(args::JWKS_URL, rule)),
        (Some(_), Some(_)) => Err(fault(
            args::JWKS_URL,
            "must be left out where ASKWELL_JWT_SECRET is set: tokens are checked one way",
        )),
    }
}

/// RabbitMQ and Redis: both or neither.
fn urls(args: &Args) -> Result<Option<(Url, Url)>, ConfigFault> {
    let amqp = set(args.amqp_url.as_ref());
    let redis = set(args.redis_url.as_ref());
    let (amqp, redis) = match (amqp, redis) {
        (None, None) => return Ok(None),
        (Some(amqp), Some(redis)) => (amqp, redis),
        (Some(_), None) => {
            let rule = "must be set with ASKWELL_AMQP_URL: RabbitMQ carries hints, and the runs \
                        are in Redis";
            return Err(fault(args::REDIS_URL, rule));
        }
        (None, Some(_)) => {
            let rule = "must be set with ASKWELL_REDIS_URL: the runs are in Redis, and RabbitMQ \
                        tells workers of them";
            return Err(fault(args::AMQP_URL, rule));
        }
    };
    let amqp = Url::parse(amqp, &["amqp", "amqps"]).map_err(|rule| fault(args::AMQP_URL, rule))?;
    let redis =
        Url::parse(redis, &["redis", "rediss"]).map_err(|rule| fault(args::REDIS_URL, rule))?;
    let database = redis.path().trim_start_matches('/');
    if !database.is_empty() && database.parse::<u32>().is_err() {
        let rule = "must have the number of a database as its path, if any";
        return Err(fault(args::REDIS_URL, rule));
    }
    Ok(Some((amqp, redis)))
}

fn worker(args: &Args) -> Result<WorkerSettings, ConfigFault> {
    let concurrency = set(args.concurrency.as_ref()).unwrap_or("64");
    // More than this many permits no semaphore has, and no machine has use for.
    let concurrency = concurrency
        .parse()
        .ok()
        .filter(|count| (1..=1_000_000).contains(count))
        .ok_or_else(|| fault(args::CONCURRENCY, "must be a number from 1 to 1000000"))?;
    let lease = set(args.lease.as_ref()).unwrap_or("10s");
    let lease = duration::parse(lease).map_err(|rule| fault(args::LEASE, rule))?;
    // A lease is renewed at a third of it, which a shorter one leaves no time for; and a crashed
    // worker's runs stand still until a longer one is over.
    if !(Duration::from_secs(1)..=Duration::from_hours(1)).contains(&lease) {
        return Err(fault(args::LEASE, "must be from 1s to 1h"));
    }
    Ok(WorkerSettings {
        agents: set(args.agents.as_ref()).map(PathBuf::from),
        concurrency,
        lease,
    })
}

fn log(args: &Args) -> Result<LogSettings, ConfigFault> {
    let format = match set(args.log_format.as_ref()) {
        None | Some("text") => LogFormat::Text,
        Some("json") => LogFormat::Json,
        Some(_) => return Err(fault(args::LOG_FORMAT, "must be text or json")),
    };
    Ok(LogSettings {
        filter: set(args.log.as_ref()).unwrap_or("info").to_owned(),
        format,
    })
}

fn origins(args: &Args) -> Result<Vec<String>, ConfigFault> {
    let Some(text) = set(args.origins.as_ref()) else {
        return Ok(Vec::new());
    };
    text.split(',')
        .map(|entry| origin(entry.trim()))
        .collect::<Option<_>>()
        .ok_or_else(|| {
            let rule = "must be a comma-separated list of scheme://host[:port], without a path";
            fault(args::ORIGINS, rule)
        })
}

/// The origin as a browser writes it (RFC 6454, 6.2): lower case, without the scheme's own port.
fn origin(text: &str) -> Option<String> {
    let (scheme, _) = text.split_once("://")?;
    let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.chars().all(named) {
        return None;
    }
    let url = Url::parse(text, &[scheme.to_ascii_lowercase().as_str()]).ok()?;
    if url.has_user() || url.has_query() || !url.path().is_empty() {
        return None;
    }
    let port = match (url.scheme(), url.port()) {
        (_, None) | ("http", Some(80)) | ("https", Some(443)) => String::new(),
        (_, Some(port)) => format!(":{port}"),
    };
    Some(format!("{}://{}{port}", url.scheme(), url.host()))
}

#[cfg(test)]
mod tests;
