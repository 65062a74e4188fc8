use super::*;

const LIMIT: Duration = Duration::from_secs(20);

fn shell(script: &str) -> Process {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    Process::start("the script", &command).unwrap()
}

#[tokio::test]
async fn finds_lines_of_both_streams_and_the_status() {
    let process = shell("echo one; echo two >&2; echo one more; exit 3");
    assert_eq!(process.line("two", LIMIT).await.unwrap(), "two");
    let (first, _) = process.line_from(0, "one", LIMIT).await.unwrap();
    let (_, second) = process.line_from(first + 1, "one", LIMIT).await.unwrap();
    assert_eq!(second, "one more");
    assert_eq!(process.end(LIMIT).await.unwrap().code(), Some(3));
}

#[tokio::test]
async fn a_line_that_never_comes_is_an_error_with_the_last_lines() {
    let error = shell("echo only this").line("that", LIMIT).await;
    let text = error.unwrap_err().to_string();
    assert!(text.contains("ended without") && text.contains("only this"));
}

#[tokio::test]
async fn a_frozen_process_does_nothing_until_thawed() {
    let process = shell("trap 'echo told; exit 0' TERM; echo up; while :; do sleep 0.01; done");
    process.line("up", LIMIT).await.unwrap();
    process.freeze().unwrap();
    let short = Duration::from_millis(200);
    assert!(process.terminate(short).await.is_err());
    process.thaw().unwrap();
    assert_eq!(process.end(LIMIT).await.unwrap().code(), Some(0));
    process.line("told", LIMIT).await.unwrap();
}

#[tokio::test]
async fn dropping_it_ends_its_children_too() {
    let process = shell("sleep 1000 & echo child=$!; wait");
    let line = process.line("child=", LIMIT).await.unwrap();
    let child: u32 = line.trim_start_matches("child=").parse().unwrap();
    let pid = process.pid();
    assert!(exists(pid) && exists(child));
    drop(process);
    assert!(!exists(pid));
    // The kernel ends the orphan and the system's first process reaps it, at moments of their own.
    let began = std::time::Instant::now();
    while !ended(child) {
        assert!(began.elapsed() < LIMIT, "process {child} still runs");
        thread::yield_now();
    }
}

#[tokio::test]
async fn a_killed_process_is_gone() {
    let process = shell("echo up; sleep 1000");
    process.line("up", LIMIT).await.unwrap();
    process.kill().await.unwrap();
    assert!(!exists(process.pid()));
    process.signal(Signal::TERM).unwrap();
}

#[test]
fn a_missing_binary_is_told_with_the_remedy() {
    let error = binary("no-such-program").unwrap_err().to_string();
    assert!(error.contains("cargo build --workspace --bins"));
}

/// Gone, or dead and waiting to be reaped.
fn ended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .is_none_or(|rest| rest.is_empty() || rest.starts_with('Z'))
}
