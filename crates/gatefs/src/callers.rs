//! Who makes a call, by the number of its thread: what `/proc` says of it.
//!
//! Our own processes must never wait here for an answer that depends on them. They are outside the command's pid
//! namespace, except those that build the view, which are known by their name until the command starts. A process of
//! the command can give itself that name later, and must gain nothing by it. Files in `/proc` are read as bytes, for the
//! same reason.

use crate::identity::Identity;
use palisade_bpf::{Arch, table};
use palisade_sys::{Mode, OFlags, Pid};
use rustix::fs::{openat, readlinkat};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// A number is not used again within this time.
const KNOWN_FOR: Duration = Duration::from_secs(1);
const MAX_KNOWN: usize = 4096;
const SIGKILL_BIT: u64 = 1 << 8;

/// The name of the processes that build the view, until the command's exec.
const SETUP: &[u8] = b"sandbox-setup\n";
const KEEPER: &[u8] = b"sandbox-keeper\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerClass {
    /// A process of the command.
    Inside,
    /// In the command's pid namespace, with the name of those that build the view.
    NamedSetup,
    /// Mounts what was granted: sees every stub, and what it looks up stays.
    Keeper,
    /// The broker, and whoever builds the view: see what is granted or the sandbox's own.
    Helper,
}

#[derive(Debug)]
pub(crate) struct Callers {
    proc: OwnedFd,
    /// In how many pid namespaces our own processes are, as far as `/proc` shows.
    own_depth: usize,
    known: HashMap<Pid, (CallerClass, Instant)>,
}

impl Callers {
    /// `proc` is the host's.
    pub(crate) fn new(proc: OwnedFd) -> Self {
        let mut callers = Self { proc, own_depth: 1, known: HashMap::new() };
        callers.own_depth = callers.depth(rustix::process::getpid()).unwrap_or(1);
        callers
    }

    /// Without a number it is the kernel itself. `None` if `/proc` does not tell.
    pub(crate) fn class(&mut self, thread: Option<Pid>) -> Option<CallerClass> {
        let Some(thread) = thread else { return Some(CallerClass::Helper) };
        let now = Instant::now();
        if let Some((class, met)) = self.known.get(&thread)
            && now.duration_since(*met) < KNOWN_FOR
        {
            return Some(*class);
        }
        let name = self.read(thread, "comm")?;
        let is_inside = self.depth(thread)? > self.own_depth;
        let class = match (is_inside, &*name) {
            // It becomes the command under the same number.
            (true, SETUP) => return Some(CallerClass::NamedSetup),
            (true, _) => CallerClass::Inside,
            (false, KEEPER) => CallerClass::Keeper,
            (false, _) => CallerClass::Helper,
        };
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(thread, (class, now));
        Some(class)
    }

    fn depth(&self, thread: Pid) -> Option<usize> {
        let status = self.read(thread, "status")?;
        let numbers = field(&status, b"NSpid:")?;
        Some(numbers.split(u8::is_ascii_whitespace).filter(|number| !number.is_empty()).count())
    }

    /// The program, as the sandbox sees it; empty if unknown.
    pub(crate) fn program(&self, thread: Pid) -> Vec<u8> {
        self.link(thread, "exe")
    }

    pub(crate) fn working_directory(&self, thread: Pid) -> Vec<u8> {
        self.link(thread, "cwd")
    }

    fn link(&self, thread: Pid, name: &str) -> Vec<u8> {
        let path = format!("{}/{name}", thread.as_raw_pid());
        let target = readlinkat(&self.proc, path, Vec::new());
        target.map(std::ffi::CString::into_bytes).unwrap_or_default()
    }

    /// Whether a thread can do nothing but end, as soon as its call returns. One that is gone can.
    pub(crate) fn is_dying(&self, thread: Pid) -> bool {
        let Some(status) = self.read(thread, "status") else { return true };
        let mask = |name: &[u8]| {
            let digits = std::str::from_utf8(field(&status, name)?).ok()?;
            u64::from_str_radix(digits.trim(), 16).ok()
        };
        let all = [&b"SigPnd:"[..], b"ShdPnd:", b"SigBlk:", b"SigIgn:", b"SigCgt:"].map(mask);
        let [Some(own), Some(shared), Some(blocked), Some(ignored), Some(caught)] = all else {
            return true;
        };
        let pending = own | shared;
        let ends = pending & ENDING & !blocked & !ignored & !caught;
        pending & SIGKILL_BIT != 0 || ends != 0
    }

    /// What `/proc` shows of the call that a thread makes. That file is for the thread's own user alone. The server reads it
    /// only of a thread that waits for its answer (`watcher.rs`).
    pub(crate) fn call(&self, identity: &Identity, thread: Pid) -> Option<Vec<u8>> {
        identity.as_command().ok()?;
        self.read(thread, "syscall")
    }

    /// The system call that a thread makes, by its name; `None` if that cannot be read.
    pub(crate) fn call_name(&self, identity: &Identity, thread: Pid) -> Option<&'static str> {
        let call = self.call(identity, thread)?;
        let number = call.split(u8::is_ascii_whitespace).next()?;
        let number = std::str::from_utf8(number).ok()?.parse().ok()?;
        table::name(Arch::native(), number)
    }

    fn read(&self, thread: Pid, name: &str) -> Option<Vec<u8>> {
        let path = format!("{}/{name}", thread.as_raw_pid());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = openat(&self.proc, path, flags, Mode::empty()).ok()?;
        let mut text = vec![0; 4096];
        let length = rustix::io::read(&file, &mut text).ok()?;
        text.truncate(length);
        Some(text)
    }
}

/// Signals that end a process with a core dump, which the kernel does not turn into SIGKILL at once: SIGQUIT, SIGILL,
/// SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS.
const ENDING: u64 =
    1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 10 | 1 << 23 | 1 << 24 | 1 << 30;

fn field<'t>(text: &'t [u8], name: &[u8]) -> Option<&'t [u8]> {
    let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name))?;
    Some(line.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::{CallerClass, Callers, field};
    use palisade_sys::Pid;

    fn callers() -> Callers {
        Callers::new(std::fs::File::open("/proc").unwrap().into())
    }

    #[test]
    fn a_process_of_our_own_pid_namespace_is_not_the_commands() {
        let own = rustix::process::getpid();
        assert_eq!(callers().class(Some(own)), Some(CallerClass::Helper));
        assert_eq!(callers().class(None), Some(CallerClass::Helper));
    }

    #[test]
    fn a_thread_of_which_nothing_is_known_is_none_of_ours() {
        assert_eq!(callers().class(Pid::from_raw(i32::MAX)), None);
    }

    #[test]
    fn a_thread_that_is_gone_waits_for_nothing() {
        assert!(callers().is_dying(Pid::from_raw(i32::MAX).unwrap()));
        assert!(!callers().is_dying(rustix::process::getpid()));
    }

    #[test]
    fn a_field_is_found_beside_a_name_that_is_no_text() {
        let status = b"Name:\t\xff\xfe\nNSpid:\t77\t5\n";
        assert_eq!(field(status, b"NSpid:"), Some(&b"77\t5"[..]));
    }
}
