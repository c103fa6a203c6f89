//! Which processes are inside a running sandbox, as the host's `/proc` shows them.

use super::Running;
use crate::first_child::first_child;
use crate::spawner::Spawner;
use palisade_sys::Pid;
use std::fs;

impl Running {
    /// On the host, whose children everybody inside descends from: pid 1, and the spawner if there is one.
    pub fn roots(&self) -> Vec<u32> {
        let spawner = self.spawner.as_ref().map(Spawner::pid);
        let roots = [Some(self.pid), spawner].into_iter().flatten();
        roots.map(|pid| pid.as_raw_nonzero().get().unsigned_abs()).collect()
    }

    /// The command's process on the host: the first child of pid 1.
    pub fn command(&self) -> Option<Pid> {
        first_child(self.pid())
    }

    /// Whether a sandbox that outlives its commands has none now, and nothing that they left behind. Orphans become
    /// children of pid 1. False where that cannot be seen.
    pub fn is_empty(&self) -> bool {
        let has_no_child = |parent: &u32| {
            let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
            children.is_ok_and(|children| children.trim().is_empty())
        };
        self.spawner.is_some() && self.roots().iter().all(has_no_child)
    }
}
