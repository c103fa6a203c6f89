//! The keeper's own descriptors as paths in `/proc/self/fd`: the only way to open an `O_PATH` descriptor for
//! reading, and to name a mount that is held.

use palisade_sys::{At as _, Mode, OFlags, Result, mounts};
use rustix::fs::{Access, AtFlags};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;

#[derive(Debug)]
pub(crate) struct OwnFiles(OwnedFd);

impl OwnFiles {
    /// The descriptor outlives every change of root.
    pub(crate) fn open() -> Result<Self> {
        let path = Path::new("/proc/self/fd");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).at("open", path).map(Self)
    }

    /// Opens what `held` refers to, on the mount that `held` refers to.
    pub(crate) fn reopen(&self, held: impl AsFd, flags: OFlags) -> Result<OwnedFd> {
        let number = held.as_fd().as_raw_fd().to_string();
        rustix::fs::openat(&self.0, number, flags | OFlags::CLOEXEC, Mode::empty()).call("openat")
    }

    /// Whether we may do this with what `held` refers to, with the rights we act with (faccessat2(2)).
    pub(crate) fn may_access(&self, held: impl AsFd, wanted: Access) -> Result<()> {
        let number = held.as_fd().as_raw_fd().to_string();
        rustix::fs::accessat(&self.0, number, wanted, AtFlags::EACCESS).call("faccessat2")
    }

    /// Detaches a mount, with everything mounted on it.
    pub(crate) fn detach(&self, mount: impl AsFd) -> Result<()> {
        mounts::detach_held(&self.0, mount)
    }
}
