//! Whole plans for invented hosts: levels, callers, refusals.

use crate::facts::{HostFacts, HostMount};
use crate::fake::{
    FakeTree, access, inside, op_at, plan, policy, root, shows, user, without_groups,
};
use crate::layer::{Layer, Strength};
use crate::model::{Confinement, MountAccess, MountOp, Owner, Plan, Probe, Resource};
use crate::{IfMissing, PlanError, PlanRequest, build};
use palisade_policy::model::{
    Approval, Level, Mode, NetworkMode, OnAsk, Policy, SyscallMode, View,
};
use std::path::Path;

/// A developer's machine in small.
fn developer() -> FakeTree {
    let mut tree = FakeTree::new();
    for dir in [".cargo/bin", ".cargo/registry", ".rustup", ".ssh", ".config/git", ".config/gh"] {
        tree.dir(format!("/home/u/{dir}")).dir(format!("/root/{dir}"));
    }
    for file in [".gitconfig", ".bashrc", ".netrc", ".cargo/credentials.toml"] {
        tree.file(format!("/home/u/{file}"), "").file(format!("/root/{file}"), "");
    }
    tree.file("/home/u/.config/git/config", "").file("/home/u/project/.palisade/policy.yaml", "");
    tree
}

/// The filter's groups are another crate's, with tests of their own.
fn text(plan: &Plan) -> String {
    let groups = crate::model::summary(&plan.sandbox.seccomp.as_ref().unwrap().rules);
    let is_group = |line: &str| groups.iter().any(|group| line.ends_with(group.reason));
    let text = plan.to_string();
    text.lines().filter(|line| !is_group(line)).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_plain_run_of_an_ordinary_user() {
    insta::assert_snapshot!(text(&plan(&policy(), &user(), &developer()).unwrap()));
}

#[test]
fn a_plain_run_of_root() {
    insta::assert_snapshot!(text(&plan(&policy(), &root(), &developer()).unwrap()));
}

#[test]
fn a_static_run_of_an_ordinary_user() {
    let policy = Policy { mode: Mode::Static, ..policy() };
    insta::assert_snapshot!(text(&plan(&policy, &user(), &developer()).unwrap()));
}

#[test]
fn the_plan_prints_as_json_whatever_its_names_are() {
    use std::os::unix::ffi::OsStringExt as _;
    let name = std::ffi::OsString::from_vec(b"/home/u/caf\xe9".to_vec());
    let mut tree = developer();
    tree.dir(Path::new(&name));
    let facts = HostFacts { cwd: name.into(), ..user() };
    let json = plan(&policy(), &facts, &tree).unwrap().to_json().unwrap();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["level"], "LEVEL_2");
    assert_eq!(value["confinement"]["kind"], "namespaces");
    assert_eq!(value["command"]["cwd"], "/home/u/caf\u{fffd}");
}

#[test]
fn what_a_variable_names_of_the_system_is_not_mounted_twice_nor_mapped() {
    let mut tree = developer();
    tree.dir("/usr/lib/jvm/x").dir("/etc/ssl/private").dir("/home/u/jdk");
    for (home, is_mounted) in [("/usr/lib/jvm/x", false), ("/home/u/jdk", true)] {
        let mut facts = root();
        facts.env.insert("JAVA_HOME".into(), home.into());
        facts.env.insert("SSL_CERT_DIR".into(), "/etc/ssl/private".into());
        let plan = plan(&policy(), &facts, &tree).unwrap();
        assert_eq!(op_at(&plan, home).is_some(), is_mounted, "{home}");
        assert!(op_at(&plan, "/etc/ssl/private").is_none());
    }
    let mut facts = root();
    facts.env.insert("JAVA_HOME".into(), "/etc/ssl/private".into());
    let plan = plan(&policy(), &facts, &tree).unwrap();
    let Some(MountOp::Bind { idmap, .. }) = op_at(&plan, "/etc/ssl/private") else { panic!() };
    assert!(idmap.is_none(), "root's own files would show");
}

