//! A sandbox for clients of the Model Context Protocol: `sandbox mcp`.
//!
//! The tools are the operations of the service crate, so that what a model does by them obeys the plan that every command obeys. This process has
//! threads: it makes no sandbox itself. What comes from a client, and what a command wrote, is untrusted.
#![forbid(unsafe_code)]

mod asking;
mod call;
mod calls;
pub mod clients;
mod context;
mod denials;
mod elicitation;
mod error;
mod in_flight;
mod options;
mod pages;
mod parked;
mod questions;
mod sandbox;
mod server;
mod serving;
mod spans;
mod state;
mod tasks;
mod text;
mod tools;
pub mod wrap;

pub use error::McpError;
pub use options::{AskWhom, McpOptions, OfferedTool, WhichSandbox};
pub use serving::{serve_http, serve_streams};
pub use tools::is_own_tool;
