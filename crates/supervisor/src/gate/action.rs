//! What follows from what happened: carried out by [`super::Gate`], in order.

use palisade_ask::{Decided, QuestionId};
use palisade_gate::AccessReply;
use palisade_gate::Rule;
use palisade_keeper::KeeperRequest;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// What is to be done, in this order.
#[derive(Debug)]
pub(super) enum Action {
    Keeper(KeeperRequest),
    /// To whoever noticed the access.
    Reply(AccessReply, Option<OwnedFd>),
    /// The host's file or directory is in its place, at this path.
    Shown(PathBuf),
    /// What was shown at this path is gone; whether something is still shown below it.
    Hidden {
        path: PathBuf,
        is_name_kept: bool,
    },
    /// All that this revocation is about is gone.
    Revoked(u64),
    /// For the audit log.
    Record(palisade_record::EventKind),
    /// People should see this question.
    Opened(QuestionId),
    /// More calls wait for this question.
    Joined(QuestionId),
    /// Nobody needs to answer it any more.
    Closed(Box<Decided>),
    /// Somebody answered for good.
    Save(Box<Rule>, palisade_ask::Store),
    /// What was promised cannot be kept.
    EndRun(String),
}
