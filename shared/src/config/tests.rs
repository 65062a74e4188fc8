use clap::Parser;

use super::*;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

/// Reads flags as a binary does.
fn args(flags: &str) -> Args {
    let words = std::iter::once("askwell").chain(flags.split_whitespace());
    Command::try_parse_from(words).unwrap().args
}

fn config(flags: &str) -> Config {
    Config::check(&args(flags)).unwrap_or_else(|fault| panic!("{flags}: {fault}"))
}

const BOTH: &str = "--amqp-url amqp://rabbit --redis-url redis://redis";

#[test]
fn with_nothing_set_it_is_the_whole_system_on_loopback() {
    let config = Config::check(&Args::default()).unwrap();
    assert_eq!(config.listen, "127.0.0.1:8080".parse().unwrap());
    let data = PathBuf::from("./.askwell");
    assert_eq!(config.mode, Mode::Embedded { data });
    assert_eq!(config.auth, Auth::Development);
    assert_eq!((config.audience, config.issuer), (None, None));
    assert!(config.origins.is_empty());
    assert_eq!(config.limits, GatewayLimits::default());
    let worker = WorkerSettings {
        agents: None,
        concurrency: 64,
        lease: Duration::from_secs(10),
    };
    assert_eq!(config.worker, worker);
    assert_eq!(config.log.filter, "info");
    assert_eq!(config.log.format, LogFormat::Text);
}

#[test]
fn every_flag_is_read() {
    let config = config(
        "--listen 0.0.0.0:0 --agents a.toml --data d --jwt-secret s --jwt-audience a \
         --jwt-issuer i --origins https://a.example --concurrency 3 --lease 2s --limits burst=9 \
         --log debug --log-format json",
    );
    assert_eq!(config.listen, "0.0.0.0:0".parse().unwrap());
    let data = PathBuf::from("d");
    assert_eq!(config.mode, Mode::Embedded { data });
    assert_eq!(config.auth, Auth::Secret(Secret("s".into())));
    assert_eq!(config.audience.as_deref(), Some("a"));
    assert_eq!(config.issuer.as_deref(), Some("i"));
    assert_eq!(config.origins, ["https://a.example"]);
    assert_eq!(config.limits.burst, 9);
    assert_eq!(config.worker.agents, Some(PathBuf::from("a.toml")));
    assert_eq!(config.worker.concurrency, 3);
    assert_eq!(config.worker.lease, Duration::from_secs(2));
    assert_eq!(config.log.filter, "debug");
    assert_eq!(config.log.format, LogFormat::Json);
}

#[test]
fn every_flag_is_a_variable_too() {
    let command = <Command as clap::CommandFactory>::command();
    let mut names = Vec::new();
    for arg in command.get_arguments().filter(|arg| arg.get_id() != "help") {
        let flag = arg.get_long().unwrap();
        let variable = flag.to_uppercase().replace('-', "_");
        let env = arg.get_env().unwrap().to_str().unwrap();
        assert_eq!(env, format!("ASKWELL_{variable}"));
        assert!(arg.is_hide_env_values_set(), "{flag}");
        names.push(flag.to_owned());
    }
    assert_eq!(names.len(), 15);
}

#[test]
fn an_empty_value_counts_as_unset() {
    let empty = || Some(String::new());
    let args = Args {
        listen: empty(),
        agents: empty(),
        data: empty(),
        amqp_url: empty(),
        redis_url: empty(),
        jwt_secret: empty(),
        jwks_url: empty(),
        jwt_audience: empty(),
        jwt_issuer: empty(),
        origins: empty(),
        concurrency: empty(),
        lease: empty(),
        limits: empty(),
        log: empty(),
        log_format: empty(),
    };
    let with = format!("{:?}", Config::check(&args).unwrap());
    let without = format!("{:?}", Config::check(&Args::default()).unwrap());
    assert_eq!(with, without);
    assert!(WorkerConfig::check(&args).is_err());
}

#[test]
fn both_urls_make_a_gateway_only() {
    let config = config(&format!(
        "{BOTH} --jwt-secret s --agents a.toml --listen 0.0.0.0:80"
    ));
    let Mode::Gateway { amqp, redis } = config.mode else {
        panic!("{:?}", config.mode);
    };
    assert_eq!(amqp.expose(), "amqp://rabbit");
    assert_eq!(redis.expose(), "redis://redis");
    assert_eq!(config.worker.agents, None, "a gateway ignores the agents");
}

