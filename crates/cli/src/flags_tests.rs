use super::{Written, flags};
use crate::args::PolicyArgs;
use crate::line::Cli;
use clap::{Args, CommandFactory, FromArgMatches};
use palisade_policy::limit::{LimitKind, Unit};
use palisade_policy::{LayerKind, Merged, PolicyDocument, PolicyLayer, Resources, Subject, merge};
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

/// What these options alone make of the policy; else the first complaint.
fn merged(line: &[&str]) -> Result<Merged, String> {
    let given = flags(&parsed(line), Written::CommandLine, &BTreeMap::new()).unwrap();
    PolicyDocument::from_flags(given)
        .and_then(|document| {
            merge(&Subject::Run, vec![PolicyLayer { kind: LayerKind::CommandLine, document }])
        })
        .map_err(|problems| problems[0].to_string())
}

fn resources(line: &[&str]) -> Resources {
    merged(line).unwrap().policy.resources
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
        "--no-protect-names turns protection off, so --allow-write has no effect; remove one of them"
    );
    assert_eq!(
        complaint(&["--level", "0", "--rw", "/data"]),
        "--level 0 isolates nothing, so --rw cannot be enforced; remove one of them"
    );
    assert_eq!(
        complaint(&["--level", "1", "--hostname", "x"]),
        "--hostname: a host name needs the UTS namespace of LEVEL_2, which --level 1 does not have; \
         remove one of them"
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
fn a_bare_time_is_in_seconds() {
    for option in ["--timeout", "--cpu-time", "--grace", "--normalize-time", "--ask-timeout"] {
        assert_eq!(values(&[option, "90"])[0].2, "90s");
        assert_eq!(values(&[option, "1.5"])[0].2, "1.5s");
        assert_eq!(values(&[option, "5m"])[0].2, "5m");
    }
}

/// What `--waive-limit` and plan and report call a limit is the option that asks for it.
///
/// Proves: POL-2 limit-keys, POL-2 waivers
#[test]
fn every_limit_has_an_option_of_its_name_and_can_be_waived_by_it() {
    for limited in LimitKind::ALL {
        let option = format!("--{}", limited.name());
        let given = values(&[&option, "1"]);
        assert_eq!(given.len(), 1, "{option}");
        assert_eq!((given[0].0.as_str(), given[0].1.as_str()), (option.as_str(), limited.key()));
        let waived = resources(&["--waive-limit", limited.name()]).waived;
        assert_eq!(waived, [limited.name()]);
    }
}

/// Proves: POL-2 limit-keys, POL-2 waivers
#[test]
fn limits_arrive_in_the_units_of_the_policy() {
    let resources = resources(&[
        "--memory",
        "1073741824",
        "--swap",
        "512m",
        "--cpus",
        "1.5",
        "--cpuset",
        "0-1,3",
        "--cpu-time",
        "90",
        "--threads",
        "400",
        "--open-files",
        "1024",
        "--io-bandwidth",
        "50m",
        "--iops",
        "500",
        "--timeout",
        "2m",
        "--max-output",
        "1m",
        "--best-effort-limits",
        "--waive-limit",
        "cpus",
        "--waive-limit",
        "iops",
        "--normalize-time",
        "5",
    ]);
    assert_eq!(resources.max_memory, Some(1 << 30));
    assert_eq!(resources.max_swap, Some(512 << 20));
    assert_eq!(resources.milli_cpus, Some(1500));
    assert_eq!(resources.cpu_set, Some([0, 1, 3].into()));
    assert_eq!(resources.max_cpu, Some(90_000));
    assert_eq!(resources.max_threads, Some(400));
    assert_eq!(resources.max_file_descriptors, Some(1024));
    assert_eq!(resources.max_io_bandwidth, Some(50 << 20));
    assert_eq!(resources.max_iops, Some(500));
    assert_eq!(resources.timeout, Some(120_000));
    assert_eq!(resources.max_output_size, Some(1 << 20));
    assert!(resources.best_effort);
    assert_eq!(resources.waived, ["cpus", "iops"]);
    assert_eq!(resources.normalize_time, Some(5000));
    let policy = merged(&["--file-size", "1m", "--disk", "2g", "--inodes", "9", "--pids", "7"]);
    let policy = policy.unwrap().policy;
    assert_eq!(policy.filesystem.max_file_size, Some(1 << 20));
    assert_eq!(policy.filesystem.max_total_size, Some(2 << 30));
    assert_eq!(policy.filesystem.max_inodes, Some(9));
    assert_eq!(policy.process.max_processes, Some(7));
}

/// Proves: POL-2 wrong-type, POL-2 contradiction, LIFE-3 bad-input
#[test]
fn a_limit_that_makes_no_sense_is_refused_by_the_name_of_its_option() {
    for (line, words) in [
        (&["--memory", "lots"][..], "--memory: `resources.maxMemory` must be a size such as 512m"),
        (&["--pids", "many"], "--pids: `process.maxProcesses` must be a whole number, not `many`"),
        (&["--pids=-1"], "--pids: `process.maxProcesses` must be a whole number, not `-1`"),
        (&["--cpus", "0"], "--cpus: `resources.cpus` must be a number of CPUs above zero"),
        (&["--cpuset", "3-1"], "--cpuset: `resources.cpuSet` must be numbers of CPUs"),
        (&["--swap", "1g"], "--swap: `resources.maxSwap` is added to `resources.maxMemory`"),
        (&["--waive-limit", "memroy"], "(nearest: memory), not `memroy`"),
        (&["--cpus", "3", "--cpuset", "0-1"], "--cpus: `resources.cpus` (3) exceeds the CPUs"),
    ] {
        let complaint = merged(line).unwrap_err();
        assert!(complaint.contains(words), "{complaint}");
    }
}

/// Proves: POL-2 limit-keys
#[test]
fn the_help_of_every_limit_names_its_key() {
    let command = PolicyArgs::augment_args(clap::Command::new("test"));
    let limits = command.get_arguments().filter(|it| it.get_help_heading() == Some("Limits"));
    let mut count = 0;
    for option in limits {
        let help = option.get_long_help().or(option.get_help());
        let help = help.map(ToString::to_string).unwrap_or_default();
        let key = help.rsplit_once("[policy: ").and_then(|(_, key)| key.strip_suffix(']'));
        let Some(key) = key else { panic!("{help}") };
        let name = option.get_long().unwrap();
        let value = if option.get_action().takes_values() { "=1" } else { "" };
        let given = values(&[&format!("--{name}{value}")]);
        assert_eq!(given[0].1, key, "{name}");
        if let Some(limit) = LimitKind::named(name) {
            assert_eq!((limit.key(), help_value(limit)), (key, value_name(option)), "{name}");
            count += 1;
        }
    }
    assert_eq!(count, LimitKind::ALL.len());
}

/// What the help calls the value of a limit.
fn help_value(limit: LimitKind) -> &'static str {
    match limit.unit() {
        Unit::Bytes | Unit::BytesPerSecond => "SIZE",
        Unit::Milliseconds => "TIME",
        Unit::CpuCount => "CPUS",
        Unit::MilliCpus | Unit::OperationsPerSecond | Unit::Count => "NUMBER",
    }
}

