//! Denied paths are denied wherever the host shows them.

use crate::facts::{HostFacts, HostMount};
use crate::fake::{FakeTree, access, op_at, plan, policy, shows, user};
use crate::model::{MountAccess, MountOp, Nature};
use palisade_policy::model::{Mode, Policy};
use std::path::Path;

fn mount(device: &str, root: &str, mount_point: &str) -> HostMount {
    HostMount {
        device: device.to_owned(),
        root: root.into(),
        mount_point: mount_point.into(),
        fs_type: "ext4".to_owned(),
        read_only: false,
    }
}

fn showing(paths: &[&str]) -> Policy {
    let mut policy = policy();
    policy.filesystem.read_only_paths = paths.iter().map(|path| (*path).to_owned()).collect();
    policy
}

#[test]
fn a_secret_is_hidden_at_every_alias() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/.ssh/keys").dir("/mnt/disk/u/.ssh/keys").dir("/mnt/disk/u/music");
    tree.dir("/mnt/keys/inner").link("/home/u/.aws", "/srv/data/cloud").dir("/srv/data/cloud");
    tree.dir("/srv/data/films");
    let mounts = vec![
        mount("8:1", "/", "/"),
        mount("8:2", "/", "/home"),
        // The same file system again, whole, and only a part of the secret.
        mount("8:2", "/", "/mnt/disk"),
        mount("8:2", "/u/.ssh/keys", "/mnt/keys"),
    ];
    let facts = HostFacts { mounts, ..user() };
    let plan = plan(&showing(&["/mnt", "/srv"]), &facts, &tree).unwrap();
    for hidden in
        ["/mnt/disk/u/.ssh", "/mnt/disk/u/.ssh/keys", "/mnt/keys/inner", "/srv/data/cloud"]
    {
        assert!(!shows(&plan, hidden), "{hidden}");
    }
    for shown in ["/mnt/disk/u/music", "/srv/data/films"] {
        assert_eq!(access(&plan, shown), Some(MountAccess::ReadOnly), "{shown}");
    }
}

#[test]
fn what_is_mounted_inside_a_secret_is_hidden_elsewhere_too() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/.ssh/vault").dir("/srv/vault/key").dir("/srv/other");
    let mounts = vec![
        mount("8:1", "/", "/"),
        mount("9:1", "/", "/home/u/.ssh/vault"),
        mount("9:1", "/", "/srv/vault"),
    ];
    let facts = HostFacts { mounts, ..user() };
    let plan = plan(&showing(&["/srv"]), &facts, &tree).unwrap();
    assert!(!shows(&plan, "/srv/vault/key"));
    assert!(shows(&plan, "/srv/other"));
}

#[test]
fn a_directory_in_which_a_secret_could_appear_is_never_bound_whole() {
    let mut tree = FakeTree::new();
    tree.file("/home/u/.config/app.toml", "");
    let plan = plan(&showing(&["~/.config"]), &user(), &tree).unwrap();
    assert!(matches!(op_at(&plan, "/home/u/.config"), Some(MountOp::Frame { .. })));
    assert!(shows(&plan, "/home/u/.config/app.toml"));
    assert!(!shows(&plan, "/home/u/.config/gh"));
}

