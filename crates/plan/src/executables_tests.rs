use crate::PlanError;
use crate::fake::{FakeTree, plan_of, policy, user};
use crate::layer::{Promise, Strength};
use crate::model::{Detour, DetourKind, Executables, Plan};
use crate::program::tests::dynamic_program;
use palisade_policy::model::{Level, Policy, ProjectAccess};
use std::path::PathBuf;

fn tree() -> FakeTree {
    let mut tree = FakeTree::new();
    let dynamic = String::from_utf8(dynamic_program("/lib/ld.so")).unwrap();
    tree.file("/usr/lib/ld.so", "").file("/usr/bin/ls", &dynamic);
    tree.file("/usr/bin/static", "").file("/usr/bin/other", "");
    tree.file("/usr/bin/python3.11", &dynamic).link("/usr/bin/python3", "python3.11");
    tree.file("/usr/bin/env", &dynamic).file("/usr/bin/pip", "#!/usr/bin/env python3\n");
    tree.file("/opt/tools/bin/a", "").link("/opt/tools/bin/b", "/usr/bin/other");
    tree.file("/home/u/project/tool", "");
    tree
}

fn listing(list: &[&str]) -> Policy {
    let mut policy = policy();
    policy.process.allowed_executables = list.iter().map(|text| (*text).to_owned()).collect();
    policy
}

fn planned(policy: &Policy, command: &str) -> Result<Plan, PlanError> {
    plan_of(policy, &user(), &tree(), command)
}

fn executables(list: &[&str], command: &str) -> Executables {
    planned(&listing(list), command)
        .unwrap()
        .sandbox
        .landlock
        .unwrap()
        .executables
        .listed()
        .unwrap()
        .clone()
}

fn paths(paths: &[&str]) -> Vec<PathBuf> {
    paths.iter().map(PathBuf::from).collect()
}

fn promise(plan: &Plan) -> &Promise {
    plan.explanation
        .promises
        .iter()
        .find(|promise| promise.what.ends_with("listed programs are executed"))
        .unwrap()
}

/// Proves: PROC-2 executables
#[test]
fn names_paths_and_links_mean_the_real_file_with_what_it_needs() {
    for name in ["ls", "/usr/bin/ls", "/bin/ls", "/lib/../bin/ls"] {
        let found = executables(&[name], "ls");
        assert_eq!(found.listed, paths(&["/usr/bin/ls"]), "{name}");
        assert_eq!(found.needed, paths(&["/usr/lib/ld.so"]), "{name}");
    }
    let pip = executables(&["pip"], "pip");
    assert_eq!(pip.needed, paths(&["/usr/bin/env", "/usr/bin/python3.11", "/usr/lib/ld.so"]));
    assert_eq!(executables(&["./tool"], "./tool").listed, paths(&["/home/u/project/tool"]));
}

/// Proves: PROC-2 executables
#[test]
fn a_star_stands_for_any_one_name_and_nothing_is_said_of_what_is_missing() {
    let mut tree = tree();
    tree.file("/usr/lib/gcc/one/12/collect2", "").file("/usr/lib/gcc/one/13/collect2", "");
    tree.file("/usr/lib/gcc/one/collect2", "").file("/usr/lib/gcc/one/12/deep/collect2", "");
    let list = listing(&["ls", "/usr/lib/gcc/*/*/collect2", "/usr/*/absent", "~/*/tool"]);
    let plan = plan_of(&list, &user(), &tree, "ls").unwrap();
    assert!(!format!("{:?}", plan.explanation.notes).contains("allows nothing"));
    let landlock = plan.sandbox.landlock.unwrap();
    let expected = [
        "/home/u/project/tool",
        "/usr/bin/ls",
        "/usr/lib/gcc/one/12/collect2",
        "/usr/lib/gcc/one/13/collect2",
    ];
    assert_eq!(landlock.executables.listed().unwrap().listed, paths(&expected));
}

/// Proves: PROC-2 executables
#[test]
fn a_directory_means_everything_below_and_what_its_links_lead_to() {
    let found = executables(&["/opt/tools"], "/opt/tools/bin/a");
    assert_eq!(found.listed, paths(&["/opt/tools", "/usr/bin/other"]));
    let all = executables(&["/usr/bin", "ls"], "ls");
    assert_eq!((all.listed, all.needed), (paths(&["/usr/bin"]), paths(&["/usr/lib/ld.so"])));
}

/// Proves: PROC-2 executables
#[test]
fn a_command_that_is_not_listed_is_refused_though_something_listed_needs_it() {
    for command in ["python3", "other", "/bin/other"] {
        let refused = planned(&listing(&["pip"]), command).unwrap_err();
        assert!(refused.refused_by_policy(), "{refused}");
        let path = if command == "python3" { "/usr/bin/python3.11" } else { "/usr/bin/other" };
        assert_eq!(refused, PlanError::NotAllowed { path: path.into() });
    }
    // Nowhere at all is for the launcher to say.
    planned(&listing(&["pip"]), "missing").unwrap();
}