#[test]
fn for_root_grants_are_mapped_to_their_owner_and_system_paths_are_not() {
    let mut tree = developer();
    tree.dir("/srv/data").own("/srv/data", 33, 34);
    let mut policy = policy();
    policy.filesystem.read_write_paths = vec!["/srv/data".to_owned()];
    policy.filesystem.read_only_paths = vec!["/etc/ssl".to_owned(), "/var".to_owned()];
    tree.dir("/etc/ssl");
    let plan = plan(&policy, &root(), &tree).unwrap();
    assert_ne!(inside(&plan).identity.host_uid, 0);
    for (path, owner) in [
        ("/home/u/project", Some((1000, 1000))),
        ("/root/.cargo/registry", Some((0, 0))),
        ("/srv/data", Some((33, 34))),
        ("/usr", None),
        ("/etc", None),
        ("/var/log", None),
    ] {
        let Some(MountOp::Bind { idmap, .. }) = op_at(&plan, path) else { panic!("{path}") };
        assert_eq!(*idmap, owner.map(|(uid, gid)| Owner { uid, gid }), "{path}");
    }
    let Some(MountOp::File { content, .. }) = op_at(&plan, "/etc/passwd") else { panic!() };
    assert!(content.contains("sandbox:x:1000:1000:sandbox:/root:"), "{content}");
    let user_plan = self::plan(&self::policy(), &user(), &tree).unwrap();
    assert!(!inside(&user_plan).mounts.iter().any(|op| matches!(op, MountOp::File { .. })));
}

#[test]
fn root_cannot_make_what_only_root_reads_readable_by_a_mapped_grant() {
    let mut policy = policy();
    policy.filesystem.read_write_paths = vec!["/etc".to_owned()];
    let error = plan(&policy, &root(), &developer()).unwrap_err();
    assert!(matches!(error, PlanError::DeniedInsideWritable { .. }), "{error}");
    policy.filesystem.read_write_paths.clear();
    policy.filesystem.read_only_paths = vec!["/".to_owned()];
    let shown = plan(&policy, &root(), &developer()).unwrap();
    let bound = inside(&shown).mounts.iter().find(|op| op.target() == Path::new("/etc"));
    assert!(matches!(bound, Some(MountOp::Bind { idmap: None, .. })), "{bound:?}");
}

#[test]
fn each_level_has_its_namespaces() {
    let full = plan(&policy(), &user(), &developer()).unwrap();
    let has = inside(&full).namespaces;
    assert!(has.mount && has.pid && has.net && has.uts && has.ipc && has.cgroup);
    assert_eq!(inside(&full).hostname.as_deref(), Some("sandbox"));
    assert!(inside(&full).loopback);
    let process = Policy { isolation_level: Level::Process, ..policy() };
    let process = plan(&process, &user(), &developer()).unwrap();
    let has = inside(&process).namespaces;
    assert!(has.mount && has.pid && has.net && !has.uts && !has.ipc && !has.cgroup);
    assert_eq!(inside(&process).hostname, None);
    assert!(op_at(&process, "/dev/mqueue").is_none());
    let none = Policy { isolation_level: Level::None, ..policy() };
    let none = plan(&none, &user(), &developer()).unwrap();
    assert!(matches!(none.sandbox.confinement, Confinement::None));
    assert!(
        none.sandbox.landlock.is_none()
            && none.sandbox.seccomp.is_none()
            && none.sandbox.self_check.is_empty()
    );
    let isolating = none.explanation.promises.iter().filter(|promise| promise.id != "PROC-8");
    assert!(isolating.clone().count() > 10);
    assert!(isolating.clone().all(|promise| promise.strength == Strength::Absent));
}

/// Proves: PROC-4 time
#[test]
fn a_time_offset_and_a_host_name_need_their_namespaces() {
    let mut policy = policy();
    policy.process.time_offset = Some(3600);
    policy.process.hostname = "box".to_owned();
    let full = plan(&policy, &user(), &developer()).unwrap();
    assert_eq!(inside(&full).namespaces.time_offset, Some(3600));
    assert_eq!(inside(&full).hostname.as_deref(), Some("box"));
    policy.isolation_level = Level::Process;
    assert!(matches!(plan(&policy, &user(), &developer()), Err(PlanError::NeedsNamespaces { .. })));
}

