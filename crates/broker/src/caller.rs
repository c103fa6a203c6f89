//! The thread whose call is waiting: its memory, directories, umask and program.
//!
//! The caller can change everything read here at any moment. It is read once, and only the copy is judged and
//! used. Thread ids are reused: what was read belongs to the caller only if the notification is still pending
//! afterwards.

use crate::call::CWD;
use crate::unpoisoned::Unpoisoned as _;
use crate::{DIRECTORY, NO_MODE};
use palisade_sys::notify::{Listener, Notification};
use palisade_sys::other;
use palisade_sys::{Errno, Mode, OFlags, Pid};
use rustix::fs::{openat, readlinkat};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// `PATH_MAX`, with the NUL.
const MAX_PATH_BYTES: usize = 4096;
/// Longer than nearly all paths.
const USUAL_PATH: usize = 256;
/// A thread id is not reused within this time.
const UMASK_HOLDS: Duration = Duration::from_millis(50);
const MAX_UMASKS: usize = 1024;

#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) thread: Pid,
    /// The host's `/proc`, in which `thread` is this number.
    pub(crate) proc: &'static OwnedFd,
    pub(crate) listener: &'static Listener,
    /// The call that it waits for.
    pub(crate) notification: Notification,
    /// The strings that were read from its memory, by their addresses.
    strings: RefCell<Vec<(u64, Vec<u8>)>>,
}

impl Caller {
    /// None if the thread has no number here.
    pub(crate) fn of(
        notification: &Notification,
        proc: &'static OwnedFd,
        listener: &'static Listener,
    ) -> Option<Self> {
        let (thread, notification) = (notification.thread?, *notification);
        Some(Self { thread, proc, listener, notification, strings: RefCell::default() })
    }

    /// Called between reading and acting: only if the call is still pending was this caller read, and not
    /// another thread with its reused id.
    pub(crate) fn confirm(&self) -> Result<(), Errno> {
        if self.listener.is_waiting(self.notification.id) { Ok(()) } else { Err(Errno::SRCH) }
    }

    /// Read from its memory at most once: a second question gets what was found first.
    pub(crate) fn path(&self, address: u64) -> Result<Vec<u8>, Errno> {
        let mut strings = self.strings.borrow_mut();
        if let Some((_, known)) = strings.iter().find(|(known, _)| *known == address) {
            return Ok(known.clone());
        }
        let read = self.read_path(address)?;
        strings.push((address, read.clone()));
        Ok(read)
    }

    /// For a call that waits for an answer, perhaps for minutes: without the strings, which are read again when it goes on.
    pub(crate) fn for_later(&self) -> Self {
        Self { strings: RefCell::default(), ..self.clone() }
    }

    /// Gives what was read before at this address to `with`.
    pub(crate) fn with_known_path<T>(
        &self,
        address: u64,
        with: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        let strings = self.strings.borrow();
        strings.iter().find(|(known, _)| *known == address).map(|(_, path)| with(path))
    }

    fn read_path(&self, address: u64) -> Result<Vec<u8>, Errno> {
        let mut usual = [0; USUAL_PATH];
        match other::read_string(self.thread, address, &mut usual) {
            Err(Errno::NAMETOOLONG) => {
                let mut buffer = [0; MAX_PATH_BYTES];
                let length = other::read_string(self.thread, address, &mut buffer)?;
                Ok(buffer[..length].to_vec())
            }
            read => Ok(usual[..read?].to_vec()),
        }
    }

    pub(crate) fn bytes(&self, address: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let mut buffer = vec![0; length];
        let copied = other::read_memory(self.thread, address, &mut buffer)?;
        if copied == length { Ok(buffer) } else { Err(Errno::FAULT) }
    }

    /// The directory that a relative path starts from.
    pub(crate) fn directory(&self, number: i32) -> Result<OwnedFd, Errno> {
        let thread = self.thread.as_raw_pid();
        let path = match number {
            CWD => format!("{thread}/cwd"),
            number => format!("{thread}/fd/{number}"),
        };
        match openat(self.proc, path, DIRECTORY, NO_MODE) {
            Err(Errno::NOENT) if number != CWD => Err(Errno::BADF),
            opened => opened,
        }
    }

    /// Its path; of no use if it does not start with a slash.
    pub(crate) fn path_of_directory(&self, number: i32) -> Vec<u8> {
        match number {
            CWD => self.working_directory(),
            number => self.link(&format!("fd/{number}")),
        }
    }

