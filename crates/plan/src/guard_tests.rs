use super::*;
use crate::fake::{FakeTree, plan, policy, root, user};
use crate::layer::{Layer, Strength};
use crate::model::{Landlock, Plan, Seccomp};
use palisade_bpf::{Arch, CallAnswer, SeccompData, table};
use palisade_policy::model::{Level, Mode, Policy, ProjectAccess, View};

const PROJECT: &str = "/home/u/project";

fn guard_of(policy: &Policy, facts: &HostFacts, tree: &FakeTree) -> Guard {
    plan(policy, facts, tree).unwrap().sandbox.guard.unwrap()
}

fn paths(list: &[PathBuf]) -> Vec<&str> {
    list.iter().map(|path| path.to_str().unwrap()).collect()
}

/// Whether a name below the project would be refused in this plan.
fn refuses(guard: &Guard, path: &str) -> bool {
    let matcher = guard.matcher();
    let path = Path::new(path);
    let tree = guard.trees.iter().find(|tree| path.starts_with(tree)).unwrap();
    matcher.judge(tree, path, &mut |_| false).is_some()
}

fn fs_9(plan: &Plan) -> (Strength, Vec<Layer>) {
    let promise = plan.explanation.promises.iter().find(|promise| promise.id == "FS-9").unwrap();
    (promise.strength, promise.layers.clone())
}

/// Proves: FS-9 writable-trees
#[test]
fn what_is_of_the_host_and_writable_is_guarded() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/.cargo/registry").file(format!("{PROJECT}/.palisade/policy.yaml"), "");
    tree.file("/srv/data/file", "");
    let mut policy = policy();
    policy.filesystem.read_write_paths = vec!["/srv/data/file".to_owned()];
    policy.filesystem.read_only_paths = vec!["src".to_owned()];
    let plan = plan(&policy, &user(), &tree).unwrap();
    let guard = plan.sandbox.guard.as_ref().unwrap();
    assert_eq!(paths(&guard.trees), ["/home/u/.cargo/registry", PROJECT, "/srv/data/file"]);
    let islands = ["/home/u/project/.palisade", "/home/u/project/src"];
    assert_eq!(paths(&guard.islands), islands);
    assert_eq!(paths(&guard.surroundings), ["/home/u"], "a tmpfs that holds the project");
    assert_eq!(paths(&guard.stores), ["/home/u/.cargo/registry"]);
    assert_eq!(paths(&guard.homes), ["/home/u"]);
    assert_eq!(fs_9(&plan), (Strength::Enforced, vec![Layer::Guard, Layer::Landlock]));
    assert!(plan.to_string().contains("protected names"));
    assert!(refuses(guard, "/home/u/project/.envrc"));
    assert!(!refuses(guard, "/home/u/.cargo/registry/src/x/.envrc"));
}

/// Proves: FS-9 allow-write
#[test]
fn a_way_back_out_of_what_is_not_there_opens_nothing_and_says_so() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/project/src");
    let told = |path: &str| {
        let mut policy = policy();
        policy.filesystem.unprotected_paths = vec![path.to_owned()];
        plan(&policy, &user(), &tree).map(|plan| plan.sandbox.guard.unwrap().opened)
    };
    assert_eq!(told("src/../.envrc").unwrap(), [Path::new("/home/u/project/.envrc")]);
    assert_eq!(told("new/.envrc").unwrap(), [Path::new("/home/u/project/new/.envrc")]);
    for path in ["missing/../../.x", "missing/../.envrc", "src/missing/.."] {
        let error = told(path).unwrap_err();
        assert!(matches!(error, PlanError::Missing { what: "--allow-write", .. }), "{error}");
    }
    let mut writable = policy();
    writable.filesystem.read_write_paths = vec!["missing/../../x".to_owned()];
    let error = plan(&writable, &user(), &tree).unwrap_err();
    assert!(matches!(error, PlanError::Missing { what: "--rw", .. }), "{error}");
}

/// Proves: FS-9 writable-trees
#[test]
fn no_right_to_write_reaches_a_guarded_tree() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/docs/deep").dir("/srv/data/a").dir("/home/u/.cargo/registry");
    let mut overlaid = policy();
    overlaid.filesystem.overlay_paths = vec!["~/docs".to_owned()];
    overlaid.filesystem.read_write_paths = vec!["~/docs/deep".to_owned()];
    let fixed = Policy { mode: Mode::Static, ..policy() };
    let mut alone = Policy { isolation_level: Level::Process, ..policy() };
    alone.process.user_namespace = false;
    let in_tmp = HostFacts { cwd: "/tmp/project".into(), ..user() };
    tree.dir("/tmp/project/.git");
    for (policy, facts) in [(overlaid, user()), (fixed, user()), (alone, in_tmp)] {
        let plan = plan(&policy, &facts, &tree).unwrap();
        let (guard, landlock) = (plan.sandbox.guard.unwrap(), plan.sandbox.landlock.unwrap());
        let Landlock { writable, guarded, .. } = landlock;
        for tree in &guard.trees {
            assert!(!writable.iter().any(|place| tree.starts_with(place)), "{tree:?} {writable:?}");
            assert!(guarded.contains(tree));
        }
        for place in &guard.surroundings {
            assert!(guarded.contains(place));
        }
    }
}