#[test]
fn the_hosts_network_is_shared_only_when_asked_for() {
    let mut tree = developer();
    tree.link("/etc/resolv.conf", "/run/resolve/stub.conf").file("/run/resolve/stub.conf", "");
    let mut policy = policy();
    let none = plan(&policy, &user(), &tree).unwrap();
    assert!(!shows(&none, "/run/resolve/stub.conf"));
    policy.network.mode = NetworkMode::Host;
    let host = plan(&policy, &user(), &tree).unwrap();
    assert!(!inside(&host).namespaces.net && !inside(&host).loopback);
    assert!(shows(&host, "/run/resolve/stub.conf"));
    assert!(
        !host.sandbox.self_check.iter().any(|probe| matches!(probe, Probe::ReachNetwork { .. }))
    );
    let promise = host.explanation.promises.iter().find(|promise| promise.id == "NET-1").unwrap();
    assert_eq!(promise.strength, Strength::Absent);
    assert!(host.explanation.notes.iter().any(|note| note.text.contains("host's network")));
}

#[test]
fn what_would_be_answered_is_refused_where_nothing_is_asked() {
    for on_ask in [OnAsk::Allow, OnAsk::Wait] {
        let unasked = Policy { on_ask, mode: Mode::Static, ..policy() };
        let error = plan(&unasked, &user(), &developer()).unwrap_err();
        assert!(error.to_string().contains("nothing is asked"), "{error}");
        plan(&Policy { on_ask, ..policy() }, &user(), &developer()).unwrap();
    }
}

#[test]
fn level_0_refuses_what_it_cannot_keep() {
    let mut policy = Policy { isolation_level: Level::None, ..policy() };
    policy.filesystem.denied_paths = vec!["~/.ssh".to_owned()];
    assert!(matches!(plan(&policy, &user(), &developer()), Err(PlanError::NoIsolation { .. })));
    policy.filesystem.denied_paths.clear();
    policy.process.cwd = Some("~/missing".to_owned());
    assert!(matches!(
        plan(&policy, &user(), &developer()),
        Err(PlanError::NoWorkingDirectory { .. })
    ));
}

#[test]
fn without_namespaces_landlock_and_seccomp_hold_what_they_can() {
    let mut policy = Policy { isolation_level: Level::Process, ..policy() };
    policy.process.user_namespace = false;
    policy.filesystem.read_only_paths = vec!["~".to_owned()];
    let plan_u = plan(&policy, &user(), &developer()).unwrap();
    assert!(matches!(plan_u.sandbox.confinement, Confinement::NoNamespaces));
    let landlock = plan_u.sandbox.landlock.as_ref().unwrap();
    assert!(landlock.restrict_reads && landlock.refuse_tcp && landlock.scope);
    let readable = |path: &str| {
        landlock
            .readable
            .iter()
            .chain(&landlock.writable)
            .chain(&landlock.guarded)
            .any(|tree| Path::new(path).starts_with(tree))
    };
    assert!(readable("/usr/bin/true") && readable("/home/u/.bashrc"));
    for hidden in
        ["/home/u/.ssh/id", "/home/u/.config/gh", "/home/other", "/srv/data", "/home/u/.netrc"]
    {
        assert!(!readable(hidden), "{hidden}");
    }
    let guarded = ["/home/u/.cargo/registry", "/home/u/project", "/tmp", "/var/tmp"];
    assert_eq!(landlock.guarded, guarded.map(Path::new));
    assert!(landlock.writable.is_empty(), "{:?}", landlock.writable);
    let layers: Vec<Layer> = plan_u
        .sandbox
        .self_check
        .iter()
        .filter_map(|probe| match probe {
            Probe::ReadCanary { layer, .. }
            | Probe::WriteOutside { layer, .. }
            | Probe::WriteGuarded { layer, .. }
            | Probe::ReachNetwork { layer } => Some(*layer),
            _ => None,
        })
        .collect();
    assert_eq!(layers, [Layer::Landlock, Layer::Landlock, Layer::Seccomp, Layer::Landlock]);
    let absent = |id: &str| {
        plan_u
            .explanation
            .promises
            .iter()
            .any(|promise| promise.id == id && promise.strength == Strength::Absent)
    };
    assert!(absent("PROC-1") && absent("FS-3") && absent("FS-7") && !absent("FS-2"));
}

