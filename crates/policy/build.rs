//! Compiles the shipped presets, `resources/presets/*.yaml`, into the trees that the parser would produce, so
//! that no run has to parse them and a preset that is not valid YAML stops the build.

#[expect(
    dead_code,
    unreachable_pub,
    reason = "a module of the crate, needed here for reading alone"
)]
#[path = "src/syntax/tree.rs"]
mod tree;

use std::path::{Path, PathBuf};
use std::{env, fs};
use tree::{Entry, Format, Node, Position, Tree};

/// In the order they are listed.
const PRESETS: [&str; 16] = [
    "default",
    "tool",
    "bash",
    "read",
    "write",
    "edit",
    "web_fetch",
    "read-only",
    "node",
    "python",
    "rust",
    "go",
    "cargo",
    "agent",
    "minimal",
    "strict",
];

fn main() -> Result<(), String> {
    let variable = |name: &str| env::var(name).map(PathBuf::from).map_err(|e| e.to_string());
    let resources = variable("CARGO_MANIFEST_DIR")?.join("../../resources/presets");
    println!("cargo::rerun-if-changed=src/syntax/tree.rs");
    let presets: Result<Vec<String>, String> =
        PRESETS.iter().map(|name| preset(name, &resources.join(format!("{name}.yaml")))).collect();
    let out = variable("OUT_DIR")?.join("presets.rs");
    fs::write(&out, listed(presets?.into_iter())).map_err(|e| format!("{}: {e}", out.display()))
}

fn preset(name: &str, path: &Path) -> Result<String, String> {
    let file = path.display();
    println!("cargo::rerun-if-changed={file}");
    let text = fs::read_to_string(path).map_err(|error| format!("{file}: {error}"))?;
    let read = tree::read(&text, Format::Yaml).map_err(|error| {
        let Position { line, column } = error.at;
        format!("{file}:{line}:{column}: {}", error.message)
    })?;
    Ok(format!("Preset {{ name: {name:?}, text: {text:?}, node: || {} }}", node(&read)))
}

fn node(node: &Node) -> String {
    let value = match &node.tree {
        Tree::Text(text) => format!("Text({text:?}.to_owned())"),
        Tree::List(items) => format!("List(vec!{})", listed(items.iter().map(self::node))),
        Tree::Map(entries) => format!("Map(vec!{})", listed(entries.iter().map(entry))),
        // The others are written as they are shown.
        plain => format!("{plain:?}"),
    };
    format!("Node {{ tree: Tree::{value}, at: {:?} }}", node.at)
}

fn entry(Entry { key, at, value }: &Entry) -> String {
    format!("Entry {{ key: {key:?}.to_owned(), at: {at:?}, value: {} }}", node(value))
}

fn listed(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}
