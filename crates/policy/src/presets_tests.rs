use super::*;
use crate::model::{CacheAccess, EnvMode, Level, NetworkMode, ProjectAccess, View};
use crate::{Flag, LayerKind, Merged, Mode, OnAsk, Policy, PolicyLayer, Problem, Subject, merge};

fn policy(subject: &Subject, preset: Option<&str>) -> Policy {
    let flags = preset.map(|name| Flag::new("--preset", "preset", name)).into_iter().collect();
    let document = PolicyDocument::from_flags(flags).unwrap();
    let layer = PolicyLayer { kind: LayerKind::CommandLine, document };
    merge(subject, vec![layer]).unwrap().policy
}

/// Proves: POL-7 presets
#[test]
fn every_preset_loads_says_what_it_is_for_and_merges() {
    for preset in presets() {
        let document = preset.document().unwrap_or_else(|problems| panic!("{problems:?}"));
        assert!(document.description.is_some_and(|text| !text.is_empty()), "{}", preset.name);
        assert!(document.locks.is_empty(), "{}", preset.name);
        policy(&Subject::Run, Some(preset.name));
    }
    assert!(preset("nothing").is_none());
    assert_eq!(preset("cargo-runner").unwrap().name, "cargo");
    assert!(preset("bash").unwrap().description().contains("no network"));
}

/// Proves: POL-7 presets
#[test]
fn a_preset_is_what_the_parser_reads_in_its_text() {
    for preset in presets() {
        let parsed = crate::syntax::tree::read(preset.text, crate::Format::Yaml).unwrap();
        assert_eq!(format!("{:#?}", (preset.node)()), format!("{parsed:#?}"), "{}", preset.name);
    }
}

/// Proves: POL-1 default-level, NET-1 none-default
#[test]
fn a_plain_run_has_the_documented_defaults() {
    let policy = policy(&Subject::Run, None);
    assert_eq!((policy.isolation_level, policy.view), (Level::Full, View::Host));
    assert_eq!((policy.mode, policy.on_ask), (Mode::Dynamic, OnAsk::Ask));
    assert_eq!(policy.filesystem.project, ProjectAccess::ReadWrite);
    assert_eq!(policy.filesystem.caches, CacheAccess::Own);
    assert!(policy.filesystem.toolchains);
    assert!(policy.filesystem.hide_secrets && policy.process.debug);
    assert!(policy.process.user_namespace);
    assert_eq!(policy.process.hostname, "sandbox");
    assert_eq!(policy.process.env_mode, EnvMode::Inherit);
    assert_eq!(policy.network.mode, NetworkMode::None);
    assert!(policy.syscalls.syscalls.is_empty() && policy.approvals.is_empty());
    assert_eq!(policy.resources, crate::Resources::default());
}

/// Proves: POL-6 default
#[test]
fn declared_tools_carry_limits_and_no_debugging() {
    let policy = policy(&Subject::Tool("grep".into()), None);
    assert!(!policy.process.debug);
    assert_eq!(policy.resources.timeout, Some(120_000));
    assert_eq!(policy.resources.max_memory, Some(512 << 20));
    assert_eq!(policy.resources.milli_cpus, Some(1000));
    assert_eq!(policy.process.max_processes, Some(100));
    assert_eq!(policy.resources.max_file_descriptors, Some(1024));
    assert_eq!(policy.filesystem.tmp_size, Some(100 << 20));
    assert_eq!(policy.filesystem.var_tmp_size, Some(50 << 20));
}

/// Proves: POL-7 tool-levels
#[test]
fn each_tool_has_its_own_level_and_network() {
    for (tool, level, network) in [
        ("read", Level::Process, NetworkMode::None),
        ("write", Level::Process, NetworkMode::None),
        ("edit", Level::Process, NetworkMode::None),
        ("web_fetch", Level::Process, NetworkMode::Proxy),
        ("bash", Level::Full, NetworkMode::None),
    ] {
        let policy = policy(&Subject::Tool(tool.into()), None);
        assert_eq!((policy.isolation_level, policy.network.mode), (level, network), "{tool}");
        assert!(NAMED_TOOLS.contains(&tool));
    }
}

