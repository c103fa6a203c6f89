use super::{PolicyRequest, Supposing, load, load_supposing, project_document, refuse_unenforced};
use crate::app_dirs::AppDirs;
use crate::caller::Caller;
use crate::error::SessionError;
use crate::trust::TrustStore;
use palisade_plan::facts::HostFacts;
use palisade_policy::{Flag, NetworkMode, Trust};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// A caller whose every file lies in a directory of its own.
pub(crate) struct Corner {
    directory: TempDir,
    pub(crate) caller: Caller,
}

impl Corner {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let project = root.join("home/project");
        fs::create_dir_all(project.join(".palisade")).unwrap();
        fs::create_dir_all(root.join("etc")).unwrap();
        fs::create_dir_all(root.join("config")).unwrap();
        let caller = Caller {
            facts: HostFacts {
                uid: 1000,
                gid: 1000,
                hostname: "machine".to_owned(),
                user_name: None,
                home: Some(root.join("home")),
                cwd: project,
                env: BTreeMap::new(),
                landlock_abi: 0,
                serves_gate: false,
                uid_ranges: Vec::new(),
                gid_ranges: Vec::new(),
                mounts: Vec::new(),
                stream_reads_file: false,
                own_paths: Vec::new(),
                homes: Vec::new(),
                canary: None,
                registries: BTreeMap::new(),
                registry_notes: Vec::new(),
                nat: palisade_plan::facts::NatFacts::default(),
                authority: None,
            },
            places: AppDirs {
                organisation: root.join("etc"),
                user: root.join("config"),
                state: root.join("state"),
                runtime: root.join("run"),
            },
        };
        Self { directory, caller }
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.directory.path().canonicalize().unwrap().join(path);
        fs::write(&path, text).unwrap();
        path
    }

    fn write_project(&self, text: &str) -> PathBuf {
        self.write("home/project/.palisade/policy.yaml", text)
    }
}

const LOOSE_PROJECT: &str = "filesystem:\n  readWritePaths: [/srv/data]\n";

