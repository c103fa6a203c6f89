//! Calls that wait for the supervisor's answer, and calls that were allowed once and have not returned.
//!
//! A waiting call never delays others. What cannot be sent yet is queued. Every queue is bounded: what waits, and so what
//! is said about it, is limited.

use crate::callers::Callers;
use crate::message::GateFsMessage;
use palisade_fuse::{NodeId, Unique};
use palisade_gate::PathAccess;
use palisade_sys::{Pid, proc};
use palisade_wire::WireError;
use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// More would be a flood that no person could answer.
const MAX_WAITING: usize = 4096;
/// Each call leaves at most three messages: that it waits, that it is withdrawn, that it has returned.
const MAX_OUTBOX: usize = 3 * MAX_WAITING;
/// How often interrupted calls are looked at, and how many at once. The kernel reports only the first signal.
const ROUND: Duration = Duration::from_millis(50);
const A_ROUND: usize = 256;

/// What is answered once the supervisor has decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    GetAttr,
    Open,
    OpenDir,
    Access { mask: u32 },
    ReadLink,
    GetXattr { name: Vec<u8>, size: u32 },
    ListXattr { size: u32 },
    StatFs,
}

#[derive(Debug)]
pub(crate) struct PendingCall {
    pub(crate) unique: Unique,
    pub(crate) node: NodeId,
    pub(crate) call: Call,
    pub(crate) thread: Pid,
}

/// A call that was allowed once.
#[derive(Debug)]
struct AllowedCall {
    thread: Pid,
    /// What was granted to it.
    path: PathBuf,
}

#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pending: HashMap<u64, PendingCall>,
    by_unique: HashMap<Unique, u64>,
    last: u64,
    /// In the order in which they are looked at.
    interrupted: VecDeque<u64>,
    next_round: Option<Instant>,
    allowed_once: HashMap<u64, AllowedCall>,
    outbox: VecDeque<Vec<u8>>,
}

impl Waiting {
    pub(crate) fn is_full(&self) -> bool {
        self.pending.len() >= MAX_WAITING || self.outbox.len() >= MAX_OUTBOX
    }

    pub(crate) fn has_unsent(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// The number of the next request.
    pub(crate) fn next_request(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(crate) fn add(&mut self, supervisor: &OwnedFd, request: PathAccess, call: PendingCall) {
        let id = request.id;
        self.by_unique.insert(call.unique, id);
        self.pending.insert(id, call);
        self.post(supervisor, &GateFsMessage::PathAccess(request));
    }

    pub(crate) fn take(&mut self, request: u64) -> Option<PendingCall> {
        let call = self.pending.remove(&request)?;
        self.by_unique.remove(&call.unique);
        Some(call)
    }

    /// A signal arrived for the thread of a call.
    pub(crate) fn interrupted(&mut self, unique: Unique) {
        let Some(request) = self.by_unique.get(&unique) else { return };
        self.interrupted.push_back(*request);
        // Now: a killed process must not wait for the next round.
        self.next_round = Some(Instant::now());
    }

    /// A call goes on that was allowed once.
    pub(crate) fn goes_on(&mut self, request: u64, thread: Pid, path: PathBuf) {
        self.allowed_once.insert(request, AllowedCall { thread, path });
    }

    /// A call that was allowed once is over.
    pub(crate) fn has_returned(&mut self, supervisor: &OwnedFd, request: u64) {
        self.allowed_once.remove(&request);
        self.post(supervisor, &GateFsMessage::Returned { request });
    }

    /// Whether this thread was allowed to use what is at the path, and its call is not over.
    pub(crate) fn is_allowed_once(&self, thread: Option<Pid>, path: &Path) -> bool {
        self.allowed_once.values().any(|one| Some(one.thread) == thread && one.path == path)
    }

    /// When [`Self::take_dying`] has something to do again.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.next_round
    }

    /// Looks at interrupted calls, if that is due. Gives those whose thread is dying, which are to be answered.
    pub(crate) fn take_dying(
        &mut self,
        supervisor: &OwnedFd,
        callers: &Callers,
    ) -> Vec<PendingCall> {
        let now = Instant::now();
        if self.next_round.is_none_or(|next| now < next) {
            return Vec::new();
        }
        let mut dying = Vec::new();
        for _ in 0..self.interrupted.len().min(A_ROUND) {
            let Some(request) = self.interrupted.pop_front() else { break };
            let Some(call) = self.pending.get(&request) else { continue };
            if callers.is_dying(call.thread) {
                dying.extend(self.take(request));
                self.post(supervisor, &GateFsMessage::Withdrawn { request });
            } else {
                self.interrupted.push_back(request);
            }
        }
        self.next_round = (!self.interrupted.is_empty()).then_some(now + ROUND);
        dying
    }

    /// Sends what is queued, as far as there is room.
    pub(crate) fn flush(&mut self, supervisor: &OwnedFd) {
        while let Some(packet) = self.outbox.front() {
            if palisade_wire::try_send(supervisor, packet) == Err(WireError::NoRoom) {
                return;
            }
            self.outbox.pop_front();
        }
    }

    /// None of this may be lost: a call waits for it.
    pub(crate) fn post(&mut self, supervisor: &OwnedFd, message: &GateFsMessage) {
        // Its fields are truncated, so it always fits. If it were lost, its call would wait forever; when the server
        // ends, so do all calls.
        let Ok(packet) = palisade_wire::encode(message) else { proc::exit_now(1) };
        self.outbox.push_back(packet);
        self.flush(supervisor);
    }
}
