//! Loads configuration files of other programs into our own document (POL-3).
//!
//! A loader translates and must not decide: a setting without a counterpart becomes a refusal, a contradiction
//! becomes a warning, and an unknown key is an error as everywhere else.

mod agent_tools;
mod cargo_runner;
mod environment;
mod foreign;
mod proxy;
mod sandbox_runtime;

use crate::decode::document::PolicyDocument;
use crate::decode::parse;
use crate::diagnostic::Diagnostic;
use crate::syntax::tree::Format;
use crate::syntax::tree::{Node, Tree};
use serde::Serialize;
use std::net::SocketAddr;

pub use environment::{NAMES as ENVIRONMENT_NAMES, load_environment};

/// The program that a file belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// Our own document.
    Palisade,
    /// `{"sandbox": {"bash": …, "images": …}}`.
    AgentTools,
    /// An egress proxy's `allowlist` and `blocklist`.
    Proxy,
    /// `sandbox_config:` and the sections that belong to it.
    CargoRunner,
    /// Anthropic sandbox-runtime settings, alone or inside a Claude Code settings file.
    SandboxRuntime,
    /// `SANDBOX_*` variables.
    Environment,
}

/// A document, its source, and warnings about parts that do not do what they seem to do.
#[derive(Clone, Debug)]
pub struct LoadedDocument {
    pub kind: SourceKind,
    pub document: PolicyDocument,
    pub warnings: Vec<Diagnostic>,
    /// Where the file wants its own proxy to listen. A run ignores it.
    pub listen: Option<SocketAddr>,
}

/// Loads a file of any known kind. The kind is recognized by its keys.
pub fn load(text: &str, file: &str) -> Result<LoadedDocument, Vec<Diagnostic>> {
    let node = parse::read_tree(text, file, Format::of(file))?;
    match kind_of(&node) {
        SourceKind::AgentTools => agent_tools::load(&node, file),
        SourceKind::Proxy => proxy::load(&node, file),
        SourceKind::CargoRunner => cargo_runner::load(&node, file),
        SourceKind::SandboxRuntime => sandbox_runtime::load(&node, file),
        kind @ (SourceKind::Palisade | SourceKind::Environment) => {
            let document = parse::decode(&node, file)?;
            Ok(LoadedDocument { kind, document, warnings: Vec::new(), listen: None })
        }
    }
}

fn kind_of(node: &Node) -> SourceKind {
    let has = |node: &Node, keys: &[&str]| keys.iter().any(|key| node.get(key).is_some());
    let within = |section: &str, keys: &[&str]| node.get(section).is_some_and(|s| has(s, keys));
    if has(node, cargo_runner::SECTIONS) {
        SourceKind::CargoRunner
    } else if has(node, &["allowlist", "blocklist"]) {
        SourceKind::Proxy
    } else if within("sandbox", agent_tools::SECTIONS) {
        SourceKind::AgentTools
    } else if is_mapping(node.get("sandbox"))
        || is_mapping(node.get("permissions"))
        || within("network", sandbox_runtime::NETWORK_MARKS)
        || within("filesystem", sandbox_runtime::FILESYSTEM_MARKS)
        || has(node, sandbox_runtime::TOP_MARKS)
    {
        SourceKind::SandboxRuntime
    } else {
        SourceKind::Palisade
    }
}

fn is_mapping(node: Option<&Node>) -> bool {
    node.is_some_and(|node| matches!(node.tree, Tree::Map(_)))
}

#[cfg(test)]
#[path = "loaders_tests.rs"]
mod tests;
