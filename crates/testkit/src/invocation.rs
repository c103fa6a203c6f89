//! One program run to its end, or to a deadline: a hung sandbox fails its test, never the suite.
//! Output is kept as bytes, because some tests are about bytes.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::{binaries, must, patiently};

const DEFAULT_DEADLINE: Duration = Duration::from_secs(120);
/// How long output may stay open once the program has ended.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A program about to be run.
#[derive(Debug)]
pub struct Invocation {
    command: Command,
    arguments_shown: Vec<String>,
    stdin: Vec<u8>,
    keep_stdin_open: bool,
    deadline: Duration,
    report: Option<PathBuf>,
}

impl Invocation {
    pub(crate) fn new(command: Command) -> Self {
        Self {
            command,
            arguments_shown: Vec::new(),
            stdin: Vec::new(),
            keep_stdin_open: false,
            deadline: DEFAULT_DEADLINE,
            report: None,
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments_shown.push(argument.as_ref().to_string_lossy().into_owned());
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = A>) -> Self {
        arguments.into_iter().fold(self, |invocation, argument| invocation.arg(argument))
    }

    /// Sets one variable of the environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Starts in this directory instead of the project.
    #[must_use]
    pub fn cwd(mut self, directory: impl Into<PathBuf>) -> Self {
        self.command.current_dir(directory.into());
        self
    }

    /// What the program reads; nothing by default.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Leaves the program's input open, for [`Running::send`], until it is waited for.
    #[must_use]
    pub fn keep_stdin_open(mut self) -> Self {
        self.keep_stdin_open = true;
        self
    }

    /// Fails the test if the program is still running after this long.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Uses the build that can do without layers, and does without these.
    #[must_use]
    pub fn layers_off(mut self, layers: &[&str]) -> Self {
        let mut replacement = Command::new(binaries::sandbox_with_layers_off());
        replacement.args(self.command.get_args());
        self.replace(replacement);
        self.env("PALISADE_LAYERS_OFF", layers.join(","))
    }

    /// Has another program start this one: its words come first, then this program and its
    /// arguments. Nothing changes if there are none.
    #[must_use]
    pub fn started_by(mut self, words: &[String]) -> Self {
        if let Some((starter, starters_arguments)) = words.split_first() {
            let mut replacement = Command::new(starter);
            replacement
                .args(starters_arguments)
                .arg(self.command.get_program())
                .args(self.command.get_args());
            self.arguments_shown
                .insert(0, self.command.get_program().to_string_lossy().into_owned());
            self.arguments_shown.splice(0..0, starters_arguments.iter().cloned());
            self.replace(replacement);
        }
        self
    }

    /// Another program in the same place and environment.
    fn replace(&mut self, mut replacement: Command) {
        replacement.env_clear();
        for (name, value) in self.command.get_envs() {
            if let Some(value) = value {
                replacement.env(name, value);
            }
        }
        if let Some(directory) = self.command.get_current_dir() {
            replacement.current_dir(directory);
        }
        self.command = replacement;
    }

    pub(crate) fn reading_report(mut self, report: PathBuf) -> Self {
        self.report = Some(report);
        self
    }

    /// Runs to the end.
    #[must_use]
    pub fn run(self) -> Output {
        self.spawn().wait()
    }

    /// Starts, and leaves the waiting to the caller.
    #[must_use]
    pub fn spawn(mut self) -> Running {
        let shown = format!(
            "{} {}",
            self.command.get_program().to_string_lossy(),
            self.arguments_shown.join(" ")
        );
        let mut child = must(
            self.command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn(),
            format_args!("cannot start `{shown}`"),
        );
        let stdout = child.stdout.take().map(Stream::read_from).unwrap_or_default();
        let stderr = child.stderr.take().map(Stream::read_from).unwrap_or_default();
        let mut stdin = child.stdin.take();
        if let Some(mut pipe) = stdin.take_if(|_| !self.keep_stdin_open) {
            let bytes = std::mem::take(&mut self.stdin);
            // A program that ends without reading is the program's affair, not an error.
            std::thread::spawn(move || pipe.write_all(&bytes));
        }
        Running {
            child,
            stdin,
            stdout,
            stderr,
            shown,
            ends_at: Instant::now() + patiently(self.deadline),
            report: self.report,
        }
    }
}

/// A started program.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Arc<Stream>,
    stderr: Arc<Stream>,
    shown: String,
    ends_at: Instant,
    report: Option<PathBuf>,
}

