//! Sandboxes over HTTP: `sandbox serve`. Other faces stand on the same operations ([`Operations`]).
//!
//! The service holds no sandbox. Each session has a supervisor of its own, and is found by its directory, so a server that is
//! killed loses nothing, and another one goes on where it was. This process has threads: it must never fork or set up a
//! sandbox. Whatever does that is our own program, started anew ([`own_program`]). Commands are started by requests at the
//! session's own socket ([`control`]).
#![forbid(unsafe_code)]
#![allow(unused_qualifications, reason = "utoipa's macro names its parameters in full")]

mod approvals;
mod audit;
mod auth;
mod caller_span;
mod checkpoints;
mod commands;
mod control;
mod counters;
mod documents;
mod encoding;
mod error;
mod extract;
mod face_host;
mod file_places;
mod files;
mod health;
mod idempotency;
mod limits;
mod listen;
mod logins;
mod loopback;
mod loopback_peer;
mod metrics;
mod operations;
mod own_program;
mod page;
mod problem;
pub mod random;
mod recordings;
mod routes;
mod runs;
mod sandboxes;
mod secret;
mod server;
mod service;
mod stream;
mod tool_documents;
mod tools;
mod transactions;
mod usage;
mod warm;

pub use approvals::{ApprovalAnswer, Decision, Lifetime, Scope, Store};
pub use audit::{AuditPage, AuditQuery};
pub use caller_span::CallerSpan;
pub use checkpoints::{CheckpointPurpose, RollbackRequest};
pub use commands::{Command, CommandState, KeptOutput, NewCommand, Size};
pub use control::ControlConnection;
pub use error::ServiceError;
pub use face_host::{FaceHost, MountedFace};
pub use files::{Content, GivenUp, NEW_FILE};
pub use limits::{CLIENT_TIMEOUT, drain_later};
pub use listen::{ListenAddress, TlsFiles};
pub use loopback::LoopbackServer;
pub use operations::Operations;
pub use own_program::{HeldSandbox, Lines};
pub use problem::{Problem, ProblemKind};
pub use routes::document;
pub use sandboxes::{AskPeople, NewSandbox, Sandbox, SandboxStatus, Transaction};
pub use server::{Face, Listening, ServeOptions, serve, serve_face};
pub use tools::ToolToRun;
pub use transactions::{ApplyRequest, DiffFormat, DiffQuery, OnConflict};
pub use warm::MAX_WARM;
