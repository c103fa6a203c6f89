//! The shape of the house: which crate may know which, where unsafe code may be, how long a file
//! may grow.
#![allow(clippy::unwrap_used, reason = "the helpers of a test fail it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What each crate may depend on among ours. Arrows point down only.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        "palisade",
        &[
            "palisade-ask",
            "palisade-egress",
            "palisade-gate",
            "palisade-hosts",
            "palisade-e2b",
            "palisade-mcp",
            "palisade-service",
            "palisade-session",
            "palisade-launch",
            "palisade-plan",
            "palisade-policy",
            "palisade-record",
            "palisade-bpf",
            "palisade-telemetry",
            "palisade-usage",
        ],
    ),
    (
        "palisade-e2b",
        &["palisade-changes", "palisade-policy", "palisade-service", "palisade-session"],
    ),
    (
        "palisade-mcp",
        &["palisade-record", "palisade-service", "palisade-session", "palisade-telemetry"],
    ),
    ("palisade-service", &["palisade-record", "palisade-session"]),
    ("palisade-api", &["palisade-ask", "palisade-record", "palisade-session"]),
    (
        "palisade-session",
        &[
            "palisade-supervisor",
            "palisade-ask",
            "palisade-changes",
            "palisade-egress",
            "palisade-files",
            "palisade-gate",
            "palisade-hosts",
            "palisade-launch",
            "palisade-broker",
            "palisade-keeper",
            "palisade-plan",
            "palisade-policy",
            "palisade-record",
            "palisade-bpf",
            "palisade-sys",
            "palisade-telemetry",
            "palisade-usage",
        ],
    ),
    (
        "palisade-supervisor",
        &[
            "palisade-ask",
            "palisade-bpf",
            "palisade-broker",
            "palisade-egress",
            "palisade-gate",
            "palisade-gatefs",
            "palisade-hosts",
            "palisade-keeper",
            "palisade-launch",
            "palisade-plan",
            "palisade-policy",
            "palisade-record",
            "palisade-sys",
            "palisade-usage",
            "palisade-wire",
        ],
    ),
    (
        "palisade-launch",
        &[
            "palisade-broker",
            "palisade-cgroup",
            "palisade-egress",
            "palisade-files",
            "palisade-gate",
            "palisade-gatefs",
            "palisade-hosts",
            "palisade-keeper",
            "palisade-netlink",
            "palisade-plan",
            "palisade-sys",
            "palisade-bpf",
            "palisade-wire",
        ],
    ),
    ("palisade-cgroup", &["palisade-plan", "palisade-sys"]),
    ("palisade-changes", &["palisade-guard", "palisade-sys"]),
    (
        "palisade-broker",
        &[
            "palisade-plan",
            "palisade-policy",
            "palisade-gate",
            "palisade-guard",
            "palisade-bpf",
            "palisade-sys",
            "palisade-wire",
        ],
    ),
    (
        "palisade-gatefs",
        &[
            "palisade-plan",
            "palisade-bpf",
            "palisade-gate",
            "palisade-fuse",
            "palisade-sys",
            "palisade-wire",
        ],
    ),
    ("palisade-keeper", &["palisade-plan", "palisade-bpf", "palisade-sys", "palisade-wire"]),
    ("palisade-plan", &["palisade-policy", "palisade-bpf", "palisade-guard", "palisade-hosts"]),
    ("palisade-policy", &["palisade-gate", "palisade-hosts"]),
    ("palisade-egress", &["palisade-hosts", "palisade-netlink", "palisade-record", "palisade-sys"]),
    ("palisade-hosts", &["palisade-gitconfig"]),
    ("palisade-gitconfig", &[]),
    ("palisade-netlink", &["palisade-sys"]),
    ("palisade-files", &["palisade-sys", "palisade-wire"]),
    ("palisade-fuse", &["palisade-sys"]),
    ("palisade-gate", &["palisade-sys", "palisade-wire"]),
    ("palisade-ask", &["palisade-sys"]),
    ("palisade-record", &["palisade-sys"]),
    ("palisade-bpf", &[]),
    ("palisade-guard", &["palisade-gitconfig"]),
    ("palisade-sys", &[]),
    (
        "palisade-telemetry",
        &["palisade-bpf", "palisade-egress", "palisade-record", "palisade-sys", "palisade-wire"],
    ),
    ("palisade-usage", &["palisade-sys"]),
    ("palisade-wire", &["palisade-sys"]),
    ("palisade-testkit", &["palisade-launch", "palisade-supervisor", "palisade-sys"]),
    ("xtask", &[]),
];

/// The longest a Rust file may be.
const MAX_LINES: usize = 600;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn all_rust_files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for part in ["crates", "tests", "xtask"] {
        rust_files(&root().join(part), &mut found);
    }
    found
}

#[test]
fn dependencies_point_one_way() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let Some(allowed) = allowed.get(name) else {
            wrong.push(format!("{name} has no place in the house; give it one in this test"));
            continue;
        };
        for dependency in package["dependencies"].as_array().unwrap() {
            let target = dependency["name"].as_str().unwrap();
            let is_ours = target.starts_with("palisade");
            let is_test_fixture = dependency["kind"] == "dev" && target == "palisade-testkit";
            if is_ours && !is_test_fixture && !allowed.contains(&target) {
                wrong.push(format!("{name} must not depend on {target}"));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

/// The attacker's calls, which no shipped crate depends on.
const UNSAFE_TESTKIT: &str = "crates/testkit/src/raw.rs";

#[test]
fn only_the_system_call_crate_may_be_unsafe() {
    let outside: BTreeSet<PathBuf> = all_rust_files()
        .into_iter()
        .filter(|file| !file.starts_with(root().join("crates/sys")))
        .filter(|file| {
            let text = fs::read_to_string(file).unwrap();
            text.lines().any(|line| {
                let code = line.trim_start();
                let lifts_the_lint = ["allow(", "expect(", "warn("]
                    .iter()
                    .any(|word| code.contains(&format!("{word}unsafe_code")));
                lifts_the_lint && code.starts_with("#")
            })
        })
        .collect();
    assert_eq!(outside, BTreeSet::from([root().join(UNSAFE_TESTKIT)]));
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let manifests = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().path().join("Cargo.toml"))
        .chain([root().join("xtask/Cargo.toml")]);
    for manifest in manifests {
        let text = fs::read_to_string(&manifest).unwrap();
        assert!(text.contains("[lints]\nworkspace = true\n"), "{}", manifest.display());
    }
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(workspace.contains("unsafe_code = \"deny\""));
}

#[test]
fn no_file_grows_beyond_reading() {
    let long: Vec<String> = all_rust_files()
        .iter()
        .filter_map(|file| {
            let lines = fs::read_to_string(file).unwrap().lines().count();
            (lines > MAX_LINES).then(|| format!("{} has {lines} lines", file.display()))
        })
        .collect();
    assert_eq!(long, [""; 0], "split them by subject");
}
