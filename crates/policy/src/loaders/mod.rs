//! Loads configuration files of other programs into our own document (POL-3).
//!
//! A loader translates and decides nothing: what has no counterpart here becomes a refusal, what contradicts
//! itself becomes a warning, and an unknown key is an error as everywhere.

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

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// Our own document.
    Palisade,
    /// `{"sandbox": {"bash": …, "images": …}}`.
    AgentTools,
    /// An egress proxy's `allowlist` and `blocklist`.
    Proxy,
    /// `sandbox_config:` and the sections that go with it.
    CargoRunner,
    /// Anthropic sandbox-runtime settings, alone or inside a Claude Code settings file.
    SandboxRuntime,
    /// `SANDBOX_*` variables.
    Environment,
}

/// A document, whose it was, and what in it does not do what it seems to.
#[derive(Clone, Debug)]
pub struct LoadedDocument {
    pub kind: SourceKind,
    pub document: PolicyDocument,
    pub warnings: Vec<Diagnostic>,
    /// Where the file wants a proxy of its own to listen; a run has nothing to do with it.
    pub listen: Option<SocketAddr>,
}

/// Loads any known kind of file, told apart by its shape.
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