/// Proves: GATE-7 read-only-view
#[test]
fn static_mode_shows_the_host_in_large_pieces_and_of_homes_what_is_granted() {
    let mut tree = FakeTree::new();
    tree.file("/home/u/.ssh/id", "").file("/home/u/.bash_history", "").file("/home/u/notes", "");
    tree.dir("/home/u/.config/gh").dir("/home/u/.config/uv/more").dir("/home/u/.rustup/toolchains");
    tree.dir("/var/lib/lxd").link("/data", "srv/data").dir("/people/v/.ssh").dir("/mnt/disk");
    let facts = HostFacts { homes: vec!["/people/v".into(), "/home/u".into()], ..user() };
    let policy = Policy { mode: Mode::Static, ..policy() };
    let plan = plan(&policy, &facts, &tree).unwrap();
    for hidden in [
        "/home/u/.ssh/id",
        "/home/u/.bash_history",
        "/home/u/.config/gh",
        "/home/u/notes",
        "/home/other",
        "/people/v",
        "/root",
        "/var/lib/lxd",
    ] {
        assert!(!shows(&plan, hidden), "{hidden}");
    }
    for shown in [
        "/home/u/.config/uv",
        "/home/u/.rustup/toolchains",
        "/srv/data",
        "/var/log",
        "/usr",
        "/mnt/disk",
    ] {
        assert_eq!(access(&plan, shown), Some(MountAccess::ReadOnly), "{shown}");
    }
    let link = op_at(&plan, "/data");
    assert!(
        matches!(link, Some(MountOp::Symlink { points_to, .. }) if points_to == Path::new("srv/data"))
    );
    assert_eq!(access(&plan, "/home/u/project/src"), Some(MountAccess::ReadWrite));
    let note =
        "/people is not in the view: it contains home directories; name what you need with --ro";
    assert!(
        plan.explanation.notes.iter().any(|told| told.text == note),
        "{:?}",
        plan.explanation.notes
    );
}

/// Proves: FS-2 env-file
#[test]
fn dotenv_files_outside_the_project_are_hidden_unless_their_directory_is_named() {
    let mut tree = FakeTree::new();
    tree.file("/home/u/src/site/.env", "").file("/home/u/src/site/index.js", "");
    tree.file("/home/u/project/.env", "");
    for mode in [Mode::Static, Mode::Dynamic] {
        let plan = plan(&Policy { mode, ..policy() }, &user(), &tree).unwrap();
        assert!(!shows(&plan, "/home/u/src/site/.env"));
        assert!(shows(&plan, "/home/u/project/.env"));
    }
    let named = plan(&showing(&["~/src"]), &user(), &tree).unwrap();
    assert!(shows(&named, "/home/u/src/site/.env"));
    let note = "paths named by --ro and --overlay are visible with the .env files in them";
    assert!(
        named.explanation.notes.iter().any(|told| told.text == note),
        "{:?}",
        named.explanation.notes
    );
}

/// Proves: FS-2 hidden
#[test]
fn homes_of_other_accounts_in_a_granted_directory_are_absent_until_they_are_named() {
    let mut tree = FakeTree::new();
    tree.dir("/home/v/.ssh").file("/home/v/notes", "").dir("/home/shared").dir("/home/u/.ssh");
    let facts = HostFacts { homes: vec!["/home/v".into(), "/root".into()], ..user() };
    let above = plan(&showing(&["/home"]), &facts, &tree).unwrap();
    for hidden in ["/home/v/notes", "/home/v/.ssh", "/home/u/.ssh"] {
        assert!(!shows(&above, hidden), "{hidden}");
    }
    assert!(shows(&above, "/home/shared"));
    let named = plan(&showing(&["/home/v"]), &facts, &tree).unwrap();
    assert!(shows(&named, "/home/v/notes"));
    assert!(!shows(&named, "/home/v/.ssh"));
}

#[test]
fn secrets_show_only_where_the_policy_says_so_and_own_records_never() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/.ssh").dir("/home/u/.config/palisade").dir("/home/u/.config/gh");
    let mut policy = showing(&["~"]);
    policy.filesystem.hide_secrets = false;
    let plan = plan(&policy, &user(), &tree).unwrap();
    assert!(shows(&plan, "/home/u/.ssh"));
    assert!(shows(&plan, "/home/u/.config/gh"));
    assert!(!shows(&plan, "/home/u/.config/palisade"));
}

fn npmrc(content: &str) -> FakeTree {
    let mut tree = FakeTree::new();
    tree.file("/home/u/.npmrc", content);
    tree
}

fn carried<'p>(plan: &'p crate::model::Plan, path: &str) -> Option<&'p str> {
    match op_at(plan, path) {
        Some(MountOp::Copy { content, .. }) => Some(content),
        _ => None,
    }
}

