//! Types that all steps of the merge share: layers, the subject of the policy, and the result.

use crate::decode::document::PolicyDocument;
use crate::diagnostic::Diagnostic;
use crate::model::Policy;
use crate::settings::Settings;
use palisade_gate::Store;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// The origin of a document, which determines its order and its trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    BuiltIn,
    Organisation,
    Project(Trust),
    /// The declaration of the tool that runs. It approves nothing, wherever its file is.
    Declaration,
    User,
    /// A file given as the user's own that a command of an earlier run could have written: the file, or a link
    /// on the way to it, is in a project or a cache.
    Writable(Trust),
    Environment,
    CommandLine,
}

/// Whether the user has trusted the current contents of a file that commands could write.
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
            LayerKind::Declaration => "tool declaration",
            LayerKind::User => "user",
            LayerKind::Writable(_) => "file",
            LayerKind::Environment => "environment",
            LayerKind::CommandLine => "command line",
        }
    }

    /// The position in the order. Layers of the same rank keep the order in which they were given.
    pub(super) fn rank(self) -> u8 {
        match self {
            LayerKind::BuiltIn => 0,
            LayerKind::Organisation => 1,
            LayerKind::Project(_) => 2,
            LayerKind::Declaration => 3,
            LayerKind::User | LayerKind::Writable(_) => 4,
            LayerKind::Environment => 5,
            LayerKind::CommandLine => 6,
        }
    }

    /// Whether others could have written it, so that it cannot approve anything on the user's behalf.
    pub(crate) fn is_writable(self) -> bool {
        matches!(self, LayerKind::Project(_) | LayerKind::Writable(_) | LayerKind::Declaration)
    }

    /// Whether it may only tighten.
    pub fn is_untrusted(self) -> bool {
        matches!(self, LayerKind::Project(Trust::Untrusted) | LayerKind::Writable(Trust::Untrusted))
    }
}

#[derive(Clone, Debug)]
pub struct PolicyLayer {
    pub kind: LayerKind,
    pub document: PolicyDocument,
}

/// What the policy is for. Determines the built-in layer and the required approvals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A user's own `sandbox run`.
    Run,
    /// A declared tool.
    Tool(String),
}

/// The layer that set a value, and where.
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
    /// By key path. A list that several layers extended has one entry for each.
    pub provenance: BTreeMap<&'static str, Vec<Provenance>>,
    /// What an untrusted project asked for and did not get, and unknown tool names.
    pub notes: Vec<Diagnostic>,
    pub(crate) settings: Settings,
    /// Requests of loaded files for which there is no policy key.
    pub(crate) refused: Vec<Diagnostic>,
}

/// The store of a layer's rules.
pub(crate) fn store_of(kind: LayerKind) -> Store {
    match kind {
        LayerKind::Organisation => Store::Organisation,
        LayerKind::Project(_) => Store::Project,
        LayerKind::BuiltIn
        | LayerKind::Declaration
        | LayerKind::User
        | LayerKind::Writable(_)
        | LayerKind::Environment
        | LayerKind::CommandLine => Store::User,
    }
}
