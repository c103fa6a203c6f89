use super::*;
use crate::model::{EnvMode, Level, NetworkMode, ProjectAccess, View};
use crate::{Flag, Layer, LayerKind, Mode, OnAsk, Policy, Subject, merge};

fn policy(subject: &Subject, preset: Option<&str>) -> Policy {
    let flags = preset.map(|name| Flag::new("--preset", "preset", name)).into_iter().collect();
    let document = PolicyDocument::from_flags(flags).unwrap();
    let layer = Layer { kind: LayerKind::CommandLine, document };
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
    assert!(preset("bash").unwrap().description().contains("no network"));
}

/// Proves: POL-1 default-level, NET-1 none-default
#[test]
fn a_plain_run_has_the_documented_defaults() {
    let policy = policy(&Subject::Run, None);
    assert_eq!((policy.isolation_level, policy.view), (Level::Full, View::Host));
    assert_eq!((policy.mode, policy.on_ask), (Mode::Dynamic, OnAsk::Ask));
    assert_eq!(policy.filesystem.project, ProjectAccess::ReadWrite);
    assert!(policy.filesystem.caches && policy.filesystem.toolchains);
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

/// Proves: CARGO-1 preset
#[test]
fn the_cargo_preset_lists_a_linker_and_writes_only_to_target() {
    let policy = policy(&Subject::Run, Some("cargo-runner"));
    assert!(policy.process.allowed_executables.iter().any(|name| name == "cc"));
    assert_eq!(policy.filesystem.project, ProjectAccess::ReadOnly);
    assert_eq!(policy.filesystem.read_write_paths, ["target"]);
}