const NPMRC: &str = "registry=https://npm.example/\n//npm.example/:_authToken=abc123\n";

/// Proves: FS-2 settings-carried
#[test]
fn settings_of_tools_are_carried_in_without_their_credentials() {
    let plan = plan(&policy(), &user(), &npmrc(NPMRC)).unwrap();
    assert_eq!(carried(&plan, "/home/u/.npmrc"), Some("registry=https://npm.example/\n"));
    let note =
        plan.explanation.notes.iter().find(|note| note.text.contains("/home/u/.npmrc")).unwrap();
    assert!(note.text.contains("//npm.example/:_authToken"), "{}", note.text);
    assert!(!serde_json::to_string(&plan).unwrap().contains("abc123"));
    assert!(plan.sandbox.gate.unwrap().secrets.contains(&"/home/u/.npmrc".into()));
}

#[test]
fn settings_that_are_named_are_shown_or_hidden_as_they_are() {
    let shown = plan(&showing(&["~/.npmrc"]), &user(), &npmrc(NPMRC)).unwrap();
    assert!(matches!(op_at(&shown, "/home/u/.npmrc"), Some(MountOp::Bind { .. })));
    let mut denying = policy();
    denying.filesystem.denied_paths = vec!["~/.npmrc".into()];
    let hidden = plan(&denying, &user(), &npmrc(NPMRC)).unwrap();
    assert_eq!(op_at(&hidden, "/home/u/.npmrc"), None);
}

#[test]
fn settings_behind_a_link_that_a_command_could_have_made_stay_out() {
    let mut tree = FakeTree::new();
    tree.file("/home/u/.ssh/config", "a=b\n").link("/home/u/.npmrc", "project/npmrc");
    tree.link("/home/u/project/npmrc", "../.ssh/config");
    let plan = plan(&policy(), &user(), &tree).unwrap();
    assert_eq!(op_at(&plan, "/home/u/.npmrc"), None);
}

/// Proves: FS-2 settings-carried
#[test]
fn a_directory_is_not_shown_with_the_credentials_in_its_settings() {
    let mut tree = FakeTree::new();
    let uv = "[[index]]\nurl = \"https://me:pw@pypi.example/simple\"\n";
    tree.file("/home/u/.config/uv/uv.toml", uv).file("/home/u/.config/uv/other", "");
    let plan = plan(&policy(), &user(), &tree).unwrap();
    let left = "[[index]]\nurl = \"https://pypi.example/simple\"\n";
    assert_eq!(carried(&plan, "/home/u/.config/uv/uv.toml"), Some(left));
    assert!(!shows(&plan, "/home/u/.config/uv/uv.toml"));
    assert!(shows(&plan, "/home/u/.config/uv/other"));
}

/// What is made beside the host's files is the run's own; a directory that was named to be read stays as it is.
///
/// Proves: FS-3 home-writable
#[test]
fn directories_taken_apart_in_a_private_home_can_be_written_unless_somebody_named_them() {
    let mut tree = FakeTree::new();
    tree.file("/home/u/.gem/credentials", "").file("/home/u/.gem/ruby", "");
    let plan = plan(&policy(), &user(), &tree).unwrap();
    assert!(matches!(op_at(&plan, "/home/u/.gem"), Some(MountOp::Dir { .. })));
    let mut hiding = policy();
    hiding.filesystem.denied_paths = vec!["~/project/src".into()];
    let project = crate::fake::plan(&hiding, &user(), &tree).unwrap();
    assert!(matches!(op_at(&project, "/home/u/project"), Some(MountOp::Frame { .. })));
    let named = crate::fake::plan(&showing(&["~/.gem"]), &user(), &tree).unwrap();
    assert!(matches!(op_at(&named, "/home/u/.gem"), Some(MountOp::Frame { .. })));
}

