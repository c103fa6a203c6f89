//! Options as policy values, each carrying the name under which a person knows it.
//!
//! Options that contradict each other are refused here, where both names are known; everything else
//! is the policy crate's to judge.

use crate::args::PolicyArgs;
use crate::environment::variable_of;
use anyhow::{Context, bail};
use palisade_policy::Flag;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

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
    let switches = [
        ("static", "mode", args.static_mode, json!("static")),
        ("no-userns", "process.userNamespace", args.no_userns, json!(false)),
        ("no-debug", "process.debug", args.no_debug, json!(false)),
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
    if let Some(time) = &args.timeout {
        put("timeout", "resources.timeout", json!(in_seconds(time)));
    }
    if let Some(time) = &args.grace {
        put("grace", "resources.grace", json!(in_seconds(time)));
    }
    for (what, reason, option) in approvals(args, written) {
        put(option, "approvals", json!([{ "what": what, "reason": reason }]));
    }
    Ok(flags)
}

/// A relaxation typed on the command line is its own approval; one that lies in the environment is
/// not, since nobody may remember having put it there.
fn approvals(args: &PolicyArgs, written: Written) -> Vec<(&'static str, String, &'static str)> {
    let mut approvals = Vec::new();
    if let Some(reason) = &args.approve_no_isolation {
        approvals.push(("no-isolation", reason.clone(), "approve-no-isolation"));
    }
    if let Some(reason) = &args.approve_network_host {
        approvals.push(("network:host", reason.clone(), "approve-network-host"));
    } else if written == Written::CommandLine && args.network.as_deref() == Some("host") {
        approvals.push(("network:host", "--network host".to_owned(), "network"));
    }
    approvals
}

/// A bare number is seconds, as `timeout(1)` has it; in a file it would be milliseconds.
fn in_seconds(time: &str) -> String {
    if time.bytes().all(|byte| byte.is_ascii_digit()) {
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
            bail!("--env {setting}: there is no name before the `=`; write NAME=VALUE");
        }
        return Ok((name.to_owned(), value.to_owned()));
    }
    let Some(value) = environment.get(OsStr::new(setting)) else {
        bail!("--env {setting}: not set in the environment; write {setting}=VALUE");
    };
    let Some(value) = value.to_str() else {
        bail!("--env {setting}: its value is not UTF-8 text");
    };
    Ok((setting.to_owned(), value.to_owned()))
}

fn refuse_contradictions(args: &PolicyArgs, written: Written) -> anyhow::Result<()> {
    if args.no_protect_names && !args.allow_write.is_empty() {
        bail!(
            "{} protects nothing, so {} has nothing to open; leave one of them out",
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
            "{}: {needs} namespace of LEVEL_2, which {} 1 has not; leave one of them out",
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
        ("view", args.view.is_some()),
        ("static", args.static_mode),
        ("mode", args.mode.is_some()),
        ("no-userns", args.no_userns),
        ("network", args.network.as_deref().is_some_and(|network| network != "host")),
        ("hostname", args.hostname.is_some()),
        ("time-offset", args.time_offset.is_some()),
    ];
    match shapes_walls.into_iter().find(|(_, given)| *given) {
        Some((option, _)) if nothing_isolated => bail!(
            "{} 0 isolates nothing, so {} can not be kept; leave one of them out",
            written.name("level"),
            written.name(option)
        ),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Written, flags};
    use crate::args::PolicyArgs;
    use clap::{Args, FromArgMatches};
    use std::collections::BTreeMap;

    fn parsed(line: &[&str]) -> PolicyArgs {
        let command = PolicyArgs::augment_args(clap::Command::new("test").no_binary_name(true));
        PolicyArgs::from_arg_matches(&command.try_get_matches_from(line).unwrap()).unwrap()
    }

    fn complaint(line: &[&str]) -> String {
        flags(&parsed(line), Written::CommandLine, &BTreeMap::new()).unwrap_err().to_string()
    }

    fn values(line: &[&str]) -> Vec<(String, String, serde_json::Value)> {
        flags(&parsed(line), Written::CommandLine, &BTreeMap::new())
            .unwrap()
            .into_iter()
            .map(|flag| (flag.name, flag.key, flag.value))
            .collect()
    }

    /// Proves: POL-2 contradiction
    #[test]
    fn contradictions_name_both_options() {
        assert_eq!(
            complaint(&["--static", "--mode", "dynamic"]),
            "--static and --mode contradict each other"
        );
        assert_eq!(
            complaint(&["--no-protect-names", "--allow-write", ".vscode"]),
            "--no-protect-names protects nothing, so --allow-write has nothing to open; leave one \
             of them out"
        );
        assert_eq!(
            complaint(&["--level", "0", "--rw", "/data"]),
            "--level 0 isolates nothing, so --rw can not be kept; leave one of them out"
        );
        assert_eq!(
            complaint(&["--level", "1", "--hostname", "x"]),
            "--hostname: a host name needs the UTS namespace of LEVEL_2, which --level 1 has not; \
             leave one of them out"
        );
    }

    /// Proves: NET-1 host-approved
    #[test]
    fn the_hosts_network_is_an_approval_when_typed_and_not_when_inherited() {
        let typed = values(&["--network", "host"]);
        assert!(typed.iter().any(|(_, key, value)| key == "approvals"
            && value[0]["what"] == "network:host"
            && value[0]["reason"] == "--network host"));

        let args = parsed(&["--network", "host"]);
        let inherited = flags(&args, Written::Environment, &BTreeMap::new()).unwrap();
        assert!(inherited.iter().all(|flag| flag.key != "approvals"));
        assert!(inherited.iter().any(|flag| flag.name == "SANDBOX_NETWORK"));
    }

    #[test]
    fn a_bare_timeout_is_in_seconds() {
        assert_eq!(values(&["--timeout", "90"])[0].2, "90s");
        assert_eq!(values(&["--timeout", "5m"])[0].2, "5m");
    }

    #[test]
    fn a_variable_may_be_set_or_passed_on() {
        let environment = BTreeMap::from([("TOKEN".into(), "t".into())]);
        let given = parsed(&["--env", "A=b=c", "--env", "TOKEN"]);
        let given = flags(&given, Written::CommandLine, &environment).unwrap();
        assert_eq!(given[0].value, serde_json::json!({ "A": "b=c" }));
        assert_eq!(given[1].value, serde_json::json!({ "TOKEN": "t" }));
        assert_eq!(
            complaint(&["--env", "MISSING"]),
            "--env MISSING: not set in the environment; write MISSING=VALUE"
        );
        assert_eq!(
            complaint(&["--env", "=x"]),
            "--env =x: there is no name before the `=`; write NAME=VALUE"
        );
    }
}
