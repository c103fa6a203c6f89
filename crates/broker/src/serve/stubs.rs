//! Calls that the kernel would continue, where the caller sees more names than we do: the gate's file system has a
//! stub for everything that the host has. What changes something must not end there.

use super::BrokerServer;
use crate::call::Call;
use crate::caller::Caller;
use crate::glance::Glance;
use crate::path_call::PathCall;
use crate::serve::gate::Gate;
use palisade_gate::Wants;
use palisade_sys::Errno;
use palisade_sys::notify::Response;
use rustix::fs::{StatVfsMountFlags, fstatvfs, openat};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

impl BrokerServer<'_> {
    /// The answer to a call that is nobody's business but the kernel's, as the view without stubs gives it.
    pub(super) fn in_view(&mut self, caller: &Caller, call: Call) -> Response {
        let refused = self.gate.as_mut().filter(|gate| gate.has_stubs);
        let refused = refused.and_then(|gate| gate.refused_in_view(caller, call));
        refused.map_or(Response::Continue, Response::Fail)
    }
}

impl Gate {
    fn refused_in_view(&mut self, caller: &Caller, call: Call) -> Option<Errno> {
        let mut look = PathCall::looking(call.target()?, false, Wants::Look);
        if self.glance(caller, &mut look) != Glance::Missing {
            return None;
        }
        let base = || caller.directory(look.path.dir);
        let (is_name, is_read_only) = self.ends_in_scaffolding(base)?;
        // Of a rename the target is the new name. From another file system the kernel answers EXDEV, and programs copy.
        let makes = call.only_makes() || matches!(call, Call::Rename { .. });
        match is_name && makes {
            true => is_read_only.then_some(Errno::ROFS),
            false => Some(Errno::NOENT),
        }
    }

    /// Whether the path that was looked up last misses only its last name, and whether nothing can be created there.
    fn ends_in_scaffolding(
        &self,
        base: impl Fn() -> Result<OwnedFd, Errno>,
    ) -> Option<(bool, bool)> {
        let missing = self.grounds.missing(base, self.text.bytes(), false)?;
        let directory = Path::new(OsStr::from_bytes(missing.path.get(..missing.existing)?));
        let rest = Path::new(OsStr::from_bytes(&missing.path)).strip_prefix(directory).ok()?;
        let opened = openat(rustix::fs::CWD, directory, crate::DIRECTORY, crate::NO_MODE).ok()?;
        let is_read_only = fstatvfs(&opened).ok()?.f_flag.contains(StatVfsMountFlags::RDONLY);
        Some((rest.components().count() == 1, is_read_only))
    }
}