    /// What a descriptor of the caller refers to, of any type.
    pub(crate) fn file(&self, number: i32) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        match openat(self.proc, self.file_path(number), flags, NO_MODE) {
            Err(Errno::NOENT) => Err(Errno::BADF),
            opened => opened,
        }
    }

    /// Where `file` is found below `/proc`.
    pub(crate) fn file_path(&self, number: i32) -> String {
        format!("{}/fd/{number}", self.thread.as_raw_pid())
    }

    /// A copy of the descriptor itself.
    pub(crate) fn take(&self, number: i32) -> Result<OwnedFd, Errno> {
        let process = self.status_number("Tgid:").and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        let pidfd = other::pidfd_of(process).map_err(|error| error.errno)?;
        other::take_descriptor(&pidfd, number).map_err(|error| error.errno)
    }

    /// As the sandbox sees it; empty if unknown.
    pub(crate) fn program(&self) -> Vec<u8> {
        self.link("exe")
    }

    fn link(&self, name: &str) -> Vec<u8> {
        let path = format!("{}/{name}", self.thread.as_raw_pid());
        readlinkat(self.proc.as_fd(), path, Vec::new())
            .map(std::ffi::CString::into_bytes)
            .unwrap_or_default()
    }

    pub(crate) fn working_directory(&self) -> Vec<u8> {
        self.link("cwd")
    }

    /// Its own ids in its pid namespace: process and thread.
    pub(crate) fn numbers_inside(&self) -> [i32; 2] {
        let innermost = |field| self.status(field)?.split_whitespace().next_back()?.parse().ok();
        ["NStgid:", "NSpid:"].map(|field| innermost(field).unwrap_or_default())
    }

    fn umask(&self) -> Option<Mode> {
        let umask = u32::from_str_radix(&self.status("Umask:")?, 8).ok()?;
        Some(Mode::from_raw_mode(umask))
    }

    /// `RLIMIT_FSIZE`, in bytes.
    pub(crate) fn largest_file(&self) -> Option<u64> {
        let text = self.text_of("limits")?;
        let line = text.lines().find_map(|line| line.strip_prefix("Max file size"))?;
        match line.split_whitespace().next()? {
            "unlimited" => Some(u64::MAX),
            bytes => bytes.parse().ok(),
        }
    }

    fn status_number(&self, field: &str) -> Option<i32> {
        self.status(field)?.parse().ok()
    }

    fn status(&self, field: &str) -> Option<String> {
        let text = self.text_of("status")?;
        let value = text.lines().find_map(|line| line.strip_prefix(field))?;
        Some(value.trim().to_owned())
    }

    /// The beginning of a small file in the caller's directory of `/proc`.
    fn text_of(&self, name: &str) -> Option<String> {
        let path = format!("{}/{name}", self.thread.as_raw_pid());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = openat(self.proc, path, flags, NO_MODE).ok()?;
        let mut buffer = [0; 2048];
        let length = rustix::io::read(&file, &mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
    }
}

/// The umasks of recent callers: asking the kernel costs more than creating a file.
#[derive(Debug, Default)]
pub(crate) struct Umasks(Mutex<HashMap<Pid, (Mode, Instant)>>);

impl Umasks {
    /// What is read while another thread forgets all of them must not be kept, so that one waits.
    pub(crate) fn of(&self, caller: &Caller) -> Result<Mode, Errno> {
        let now = Instant::now();
        let mut known = self.0.lock().held();
        if let Some((umask, met)) = known.get(&caller.thread)
            && now.duration_since(*met) < UMASK_HOLDS
        {
            return Ok(*umask);
        }
        let umask = caller.umask().ok_or(Errno::SRCH)?;
        if known.len() >= MAX_UMASKS {
            known.clear();
        }
        known.insert(caller.thread, (umask, now));
        Ok(umask)
    }

    /// A thread is changing its umask, and threads share it.
    pub(crate) fn forget(&self) {
        self.0.lock().held().clear();
    }
}

thread_local! {
    /// What this thread of the broker has set last, if anything.
    static OWN_UMASK: Cell<Option<Mode>> = const { Cell::new(None) };
}

/// Sets the umask of this thread, which is to share none with others.
pub(crate) fn set_own_umask(umask: Mode) {
    if OWN_UMASK.replace(Some(umask)) != Some(umask) {
        rustix::process::umask(umask);
    }
}

/// All processes have ended, maybe before we started. Only the supervisor waits for us, and the sandbox's
/// mounts exist for as long as we do.
pub(crate) fn no_callers_remain() -> ! {
    palisade_sys::proc::exit_now(0)
}