#[test]
fn without_namespaces_what_needs_them_is_an_error() {
    let mut policy = Policy { isolation_level: Level::Process, ..policy() };
    policy.process.user_namespace = false;
    let refused =
        |policy: &Policy, facts: &HostFacts| plan(policy, facts, &developer()).unwrap_err();
    assert!(refused(&policy, &root()).to_string().contains("root on the host"));
    let no_landlock = HostFacts { landlock_abi: 0, ..user() };
    assert_eq!(refused(&policy, &no_landlock), PlanError::NoLandlock);
    let full = Policy { isolation_level: Level::Full, ..policy.clone() };
    let minimal = Policy { view: View::Minimal, ..policy.clone() };
    let mut overlay = policy.clone();
    overlay.filesystem.overlay_paths = vec!["/srv/data".to_owned()];
    for policy in [full, minimal, overlay] {
        assert!(matches!(refused(&policy, &user()), PlanError::NeedsNamespaces { .. }));
    }
}

#[test]
fn a_host_without_landlock_is_told_so() {
    let facts = HostFacts { landlock_abi: 0, ..user() };
    let mut policy = policy();
    policy.filesystem.protect_names = false;
    let plan = plan(&policy, &facts, &developer()).unwrap();
    assert!(plan.sandbox.landlock.is_none());
    assert!(plan.explanation.notes.iter().any(|note| note.text.contains("no Landlock")));
    assert!(
        plan.explanation.promises.iter().all(|promise| !promise.layers.contains(&Layer::Landlock))
    );
}

#[test]
fn landlock_floors_writing_to_exactly_what_is_writable() {
    let plan = plan(&policy(), &user(), &developer()).unwrap();
    let landlock = plan.sandbox.landlock.unwrap();
    let mut writable: Vec<_> =
        landlock.writable.iter().map(|path| path.to_str().unwrap()).collect();
    writable.sort_unstable();
    assert_eq!(
        writable,
        ["/dev/mqueue", "/dev/shm", "/proc", "/run", "/tmp", "/var/tmp"],
        "a right on the private home would hold in the project below it"
    );
    let guarded = ["/home/u/.cargo/registry", "/home/u/project", "/home/u"].map(Path::new);
    assert_eq!(landlock.guarded, guarded);
    assert!(!landlock.restrict_reads);
}

#[test]
fn limits_come_from_the_policy() {
    let mut policy = policy();
    policy.process.debug = false;
    policy.process.max_processes = Some(10);
    policy.resources.max_threads = Some(20);
    policy.resources.max_file_descriptors = Some(100);
    policy.filesystem.max_file_size = Some(1 << 20);
    policy.resources.timeout = Some(5_000);
    let plan_limited = plan(&policy, &user(), &developer()).unwrap();
    let limits: Vec<_> =
        plan_limited.sandbox.rlimits.iter().map(|limit| (limit.resource, limit.value)).collect();
    assert_eq!(
        limits,
        [
            (Resource::Core, 0),
            // Our own pid 1 counts.
            (Resource::Processes, 12),
            (Resource::FileSize, 1 << 20),
            (Resource::OpenFiles, 100),
        ]
    );
    assert_eq!(plan_limited.supervision.timeout_ms, Some(5_000));
    assert!(plan(&self::policy(), &user(), &developer()).unwrap().sandbox.rlimits.is_empty());
}

/// Proves: FS-1 read-only
#[test]
fn truncation_is_held_where_a_stream_is_a_file_of_the_host() {
    let held = |facts: &HostFacts| {
        plan(&policy(), facts, &developer()).unwrap().sandbox.landlock.unwrap().refuse_truncation
    };
    assert!(!held(&user()), "every open would cost more");
    assert!(held(&HostFacts { stream_reads_file: true, ..user() }));
}

