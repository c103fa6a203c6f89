use super::{GuardPlaces, followed_paths};
use crate::fake::FakeTree;
use std::path::{Path, PathBuf};

const PROJECT: &str = "/home/u/project";

fn followed(tree: &FakeTree) -> Vec<PathBuf> {
    let project = Path::new(PROJECT);
    let home = Some(Path::new("/home/u"));
    followed_paths(&GuardPlaces { project, cwd: project, home, virtualenv: None }, tree)
}

fn project() -> FakeTree {
    let mut tree = FakeTree::new();
    tree.file(format!("{PROJECT}/.git/config"), "[user]\n\tname = u\n");
    tree.file(format!("{PROJECT}/.git/hooks/pre-commit.sample"), "");
    tree.file(format!("{PROJECT}/ci/pre-commit"), "");
    tree
}

/// Proves: FS-9 more-paths
#[test]
fn what_the_guard_would_take_in_now_is_found_and_work_in_the_project_is_not() {
    let before = followed(&project());
    let mut tree = project();
    tree.file(format!("{PROJECT}/src/new.rs"), "fn main() {}\n");
    tree.file(format!("{PROJECT}/.git/hooks/pre-push.sample"), "");
    assert_eq!(followed(&tree), before);

    let changed = |change: &dyn Fn(&mut FakeTree)| {
        let mut tree = project();
        change(&mut tree);
        followed(&tree)
    };
    let hooks = "[core]\n\thooksPath = ~/project/h\n";
    let include = "[include]\n\tpath = ../more\n";
    let in_project = |name: &str| format!("{PROJECT}/{name}");
    let link = |name: &str, to: &str| changed(&|tree| _ = tree.link(in_project(name), to));
    let file = |name: &str, text: &str| changed(&|tree| _ = tree.file(in_project(name), text));
    let changes = [
        link(".git/hooks/pre-commit", "../../ci/pre-commit"),
        link(".vscode", "tools/editor"),
        changed(&|tree| _ = tree.link("/home/u/.local/bin/check", "/home/u/project/ci/check")),
        file(".git/config", include),
        file(".git/config.worktree", include),
        file(".envrc", "source ci/env\n"),
        file("venv/pyvenv.cfg", ""),
        changed(&|tree| _ = tree.file("/home/u/.gitconfig", hooks)),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert_ne!(change, before, "change {number}");
    }
}

/// Proves: FS-9 more-paths
#[test]
fn an_included_file_that_includes_more_counts() {
    let with = |more: &str| {
        let mut tree = project();
        tree.file(format!("{PROJECT}/.git/config"), "[include]\n\tpath = /etc/team\n");
        tree.file("/etc/team", more);
        followed(&tree)
    };
    assert_ne!(with("[core]\n\thooksPath = h\n"), with(""));
}

/// Proves: FS-9 more-paths
#[test]
fn the_git_directory_of_a_worktree_counts() {
    let with = |link: bool| {
        let mut tree = FakeTree::new();
        tree.file(format!("{PROJECT}/.git"), "gitdir: /home/u/main/.git/worktrees/w\n");
        tree.file("/home/u/main/.git/worktrees/w/gitdir", &format!("{PROJECT}/.git\n"));
        tree.file("/home/u/main/.git/worktrees/w/commondir", "../..\n");
        tree.file("/home/u/main/.git/config", "");
        tree.file(format!("{PROJECT}/ci/pre-commit"), "");
        if link {
            let target = format!("{PROJECT}/ci/pre-commit");
            tree.link("/home/u/main/.git/hooks/pre-commit", &target);
        }
        followed(&tree)
    };
    let without = with(false);
    assert!(without.contains(&PathBuf::from("/home/u/main/.git/config")), "{without:?}");
    assert_ne!(with(true), without);
}
