//! Declared tools (TOOL-1): where their declarations are, who trusts and approves them, and what a call of one is answered with.
//!
//! A declaration that a command could have written declares nothing until a person has trusted it, and none approves anything.

mod approvals;
mod built_in_files;
mod declared;
mod result;
mod violation;

pub use approvals::{MissingApproval, ToolApprovals, missing_approvals, with_approvals};
pub use built_in_files::{FileAnswer, carry_out, replaced_text};
pub use declared::{
    DeclaredTool, Ignored, IgnoredBecause, ToolOrigin, ToolSet, declare, find, load,
    refuse_changed, remove, request_of,
};
pub use result::{ToolOutput, ToolResult, ToolTransaction};
pub use violation::{Violation, ViolationKind};