/// Proves: POL-4 order, POL-4 provenance
#[test]
fn later_layers_win_and_every_value_knows_its_file() {
    let corner = Corner::new();
    corner.write("etc/policy.yaml", "process:\n  hostname: office\n  debug: false\n");
    corner.write("config/policy.json", r#"{"process": {"hostname": "mine"}}"#);
    let request = PolicyRequest {
        command_line: vec![Flag::new("--cwd", "process.cwd", "/tmp")],
        ..PolicyRequest::default()
    };
    let loaded = load(&corner.caller, &request).unwrap();
    assert_eq!(loaded.merged.policy.process.hostname, "mine");
    assert!(!loaded.merged.policy.process.debug);
    let source = |key: &str| loaded.merged.provenance[key].last().unwrap().clone();
    assert!(source("process.hostname").file.ends_with("config/policy.json"));
    assert_eq!(source("process.debug").layer, "organisation");
    assert_eq!(source("process.cwd").file, "--cwd");
}

/// Proves: POL-4 untrusted-project
#[test]
fn a_project_grants_itself_nothing_until_its_content_is_trusted() {
    let corner = Corner::new();
    let path = corner.write_project(LOOSE_PROJECT);
    let request = PolicyRequest::default();
    let granted =
        |loaded: &super::LoadedPolicy| loaded.merged.policy.filesystem.read_write_paths.clone();

    let loaded = load(&corner.caller, &request).unwrap();
    assert!(granted(&loaded).is_empty());
    assert!(loaded.notes.iter().any(|note| note.key == "filesystem.readWritePaths"));

    let supposed = Supposing::Project(Trust::Trusted);
    let loaded = load_supposing(&corner.caller, &request, Some(&supposed)).unwrap();
    assert_eq!(granted(&loaded), ["/srv/data"]);

    let mut store = TrustStore::default();
    store.trust(&path, LOOSE_PROJECT);
    store.save(&corner.caller.places).unwrap();
    assert_eq!(granted(&load(&corner.caller, &request).unwrap()), ["/srv/data"]);

    corner.write_project(&format!("{LOOSE_PROJECT}# changed\n"));
    assert!(granted(&load(&corner.caller, &request).unwrap()).is_empty());
}

/// Proves: LIFE-3 bad-input
#[test]
fn a_file_that_is_there_is_never_skipped() {
    let corner = Corner::new();
    let request = PolicyRequest::default();
    corner.write("config/policy.yaml", "process:\n  hostnam: x\n");
    let error = load(&corner.caller, &request).unwrap_err();
    assert!(error.to_string().contains("policy.yaml:2:3"), "{error}");
    assert_eq!(error.exit_code(), 125);

    corner.write("config/policy.yaml", "version: 1\n");
    corner.write("config/policy.json", r#"{"version": 1}"#);
    let error = load(&corner.caller, &request).unwrap_err();
    assert!(matches!(error, SessionError::Ambiguous { .. }), "{error}");
}

#[test]
fn a_named_file_must_exist() {
    let corner = Corner::new();
    let request =
        PolicyRequest { files: vec!["/nowhere/policy.yaml".into()], ..PolicyRequest::default() };
    let error = load(&corner.caller, &request).unwrap_err();
    assert_eq!(error.to_string(), "/nowhere/policy.yaml: no such file (ENOENT)");
}

/// Proves: POL-2 not-enforced
#[test]
fn a_key_that_nothing_enforces_is_refused_and_not_ignored() {
    let corner = Corner::new();
    corner.write("config/policy.yaml", "process:\n  uid: 10\n");
    let loaded = load(&corner.caller, &PolicyRequest::default()).unwrap();
    let error = refuse_unenforced(&loaded).unwrap_err();
    assert!(error.to_string().contains("process.uid"), "{error}");
    assert_eq!(error.exit_code(), 126);
}

#[test]
fn variables_stand_below_the_command_line() {
    let mut corner = Corner::new();
    corner.caller.facts.env.insert("SANDBOX_NETWORK".into(), "disabled".into());
    let request = PolicyRequest {
        environment: vec![Flag::new("SANDBOX_HOSTNAME", "process.hostname", "variable")],
        ..PolicyRequest::default()
    };
    let loaded = load(&corner.caller, &request).unwrap();
    assert_eq!(loaded.merged.policy.process.hostname, "variable");
    assert_eq!(loaded.merged.policy.network.mode, NetworkMode::None);
    assert_eq!(loaded.merged.provenance["network.mode"][0].file, "SANDBOX_NETWORK");

    let request = PolicyRequest {
        command_line: vec![Flag::new("--hostname", "process.hostname", "flag")],
        ..request
    };
    let loaded = load(&corner.caller, &request).unwrap();
    assert_eq!(loaded.merged.policy.process.hostname, "flag");
}

#[test]
fn the_policy_of_another_project_can_be_asked_for() {
    let corner = Corner::new();
    let path = corner.write_project(LOOSE_PROJECT);
    let mut caller = corner.caller.clone();
    caller.facts.cwd = corner.caller.facts.home.clone().unwrap();
    assert!(project_document(&caller, &PolicyRequest::default()).unwrap().is_none());
    let there = PolicyRequest {
        project: Some(corner.caller.facts.cwd.clone()),
        ..PolicyRequest::default()
    };
    assert_eq!(project_document(&caller, &there).unwrap().unwrap().path, path);
}

/// Proves: POL-4 writable-file, POL-4 trust
#[test]
fn a_named_file_in_the_project_only_tightens_until_its_content_is_trusted() {
    let corner = Corner::new();
    let path = corner.write("home/project/ci.yaml", LOOSE_PROJECT);
    let request = PolicyRequest { files: vec![path.clone()], ..PolicyRequest::default() };
    let granted =
        |loaded: &super::LoadedPolicy| loaded.merged.policy.filesystem.read_write_paths.clone();
    let loaded = load(&corner.caller, &request).unwrap();
    assert!(granted(&loaded).is_empty());
    assert_eq!(loaded.read_from, std::slice::from_ref(&path));
    assert!(loaded.notes.iter().any(|note| note.to_string().contains("policy trust")));

    let mut store = TrustStore::default();
    store.trust(&path, LOOSE_PROJECT);
    store.save(&corner.caller.places).unwrap();
    assert_eq!(granted(&load(&corner.caller, &request).unwrap()), ["/srv/data"]);
    corner.write("home/project/ci.yaml", &format!("{LOOSE_PROJECT}# changed\n"));
    assert!(granted(&load(&corner.caller, &request).unwrap()).is_empty());

    let outside = corner.write("ci.yaml", LOOSE_PROJECT);
    let request = PolicyRequest { files: vec![outside], ..PolicyRequest::default() };
    assert_eq!(granted(&load(&corner.caller, &request).unwrap()), ["/srv/data"]);
}

/// Proves: POL-4 writable-file
#[test]
fn the_users_own_file_counts_for_less_where_it_is_a_link_into_the_project() {
    let corner = Corner::new();
    let path = corner.write("home/project/mine.yaml", LOOSE_PROJECT);
    let link = corner.caller.places.user.join("policy.yaml");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let loaded = load(&corner.caller, &PolicyRequest::default()).unwrap();
    assert!(loaded.merged.policy.filesystem.read_write_paths.is_empty());
    assert_eq!(loaded.read_from, [link]);
    // A command that removes what it leads to does not get rid of the user's policy.
    fs::remove_file(path).unwrap();
    let error = load(&corner.caller, &PolicyRequest::default()).unwrap_err();
    assert!(matches!(error, SessionError::DanglingPolicy { .. }), "{error}");
}
