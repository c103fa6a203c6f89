//! What a run and its sender say to each other.

use crate::model::{Metric, Nanoseconds, Span};
use palisade_wire::WireMessage;
use serde::{Deserialize, Serialize};

/// From the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum ToSender {
    Span(Box<Span>),
    Metrics { metrics: Vec<Metric>, start: Nanoseconds, end: Nanoseconds },
}

impl WireMessage for ToSender {
    /// A span has at most a few hundred short texts; what is larger is not sent.
    const MAX_BYTES: usize = 128 << 10;
}

/// From the sender: what it could not get rid of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotSent {
    /// Spans, and sets of metrics.
    pub(crate) count: u64,
    pub(crate) why: String,
}

impl WireMessage for NotSent {
    const MAX_BYTES: usize = 4096;
}
