use crate::fake::{FakeTree, plan, policy, user};
use crate::model::Plan;
use palisade_policy::model::ProjectAccess;
use std::path::Path;

fn planned(tree: &FakeTree, dirs: &[&str]) -> Plan {
    let mut policy = policy();
    policy.filesystem.build_dirs = dirs.iter().map(ToString::to_string).collect();
    plan(&policy, &user(), tree).unwrap()
}

fn taken(plan: &Plan) -> Vec<&str> {
    let guard = plan.sandbox.guard.as_ref().unwrap();
    guard.build_dirs.iter().map(|path| path.to_str().unwrap()).collect()
}

fn notes(plan: &Plan) -> String {
    format!("{:?}", plan.explanation.notes)
}

/// Proves: FS-9 build-dirs
#[test]
fn a_directory_is_taken_if_the_policy_names_it_and_it_is_there() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/project/target").dir("/home/u/project/dist");
    assert_eq!(taken(&planned(&tree, &[])), [""; 0], "none by default");
    let plan = planned(&tree, &["target", "node_modules", "./target/"]);
    assert_eq!(taken(&plan), ["/home/u/project/target"]);
    let landlock = plan.sandbox.landlock.as_ref().unwrap();
    assert_eq!(landlock.build_dirs, [Path::new("/home/u/project/target")]);
    assert!(landlock.writable.iter().all(|path| !path.starts_with("/home/u/project")));
    let guard = plan.sandbox.guard.as_ref().unwrap();
    let matcher = guard.matcher();
    let is_free = |path: &str| {
        matcher.judge(Path::new("/home/u/project"), Path::new(path), &mut |_| true).is_none()
    };
    assert!(is_free("/home/u/project/target/.envrc") && !is_free("/home/u/project/dist/.envrc"));
    let page = plan.to_string();
    assert!(page.contains("not protected, written without the broker: /home/u/project/target"));
}

/// Proves: FS-9 build-dirs
#[test]
fn a_package_of_the_project_has_its_own() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/project/.git").dir("/home/u/project/node_modules");
    tree.dir("/home/u/project/app/node_modules");
    let mut policy = policy();
    policy.filesystem.build_dirs = vec!["node_modules".to_owned()];
    let mut facts = user();
    facts.cwd = "/home/u/project/app".into();
    let plan = plan(&policy, &facts, &tree).unwrap();
    let both = ["/home/u/project/node_modules", "/home/u/project/app/node_modules"];
    assert_eq!(taken(&plan), both);
}

/// Proves: FS-9 build-dirs
#[test]
fn what_the_host_runs_from_stays_with_the_broker_and_the_plan_says_why() {
    let refused = |prepare: &dyn Fn(&mut FakeTree), why: &str| {
        let mut tree = FakeTree::new();
        prepare(&mut tree);
        let plan = planned(&tree, &["out"]);
        assert_eq!(taken(&plan), [""; 0], "{why}");
        assert!(notes(&plan).contains(why), "{why}: {}", notes(&plan));
        assert!(plan.sandbox.landlock.unwrap().build_dirs.is_empty());
    };
    const OUT: &str = "/home/u/project/out";
    refused(&|tree| _ = tree.file(format!("{OUT}/pyvenv.cfg"), ""), "Python environment");
    refused(&|tree| _ = tree.dir(format!("{OUT}/.git")), "git repository");
    refused(&|tree| _ = tree.file(format!("{OUT}/HEAD"), ""), "git repository");
    refused(&|tree| _ = tree.file(OUT, ""), "not a directory");
    refused(&|tree| _ = tree.dir("/home/u/project/src").link(OUT, "src"), "behind a link");
    let hook = |tree: &mut FakeTree| {
        tree.file(format!("{OUT}/hook"), "");
        tree.dir("/home/u/project/.git/hooks");
        tree.link("/home/u/project/.git/hooks/pre-commit", "../../out/hook");
    };
    refused(&hook, "/home/u/project/out/hook is");
    let hooks_path = |tree: &mut FakeTree| {
        tree.dir(format!("{OUT}/hooks"));
        tree.file("/home/u/project/.git/config", "[core]\n\thooksPath = out/hooks\n");
    };
    refused(&hooks_path, "out");
}

/// Proves: FS-9 build-dirs
#[test]
fn a_protected_name_is_no_build_directory() {
    let mut tree = FakeTree::new();
    for name in [".vscode", ".git/hooks", ".config", "bin", "src"] {
        tree.dir(format!("/home/u/project/{name}"));
    }
    for name in [".vscode", ".git/hooks", ".git", ".config", "bin"] {
        let plan = planned(&tree, &[name]);
        assert_eq!(taken(&plan), [""; 0], "{name}");
        assert!(notes(&plan).contains("written through the broker"), "{name}");
    }
    let outside = planned(&tree, &["/usr", ".."]);
    assert_eq!(taken(&outside), [""; 0]);
    let mut read_only = policy();
    read_only.filesystem.project = ProjectAccess::ReadOnly;
    read_only.filesystem.build_dirs = vec!["src".to_owned()];
    let plan = plan(&read_only, &user(), &tree).unwrap();
    assert!(plan.sandbox.landlock.unwrap().build_dirs.is_empty());
}
