//! What a bad configuration is told (SPEC 7, 8): one line that names the place and the rule, and
//! exit code 2; and what development mode serves.
#![allow(clippy::unwrap_used, reason = "a test's helpers may fail by panicking")]

use std::path::Path;
use std::process::Command;

use askwell_tests::client::{Api, PATIENCE, SECRET};
use askwell_tests::process::Process;
use askwell_tests::system::askwell;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn at(folder: &Path) -> Command {
    let mut command = askwell().unwrap();
    command.env("ASKWELL_DATA", folder.join("data"));
    command
}

/// Starts the program, which must not serve; gives the line that it leaves with.
async fn refused(command: &Command) -> String {
    let process = Process::start("askwell", command).unwrap();
    // Its end may be seen before its last line is read.
    process.line("askwell: ", PATIENCE).await.unwrap();
    let status = process.end(PATIENCE).await.unwrap();
    let lines = process.lines();
    assert_eq!(status.code(), Some(2), "{lines:?}");
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines[0].clone()
}

async fn refused_with(environment: &[(&str, &str)]) -> String {
    let folder = TempDir::new().unwrap();
    let mut command = at(folder.path());
    command.envs(environment.iter().copied());
    refused(&command).await
}

#[tokio::test]
async fn a_bad_environment_is_named() {
    let amqp = ("ASKWELL_AMQP_URL", "amqp://127.0.0.1:1");
    let redis = ("ASKWELL_REDIS_URL", "redis://127.0.0.1:1");
    for (environment, parts) in [
        (vec![amqp], vec!["ASKWELL_REDIS_URL"]),
        (vec![redis], vec!["ASKWELL_AMQP_URL"]),
        (vec![amqp, redis], vec!["ASKWELL_JWT_SECRET"]),
        (
            vec![("ASKWELL_AMQP_URL", "http://x"), redis],
            vec!["ASKWELL_AMQP_URL"],
        ),
        (
            vec![("ASKWELL_LISTEN", "0.0.0.0:0")],
            vec!["ASKWELL_JWT_SECRET"],
        ),
        (vec![("ASKWELL_LISTEN", "nonsense")], vec!["ASKWELL_LISTEN"]),
        (
            vec![("ASKWELL_CONCURRENCY", "0")],
            vec!["ASKWELL_CONCURRENCY"],
        ),
        (vec![("ASKWELL_LEASE", "soon")], vec!["ASKWELL_LEASE"]),
        (
            vec![("ASKWELL_LIMITS", "comands=5")],
            vec!["ASKWELL_LIMITS", "comands"],
        ),
        (
            vec![("ASKWELL_ORIGINS", "not an origin")],
            vec!["ASKWELL_ORIGINS"],
        ),
        (vec![("ASKWELL_LOG", "=,=")], vec!["ASKWELL_LOG"]),
        (
            vec![("ASKWELL_AGENTS", "/nowhere/agents.toml")],
            vec!["/nowhere/agents.toml"],
        ),
    ] {
        let line = refused_with(&environment).await;
        for part in parts {
            assert!(line.contains(part), "{environment:?}: {line}");
        }
    }
}

#[tokio::test]
async fn a_bad_agents_file_is_named_with_its_line() {
    let model = "[models.m]\nprovider = \"scripted\"\nturns = [{ text = \"Hi.\" }]\n";
    let agent = "[agents.a]\nmodel = \"m\"\n";
    let tool = |name: &str| {
        format!("[tools.{name}]\nhttp = {{ method = \"POST\", url = \"http://127.0.0.1:9/\" }}\n")
    };
    let question = format!("{model}{agent}tools = [\"question\"]\n{}", tool("question"));
    let asking = format!(
        "{model}{agent}tools = [\"ask_question\"]\n{}",
        tool("ask_question")
    );
    for (file, parts) in [
        (
            format!("{model}{agent}colour = 1\n"),
            vec!["agents.toml:6", "colour"],
        ),
        (
            "[agents.a]\nmodel = \"none\"\n".into(),
            vec!["agents.toml:2", "agents.a.model"],
        ),
        (
            "[agents.a]\nquestions = true\n".into(),
            vec!["agents.a", "model"],
        ),
        (
            format!("{model}{agent}limits = {{ ask = \"0s\" }}\n"),
            vec!["agents.toml:6", "ask"],
        ),
        (
            format!("{model}{agent}limits = {{ steps = 0 }}\n"),
            vec!["agents.toml:6", "steps"],
        ),
        (
            format!("{model}{agent}[[agents.a.guards.out]]\npattern = \"(\"\nreason = \"x\"\n"),
            vec!["agents.toml:7", "pattern"],
        ),
        (
            format!("{model}{agent}tools = [\"absent\"]\n"),
            vec!["agents.toml:6", "absent"],
        ),
        (question, vec!["T1009", "agent", "question"]),
        (asking, vec!["T1009", "agent", "ask_question"]),
        ("[models.m\n".into(), vec!["agents.toml:1"]),
    ] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("agents.toml");
        std::fs::write(&path, &file).unwrap();
        let mut command = at(folder.path());
        command.env("ASKWELL_AGENTS", &path);
        let line = refused(&command).await;
        for part in parts {
            assert!(line.contains(part), "{file}: {line}");
        }
    }
}