/// Proves: RES-2 shown, SYS-2 promised
#[test]
fn the_text_shows_what_ends_a_run_with_and_without_a_time_limit() {
    let mut policy = policy();
    policy.syscalls.max_blocked = Some(7);
    policy.resources.grace = Some(1_500);
    let text = |policy: &Policy| plan(policy, &user(), &developer()).unwrap().to_string();
    let without = text(&policy);
    assert!(without.contains("suspicious system calls: 7, then the run is stopped"), "{without}");
    assert!(without.contains("to end after a signal: 1500 ms"), "{without}");
    assert!(!without.contains("timeout"), "{without}");
    policy.resources.timeout = Some(5_000);
    let with = text(&policy);
    assert!(with.contains("timeout                   5s  timer, hard"), "{with}");
    assert!(with.contains("to end after the timeout: 1500 ms"), "{with}");
}

/// Proves: SYS-2 promised
#[test]
fn that_refused_calls_are_told_is_promised_with_what_ends_the_run() {
    let promise = |policy: &Policy| {
        let plan = plan(policy, &user(), &developer()).unwrap();
        plan.explanation.promises.into_iter().find(|promise| promise.id == "SYS-2").unwrap()
    };
    let told = promise(&policy());
    assert_eq!((told.strength, &told.layers[..]), (Strength::Enforced, &[Layer::Seccomp][..]));
    assert_eq!(told.remark, None);
    let mut unlimited = policy();
    unlimited.syscalls.max_blocked = None;
    assert!(promise(&unlimited).remark.unwrap().contains("no number of them stops the run"));
    let mut none = policy();
    none.isolation_level = Level::None;
    assert_eq!(promise(&none).strength, Strength::Absent);
}

#[test]
fn every_wall_is_probed() {
    let plan = plan(&policy(), &user(), &developer()).unwrap();
    let canary = user().canary.unwrap();
    assert_eq!(
        plan.sandbox.self_check,
        [
            Probe::ReadCanary { path: canary, layer: Layer::MountView },
            Probe::WriteOutside {
                path: "/usr/.palisade-self-check".into(),
                layer: Layer::ReadOnlyMounts
            },
            Probe::ReachNetwork { layer: Layer::NetNamespace },
            Probe::SeeSupervisor { layer: Layer::PidNamespace },
            Probe::WriteGuarded {
                path: "/home/u/.cargo/registry/.palisade-self-check".into(),
                layer: Layer::Landlock
            },
            Probe::RegainCapability { layer: Layer::Capabilities },
            Probe::ForbiddenSyscall { layer: Layer::Seccomp },
        ]
    );
}

#[test]
fn a_policys_own_list_of_system_calls_is_compiled() {
    let mut policy = policy();
    policy.syscalls.syscalls = vec!["read".to_owned(), "write".to_owned()];
    let white = plan(&policy, &user(), &developer()).unwrap().sandbox.seccomp.unwrap();
    assert_eq!(white.profile, "only 2 named calls");
    policy.syscalls.mode = SyscallMode::Blacklist;
    let black = plan(&policy, &user(), &developer()).unwrap().sandbox.seccomp.unwrap();
    assert_eq!(black.profile, "all but 2 named calls");
    assert_ne!(white.filter, black.filter);
    policy.syscalls.syscalls = vec!["opennat".to_owned()];
    let error = plan(&policy, &user(), &developer()).unwrap_err();
    assert!(error.to_string().contains("did you mean `openat`?"), "{error}");
}

#[test]
fn dynamic_mode_says_where_nothing_is_asked() {
    let has_note = |plan: &Plan| {
        plan.explanation.notes.iter().any(|note| note.text.starts_with("mode dynamic:"))
    };
    let asking = plan(&policy(), &user(), &developer()).unwrap();
    assert!(!has_note(&asking));
    assert_eq!(access(&asking, "/srv/data"), None::<MountAccess>);
    let minimal = Policy { view: View::Minimal, ..policy() };
    assert!(has_note(&plan(&minimal, &user(), &developer()).unwrap()));
}

#[test]
fn approvals_reach_the_plan() {
    let approval = Approval { what: "network:host".to_owned(), reason: "a test".to_owned() };
    let policy = Policy { approvals: vec![approval.clone()], ..policy() };
    assert_eq!(plan(&policy, &user(), &developer()).unwrap().supervision.approvals, [approval]);
}

