//! What follows from what happened: carried out by [`super::Gate`], in order.

use palisade_ask::{Decided, QuestionId};
use palisade_broker::AccessReply;
use palisade_gate::Rule;
use palisade_keeper::KeeperRequest;
use std::os::fd::OwnedFd;

/// What is to be done, in this order.
#[derive(Debug)]
pub(super) enum Action {
    Keeper(KeeperRequest),
    Broker(AccessReply, Option<OwnedFd>),
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
