//! Grants, what overrules what, and the order of the steps.

use crate::PlanError;
use crate::facts::HostFacts;
use crate::fake::{FakeTree, access, inside, op_at, plan, policy, shows, user};
use crate::model::{MountAccess, MountOp};
use palisade_policy::model::{Mode, Policy, ProjectAccess};
use std::path::{Path, PathBuf};

fn with(change: impl FnOnce(&mut palisade_policy::model::Filesystem)) -> Policy {
    let mut policy = policy();
    change(&mut policy.filesystem);
    policy
}

fn strings(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

#[test]
fn project_and_caches_are_writable_and_nothing_else() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/.cargo/bin").dir("/home/u/.cargo/registry").dir("/home/u/.rustup/toolchains");
    tree.file("/home/u/.cargo/credentials.toml", "").file("/home/u/.cargo/config.toml", "");
    tree.dir("/home/u/other").dir("/home/u/.local/lib/python3.13").dir("/home/u/.npm/_npx");
    tree.dir("/home/u/.npm/_cacache");
    let plan = plan(&policy(), &user(), &tree).unwrap();
    let expected = [
        ("/home/u/project/src", Some(MountAccess::ReadWrite)),
        ("/home/u/.cargo/registry", Some(MountAccess::ReadWrite)),
        ("/home/u/.npm/_cacache", Some(MountAccess::ReadWrite)),
        ("/home/u/.cargo/bin", Some(MountAccess::ReadOnly)),
        ("/home/u/.cargo/config.toml", Some(MountAccess::ReadOnly)),
        ("/home/u/.rustup/toolchains", Some(MountAccess::ReadOnly)),
        ("/home/u/.local/lib/python3.13", Some(MountAccess::ReadOnly)),
        ("/usr/bin", Some(MountAccess::ReadOnly)),
        ("/home/u/.cargo/credentials.toml", None),
        ("/home/u/.npm/_npx", None),
        ("/home/u/other", None),
        ("/srv/data", None),
    ];
    for (path, expected) in expected {
        assert_eq!(access(&plan, path), expected, "{path}");
    }
}

#[test]
fn nothing_executes_from_etc_or_source_caches() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/.cargo/registry").dir("/home/u/go/pkg/mod");
    let plan = plan(&policy(), &user(), &tree).unwrap();
    for (path, may) in [
        ("/etc", false),
        ("/home/u/.cargo/registry", false),
        ("/home/u/go/pkg/mod", true),
        ("/usr", true),
    ] {
        let op = op_at(&plan, path);
        assert!(matches!(op, Some(MountOp::Bind { exec, .. }) if *exec == may), "{path}: {op:?}");
    }
}

#[test]
fn a_denied_path_inside_a_writable_grant_is_refused() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/work/private").dir("/home/u/.ssh");
    let denied = with(|fs| {
        fs.read_write_paths = strings(&["~/work"]);
        fs.denied_paths = strings(&["~/work/private"]);
    });
    let home = with(|fs| fs.read_write_paths = strings(&["~"]));
    for policy in [denied, home] {
        let error = plan(&policy, &user(), &tree).unwrap_err();
        assert!(matches!(error, PlanError::DeniedInsideWritable { .. }), "{error}");
        assert!(error.refused_by_policy());
        assert!(error.to_string().contains("; use --ro or --overlay for /"), "{error}");
    }
}

#[test]
fn a_denied_path_inside_an_overlay_is_hidden() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/work/private").dir("/home/u/work/open");
    let policy = with(|fs| {
        fs.overlay_paths = strings(&["~/work"]);
        fs.denied_paths = strings(&["~/work/private"]);
    });
    let plan = plan(&policy, &user(), &tree).unwrap();
    let Some(MountOp::Overlay { hidden, .. }) = op_at(&plan, "/home/u/work") else { panic!() };
    assert_eq!(*hidden, [PathBuf::from("private")]);
    assert!(shows(&plan, "/home/u/work/open"));
}

#[test]
fn what_is_denied_cannot_be_granted() {
    let mut tree = FakeTree::new();
    tree.dir("/srv/data/a").dir("/home/u/.config/palisade");
    let both = with(|fs| {
        fs.denied_paths = strings(&["/srv/data"]);
        fs.read_only_paths = strings(&["/srv/data/a"]);
    });
    let error = plan(&both, &user(), &tree).unwrap_err();
    assert!(matches!(error, PlanError::Contradiction { .. }), "{error}");
    assert!(error.refused_by_policy());
    let own = with(|fs| fs.read_only_paths = strings(&["~/.config/palisade"]));
    assert!(matches!(plan(&own, &user(), &tree), Err(PlanError::OwnPath { .. })));
}