fn value_name(option: &clap::Arg) -> &str {
    option.get_value_names().map_or("", |names| names[0].as_str())
}

/// Proves: POL-2 limit-keys
#[test]
fn run_offers_every_limit() {
    let command = Cli::command();
    let run = command.find_subcommand("run").unwrap();
    for limit in LimitKind::ALL {
        let offered = run.get_arguments().any(|option| option.get_long() == Some(limit.name()));
        assert!(offered, "{limit:?}");
    }
}

#[test]
fn a_variable_may_be_set_or_passed_on() {
    let names = [("TOKEN", "t"), ("HOME", "ours"), ("PALISADE_ENV_HOME", "theirs")];
    let environment = names.map(|(name, value)| (name.into(), value.into())).into();
    let given = parsed(&["--env", "A=b=c", "--env", "TOKEN", "--env", "HOME"]);
    let given = flags(&given, Written::CommandLine, &environment).unwrap();
    assert_eq!(given[0].value, serde_json::json!({ "A": "b=c" }));
    assert_eq!(given[1].value, serde_json::json!({ "TOKEN": "t" }));
    assert_eq!(
        given[2].value,
        serde_json::json!({ "HOME": "theirs" }),
        "a value that is kept apart"
    );
    assert_eq!(
        complaint(&["--env", "MISSING"]),
        "--env MISSING: not set in the environment; write MISSING=VALUE"
    );
    assert_eq!(
        complaint(&["--env", "=x"]),
        "--env =x: the name before `=` is missing; write NAME=VALUE"
    );
}