/// Proves: PROC-2 honest-backing
#[test]
fn the_list_is_enforced_only_where_nothing_on_it_runs_what_it_is_given() {
    let held = planned(&listing(&["static"]), "static").unwrap();
    assert_eq!(promise(&held).strength, Strength::Enforced);
    for (list, told) in [
        ("ls", "any program can be started by /usr/lib/ld.so"),
        ("python3", "any script can be run by /usr/bin/python3.11"),
        ("./tool", "any program can be written to /home/u/project/tool"),
    ] {
        let plan = planned(&listing(&["static", list]), "static").unwrap();
        let promise = promise(&plan);
        assert_eq!(promise.strength, Strength::Advisory, "{list}");
        assert!(promise.remark.as_ref().unwrap().contains(told), "{promise:?}");
        assert!(plan.to_string().contains(told));
    }
    let detours = executables(&["ls"], "ls").detours;
    assert_eq!(detours, [Detour { kind: DetourKind::Loader, path: "/usr/lib/ld.so".into() }]);
}

/// Proves: PROC-2 honest-backing
#[test]
fn what_is_listed_and_missing_is_noted() {
    let plan = planned(&listing(&["static", "no-such-tool", "/no/such"]), "static").unwrap();
    for missing in ["no-such-tool", "/no/such"] {
        assert!(plan.explanation.notes.iter().any(|note| note.text.contains(missing)), "{missing}");
    }
}

/// Proves: PROC-2 honest-backing, PROC-7 never-less
#[test]
fn without_landlock_or_isolation_the_list_is_refused() {
    let policy = listing(&["static"]);
    let mut facts = user();
    facts.landlock_abi = 0;
    let mut unguarded = policy.clone();
    unguarded.filesystem.protect_names = false;
    assert_eq!(
        plan_of(&unguarded, &facts, &tree(), "static").unwrap_err(),
        PlanError::ExecutablesUnheld
    );
    type Ask = fn(&mut Policy);
    let asks: [Ask; 3] = [
        |policy| policy.process.allowed_executables = vec!["ls".to_owned()],
        |policy| policy.process.allow_fork = false,
        |policy| policy.process.allow_exec = false,
    ];
    for ask in asks {
        let mut bare = crate::fake::policy();
        bare.isolation_level = Level::None;
        ask(&mut bare);
        let refused = planned(&bare, "static").unwrap_err();
        assert!(matches!(refused, PlanError::NoIsolation { .. }), "{refused}");
    }
}

/// Whoever wrote the file there would choose which interpreter starts.
///
/// Proves: PROC-2 executables
#[test]
fn a_name_on_the_list_means_no_program_of_the_project_or_of_a_writable_directory() {
    let mut tree = tree();
    tree.file("/usr/bin/bash", "").file("/usr/bin/ar", "");
    tree.file("/home/u/project/bin/ar", "#!/usr/bin/bash\n");
    tree.link("/home/u/project/bin/python3", "/usr/bin/bash")
        .link("/home/u/project/usr", "/usr/bin");
    tree.file("/srv/data/bin/ar", "#!/usr/bin/bash\n");
    let mut policy = listing(&["ar", "pip"]);
    policy.filesystem.read_write_paths = vec!["/srv/data".to_owned()];
    for first in ["/home/u/project/bin", "bin", "/srv/data/bin", "/home/u/project/usr"] {
        let mut facts = user();
        facts.env.insert("PATH".into(), format!("{first}:/usr/bin").into());
        for project in [ProjectAccess::ReadWrite, ProjectAccess::ReadOnly] {
            policy.filesystem.project = project;
            // The command itself is found as a shell finds it.
            let plan = plan_of(&policy, &facts, &tree, "ar").unwrap();
            let notes = format!("{:?}", plan.explanation.notes);
            assert!(notes.contains("`ar` does not mean "), "{first}: {notes}");
            let landlock = plan.sandbox.landlock.unwrap();
            let executables = landlock.executables.listed().unwrap();
            assert_eq!(executables.listed, paths(&["/usr/bin/ar", "/usr/bin/pip"]), "{first}");
            let needed = paths(&["/usr/bin/env", "/usr/bin/python3.11", "/usr/lib/ld.so"]);
            assert_eq!(executables.needed, needed, "{first}");
        }
    }
    let mut facts = user();
    facts.env.insert("PATH".into(), "/home/u/project/bin".into());
    policy.process.allowed_executables = vec!["ar".to_owned()];
    let refused = plan_of(&policy, &facts, &tree, "ar").unwrap_err();
    assert_eq!(refused, PlanError::NotAllowed { path: "/home/u/project/bin/ar".into() });
    // A path means what is there.
    policy.process.allowed_executables = vec!["bin/ar".to_owned()];
    plan_of(&policy, &facts, &tree, "ar").unwrap();
}
