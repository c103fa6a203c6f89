//! The two requests of OTLP, in Protocol Buffers: `ExportTraceServiceRequest` and `ExportMetricsServiceRequest`. Field numbers are those of
//! opentelemetry-proto 1.x.

use crate::model::{
    Attribute, Metric, MetricData, MetricPoint, Nanoseconds, Span, SpanStatus, Value,
};
use crate::protobuf::Message;

/// What all spans and metrics of one request have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Resource(pub(crate) Vec<Attribute>);

/// Who made them.
pub(crate) const SCOPE: &str = "palisade";
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// `AGGREGATION_TEMPORALITY_DELTA`: a run counts its own and is gone, so that nobody could go on adding.
pub(crate) const DELTA: u8 = 1;
/// `STATUS_CODE_ERROR`
pub(crate) const ERROR: u8 = 2;
/// Bit 0 is `sampled` of W3C Trace Context.
pub(crate) const SAMPLED: u32 = 1;

pub(crate) fn traces(resource: &Resource, spans: &[Span]) -> Vec<u8> {
    let mut request = Message::default();
    request.message(1, |all| {
        all.message(1, |message| attributes(message, 1, &resource.0));
        all.message(2, |scoped| {
            scoped.message(1, scope);
            spans.iter().for_each(|one| scoped.message(2, |message| span(message, one)));
        });
    });
    request.into_bytes()
}

pub(crate) fn metrics(
    resource: &Resource,
    metrics: &[Metric],
    (start, end): (Nanoseconds, Nanoseconds),
) -> Vec<u8> {
    let mut request = Message::default();
    request.message(1, |all| {
        all.message(1, |message| attributes(message, 1, &resource.0));
        all.message(2, |scoped| {
            scoped.message(1, scope);
            for one in metrics {
                scoped.message(2, |message| metric(message, one, (start, end)));
            }
        });
    });
    request.into_bytes()
}

fn scope(message: &mut Message) {
    message.text(1, SCOPE);
    message.text(2, VERSION);
}

fn attributes(message: &mut Message, field: u64, all: &[Attribute]) {
    for attribute in all {
        message.message(field, |pair| {
            pair.text(1, &attribute.name);
            pair.message(2, |value| match &attribute.value {
                // Even an empty one: the value would otherwise have no kind.
                Value::Text(text) => value.bytes(1, text.as_bytes()),
                Value::Flag(flag) => value.number(2, u64::from(*flag)),
                Value::Number(number) => value.number(3, number.cast_unsigned()),
            });
        });
    }
}

fn span(message: &mut Message, span: &Span) {
    message.bytes(1, &span.trace);
    message.bytes(2, &span.id);
    message.text(3, &span.state);
    if let Some(parent) = &span.parent {
        message.bytes(4, parent);
    }
    message.text(5, &span.name);
    message.number(6, span.kind as u64);
    message.fixed_64(7, span.start);
    message.fixed_64(8, span.end);
    attributes(message, 9, &span.attributes);
    for event in &span.events {
        message.message(11, |message| {
            message.fixed_64(1, event.at);
            message.text(2, &event.name);
            attributes(message, 3, &event.attributes);
        });
    }
    if let SpanStatus::Error(why) = &span.status {
        message.message(15, |status| {
            status.text(2, why);
            status.number(3, ERROR.into());
        });
    }
    message.fixed_32(16, SAMPLED);
}

fn metric(message: &mut Message, metric: &Metric, times: (Nanoseconds, Nanoseconds)) {
    message.text(1, &metric.name);
    message.text(2, &metric.help);
    message.text(3, &metric.unit);
    let is_histogram =
        metric.points.iter().any(|point| matches!(point.data, MetricData::Histogram { .. }));
    // 7: a sum, 9: a histogram.
    message.message(if is_histogram { 9 } else { 7 }, |data| {
        for one in &metric.points {
            data.message(1, |message| point(message, one, times));
        }
        data.number(2, DELTA.into());
        if !is_histogram {
            // It only grows.
            data.number(3, 1);
        }
    });
}

fn point(message: &mut Message, point: &MetricPoint, (start, end): (Nanoseconds, Nanoseconds)) {
    message.fixed_64(2, start);
    message.fixed_64(3, end);
    match &point.data {
        MetricData::Whole(count) => {
            message.fixed_64(6, *count);
            attributes(message, 7, &point.attributes);
        }
        MetricData::Fraction(value) => {
            message.double(4, *value);
            attributes(message, 7, &point.attributes);
        }
        MetricData::Histogram { bounds, buckets, sum } => {
            message.fixed_64(4, buckets.iter().sum());
            message.double(5, *sum);
            message.packed_64(6, buckets.iter().copied());
            message.packed_64(7, bounds.iter().map(|bound| bound.to_bits()));
            attributes(message, 9, &point.attributes);
        }
    }
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
