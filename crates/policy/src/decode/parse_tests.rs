use super::*;
use crate::model::{AllowedPorts, Level, NetworkMode, SyscallMode, View};
use crate::{LayerKind, Merged, PolicyLayer, Subject, merge};

fn yaml(text: &str) -> Result<PolicyDocument, Vec<Diagnostic>> {
    parse(text, "policy.yaml", Format::Yaml)
}

fn complaints(text: &str) -> Vec<String> {
    yaml(text).unwrap_err().iter().map(ToString::to_string).collect()
}

fn merged(text: &str, format: Format) -> Merged {
    let document = parse(text, "policy", format).unwrap();
    merge(&Subject::Run, vec![PolicyLayer { kind: LayerKind::User, document }]).unwrap()
}

/// The reference policy's values: all six sections, in the names and units of the RFC.
const REFERENCE: &str = r#"{
  "isolationLevel": "LEVEL_2",
  "filesystem": {
    "rootPath": "/var/sandbox/tool-1", "readOnlyPaths": ["/usr", "/lib", "/lib64"],
    "readWritePaths": ["/tmp", "/var/tmp"], "deniedPaths": ["/proc", "/sys", "/dev"],
    "maxFileSize": 10485760, "maxTotalSize": 104857600
  },
  "process": { "maxProcesses": 10, "allowFork": true, "allowExec": false, "allowedExecutables": [] },
  "network": { "allowNetwork": false, "allowedHosts": [], "allowedPorts": [], "maxConnections": 0 },
  "resources": { "maxCPU": 5000, "maxMemory": 52428800, "maxFileDescriptors": 100, "maxThreads": 10 },
  "syscalls": { "mode": "WHITELIST", "syscalls": ["read", "write", "open", "close", "exit_group"] }
}"#;

/// Proves: POL-2 json, POL-2 model, POL-2 appendix-policy
#[test]
fn the_reference_policy_loads_as_json() {
    let policy = merged(REFERENCE, Format::Json).policy;
    assert_eq!(policy.isolation_level, Level::Full);
    assert_eq!(policy.filesystem.root_path.as_deref(), Some("/var/sandbox/tool-1"));
    assert_eq!(policy.filesystem.read_write_paths, ["/tmp", "/var/tmp"]);
    assert_eq!(policy.filesystem.max_total_size, Some(104_857_600));
    assert_eq!(policy.process.max_processes, Some(10));
    assert!(!policy.process.allow_exec);
    assert_eq!(policy.network.mode, NetworkMode::None);
    assert_eq!(policy.network.max_connections, Some(0));
    assert_eq!(policy.resources.max_cpu, Some(5000));
    assert_eq!(policy.syscalls.mode, SyscallMode::Whitelist);
    assert_eq!(policy.syscalls.syscalls.len(), 5);
}

/// Proves: POL-2 appendix-policy, POL-2 not-enforced
#[test]
fn nothing_of_the_reference_policy_is_beyond_this_version() {
    assert_eq!(crate::not_enforced(&merged(REFERENCE, Format::Json)), []);
}

/// Proves: POL-2 limit-keys, POL-2 waivers
#[test]
fn every_limit_reads_in_the_units_people_write() {
    let text = "
resources:
  maxMemory: 2g
  memoryHigh: 1.5g
  maxSwap: 0
  cpus: 0.5
  cpuSet: 0-2,5
  maxCPU: 90s
  maxIOBandwidth: 50m
  maxIOPS: 500
  maxOutputSize: 1m
  normalizeTime: 500ms
  bestEffort: true
  waived: [iops, io-bandwidth]
filesystem: { maxTotalSize: 2g, maxInodes: 50000 }
";
    let policy = merged(text, Format::Yaml).policy;
    let resources = &policy.resources;
    assert_eq!(resources.max_memory, Some(2 << 30));
    assert_eq!(resources.memory_high, Some(3 << 29));
    assert_eq!(resources.max_swap, Some(0));
    assert_eq!(resources.milli_cpus, Some(500));
    assert_eq!(resources.cpu_set, Some([0, 1, 2, 5].into()));
    assert_eq!(resources.max_cpu, Some(90_000));
    assert_eq!(resources.max_io_bandwidth, Some(50 << 20));
    assert_eq!(resources.max_iops, Some(500));
    assert_eq!(resources.max_output_size, Some(1 << 20));
    assert_eq!(resources.normalize_time, Some(500));
    assert!(resources.best_effort);
    assert_eq!(resources.waived, ["iops", "io-bandwidth"]);
    assert_eq!(policy.filesystem.max_total_size, Some(2 << 30));
    assert_eq!(policy.filesystem.max_inodes, Some(50_000));
    let one = merged("resources: { cpuSet: 3 }", Format::Yaml).policy;
    assert_eq!(one.resources.cpu_set, Some([3].into()), "one CPU is a number to YAML");
}

