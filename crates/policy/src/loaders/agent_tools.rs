//! `{"sandbox": {"bash": {…}, "images": {…}}}`: an agent's settings for its tools.

use super::foreign::{Field, Foreign};
use super::{LoadedDocument, SourceKind};
use crate::decode::document::PolicyDocument;
use crate::diagnostic::Diagnostic;
use crate::settings::Settings;
use crate::syntax::tree::Node;

pub(super) const SECTIONS: &[&str] = &["bash", "read", "write", "edit", "web_fetch", "images"];

const TOOL_KEYS: [&str; 12] = [
    "defaultNetwork",
    "proxyAllowlist",
    "resources",
    "env",
    "allowedEnvVars",
    "cwd",
    "allowedPaths",
    "blockedPaths",
    "timeout",
    "maxOutputSize",
    "uid",
    "gid",
];

pub(super) fn load(node: &Node, file: &str) -> Result<LoadedDocument, Vec<Diagnostic>> {
    let mut foreign = Foreign::new(file);
    let mut document = PolicyDocument::default();
    for top in foreign.fields(node, "", &["sandbox"]) {
        for section in foreign.fields(top.node(), &top.path, SECTIONS) {
            if section.name() == "images" {
                if !foreign.any_fields(section.node(), &section.path).is_empty() {
                    foreign.refuse(&section, "container images are not supported yet");
                }
                continue;
            }
            let mut part = Settings::new();
            for field in foreign.fields(section.node(), &section.path, &TOOL_KEYS) {
                tool_key(&mut foreign, &field, &mut part);
            }
            document.tools.insert(section.name().to_owned(), part);
        }
    }
    foreign.finish(SourceKind::AgentTools, document)
}

fn tool_key(foreign: &mut Foreign, field: &Field<'_>, part: &mut Settings) {
    match field.name() {
        "defaultNetwork" => foreign.copy(field, "network.mode", part),
        "proxyAllowlist" => {
            foreign.copy(field, "network.allowedHosts", part);
            foreign.warn_of_blocked(field, &[], part);
        }
        "resources" => {
            for limit in foreign.fields(field.node(), &field.path, &["memory", "timeout", "cpus"]) {
                let path = match limit.name() {
                    "memory" => "resources.maxMemory",
                    "timeout" => "resources.timeout",
                    _ => "resources.cpus",
                };
                foreign.copy(&limit, path, part);
            }
        }
        "env" => foreign.copy(field, "process.envMode", part),
        "allowedEnvVars" => foreign.copy(field, "process.allowedEnvVars", part),
        "cwd" => foreign.copy(field, "process.cwd", part),
        "allowedPaths" => foreign.copy(field, "filesystem.readWritePaths", part),
        "blockedPaths" => foreign.copy(field, "filesystem.deniedPaths", part),
        "timeout" => foreign.copy(field, "resources.timeout", part),
        "maxOutputSize" => foreign.copy(field, "resources.maxOutputSize", part),
        "uid" => foreign.copy(field, "process.uid", part),
        _ => foreign.copy(field, "process.gid", part),
    }
}
