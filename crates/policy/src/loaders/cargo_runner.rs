//! A cargo runner's `sandbox_config:` and the sections that belong to it.

mod programs;

use super::foreign::{Field, Foreign};
use super::{LoadedDocument, SourceKind};
use crate::decode::document::PolicyDocument;
use crate::diagnostic::Diagnostic;
use crate::settings::{Setting, Settings, Value};
use crate::syntax::tree::Node;
use programs::Programs;

pub(super) const SECTIONS: &[&str] = &[
    "sandbox_config",
    "directory_permissions",
    "size_limits",
    "process_limits",
    "network_allowlist",
    "blocked_protocols",
    "port_restrictions",
    "blocked_paths",
    "execution_policy",
    "monitored_events",
    "log_levels",
];

const MEBI: u64 = 1 << 20;
const SECOND: u64 = 1000;

/// Hiding these would leave nothing to run, and they are read-only anyway.
const SYSTEM: [&str; 5] = ["/etc", "/usr/bin", "/usr/sbin", "/bin", "/sbin"];

pub(super) fn load(node: &Node, file: &str) -> Result<LoadedDocument, Vec<Diagnostic>> {
    let mut foreign = Foreign::new(file);
    let mut document = PolicyDocument::default();
    let settings = &mut document.settings;
    let mut programs = Programs::default();
    for field in foreign.fields(node, "", SECTIONS) {
        match field.name() {
            "sandbox_config" => config(&mut foreign, &field, &mut programs, settings),
            "directory_permissions" => permissions(&mut foreign, &field, settings),
            "size_limits" => sizes(&mut foreign, &field, settings, 1),
            "process_limits" => limits(&mut foreign, &field, settings),
            "network_allowlist" => hosts(&mut foreign, &field, settings),
            "blocked_protocols" => {
                let names = foreign.texts(&field).join(", ");
                let message =
                    format!("{names}: held by the list of allowed ports, not by protocol");
                foreign.warn(&field, message);
            }
            "port_restrictions" => ports(&mut foreign, &field, settings),
            "blocked_paths" => paths(&mut foreign, &field, settings),
            "execution_policy" => programs.read(&mut foreign, &field),
            _ => foreign.warn(&field, "events are always recorded, each with its level"),
        }
    }
    programs.decide(&mut foreign, settings);
    foreign.finish(SourceKind::CargoRunner, document)
}

fn config<'a>(
    foreign: &mut Foreign,
    field: &Field<'a>,
    programs: &mut Programs<'a>,
    settings: &mut Settings,
) {
    let known = ["resource_limits", "file_system", "network", "security"];
    for section in foreign.fields(field.node(), &field.path, &known) {
        match section.name() {
            "resource_limits" => config_limits(foreign, &section, settings),
            "file_system" => sizes(foreign, &section, settings, MEBI),
            "network" => network(foreign, &section, settings),
            _ => security(foreign, &section, programs, settings),
        }
    }
}

fn config_limits(foreign: &mut Foreign, section: &Field<'_>, settings: &mut Settings) {
    let known = ["memory_mb", "cpu_seconds", "wall_seconds", "processes", "threads", "files"];
    for limit in foreign.fields(section.node(), &section.path, &known) {
        let (path, factor) = match limit.name() {
            "memory_mb" => ("resources.maxMemory", MEBI),
            "cpu_seconds" => ("resources.maxCPU", SECOND),
            "wall_seconds" => ("resources.timeout", SECOND),
            "processes" => ("process.maxProcesses", 1),
            "threads" => ("resources.maxThreads", 1),
            _ => ("resources.maxFileDescriptors", 1),
        };
        foreign.copy_scaled(&limit, path, factor, settings);
    }
}