#[test]
fn what_loopback_is() {
    for listen in [
        "127.0.0.1:0",
        "127.8.8.8:1",
        "[::1]:8080",
        "localhost:0",
        "[::ffff:127.0.0.1]:80",
    ] {
        let listen = config(&format!("--listen {listen}")).listen;
        assert!(listen.ip().to_canonical().is_loopback());
    }
    for listen in ["0.0.0.0:8080", "[::]:8080", "192.0.2.1:80"] {
        let flags = format!("--listen {listen}");
        let fault = Config::check(&args(&flags)).unwrap_err().to_string();
        assert!(
            fault.starts_with("ASKWELL_LISTEN (--listen): must be a loopback address"),
            "{fault}"
        );
        config(&format!("{flags} --jwt-secret s"));
        config(&format!("{flags} --jwks-url https://keys.example/jwks"));
    }
}

fn refuses<S: AsRef<str>>(rows: &[(S, &str)]) {
    for (flags, expected) in rows {
        let flags = flags.as_ref();
        let fault = Config::check(&args(flags)).unwrap_err().to_string();
        assert!(fault.starts_with(expected), "{flags}\n{fault}\n{expected}");
        assert!(!fault.contains('\n'), "{fault}");
    }
}

#[test]
fn every_fault_of_an_address_or_a_key_names_the_variable_and_the_rule() {
    let key = "--jwt-secret s";
    refuses(&[
        (
            BOTH.to_owned(),
            "ASKWELL_JWT_SECRET (--jwt-secret) or ASKWELL_JWKS_URL (--jwks-url): must be set for a gateway",
        ),
        (
            format!("{key} --amqp-url amqp://rabbit"),
            "ASKWELL_REDIS_URL (--redis-url): must be set with ASKWELL_AMQP_URL: RabbitMQ",
        ),
        (
            format!("{key} --redis-url redis://redis"),
            "ASKWELL_AMQP_URL (--amqp-url): must be set with ASKWELL_REDIS_URL: the runs",
        ),
        (
            format!("{key} --amqp-url rabbit --redis-url redis://redis"),
            "ASKWELL_AMQP_URL (--amqp-url): must be a URL that begins with amqp:// or amqps://",
        ),
        (
            format!("{key} --amqp-url http://rabbit --redis-url redis://redis"),
            "ASKWELL_AMQP_URL (--amqp-url): must be a URL that begins",
        ),
        (
            format!("{key} --amqp-url amqp:// --redis-url redis://redis"),
            "ASKWELL_AMQP_URL (--amqp-url): must have a host",
        ),
        (
            format!("{key} --amqp-url amqp://rabbit:x --redis-url redis://redis"),
            "ASKWELL_AMQP_URL (--amqp-url): must have a port",
        ),
        (
            format!("{key} --amqp-url amqp://rabbit --redis-url amqp://redis"),
            "ASKWELL_REDIS_URL (--redis-url): must be a URL that begins with redis:// or rediss://",
        ),
        (
            format!("{key} --amqp-url amqp://rabbit --redis-url redis://:6379"),
            "ASKWELL_REDIS_URL (--redis-url): must have a host",
        ),
        (
            format!("{key} --amqp-url amqp://rabbit --redis-url redis://redis/main"),
            "ASKWELL_REDIS_URL (--redis-url): must have the number of a database",
        ),
        (
            format!("{key} --jwks-url https://keys.example"),
            "ASKWELL_JWKS_URL (--jwks-url): must be left out where ASKWELL_JWT_SECRET",
        ),
    ]);
}

