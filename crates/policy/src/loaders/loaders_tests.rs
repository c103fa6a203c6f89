use super::*;
use crate::model::{AllowedPorts, Level, Mode, NetworkMode, ProjectAccess, View};
use crate::{LayerKind, Policy, PolicyLayer, Problem, Subject, merge, not_enforced};
use std::collections::BTreeMap;

fn loaded(text: &str, file: &str) -> LoadedDocument {
    load(text, file).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn policy(loaded: &LoadedDocument) -> Policy {
    let layer = PolicyLayer { kind: LayerKind::User, document: loaded.document.clone() };
    merge(&Subject::Run, vec![layer]).unwrap().policy
}

fn refusals(loaded: &LoadedDocument) -> Vec<&str> {
    loaded.document.refused.iter().map(|refusal| refusal.key.as_str()).collect()
}

fn warns(loaded: &LoadedDocument, words: &str) -> bool {
    loaded.warnings.iter().any(|warning| warning.line > 0 && warning.message.contains(words))
}

const AGENT_TOOLS: &str = r#"{
  "sandbox": {
    "bash": {
      "defaultNetwork": "none",
      "proxyAllowlist": ["*.corp.example", "packages.local"],
      "resources": { "memory": "1g", "timeout": 300000 }
    },
    "images": { "default": "base:latest", "node": "node:latest" }
  }
}"#;

/// Proves: POL-3 tool-json, POL-3 images, POL-5 import
#[test]
fn an_agents_tool_settings_load_for_that_tool() {
    let loaded = loaded(AGENT_TOOLS, "settings.json");
    assert_eq!(loaded.kind, SourceKind::AgentTools);
    let layer = PolicyLayer { kind: LayerKind::User, document: loaded.document.clone() };
    let bash = merge(&Subject::Tool("bash".into()), vec![layer]).unwrap();
    assert_eq!(bash.policy.resources.max_memory, Some(1 << 30));
    assert_eq!(bash.policy.resources.timeout, Some(300_000));
    assert_eq!(bash.policy.network.mode, NetworkMode::None);
    assert_eq!(written(&bash.policy.network.allowed_hosts), ["*.corp.example", "packages.local"]);
    assert_eq!(refusals(&loaded), ["sandbox.images"]);
    assert!(not_enforced(&bash).iter().any(|refusal| refusal.key == "sandbox.images"));
    let written = loaded.document.to_json();
    assert_eq!(written["tools"]["bash"]["resources"]["timeout"], 300_000);
}

fn written(hosts: &[palisade_hosts::HostEntry]) -> Vec<&str> {
    hosts.iter().map(|host| host.written.as_str()).collect()
}

/// Proves: POL-3 contradiction-warning
#[test]
fn an_allowed_host_that_the_block_list_beats_is_warned_of() {
    let tools = loaded(AGENT_TOOLS, "settings.json");
    assert!(warns(&tools, "`packages.local` stays blocked by `*.local`"));
    assert_eq!(tools.warnings.len(), 1);
    assert_eq!(tools.warnings[0].line, 5);
    let proxy = r#"{"allowlist": {"hosts": ["a.corp.example"], "ports": [443]},
        "blocklist": {"hosts": ["*.corp.example"]}}"#;
    assert!(warns(&loaded(proxy, "proxy.json"), "stays blocked by `*.corp.example`"));
}

/// Proves: POL-3 tool-json
#[test]
fn an_unknown_key_of_an_agents_settings_is_refused_like_ours() {
    let text = "{\"sandbox\": {\n \"bash\": { \"defaultNetwrk\": \"none\" } } }";
    let problems = load(text, "settings.json").unwrap_err();
    assert_eq!(
        problems[0].to_string(),
        "settings.json:2:12: unknown key `sandbox.bash.defaultNetwrk`; did you mean `defaultNetwork`?"
    );
    let text = r#"{"sandbox": {"bash": {"resources": {"memory": "lots"}}}}"#;
    let problems = load(text, "settings.json").unwrap_err();
    assert_eq!(
        (problems[0].problem, problems[0].key.as_str()),
        (Problem::WrongType, "sandbox.bash.resources.memory")
    );
}

