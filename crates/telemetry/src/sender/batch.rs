//! What waits to be sent in one request. Bounded, whatever comes.

use crate::encode::{self, Resource};
use crate::json;
use crate::message::ToSender;
use crate::model::{Metric, Nanoseconds, Span};
use crate::settings::Protocol;

/// As the standard's `OTEL_BSP_MAX_EXPORT_BATCH_SIZE`.
pub(super) const MAX_SPANS: usize = 512;

#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) spans: Vec<Span>,
    pub(super) metrics: Vec<TimedMetrics>,
}

#[derive(Debug)]
pub(super) struct TimedMetrics {
    metrics: Vec<Metric>,
    times: (Nanoseconds, Nanoseconds),
}

impl Batch {
    pub(super) fn add(&mut self, message: ToSender) {
        match message {
            ToSender::Span(span) => self.spans.push(*span),
            ToSender::Metrics { metrics, start, end } => {
                self.metrics.push(TimedMetrics { metrics, times: (start, end) });
            }
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.spans.len() + self.metrics.len() >= MAX_SPANS
    }
}

pub(super) fn encode_spans(protocol: Protocol, resource: &Resource, spans: &[Span]) -> Vec<u8> {
    match protocol {
        Protocol::HttpProtobuf => encode::traces(resource, spans),
        Protocol::HttpJson => json::traces(resource, spans),
    }
}

pub(super) fn encode_metrics(
    protocol: Protocol,
    resource: &Resource,
    TimedMetrics { metrics, times }: &TimedMetrics,
) -> Vec<u8> {
    match protocol {
        Protocol::HttpProtobuf => encode::metrics(resource, metrics, *times),
        Protocol::HttpJson => json::metrics(resource, metrics, *times),
    }
}
