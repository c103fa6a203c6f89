use crate::PlanError;
use crate::facts::HostFacts;
use crate::fake::{FakeTree, access, op_at, plan, policy, root, shows, user};
use crate::model::{MountAccess, MountOp, Plan};
use palisade_policy::model::{Policy, ProjectAccess, View};
use std::path::Path;

fn run_in(cwd: &str, tree: &FakeTree) -> Result<Plan, PlanError> {
    plan(&policy(), &HostFacts { cwd: cwd.into(), ..user() }, tree)
}

#[test]
fn the_project_is_the_git_root_or_the_working_directory() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/plain/inner");
    let git = run_in("/home/u/project/src", &tree).unwrap();
    assert_eq!(access(&git, "/home/u/project"), Some(MountAccess::ReadWrite));
    assert_eq!(git.command.cwd, Path::new("/home/u/project/src"));
    let plain = run_in("/home/u/plain/inner", &tree).unwrap();
    assert_eq!(access(&plain, "/home/u/plain/inner"), Some(MountAccess::ReadWrite));
    assert!(!shows(&plain, "/home/u/plain"));
}

#[test]
fn home_root_and_system_directories_are_never_the_project() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/.git").dir("/etc/nginx").dir("/home/u/notes");
    for cwd in ["/home/u", "/home", "/", "/tmp", "/usr/lib", "/etc/nginx", "/var"] {
        let plan = run_in(cwd, &tree).unwrap_or_else(|error| panic!("{cwd}: {error}"));
        assert_ne!(access(&plan, cwd), Some(MountAccess::ReadWrite), "{cwd}");
        assert!(!shows(&plan, "/home/u/notes"), "{cwd}");
        let told = plan
            .explanation
            .notes
            .iter()
            .any(|note| note.text.contains("is not granted as the project"));
        assert!(told, "{cwd}: {:?}", plan.explanation.notes);
    }
}

/// Proves: FS-9 search-path
#[test]
fn a_directory_of_the_search_path_is_not_made_writable() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/.local/bin/.git").dir("/home/u/tools/inner").dir("/home/u/scripts");
    tree.link("/home/u/bin", "scripts").link("/home/u/on-path", "tools").dir("/home/u/.cargo/bin");
    let mut facts = user();
    facts.env.insert("PATH".into(), "/usr/bin:relative:/home/u/on-path".into());
    let run_in = |cwd: &str| {
        plan(&policy(), &HostFacts { cwd: cwd.into(), ..facts.clone() }, &tree).unwrap()
    };
    for cwd in ["/home/u/.local/bin", "/home/u/scripts", "/home/u/tools", "/home/u/.cargo/bin"] {
        let plan = run_in(cwd);
        assert_ne!(access(&plan, cwd), Some(MountAccess::ReadWrite), "{cwd}");
        assert!(shows(&plan, cwd), "{cwd}");
        let told = plan
            .explanation
            .notes
            .iter()
            .any(|note| note.text.contains("it is on the search path"));
        assert!(told, "{cwd}: {:?}", plan.explanation.notes);
    }
    assert_eq!(
        access(&run_in("/home/u/tools/inner"), "/home/u/tools/inner"),
        Some(MountAccess::ReadWrite)
    );
    let mut policy = policy();
    policy.filesystem.read_write_paths = vec!["~/scripts".to_owned()];
    let facts = HostFacts { cwd: "/home/u/scripts".into(), ..facts };
    let named = plan(&policy, &facts, &tree).unwrap();
    assert_eq!(access(&named, "/home/u/scripts"), Some(MountAccess::ReadWrite));
}

#[test]
fn a_git_root_inside_a_system_directory_is_a_project() {
    let mut tree = FakeTree::new();
    tree.dir("/opt/site/.git");
    let plan = run_in("/opt/site", &tree).unwrap();
    assert_eq!(access(&plan, "/opt/site"), Some(MountAccess::ReadWrite));
    assert_eq!(access(&plan, "/opt"), Some(MountAccess::ReadOnly));
}

