//! Many documents into one policy, with the place every value came from.
//!
//! Order: built-in, organisation, project, user, environment, command line; a later layer wins.
//! Lists add up, and an empty list clears what stood before, as in systemd.unit(5); deny-lists only
//! ever grow. Two rules stand above the order: no layer loosens what the organisation locked, and a
//! file that commands could have written only tightens unless it is trusted.

use crate::contradictions;
use crate::diagnostic::Diagnostic;
use crate::document::PolicyDocument;
use crate::model::Policy;
use crate::permission;
use crate::settings::Settings;
use crate::stack::Stack;
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
    fn rank(self) -> u8 {
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
pub struct Layer {
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

/// Merges the layers, in whatever order they are given, over the built-in one.
pub fn merge(subject: &Subject, layers: Vec<Layer>) -> Result<Merged, Vec<Diagnostic>> {
    let mut layers = layers;
    layers.sort_by_key(|layer| layer.kind.rank());
    let mut stack = Stack::new(subject);
    stack.built_in();
    let built_in = stack.settings.clone();
    let mut organisation = None;
    for layer in &layers {
        stack.layer(layer);
        if layer.kind == LayerKind::Organisation {
            stack.lock(&layer.document.locks);
            let own: &mut Settings = organisation.get_or_insert_default();
            own.extend(layer.document.settings.clone());
            if let Subject::Tool(name) = subject {
                own.extend(layer.document.tools.get(name).cloned().unwrap_or_default());
            }
        }
    }
    stack.hold_to_maximum();
    if stack.problems.is_empty() {
        stack.problems.extend(contradictions::in_the_end(&stack.settings));
        let asked =
            permission::Asked { subject, built_in: &built_in, organisation: organisation.as_ref() };
        match permission::check(&asked, &stack.settings) {
            Ok(recorded) => stack.record(recorded),
            Err(problems) => stack.problems.extend(problems),
        }
    }
    stack.finish()
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
