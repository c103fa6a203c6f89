//! What a worker has of the gate (GATE-2): it lets calls continue whose path exists, or is missing where nothing is to be
//! asked. It learns nothing and decides nothing else; of all other calls the gate itself is asked.

use crate::caller::Caller;
use crate::glance::{Glance, PathText};
use crate::missing::ScaffoldMounts;
use crate::path_call::{PathCall, PathCalls};
use crate::remote::Remote;
use crate::stand_ins::LISTING;
use palisade_gate::Wants;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Lookout {
    pub(crate) calls: Arc<PathCalls>,
    pub(crate) remote: Arc<Remote>,
    pub(crate) grounds: Arc<ScaffoldMounts>,
    pub(crate) text: PathText,
}

impl Lookout {
    /// Whether the kernel is to go on, as far as that is known without the gate.
    pub(crate) fn is_clear(&mut self, caller: &Caller, mut call: PathCall) -> bool {
        if matches!(call.wants, Wants::Execute | LISTING) || call.tests_writing.is_some() {
            return false;
        }
        match self.text.glance(&self.remote, caller, &mut call) {
            Glance::GoOn | Glance::Remote => true,
            Glance::Missing => {
                let base = || caller.directory(call.path.dir);
                self.grounds.missing(base, self.text.bytes(), call.follow).is_none()
            }
        }
    }
}