/// Proves: POL-3 proxy-config
#[test]
fn an_egress_proxys_configuration_loads() {
    let text = r#"{
      "listenAddr": "0.0.0.0:3128",
      "allowlist": { "hosts": ["*.forge.example"], "ports": [80, 443] },
      "blocklist": { "hosts": ["localhost"], "ipRanges": ["10.0.0.0/8", "fd00:ec2::254/128"] },
      "logRequests": true, "logResponses": false
    }"#;
    let loaded = loaded(text, "proxy.json");
    assert_eq!(loaded.kind, SourceKind::Proxy);
    let policy = policy(&loaded);
    assert_eq!(policy.network.mode, NetworkMode::Proxy);
    assert_eq!(policy.network.allowed_ports, AllowedPorts::Only(vec![80, 443]));
    assert_eq!(
        written(&policy.network.denied_hosts),
        ["localhost", "10.0.0.0/8", "fd00:ec2::254/128"]
    );
    assert_eq!(loaded.listen, Some("0.0.0.0:3128".parse().unwrap()));
    assert!(refusals(&loaded).is_empty());
}

const CARGO: &str = r#"
sandbox_config:
  resource_limits: { memory_mb: 2048, cpu_seconds: 300, wall_seconds: 600, processes: 50, threads: 100, files: 1000 }
  file_system: { workspace_size_mb: 10240, target_size_mb: 5120, log_size_mb: 100, temp_size_mb: 1024 }
  network:
    enabled: true
    allowlist: [registry.example, forge.example]
    ports: [80, 443]
  security: { strict_mode: true, audit_logging: true, block_shell_access: true }
"#;

/// Proves: POL-3 cargo-yaml
#[test]
fn a_cargo_runners_configuration_loads_in_its_own_units() {
    let loaded = loaded(CARGO, "cargo.yaml");
    assert_eq!(loaded.kind, SourceKind::CargoRunner);
    let policy = policy(&loaded);
    assert_eq!(policy.resources.max_memory, Some(2048 << 20));
    assert_eq!(policy.resources.max_cpu, Some(300_000));
    assert_eq!(policy.resources.timeout, Some(600_000));
    assert_eq!(policy.process.max_processes, Some(50));
    assert_eq!(policy.resources.max_threads, Some(100));
    assert_eq!(policy.resources.max_file_descriptors, Some(1000));
    assert_eq!(policy.filesystem.max_total_size, Some(5 << 30), "that of target, which is smaller");
    assert!(warns(&loaded, "the smaller `target_size_mb` is the limit on both"));
    assert_eq!(policy.resources.max_output_size, Some(100 << 20));
    assert_eq!(policy.filesystem.tmp_size, Some(1 << 30));
    assert_eq!(policy.network.mode, NetworkMode::Proxy);
    assert!(!policy.process.debug && policy.escape.strict);
    let programs = &policy.process.allowed_executables;
    assert!(programs.iter().any(|name| name == "cargo"), "{programs:?}");
    assert!(!programs.iter().any(|name| name == "sh" || name == "bash"), "{programs:?}");
    assert_eq!(refusals(&loaded), [""; 0]);
}

/// Proves: POL-3 cargo-yaml, CARGO-1 layout, CARGO-1 executables
#[test]
fn a_cargo_runners_directories_and_blocked_programs_become_what_enforces_them() {
    let text = r#"
directory_permissions: { workspace: "ro", cargo_home: "rw", target: "rw", logs: "wo", metadata: "rw" }
execution_policy:
  allowed_executables: [cargo, rustc, rustup, git, cc]
  blocked_executables: [sh, bash, powershell, cmd, python, node]
"#;
    let runner = loaded(text, "cargo.yaml");
    assert_eq!(refusals(&runner), [""; 0]);
    let policy = policy(&runner);
    assert_eq!(policy.filesystem.project, ProjectAccess::ReadOnly);
    assert_eq!(policy.filesystem.read_write_paths, ["target"]);
    assert_eq!(policy.filesystem.caches, crate::CacheAccess::Own);
    assert_eq!(policy.process.allowed_executables, ["cargo", "rustc", "rustup", "git", "cc"]);
    for (text, refused) in [
        ("directory_permissions: { workspace: wo }", "directory_permissions.workspace"),
        ("directory_permissions: { logs: rw }", "directory_permissions.logs"),
        ("execution_policy: { blocked_executables: [sh] }", "execution_policy.blocked_executables"),
        (
            "execution_policy: { allowed_executables: [cc, sh], blocked_executables: [sh] }",
            "execution_policy.blocked_executables",
        ),
    ] {
        assert_eq!(refusals(&loaded(text, "cargo.yaml")), [refused], "{text}");
    }
}