fn limits(foreign: &mut Foreign, section: &Field<'_>, settings: &mut Settings) {
    let known = ["cpu_time", "wall_time", "memory", "processes", "threads", "file_descriptors"];
    for limit in foreign.fields(section.node(), &section.path, &known) {
        let path = match limit.name() {
            "cpu_time" => "resources.maxCPU",
            "wall_time" => "resources.timeout",
            "memory" => "resources.maxMemory",
            "processes" => "process.maxProcesses",
            "threads" => "resources.maxThreads",
            _ => "resources.maxFileDescriptors",
        };
        foreign.copy(&limit, path, settings);
    }
}

fn sizes(foreign: &mut Foreign, section: &Field<'_>, settings: &mut Settings, factor: u64) {
    const TOTAL: &str = "filesystem.maxTotalSize";
    let known: &[&str] = if factor == 1 {
        &["total_workspace", "target_directory", "log_files", "temp_files"]
    } else {
        &["workspace_size_mb", "target_size_mb", "log_size_mb", "temp_size_mb"]
    };
    let mut totals = Vec::new();
    for size in foreign.fields(section.node(), &section.path, known) {
        match size.name() {
            "temp_files" | "temp_size_mb" => {
                foreign.copy_scaled(&size, "filesystem.tmpSize", factor, settings);
            }
            // What a command prints is its log.
            "log_files" | "log_size_mb" => {
                foreign.copy_scaled(&size, "resources.maxOutputSize", factor, settings);
            }
            _ => {
                let mut total = Settings::new();
                foreign.copy_scaled(&size, TOTAL, factor, &mut total);
                totals.extend(total.remove(TOTAL).map(|total| (size, total)));
            }
        }
    }
    let bytes = |(_, total): &(Field<'_>, Setting)| match total.value {
        Value::Number(bytes) => bytes,
        _ => u64::MAX,
    };
    totals.sort_by_key(bytes);
    if let [(least, _), .., (most, _)] = totals.as_slice() {
        let message = format!(
            "all that a run adds counts as one: the smaller `{}` is the limit on both",
            least.name()
        );
        foreign.warn(most, message);
    }
    settings.extend(totals.into_iter().take(1).map(|(_, total)| (TOTAL, total)));
}

/// The runner's directories are the project, its target, cargo's caches, and what Palisade keeps of a run.
fn permissions(foreign: &mut Foreign, section: &Field<'_>, settings: &mut Settings) {
    let known = ["workspace", "cargo_home", "target", "logs", "metadata"];
    let target = || Value::List(vec!["target".to_owned()]);
    for field in foreign.fields(section.node(), &section.path, &known) {
        let Some(mode) = foreign.text(&field) else { continue };
        let (path, value) = match (field.name(), mode.as_str()) {
            ("workspace", "ro") => ("filesystem.project", Value::Word("read-only")),
            ("workspace", "rw") => ("filesystem.project", Value::Word("read-write")),
            ("cargo_home", "rw") => ("filesystem.caches", Value::Word("own")),
            ("target", "rw") => {
                // What is built is run from there, and nothing that the command writes is run from anywhere else.
                foreign.set(&field, "filesystem.executeWritten", Value::Bool(false), settings);
                foreign.set(&field, "filesystem.executableDirs", target(), settings);
                ("filesystem.readWritePaths", target())
            }
            // The project around it may be writable.
            ("target", "ro") => ("filesystem.readOnlyPaths", target()),
            // The output is passed on to a process outside, and no record of the run is visible inside.
            ("logs", "wo") | ("metadata", "rw") => continue,
            _ => {
                foreign.refuse(&field, &format!("`{mode}` is not possible for this directory"));
                continue;
            }
        };
        foreign.set(&field, path, value, settings);
    }
}

fn network(foreign: &mut Foreign, section: &Field<'_>, settings: &mut Settings) {
    for field in foreign.fields(section.node(), &section.path, &["enabled", "allowlist", "ports"]) {
        match field.name() {
            "enabled" => {
                if let Some(enabled) = foreign.boolean(&field) {
                    let mode = if enabled { "proxy" } else { "none" };
                    foreign.set(&field, "network.mode", Value::Word(mode), settings);
                }
            }
            "allowlist" => hosts(foreign, &field, settings),
            _ => foreign.copy(&field, "network.allowedPorts", settings),
        }
    }
}