#[test]
fn an_explicit_grant_of_a_secret_is_an_approval() {
    let mut tree = FakeTree::new();
    tree.file("/home/u/.ssh/known_hosts", "").file("/home/u/.ssh/id", "");
    let policy = with(|fs| fs.read_only_paths = strings(&["~", "~/.ssh/known_hosts"]));
    let plan = plan(&policy, &user(), &tree).unwrap();
    assert!(shows(&plan, "/home/u/.ssh/known_hosts"));
    assert!(!shows(&plan, "/home/u/.ssh/id"));
    assert_eq!(plan.supervision.approvals.len(), 1);
    assert_eq!(plan.supervision.approvals[0].reason, "--ro /home/u/.ssh/known_hosts");
}

#[test]
fn links_on_the_way_to_a_grant_are_made_again() {
    let mut tree = FakeTree::new();
    tree.dir("/data/home/u/project/.git").link("/people", "data/home").dir("/data/tools/rustup");
    tree.link("/data/home/u/.rustup", "/data/tools/rustup");
    let mut facts = HostFacts {
        home: Some("/people/u".into()),
        cwd: "/data/home/u/project".into(),
        own_paths: Vec::new(),
        ..user()
    };
    facts.env.insert("PWD".into(), "/people/u/project".into());
    let plan = plan(&policy(), &facts, &tree).unwrap();
    for (place, target) in [
        ("/bin", "usr/bin"),
        ("/people", "data/home"),
        ("/data/home/u/.rustup", "/data/tools/rustup"),
    ] {
        let op = op_at(&plan, place);
        assert!(
            matches!(op, Some(MountOp::Symlink { points_to, .. }) if points_to == Path::new(target)),
            "{place}: {op:?}"
        );
    }
    assert_eq!(access(&plan, "/data/home/u/project"), Some(MountAccess::ReadWrite));
    assert_eq!(access(&plan, "/data/tools/rustup"), Some(MountAccess::ReadOnly));
}

#[test]
fn a_missing_rw_directory_is_made_and_other_missing_paths_are_errors() {
    let tree = FakeTree::new();
    let policy = with(|fs| fs.read_write_paths = strings(&["~/new/dir"]));
    let plan_rw = plan(&policy, &user(), &tree).unwrap();
    assert_eq!(plan_rw.sandbox.create_dirs, [PathBuf::from("/home/u/new/dir")]);
    assert_eq!(access(&plan_rw, "/home/u/new/dir"), Some(MountAccess::ReadWrite));
    let policy = with(|fs| fs.read_only_paths = strings(&["~/no/such"]));
    assert_eq!(
        plan(&policy, &user(), &tree).unwrap_err().to_string(),
        "--ro /home/u/no/such: no such file or directory (ENOENT); the nearest existing directory is /home/u"
    );
    let policy = with(|fs| fs.denied_paths = strings(&["~/no/such"]));
    assert!(plan(&policy, &user(), &tree).is_ok());
}

#[test]
fn what_is_asked_for_overrules_the_lists() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/.rustup/toolchains")
        .dir("/home/u/.cargo/registry")
        .dir("/home/u/project/doc");
    let policy = with(|fs| {
        fs.read_write_paths = strings(&["~/.rustup"]);
        fs.read_only_paths = strings(&["~/.cargo/registry", "~/project/doc"]);
    });
    let plan_asked = plan(&policy, &user(), &tree).unwrap();
    assert_eq!(access(&plan_asked, "/home/u/.rustup/toolchains"), Some(MountAccess::ReadWrite));
    assert_eq!(access(&plan_asked, "/home/u/.cargo/registry"), Some(MountAccess::ReadOnly));
    assert_eq!(access(&plan_asked, "/home/u/project/doc"), Some(MountAccess::ReadOnly));
    let twice = with(|fs| {
        fs.read_write_paths = strings(&["/srv/data"]);
        fs.read_only_paths = strings(&["/srv/data"]);
    });
    assert!(matches!(plan(&twice, &user(), &tree), Err(PlanError::GrantedTwice { .. })));
}

