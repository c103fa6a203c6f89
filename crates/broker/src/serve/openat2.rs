//! `openat2` for reading (GATE-2): performed here, never continued. Its flags and mode are in the caller's
//! memory, so between our check and the kernel's they could become those of a call that no filter would allow
//! (F14, FS-9).
//!
//! Unusual calls get `ENOSYS`, as on a kernel without `openat2`: writing, `O_PATH` (such a descriptor cannot be
//! passed), anything but files and directories, and file systems where the caller's identity differs from ours.

use super::pending::Then;
use super::reading::Reading;
use super::unseen::Unseen;
use crate::below::is_below;
use crate::caller::Caller;
use crate::glance::{Glance, OWN};
use crate::serve::BrokerServer;
use palisade_sys::Errno;
use palisade_sys::notify::Response;
use rustix::fs::ResolveFlags;

/// What is known of a path before anything is opened.
enum Sight {
    /// Opening it will tell.
    Clear,
    Missing(Unseen),
    /// Only the caller can resolve it.
    Unclear,
}

impl BrokerServer<'_> {
    pub(crate) fn read_only(&mut self, caller: &Caller) {
        let id = caller.notification.id;
        let reading = match Reading::of(caller) {
            Ok(reading) => reading,
            Err(errno) => return self.respond(id, Response::Fail(errno)),
        };
        let Some(gate) = &mut self.gate else {
            return self.respond(id, Response::Fail(Errno::NOSYS));
        };
        if gate.makes_wait(&self.events.supervisor, caller) {
            return;
        }
        let mut call = reading.call;
        let sight = match gate.glance(caller, &mut call) {
            // The path continues from another directory.
            _ if call != reading.call => Sight::Unclear,
            Glance::Remote => Sight::Unclear,
            Glance::GoOn if OWN.iter().any(|own| is_below(gate.path(), own)) => Sight::Unclear,
            Glance::GoOn => Sight::Clear,
            // Its root is another one.
            Glance::Missing
                if reading.resolve.contains(ResolveFlags::IN_ROOT)
                    && gate.path().starts_with(b"/") =>
            {
                Sight::Clear
            }
            Glance::Missing => gate.missing(caller, &call).map_or(Sight::Clear, Sight::Missing),
        };
        match sight {
            Sight::Clear => self.open_for(caller, reading),
            Sight::Missing(unseen) => self.wait_for_answer(caller, unseen, Then::Read(reading)),
            Sight::Unclear => self.respond(id, Response::Fail(Errno::NOSYS)),
        }
    }

    /// Resolves the path again: whatever it is by now, it is opened in the sandbox's own view.
    pub(crate) fn open_for(&self, caller: &Caller, reading: Reading) {
        let id = caller.notification.id;
        let path = caller.path(reading.call.path.address);
        let opened = path.and_then(|path| reading.open(caller, &path));
        // The process that was read may be another thread that got the pid.
        let given = opened.and_then(|file| {
            caller.confirm()?;
            self.hand_out(id, file, reading.close_on_exec())
        });
        if let Err(errno) = given {
            self.respond(id, Response::Fail(errno));
        }
    }
}
