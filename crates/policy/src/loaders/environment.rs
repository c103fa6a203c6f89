//! `SANDBOX_*` variables of a worker, with or without its own prefix.

use super::{LoadedDocument, SourceKind};
use crate::decode::document::{Flag, PolicyDocument};
use crate::diagnostic::{Diagnostic, Origin, Problem};
use crate::nearest::nearest;
use serde_json::Value as Json;
use std::collections::BTreeMap;

const PREFIX: &str = "CODELIA_";
/// The variables that are read here. Callers handle all other `SANDBOX_*` variables.
pub const NAMES: [&str; 6] = [
    "SANDBOX_MODE",
    "SANDBOX_ROOT",
    "SANDBOX_TTL_SECONDS",
    "SANDBOX_NETWORK",
    "SANDBOX_CPU_LIMIT",
    "SANDBOX_MEMORY_LIMIT_MB",
];
/// Variables that set the same limits as two of those, named after the options.
const OPTIONS: [(&str, &str); 2] =
    [("SANDBOX_CPU_LIMIT", "SANDBOX_CPUS"), ("SANDBOX_MEMORY_LIMIT_MB", "SANDBOX_MEMORY")];
const GATE_MODES: [&str; 2] = ["dynamic", "static"];

/// Reads the variables in [`NAMES`]. Other `SANDBOX_*` variables mirror flags, and callers handle them.
pub fn load_environment(
    variables: &BTreeMap<String, String>,
) -> Result<LoadedDocument, Vec<Diagnostic>> {
    let mut flags = Vec::new();
    let mut refused = Vec::new();
    let mut problems = Vec::new();
    for (variable, value) in variables {
        let name = variable.strip_prefix(PREFIX).unwrap_or(variable);
        let prefixed = name.len() != variable.len();
        if !NAMES.contains(&name) {
            if prefixed && name.starts_with("SANDBOX_") {
                problems.push(unknown(variable, name));
            }
            continue;
        }
        if let Some(other) = variables.get(name).filter(|other| prefixed && *other != value) {
            let message = format!("`{variable}` is `{value}`, but `{name}` is `{other}`");
            problems.push(contradiction(variable, message));
            continue;
        }
        let option = OPTIONS.iter().find(|(limit, _)| *limit == name).map(|(_, option)| *option);
        let is_set = |option: &&str| variables.get(*option).is_some_and(|value| !value.is_empty());
        if let Some(option) = option.filter(is_set) {
            let message = format!("`{variable}` and `{option}` are about the same limit");
            problems.push(contradiction(variable, message));
            continue;
        }
        match translate(variable, name, value) {
            Translated::Flag(flag) => flags.push(flag),
            Translated::Refused(diagnostic) => refused.push(diagnostic),
            Translated::Wrong(diagnostic) => problems.push(diagnostic),
        }
    }
    let document = PolicyDocument::from_flags(flags).unwrap_or_else(|found| {
        problems.extend(found);
        PolicyDocument::default()
    });
    if !problems.is_empty() {
        return Err(problems);
    }
    let document = PolicyDocument { refused, ..document };
    Ok(LoadedDocument {
        kind: SourceKind::Environment,
        document,
        warnings: Vec::new(),
        listen: None,
    })
}

enum Translated {
    Flag(Flag),
    Refused(Diagnostic),
    Wrong(Diagnostic),
}

fn translate(variable: &str, name: &str, value: &str) -> Translated {
    let flag = |key: &str, value: Json| Translated::Flag(Flag::new(variable, key, value));
    let refused = |why: &str| {
        let message = format!("`{variable}` is not enforced in this version: {why}");
        let fix = "unset it to run without it";
        Translated::Refused(complaint(Problem::NotEnforced, variable, message, fix))
    };
    match name {
        "SANDBOX_MODE" if GATE_MODES.contains(&value) => flag("mode", value.into()),
        "SANDBOX_MODE" => flag("isolationLevel", value.into()),
        "SANDBOX_ROOT" => refused("the directory of sessions cannot be chosen"),
        "SANDBOX_TTL_SECONDS" => flag("resources.timeToLive", format!("{value}s").into()),
        "SANDBOX_NETWORK" => match value {
            "disabled" => flag("network.mode", "none".into()),
            "enabled" => flag("network.mode", "proxy".into()),
            // The words of `--network`, because the variable also mirrors that option.
            "none" | "proxy" | "nat" | "host" => flag("network.mode", value.into()),
            _ => {
                let message = format!("`{variable}` must be disabled or enabled, not `{value}`");
                Translated::Wrong(complaint(Problem::WrongType, variable, message, "choose one"))
            }
        },
        "SANDBOX_CPU_LIMIT" => flag("resources.cpus", value.into()),
        _ => match value.parse::<u64>() {
            Ok(megabytes) => flag("resources.maxMemory", format!("{megabytes}m").into()),
            Err(_) => {
                let message = format!("`{variable}` must be a number of megabytes, not `{value}`");
                Translated::Wrong(complaint(Problem::WrongType, variable, message, "such as 512"))
            }
        },
    }
}

fn unknown(variable: &str, name: &str) -> Diagnostic {
    let origin = Origin { file: variable.into(), line: 0, column: 0 };
    let message = format!("unknown variable `{variable}`");
    let mut problem = Diagnostic::new(Problem::UnknownKey, &origin, variable, message);
    problem.suggestion = nearest(name, NAMES).map(|near| format!("{PREFIX}{near}"));
    problem
}

fn contradiction(variable: &str, message: String) -> Diagnostic {
    complaint(Problem::Contradiction, variable, message, "keep one of the two")
}

fn complaint(problem: Problem, variable: &str, message: String, fix: &str) -> Diagnostic {
    let origin = Origin { file: variable.into(), line: 0, column: 0 };
    Diagnostic::new(problem, &origin, variable, message).suggest(fix)
}