/// Proves: FS-9 writable-trees
#[test]
fn directories_for_everybody_are_guarded_where_they_are_the_hosts() {
    let mut alone = Policy { isolation_level: Level::Process, ..policy() };
    alone.process.user_namespace = false;
    alone.filesystem.project = ProjectAccess::ReadOnly;
    alone.filesystem.caches = palisade_policy::CacheAccess::Off;
    let mut tree = FakeTree::new();
    tree.link("/dev/shm", "/run/shm").dir("/run/shm");
    let with_guard = plan(&alone, &user(), &tree).unwrap();
    let guard = with_guard.sandbox.guard.as_ref().unwrap();
    assert_eq!(paths(&guard.trees), ["/tmp", "/var/tmp", "/run/shm"]);
    let landlock = with_guard.sandbox.landlock.as_ref().unwrap();
    assert_eq!(paths(&landlock.guarded), ["/tmp", "/var/tmp", "/run/shm"]);
    assert!(landlock.writable.is_empty(), "{:?}", landlock.writable);
    assert!(refuses(guard, "/tmp/.envrc") && !refuses(guard, "/tmp/tmp.x8Yz"));

    alone.filesystem.protect_names = false;
    let without = plan(&alone, &user(), &tree).unwrap().sandbox.landlock.unwrap();
    assert_eq!(paths(&without.writable), ["/tmp", "/var/tmp", "/dev/shm"]);
    let inside = guard_of(&policy(), &user(), &tree);
    assert!(!paths(&inside.trees).contains(&"/tmp"), "a view has its own");
}

#[test]
fn without_the_guard_landlock_is_as_it_was() {
    let mut policy = policy();
    policy.filesystem.protect_names = false;
    let plan = plan(&policy, &user(), &FakeTree::new()).unwrap();
    assert!(plan.sandbox.guard.is_none());
    let landlock = plan.sandbox.landlock.as_ref().unwrap();
    assert!(landlock.guarded.is_empty() && landlock.writable.contains(&"/home/u".into()));
    assert!(
        plan.explanation.notes.iter().any(|note| note.text.contains("not protected in this run"))
    );
    assert_eq!(fs_9(&plan).0, Strength::Absent);
}

#[test]
fn nothing_writable_needs_no_guard() {
    let mut policy = policy();
    policy.filesystem.project = ProjectAccess::ReadOnly;
    let without_landlock = HostFacts { landlock_abi: 0, ..user() };
    let plan = plan(&policy, &without_landlock, &FakeTree::new()).unwrap();
    assert!(plan.sandbox.guard.is_none());
    assert_eq!(fs_9(&plan), (Strength::Enforced, vec![Layer::ReadOnlyMounts]));
}

/// Proves: FS-9 needs-landlock
#[test]
fn without_landlock_the_run_is_refused_and_told_what_to_do() {
    let facts = HostFacts { landlock_abi: 0, ..user() };
    let error = plan(&policy(), &facts, &FakeTree::new()).unwrap_err();
    assert_eq!(error, PlanError::NamesUnprotected);
    assert!(error.to_string().contains("--no-protect-names"));
}

/// Proves: FS-9 allow-write
#[test]
fn an_opened_path_is_open_where_it_is_inside() {
    let mut policy = policy();
    policy.filesystem.unprotected_paths =
        vec![".vscode".to_owned(), "/srv/data/.envrc".to_owned(), "~/project/.idea".to_owned()];
    let plan = plan(&policy, &user(), &FakeTree::new()).unwrap();
    let guard = plan.sandbox.guard.as_ref().unwrap();
    assert_eq!(paths(&guard.opened), ["/home/u/project/.vscode", "/home/u/project/.idea"]);
    assert!(
        plan.explanation
            .notes
            .iter()
            .any(|note| note.text.contains("/srv/data/.envrc has no effect"))
    );
    assert!(!refuses(guard, "/home/u/project/.vscode/settings.json"));
    assert!(refuses(guard, "/home/u/project/.envrc"));
    policy.view = View::Minimal;
    let minimal = guard_of(&policy, &user(), &FakeTree::new());
    assert_eq!(paths(&minimal.trees), ["/workspace"]);
    assert_eq!(paths(&minimal.opened), ["/workspace/.vscode", "/workspace/.idea"]);
}

