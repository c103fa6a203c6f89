//! Calls that were allowed once are watched until they return, in a thread of its own.
//!
//! `/proc/TID/syscall` waits for an exec of that process (`exec_update_lock`), and an exec may wait for the server: it writes
//! back what the process had mapped from its private home (`fuse_vma_close`). The server itself therefore reads that file
//! only of threads that wait for its answer, and so cannot be in an exec.

use crate::callers::Callers;
use crate::identity::{Identity, ServerIdentity};
use palisade_sys::{At as _, Errno, OFlags, Pid, Result};
use rustix::pipe::{PipeFlags, pipe_with};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How soon a call may have returned, and when waiting for it stops.
const FIRST_LOOK: Duration = Duration::from_micros(200);
const LAST_LOOK: Duration = Duration::from_secs(1);
const RUNS: Duration = Duration::from_millis(100);
const NUMBER_BYTES: usize = size_of::<u64>();

/// The server's end.
#[derive(Debug)]
pub(crate) struct Watcher {
    calls: Sender<WatchedCall>,
    /// The numbers of those that have returned.
    returned: OwnedFd,
}

#[derive(Debug)]
struct WatchedCall {
    request: u64,
    thread: Pid,
    /// What `/proc` showed of the call while it waited.
    call: Vec<u8>,
    since: Instant,
    next: Instant,
}

impl Watcher {
    /// `confine` installs the filter of the server, which every thread needs for itself. `to_close` is closed by the
    /// thread.
    pub(crate) fn start(
        callers: Callers,
        identity: ServerIdentity,
        confine: fn() -> std::result::Result<(), String>,
        to_close: OwnedFd,
    ) -> Result<Self> {
        let (calls, received) = channel();
        let (returned, sending) = pipe_with(PipeFlags::CLOEXEC).call("pipe2")?;
        let nonblocking = rustix::fs::fcntl_setfl(&returned, OFlags::NONBLOCK);
        nonblocking.call("fcntl")?;
        let watch = move || {
            // Without it nothing is watched: the server sees that the pipe is closed, and fails.
            if confine().is_ok() {
                drop(to_close);
                run(&callers, &Identity::new(identity), &received, &sending);
            }
        };
        let started = std::thread::Builder::new().spawn(watch);
        started.map_err(|_| Errno::AGAIN).call("clone")?;
        Ok(Self { calls, returned })
    }

    /// Lets the server know when a call has returned that is this one now.
    pub(crate) fn watch(&self, request: u64, thread: Pid, call: Vec<u8>) {
        let since = Instant::now();
        let watched = WatchedCall { request, thread, call, since, next: since + FIRST_LOOK };
        // The thread ends only with the pipe.
        let _ = self.calls.send(watched);
    }

    /// The requests whose calls have returned. An error if nothing is watched any more.
    pub(crate) fn returned(&self) -> std::result::Result<Vec<u64>, Errno> {
        let mut bytes = [0; 64 * NUMBER_BYTES];
        let length = match rustix::io::read(&self.returned, &mut bytes) {
            Ok(0) => return Err(Errno::PIPE),
            Ok(length) => length,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(errno) => return Err(errno),
        };
        let (numbers, _) = bytes[..length].as_chunks::<NUMBER_BYTES>();
        Ok(numbers.iter().map(|number| u64::from_ne_bytes(*number)).collect())
    }
}

impl AsFd for Watcher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.returned.as_fd()
    }
}

fn run(callers: &Callers, identity: &Identity, calls: &Receiver<WatchedCall>, returned: &OwnedFd) {
    let mut watched: Vec<WatchedCall> = Vec::new();
    loop {
        let next = watched.iter().map(|call| call.next).min();
        let received = match next {
            Some(next) => calls.recv_timeout(next.saturating_duration_since(Instant::now())),
            None => calls.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(call) => watched.push(call),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = Instant::now();
        let mut is_heard = true;
        watched.retain_mut(|call| {
            if now < call.next {
                return true;
            }
            let waited = now.duration_since(call.since);
            if waited >= LAST_LOOK || call.has_returned(callers, identity) {
                // Numbers of all calls that can wait have room in the pipe.
                is_heard &= rustix::io::write(returned, &call.request.to_ne_bytes()).is_ok();
                return false;
            }
            call.next = now + waited.max(FIRST_LOOK);
            true
        });
        if !is_heard {
            return;
        }
    }
}

impl WatchedCall {
    fn has_returned(&self, callers: &Callers, identity: &Identity) -> bool {
        match callers.call(identity, self.thread) {
            // In the call or after it: that cannot be determined, but no call runs that long without waiting.
            Some(call) if call == b"running\n" => self.since.elapsed() >= RUNS,
            Some(call) => call != self.call,
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Watcher;
    use crate::callers::Callers;
    use crate::identity::{Identity, ServerIdentity};
    use palisade_sys::Pid;
    use std::io::Read as _;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    #[test]
    fn a_call_that_returns_is_noticed() {
        let callers = || Callers::new(std::fs::File::open("/proc").unwrap().into());
        let identity = ServerIdentity::OrdinaryUser;
        let watcher = Watcher::start(
            callers(),
            identity,
            || Ok(()),
            std::fs::File::open("/").unwrap().into(),
        )
        .unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo ready; read line; sleep 5"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let thread = Pid::from_raw(child.id().cast_signed()).unwrap();
        let call = callers().call(&Identity::new(identity), thread).unwrap();
        watcher.watch(7, thread, call);
        let begun = Instant::now();
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(watcher.returned(), Ok(Vec::new()), "it still reads");
        drop(child.stdin.take());
        let mut returned = Vec::new();
        while returned.is_empty() && begun.elapsed() < Duration::from_secs(10) {
            returned = watcher.returned().unwrap();
        }
        assert_eq!(returned, [7]);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
