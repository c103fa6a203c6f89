//! Errors while a plan is carried out, with what to do about them. Must stay plain text and numbers: the child
//! sends them over a socket before it exits.

use palisade_sys::SysError;
use palisade_wire::{Truncated, WireError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Limits on the texts of an error that is sent. A detail holds a path and the words around it; together they fit into
/// one message.
const MAX_STEP: usize = 256;
const MAX_DETAIL: usize = 6 * 1024;
const MAX_FIX_BYTES: usize = 1536;

/// What kind of failure it was; decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureKind {
    /// The host refused, or this program failed: exit 125.
    Ours,
    /// The command cannot be executed: exit 126.
    NotExecutable,
    /// The command is not there: exit 127.
    NotFound,
    /// The self-check found a layer missing: exit 125.
    LayerMissing,
}

pub(crate) type Result<T, E = LaunchError> = std::result::Result<T, E>;

/// A step of the launch that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchError {
    /// What was being done, in a few words: `building the mount view`.
    #[serde(with = "Truncated::<MAX_STEP>")]
    pub step: String,
    /// The call, its subject and the errno.
    #[serde(with = "Truncated::<MAX_DETAIL>")]
    pub detail: String,
    /// What to do about it, where that is known.
    #[serde(with = "Truncated::<MAX_FIX_BYTES>")]
    pub fix: Option<String>,
    pub kind: FailureKind,
}

impl LaunchError {
    pub(crate) fn new(step: &str, detail: impl Into<String>) -> Self {
        Self { step: step.to_owned(), detail: detail.into(), fix: None, kind: FailureKind::Ours }
    }

    pub(crate) fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    pub(crate) fn with_kind(mut self, kind: FailureKind) -> Self {
        self.kind = kind;
        self
    }

    /// The exit code `sandbox run` ends with.
    pub fn exit_code(&self) -> i32 {
        match self.kind {
            FailureKind::Ours | FailureKind::LayerMissing => 125,
            FailureKind::NotExecutable => 126,
            FailureKind::NotFound => 127,
        }
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.step, self.detail)?;
        match &self.fix {
            Some(fix) => write!(out, "; {fix}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for LaunchError {}

/// Names the step that a failed call belongs to.
pub(crate) trait During<T> {
    fn during(self, step: &str) -> Result<T>;
}

impl<T> During<T> for Result<T, SysError> {
    fn during(self, step: &str) -> Result<T> {
        self.map_err(|error| {
            let launch = LaunchError::new(step, error.to_string());
            match crate::remedy::for_call(&error) {
                Some(fix) => launch.with_fix(fix),
                None => launch,
            }
        })
    }
}

impl<T> During<T> for Result<T, WireError> {
    fn during(self, step: &str) -> Result<T> {
        match self {
            Err(WireError::System(error)) => Err(error).during(step),
            Err(error) => Err(LaunchError::new(step, error.to_string())),
            Ok(value) => Ok(value),
        }
    }
}
