//! Anthropic sandbox-runtime (`srt`) settings, alone or inside a Claude Code settings file.
//!
//! Those settings make everything readable unless denied, and nothing writable unless allowed. That is our
//! static mode with a read-only project.

use super::foreign::{Field, Foreign, texts_under};
use super::{LoadedDocument, SourceKind};
use crate::decode::document::PolicyDocument;
use crate::diagnostic::Diagnostic;
use crate::settings::{Setting, Settings, Value};
use crate::syntax::tree::{Node, Tree};

pub(super) const NETWORK_MARKS: &[&str] = &[
    "allowedDomains",
    "deniedDomains",
    "allowUnixSockets",
    "allowAllUnixSockets",
    "allowLocalBinding",
    "httpProxyPort",
    "socksProxyPort",
];
pub(super) const FILESYSTEM_MARKS: &[&str] =
    &["denyRead", "allowRead", "allowWrite", "denyWrite", "allowGitConfig"];
pub(super) const TOP_MARKS: &[&str] =
    &["ignoreViolations", "enableWeakerNestedSandbox", "mandatoryDenySearchDepth"];

const TOP: [&str; 7] = [
    "network",
    "filesystem",
    "ignoreViolations",
    "enableWeakerNestedSandbox",
    "ripgrep",
    "mandatoryDenySearchDepth",
    "allowPty",
];
/// Keys that a Claude Code settings file adds to its `sandbox` section.
const CLAUDE_CODE: [&str; 5] = [
    "enabled",
    "autoAllowBashIfSandboxed",
    "excludedCommands",
    "allowUnsandboxedCommands",
    "failIfUnavailable",
];

pub(super) fn load(node: &Node, file: &str) -> Result<LoadedDocument, Vec<Diagnostic>> {
    let mut foreign = Foreign::new(file);
    let mut document = PolicyDocument::default();
    let settings = &mut document.settings;
    let mut known = TOP.to_vec();
    known.extend(["sandbox", "permissions", "$schema"]);
    for field in foreign.fields(node, "", &known) {
        match field.name() {
            "sandbox" => {
                let mut inner = TOP.to_vec();
                inner.extend(CLAUDE_CODE);
                for field in foreign.fields(field.node(), &field.path, &inner) {
                    setting(&mut foreign, &field, settings);
                }
            }
            "permissions" => permissions(&mut foreign, &field, settings),
            "$schema" => {}
            _ => setting(&mut foreign, &field, settings),
        }
    }
    let inside_claude_code = node.get("sandbox").is_some() || node.get("permissions").is_some();
    unstated(&foreign, node, inside_claude_code, settings);
    foreign.finish(SourceKind::SandboxRuntime, document)
}

/// The defaults of those programs: everything is readable and nothing is writable, except the working directory
/// in Claude Code.
fn unstated(foreign: &Foreign, node: &Node, inside_claude_code: bool, settings: &mut Settings) {
    let origin = foreign.origin(node.at);
    let mut unless_stated = |path, value| {
        settings.entry(path).or_insert(Setting { value, origin: origin.clone() });
    };
    unless_stated("mode", Value::Word("static"));
    unless_stated("filesystem.caches", Value::Word("off"));
    if !inside_claude_code {
        unless_stated("filesystem.project", Value::Word("read-only"));
    }
}

fn setting(foreign: &mut Foreign, field: &Field<'_>, settings: &mut Settings) {
    match field.name() {
        "network" => network(foreign, field, settings),
        "filesystem" => filesystem(foreign, field, settings),
        "ignoreViolations" => {
            foreign.warn(field, "every violation is recorded; none is left out");
        }
        "enableWeakerNestedSandbox" | "allowUnsandboxedCommands" => {
            if foreign.boolean(field) == Some(true) {
                foreign.refuse(field, "nothing here weakens the sandbox by a file");
            }
        }
        "enabled" => {
            if foreign.boolean(field) == Some(false) {
                foreign.warn(field, "does not turn this sandbox off");
            }
        }
        "excludedCommands" => {
            if !foreign.texts(field).is_empty() {
                foreign.refuse(field, "no command is left outside the sandbox");
            }
        }
        _ => foreign.warn(field, "has no meaning here"),
    }
}