#[test]
fn a_missing_command_is_an_error_of_ours() {
    let (policy, facts, tree) = (policy(), user(), developer());
    let session = "s".to_owned();
    let request = PlanRequest {
        policy: &policy,
        facts: &facts,
        tree: &tree,
        command: vec![],
        session,
        missing: IfMissing::IsAnError,
        project: None,
        policy_files: &[],
        preset_paths: &[],
        layer: Path::new("/state/layer"),
        caches: &crate::fake::no_caches,
        listed: None,
        limits: &without_groups,
    };
    let error = build(&request).unwrap_err();
    assert_eq!(error, PlanError::NoCommand);
    assert!(!error.refused_by_policy());
}

/// Proves: FS-1 private-home
#[test]
fn the_rest_of_the_home_directory_is_the_runs_own() {
    let home = |plan: &Plan| op_at(plan, "/home/u").cloned();
    let dynamic = plan(&policy(), &user(), &developer()).unwrap();
    assert!(matches!(home(&dynamic), Some(MountOp::Tmpfs { mode: 0o700, .. })));
    assert!(dynamic.explanation.notes.iter().any(|note| note.text.contains("discarded")));

    let mut fixed = policy();
    fixed.mode = Mode::Static;
    let fixed = plan(&fixed, &user(), &developer()).unwrap();
    assert!(matches!(home(&fixed), Some(MountOp::Tmpfs { mode: 0o700, .. })));
    assert!(fixed.explanation.notes.iter().any(|note| note.text.starts_with("mode static: home")));
}

/// Proves: ESC-2 stops
#[test]
fn the_write_probe_aims_where_only_our_mount_refuses() {
    let aim = |facts: &HostFacts| {
        let plan = plan(&policy(), facts, &developer()).unwrap();
        plan.sandbox.self_check.iter().find_map(|probe| match probe {
            Probe::WriteOutside { path, .. } => Some(path.clone()),
            _ => None,
        })
    };
    let mut facts = user();
    assert_eq!(aim(&facts), Some("/usr/.palisade-self-check".into()));
    let mount = |at: &str| HostMount {
        device: "8:1".into(),
        root: "/".into(),
        mount_point: at.into(),
        fs_type: "ext4".into(),
        read_only: true,
    };
    facts.mounts.push(mount("/usr"));
    assert_eq!(aim(&facts), Some("/etc/.palisade-self-check".into()));
    facts.mounts.push(mount("/"));
    assert_eq!(aim(&facts), None, "a host that is read-only everywhere proves nothing");
}

/// Proves: POL-3 srt
#[test]
fn a_missing_path_of_a_file_is_noted_and_never_left_to_be_made() {
    let planned = |path: &str| {
        let (mut policy, facts, tree) = (policy(), user(), developer());
        policy.filesystem.read_only_paths = vec![path.to_owned()];
        let (command, session) = (vec!["true".into()], "s".to_owned());
        build(&PlanRequest {
            policy: &policy,
            facts: &facts,
            tree: &tree,
            command,
            session,
            missing: IfMissing::IsNoted,
            project: None,
            policy_files: &[],
            preset_paths: &[],
            layer: Path::new("/state/layer"),
            caches: &crate::fake::no_caches,
            listed: None,
            limits: &without_groups,
        })
    };
    let plan = planned("/srv/models").unwrap();
    assert!(plan.explanation.notes.iter().any(|note| note.text.contains("/srv/models")));
    let error = planned("/home/u/project/.env").unwrap_err();
    assert!(matches!(error, PlanError::CouldBeMade { .. }), "{error}");
    assert!(error.refused_by_policy());
}

/// Proves: FS-1 read-only
#[test]
fn in_the_minimal_view_the_project_is_read_only_where_it_stands() {
    let planned = |path: &str| {
        let mut policy = policy();
        policy.view = View::Minimal;
        policy.filesystem.read_only_paths = vec![path.to_owned()];
        plan(&policy, &user(), &developer()).unwrap()
    };
    let whole = planned("/home/u/project");
    assert_eq!(access(&whole, "/workspace"), Some(MountAccess::ReadOnly));
    assert!(op_at(&whole, "/home/u/project").is_none());
    let part = planned("/home/u/project/.git");
    assert_eq!(access(&part, "/workspace"), Some(MountAccess::ReadWrite));
    assert_eq!(access(&part, "/workspace/.git"), Some(MountAccess::ReadOnly));
}
