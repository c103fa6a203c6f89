//! Options as policy values, each carrying the name under which a person knows it.
//!
//! Options that contradict each other are refused here, where both names are known; everything else
//! is the policy crate's to judge.

mod network;

use crate::args::{LimitArgs, PolicyArgs};
use crate::environment::variable_of;
use anyhow::{Context, bail};
use palisade_policy::Flag;
use palisade_policy::limit::{LimitKind, Unit};
use palisade_session::given_variables;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Where the options were written, which decides what a complaint calls them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    CommandLine,
    Environment,
}

impl Written {
    pub(crate) fn name(self, option: &str) -> String {
        match self {
            Self::CommandLine => format!("--{option}"),
            Self::Environment => variable_of(option),
        }
    }
}

/// The values of these options; `environment` is the caller's, for `--env NAME`.
pub(crate) fn flags(
    args: &PolicyArgs,
    written: Written,
    environment: &BTreeMap<OsString, OsString>,
) -> anyhow::Result<Vec<Flag>> {
    refuse_contradictions(args, written)?;
    let mut flags = Vec::new();
    let mut put = |option: &str, key: &str, value: Value| {
        flags.push(Flag::new(written.name(option), key, value));
    };
    let words = [
        ("level", "isolationLevel", &args.level),
        ("mode", "mode", &args.mode),
        ("view", "view", &args.view),
        ("on-ask", "onAsk", &args.on_ask),
        ("ask-key", "askKey", &args.ask_key),
        ("gate", "gate", &args.gate),
        ("caches", "filesystem.caches", &args.caches),
        ("on-expiry", "filesystem.onExpiry", &args.limits.on_expiry),
        ("cwd", "process.cwd", &args.cwd),
        ("env-mode", "process.envMode", &args.env_mode),
        ("hostname", "process.hostname", &args.hostname),
        ("network", "network.mode", &args.network),
    ];
    for (option, key, value) in words {
        if let Some(value) = value {
            put(option, key, json!(value));
        }
    }
    if let Some(when) = &args.transaction {
        let mut access = "transaction";
        for word in when.split(',') {
            match word {
                "keep" | "1" => {}
                "auto" => access = "transaction-auto",
                "copy" => put("transaction", "filesystem.transactionBy", json!("copy")),
                other => bail!(
                    "{} {other}: not keep, auto or copy (keep changes until you apply them, apply them if the command succeeds, or keep them in a copy of the project; auto,copy is both)",
                    written.name("transaction")
                ),
            }
        }
        put("transaction", "filesystem.project", json!(access));
    }
    match (&args.record, args.record_input) {
        (_, true) => put("record-input", "recording.terminal", json!("input")),
        (Some(_), false) => put("record", "recording.terminal", json!("output")),
        (None, false) => {}
    }
    if let Some(size) = &args.record_limit {
        put("record-limit", "recording.maxSize", in_policy_form(Unit::Bytes, size));
    }
    let switches = [
        ("static", "mode", args.static_mode, json!("static")),
        ("audit-files", "audit.fileOperations", args.audit_files, json!("writes")),
        ("no-userns", "process.userNamespace", args.no_userns, json!(false)),
        ("no-debug", "process.debug", args.no_debug, json!(false)),
        ("checkpoint-each", "filesystem.checkpointEachCommand", args.checkpoint_each, json!(true)),
        ("no-protect-names", "filesystem.protectNames", args.no_protect_names, json!(false)),
    ];
    for (option, key, given, value) in switches {
        if given {
            put(option, key, value);
        }
    }
    let lists = [
        ("rw", "filesystem.readWritePaths", &args.rw),
        ("ro", "filesystem.readOnlyPaths", &args.ro),
        ("overlay", "filesystem.overlayPaths", &args.overlay),
        ("blacklist", "filesystem.deniedPaths", &args.blacklist),
        ("allow-write", "filesystem.unprotectedPaths", &args.allow_write),
        ("build-dir", "filesystem.buildDirs", &args.build_dir),
        ("preset", "preset", &args.preset),
    ];
    for (option, key, values) in lists {
        if !values.is_empty() {
            put(option, key, json!(values));
        }
    }
    for setting in &args.env {
        let (name, value) = variable(setting, environment)?;
        put("env", "process.env", json!({ name: value }));
    }
    if let Some(seconds) = &args.time_offset {
        let seconds: i64 = seconds.parse().with_context(|| {
            format!("{} {seconds}: not a whole number of seconds", written.name("time-offset"))
        })?;
        put("time-offset", "process.timeOffset", json!(seconds));
    }
    if let Some(time) = &args.ask_timeout {
        put("ask-timeout", "askTimeout", json!(in_seconds(time)));
    }
    for (option, key, value) in network::values(args, written, environment)? {
        put(option, key, value);
    }
    for (option, key, value) in limits(&args.limits) {
        put(option, key, value);
    }
    for (what, reason, option) in approvals(args, written, environment) {
        put(option, "approvals", json!([{ "what": what, "reason": reason }]));
    }
    Ok(flags)
}

