//! Who may know whom (DESIGN 2): read off the sources, so that a change that breaks it is seen.
#![allow(clippy::unwrap_used, reason = "a test's helpers may fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// The lines under `folder` that name one of `words`, but for those in places of `allowed`.
fn naming(folder: &str, words: &[&str], allowed: &[&str]) -> Vec<String> {
    let root = root();
    let mut files = Vec::new();
    sources(&root.join(folder), &mut files);
    assert!(!files.is_empty(), "{folder} holds no sources");
    let mut lines = Vec::new();
    for file in files {
        let place = file.strip_prefix(&root).unwrap().display().to_string();
        if allowed.iter().any(|allowed| place.starts_with(allowed)) {
            continue;
        }
        for (number, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if words.iter().any(|word| code.contains(word)) {
                lines.push(format!("{place}:{}: {line}", number + 1));
            }
        }
    }
    lines
}

#[test]
fn only_backends_name_their_crates() {
    let words = ["lapin::", "redis::", "rusqlite::", "deadpool_redis"];
    let allowed = ["shared/src/backends"];
    for crate_of_ours in ["shared/src", "worker/src", "gateway/src"] {
        assert_eq!(naming(crate_of_ours, &words, &allowed), [""; 0]);
    }
}

#[test]
fn gateway_and_worker_meet_only_in_main() {
    let allowed = ["gateway/src/main.rs"];
    assert_eq!(
        naming("gateway/src", &["askwell_worker"], &allowed),
        [""; 0]
    );
    assert_eq!(naming("worker/src", &["askwell_gateway"], &[]), [""; 0]);
    let words = ["askwell_worker", "askwell_gateway"];
    assert_eq!(naming("shared/src", &words, &[]), [""; 0]);
}

#[test]
fn the_domain_does_no_io_and_reads_no_clock() {
    let words = [
        "tokio::",
        "std::fs",
        "std::net",
        "SystemTime",
        "Instant::now",
        "crate::backends",
        "async fn",
    ];
    for part in ["run", "ask", "shape", "json", "agent"] {
        assert_eq!(naming(&format!("shared/src/{part}"), &words, &[]), [""; 0]);
    }
    let pure = [
        "run.rs",
        "thread.rs",
        "ask.rs",
        "shape.rs",
        "agent.rs",
        "code.rs",
        "caller.rs",
    ];
    let all = naming("shared/src", &words, &[]);
    for file in pure {
        let place = format!("shared/src/{file}:");
        let named: Vec<&String> = all.iter().filter(|line| line.starts_with(&place)).collect();
        assert_eq!(named, [""; 0]);
    }
}