#[test]
fn a_project_that_holds_a_secret_is_read_only_without_it() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/dotfiles/.git")
        .file("/home/u/dotfiles/ssh/id", "")
        .file("/home/u/dotfiles/vim", "");
    tree.link("/home/u/.ssh", "dotfiles/ssh");
    let plan = run_in("/home/u/dotfiles", &tree).unwrap();
    assert!(!shows(&plan, "/home/u/dotfiles/ssh/id"));
    assert_eq!(access(&plan, "/home/u/dotfiles/vim"), Some(MountAccess::ReadOnly));
    assert!(
        plan.explanation.notes.iter().any(|note| note.text.contains("is read-only")),
        "{:?}",
        plan.explanation.notes
    );
}

#[test]
fn the_working_directory_must_be_in_the_view() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/elsewhere").dir("/home/u/granted");
    let mut policy = policy();
    policy.process.cwd = Some("~/elsewhere".to_owned());
    let error = plan(&policy, &user(), &tree).unwrap_err();
    assert_eq!(error, PlanError::WorkingDirectory { path: "/home/u/elsewhere".into() });
    assert!(error.refused_by_policy());
    policy.process.cwd = Some("../granted".to_owned());
    policy.filesystem.read_only_paths = vec!["~/granted".to_owned()];
    let granted = plan(&policy, &user(), &tree).unwrap();
    assert_eq!(granted.command.cwd, Path::new("/home/u/granted"));
    let mut none = self::policy();
    none.filesystem.project = ProjectAccess::None;
    assert!(matches!(plan(&none, &user(), &tree), Err(PlanError::WorkingDirectory { .. })));
}

#[test]
fn policy_files_of_the_project_are_not_writable() {
    let mut tree = FakeTree::new();
    tree.file("/home/u/project/.palisade/policy.yaml", "");
    let plan = plan(&policy(), &user(), &tree).unwrap();
    assert!(matches!(op_at(&plan, "/home/u/project/.palisade"), Some(MountOp::Seal { .. })));
}

/// Proves: POL-1 minimal-view
#[test]
fn the_minimal_view_has_the_project_at_workspace() {
    let mut tree = FakeTree::new();
    tree.dir("/home/u/.cargo/bin");
    let minimal = Policy { view: View::Minimal, ..policy() };
    let facts = HostFacts { cwd: "/home/u/project/src".into(), ..user() };
    let plan = plan(&minimal, &facts, &tree).unwrap();
    let workspace = op_at(&plan, "/workspace");
    assert!(
        matches!(workspace, Some(MountOp::Bind { source, .. }) if source == Path::new("/home/u/project")),
        "{workspace:?}"
    );
    assert_eq!(plan.command.cwd, Path::new("/workspace/src"));
    assert!(!shows(&plan, "/home/u/.cargo/bin"));
    assert!(!shows(&plan, "/home/u/project"));
    assert!(plan.command.env.contains(&("HOME".into(), "/home/sandbox".into())));
    assert!(plan.command.env.contains(&("PWD".into(), "/workspace/src".into())));
}

fn worktree() -> FakeTree {
    let mut tree = FakeTree::new();
    let git = "/home/u/main/.git";
    for dir in ["objects/ab", "refs/heads", "logs/refs", "hooks", "worktrees/wt", "worktrees/other"]
    {
        tree.dir(format!("{git}/{dir}"));
    }
    for file in ["config", "packed-refs", "HEAD"] {
        tree.file(format!("{git}/{file}"), "");
    }
    tree.file(format!("{git}/worktrees/wt/gitdir"), "/home/u/wt/.git\n");
    tree.file(format!("{git}/worktrees/wt/commondir"), "../..\n");
    tree.file("/home/u/wt/.git", "gitdir: /home/u/main/.git/worktrees/wt\n")
        .dir("/home/u/main/src");
    tree
}

