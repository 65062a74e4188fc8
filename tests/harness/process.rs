//! A started program: its lines as they come, signals by process id, and an end that is certain.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::sync::watch;
use tokio::time::timeout;

/// The path of a program of this workspace (`askwell`, `askwell-worker`), beside the running test.
///
/// # Errors
/// When it has not been built.
pub fn binary(name: &str) -> Result<PathBuf> {
    let test = env::current_exe().context("where the running test lies is not known")?;
    // target/debug/deps/some_test-0123456789abcdef
    let folder = test.parent().and_then(Path::parent);
    let path = folder.unwrap_or(Path::new(".")).join(name);
    if !path.is_file() {
        bail!(
            "{} is not built: run `cargo build --workspace --bins` first, as tests/run does",
            path.display()
        );
    }
    Ok(path)
}

/// Whether a process with this id is there (one that has ended but is not yet reaped counts).
pub fn exists(pid: u32) -> bool {
    to_pid(pid).is_ok_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

/// A running program. Dropping it kills it and waits for its end; what it left in its process group
/// is killed whenever it ends. If the test itself is killed, the kernel kills the program.
#[derive(Debug)]
pub struct Process {
    name: String,
    pid: u32,
    child: Arc<Mutex<Child>>,
    lines: Arc<Mutex<Vec<String>>>,
    progress: watch::Receiver<Progress>,
    end: Option<JoinHandle<()>>,
}

/// What the threads that read and wait tell those who wait for a line or the end.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    streams_ended: u8,
    exit: Option<ExitStatus>,
}

impl Process {
    /// Starts `command` in a process group of its own, without standard input. `name` is for
    /// messages. Its program, arguments, environment changes and folder are taken over; a cleared
    /// environment is not.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(name: &str, command: &Command) -> Result<Self> {
        // The kernel ends the program when its starter ends, also by kill -9: `setpriv` asks for
        // that and then becomes the program, with the same process id.
        let mut wrapped = Command::new("setpriv");
        wrapped.args(["--pdeathsig", "KILL", "--"]);
        wrapped.arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => wrapped.env(key, value),
                None => wrapped.env_remove(key),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            wrapped.current_dir(folder);
        }
        wrapped.stdin(Stdio::null()).stdout(Stdio::piped());
        wrapped.stderr(Stdio::piped()).process_group(0);

        let mut child = spawn_for_good(wrapped).with_context(|| format!("{name} did not start"))?;
        let pid = child.id();
        let streams: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|s| Box::new(s) as _),
            child.stderr.take().map(|s| Box::new(s) as _),
        ];
        let child = Arc::new(Mutex::new(child));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (sender, progress) = watch::channel(Progress::default());
        let sender = Arc::new(sender);

        for stream in streams.into_iter().flatten() {
            let (lines, sender) = (lines.clone(), sender.clone());
            thread::spawn(move || read_lines(stream, &lines, &sender));
        }
        let waited = child.clone();
        let end = thread::spawn(move || await_end(pid, &waited, &sender));
        Ok(Self {
            name: name.to_owned(),
            pid,
            child,
            lines,
            progress,
            end: Some(end),
        })
    }

    /// The process id, which is the id of its process group too.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Every line so far of standard output and standard error, in the order in which they were read.
    pub fn lines(&self) -> Vec<String> {
        lock(&self.lines).clone()
    }

    /// The first line, past or to come, that contains `part`.
    ///
    /// # Errors
    /// When the output ends without it, or `limit` is over; the error shows the last lines.
    pub async fn line(&self, part: &str, limit: Duration) -> Result<String> {
        self.line_from(0, part, limit).await.map(|(_, line)| line)
    }

    /// As [`Process::line`], but only among the lines from number `from` on (counted from 0); gives
    /// the line's number too, so that the next of its kind can be waited for.
    ///
    /// # Errors
    /// As [`Process::line`].
    pub async fn line_from(
        &self,
        from: usize,
        part: &str,
        limit: Duration,
    ) -> Result<(usize, String)> {
        let mut progress = self.progress.clone();
        let wait = async {
            loop {
                let ended = progress.borrow_and_update().streams_ended == 2;
                let found = lock(&self.lines)
                    .iter()
                    .enumerate()
                    .skip(from)
                    .find(|(_, line)| line.contains(part))
                    .map(|(number, line)| (number, line.clone()));
                if let Some(found) = found {
                    return Ok(found);
                }
                if ended || progress.changed().await.is_err() {
                    return Err(self.failure(&format!("ended without the line {part:?}")));
                }
            }
        };
        timeout(limit, wait).await.unwrap_or_else(|_| {
            Err(self.failure(&format!("did not write {part:?} within {limit:?}")))
        })
    }

    /// Sends `signal` to the process alone, not to its children. One that has ended is left alone.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        // Under the lock nobody reaps the child, so its id cannot have gone to another process.
        let _child = lock(&self.child);
        if self.progress.borrow().exit.is_some() {
            return Ok(());
        }
        rustix::process::kill_process(to_pid(self.pid)?, signal)
            .with_context(|| format!("{} could not be sent {signal:?}", self.name))
    }

    /// SIGKILL, and waits for the end, of what it left in its process group too.
    ///
    /// # Errors
    /// When it is still there after 10 s.
    pub async fn kill(&self) -> Result<()> {
        self.signal(Signal::KILL)?;
        self.end(Duration::from_secs(10)).await.map(drop)
    }

    /// SIGTERM, and waits for the end.
    ///
    /// # Errors
    /// When it is still there after `limit`; it is not killed then.
    pub async fn terminate(&self, limit: Duration) -> Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        self.end(limit).await
    }

    /// SIGSTOP: the process keeps its connections and does nothing, until [`Process::thaw`].
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn freeze(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// SIGCONT: a frozen process goes on.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn thaw(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// When it has not ended within `limit`; the error shows the last lines.
    pub async fn end(&self, limit: Duration) -> Result<ExitStatus> {
        let mut progress = self.progress.clone();
        let ended = timeout(limit, progress.wait_for(|p| p.exit.is_some())).await;
        let exit = ended.ok().and_then(|p| p.ok().and_then(|p| p.exit));
        exit.ok_or_else(|| self.failure(&format!("did not end within {limit:?}")))
    }

    fn failure(&self, what: &str) -> anyhow::Error {
        let lines = lock(&self.lines);
        let last = lines[lines.len().saturating_sub(40)..].join("\n");
        anyhow!("{} {what}; its last lines:\n{last}", self.name)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process that cannot be killed shows in tests/run as left over; nothing else can be done.
        let _ = self.signal(Signal::KILL);
        if let Some(end) = self.end.take() {
            let _ = end.join();
        }
    }
}

