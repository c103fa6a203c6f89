//! `SANDBOX_*` variables as options: the same definitions, read a second time.
//!
//! A value that an option would refuse is refused, and so is a name that was meant to be another;
//! names far from every option belong to somebody else and are left alone.

use crate::args::{PolicyArgs, ReportArgs};
use anyhow::bail;
use clap::{ArgAction, Args};
use palisade_policy::{ENVIRONMENT_NAMES, nearest};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

const PREFIX: &str = "SANDBOX_";
/// Read by the policy crate, which also knows the words other products use for them.
const READ_ELSEWHERE: [&str; 2] = ["SANDBOX_MODE", "SANDBOX_NETWORK"];
/// Set in every sandbox, and no option of one.
const SET_INSIDE: &str = "SANDBOX_SESSION";

/// The variable that stands for an option: `--env-mode` is `SANDBOX_ENV_MODE`.
pub(crate) fn variable_of(option: &str) -> String {
    format!("{PREFIX}{}", option.to_uppercase().replace('-', "_"))
}

/// What the environment says of these options.
pub(crate) fn options<A: Args + Default>(
    environment: &BTreeMap<OsString, OsString>,
) -> anyhow::Result<A> {
    // Building the definitions takes longer than anything else here.
    if !environment.keys().any(|name| name.to_string_lossy().starts_with(PREFIX)) {
        return Ok(A::default());
    }
    let definitions = definitions_of::<A>();
    let mut line: Vec<OsString> = vec!["environment".into()];
    for argument in definitions.get_arguments() {
        let Some(option) = argument.get_long() else { continue };
        let variable = variable_of(option);
        let Some(value) = environment.get(OsStr::new(&variable)) else { continue };
        if READ_ELSEWHERE.contains(&variable.as_str()) || value.is_empty() {
            continue;
        }
        let Some(value) = value.to_str() else { bail!("{variable} is not UTF-8 text") };
        match argument.get_action() {
            ArgAction::SetTrue => match value {
                "1" | "true" | "yes" => line.push(format!("--{option}").into()),
                "0" | "false" | "no" => {}
                other => bail!("{variable}={other}: write 1 or 0"),
            },
            ArgAction::Append => {
                let items = value.split(separator_of(option));
                line.extend(items.map(|item| format!("--{option}={item}").into()));
            }
            _ => line.push(format!("--{option}={value}").into()),
        }
    }
    if line.len() == 1 {
        return Ok(A::default());
    }
    Ok(A::from_arg_matches(&definitions.try_get_matches_from(line)?)?)
}

/// A slip in a variable's name must not leave a run looser than its author believes.
pub(crate) fn refuse_misspelt(environment: &BTreeMap<OsString, OsString>) -> anyhow::Result<()> {
    let given: Vec<&str> = environment
        .keys()
        .filter(|name| *name != SET_INSIDE)
        .filter_map(|name| name.to_str()?.strip_prefix(PREFIX))
        .collect();
    if given.is_empty() {
        return Ok(());
    }
    let mut known = vec![];
    for definitions in [definitions_of::<PolicyArgs>(), definitions_of::<ReportArgs>()] {
        known.extend(definitions.get_arguments().filter_map(|it| it.get_long().map(variable_of)));
    }
    known.extend(ENVIRONMENT_NAMES.map(str::to_owned));
    let known: Vec<&str> = known.iter().filter_map(|name| name.strip_prefix(PREFIX)).collect();
    for name in given.iter().filter(|name| !known.contains(name)) {
        // The common prefix would make every short name seem near.
        if let Some(near) = nearest(name, known.iter().copied()) {
            bail!("unknown variable {PREFIX}{name}; did you mean {PREFIX}{near}?");
        }
    }
    Ok(())
}

/// Paths have a colon between them; hosts, ports and secrets have colons in them.
fn separator_of(option: &str) -> char {
    match option {
        // Those take lists with commas themselves.
        "allow-host" | "deny-host" | "allow-for" | "allow-private" | "publish" => ' ',
        "credential" => ';',
        _ => ':',
    }
}

fn definitions_of<A: Args>() -> clap::Command {
    let mut definitions = A::augment_args(clap::Command::new("environment"));
    definitions.build();
    definitions
}