#[test]
fn a_worktree_can_commit_and_plant_no_hook() {
    let plan = run_in("/home/u/wt", &worktree()).unwrap();
    let git = "/home/u/main/.git";
    for (path, expected) in [
        ("worktrees/wt/index", Some(MountAccess::ReadWrite)),
        ("objects/ab", Some(MountAccess::ReadWrite)),
        ("refs/heads", Some(MountAccess::ReadWrite)),
        ("logs/refs", Some(MountAccess::ReadWrite)),
        ("hooks", Some(MountAccess::ReadOnly)),
        ("HEAD", Some(MountAccess::ReadOnly)),
        ("config", Some(MountAccess::ReadWrite)),
        ("packed-refs", Some(MountAccess::ReadWrite)),
        ("packed-refs.lock", Some(MountAccess::ReadWrite)),
        ("worktrees/other", Some(MountAccess::ReadOnly)),
    ] {
        assert_eq!(access(&plan, &format!("{git}/{path}")), expected, "{path}");
    }
    assert!(!shows(&plan, "/home/u/main/src"));
    for sealed in ["gitdir", "commondir"] {
        let op = op_at(&plan, &format!("{git}/worktrees/wt/{sealed}"));
        assert!(matches!(op, Some(MountOp::Seal { .. })), "{sealed}: {op:?}");
    }
    let limited = &plan.sandbox.guard.as_ref().unwrap().limited;
    let may = |path: &str| limited[0].covers(&Path::new(git).join(path));
    for path in ["config.lock", "packed-refs.new", "objects/ab/cd", "worktrees/wt/index.lock"] {
        assert!(may(path), "{path}");
    }
    for path in ["MERGE_HEAD", "index.lock", "info/attributes", "hooks/x", "worktrees/other/HEAD"] {
        assert!(!may(path), "{path}");
    }
    assert!(limited[0].covers(Path::new("/home/u/wt/x")));
}

/// Without the judge nothing but a seal keeps it.
#[test]
fn the_configuration_of_a_repository_elsewhere_is_sealed_where_names_are_not_protected() {
    let mut policy = policy();
    policy.filesystem.protect_names = false;
    let facts = HostFacts { cwd: "/home/u/wt".into(), ..user() };
    let plan = plan(&policy, &facts, &worktree()).unwrap();
    let op = op_at(&plan, "/home/u/main/.git/config");
    assert!(matches!(op, Some(MountOp::Seal { .. })), "{op:?}");
}

#[test]
fn a_git_file_that_nobody_points_back_to_grants_nothing() {
    let mut forged = worktree();
    forged.file("/home/u/wt/.git", "gitdir: /home/u/main/.git\n");
    let mut stolen = worktree();
    stolen.file("/home/u/evil/.git", "gitdir: /home/u/main/.git/worktrees/wt\n");
    let mut elsewhere = worktree();
    elsewhere
        .file("/home/u/wt/.git", "gitdir: /home/u/other/private\n")
        .dir("/home/u/other/private");
    elsewhere.file("/home/u/other/private/gitdir", "/home/u/wt/.git\n");
    elsewhere.file("/home/u/other/private/commondir", "..\n");
    for (tree, cwd) in [(forged, "/home/u/wt"), (stolen, "/home/u/evil"), (elsewhere, "/home/u/wt")]
    {
        let plan = run_in(cwd, &tree).unwrap();
        assert!(!shows(&plan, "/home/u/main/.git/objects"), "{cwd}");
        assert!(!shows(&plan, "/home/u/other/private"), "{cwd}");
        let told = plan
            .explanation
            .notes
            .iter()
            .any(|note| note.text.contains("its git directory is not granted"));
        assert!(told, "{:?}", plan.explanation.notes);
    }
}

#[test]
fn a_submodule_writes_its_directory_but_not_its_hooks() {
    let mut tree = FakeTree::new();
    let git = "/home/u/super/.git/modules/sub";
    tree.file(format!("{git}/config"), "[core]\n\tworktree = ../../../sub\n")
        .dir(format!("{git}/hooks"));
    tree.dir("/home/u/super/.git/hooks")
        .file("/home/u/super/sub/.git", "gitdir: ../.git/modules/sub\n");
    let plan = run_in("/home/u/super/sub", &tree).unwrap();
    assert_eq!(access(&plan, &format!("{git}/index")), Some(MountAccess::ReadWrite));
    let op = op_at(&plan, &format!("{git}/hooks"));
    assert!(matches!(op, Some(MountOp::Seal { .. })), "{op:?}");
    assert_eq!(access(&plan, &format!("{git}/config")), Some(MountAccess::ReadWrite));
    assert!(!shows(&plan, "/home/u/super/.git/hooks"));
}