/// Spawns from one thread that lives as long as the test binary. The kernel's `pdeathsig` looks at
/// the thread that spawned, and the thread of a single test ends with that test.
fn spawn_for_good(command: Command) -> Result<Child> {
    type Order = (Command, Sender<std::io::Result<Child>>);
    static SPAWNER: OnceLock<Sender<Order>> = OnceLock::new();

    let spawner = SPAWNER.get_or_init(|| {
        let (sender, orders) = channel::<Order>();
        thread::spawn(move || {
            for (mut command, reply) in orders {
                let _ = reply.send(command.spawn());
            }
        });
        sender
    });
    let (reply, result) = channel();
    spawner.send((command, reply))?;
    Ok(result.recv()??)
}

fn read_lines(stream: impl Read, lines: &Mutex<Vec<String>>, sender: &watch::Sender<Progress>) {
    let mut reader = BufReader::new(stream);
    let mut raw = Vec::new();
    while matches!(reader.read_until(b'\n', &mut raw), Ok(n) if n > 0) {
        let line = String::from_utf8_lossy(&raw).trim_end().to_owned();
        lock(lines).push(line);
        raw.clear();
        sender.send_modify(|_| {});
    }
    sender.send_modify(|progress| progress.streams_ended += 1);
}

fn await_end(pid: u32, child: &Mutex<Child>, sender: &watch::Sender<Progress>) {
    let Ok(id) = to_pid(pid) else { return };
    // Waits without reaping: until the child is reaped its id names its group and nothing else, so
    // what it left in the group can be ended safely.
    while let Err(rustix::io::Errno::INTR) = rustix::process::waitid(
        WaitId::Pid(id),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    ) {}
    let mut child = lock(child);
    let _ = rustix::process::kill_process_group(id, Signal::KILL);
    let exit = child.wait().unwrap_or_else(|_| ExitStatus::from_raw(-1));
    sender.send_modify(|progress| progress.exit = Some(exit));
}

fn to_pid(pid: u32) -> Result<Pid> {
    i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .with_context(|| format!("{pid} is no process id"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
