//! An invented host: a tree, facts about its caller, and the policy of a plain `run`.

use crate::facts::{DirEntry, EntryKind, HostFacts, HostTree, LimitFacts, NatFacts};
use crate::limit::CgroupHome;
use crate::model::{Confinement, MountAccess, MountOp, Namespaced, Plan};
use crate::{CacheStore, PlanError, PlanRequest, build};
use palisade_policy::model::{
    AllowedPorts, EnvMode, Escape, EscapeAction, Filesystem, Level, Mode, Network, NetworkMode,
    OnAsk, Policy, Process, ProjectAccess, Resources, SyscallMode, Syscalls, View,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
enum Node {
    Dir,
    File(String),
    Link(PathBuf),
    Socket,
}

#[derive(Clone, Debug)]
pub(crate) struct FakeTree {
    nodes: BTreeMap<PathBuf, Node>,
    /// Who owns what is below; the deepest one counts.
    owners: BTreeMap<PathBuf, (u32, u32)>,
    /// What the kernel says to an overlay of anything.
    pub(crate) overlay_obstacle: Option<String>,
}

impl FakeTree {
    /// A small merged-`/usr` system with one user.
    pub(crate) fn new() -> Self {
        let mut tree =
            Self { nodes: BTreeMap::new(), owners: BTreeMap::new(), overlay_obstacle: None };
        tree.nodes.insert("/".into(), Node::Dir);
        for dir in
            ["/usr/bin", "/usr/lib", "/opt", "/srv/data", "/var/lib/dpkg", "/var/log", "/var/tmp"]
        {
            tree.dir(dir);
        }
        for dir in
            ["/proc", "/sys/devices/system/cpu", "/dev", "/run/user/1000", "/tmp", "/home/other"]
        {
            tree.dir(dir);
        }
        tree.link("/bin", "usr/bin").link("/lib", "usr/lib");
        tree.file("/etc/passwd", "").file("/etc/group", "").file("/etc/shadow", "");
        tree.dir("/home/u/project/src").dir("/home/u/project/.git").dir("/root");
        tree.own("/home/u", 1000, 1000);
        tree
    }

    pub(crate) fn dir(&mut self, path: impl AsRef<Path>) -> &mut Self {
        self.put(path.as_ref(), Node::Dir)
    }

    pub(crate) fn file(&mut self, path: impl AsRef<Path>, content: &str) -> &mut Self {
        self.put(path.as_ref(), Node::File(content.to_owned()))
    }

    pub(crate) fn link(&mut self, path: impl AsRef<Path>, points_to: &str) -> &mut Self {
        self.put(path.as_ref(), Node::Link(points_to.into()))
    }

    pub(crate) fn socket(&mut self, path: impl AsRef<Path>) -> &mut Self {
        self.put(path.as_ref(), Node::Socket)
    }

    pub(crate) fn own(&mut self, path: &str, uid: u32, gid: u32) -> &mut Self {
        self.owners.insert(path.into(), (uid, gid));
        self
    }

    /// Everything below a directory, itself included.
    pub(crate) fn paths_below(&self, dir: &Path) -> Vec<PathBuf> {
        self.nodes.keys().filter(|path| path.starts_with(dir)).cloned().collect()
    }

    fn put(&mut self, path: &Path, node: Node) -> &mut Self {
        for parent in path.ancestors().skip(1) {
            self.nodes.entry(parent.to_owned()).or_insert(Node::Dir);
        }
        self.nodes.insert(path.to_owned(), node);
        self
    }
}

impl Node {
    fn kind(&self) -> EntryKind {
        match self {
            Self::Dir => EntryKind::Dir,
            Self::File(_) => EntryKind::File,
            Self::Link(_) => EntryKind::Symlink,
            Self::Socket => EntryKind::Other,
        }
    }
}

impl HostTree for FakeTree {
    fn entry(&self, path: &Path) -> Option<DirEntry> {
        let kind = self.nodes.get(path)?.kind();
        let owner = path.ancestors().find_map(|above| self.owners.get(above));
        let (uid, gid) = owner.copied().unwrap_or((0, 0));
        Some(DirEntry { kind, uid, gid })
    }

    fn overlay_obstacle(&self, _lower: &Path) -> Option<String> {
        self.overlay_obstacle.clone()
    }

    fn read_link(&self, path: &Path) -> Option<PathBuf> {
        match self.nodes.get(path)? {
            Node::Link(points_to) => Some(points_to.clone()),
            _ => None,
        }
    }

    fn children(&self, path: &Path) -> Vec<(OsString, EntryKind)> {
        let below = self.nodes.iter().filter(|(child, _)| child.parent() == Some(path));
        below
            .filter_map(|(child, node)| Some((child.file_name()?.to_owned(), node.kind())))
            .collect()
    }

    fn read_part(&self, path: &Path, offset: u64, length: usize) -> Option<Vec<u8>> {
        let Node::File(content) = self.nodes.get(path)? else { return None };
        let content = content.as_bytes();
        let rest = content.get(usize::try_from(offset).ok()?..)?;
        Some(rest[..length.min(rest.len())].to_vec())
    }

    fn is_same_file(&self, one: &Path, other: &Path) -> bool {
        one == other
    }
}

/// An ordinary user in `/home/u/project`.
pub(crate) fn user() -> HostFacts {
    let env = [("HOME", "/home/u"), ("PATH", "/usr/bin"), ("GH_TOKEN", "x"), ("LANG", "C.UTF-8")];
    HostFacts {
        uid: 1000,
        gid: 1000,
        hostname: "machine".to_owned(),
        user_name: Some("u".to_owned()),
        home: Some("/home/u".into()),
        cwd: "/home/u/project".into(),
        env: env.map(|(name, value)| (name.into(), value.into())).into(),
        landlock_abi: 6,
        serves_gate: false,
        uid_ranges: vec![(0, u32::MAX)],
        gid_ranges: vec![(0, u32::MAX)],
        mounts: Vec::new(),
        stream_reads_file: false,
        own_paths: vec!["/home/u/.config/palisade".into(), "/home/u/.local/state/palisade".into()],
        homes: Vec::new(),
        canary: Some("/home/u/.local/state/palisade/canary".into()),
        registries: BTreeMap::new(),
        registry_notes: Vec::new(),
        nat: NatFacts::default(),
        authority: None,
    }
}

/// Root in the same place, with its own home.
pub(crate) fn root() -> HostFacts {
    let mut facts = user();
    facts.env.insert("HOME".into(), "/root".into());
    HostFacts {
        uid: 0,
        gid: 0,
        user_name: Some("root".to_owned()),
        home: Some("/root".into()),
        own_paths: vec!["/root/.config/palisade".into()],
        ..facts
    }
}

/// The policy of a plain `run`.
pub(crate) fn policy() -> Policy {
    Policy {
        isolation_level: Level::Full,
        view: View::Host,
        mode: Mode::Dynamic,
        on_ask: OnAsk::Ask,
        ask_timeout: 5 * 60 * 1000,
        ask_key: palisade_policy::model::AskKey::default(),
        gate: palisade_policy::model::GateChoice::Auto,
        filesystem: Filesystem {
            root_path: None,
            read_only_paths: Vec::new(),
            read_write_paths: Vec::new(),
            overlay_paths: Vec::new(),
            denied_paths: Vec::new(),
            rules: Vec::new(),
            project: ProjectAccess::ReadWrite,
            transaction_by: palisade_policy::model::TransactionBy::Auto,
            checkpoint_each_command: false,
            on_expiry: palisade_policy::model::OnExpiry::Keep,
            // As many tests need what a command writes to the host; `caches_tests.rs` has the default.
            caches: palisade_policy::CacheAccess::Host,
            cache_size: None,
            toolchains: true,
            hide_secrets: true,
            protect_names: true,
            unprotected_paths: Vec::new(),
            build_dirs: Vec::new(),
            execute_written: true,
            executable_dirs: Vec::new(),
            max_file_size: None,
            max_total_size: None,
            max_inodes: None,
            tmp_size: None,
            var_tmp_size: None,
        },
        process: Process {
            max_processes: None,
            allow_fork: true,
            allow_exec: true,
            allowed_executables: Vec::new(),
            debug: true,
            hostname: "sandbox".to_owned(),
            time_offset: None,
            env_mode: EnvMode::Inherit,
            allowed_env_vars: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            uid: None,
            gid: None,
            user_namespace: true,
        },
        network: Network {
            mode: NetworkMode::None,
            allowed_hosts: Vec::new(),
            denied_hosts: Vec::new(),
            allowed_ports: AllowedPorts::Usual,
            allowed_private: Vec::new(),
            allowed_for: Vec::new(),
            max_connections: None,
            max_bytes: None,
            max_queries: None,
            follow_redirects: false,
            upstream_proxy: None,
            publish: Vec::new(),
            credentials: Vec::new(),
            intercept: false,
        },
        resources: Resources::default(),
        audit: palisade_policy::model::Audit::default(),
        recording: palisade_policy::model::Recording::default(),
        syscalls: Syscalls {
            mode: SyscallMode::Whitelist,
            syscalls: Vec::new(),
            max_blocked: Some(100),
        },
        escape: Escape {
            on_low: EscapeAction::Warn,
            on_medium: EscapeAction::Warn,
            on_high: EscapeAction::Warn,
            on_critical: EscapeAction::Warn,
            strict: false,
            desktop: true,
            webhook: None,
        },
        approvals: Vec::new(),
    }
}

pub(crate) fn plan(policy: &Policy, facts: &HostFacts, tree: &FakeTree) -> Result<Plan, PlanError> {
    plan_of(policy, facts, tree, "true")
}

pub(crate) fn plan_of(
    policy: &Policy,
    facts: &HostFacts,
    tree: &FakeTree,
    command: &str,
) -> Result<Plan, PlanError> {
    build(&request(policy, facts, tree, command, &without_groups))
}

pub(crate) fn request<'a>(
    policy: &'a Policy,
    facts: &'a HostFacts,
    tree: &'a FakeTree,
    command: &str,
    limits: &'a dyn Fn() -> LimitFacts,
) -> PlanRequest<'a> {
    PlanRequest {
        policy,
        facts,
        tree,
        command: vec![command.into()],
        session: "session-1".to_owned(),
        missing: crate::IfMissing::IsAnError,
        project: None,
        policy_files: &[],
        preset_paths: &[],
        layer: Path::new("/home/u/.local/state/palisade/sessions/session-1/layers/1"),
        caches: &no_caches,
        listed: None,
        limits,
    }
}

