//! What access(2) says of writing to something that was granted for reading only.

use crate::caller::Caller;
use crate::path_call::PathCall;
use crate::serve::BrokerServer;
use palisade_sys::Errno;
use palisade_sys::notify::Response;
use rustix::fs::{AtFlags, accessat};

impl BrokerServer<'_> {
    /// Answers access(2) about something that was granted for reading: its mount returns EROFS, and programs
    /// such as rm or an editor would then not try to write, so nothing would be asked.
    pub(super) fn test_writing(&self, caller: &Caller, call: PathCall) -> Response {
        if !self.gate.as_ref().is_some_and(|gate| gate.asks) {
            return Response::Continue;
        }
        let place = self.executor.place_of(caller, call.path, call.follow);
        let place = place.filter(|place| place.was_granted(&self.executor.map.ground));
        let (Some(place), Some(mode)) = (place, call.tests_writing) else {
            return Response::Continue;
        };
        let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
        // The mount is checked last: owner and mode of the file would allow writing.
        match accessat(&place.parent, &place.name, mode, flags) {
            Err(Errno::ROFS) => Response::Value(0),
            _ => Response::Continue,
        }
    }
}