fn network(foreign: &mut Foreign, section: &Field<'_>, settings: &mut Settings) {
    for field in foreign.fields(section.node(), &section.path, NETWORK_MARKS) {
        match field.name() {
            "allowedDomains" => {
                foreign.copy(&field, "network.allowedHosts", settings);
                let mode = if foreign.texts(&field).is_empty() { "none" } else { "proxy" };
                foreign.set(&field, "network.mode", Value::Word(mode), settings);
            }
            "deniedDomains" => foreign.copy(&field, "network.deniedHosts", settings),
            "allowUnixSockets" => {
                if !foreign.texts(&field).is_empty() {
                    foreign.refuse(&field, "sockets of the host are not let in one by one yet");
                }
            }
            "allowAllUnixSockets" => {
                if foreign.boolean(&field) == Some(true) {
                    foreign.refuse(&field, "sockets of the host stay outside");
                }
            }
            // The sandbox has its own loopback. Binding there is always allowed and reaches nothing outside.
            "allowLocalBinding" => {
                foreign.boolean(&field);
            }
            _ => foreign.refuse(&field, "a proxy of another program is not used"),
        }
    }
}

fn filesystem(foreign: &mut Foreign, section: &Field<'_>, settings: &mut Settings) {
    let fields = foreign.fields(section.node(), &section.path, FILESYSTEM_MARKS);
    let mut project = "read-only";
    let denied = |path: &String| texts_under(section.node(), "denyWrite").contains(path);
    for field in &fields {
        if field.name() == "allowWrite" {
            let (here, elsewhere): (Vec<String>, Vec<String>) =
                foreign.texts(field).into_iter().partition(|path| path == "." || path == "./");
            if !here.is_empty() {
                project = "read-write";
            }
            // There `denyWrite` takes precedence over `allowWrite`.
            let elsewhere = Value::List(elsewhere.into_iter().filter(|p| !denied(p)).collect());
            foreign.set(field, "filesystem.readWritePaths", elsewhere, settings);
            continue;
        }
        match field.name() {
            "denyRead" => foreign.copy(field, "filesystem.deniedPaths", settings),
            "allowRead" | "denyWrite" => {
                foreign.copy(field, "filesystem.readOnlyPaths", settings);
            }
            _ => {
                if foreign.boolean(field) == Some(true) {
                    foreign.refuse(field, "git's configuration stays protected");
                }
            }
        }
    }
    foreign.set(section, "filesystem.project", Value::Word(project), settings);
}

/// Rules about files and hosts are translated. The others determine when the agent asks, which does not concern
/// the sandbox.
fn permissions(foreign: &mut Foreign, section: &Field<'_>, settings: &mut Settings) {
    for field in foreign.any_fields(section.node(), &section.path) {
        if !matches!(field.name(), "allow" | "deny") || !matches!(field.node().tree, Tree::List(_))
        {
            foreign.warn(&field, "says when to ask, not what the sandbox allows");
            continue;
        }
        for rule in foreign.texts(&field) {
            permission(foreign, &field, &rule, settings);
        }
    }
}

fn permission(foreign: &mut Foreign, field: &Field<'_>, rule: &str, settings: &mut Settings) {
    let inside =
        rule.split_once('(').and_then(|(tool, rest)| Some((tool, rest.strip_suffix(')')?)));
    let one = |text: &str| Value::List(vec![text.to_owned()]);
    match (field.name(), inside) {
        ("deny", Some(("Read", path))) => match plain_path(path) {
            Some(path) => foreign.set(field, "filesystem.deniedPaths", one(path), settings),
            None => foreign.refuse(field, "patterns of paths cannot be hidden"),
        },
        ("allow", Some(("Edit" | "Write", path))) => match plain_path(path) {
            Some(path) => foreign.set(field, "filesystem.readWritePaths", one(path), settings),
            None => foreign.warn(field, format!("`{rule}` is a pattern and grants nothing")),
        },
        ("allow", Some(("WebFetch", domain))) => match domain.strip_prefix("domain:") {
            Some(host) => foreign.set(field, "network.allowedHosts", one(host), settings),
            None => foreign.warn(field, format!("`{rule}` names no domain and grants nothing")),
        },
        _ => foreign.warn(field, format!("`{rule}` is about the agent's own tools")),
    }
}

/// In these rules `//` begins an absolute path, and a trailing `/**` means the directory itself.
fn plain_path(path: &str) -> Option<&str> {
    let path = path.strip_suffix("/**").unwrap_or(path);
    let path = if path.starts_with("//") { path.get(1..)? } else { path };
    (!path.is_empty() && !path.contains(['*', '?', '['])).then_some(path)
}