/// Proves: POL-7 presets
#[test]
fn each_language_has_its_own_registries_and_a_writable_project() {
    for (name, tools) in [
        ("node", &["npm", "yarn", "pnpm", "bun", "git"][..]),
        ("python", &["pip", "uv", "poetry", "git"]),
        ("rust", &["cargo", "git"]),
        ("go", &["go", "git"]),
    ] {
        let policy = policy(&Subject::Run, Some(name));
        assert_eq!(policy.network.mode, NetworkMode::Proxy, "{name}");
        assert_eq!(policy.network.allowed_for, tools, "{name}");
        assert!(policy.network.allowed_hosts.is_empty(), "{name}");
        assert_eq!(policy.filesystem.project, ProjectAccess::ReadWrite, "{name}");
        assert_eq!(policy.filesystem.caches, CacheAccess::Own, "{name}");
        assert!(policy.filesystem.hide_secrets && policy.filesystem.protect_names, "{name}");
        assert_eq!(policy.process.max_processes, Some(2048), "{name}");
    }
}

/// Proves: POL-7 presets
#[test]
fn the_preset_read_only_grants_no_writing_and_no_network() {
    let policy = policy(&Subject::Run, Some("read-only"));
    assert_eq!(policy.filesystem.project, ProjectAccess::ReadOnly);
    assert_eq!(policy.filesystem.caches, CacheAccess::Off);
    assert!(policy.filesystem.read_write_paths.is_empty());
    assert_eq!((policy.network.mode, policy.on_ask), (NetworkMode::None, OnAsk::Deny));
}

/// Proves: CARGO-1 preset
#[test]
fn the_cargo_preset_lists_a_linker_and_writes_only_to_target() {
    let policy = policy(&Subject::Run, Some("cargo"));
    assert!(policy.process.allowed_executables.iter().any(|name| name == "cc"));
    assert_eq!(policy.filesystem.project, ProjectAccess::ReadOnly);
    assert_eq!(policy.filesystem.read_write_paths, ["target"]);
    assert!(!policy.filesystem.execute_written);
    assert_eq!(policy.filesystem.executable_dirs, ["target"]);
    for shell in ["sh", "bash", "python", "python3", "node"] {
        assert!(!policy.process.allowed_executables.iter().any(|name| name == shell), "{shell}");
    }
}

/// One row of a table of limits, in the words of a document: what a run has by itself, the most it may
/// ask for, and something above that.
struct Row {
    key: &'static str,
    default: &'static str,
    most: &'static str,
    above: &'static str,
    /// The preset that says what the most is.
    from: &'static str,
}