#[tokio::test]
async fn a_port_in_use_and_a_locked_folder_are_named() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let line = refused_with(&[("ASKWELL_LISTEN", &address)]).await;
    assert!(
        line.contains("ASKWELL_LISTEN") && line.contains(&address),
        "{line}"
    );

    let folder = TempDir::new().unwrap();
    let first = Process::start("askwell", &at(folder.path())).unwrap();
    first.line("listening on ", PATIENCE).await.unwrap();
    let line = refused(&at(folder.path())).await;
    assert!(
        line.contains("ASKWELL_DATA") && line.contains("data"),
        "{line}"
    );
    // The lock goes with its holder, however that ends.
    first.kill().await.unwrap();
    let third = Process::start("askwell", &at(folder.path())).unwrap();
    third.line("listening on ", PATIENCE).await.unwrap();
    let status = third.terminate(PATIENCE).await.unwrap();
    assert_eq!(status.code(), Some(0), "{:?}", third.lines());
}

/// Sends a request with a `Host` of its own and gives the status.
async fn status(url: &str, host: &str, request: &str) -> u16 {
    let address = url.trim_start_matches("http://");
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let text = format!("{request}\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    reply.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn development_mode_serves_this_machine_alone() {
    let folder = TempDir::new().unwrap();
    let process = Process::start("askwell", &at(folder.path())).unwrap();
    let line = process.line("listening on ", PATIENCE).await.unwrap();
    let url = line.split("listening on ").nth(1).unwrap();
    let port = url.rsplit(':').next().unwrap();
    for host in ["localhost", "127.0.0.1", "[::1]"] {
        for host in [host.to_owned(), format!("{host}:{port}")] {
            assert_eq!(status(url, &host, "GET / HTTP/1.1").await, 200, "{host}");
        }
    }
    for host in [
        "askwell.example.test",
        "127.0.0.1.example.test",
        "localhost.",
        "10.0.0.1",
    ] {
        for path in ["/", "/v1/agents", "/healthz", "/v1/ws"] {
            let status = status(url, host, &format!("GET {path} HTTP/1.1")).await;
            assert!((400..500).contains(&status), "{host} {path}: {status}");
        }
        let upgrade = "GET /v1/ws HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: askwell.v1";
        let status = status(url, host, upgrade).await;
        assert!((400..500).contains(&status), "{host}: {status}");
    }
    // A page of elsewhere may not open a socket here.
    let upgrade = "GET /v1/ws HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: askwell.v1\r\n\
                   Origin: http://evil.example.test";
    assert_eq!(status(url, "localhost", upgrade).await, 403);
    let signed_out = Api::new(url, "");
    let session = json!({"name": "ada", "roles": ["ops"]});
    let session = signed_out.post("/v1/dev/session", &session).await.unwrap();
    let token = session.body["token"].as_str().unwrap().to_owned();
    let agents = Api::new(url, &token).get("/v1/agents").await.unwrap();
    let names: Vec<&str> = agents.body["agents"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|agent| agent["name"].as_str())
        .collect();
    assert_eq!(names, ["order", "support", "tshirt"]);
    let warnings = process.lines();
    let warnings = warnings.iter().filter(|line| line.contains("WARN"));
    assert_eq!(warnings.count(), 1, "{:?}", process.lines());
    // The token holds over a restart: the secret is kept with the data.
    process.kill().await.unwrap();
    let again = Process::start("askwell", &at(folder.path())).unwrap();
    let line = again.line("listening on ", PATIENCE).await.unwrap();
    let url = line.split("listening on ").nth(1).unwrap();
    let agents = Api::new(url, &token).get("/v1/agents").await.unwrap();
    assert_eq!(agents.status, 200);
}

#[tokio::test]
async fn a_token_is_printed_and_believed() {
    let folder = TempDir::new().unwrap();
    let mut serving = at(folder.path());
    serving.env("ASKWELL_JWT_SECRET", SECRET);
    let process = Process::start("askwell", &serving).unwrap();
    let line = process.line("listening on ", PATIENCE).await.unwrap();
    let url = line.split("listening on ").nth(1).unwrap();
    for (roles, path, expected) in [
        (&[][..], "/v1/runs", 200),
        (&["ops"][..], "/v1/runs", 200),
        (&["system", "ops"][..], "/v1/runs", 401),
    ] {
        let mut command = at(folder.path());
        command.env("ASKWELL_JWT_SECRET", SECRET);
        command.args(["token", "--sub", "ada", "--ttl", "5m"]);
        for role in roles {
            command.args(["--role", role]);
        }
        let printed = Process::start("askwell token", &command).unwrap();
        // A token, or why there is none.
        let token = printed.line("", PATIENCE).await.unwrap();
        let status = printed.end(PATIENCE).await.unwrap();
        let reply = Api::new(url, &token).get(path).await.unwrap();
        // Roles that exclude each other make no token, or one that is not believed.
        if expected == 200 {
            assert_eq!(status.code(), Some(0));
        }
        assert_eq!(reply.status, expected, "{roles:?}: {}", reply.text);
    }
}