/// Proves: POL-2 limit-keys
#[test]
fn limits_with_which_nothing_could_run_are_refused_with_what_is_needed() {
    let text = "\
resources:
  maxMemory: 4095k
  memoryHigh: 1
  maxFileDescriptors: 15
  normalizeTime: 3600001
";
    let complaints = complaints(text);
    for (line, words) in [
        (2, "`resources.maxMemory` (4095k) is too small to start a sandbox; at least 4m is needed"),
        (3, "`resources.memoryHigh` (1) is too small to start a sandbox; at least 4m is needed"),
        (
            4,
            "`resources.maxFileDescriptors` (15) is too small to start a sandbox; at least 16 is \
             needed",
        ),
        (
            5,
            "`resources.normalizeTime` (3600001ms) would delay every run by that much; at most 1h is \
             allowed",
        ),
    ] {
        let place = format!("policy.yaml:{line}:");
        let told = complaints.iter().find(|told| told.starts_with(&place));
        assert!(told.is_some_and(|told| told.ends_with(words)), "{words}\n{complaints:#?}");
    }
    let least =
        "resources: { maxMemory: 4m, memoryHigh: 4m, maxFileDescriptors: 16, normalizeTime: 1h }";
    merged(least, Format::Yaml);
}

/// Proves: POL-2 limit-keys, POL-2 waivers, POL-2 wrong-type
#[test]
fn limits_that_make_no_sense_are_refused_with_their_place() {
    let names = "memory, memory-high, swap, cpus, cpuset, cpu-time, pids, threads, open-files, file-size, disk, \
                 inodes, io-bandwidth, iops, timeout, max-output";
    let text = "\
resources:
  cpuSet: 0-3,7-5
  maxSwap: some
  memoryHigh: 0
  normalizeTime: 0
  bestEffort: 1
  waived: [memory, io-bandwith]
";
    let cpus = "numbers of CPUs and spans from a lower to a higher one, such as 0-3,5";
    assert_eq!(
        complaints(text),
        [
            format!("policy.yaml:2:11: `resources.cpuSet` must be {cpus}, not `0-3,7-5`"),
            "policy.yaml:3:12: `resources.maxSwap` must be a size such as 512m, or 0 for none, not \
             `some`"
                .to_owned(),
            "policy.yaml:4:15: `resources.memoryHigh` must be above zero, not `0`".to_owned(),
            "policy.yaml:5:18: `resources.normalizeTime` must be above zero, not `0`".to_owned(),
            "policy.yaml:6:15: `resources.bestEffort` must be true or false, not `1`".to_owned(),
            format!(
                "policy.yaml:7:20: `resources.waived` must be one of {names} (nearest: io-bandwidth), \
                 not `io-bandwith`"
            ),
        ]
    );
    assert_eq!(
        complaints("resources:\n  maxMemory: 1g\n  memoryHigh: 2g\n"),
        [
            "policy.yaml:3:3: `resources.memoryHigh` (2g) is above `resources.maxMemory` (1g), so it is \
          never reached; set it below, or remove it"
        ]
    );
    assert_eq!(
        complaints("resources:\n  cpus: 2.5\n  cpuSet: 0,1\n"),
        ["policy.yaml:2:3: `resources.cpus` (2.5) exceeds the CPUs in `resources.cpuSet` (0-1); \
          use fewer, or add CPUs to the set"]
    );
    assert!(yaml("resources: { maxMemory: 1g, memoryHigh: 1g, cpus: 2, cpuSet: 0-1 }").is_ok());
}

