//! Traces and metrics of runs, sent by OTLP to a collector of the user's (TEL-1).
//!
//! Events of the audit log become spans ([`Tracer`]); a process of its own sends them ([`Exporter`] starts it, [`SenderStage`] is it).
//! Nothing may depend on it: a collector that is slow, gone or hostile costs spans, and never a run's time or result. What a command
//! wrote, its arguments and its variables must never get into a span unless the user asked for command lines.
#![forbid(unsafe_code)]

mod attributes;
mod encode;
mod exporter;
mod json;
mod message;
mod model;
mod protobuf;
mod sender;
mod settings;
mod tracer;

pub use attributes::names;
pub use exporter::{Exporter, Loss, absolute_file, is_setting};
pub use model::{Attribute, Span, SpanKind, SpanStatus, Value, now};
pub use sender::SenderStage;
pub use settings::{Settings, SettingsError};
pub use tracer::{Tracer, TracerOptions};
