//! A path that changes in memory while the kernel, or whoever judges calls for it, reads it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use super::{checked, new_descriptor};

/// A path in memory that one thread rewrites while another makes calls with it.
#[derive(Debug)]
pub struct SharedName {
    bytes: Vec<AtomicU8>,
    other: Vec<u8>,
    harmless: Vec<u8>,
    is_other: AtomicBool,
}

/// A call that makes something of that name, from a file called `source` where it needs one.
#[derive(Clone, Copy, Debug)]
pub enum NamedCall {
    Open,
    Mkdir,
    Rename,
    Link,
    Symlink,
}

impl SharedName {
    /// Two names of one length.
    #[must_use]
    pub fn new(harmless: &str, wanted: &str) -> Option<Self> {
        let terminated = harmless.bytes().chain([0]);
        (harmless.len() == wanted.len()).then(|| Self {
            bytes: terminated.map(AtomicU8::new).collect(),
            other: wanted.bytes().collect(),
            harmless: harmless.bytes().collect(),
            is_other: AtomicBool::new(false),
        })
    }

    /// Makes it the other name.
    pub fn flip(&self) {
        let was_other = self.is_other.fetch_xor(true, Ordering::Relaxed);
        let name = if was_other { &self.harmless } else { &self.other };
        for (byte, new) in self.bytes.iter().zip(name) {
            byte.store(*new, Ordering::Relaxed);
        }
    }

    /// Opens what the name is when the kernel reads it, to be read.
    pub fn open(&self) -> io::Result<OwnedFd> {
        let name: *const u8 = self.bytes.as_ptr().cast();
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        // SAFETY: the name's bytes live as long as `self`, and the last of them is always zero.
        new_descriptor(unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, name, flags, 0) })
    }

    /// Makes the call with whatever the name is when the kernel reads it.
    pub fn call(&self, call: NamedCall) -> io::Result<()> {
        let name: *const u8 = self.bytes.as_ptr().cast();
        let (name, source) = (name.expose_provenance(), c"source".as_ptr().expose_provenance());
        // As an argument of a system call: AT_FDCWD is -100, in all the bits of a register.
        let here = usize::MAX - 99;
        let flags = (libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC).unsigned_abs() as usize;
        let (number, arguments) = match call {
            NamedCall::Open => (libc::SYS_openat, [here, name, flags, 0o644, 0]),
            NamedCall::Mkdir => (libc::SYS_mkdirat, [here, name, 0o755, 0, 0]),
            NamedCall::Rename => (libc::SYS_renameat2, [here, source, here, name, 0]),
            NamedCall::Link => (libc::SYS_linkat, [here, source, here, name, 0]),
            NamedCall::Symlink => (libc::SYS_symlinkat, [source, here, name, 0, 0]),
        };
        let [a, b, c, d, e] = arguments;
        // SAFETY: the name's bytes live as long as `self` and the last of them is always zero; the
        // other path is a constant. The kernel only reads both.
        let made = checked(unsafe { libc::syscall(number, a, b, c, d, e) })?;
        if let NamedCall::Open = call {
            drop(new_descriptor(made));
        }
        Ok(())
    }
}