/// Proves: POL-2 yaml, POL-2 model
#[test]
fn yaml_and_json_of_the_same_policy_merge_to_the_same() {
    let yaml = "
isolationLevel: LEVEL_1
filesystem: { maxFileSize: 10m, project: read-only }
resources:
  timeout: 2m
  cpus: 1.5
process:
  env: { LANG: C }
network: { mode: none, allowedPorts: [443] }
";
    let json = r#"{"isolationLevel": 1, "filesystem": {"maxFileSize": 10485760, "project": "read-only"},
        "resources": {"timeout": 120000, "cpus": "1500m"}, "process": {"env": {"LANG": "C"}},
        "network": {"mode": "none", "allowedPorts": [443]}}"#;
    let policy = merged(yaml, Format::Yaml).policy;
    assert_eq!(policy, merged(json, Format::Json).policy);
    assert_eq!(policy.resources.milli_cpus, Some(1500));
    assert_eq!(policy.resources.timeout, Some(120_000));
}

/// Proves: POL-2 unknown-key
#[test]
fn an_unknown_key_names_file_line_column_and_the_nearest() {
    let text = "isolationLevel: LEVEL_2\nfilesystem:\n  deniedPaths: []\n  readOnlyPath: [/usr]\n";
    assert_eq!(
        complaints(text),
        ["policy.yaml:4:3: unknown key `filesystem.readOnlyPath`; did you mean `readOnlyPaths`?"]
    );
    let problem = &yaml(text).unwrap_err()[0];
    assert_eq!((problem.line, problem.column), (4, 3));
    assert_eq!(problem.key, "filesystem.readOnlyPath");
    assert_eq!(problem.suggestion.as_deref(), Some("readOnlyPaths"));
}

/// Proves: POL-2 unknown-key
#[test]
fn positions_are_exact_in_json_too() {
    let text = "{\n\t\"network\": {\n\t\t\"mode\": \"none\", \"alowedHosts\": [] }\n}";
    let problems = parse(text, "p.json", Format::Json).unwrap_err();
    assert_eq!(
        problems[0].to_string(),
        "p.json:3:19: unknown key `network.alowedHosts`; did you mean `allowedHosts`?"
    );
}

/// Proves: POL-2 unknown-key
#[test]
fn a_key_in_the_wrong_section_is_pointed_to_its_own() {
    assert_eq!(
        complaints("readOnlyPaths: []\n"),
        ["policy.yaml:1:1: unknown key `readOnlyPaths`; did you mean `filesystem.readOnlyPaths`?"]
    );
    assert_eq!(complaints("colour: blue\n"), ["policy.yaml:1:1: unknown key `colour`"]);
    assert_eq!(
        complaints("tools:\n  bash:\n    resources: {timeOut: 1s}\n"),
        ["policy.yaml:3:17: unknown key `tools.bash.resources.timeOut`; did you mean `timeout`?"]
    );
}

/// Proves: POL-2 wrong-type
#[test]
fn every_wrong_type_is_reported_with_its_place_not_only_the_first() {
    let text = "\
isolationLevel: LEVEL_9
filesystem:
  readOnlyPaths: /usr
  toolchains: yes
network:
  allowedPorts: [80, 99999, http]
resources:
  timeout: soon
  maxMemory: 0
";
    assert_eq!(
        complaints(text),
        [
            "policy.yaml:1:17: `isolationLevel` must be one of LEVEL_0, LEVEL_1, LEVEL_2, 0, 1, 2, \
             none, logical, process, container, bwrap, nsjail, not `LEVEL_9`",
            "policy.yaml:3:18: `filesystem.readOnlyPaths` must be a list, each entry a path, not `/usr`",
            "policy.yaml:4:15: `filesystem.toolchains` must be true or false, not `yes`",
            "policy.yaml:6:22: `network.allowedPorts` must be a port from 1 to 65535, not `99999`",
            "policy.yaml:6:29: `network.allowedPorts` must be a port from 1 to 65535, not `http`",
            "policy.yaml:8:12: `resources.timeout` must be a time such as 1500ms, 300s, 2m or 1h, not `soon`",
            "policy.yaml:9:14: `resources.maxMemory` must be above zero, not `0`",
        ]
    );
}

