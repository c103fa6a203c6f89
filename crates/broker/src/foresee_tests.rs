//! What `sandbox why --write` is told is what the broker would answer.

use super::{WriteVerdict, foresee_write};
use palisade_plan::model::{Guard, PartlyWritable};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn guard(tree: &Path) -> Guard {
    Guard {
        trees: vec![tree.to_owned()],
        surroundings: Vec::new(),
        islands: vec![tree.join("island")],
        homes: Vec::new(),
        stores: Vec::new(),
        opened: vec![tree.join("opened")],
        build_dirs: Vec::new(),
        more: Vec::new(),
        limited: vec![PartlyWritable {
            directory: tree.join("limited"),
            parts: vec!["objects".into()],
        }],
        hooks: Vec::new(),
    }
}

/// A project with a repository, and a bare one beside it.
fn project() -> TempDir {
    let project = TempDir::new().unwrap();
    for dir in
        [".git/objects", ".git/refs", ".git/hooks", "bare/objects", "bare/refs", "src", "opened"]
    {
        fs::create_dir_all(project.path().join(dir)).unwrap();
    }
    project
}

fn verdict(project: &TempDir, name: &str) -> WriteVerdict {
    let tree = project.path();
    foresee_write(&guard(tree), &tree.join(name), &tree.join(name))
}

#[track_caller]
fn assert_refused(project: &TempDir, name: &str, rule: &str) {
    match verdict(project, name) {
        WriteVerdict::Refused { rule: by, .. } => assert_eq!(by, rule, "{name}"),
        other => panic!("{name}: {other:?}"),
    }
}

/// Proves: FS-9 git-hooks, GATE-4 why
#[test]
fn names_and_structure_of_git_are_refused_whether_the_directory_is_there_or_not() {
    let project = project();
    assert_refused(&project, ".envrc", ".envrc");
    assert_refused(&project, "new/dir/.envrc", ".envrc");
    assert_refused(&project, ".git/hooks/pre-commit", "git hooks");
    assert_refused(&project, "bare/hooks/pre-commit", "git hooks");
    assert_refused(&project, ".git/lazygit.yml", "lazygit.yml");
    assert_refused(&project, "limited/config", "git directory");
    assert_eq!(verdict(&project, ".git/config"), WriteVerdict::ByContent);
    for free in [
        "src/main.rs",
        "new/file",
        "new/hooks/pre-commit",
        ".git/hooks/pre-commit.sample",
        ".git/objects/ab",
        "opened/.envrc",
        "island/.envrc",
        "limited/objects/x",
        "src",
    ] {
        assert_eq!(verdict(&project, free), WriteVerdict::Allowed, "{free}");
    }
}

/// Proves: GATE-4 why
#[test]
fn a_name_of_the_top_is_free_in_a_directory_that_the_command_would_make() {
    let project = project();
    assert_refused(&project, ".tool-versions", ".tool-versions");
    assert_refused(&project, "src/.tool-versions", ".tool-versions");
    assert_eq!(verdict(&project, "new/.tool-versions"), WriteVerdict::Allowed);
}

/// Proves: GATE-4 why
#[test]
fn a_tree_that_is_mounted_elsewhere_is_judged_by_what_the_host_has() {
    let project = project();
    let inside = Path::new("/nowhere/at/all");
    let judge =
        |name: &str| foresee_write(&guard(inside), &inside.join(name), &project.path().join(name));
    assert!(matches!(judge(".git/hooks/pre-push"), WriteVerdict::Refused { .. }));
    assert!(matches!(judge("bare/hooks/pre-push"), WriteVerdict::Refused { .. }));
    assert!(matches!(judge("src/.tool-versions"), WriteVerdict::Refused { .. }));
    assert_eq!(judge("src/main.rs"), WriteVerdict::Allowed);
}