/// Proves: FS-9 allow-write
#[test]
fn a_link_that_a_command_could_have_made_opens_nothing() {
    let mut tree = FakeTree::new();
    tree.dir(format!("{PROJECT}/.git/hooks")).link(format!("{PROJECT}/build"), ".git/hooks");
    let mut policy = policy();
    policy.filesystem.unprotected_paths = vec!["build".to_owned()];
    let error = plan(&policy, &user(), &tree).unwrap_err();
    assert!(matches!(error, PlanError::PlantedLink { .. }), "{error}");
}

/// Proves: FS-9 more-paths
#[test]
fn hooks_that_lie_elsewhere_are_guarded() {
    let mut tree = FakeTree::new();
    tree.file(format!("{PROJECT}/.git/config"), "[core]\n\thooksPath = tools/hooks\n");
    tree.file("/home/u/.gitconfig", "[core]\n\thooksPath = ~/hooks\n");
    let guard = guard_of(&policy(), &user(), &tree);
    assert!(refuses(&guard, "/home/u/project/tools/hooks/pre-commit"));
    assert!(!refuses(&guard, "/home/u/project/tools/other"));
    assert_eq!(guard.more.len(), 1, "what is not writable needs no guard: {:?}", guard.more);
}

/// Proves: FS-9 more-paths
#[test]
fn what_starts_a_virtual_environment_is_guarded_and_its_packages_are_not() {
    let mut tree = FakeTree::new();
    tree.file(format!("{PROJECT}/env 1/pyvenv.cfg"), "");
    tree.file(format!("{PROJECT}/env 1/bin/python3.13"), "");
    let guard = guard_of(&policy(), &user(), &tree);
    for name in ["pyvenv.cfg", "bin/activate", "bin/Activate.ps1", "bin/python", "bin/python3.13"] {
        assert!(refuses(&guard, &format!("{PROJECT}/env 1/{name}")), "{name}");
    }
    for name in ["bin/black", "lib/python3.13/site-packages/x.py"] {
        assert!(!refuses(&guard, &format!("{PROJECT}/env 1/{name}")), "{name}");
    }
    assert!(!refuses(&guard, &format!("{PROJECT}/src/bin/activate")));
}

#[test]
fn root_guards_the_homes_of_others_too() {
    let mut facts = root();
    facts.homes = vec!["/home/u".into(), "/home/other".into()];
    let mut policy = policy();
    policy.filesystem.read_write_paths = vec!["/home/u/.config".to_owned()];
    let mut tree = FakeTree::new();
    tree.dir("/home/u/.config/fish");
    let guard = guard_of(&policy, &facts, &tree);
    assert_eq!(paths(&guard.homes), ["/home/u"]);
    assert!(refuses(&guard, "/home/u/.config/fish/config.fish"));
}

/// A transaction has nothing of the host to write to. Where a person may grant something later, the broker judges what is
/// created then; in static mode nobody can, and every call runs at the kernel's speed.
#[test]
fn only_where_something_may_be_granted_is_a_transaction_brokered() {
    let kept = |mode| {
        let mut policy = Policy { mode, ..policy() };
        policy.filesystem.project = ProjectAccess::Transaction;
        let facts = HostFacts { serves_gate: true, ..user() };
        plan(&policy, &facts, &FakeTree::new()).unwrap().sandbox
    };
    let mkdir = |seccomp: Option<Seccomp>| {
        let arch = Arch::native();
        let nr = table::number(arch, "mkdir").unwrap();
        let call =
            SeccompData { nr, arch: arch.audit_value(), instruction_pointer: 0, args: [0; 6] };
        seccomp.unwrap().filter.answer(&call)
    };
    let dynamic = kept(Mode::Dynamic);
    assert!(dynamic.guard.is_some());
    assert_eq!(mkdir(dynamic.seccomp), CallAnswer::Broker);
    let fixed = kept(Mode::Static);
    assert_eq!(fixed.guard, None);
    assert_eq!(mkdir(fixed.seccomp), CallAnswer::Allow);
    let project = PathBuf::from(PROJECT);
    let writable = fixed.landlock.unwrap().writable;
    assert!(writable.iter().any(|above| project.starts_with(above)), "{writable:?}");
}

/// The private home stands for the host's: what is created in it may have a name there that is asked about.
#[test]
fn calls_continue_in_the_overlay_and_not_where_names_of_the_host_are_hidden() {
    let mut policy = policy();
    policy.filesystem.project = ProjectAccess::Transaction;
    let facts = HostFacts { serves_gate: true, ..user() };
    let mounts = plan(&policy, &facts, &FakeTree::new()).unwrap().own_mounts();
    assert!(mounts.contains(&PathBuf::from(PROJECT)), "{mounts:?}");
    assert!(!mounts.contains(&PathBuf::from("/home/u")), "{mounts:?}");
    policy.filesystem.project = ProjectAccess::ReadWrite;
    let mounts = plan(&policy, &facts, &FakeTree::new()).unwrap().own_mounts();
    assert!(!mounts.contains(&PathBuf::from(PROJECT)), "names are judged there: {mounts:?}");
}