#[cfg(test)]
mod tests {
    use super::{options, refuse_misspelt};
    use crate::args::{PolicyArgs, ReportArgs};
    use std::collections::BTreeMap;
    use std::ffi::OsString;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<OsString, OsString> {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn every_kind_of_option_has_its_twin() {
        let set = [
            ("SANDBOX_LEVEL", "1"),
            ("SANDBOX_ENV_MODE", "clean"),
            ("SANDBOX_RO", "/data:~/notes"),
            ("SANDBOX_ALLOW_WRITE", ".vscode:.idea"),
            ("SANDBOX_NO_DEBUG", "1"),
            ("SANDBOX_STATIC", "0"),
            ("SANDBOX_TIME_OFFSET", "-60"),
            ("SANDBOX_MEMORY", "512m"),
            ("SANDBOX_CPU_TIME", "90"),
            ("SANDBOX_BEST_EFFORT_LIMITS", "1"),
            ("SANDBOX_WAIVE_LIMIT", "cpus:io-bandwidth"),
            ("SANDBOX_ALLOW_HOST", "a.example:80,443,b.example c.example"),
            ("SANDBOX_PUBLISH", "8080:80,[::1]:22:22"),
            ("SANDBOX_CREDENTIAL", "A=env:A,host=a.example;B=env:B,host=b.example"),
            ("SANDBOX_METRICS_FILE", "m.prom"),
            ("SANDBOX_REPORT", "r.json"),
            ("SANDBOX_QUIET", "1"),
        ];
        let read: PolicyArgs = options(&environment(&set)).unwrap();
        assert_eq!(read.level.as_deref(), Some("1"));
        assert_eq!(read.env_mode.as_deref(), Some("clean"));
        assert_eq!(read.ro, ["/data", "~/notes"]);
        assert_eq!(read.allow_write, [".vscode", ".idea"]);
        assert!(read.no_debug);
        assert!(!read.static_mode);
        assert_eq!(read.time_offset.as_deref(), Some("-60"));
        assert_eq!(read.egress.allow_host, ["a.example:80,443,b.example", "c.example"]);
        assert_eq!(read.egress.publish, ["8080:80,[::1]:22:22"]);
        assert_eq!(read.egress.credential.len(), 2);
        assert_eq!(read.limits.memory.as_deref(), Some("512m"));
        assert_eq!(read.limits.cpu_time.as_deref(), Some("90"));
        assert!(read.limits.best_effort_limits);
        assert_eq!(read.limits.waive_limit, ["cpus", "io-bandwidth"]);
        let read: ReportArgs = options(&environment(&set)).unwrap();
        assert_eq!(read.metrics_file.as_deref(), Some("m.prom".as_ref()));
        assert_eq!(read.report.as_deref(), Some("r.json".as_ref()));
        assert!(read.quiet && !read.json);
    }

    #[test]
    fn what_a_sandbox_sets_inside_is_not_an_option() {
        let inside = [("SANDBOX", "1"), ("SANDBOX_SESSION", "x"), ("PATH", "/bin")];
        refuse_misspelt(&environment(&inside)).unwrap();
        let read: PolicyArgs = options(&environment(&inside)).unwrap();
        assert!(read.level.is_none() && read.preset.is_empty());
    }

    /// Proves: LIFE-3 bad-input
    #[test]
    fn a_misspelt_name_is_refused_and_a_strangers_is_not() {
        for (typed, meant) in [
            ("SANDBOX_LEVLE", "SANDBOX_LEVEL"),
            ("SANDBOX_REPORTS", "SANDBOX_REPORT"),
            ("SANDBOX_MEMORY_LIMIT", "SANDBOX_MEMORY_LIMIT_MB"),
            ("SANDBOX_MEMROY", "SANDBOX_MEMORY"),
            ("SANDBOX_WAIVE_LIMITS", "SANDBOX_WAIVE_LIMIT"),
        ] {
            let error = refuse_misspelt(&environment(&[(typed, "1")])).unwrap_err().to_string();
            assert_eq!(error, format!("unknown variable {typed}; did you mean {meant}?"));
        }
        let strangers = ["SANDBOX_ID", "SANDBOX_HOME", "SANDBOX_URL", "SANDBOX_", "SANDBOX_ROOT"];
        refuse_misspelt(&environment(&strangers.map(|name| (name, "x")))).unwrap();
    }

    #[test]
    fn a_switch_takes_only_yes_or_no() {
        let set = environment(&[("SANDBOX_NO_DEBUG", "perhaps")]);
        let error = options::<PolicyArgs>(&set).unwrap_err();
        assert_eq!(error.to_string(), "SANDBOX_NO_DEBUG=perhaps: write 1 or 0");
    }
}