/// Proves: POL-2 wrong-type
#[test]
fn values_that_would_be_dropped_or_misread_are_refused() {
    for text in [
        "version: 2\n",
        "- a\n",
        "process: { env: { PORT: 80 } }\n",
        "process: { hostname: 'a b' }\n",
        "process: { uid: 4294967296 }\n",
        "process: { maxProcesses: '10' }\n",
        "filesystem: { readOnlyPaths: [''] }\n",
        "syscalls: { mode: WHITELIST, syscalls: ['Read File'] }\n",
        "approvals: [{ what: no-isolation }]\n",
        "approvals: [{ what: no-isolation, reason: '', by: me }]\n",
        "maximum: { resources: { timeout: -1 } }\n",
    ] {
        assert_eq!(yaml(text).unwrap_err()[0].problem, Problem::WrongType, "{text}");
    }
}

/// Proves: POL-2 contradiction
#[test]
fn a_key_given_twice_is_refused_in_both_formats() {
    let text = "resources:\n  timeout: 1s\n  timeout: 9s\n";
    assert_eq!(
        complaints(text),
        ["policy.yaml:3:3: `resources.timeout` is given twice, first in line 2"]
    );
    let json = "{\"view\": \"host\",\n \"view\": \"minimal\"}";
    let problems = parse(json, "p.json", Format::Json).unwrap_err();
    assert_eq!((problems[0].problem, problems[0].line), (Problem::DuplicateKey, 2));
}

/// Proves: POL-2 contradiction
#[test]
fn what_cannot_both_be_meant_is_refused() {
    for (text, key) in [
        ("network: { allowNetwork: false, mode: proxy }", "network.allowNetwork"),
        ("network: { mode: none, allowNetwork: true }", "network.allowNetwork"),
        ("filesystem: { readWritePaths: [/a/], deniedPaths: [/a] }", "filesystem.deniedPaths"),
        ("filesystem: { readOnlyPaths: [/a], readWritePaths: [/a] }", "filesystem.readWritePaths"),
        ("isolationLevel: LEVEL_0\nprocess: { uid: 5 }", "process.uid"),
        ("isolationLevel: LEVEL_2\nprocess: { userNamespace: false }", "process.userNamespace"),
        ("process: { allowExec: false, allowedExecutables: [ls] }", "process.allowedExecutables"),
        ("process: { envMode: clean, allowedEnvVars: [HOME] }", "process.allowedEnvVars"),
        ("network: { mode: host, allowedHosts: [a.example] }", "network.allowedHosts"),
        ("syscalls: { syscalls: [read] }", "syscalls.syscalls"),
        ("view: host\nisolationLevel: container", "view"),
        ("isolationLevel: container\nview: host", "view"),
        (
            "tools: { bash: { network: { allowNetwork: true, mode: none } } }",
            "tools.bash.network.allowNetwork",
        ),
    ] {
        let problems = yaml(text).unwrap_err();
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        assert_eq!((problems[0].problem, problems[0].key.as_str()), (Problem::Contradiction, key));
        assert!(problems[0].line > 0, "{text}");
    }
}