/// Nothing that earlier runs left.
pub(crate) fn no_caches(_: &Path) -> CacheStore {
    CacheStore { top: PathBuf::from("/state/caches/project/runs/1"), finished: Vec::new() }
}

/// A group for processes and nothing else.
pub(crate) fn with_group() -> LimitFacts {
    let parents = [(crate::limit::Controller::Pids, "/sys/fs/cgroup/pids".into())].into();
    LimitFacts { cgroups: CgroupHome::V1 { parents }, ..without_groups() }
}

/// Two CPUs, and nowhere to make a control group.
pub(crate) fn without_groups() -> LimitFacts {
    let cgroups = CgroupHome::Nowhere { why: "invented".to_owned() };
    LimitFacts { cgroups, cpus: vec![0, 1], spread: 0 }
}

pub(crate) fn inside(plan: &Plan) -> &Namespaced {
    match &plan.sandbox.confinement {
        Confinement::Namespaces(inside) => inside,
        other => panic!("not namespaced: {other:?}"),
    }
}

pub(crate) fn op_at<'a>(plan: &'a Plan, target: &str) -> Option<&'a MountOp> {
    inside(plan).mounts.iter().find(|op| op.target() == Path::new(target))
}

/// Whether a path of the host shows in the view, by any mount.
pub(crate) fn shows(plan: &Plan, path: &str) -> bool {
    access(plan, path).is_some()
}

/// How a path of the host shows in the view: by the bind that is nearest above it.
pub(crate) fn access(plan: &Plan, path: &str) -> Option<MountAccess> {
    let path = Path::new(path);
    let nearest = path.ancestors().find_map(|above| {
        inside(plan)
            .mounts
            .iter()
            .find(|op| op.target() == above && !matches!(op, MountOp::Seal { .. }))
    })?;
    match nearest {
        MountOp::Bind { access, .. } => Some(*access),
        // What is written to it reaches nobody else.
        MountOp::Copy { is_filtered: false, .. } => Some(MountAccess::ReadOnly),
        MountOp::Overlay { target, hidden, .. } => {
            let rest = path.strip_prefix(target).expect("below");
            let is_hidden = hidden.iter().any(|hidden| rest.starts_with(hidden));
            (!is_hidden).then_some(MountAccess::ReadOnly)
        }
        _ => None,
    }
}
