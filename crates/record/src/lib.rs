//! Records what happened: events, the tamper-evident audit log, the report of one run, and metrics.
//!
//! It knows only events. It must never decide or start anything, and depends on no other crate of the workspace, so
//! that all of them can use it.
#![forbid(unsafe_code)]

mod audit;
mod cache_events;
pub mod cast;
mod chain;
mod checkpoint_events;
mod command_digest;
mod decision;
mod digest;
mod error;
pub mod escape;
mod escape_response;
mod event;
mod event_name;
mod export;
mod fault;
mod files;
mod head;
pub mod indicators;
mod malformed;
pub mod metrics;
pub mod network;
mod network_report;
mod outcome;
mod place;
mod reading;
pub mod redact;
mod report;
mod report_file;
mod report_text;
mod rotation;
mod session_event;
mod severity;
mod span_context;
mod state;
mod verify;

pub use audit::{Appended, AuditLog, Recovery};
pub use cache_events::CacheWritesLost;
pub use chain::Record;
pub use checkpoint_events::{CheckpointMade, RolledBack, SessionForked};
pub use command_digest::CommandDigest;
pub use decision::Decision;
pub use digest::Digest;
pub use error::RecordError;
pub use escape_response::{
    AlertResult, EscapeAction, EscapeReport, EscapeResponded, Quarantined, Released, RollBack,
    SeenIndicator, SeenProcess,
};
pub use event::{
    AccessDecided, AccessRevoked, Approval, Created, Destroyed, Entered, EscapeAttempt, Event,
    EventKind, EventsSummed, Executed, Exited, LimitExceeded, LogLevel, PolicyViolation, Run,
    SignalForwarded, SyscallBlocked, Validated,
};
pub use export::{ExportHeader, export, verify_export};
pub use network_report::{
    DeniedHost, NetworkReport, OtherHosts, QueriesReport, ReachedHost, SuspectedName,
};
pub use outcome::{ErrorKind, Failure, Outcome};
pub use reading::{Records, read, read_on, sandboxes};
pub use report::{
    BlockedCalls, DiscardedFiles, LimitReport, Observed, OfflineAttempts, Planned, ProbeReport,
    PromiseReport, ProtectedWrite, Reached, RefusedExecution, ReportedConfinement,
    ReportedIdentity, ReportedUsage, RunReport, SavedAnswer, TouchedPath, UnaskedQuestions,
    Versions,
};
pub use report_file::ReportFile;
pub use rotation::Rotation;
pub use session_event::{
    ChangesApplied, ChangesDiscarded, ChangesHeld, EndingCause, FileOperation, SessionClaimed,
    SessionEnding, SessionExec, SessionExecEnded, SessionExtended,
};
pub use severity::{Indicator, Severity};
pub use span_context::SpanContext;
pub use state::{State, WrongOrder};
pub use verify::{LogFault, Verified, VerifyError, verify};