#[test]
fn every_other_fault_names_the_variable_and_the_rule() {
    refuses(&[
        (
            "--jwks-url keys.example",
            "ASKWELL_JWKS_URL (--jwks-url): must be a URL that begins with http:// or https://",
        ),
        (
            "--listen 8080",
            "ASKWELL_LISTEN (--listen): must be an address and a port",
        ),
        (
            "--listen 127.0.0.1",
            "ASKWELL_LISTEN (--listen): must be an address and a port",
        ),
        (
            "--listen localhost:65536",
            "ASKWELL_LISTEN (--listen): must be an address and a port",
        ),
        (
            "--listen askwell.example:80",
            "ASKWELL_LISTEN (--listen): must be an address and a port",
        ),
        (
            "--concurrency 0",
            "ASKWELL_CONCURRENCY (--concurrency): must be a number from 1",
        ),
        (
            "--concurrency many",
            "ASKWELL_CONCURRENCY (--concurrency): must be a number from 1",
        ),
        (
            "--concurrency 1000001",
            "ASKWELL_CONCURRENCY (--concurrency): must be a number from 1",
        ),
        (
            "--lease 999ms",
            "ASKWELL_LEASE (--lease): must be from 1s to 1h",
        ),
        (
            "--lease 0",
            "ASKWELL_LEASE (--lease): must be from 1s to 1h",
        ),
        (
            "--lease 2h",
            "ASKWELL_LEASE (--lease): must be from 1s to 1h",
        ),
        (
            "--lease 10",
            "ASKWELL_LEASE (--lease): must be a duration such as",
        ),
        (
            "--lease 999999999999d",
            "ASKWELL_LEASE (--lease): is too long",
        ),
        (
            "--limits comands=5",
            "ASKWELL_LIMITS (--limits): unknown key comands",
        ),
        (
            "--limits commands=0",
            "ASKWELL_LIMITS (--limits): commands must be a number",
        ),
        (
            "--log-format xml",
            "ASKWELL_LOG_FORMAT (--log-format): must be text or json",
        ),
        (
            "--origins https://a.example/",
            "ASKWELL_ORIGINS (--origins): must be a comma-separated list of scheme://host",
        ),
    ]);
}

#[test]
fn origins_are_as_browsers_write_them() {
    for (text, origins) in [
        (
            "https://a.example,http://localhost:5173",
            vec!["https://a.example", "http://localhost:5173"],
        ),
        ("HTTPS://A.example:443", vec!["https://a.example"]),
        ("http://a.example:80", vec!["http://a.example"]),
        ("https://a.example:80", vec!["https://a.example:80"]),
        ("http://[::1]:3000", vec!["http://[::1]:3000"]),
        ("tauri://localhost", vec!["tauri://localhost"]),
    ] {
        assert_eq!(config(&format!("--origins {text}")).origins, origins);
    }
    for text in [
        "*",
        "a.example",
        "https://",
        "https://*.a.example",
        "https://a.example/chat",
        "https://a.example?x",
        "https://me@a.example",
        "https://a.example,",
        "null",
        "://a.example",
    ] {
        let flags = format!("--origins {text}");
        assert!(Config::check(&args(&flags)).is_err(), "{text}");
    }
}

#[test]
fn a_worker_of_its_own_needs_both_urls_and_no_key() {
    let worker = WorkerConfig::check(&args(&format!("{BOTH} --agents a.toml --listen x"))).unwrap();
    assert_eq!(worker.worker.agents, Some(PathBuf::from("a.toml")));
    for flags in [
        "",
        "--amqp-url amqp://rabbit",
        "--redis-url redis://redis",
        "--amqp-url amqp://rabbit --redis-url x",
    ] {
        assert!(WorkerConfig::check(&args(flags)).is_err(), "{flags}");
    }
    let fault = WorkerConfig::check(&Args::default()).unwrap_err();
    assert!(fault.to_string().contains("must both be set"), "{fault}");
    let low = WorkerConfig::check(&args(&format!("{BOTH} --lease 10ms")));
    assert!(low.is_err());
}

#[test]
fn secrets_are_never_shown() {
    let flags = "--amqp-url amqp://me:hidden@rabbit --redis-url rediss://:hidden@redis/0 \
                 --jwt-secret hidden";
    assert!(!format!("{:?}", args(flags)).contains("hidden"));
    assert!(!format!("{:?}", config(flags)).contains("hidden"));
    let worker = WorkerConfig::check(&args(flags)).unwrap();
    assert!(!format!("{worker:?}").contains("hidden"));
    for wrong in [
        "--amqp-url me:hidden@rabbit --redis-url redis://redis",
        "--amqp-url amqp://me:hid/den@rabbit --redis-url redis://redis",
    ] {
        let fault = Config::check(&args(wrong)).unwrap_err().to_string();
        assert!(!fault.contains("hid"), "{fault}");
    }
}