#[test]
fn a_grant_inside_an_equal_one_adds_no_mount() {
    let mut tree = FakeTree::new();
    tree.dir("/srv/data/a/b");
    let policy =
        with(|fs| fs.read_only_paths = strings(&["/srv/data", "/srv/data/a/b", "/usr/lib"]));
    let plan = plan(&policy, &user(), &tree).unwrap();
    assert!(op_at(&plan, "/srv/data/a/b").is_none());
    assert!(op_at(&plan, "/usr/lib").is_none());
    assert!(shows(&plan, "/srv/data/a/b"));
}

#[test]
fn the_sandboxs_own_areas_are_never_the_hosts() {
    let mut tree = FakeTree::new();
    tree.dir("/tmp/x").dir("/proc/1").dir("/run/postgresql");
    for path in ["/proc", "/proc/1", "/sys", "/dev", "/"] {
        let policy = with(|fs| fs.read_write_paths = strings(&[path]));
        assert!(matches!(plan(&policy, &user(), &tree), Err(PlanError::OwnArea { .. })), "{path}");
    }
    let policy = with(|fs| {
        fs.read_write_paths = strings(&["/tmp", "/var/tmp", "/tmp/x"]);
        fs.read_only_paths = strings(&["/run/postgresql", "/"]);
    });
    let plan = plan(&policy, &user(), &tree).unwrap();
    for own in ["/tmp", "/var/tmp", "/run"] {
        assert!(matches!(op_at(&plan, own), Some(MountOp::Tmpfs { .. })), "{own}");
    }
    assert!(matches!(op_at(&plan, "/dev"), Some(MountOp::Dir { .. })));
    assert!(matches!(op_at(&plan, "/proc"), Some(MountOp::Proc { .. })));
    assert_eq!(access(&plan, "/tmp/x"), Some(MountAccess::ReadWrite));
    assert!(shows(&plan, "/run/postgresql"));
    assert!(!shows(&plan, "/run/user"));
}

#[test]
fn own_areas_can_be_denied() {
    let mut tree = FakeTree::new();
    tree.file("/proc/cpuinfo", "").dir("/proc/net");
    let policy =
        with(|fs| fs.denied_paths = strings(&["/sys", "/dev/shm", "/proc/cpuinfo", "/proc/net"]));
    let some = plan(&policy, &user(), &tree).unwrap();
    assert!(op_at(&some, "/dev/shm").is_none());
    assert!(op_at(&some, "/sys/devices/system/cpu").is_none());
    assert!(matches!(op_at(&some, "/proc/cpuinfo"), Some(MountOp::Blank { .. })));
    assert!(matches!(op_at(&some, "/proc/net"), Some(MountOp::Tmpfs { .. })));
    let policy = with(|fs| fs.denied_paths = strings(&["/proc", "/sys", "/dev"]));
    let none = plan(&policy, &user(), &tree).unwrap();
    let own = ["/proc", "/dev", "/sys"];
    assert!(
        inside(&none).mounts.iter().all(|op| own.iter().all(|area| !op.target().starts_with(area)))
    );
}

