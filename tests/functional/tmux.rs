//! A real terminal to type into: a tmux server of the test's own, with one window and a plain shell.
//! Everything is waited for by what the screen shows; the server is gone when the test ends.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use palisade_testkit::{Descendants, World, patiently, sandbox_program};

const TIMEOUT: Duration = Duration::from_secs(30);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// Longer than the supervisor takes a second Ctrl-C for an echo of the first.
const BETWEEN_TRIES: Duration = Duration::from_millis(400);
/// What the shell asks with; unlikely in anything else on the screen.
pub(crate) const PROMPT: &str = "ready>";

/// One window with a shell in the world's project, where `sandbox` can be typed as it is.
pub(crate) struct Tmux<'a> {
    world: &'a World,
    socket: PathBuf,
    server: String,
}

impl<'a> Tmux<'a> {
    pub(crate) fn new(world: &'a World) -> Self {
        // Each has a socket of its own: a server that ends may still hold the lock of its own.
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let socket = world.path().join(format!("tmux-{number}"));
        let mut tmux = Self { world, socket, server: String::new() };
        let size = ["new-session", "-d", "-x", "100", "-y", "30"];
        let shell = format!("exec env HISTFILE= PS1='{PROMPT}' /bin/bash --norc --noprofile -i");
        tmux.ask(&[&size[..], &[&shell]].concat());
        tmux.server = tmux.ask(&["display-message", "-p", "#{pid}"]).trim().to_owned();
        tmux.wait_for(PROMPT);
        tmux
    }

    /// Keys by their tmux names, or text.
    pub(crate) fn keys(&self, keys: &[&str]) {
        self.ask(&[&["send-keys"][..], keys].concat());
    }

    /// Text as it is, and Enter.
    pub(crate) fn line(&self, text: &str) {
        self.ask(&["send-keys", "-l", text]);
        self.keys(&["Enter"]);
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        self.ask(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    /// Everything shown, lines that have scrolled away included.
    pub(crate) fn screen(&self) -> String {
        self.ask(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    /// Only what the window shows now.
    pub(crate) fn visible(&self) -> String {
        self.ask(&["capture-pane", "-p", "-J"])
    }

    /// The same with the escapes of its colours.
    pub(crate) fn coloured(&self) -> String {
        self.ask(&["capture-pane", "-p", "-J", "-e"])
    }

    /// What tmux knows of the window, by one of its formats.
    pub(crate) fn show(&self, format: &str) -> String {
        self.ask(&["display-message", "-p", format])
    }

    /// From now on everything that is written to the window goes into this file as well.
    pub(crate) fn pipe_to(&self, file: &Path) {
        self.ask(&["pipe-pane", &format!("exec cat >'{}'", file.display())]);
    }

    pub(crate) fn title(&self) -> String {
        self.ask(&["display-message", "-p", "#{pane_title}"])
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text));
    }

    /// Waits for a line that is this and blanks, so that the typed command does not count.
    #[track_caller]
    pub(crate) fn wait_for_line(&self, line: &str) {
        self.wait_until(line, |screen| has_line(screen, line));
    }

    /// Waits for the shell to ask again. What is typed while a command still has the terminal is the
    /// command's.
    #[track_caller]
    pub(crate) fn wait_for_prompt(&self) {
        self.wait_until(PROMPT, |screen| screen.trim_end().ends_with(PROMPT));
    }

    /// Waits for the end of what the shell runs, and for its status.
    #[track_caller]
    pub(crate) fn expect_status(&self, status: i32) {
        self.wait_for_prompt();
        self.line("echo ended $?");
        self.wait_for_line(&format!("ended {status}"));
    }

    /// Repeats what a person would type again if nothing happened, until the screen shows this line.
    #[track_caller]
    pub(crate) fn insist(&self, typed: impl Fn(&Self), line: &str) {
        let end = Instant::now() + patiently(TIMEOUT);
        while !has_line(&self.screen(), line) {
            assert!(Instant::now() < end, "the screen never showed `{line}`:\n{}", self.screen());
            typed(self);
            std::thread::sleep(BETWEEN_TRIES);
        }
    }

    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, seen: impl Fn(&str) -> bool) {
        let end = Instant::now() + patiently(TIMEOUT);
        loop {
            let screen = self.screen();
            if seen(&screen) {
                return;
            }
            assert!(Instant::now() < end, "the screen never showed `{what}`:\n{screen}");
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    fn command(&self) -> Command {
        let sandbox = sandbox_program();
        let beside = sandbox.parent().map(OsStr::new).unwrap_or_default().to_string_lossy();
        let mut command = self.world.host_command(OsStr::new("tmux"));
        command
            .env("PATH", format!("{beside}:/usr/local/bin:/usr/bin:/bin"))
            .env("TERM", "xterm")
            .env("LESS", "")
            .arg("-S")
            .arg(&self.socket)
            .args(["-f", "/dev/null"]);
        command
    }

    fn ask(&self, arguments: &[&str]) -> String {
        let output = self.command().args(arguments).output().unwrap();
        assert!(output.status.success(), "tmux {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        // A server that never started is not there to be ended.
        let Ok(server) = self.server.parse() else { return };
        let shells = Descendants::of(server);
        let _ = self.command().arg("kill-server").output();
        let end = Instant::now() + patiently(TIMEOUT);
        let ended = shells.wait_for_end(end);
        let server = PathBuf::from(format!("/proc/{server}/exe"));
        while server.exists() && Instant::now() < end {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        assert!(ended || std::thread::panicking(), "a program outlives its terminal");
    }
}

/// Whether there is a line that is this and blanks.
fn has_line(screen: &str, line: &str) -> bool {
    screen.lines().any(|shown| shown.trim() == line)
}