/// Proves: FS-1 project-writable
#[test]
fn nobodys_home_directory_is_a_project() {
    let mut tree = FakeTree::new();
    tree.dir("/srv/homes/ann/.ssh").dir("/home/bob/.ssh").dir("/home/bob/work");
    let mut facts = root();
    facts.homes = vec!["/srv/homes/ann".into()];
    for cwd in ["/srv/homes/ann", "/srv/homes", "/home/bob"] {
        facts.cwd = cwd.into();
        assert!(plan(&policy(), &facts, &tree).is_err(), "{cwd} is not in the view");
    }
    facts.cwd = "/home/bob/work".into();
    let plan = plan(&policy(), &facts, &tree).unwrap();
    assert_eq!(access(&plan, "/home/bob/work"), Some(MountAccess::ReadWrite));
}

fn project_of(cwd: &str, tree: &FakeTree) -> (String, String) {
    let found = run_in(cwd, tree).unwrap().explanation.project;
    (found.root.display().to_string(), found.found_by.to_string())
}

/// Proves: FS-1 project-markers
#[test]
fn without_git_the_nearest_marker_makes_the_project() {
    let mut tree = FakeTree::new();
    tree.file("/home/u/app/package.json", "").dir("/home/u/app/src/lib");
    tree.file("/home/u/app/tool/Cargo.toml", "").dir("/home/u/app/tool/src");
    let by = |name: &str| format!("found by {name}");
    let found = project_of("/home/u/app/src/lib", &tree);
    assert_eq!(found, ("/home/u/app".to_owned(), by("package.json")));
    let plan = run_in("/home/u/app/src/lib", &tree).unwrap();
    assert_eq!(access(&plan, "/home/u/app"), Some(MountAccess::ReadWrite));
    assert_eq!(plan.command.cwd, Path::new("/home/u/app/src/lib"));
    let nearest = project_of("/home/u/app/tool/src", &tree);
    assert_eq!(nearest, ("/home/u/app/tool".to_owned(), by("Cargo.toml")));
    tree.dir("/home/u/app/.git");
    let git = project_of("/home/u/app/tool/src", &tree);
    assert_eq!(git, ("/home/u/app".to_owned(), "git root".to_owned()));
}

/// Proves: FS-1 project-markers
#[test]
fn a_marker_never_makes_a_home_or_a_system_directory_the_project() {
    let mut tree = FakeTree::new();
    for dir in ["/home/u", "/home", "/", "/tmp", "/var", "/opt", "/srv/homes/ann", "/srv/homes"] {
        tree.file(Path::new(dir).join("package.json"), "");
    }
    let mut facts = user();
    facts.homes = vec!["/srv/homes/ann".into()];
    for cwd in ["/home/u/a/b", "/tmp/a/b", "/var/a/b", "/srv/homes/ann/x"] {
        tree.dir(cwd);
        facts.cwd = cwd.into();
        let plan = plan(&policy(), &facts, &tree).unwrap();
        assert_eq!(plan.explanation.project.root, Path::new(cwd));
        assert_eq!(access(&plan, cwd), Some(MountAccess::ReadWrite), "{cwd}");
    }
}

#[test]
fn a_marker_is_found_among_few_names_and_among_many() {
    for many in [2, 200] {
        let mut tree = FakeTree::new();
        // Deeper than what is listed of a home directory.
        let root = "/home/u/a/b/c/d/app";
        tree.file(format!("{root}/go.mod"), "").dir(format!("{root}/src"));
        for number in 0..many {
            tree.file(format!("{root}/file{number}"), "");
        }
        assert_eq!(project_of(&format!("{root}/src"), &tree).0, root, "{many}");
    }
}

/// Proves: FS-1 project-markers
#[test]
fn a_marker_of_somebody_else_widens_nothing() {
    let mut tree = FakeTree::new();
    tree.file("/srv/shared/package.json", "").dir("/srv/shared/mine/src");
    tree.own("/srv/shared/mine", 1000, 1000);
    assert_eq!(project_of("/srv/shared/mine/src", &tree).0, "/srv/shared/mine/src");
    tree.own("/srv/shared", 1000, 1000);
    assert_eq!(project_of("/srv/shared/mine/src", &tree).0, "/srv/shared");
}