#[test]
fn parents_come_before_what_stands_on_them() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/.ssh").dir("/home/u/.cargo/registry").dir("/tmp/work");
    let mut policy = with(|fs| fs.read_write_paths = strings(&["/tmp/work", "/srv/data"]));
    policy.mode = Mode::Static;
    let plan = plan(&policy, &user(), &tree).unwrap();
    let targets: Vec<&Path> = inside(&plan).mounts.iter().map(MountOp::target).collect();
    assert!(targets.is_sorted());
    assert!(targets.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn a_root_path_stands_below_everything_else() {
    let mut tree = FakeTree::new();
    tree.dir("/images/a/usr/share").file("/images/a/hello", "").link("/images/a/sbin", "usr/bin");
    tree.dir("/images/a/home/guest").dir("/images/a/tmp/x");
    let policy = with(|fs| {
        fs.root_path = Some("/images/a".to_owned());
        fs.project = ProjectAccess::ReadWrite;
    });
    let plan_a = plan(&policy, &user(), &tree).unwrap();
    let source = |target: &str| match op_at(&plan_a, target) {
        Some(MountOp::Bind { source, .. }) => source.to_str().map(str::to_owned),
        _ => None,
    };
    assert_eq!(source("/hello").as_deref(), Some("/images/a/hello"));
    assert_eq!(source("/usr").as_deref(), Some("/usr"));
    assert!(matches!(op_at(&plan_a, "/sbin"), Some(MountOp::Symlink { .. })));
    assert!(matches!(op_at(&plan_a, "/tmp"), Some(MountOp::Tmpfs { .. })));
    // The image's /home has no place for the project: it is taken apart.
    assert!(matches!(op_at(&plan_a, "/home"), Some(MountOp::Dir { .. })));
    assert_eq!(source("/home/guest").as_deref(), Some("/images/a/home/guest"));
    assert_eq!(source("/home/u/project").as_deref(), Some("/home/u/project"));
    let policy = with(|fs| fs.root_path = Some("/images/none".to_owned()));
    let plan_none = plan(&policy, &user(), &tree).unwrap();
    assert!(
        plan_none
            .explanation
            .notes
            .iter()
            .any(|note| note.text.contains("/images/none does not exist"))
    );
}

/// A directory with so many files beside a denied one.
fn crowded(files: usize) -> FakeTree {
    let mut tree = FakeTree::new();
    for number in 0..files {
        tree.file(format!("/srv/data/{number}"), "");
    }
    tree.file("/srv/data/secret", "").file("/srv/other", "").socket("/srv/data/agent.sock");
    tree
}

fn showing_srv() -> Policy {
    with(|fs| {
        fs.read_only_paths = strings(&["/srv"]);
        fs.denied_paths = strings(&["/srv/data/secret"]);
    })
}

/// Proves: FS-2 flat-start
#[test]
fn many_files_beside_a_denied_one_take_one_mount() {
    let few = plan(&showing_srv(), &user(), &crowded(3)).unwrap();
    assert!(matches!(op_at(&few, "/srv/data"), Some(MountOp::Dir { .. })));
    assert!(!shows(&few, "/srv/data/agent.sock"));
    let many = plan(&showing_srv(), &user(), &crowded(5000)).unwrap();
    assert!(inside(&many).mounts.len() < inside(&few).mounts.len());
    let overlay = op_at(&many, "/srv/data");
    let Some(MountOp::Overlay { hidden, access: MountAccess::ReadOnly, .. }) = overlay else {
        panic!("{overlay:?}")
    };
    assert_eq!(*hidden, [PathBuf::from("secret")]);
    for plan in [few, many] {
        assert!(shows(&plan, "/srv/data/2"));
        assert!(shows(&plan, "/srv/other"));
        assert!(!shows(&plan, "/srv/data/secret"));
        assert_eq!(access(&plan, "/srv/data/2"), Some(MountAccess::ReadOnly));
    }
}

/// A tree that an overlay would show without what is mounted in it is refused, with what to do.
#[test]
fn a_directory_that_can_neither_be_taken_apart_nor_overlaid_is_refused() {
    let mounted = |number: usize| crate::facts::HostMount {
        device: format!("9:{number}"),
        root: "/".into(),
        mount_point: format!("/srv/data/{number}").into(),
        fs_type: "ext4".to_owned(),
        read_only: false,
    };
    let facts = HostFacts { mounts: (0..20).map(mounted).collect(), ..user() };
    let error = plan(&showing_srv(), &facts, &crowded(5000)).unwrap_err();
    assert!(error.refused_by_policy());
    assert_eq!(
        error.to_string(),
        "--ro /srv/data: /srv/data/secret in it must stay hidden, and its 5001 other entries are too many to \
         mount one by one; name the directories you need, or use --overlay /srv/data"
    );
}

/// Proves: GATE-7 flat-start
#[test]
fn a_static_view_has_the_same_mounts_whatever_the_home_and_the_host_hold() {
    let targets = |tree: &FakeTree, facts: &HostFacts| -> Vec<PathBuf> {
        let plan = plan(&Policy { mode: Mode::Static, ..policy() }, facts, tree).unwrap();
        inside(&plan).mounts.iter().map(|op| op.target().to_owned()).collect()
    };
    let few = targets(&FakeTree::new(), &user());
    let mut tree = FakeTree::new();
    let mut facts = user();
    for number in 0..300 {
        tree.file(format!("/home/u/project{number}/.env"), "");
        tree.file(format!("/home/u/project{number}/node_modules/x/index.js"), "");
        tree.dir(format!("/home/other{number}/.ssh")).dir(format!("/var/lib/app{number}"));
        tree.dir(format!("/srv/data/{number}"));
        facts.homes.push(format!("/home/other{number}").into());
        facts.mounts.push(crate::facts::HostMount {
            device: "0:40".to_owned(),
            root: "/".into(),
            mount_point: format!("/var/lib/docker/overlay2/{number}/merged").into(),
            fs_type: "overlay".to_owned(),
            read_only: false,
        });
    }
    assert_eq!(targets(&tree, &facts), few);
}