/// A relaxation typed on the command line is its own approval; one that lies in the environment is
/// not, since nobody may remember having put it there.
fn approvals(
    args: &PolicyArgs,
    written: Written,
    environment: &BTreeMap<OsString, OsString>,
) -> Vec<(String, String, &'static str)> {
    let mut approvals = Vec::new();
    if let Some(reason) = &args.approve_no_isolation {
        approvals.push(("no-isolation".to_owned(), reason.clone(), "approve-no-isolation"));
    }
    if let Some(reason) = &args.approve_network_host {
        approvals.push(("network:host".to_owned(), reason.clone(), "approve-network-host"));
    }
    if written == Written::CommandLine {
        approvals.extend(network::approvals(args, environment));
    }
    approvals
}

/// Option, key and value of every limit that was given, and of what goes with limits.
fn limits(args: &LimitArgs) -> Vec<(&'static str, &'static str, Value)> {
    let limit = |limit: LimitKind| {
        let value = in_policy_form(limit.unit(), typed(args, limit)?);
        Some((limit.name(), limit.key(), value))
    };
    let mut given: Vec<_> = LimitKind::ALL.into_iter().filter_map(limit).collect();
    let times = [
        ("grace", "resources.grace", &args.grace),
        ("normalize-time", "resources.normalizeTime", &args.normalize_time),
        ("ttl", "resources.timeToLive", &args.ttl),
        ("idle-ttl", "resources.idleTimeToLive", &args.idle_ttl),
    ];
    for (option, key, time) in times {
        given.extend(time.as_deref().map(|time| (option, key, json!(in_seconds(time)))));
    }
    if args.best_effort_limits {
        given.push(("best-effort-limits", "resources.bestEffort", json!(true)));
    }
    if !args.waive_limit.is_empty() {
        given.push(("waive-limit", "resources.waived", json!(args.waive_limit)));
    }
    given
}

fn typed(args: &LimitArgs, limit: LimitKind) -> Option<&str> {
    let typed = match limit {
        LimitKind::Memory => &args.memory,
        LimitKind::MemoryHigh => &args.memory_high,
        LimitKind::Swap => &args.swap,
        LimitKind::Cpus => &args.cpus,
        LimitKind::CpuSet => &args.cpuset,
        LimitKind::CpuTime => &args.cpu_time,
        LimitKind::Processes => &args.pids,
        LimitKind::Threads => &args.threads,
        LimitKind::OpenFiles => &args.open_files,
        LimitKind::FileSize => &args.file_size,
        LimitKind::Disk => &args.disk,
        LimitKind::Inodes => &args.inodes,
        LimitKind::IoBandwidth => &args.io_bandwidth,
        LimitKind::IoOperations => &args.iops,
        LimitKind::WallTime => &args.timeout,
        LimitKind::Output => &args.max_output,
    };
    typed.as_deref()
}

