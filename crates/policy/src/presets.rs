//! The shipped policies, `resources/presets/*.yaml`, compiled into the binary.

use crate::decode::document::PolicyDocument;
use crate::decode::parse::decode;
use crate::diagnostic::Diagnostic;
use crate::syntax::tree::{Entry, Node, Position, Tree};

#[derive(Clone, Copy, Debug)]
pub struct Preset {
    pub name: &'static str,
    /// The YAML source, as a template for users' own policies.
    pub text: &'static str,
    /// The parsed document, generated at build time: every run needs one before its command can start.
    node: fn() -> Node,
}

const PRESETS: &[Preset] = &include!(concat!(env!("OUT_DIR"), "/presets.rs"));

const ORIGIN: &str = "preset ";
/// Below all layers of a plain run.
pub(crate) const DEFAULT: &str = "default";
/// Above [`DEFAULT`], below all layers of a declared tool.
pub(crate) const TOOL: &str = "tool";
/// Tools with their own shipped values (POL-7).
pub(crate) const NAMED_TOOLS: [&str; 5] = ["bash", "read", "write", "edit", "web_fetch"];

/// Earlier names that policies may still use.
const RENAMED: [(&str, &str); 1] = [("cargo-runner", "cargo")];

pub fn presets() -> &'static [Preset] {
    PRESETS
}

pub fn preset(name: &str) -> Option<&'static Preset> {
    let renamed = RENAMED.iter().find(|(earlier, _)| *earlier == name);
    let name = renamed.map_or(name, |(_, today)| *today);
    PRESETS.iter().find(|preset| preset.name == name)
}

/// Takes the place of a file name in the origin of a preset's values.
pub(crate) fn file_of(name: &str) -> String {
    format!("{ORIGIN}{name}")
}

impl Preset {
    pub fn document(&self) -> Result<PolicyDocument, Vec<Diagnostic>> {
        decode(&(self.node)(), &file_of(self.name))
    }

    /// The one-line description in the file.
    pub fn description(&self) -> String {
        let document = self.document().ok();
        document.and_then(|document| document.description).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "presets_tests.rs"]
mod tests;
