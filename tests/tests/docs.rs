//! What the README says of codes and tests is what is there.
#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

use std::fs;
use std::path::Path;

use askwell_shared::code::TABLE;

fn readme() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    fs::read_to_string(root.join("README.md")).unwrap()
}

#[test]
fn the_readme_has_every_code_with_its_status() {
    let readme = readme();
    for row in &TABLE {
        let line = readme
            .lines()
            .find(|line| line.starts_with(&format!("| {} |", row.name)))
            .unwrap_or_else(|| panic!("{} is missing", row.name));
        let status = match row.status {
            0 => "start-up fails".to_owned(),
            status => status.to_string(),
        };
        assert!(line.ends_with(&format!("| {status} |")), "{line}");
        assert_eq!(line.contains("temporary"), row.temporary, "{line}");
    }
}

#[test]
fn the_tests_that_show_a_promise_exist() {
    let sources = [
        include_str!("../flow/suite.rs"),
        include_str!("embedded_crash.rs"),
        include_str!("../../shared/src/shape/tests.rs"),
    ]
    .concat();
    let readme = readme();
    let (_, promises) = readme.split_once("## What is promised").unwrap();
    let (promises, _) = promises.split_once("## ").unwrap();
    let mut seen = 0;
    for name in promises.split('`').filter(|name| name.contains("::")) {
        let last = name.rsplit("::").next().unwrap();
        assert!(sources.contains(last), "{name} is no test");
        seen += 1;
    }
    assert!(seen > 5);
}
