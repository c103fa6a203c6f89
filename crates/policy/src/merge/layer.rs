//! Types that all steps of the merge share: a layer, the subject of the policy, and the result.

use crate::decode::document::PolicyDocument;
use crate::diagnostic::Diagnostic;
use crate::model::Policy;
use crate::settings::Settings;
use palisade_gate::Store;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Where a document stands in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    BuiltIn,
    Organisation,
    Project(Trust),
    User,
    /// A file in the user's place that a command of an earlier run could have written: it lies in a project or a
    /// cache, or a link on the way to it does.
    Writable(Trust),
    Environment,
    CommandLine,
}

/// Whether the user has trusted a file that commands could write, as it now is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    Trusted,
    Untrusted,
}

impl LayerKind {
    pub fn name(self) -> &'static str {
        match self {
            LayerKind::BuiltIn => "built-in",
            LayerKind::Organisation => "organisation",
            LayerKind::Project(_) => "project",
            LayerKind::User => "user",
            LayerKind::Writable(_) => "file",
            LayerKind::Environment => "environment",
            LayerKind::CommandLine => "command line",
        }
    }

    /// Its place in the order; layers of one place stay as they were given.
    pub(super) fn rank(self) -> u8 {
        match self {
            LayerKind::BuiltIn => 0,
            LayerKind::Organisation => 1,
            LayerKind::Project(_) => 2,
            LayerKind::User | LayerKind::Writable(_) => 3,
            LayerKind::Environment => 4,
            LayerKind::CommandLine => 5,
        }
    }

    /// Whether commands could have written it, so that it answers for nothing on its user's behalf.
    pub(crate) fn is_writable(self) -> bool {
        matches!(self, LayerKind::Project(_) | LayerKind::Writable(_))
    }

    /// Whether it can only tighten.
    pub fn is_untrusted(self) -> bool {
        matches!(self, LayerKind::Project(Trust::Untrusted) | LayerKind::Writable(Trust::Untrusted))
    }
}

#[derive(Clone, Debug)]
pub struct PolicyLayer {
    pub kind: LayerKind,
    pub document: PolicyDocument,
}

/// What the policy is for: it decides the built-in layer and which approvals are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A person's own `sandbox run`.
    Run,
    /// A declared tool.
    Tool(String),
}

/// Which layer gave a value, and where it is written there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Provenance {
    pub layer: &'static str,
    /// A file, a preset (`preset bash`), a flag or a variable.
    pub file: String,
    /// 0 for flags and variables.
    pub line: usize,
}

impl fmt::Display for Provenance {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}, {}", self.layer, self.file),
            line => write!(out, "{}, {}:{line}", self.layer, self.file),
        }
    }
}

/// The result of all layers.
#[derive(Clone, Debug)]
pub struct Merged {
    pub policy: Policy,
    /// By key path. A list that several layers added to has one entry for each.
    pub provenance: BTreeMap<String, Vec<Provenance>>,
    /// What an untrusted project asked for and did not get, and a tool that nobody knows.
    pub notes: Vec<Diagnostic>,
    pub(crate) settings: Settings,
    /// Wishes of loaded files for which there is no policy key.
    pub(crate) refused: Vec<Diagnostic>,
}

/// Which store a layer's rules belong to.
pub(crate) fn store_of(kind: LayerKind) -> Store {
    match kind {
        LayerKind::Organisation => Store::Organisation,
        LayerKind::Project(_) => Store::Project,
        LayerKind::BuiltIn
        | LayerKind::User
        | LayerKind::Writable(_)
        | LayerKind::Environment
        | LayerKind::CommandLine => Store::User,
    }
}