/// Proves: POL-3 contradiction-warning
#[test]
fn a_cargo_runners_contradictions_are_warned_of() {
    let text = r#"
process_limits: { cpu_time: 300s, wall_time: 600s, memory: 512MB, processes: 25 }
network_allowlist: [registry.example, forge.example]
port_restrictions: { allowed_ports: [80, 443], blocked_ranges: ["1-1023", "8080-8090"] }
blocked_paths: [/etc, /usr/bin, /root, "/home/*/.*", "C:/Windows"]
execution_policy:
  allowed_executables: [cargo, rustc, git]
  command_validation:
    - { regex: '^cargo\s+(build|test)\s', description: basic commands }
    - { regex: '^cargo\s+--version$', description: version }
"#;
    let loaded = loaded(text, "cargo.yaml");
    for words in [
        "`1-1023` would block port 443",
        "no host `index.…`",
        "no linker here",
        "ends in a blank",
        "`/usr/bin` stays readable",
        "`C:/Windows` is not a path",
    ] {
        assert!(warns(&loaded, words), "{words}: {:?}", loaded.warnings);
    }
    let blanks = loaded.warnings.iter().filter(|w| w.message.contains("ends in a blank"));
    assert_eq!(blanks.count(), 1);
    let policy = policy(&loaded);
    assert_eq!(policy.network.allowed_ports, AllowedPorts::Only(vec![80, 443]));
    assert_eq!(policy.filesystem.denied_paths, ["/root"]);
    assert_eq!(policy.resources.max_memory, Some(512 << 20));
    let complete =
        "network_allowlist: [registry.example, index.registry.example, static.registry.example]";
    assert!(load(complete, "cargo.yaml").unwrap().warnings.is_empty());
}

fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Proves: POL-3 env-keys
#[test]
fn the_environment_keys_load_with_and_without_their_prefix() {
    for prefix in ["", "CODELIA_"] {
        let pairs = [
            ("SANDBOX_MODE", "bwrap"),
            ("SANDBOX_NETWORK", "disabled"),
            ("SANDBOX_CPU_LIMIT", "1.5"),
            ("SANDBOX_MEMORY_LIMIT_MB", "256"),
        ];
        let mut map = BTreeMap::from([("SANDBOX_SESSION".to_owned(), "x".to_owned())]);
        map.extend(pairs.map(|(name, value)| (format!("{prefix}{name}"), value.to_owned())));
        let policy = policy(&load_environment(&map).unwrap());
        assert_eq!((policy.isolation_level, policy.view), (Level::Full, View::Minimal));
        assert_eq!(policy.network.mode, NetworkMode::None);
        assert_eq!(policy.resources.milli_cpus, Some(1500));
        assert_eq!(policy.resources.max_memory, Some(256 << 20));
    }
}

/// Proves: POL-3 env-keys, POL-3 limits
#[test]
fn one_limit_is_not_said_by_two_variables() {
    for (limit, option) in
        [("SANDBOX_CPU_LIMIT", "SANDBOX_CPUS"), ("SANDBOX_MEMORY_LIMIT_MB", "SANDBOX_MEMORY")]
    {
        let both =
            |option_value| load_environment(&variables(&[(limit, "8"), (option, option_value)]));
        let problem = both("8").unwrap_err().remove(0);
        assert_eq!(problem.problem, Problem::Contradiction);
        assert_eq!(
            problem.to_string(),
            format!(
                "{limit}: `{limit}` and `{option}` are about the same limit; keep one of the two"
            )
        );
        assert!(both("").is_ok(), "an empty one is as good as none");
    }
}

