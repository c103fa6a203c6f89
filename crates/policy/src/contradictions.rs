//! Settings that contradict each other, or with which nothing could run.
//!
//! Within one document they are mistakes of its author. Across layers most are not contradictions: a denied
//! path takes precedence over a granted one, and a limit over no limit.

mod network;

use crate::diagnostic::{Diagnostic, Problem};
use crate::keys;
use crate::settings::{Settings, Value, boolean, list, number, word};
use crate::units;

/// With less than this, a sandbox cannot start the command.
const MIN_VALUES: [(&str, u64); 3] = [
    ("resources.maxMemory", 4 << 20),
    ("resources.memoryHigh", 4 << 20),
    ("resources.maxFileDescriptors", 16),
];
/// Every run is delayed by a whole step, so a larger value is probably a mistaken unit.
const MAX_VALUES: [(&str, u64); 1] = [("resources.normalizeTime", 60 * 60 * 1000)];

const GRANTS: [&str; 3] =
    ["filesystem.readOnlyPaths", "filesystem.readWritePaths", "filesystem.overlayPaths"];

/// Contradictions within one document.
pub(crate) fn within_document(settings: &Settings) -> Vec<Diagnostic> {
    let mut found = across_layers(settings);
    network::lists_for_nothing(settings, &mut found);
    same_path_twice(settings, &mut found);
    if !list(settings, "process.allowedEnvVars").is_empty()
        && word(settings, "process.envMode").is_some_and(|mode| mode != "explicit")
    {
        found.push(contradiction(
            settings,
            "process.allowedEnvVars",
            "`process.allowedEnvVars` has no effect without `process.envMode: explicit`",
            "set that mode, or remove the list",
        ));
    }
    if settings.contains_key("syscalls.syscalls") && !settings.contains_key("syscalls.mode") {
        found.push(contradiction(
            settings,
            "syscalls.syscalls",
            "`syscalls.syscalls` does not specify whether it allows or denies",
            "add `mode: WHITELIST` or `mode: BLACKLIST`",
        ));
    }
    limits_beyond_each_other(settings, &mut found);
    found
}

/// Contradictions in the merged policy.
pub(crate) fn in_the_end(settings: &Settings) -> Vec<Diagnostic> {
    let mut found = across_layers(settings);
    if settings.contains_key("resources.maxSwap") && !settings.contains_key("resources.maxMemory") {
        found.push(contradiction(
            settings,
            "resources.maxSwap",
            "`resources.maxSwap` is added to `resources.maxMemory`, which is not set",
            "set that too (`--memory`), or remove it",
        ));
    }
    network::in_the_end(settings, &mut found);
    found
}

/// Contradictions that no order of layers can resolve.
fn across_layers(settings: &Settings) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    out_of_range(settings, &mut found);
    let level = word(settings, "isolationLevel");
    if boolean(settings, "process.userNamespace") == Some(false) && level == Some("LEVEL_2") {
        found.push(contradiction(
            settings,
            "process.userNamespace",
            "LEVEL_2 needs a user namespace, but `process.userNamespace` is false",
            "use `isolationLevel: LEVEL_1` (`--level 1`) with it",
        ));
    }
    for path in ["process.uid", "process.gid", "process.timeOffset"] {
        let without =
            level == Some("LEVEL_0") || boolean(settings, "process.userNamespace") == Some(false);
        if without && settings.contains_key(path) {
            found.push(contradiction(
                settings,
                path,
                &format!("`{path}` needs namespaces, which this level does not have"),
                "remove it, or raise `isolationLevel`",
            ));
        }
    }
    if boolean(settings, "process.allowExec") == Some(false)
        && !list(settings, "process.allowedExecutables").is_empty()
    {
        found.push(contradiction(
            settings,
            "process.allowedExecutables",
            "`process.allowExec` is false, so `process.allowedExecutables` allows nothing",
            "keep one of the two",
        ));
    }
    network::of_mode(settings, &mut found);
    found
}

