use super::*;
use crate::decode::parse::parse;
use crate::keys;
use crate::syntax::tree::Format;
use crate::{LayerKind, PolicyLayer, Subject, load, merge};

fn refusals(text: &str) -> Vec<String> {
    let document = parse(text, "p.yaml", Format::Yaml).unwrap();
    let layer = PolicyLayer { kind: LayerKind::User, document };
    let merged = merge(&Subject::Run, vec![layer]).unwrap();
    not_enforced(&merged).iter().map(|problem| problem.key.clone()).collect()
}

fn on_nat(limit: &str) -> String {
    format!(
        "network: {{ mode: nat, {limit} }}\napprovals: [{{ what: 'network:nat', reason: a test }}]"
    )
}

/// Proves: POL-2 not-enforced
#[test]
fn asking_for_what_cannot_be_held_is_refused_with_its_place() {
    for (text, key) in [
        ("process: { uid: 1000 }", "process.uid"),
        (&on_nat("maxConnections: 1"), "network.maxConnections"),
        (&on_nat("maxBytes: 1m"), "network.maxBytes"),
        (&on_nat("maxQueries: 5"), "network.maxQueries"),
        ("process: { gid: 1000 }", "process.gid"),
    ] {
        assert_eq!(refusals(text), [key]);
    }
    let document = parse("\nprocess:\n  uid: 5\n", "p.yaml", Format::Yaml).unwrap();
    let merged =
        merge(&Subject::Run, vec![PolicyLayer { kind: LayerKind::User, document }]).unwrap();
    assert_eq!(
        not_enforced(&merged)[0].to_string(),
        "p.yaml:3:3: `process.uid` is not enforced in this version: the user id inside cannot be chosen \
         yet; remove the key"
    );
}

/// Proves: POL-2 not-enforced
#[test]
fn asking_for_nothing_and_for_what_is_held_passes() {
    for text in [
        "",
        "network: { allowNetwork: false, allowedHosts: [], allowedPorts: [], maxConnections: 0 }",
        "network: { mode: proxy, allowedHosts: [a.example], maxConnections: 1, maxBytes: 1m, maxQueries: 5 }",
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
    let layer = PolicyLayer { kind: LayerKind::User, document: loaded.document };
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

/// Proves: POL-7 presets
#[test]
fn every_shipped_policy_can_be_used() {
    for preset in crate::presets::presets() {
        assert!(preset.not_enforced().is_empty(), "{}", preset.name);
    }
}