impl Running {
    /// The host's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the program itself.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        let pidfd = must(pidfd_open(pid, PidfdFlags::empty()), "pidfd_open");
        must(pidfd_send_signal(pidfd, signal), "pidfd_send_signal");
    }

    /// Writes to the program's input, which must have been kept open.
    pub fn send(&mut self, bytes: &[u8]) {
        match &mut self.stdin {
            Some(pipe) => must(pipe.write_all(bytes), "writing to the program's input"),
            None => panic!("the input of `{}` was not kept open", self.shown),
        }
    }

    /// Waits until this text has appeared on standard output, or the program has ended without it.
    #[must_use]
    pub fn prints(&self, text: &str) -> bool {
        self.stdout.wait_for(text.as_bytes(), self.ends_at)
    }

    /// Fails the test unless this text appears on standard output.
    pub fn wait_for_stdout(&self, text: &str) {
        if !self.prints(text) {
            panic!(
                "`{}` did not print {text:?}\nstdout: {}\nstderr: {}",
                self.shown,
                String::from_utf8_lossy(&self.stdout.so_far()),
                String::from_utf8_lossy(&self.stderr.so_far()),
            );
        }
    }

    /// Fails the test unless this text appears on standard error.
    pub fn wait_for_stderr(&self, text: &str) {
        if !self.stderr.wait_for(text.as_bytes(), self.ends_at) {
            panic!(
                "`{}` never said {text:?}: {}",
                self.shown,
                String::from_utf8_lossy(&self.stderr.so_far()),
            );
        }
    }

    /// What is on standard error so far.
    #[must_use]
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&self.stderr.so_far()).into_owned()
    }

    /// What is on standard output so far.
    #[must_use]
    pub fn printed(&self) -> String {
        String::from_utf8_lossy(&self.stdout.so_far()).into_owned()
    }

    /// Waits for the end and collects what was said.
    #[must_use]
    pub fn wait(mut self) -> Output {
        drop(self.stdin.take());
        let pid = Pid::from_child(&self.child);
        let pidfd = must(pidfd_open(pid, PidfdFlags::empty()), "pidfd_open");
        let remaining = self.ends_at.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(remaining.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(remaining.subsec_nanos()),
        };
        let ready = must(
            poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&timeout)),
            "poll on a pidfd",
        );
        if ready == 0 {
            // Dropping the child would leave it running, and the next test with it.
            let _ = self.child.kill();
            let _ = self.child.wait();
            panic!(
                "`{}` did not end in time and was killed\nstdout: {}\nstderr: {}",
                self.shown,
                String::from_utf8_lossy(&self.stdout.so_far()),
                String::from_utf8_lossy(&self.stderr.so_far()),
            );
        }
        let status = must(self.child.wait(), "wait");
        let last_words_until = Instant::now() + patiently(LAST_WORDS);
        for (stream, name) in [(&self.stdout, "stdout"), (&self.stderr, "stderr")] {
            if !stream.wait_for_end(last_words_until) {
                panic!(
                    "`{}` has ended, yet something it started still holds its {name}",
                    self.shown
                );
            }
        }
        let report = self.report.take().and_then(|path| {
            let text = fs::read(&path).ok()?;
            Some(must(serde_json::from_slice(&text), path.display()))
        });
        Output {
            shown: std::mem::take(&mut self.shown),
            status,
            stdout: self.stdout.so_far(),
            stderr: self.stderr.so_far(),
            report,
        }
    }
}

/// A test must not leave what it started running, whether it failed or never waited.
impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// How a program ended and what it said.
#[derive(Debug)]
pub struct Output {
    /// The command line, for messages.
    pub shown: String,
    /// How it ended.
    pub status: ExitStatus,
    /// Everything on standard output.
    pub stdout: Vec<u8>,
    /// Everything on standard error.
    pub stderr: Vec<u8>,
    /// The run report, if the run wrote one.
    pub report: Option<serde_json::Value>,
}

impl Output {
    /// The exit code as a shell would show it: 128 and the signal for a killed program.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// Standard output as text.
    #[must_use]
    pub fn out(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stdout)
    }

    /// Standard error as text.
    #[must_use]
    pub fn err(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stderr)
    }

    /// Fails the test, with everything the program said, unless it ended with this code.
    #[track_caller]
    pub fn assert_code(&self, expected: i32) -> &Self {
        assert_eq!(
            self.code(),
            expected,
            "exit code of `{}`\nstdout: {}\nstderr: {}",
            self.shown,
            self.out(),
            self.err()
        );
        self
    }
}

/// One output stream, read by its own thread so that a full pipe never blocks the program.
#[derive(Debug, Default)]
struct Stream {
    state: Mutex<StreamState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct StreamState {
    bytes: Vec<u8>,
    ended: bool,
}

impl Stream {
    fn read_from(mut source: impl Read + Send + 'static) -> Arc<Self> {
        let stream = Arc::new(Self::default());
        let writer = Arc::clone(&stream);
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            loop {
                let count = source.read(&mut buffer).unwrap_or(0);
                let mut state = writer.lock();
                state.bytes.extend_from_slice(&buffer[..count]);
                state.ended = count == 0;
                writer.changed.notify_all();
                if state.ended {
                    return;
                }
            }
        });
        stream
    }

    fn lock(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn so_far(&self) -> Vec<u8> {
        self.lock().bytes.clone()
    }

    fn wait_for(&self, text: &[u8], until: Instant) -> bool {
        let seen = |state: &StreamState| state.bytes.windows(text.len()).any(|part| part == text);
        let state = self.wait_while(until, |state| !state.ended && !seen(state));
        seen(&state)
    }

    fn wait_for_end(&self, until: Instant) -> bool {
        self.wait_while(until, |state| !state.ended).ended
    }

    fn wait_while(
        &self,
        until: Instant,
        condition: impl Fn(&StreamState) -> bool,
    ) -> MutexGuard<'_, StreamState> {
        let remaining = until.saturating_duration_since(Instant::now());
        self.changed
            .wait_timeout_while(self.lock(), remaining, |state| condition(state))
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }
}