/// Proves: FS-2 linked-secrets
#[test]
fn what_links_in_a_directory_of_secrets_lead_to_is_hidden_too() {
    let mut tree = FakeTree::new();
    tree.link("/home/u/.ssh/id_rsa", "../keys/id_rsa").link("/home/u/keys/id_rsa", "real/id");
    tree.file("/home/u/keys/real/id", "").file("/home/u/keys/notes", "");
    tree.link("/home/u/.config/gcloud/key.json", "/srv/data/key.json")
        .file("/srv/data/key.json", "");
    tree.link("/home/u/.local/share/keyrings/login", "/srv/data/login").file("/srv/data/login", "");
    let plan = plan(&showing(&["~/keys", "/srv"]), &user(), &tree).unwrap();
    let hidden =
        ["/home/u/keys/id_rsa", "/home/u/keys/real/id", "/srv/data/key.json", "/srv/data/login"];
    for hidden in hidden {
        assert!(!shows(&plan, hidden), "{hidden}");
        assert_eq!(
            plan.sandbox.gate.as_ref().unwrap().nature(Path::new(hidden)),
            Nature::Secret,
            "{hidden}"
        );
    }
    assert!(shows(&plan, "/home/u/keys/notes"));
}

/// Proves: FS-2 linked-secrets
#[test]
fn what_everybody_sees_and_what_is_no_secret_is_not_hidden_for_a_link_to_it() {
    let mut tree = FakeTree::new();
    tree.link("/home/u/.docker/usr", "/usr").link("/home/u/.aws/home", "..");
    tree.link("/home/u/.kube/project", "../project");
    tree.link("/home/u/.ssh/config", "../project/ssh/config")
        .file("/home/u/project/ssh/config", "");
    let plan = plan(&policy(), &user(), &tree).unwrap();
    assert_eq!(
        access(&plan, "/home/u/project"),
        Some(MountAccess::ReadWrite),
        "{:?}",
        plan.explanation.notes
    );
    assert!(shows(&plan, "/usr/bin") && shows(&plan, "/home/u/project/ssh/config"));
}

/// Proves: FS-2 aliases
#[test]
fn a_home_directory_that_is_mounted_elsewhere_is_not_in_a_static_view() {
    let mut tree = FakeTree::new();
    tree.file("/home/u/notes", "").file("/home/other/notes", "").file("/home/u/music/song", "");
    tree.file("/mnt/disk/u/notes", "")
        .file("/mnt/disk/other/notes", "")
        .file("/mnt/disk/films", "");
    tree.file("/second/notes", "").file("/srv/music/song", "").file("/srv/data/table", "");
    let mounts = vec![
        mount("8:1", "/", "/"),
        mount("8:2", "/", "/home"),
        mount("8:2", "/", "/mnt/disk"),
        mount("8:2", "/u", "/second"),
        mount("8:2", "/u/music", "/srv/music"),
    ];
    let facts = HostFacts { mounts, homes: vec!["/home/other".into()], ..user() };
    let policy = Policy { mode: Mode::Static, ..policy() };
    let shown = plan(&policy, &facts, &tree).unwrap();
    for hidden in ["/mnt/disk/u/notes", "/mnt/disk/other/notes", "/second/notes", "/srv/music/song"]
    {
        assert!(!shows(&shown, hidden), "{hidden}");
    }
    assert!(shows(&shown, "/mnt/disk/films") && shows(&shown, "/srv/data/table"));
    let served = HostFacts { serves_gate: true, ..facts.clone() };
    let gate = plan(&policy, &served, &tree).unwrap().sandbox.gate.unwrap();
    for hidden in ["/mnt/disk/u", "/mnt/disk/other/notes", "/second", "/srv/music/song"] {
        assert!(!gate.is_told_by_rule(Path::new(hidden)), "{hidden}");
    }
    for told in ["/mnt/disk/films", "/srv/data/table", "/home/u/notes"] {
        assert!(gate.is_told_by_rule(Path::new(told)), "{told}");
    }
    let mut named = policy;
    named.filesystem.read_only_paths = vec!["/srv/music".to_owned()];
    assert!(shows(&plan(&named, &facts, &tree).unwrap(), "/srv/music/song"));
}