/// Proves: POL-3 limits
#[test]
fn limits_of_other_programs_files_are_held_like_ours() {
    let tools = r#"{"sandbox": {
        "bash": { "resources": { "memory": "2g", "timeout": 600000, "cpus": 1.5 } },
        "read": { "timeout": 300000, "maxOutputSize": 10485760 }
    }}"#;
    let cargo = "process_limits: { cpu_time: 300s, wall_time: 600s, memory: 512MB, processes: 25, \
                 threads: 50, file_descriptors: 500 }\n\
                 size_limits: { total_workspace: 10GB, temp_files: 1GB }";
    let merged = |subject: &Subject, loaded: &LoadedDocument| {
        merge(
            subject,
            vec![PolicyLayer { kind: LayerKind::User, document: loaded.document.clone() }],
        )
    };
    let tools = loaded(tools, "settings.json");
    let bash = merged(&Subject::Tool("bash".into()), &tools).unwrap();
    assert_eq!(bash.policy.resources.max_memory, Some(2 << 30));
    assert_eq!(bash.policy.resources.timeout, Some(600_000));
    assert_eq!(bash.policy.resources.milli_cpus, Some(1500));
    let read = merged(&Subject::Tool("read".into()), &tools).unwrap();
    assert_eq!(read.policy.resources.timeout, Some(300_000));
    assert_eq!(read.policy.resources.max_output_size, Some(10 << 20));
    let cargo = merged(&Subject::Run, &loaded(cargo, "cargo.yaml")).unwrap();
    assert_eq!(cargo.policy.resources.max_cpu, Some(300_000));
    assert_eq!(cargo.policy.resources.timeout, Some(600_000));
    assert_eq!(cargo.policy.resources.max_memory, Some(512 << 20));
    assert_eq!(cargo.policy.process.max_processes, Some(25));
    assert_eq!(cargo.policy.resources.max_threads, Some(50));
    assert_eq!(cargo.policy.resources.max_file_descriptors, Some(500));
    assert_eq!(cargo.policy.filesystem.max_total_size, Some(10 << 30));
    assert_eq!(cargo.policy.filesystem.tmp_size, Some(1 << 30));
    for merged in [bash, read, cargo] {
        assert_eq!(not_enforced(&merged), []);
    }
    let above = r#"{"sandbox": {"bash": {"resources": {"memory": "3g"}}}}"#;
    let above = merged(&Subject::Tool("bash".into()), &loaded(above, "settings.json")).unwrap_err();
    assert_eq!(above[0].problem, Problem::AboveMaximum);
}

/// Proves: POL-3 env-keys
#[test]
fn a_mode_variable_is_a_level_or_a_gate_mode_and_nothing_else() {
    let mode = |value| load_environment(&variables(&[("SANDBOX_MODE", value)]));
    assert_eq!(policy(&mode("static").unwrap()).mode, Mode::Static);
    assert_eq!(policy(&mode("process").unwrap()).isolation_level, Level::Process);
    assert_eq!(mode("tight").unwrap_err()[0].file, "SANDBOX_MODE");
}

/// Proves: POL-3 env-keys
#[test]
fn environment_keys_that_cannot_be_held_contradict_or_are_misspelt_are_refused() {
    let map = variables(&[("SANDBOX_ROOT", "/srv"), ("SANDBOX_TTL_SECONDS", "60")]);
    let loaded = load_environment(&map).unwrap();
    assert_eq!(loaded.document.refused.len(), 1);
    assert_eq!(policy(&loaded).resources.time_to_live, Some(60_000));
    let map = variables(&[("SANDBOX_NETWORK", "enabled"), ("CODELIA_SANDBOX_NETWORK", "disabled")]);
    assert_eq!(load_environment(&map).unwrap_err()[0].problem, Problem::Contradiction);
    let map = variables(&[("CODELIA_SANDBOX_NETWROK", "disabled")]);
    let problem = load_environment(&map).unwrap_err().remove(0);
    assert_eq!(problem.suggestion.as_deref(), Some("CODELIA_SANDBOX_NETWORK"));
    for (name, value) in [("SANDBOX_NETWORK", "maybe"), ("SANDBOX_MEMORY_LIMIT_MB", "1g")] {
        let problem = load_environment(&variables(&[(name, value)])).unwrap_err().remove(0);
        assert_eq!(problem.problem, Problem::WrongType);
    }
}

