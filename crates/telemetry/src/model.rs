//! Spans and metrics as OTLP has them, before they are encoded. Text has a limit here, so that everything after this is bounded.

use palisade_record::SpanContext;
use palisade_record::metrics::{Data, Measure, Measured};
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// Of one text. A cut text is still useful, and a collector refuses what is too long.
const MAX_TEXT: usize = 1024;
/// Of one span.
const MAX_ATTRIBUTES: usize = 64;
const MAX_EVENTS: usize = 64;

/// Nanoseconds since 1970.
pub(crate) type Nanoseconds = u64;

pub fn now() -> Nanoseconds {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    Text(String),
    Number(i64),
    Flag(bool),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(shortened(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    pub name: String,
    pub value: Value,
}

impl Attribute {
    pub fn new(name: &str, value: impl Into<Value>) -> Self {
        Self { name: shortened(name), value: value.into() }
    }
}

/// The numbers are those of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// Whether it succeeded. OTLP knows "not said", "ok" and "error", and leaves "ok" to people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpanStatus {
    Unset,
    Error(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpanEvent {
    pub name: String,
    pub at: Nanoseconds,
    pub attributes: Vec<Attribute>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    pub trace: [u8; 16],
    pub id: [u8; 8],
    /// None: the first of its trace.
    pub parent: Option<[u8; 8]>,
    /// What vendors added to the trace.
    pub state: String,
    pub name: String,
    pub kind: SpanKind,
    pub start: Nanoseconds,
    pub end: Nanoseconds,
    pub attributes: Vec<Attribute>,
    pub events: Vec<SpanEvent>,
    pub status: SpanStatus,
}

impl Span {
    pub fn new(
        name: &str,
        context: &SpanContext,
        parent: Option<&SpanContext>,
        (start, end): (Nanoseconds, Nanoseconds),
    ) -> Self {
        Self {
            trace: *context.trace_id(),
            id: *context.span_id(),
            parent: parent.map(|parent| *parent.span_id()),
            state: String::new(),
            name: shortened(name),
            kind: SpanKind::Internal,
            start,
            // A clock that was set back makes no negative duration.
            end: end.max(start),
            attributes: Vec::new(),
            events: Vec::new(),
            status: SpanStatus::Unset,
        }
    }

    #[must_use]
    pub fn of_kind(mut self, kind: SpanKind) -> Self {
        self.kind = kind;
        self
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.add(name, value);
        self
    }

    pub fn add(&mut self, name: &str, value: impl Into<Value>) {
        if self.attributes.len() < MAX_ATTRIBUTES {
            self.attributes.push(Attribute::new(name, value));
        }
    }

    pub fn add_event(&mut self, event: SpanEvent) {
        if self.events.len() < MAX_EVENTS {
            self.events.push(event);
        }
    }

    /// It failed, for a reason of few words.
    pub fn fail(&mut self, why: &str) {
        self.status = SpanStatus::Error(shortened(why));
    }
}

/// One metric between two times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Metric {
    pub name: String,
    pub help: String,
    /// As in UCUM: `s`, `By`, `1`.
    pub unit: String,
    pub points: Vec<MetricPoint>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MetricPoint {
    pub attributes: Vec<Attribute>,
    pub data: MetricData,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum MetricData {
    Whole(u64),
    Fraction(f64),
    Histogram { bounds: Vec<f64>, buckets: Vec<u64>, sum: f64 },
}

impl Metric {
    /// The name loses what OTLP says elsewhere. An exporter for Prometheus adds it again, so that both ways lead to one name.
    pub(crate) fn of(measure: &Measure) -> Self {
        let (unit, suffix) = match measure.unit {
            Measured::Times => ("1", ""),
            Measured::Bytes => ("By", "_bytes"),
            Measured::Seconds => ("s", "_seconds"),
        };
        let name = measure.name.strip_suffix("_total").unwrap_or(measure.name);
        let name = name.strip_suffix(suffix).unwrap_or(name);
        let points = measure.points.iter().map(|point| MetricPoint {
            attributes: point
                .labels
                .iter()
                .map(|(name, value)| Attribute::new(name, value.as_str()))
                .collect(),
            data: match &point.data {
                Data::Count(count) => MetricData::Whole(*count),
                Data::Seconds(seconds) => MetricData::Fraction(*seconds),
                Data::Histogram { bounds, buckets, sum } => MetricData::Histogram {
                    bounds: bounds.clone(),
                    buckets: buckets.clone(),
                    sum: *sum,
                },
            },
        });
        Self {
            name: name.replacen('_', ".", 1),
            help: measure.help.to_owned(),
            unit: unit.to_owned(),
            points: points.collect(),
        }
    }
}
