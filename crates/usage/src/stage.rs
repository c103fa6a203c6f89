//! Processes that tests watch: Python programs that say when they are ready and end when told, or at the
//! latest when the test does.
#![allow(clippy::unwrap_used, reason = "the helpers of a test fail it")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use palisade_sys::Pid;
use palisade_sys::creds::{setgroups_empty, setresgid, setresuid};
use palisade_sys::test_child::in_child;
use tempfile::TempDir;

const PRELUDE: &str = r"
import ctypes, mmap, os, select, signal, sys, threading, time
END, held_by_first = os.pipe()
told, tell = os.pipe()
def wait_for_end():
    os.read(END, 1)
def done():
    os.write(tell, b'.')
def child(work=lambda: None, then=wait_for_end):
    pid = os.fork()
    if pid == 0:
        global held_by_first
        if held_by_first is not None:
            os.close(held_by_first)
            held_by_first = None
        work()
        done()
        then()
        os._exit(0)
    return pid
def await_children(count):
    while count:
        count -= len(os.read(told, count))
def ready():
    print('ready', flush=True)
    return sys.stdin.readline()
def burn(seconds):
    while sum(os.times()[:2]) < seconds and not select.select([END], [], [], 0)[0]:
        pass
";

/// A program that runs until it is dropped.
pub(crate) struct Actor {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Actor {
    /// Starts `program` and waits until it calls `ready()`.
    pub(crate) fn ready(program: &str) -> Self {
        let mut actor = Self::start(program);
        actor.await_ready();
        actor
    }

    /// Starts `program`.
    pub(crate) fn start(program: &str) -> Self {
        let mut child = Command::new("/usr/bin/python3")
            .args(["-I", "-c", &format!("{PRELUDE}{program}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A test's own may be a deleted file, which would count.
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap()
    }

    /// Lets the program go on from its last `ready()`.
    pub(crate) fn go_on(&mut self) {
        self.stdin.write_all(b"\n").unwrap();
    }

    /// Waits for the next `ready()`.
    pub(crate) fn await_ready(&mut self) {
        assert_eq!(self.next_line(), "ready");
    }

    pub(crate) fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Ends it and waits for it.
    pub(crate) fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.end();
    }
}

/// Tries until `attempt` has an answer, for at most ten seconds.
pub(crate) fn eventually<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(answer) = attempt() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) const MIB: u64 = 1 << 20;

const NOBODY: u32 = 65534;

/// Runs `body` as somebody to whom a directory can be closed, and whose `directory` is.
pub(crate) fn as_ordinary_user(directory: &TempDir, body: impl FnOnce()) {
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        std::os::unix::fs::chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    in_child(move || {
        if is_root {
            setgroups_empty().unwrap();
            setresgid(NOBODY).unwrap();
            setresuid(NOBODY).unwrap();
        }
        body();
    });
}
