//! Callers in a directory of ours that stands for one of the host. What is granted later is mounted on top of that
//! directory. A process that was in it before does not see the mount: the kernel resolves relative names below it.
//!
//! So after a grant, a relative name is looked up again, and the supervisor shows it below the grant, too. Nothing is
//! given here that the absolute path would not give.

use super::BrokerServer;
use super::gate::Gate;
use super::pending::{Then, Waiting};
use super::unseen::Unseen;
use crate::NO_MODE;
use crate::caller::Caller;
use crate::glance::Glance;
use crate::stand_ins::LISTING;
use palisade_sys::OFlags;
use palisade_sys::notify::Response;
use rustix::fs::{CWD, ResolveFlags, openat2};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

impl Gate {
    /// What a relative name still misses after a grant, because its directory is covered.
    fn still_missing(&mut self, caller: &Caller) -> Option<Unseen> {
        let mut call = self.parse(&caller.notification)?;
        if self.glance(caller, &mut call) != Glance::Missing {
            return None;
        }
        let mut unseen = self.missing(caller, &call).filter(|unseen| unseen.missing.is_covered)?;
        unseen.is_second_look = true;
        Some(unseen)
    }
}

impl BrokerServer<'_> {
    /// Lets the kernel continue with a call that was granted, once it finds there what was granted.
    pub(super) fn go_on_in_kernel(&mut self, waiting: &Waiting) {
        let caller = &waiting.caller;
        let id = caller.notification.id;
        let (path, typed) = &waiting.paths;
        let is_relative = typed.is_none();
        if let Some(gate) = self.gate.as_mut().filter(|_| is_relative) {
            if waiting.wants == LISTING && gate.stand_ins.has(path) {
                let call = gate.parse(&caller.notification);
                let close_on_exec = call.is_some_and(|call| call.close_on_exec);
                return self.list_on_top(id, path, close_on_exec);
            }
            let missing = (!waiting.is_second_look).then(|| gate.still_missing(caller));
            if let Some(unseen) = missing.flatten() {
                return self.wait_for_answer(caller, unseen, Then::Kernel);
            }
        }
        self.respond(id, Response::Continue);
    }

    /// Opens the directory that covers the caller's, as the caller could by its path.
    pub(super) fn list_on_top(&self, id: u64, path: &[u8], close_on_exec: bool) {
        let handed = open_listing(path)
            .and_then(|directory| self.hand_out(id, directory, close_on_exec).ok());
        if handed.is_none() {
            self.respond(id, Response::Continue);
        }
    }
}

fn open_listing(path: &[u8]) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS;
    openat2(CWD, OsStr::from_bytes(path), flags, NO_MODE, resolve).ok()
}