fn out_of_range(settings: &Settings, found: &mut Vec<Diagnostic>) {
    let shown = |path, number| {
        keys::find(path).map_or(String::new(), |key| Value::Number(number).show(key.kind))
    };
    for (path, least) in MIN_VALUES {
        if let Some(asked) = number(settings, path).filter(|asked| *asked < least) {
            let (asked, least) = (shown(path, asked), shown(path, least));
            let message = format!("`{path}` ({asked}) is too small to start a sandbox");
            found.push(contradiction(
                settings,
                path,
                &message,
                &format!("at least {least} is needed"),
            ));
        }
    }
    for (path, most) in MAX_VALUES {
        if let Some(asked) = number(settings, path).filter(|asked| *asked > most) {
            let (asked, most) = (shown(path, asked), shown(path, most));
            let message = format!("`{path}` ({asked}) would delay every run by that much");
            found.push(contradiction(
                settings,
                path,
                &message,
                &format!("at most {most} is allowed"),
            ));
        }
    }
}

/// Two limits of which one can never be reached. Across layers this is no contradiction: the lower limit
/// applies.
fn limits_beyond_each_other(settings: &Settings, found: &mut Vec<Diagnostic>) {
    if let Some(high) = number(settings, "resources.memoryHigh")
        && let Some(most) = number(settings, "resources.maxMemory")
        && high > most
    {
        let message = format!(
            "`resources.memoryHigh` ({}) is above `resources.maxMemory` ({}), so it is never reached",
            units::show_size(high),
            units::show_size(most)
        );
        let fix = "set it below, or remove it";
        found.push(contradiction(settings, "resources.memoryHigh", &message, fix));
    }
    if let Some(milli) = number(settings, "resources.cpus")
        && let Some(Value::Cpus(cpus)) = settings.get("resources.cpuSet").map(|set| &set.value)
        && milli > cpus.len() as u64 * 1000
    {
        let message = format!(
            "`resources.cpus` ({}) exceeds the CPUs in `resources.cpuSet` ({})",
            units::show_cpus(milli),
            units::show_cpu_set(cpus)
        );
        let fix = "use fewer, or add CPUs to the set";
        found.push(contradiction(settings, "resources.cpus", &message, fix));
    }
}

fn same_path_twice(settings: &Settings, found: &mut Vec<Diagnostic>) {
    let lists = GRANTS.iter().chain(&["filesystem.deniedPaths"]).collect::<Vec<_>>();
    for (index, first) in lists.iter().enumerate() {
        for second in lists.iter().skip(index + 1) {
            let paths = list(settings, first);
            let both = |path: &&String| paths.iter().any(|other| plain(other) == plain(path));
            for path in list(settings, second).iter().filter(both) {
                found.push(contradiction(
                    settings,
                    second,
                    &format!("`{path}` is in both `{first}` and `{second}`"),
                    "keep one of the two",
                ));
            }
        }
    }
}

fn plain(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() { "/" } else { trimmed }
}

fn contradiction(settings: &Settings, key: &str, message: &str, fix: &str) -> Diagnostic {
    let origin = settings.get(key).map(|setting| setting.origin.clone());
    let origin = origin.unwrap_or_else(|| crate::diagnostic::Origin {
        file: "policy".into(),
        line: 0,
        column: 0,
    });
    Diagnostic::new(Problem::Contradiction, &origin, key, message).suggest(fix)
}

/// `container` and similar aliases together with another view.
pub(crate) fn alias_against_view(level_text: &str, settings: &Settings) -> Option<Diagnostic> {
    let Some(Value::Word("host")) = settings.get("view").map(|setting| &setting.value) else {
        return None;
    };
    let message =
        format!("`isolationLevel: {level_text}` means the minimal view, `view` says host");
    Some(contradiction(settings, "view", &message, "write `isolationLevel: LEVEL_2` instead"))
}