fn hosts(foreign: &mut Foreign, field: &Field<'_>, settings: &mut Settings) {
    foreign.copy(field, "network.allowedHosts", settings);
    let names = foreign.texts(field);
    let has =
        |prefix: &str| names.iter().any(|name| name.starts_with(prefix) || name.starts_with("*."));
    for (prefix, what) in [("index.", "index"), ("static.", "crate files")] {
        if !names.is_empty() && !has(prefix) {
            let message = format!(
                "no host `{prefix}…` here: the registry serves its {what} from one, so cargo cannot fetch"
            );
            foreign.warn(field, message);
        }
    }
}

fn security<'a>(
    foreign: &mut Foreign,
    section: &Field<'a>,
    programs: &mut Programs<'a>,
    settings: &mut Settings,
) {
    let known = ["strict_mode", "audit_logging", "block_shell_access"];
    for field in foreign.fields(section.node(), &section.path, &known) {
        match (field.name(), foreign.boolean(&field)) {
            ("strict_mode", Some(true)) => {
                foreign.set(&field, "onAsk", Value::Word("deny"), settings);
                foreign.set(&field, "process.debug", Value::Bool(false), settings);
                foreign.set(&field, "escape.strict", Value::Bool(true), settings);
            }
            ("audit_logging", Some(false)) => {
                foreign.refuse(&field, "the audit log cannot be turned off");
            }
            ("block_shell_access", Some(true)) => programs.block_shells(field),
            _ => {}
        }
    }
}

fn ports(foreign: &mut Foreign, section: &Field<'_>, settings: &mut Settings) {
    let fields =
        foreign.fields(section.node(), &section.path, &["allowed_ports", "blocked_ranges"]);
    let mut allowed = Settings::new();
    for field in fields.iter().filter(|field| field.name() == "allowed_ports") {
        foreign.copy(field, "network.allowedPorts", &mut allowed);
    }
    let allowed_ports = match allowed.get("network.allowedPorts").map(|setting| &setting.value) {
        Some(Value::Ports(ports)) => ports.clone(),
        _ => Vec::new(),
    };
    settings.extend(allowed);
    for field in fields.iter().filter(|field| field.name() == "blocked_ranges") {
        for range in foreign.texts(field) {
            let ends = range.split_once('-').and_then(|(low, high)| {
                Some(low.trim().parse::<u16>().ok()?..=high.trim().parse::<u16>().ok()?)
            });
            match ends {
                None => {
                    foreign
                        .warn(field, format!("`{range}` is not a range of ports such as 1-1023"));
                }
                Some(ends) => {
                    for port in allowed_ports.iter().filter(|port| ends.contains(port)) {
                        let message = format!(
                            "`{range}` would block port {port}, which is allowed: the allow-list holds"
                        );
                        foreign.warn(field, message);
                    }
                }
            }
        }
    }
}

fn paths(foreign: &mut Foreign, field: &Field<'_>, settings: &mut Settings) {
    for path in foreign.texts(field) {
        let single = |path: &str| Value::List(vec![path.to_owned()]);
        if SYSTEM.contains(&path.as_str()) {
            foreign.warn(
                field,
                format!("`{path}` stays readable, because programs need it; it is not writable"),
            );
        } else if path.chars().nth(1) == Some(':') {
            foreign.warn(field, format!("`{path}` is not a path on this system"));
        } else if path.contains('*') {
            foreign.set(field, "filesystem.hideSecrets", Value::Bool(true), settings);
            foreign.warn(
                field,
                format!("`{path}` is a pattern; the shipped list of secrets is hidden instead"),
            );
        } else {
            foreign.set(field, "filesystem.deniedPaths", single(&path), settings);
        }
    }
}

#[cfg(test)]
#[path = "cargo_runner_tests.rs"]
mod tests;
