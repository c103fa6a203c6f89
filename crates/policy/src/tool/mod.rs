//! Declarations of tools: what a tool is called, takes and runs, and under which policy (TOOL-1).
//!
//! Like the rest of this crate it does no I/O. It must never make an option of a program out of a value that a caller gave:
//! see [`template`].

mod built_in;
mod call;
mod declaration;
mod input;
mod pattern;
mod template;

pub use built_in::BuiltIn;
pub use call::{CallError, ToolCall, Work};
pub use declaration::{Action, ToolDeclaration, declared_name, parse_tool};
pub use input::{InputError, InputSchema, InputValues};
pub use pattern::{CommandPatterns, PatternError};
pub use template::{CommandTemplate, TemplateError};