const fn row(
    key: &'static str,
    [default, most, above]: [&'static str; 3],
    from: &'static str,
) -> Row {
    Row { key, default, most, above, from }
}

/// Under a command line of these two, in the form flags have.
fn with(
    subject: &Subject,
    preset: Option<&str>,
    limit: Option<(&str, &str)>,
) -> Result<Merged, String> {
    let mut flags: Vec<Flag> =
        preset.map(|name| Flag::new("--preset", "preset", name)).into_iter().collect();
    flags.extend(limit.map(|(key, value)| match value.parse::<u64>() {
        Ok(number) => Flag::new("--asked", key, number),
        Err(_) => Flag::new("--asked", key, value),
    }));
    let document = PolicyDocument::from_flags(flags).unwrap();
    merge(subject, vec![PolicyLayer { kind: LayerKind::CommandLine, document }]).map_err(
        |problems| {
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert_eq!(problems[0].problem, Problem::AboveMaximum);
            problems[0].to_string()
        },
    )
}

fn shown(merged: &Merged, key: &str) -> String {
    let kind = crate::keys::find(key).unwrap().kind;
    merged.settings[key].value.show(kind)
}

fn holds(subject: &Subject, preset: Option<&str>, rows: &[Row]) {
    for Row { key, default, most, above, from } in rows {
        let plain = with(subject, preset, None).unwrap();
        assert_eq!(shown(&plain, key), *default, "{subject:?} {key}");
        let full = with(subject, preset, Some((key, most))).unwrap();
        assert_eq!(shown(&full, key), *most, "{subject:?} {key}");
        let error = with(subject, preset, Some((key, above))).unwrap_err();
        let expected = format!(
            "--asked: `{key}` is {above}, which exceeds the maximum {most} (preset {from}:"
        );
        assert!(error.starts_with(&expected), "{error}");
        assert!(error.ends_with(&format!("use {most} or less")), "{error}");
    }
}

const CONTAINER: [Row; 5] = [
    row("resources.cpus", ["1", "2", "2.001"], "tool"),
    row("resources.maxMemory", ["512m", "2g", "2049m"], "tool"),
    row("resources.timeout", ["2m", "10m", "601s"], "tool"),
    row("process.maxProcesses", ["100", "500", "501"], "tool"),
    row("resources.maxFileDescriptors", ["1024", "4096", "4097"], "tool"),
];

/// Proves: POL-6 default, POL-6 maximum, POL-6 container-limits
#[test]
fn declared_tools_and_bash_have_the_limits_of_a_container() {
    for tool in ["bash", "deploy"] {
        holds(&Subject::Tool(tool.into()), None, &CONTAINER);
    }
    for preset in ["tool", "bash"] {
        holds(&Subject::Run, Some(preset), &CONTAINER);
    }
    let bash = policy(&Subject::Tool("bash".into()), None);
    assert_eq!(bash.filesystem.max_total_size, None, "the workspace is as large as it is");
    assert_eq!(bash.resources.max_output_size, None);
}

/// What the limits of a process do not speak of, memory among it, a declared tool has anyway.
///
/// Proves: POL-6 default, POL-6 maximum, POL-6 process-limits
#[test]
fn tools_on_files_and_pages_have_the_limits_of_a_process() {
    for tool in ["read", "write", "edit", "web_fetch"] {
        let of_process = [
            row("resources.timeout", ["1m", "5m", "301s"], tool),
            row("resources.maxOutputSize", ["1m", "10m", "10241k"], tool),
        ];
        holds(&Subject::Tool(tool.into()), None, &of_process);
        holds(&Subject::Run, Some(tool), &of_process);
        let inherited = CONTAINER.iter().filter(|row| row.key != "resources.timeout");
        let memory = inherited.clone().find(|row| row.key == "resources.maxMemory").unwrap();
        let plain = with(&Subject::Tool(tool.into()), None, None).unwrap();
        assert_eq!(shown(&plain, memory.key), memory.default);
        for row in inherited {
            assert_eq!(shown(&plain, row.key), row.default, "{tool} {}", row.key);
        }
    }
}

/// Proves: POL-6 default, POL-6 maximum, POL-6 cargo-limits
#[test]
fn the_cargo_preset_has_its_own_limits() {
    let limits = [
        row("resources.maxCPU", ["5m", "5m", "301s"], "cargo"),
        row("resources.timeout", ["10m", "10m", "601s"], "cargo"),
        row("resources.maxMemory", ["512m", "2g", "2049m"], "cargo"),
        row("process.maxProcesses", ["25", "50", "51"], "cargo"),
        row("resources.maxThreads", ["50", "100", "101"], "cargo"),
        row("resources.maxFileDescriptors", ["500", "1000", "1001"], "cargo"),
        row("resources.maxOutputSize", ["100m", "100m", "101m"], "cargo"),
        row("filesystem.maxTotalSize", ["5g", "10g", "10241m"], "cargo"),
        row("filesystem.tmpSize", ["1g", "1g", "1025m"], "cargo"),
    ];
    holds(&Subject::Run, Some("cargo"), &limits);
}

/// Proves: POL-6 maximum
#[test]
fn no_tool_gets_around_its_memory_limit_by_swap() {
    for (subject, preset, from) in [
        (Subject::Tool("bash".into()), None, "tool"),
        (Subject::Tool("edit".into()), None, "tool"),
        (Subject::Run, Some("cargo"), "cargo"),
    ] {
        let plain = with(&subject, preset, None).unwrap();
        assert_eq!(plain.policy.resources.max_swap, None, "which is none, beside a memory limit");
        let error = with(&subject, preset, Some(("resources.maxSwap", "1m"))).unwrap_err();
        let expected = format!("is 1m, which exceeds the maximum 0 (preset {from}:");
        assert!(error.contains(&expected) && error.ends_with("; remove it"), "{error}");
    }
}

/// Proves: POL-6 none-for-a-person
#[test]
fn a_persons_own_run_has_no_limit_and_no_maximum() {
    for (key, value) in [
        ("resources.maxMemory", "1t"),
        ("resources.cpus", "500"),
        ("resources.timeout", "900h"),
        ("process.maxProcesses", "1000000"),
    ] {
        let merged = with(&Subject::Run, None, Some((key, value))).unwrap();
        assert_eq!(shown(&merged, key), value);
    }
    let limits: Vec<&str> = crate::keys::KEYS
        .iter()
        .filter(|key| key.order.has_maximum())
        .map(|key| key.path)
        .filter(|path| with(&Subject::Run, None, None).unwrap().settings.contains_key(path))
        .collect();
    assert_eq!(limits, ["askTimeout", "syscalls.maxBlocked"]);
}
