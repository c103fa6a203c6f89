//! Static mode: what is used in the home directory is shown by rule, for reading (GATE-7). Nobody is asked.
//!
//! Must never show a secret, nor anything for writing.

use super::GateState;
use crate::gate::grants::Lasting;
use crate::gate::inquiry::{Found, Inquiry};
use crate::gate::verdict::{Reason, Verdict};
use palisade_ask::Now;
use palisade_gate::{Access, AccessReply, Wants};
use palisade_keeper::{FileKind, What};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

impl GateState<'_> {
    /// No rule of the policy speaks.
    pub(super) fn show_by_rule(&mut self, token: u64, now: Now) {
        let Some(inquiry) = self.inquiries.get(&token) else { return };
        let Some(found) = inquiry.found.clone() else { return self.refuse(token) };
        let (is_written, is_looked_at) = (inquiry.access() == Access::Write, is_looked_at(inquiry));
        let is_revoked = inquiry.paths().any(|path| self.decider.is_revoked(path));
        if self.is_secret(token) || is_revoked {
            return self.deny(token, &Verdict::denied(Reason::StaticMode), now);
        }
        // The run has its own caches and histories, and what it makes beside secrets is its own, too.
        if self.is_left_by_tools(token) || self.is_made_beside(token) {
            return self.let_go(token);
        }
        if is_written {
            return self.deny(token, &Verdict::denied(Reason::StaticMode), now);
        }
        // A list with attributes, of a home say, would otherwise mount every single name in it.
        if is_looked_at {
            return self.end(token, |request| AccessReply::Named { request, for_one_call: true });
        }
        self.record(token, &Verdict::allowed(Reason::StaticMode), now);
        let access = if self.gate.executes { Access::Execute } else { Access::Read };
        let what = self.largest_shown(&found, now);
        self.grant(token, what, access, Lasting::Session);
    }

    /// As much as can be shown at once: who reads one file of a directory reads others.
    fn largest_shown(&mut self, found: &Found, now: Now) -> What {
        let directory =
            self.offer(found, now).filter(|directory| self.gate.shows_within(directory));
        match directory.filter(|directory| !self.is_known_in_part(directory)) {
            Some(directory) => What::Directory(directory),
            None if found.kind == FileKind::Directory => What::Name,
            None => What::Found,
        }
    }

    /// Whether the keeper found something in a directory that must not be shown with it.
    fn is_known_in_part(&self, directory: &Path) -> bool {
        self.surveyed.iter().any(|(below, is_whole)| !is_whole && below.starts_with(directory))
    }

    fn is_left_by_tools(&self, token: u64) -> bool {
        let inquiry = self.inquiries.get(&token);
        inquiry.is_some_and(|inquiry| {
            let typed = inquiry.requests.first().map(|request| request.path.as_slice());
            let typed = typed.map(|path| PathBuf::from(OsStr::from_bytes(path)));
            let mut paths = inquiry.found.iter().map(|found| &found.path).chain(&typed);
            paths.any(|path| self.gate.is_left_by_tools(path))
        })
    }
}

/// Whether only attributes are asked for, of who can tell them without showing anything.
fn is_looked_at(inquiry: &Inquiry) -> bool {
    inquiry.requests.iter().all(|request| request.may_be_served && request.wants == Wants::Look)
}