fn in_policy_form(unit: Unit, typed: &str) -> Value {
    match unit {
        Unit::Milliseconds => json!(in_seconds(typed)),
        Unit::Count | Unit::OperationsPerSecond => count(typed),
        Unit::Bytes | Unit::BytesPerSecond | Unit::MilliCpus | Unit::CpuCount => json!(typed),
    }
}

/// What is no number stays as it was typed, to be complained about by those who know what it should be.
fn count(typed: &str) -> Value {
    typed.parse::<u64>().map_or_else(|_| json!(typed), |number| json!(number))
}

/// A bare number is seconds, as `timeout(1)` has it; in a file it would be milliseconds.
fn in_seconds(time: &str) -> String {
    if time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        format!("{time}s")
    } else {
        time.to_owned()
    }
}

/// `NAME=VALUE`, or `NAME` for the caller's own value.
fn variable(
    setting: &str,
    environment: &BTreeMap<OsString, OsString>,
) -> anyhow::Result<(String, String)> {
    if let Some((name, value)) = setting.split_once('=') {
        if name.is_empty() {
            bail!("--env {setting}: the name before `=` is missing; write NAME=VALUE");
        }
        return Ok((name.to_owned(), value.to_owned()));
    }
    let Some(value) = given_variables::value(setting, |name| environment.get(name)) else {
        bail!("--env {setting}: not set in the environment; write {setting}=VALUE");
    };
    let Some(value) = value.to_str() else {
        bail!("--env {setting}: its value is not UTF-8 text");
    };
    Ok((setting.to_owned(), value.to_owned()))
}

fn refuse_contradictions(args: &PolicyArgs, written: Written) -> anyhow::Result<()> {
    network::refuse_contradictions(args, written)?;
    if args.no_protect_names && !args.allow_write.is_empty() {
        bail!(
            "{} turns protection off, so {} has no effect; remove one of them",
            written.name("no-protect-names"),
            written.name("allow-write")
        );
    }
    if args.static_mode && args.mode.as_deref().is_some_and(|mode| mode != "static") {
        bail!("{} and {} contradict each other", written.name("static"), written.name("mode"));
    }
    let nothing_isolated = args
        .level
        .as_deref()
        .is_some_and(|level| matches!(level, "0" | "LEVEL_0" | "none" | "logical"));
    let process_level =
        args.level.as_deref().is_some_and(|level| matches!(level, "1" | "LEVEL_1" | "process"));
    let of_level_2 = [
        ("hostname", "a host name needs the UTS", args.hostname.is_some()),
        ("time-offset", "shifted clocks need the time", args.time_offset.is_some()),
    ];
    if let Some((option, needs, _)) = of_level_2.into_iter().find(|(.., given)| *given)
        && process_level
    {
        bail!(
            "{}: {needs} namespace of LEVEL_2, which {} 1 does not have; remove one of them",
            written.name(option),
            written.name("level")
        );
    }
    let shapes_walls = [
        ("rw", !args.rw.is_empty()),
        ("ro", !args.ro.is_empty()),
        ("overlay", !args.overlay.is_empty()),
        ("blacklist", !args.blacklist.is_empty()),
        ("allow-write", !args.allow_write.is_empty()),
        ("build-dir", !args.build_dir.is_empty()),
        ("view", args.view.is_some()),
        ("static", args.static_mode),
        ("mode", args.mode.is_some()),
        ("no-userns", args.no_userns),
        ("network", args.network.as_deref().is_some_and(|network| network != "host")),
        ("allow-network", args.egress.allow_network),
        ("allow-host", !args.egress.allow_host.is_empty()),
        ("allow-for", !args.egress.allow_for.is_empty()),
        ("publish", !args.egress.publish.is_empty()),
        ("hostname", args.hostname.is_some()),
        ("time-offset", args.time_offset.is_some()),
    ];
    match shapes_walls.into_iter().find(|(_, given)| *given) {
        Some((option, _)) if nothing_isolated => bail!(
            "{} 0 isolates nothing, so {} cannot be enforced; remove one of them",
            written.name("level"),
            written.name(option)
        ),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "flags_tests.rs"]
mod tests;