/// Proves: POL-3 srt
#[test]
fn sandbox_runtime_settings_load_with_their_meaning() {
    let text = r#"{
      "network": { "allowedDomains": ["forge.example"], "deniedDomains": ["bad.example"],
        "allowUnixSockets": ["/var/run/docker.sock"], "allowLocalBinding": true },
      "filesystem": { "denyRead": ["~/.ssh"], "allowWrite": [".", "/tmp/x", ".env"], "denyWrite": [".env"] },
      "ignoreViolations": { "*": ["/usr/bin"] },
      "enableWeakerNestedSandbox": false
    }"#;
    let loaded = loaded(text, "srt-settings.json");
    assert_eq!(loaded.kind, SourceKind::SandboxRuntime);
    let policy = policy(&loaded);
    assert_eq!(policy.network.mode, NetworkMode::Proxy);
    assert_eq!(written(&policy.network.allowed_hosts), ["forge.example"]);
    assert_eq!(written(&policy.network.denied_hosts), ["bad.example"]);
    assert_eq!(policy.filesystem.denied_paths, ["~/.ssh"]);
    assert_eq!(policy.filesystem.read_write_paths, ["/tmp/x"]);
    assert_eq!(policy.filesystem.read_only_paths, [".env"]);
    assert_eq!(policy.filesystem.project, ProjectAccess::ReadWrite);
    assert_eq!(policy.mode, Mode::Static);
    assert_eq!(refusals(&loaded), ["network.allowUnixSockets"]);
    assert!(warns(&loaded, "every violation is recorded"));
}

/// Proves: POL-3 srt
#[test]
fn sandbox_runtime_allows_no_domain_and_no_write_unless_it_says_so() {
    let policy = policy(&loaded(r#"{"network": {"allowedDomains": []}}"#, "srt.json"));
    assert_eq!(policy.network.mode, NetworkMode::None);
    assert_eq!(policy.filesystem.project, ProjectAccess::ReadOnly);
    let weaker = loaded(r#"{"enableWeakerNestedSandbox": true}"#, "srt.json");
    assert_eq!(refusals(&weaker), ["enableWeakerNestedSandbox"]);
    let problems =
        load(r#"{"filesystem": {"denyRead": [], "allowWrit": []}}"#, "srt.json").unwrap_err();
    assert_eq!(problems[0].suggestion.as_deref(), Some("allowWrite"));
}

/// Proves: POL-3 srt
#[test]
fn a_claude_code_settings_file_loads_for_its_sandbox_and_file_rules() {
    let text = r#"{
      "permissions": { "deny": ["Read(~/.aws/**)", "Bash(curl:*)"],
        "allow": ["Edit(//srv/out)", "WebFetch(domain:docs.example)"], "defaultMode": "plan" },
      "sandbox": { "enabled": true, "network": { "allowLocalBinding": true } }
    }"#;
    let loaded = loaded(text, "settings.json");
    assert_eq!(loaded.kind, SourceKind::SandboxRuntime);
    let policy = policy(&loaded);
    assert_eq!(policy.filesystem.denied_paths, ["~/.aws"]);
    assert_eq!(policy.filesystem.read_write_paths, ["/srv/out"]);
    assert_eq!(written(&policy.network.allowed_hosts), ["docs.example"]);
    assert_eq!(policy.filesystem.project, ProjectAccess::ReadWrite);
    assert!(warns(&loaded, "`Bash(curl:*)` is about the agent's own tools"));
    let pattern = r#"{"permissions": {"deny": ["Read(**/*.pem)"]}}"#;
    assert_eq!(refusals(&load(pattern, "s.json").unwrap()), ["permissions.deny"]);
}

/// Proves: POL-3 detect
#[test]
fn the_kind_of_a_file_is_told_by_its_shape() {
    for (text, kind) in [
        ("isolationLevel: LEVEL_1\nnetwork: { mode: none }", SourceKind::Palisade),
        ("", SourceKind::Palisade),
        ("tools: { bash: {} }", SourceKind::Palisade),
        (AGENT_TOOLS, SourceKind::AgentTools),
        (CARGO, SourceKind::CargoRunner),
        ("execution_policy: {}", SourceKind::CargoRunner),
        ("allowlist: { hosts: [] }", SourceKind::Proxy),
        ("filesystem: { allowWrite: [] }", SourceKind::SandboxRuntime),
        ("permissions: { allow: [] }", SourceKind::SandboxRuntime),
    ] {
        let node = parse::read_tree(text, "p.yaml", Format::Yaml).unwrap();
        assert_eq!(kind_of(&node), kind, "{text}");
    }
    assert_eq!(load("view: minimal", "p.yaml").unwrap().kind, SourceKind::Palisade);
    assert!(load("[not closed", "p.yaml").is_err());
}
