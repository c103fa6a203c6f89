use super::*;
use crate::keys;
use crate::parse::{Format, parse};
use crate::{Layer, LayerKind, Subject, load, merge};

fn refusals(text: &str) -> Vec<String> {
    let document = parse(text, "p.yaml", Format::Yaml).unwrap();
    let layer = Layer { kind: LayerKind::User, document };
    let merged = merge(&Subject::Run, vec![layer]).unwrap();
    not_enforced(&merged).iter().map(|problem| problem.key.clone()).collect()
}

/// Proves: POL-2 not-enforced
#[test]
fn asking_for_what_can_not_be_held_is_refused_with_its_place() {
    for (text, key) in [
        ("process: { uid: 1000 }", "process.uid"),
        ("network: { mode: proxy }", "network.mode"),
        ("network: { mode: nat }", "network.mode"),
        ("network: { allowedHosts: [a.example] }", "network.allowedHosts"),
        ("network: { allowedPorts: [443] }", "network.allowedPorts"),
        ("network: { maxConnections: 1 }", "network.maxConnections"),
        ("process: { gid: 1000 }", "process.gid"),
    ] {
        assert_eq!(refusals(text), [key]);
    }
    let document = parse("\nnetwork:\n  mode: nat\n", "p.yaml", Format::Yaml).unwrap();
    let merged = merge(&Subject::Run, vec![Layer { kind: LayerKind::User, document }]).unwrap();
    assert_eq!(
        not_enforced(&merged)[0].to_string(),
        "p.yaml:3:3: `network.mode` is not enforced in this version: there is no egress by proxy or \
         NAT yet; use `network.mode: none`, or `host` with its approval"
    );
}

/// Proves: POL-2 not-enforced
#[test]
fn asking_for_nothing_and_for_what_is_held_passes() {
    for text in [
        "",
        "network: { allowNetwork: false, allowedHosts: [], allowedPorts: [], maxConnections: 0 }",
        "process: { allowFork: true, allowExec: true, allowedExecutables: [], maxProcesses: 5 }",
        "process: { allowFork: false, allowExec: false }",
        "process: { allowedExecutables: [ls] }",
        "filesystem: { maxFileSize: 1m, maxTotalSize: 1g, maxInodes: 10, tmpSize: 1m, varTmpSize: 1m }",
        "resources: { timeout: 1s, maxThreads: 5, maxFileDescriptors: 50, maxOutputSize: 1m }",
        "resources: { maxMemory: 1g, memoryHigh: 900m, maxSwap: 1m, maxIOBandwidth: 1m, maxIOPS: 5 }",
        "resources: { maxCPU: 1s, cpus: 1, cpuSet: 0-1, normalizeTime: 1s, bestEffort: true }",
        "syscalls: { mode: BLACKLIST, syscalls: [mount] }",
        "preset: strict",
    ] {
        assert!(refusals(text).is_empty(), "{text}");
    }
}

/// Proves: POL-2 not-enforced
#[test]
fn wishes_of_other_programs_files_are_refused_too() {
    let loaded = load(r#"{"sandbox": {"images": {"default": "base:1"}}}"#, "c.json").unwrap();
    let layer = Layer { kind: LayerKind::User, document: loaded.document };
    let merged = merge(&Subject::Run, vec![layer]).unwrap();
    let refusals = not_enforced(&merged);
    assert_eq!(
        (refusals[0].key.as_str(), refusals[0].problem),
        ("sandbox.images", Problem::NotEnforced)
    );
}

#[test]
fn the_table_names_only_keys_that_exist() {
    for entry in UNENFORCED {
        assert!(keys::find(entry.key).is_some(), "{}", entry.key);
    }
}

/// Proves: POL-2 not-enforced
#[test]
fn what_a_shipped_policy_asks_for_is_one_complaint_with_a_way_out() {
    let complaints = |subject: &Subject, text: &str| -> Vec<String> {
        let document = parse(text, "p.yaml", Format::Yaml).unwrap();
        let merged = merge(subject, vec![Layer { kind: LayerKind::User, document }]).unwrap();
        not_enforced(&merged).iter().map(ToString::to_string).collect()
    };
    let fetch = "preset web_fetch: not usable in this version: there is no egress by proxy or NAT yet \
                 (`network.mode`), hosts are not filtered yet (`network.deniedHosts`), ports are not \
                 filtered yet (`network.allowedPorts`)";
    let instead = "use `--preset minimal` or `--preset strict`";
    assert_eq!(complaints(&Subject::Run, "preset: web_fetch"), [format!("{fetch}; {instead}")]);
    let of_tool = complaints(&Subject::Tool("web_fetch".to_owned()), "process: { uid: 5 }");
    assert!(of_tool[0].starts_with("p.yaml:1:12: `process.uid`"), "{of_tool:?}");
    assert!(of_tool[1].ends_with(&format!("; leave `--tool` out, and {instead}")), "{of_tool:?}");
    for tool in ["bash", "read", "write", "edit", "grep"] {
        assert_eq!(complaints(&Subject::Tool(tool.to_owned()), ""), [""; 0], "{tool}");
    }
}

#[test]
fn presets_that_can_not_be_used_yet_are_known() {
    let unusable: Vec<&str> = presets::presets()
        .iter()
        .filter(|preset| !preset.not_enforced().is_empty())
        .map(|preset| preset.name)
        .collect();
    assert_eq!(
        unusable,
        ["web_fetch"],
        "a preset that became usable is to be told in the change log"
    );
}