/// Proves: POL-1 aliases
#[test]
fn every_name_of_a_level_means_one_level_and_view() {
    for (name, level, view) in [
        ("LEVEL_1", Level::Process, View::Host),
        ("process", Level::Process, View::Host),
        ("1", Level::Process, View::Host),
        ("LEVEL_2", Level::Full, View::Host),
        ("2", Level::Full, View::Host),
        ("container", Level::Full, View::Minimal),
        ("bwrap", Level::Full, View::Minimal),
        ("nsjail", Level::Full, View::Minimal),
    ] {
        let policy = merged(&format!("isolationLevel: {name}\n"), Format::Yaml).policy;
        assert_eq!((policy.isolation_level, policy.view), (level, view), "{name}");
    }
}

/// Proves: POL-2 empty-list
#[test]
fn an_empty_host_or_port_list_clears_what_lower_layers_allowed() {
    let organisation = yaml("network: { allowedHosts: [a.example], allowedPorts: [443] }").unwrap();
    let user = yaml("network: { allowedHosts: [], allowedPorts: [] }").unwrap();
    let layers = vec![
        PolicyLayer { kind: LayerKind::Organisation, document: organisation },
        PolicyLayer { kind: LayerKind::User, document: user },
    ];
    let policy = merge(&Subject::Run, layers).unwrap().policy;
    assert!(policy.network.allowed_hosts.is_empty());
    assert_eq!(policy.network.allowed_ports, AllowedPorts::Only(Vec::new()));
}

/// Proves: POL-2 json
#[test]
fn a_json_file_must_be_json() {
    let problems = parse("{'view': host}", "p.json", Format::Json).unwrap_err();
    assert_eq!((problems[0].problem, problems[0].line), (Problem::Syntax, 1));
    assert!(parse("{'view': host}", "p.yaml", Format::Yaml).is_ok());
    for unfinished in ["", "{\n"] {
        let problem = parse(unfinished, "p.json", Format::Json).unwrap_err().remove(0);
        assert_eq!((problem.problem, problem.column), (Problem::Syntax, 1), "{problem}");
    }
    assert_eq!(Format::of("Policy.JSON"), Format::Json);
    assert_eq!(Format::of("policy.yml"), Format::Yaml);
}

/// Proves: POL-2 yaml
#[test]
fn broken_yaml_tags_and_second_documents_are_refused_with_their_line() {
    for (text, line) in [
        ("view: host\nmode: [a\n", 2),
        ("view: !x host\n", 1),
        ("view: host\n---\nview: host\n", 2),
    ] {
        let problem = yaml(text).unwrap_err().remove(0);
        assert_eq!(problem.problem, Problem::Syntax, "{text}");
        assert_eq!(problem.line, line, "{problem}");
    }
    assert!(complaints("view: &v host\nmode: *v\n")[0].contains("aliases are not accepted"));
    let deep = format!("view: {}{}", "[".repeat(100), "]".repeat(100));
    assert_eq!(yaml(&deep).unwrap_err()[0].problem, Problem::Syntax);
    assert_eq!(yaml("<<: {view: host}\n").unwrap_err()[0].problem, Problem::UnknownKey);
}

#[test]
fn an_empty_document_changes_nothing() {
    for text in ["", "# only a comment\n", "{}", "version: 1\n", "filesystem:\n"] {
        assert!(yaml(text).unwrap().settings.is_empty(), "{text:?}");
    }
}

#[test]
fn flags_add_up_and_complain_by_their_name() {
    let flags = vec![
        crate::Flag::new("--rw", "filesystem.readWritePaths", serde_json::json!(["/a"])),
        crate::Flag::new("--rw", "filesystem.readWritePaths", serde_json::json!(["/b"])),
        crate::Flag::new("--preset", "preset", "strict"),
    ];
    let document = PolicyDocument::from_flags(flags).unwrap();
    assert_eq!(
        crate::settings::list(&document.settings, "filesystem.readWritePaths"),
        ["/a", "/b"]
    );
    assert_eq!(document.presets[0].name, "strict");
    let wrong = vec![crate::Flag::new("--network", "network.mode", "internet")];
    let problem = PolicyDocument::from_flags(wrong).unwrap_err().remove(0).to_string();
    assert!(problem.starts_with("--network: `network.mode` must be one of none"), "{problem}");
}
