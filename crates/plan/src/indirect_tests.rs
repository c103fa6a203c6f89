use crate::fake::{FakeTree, plan, policy, user};
use crate::model::Guard;
use std::path::Path;

const PROJECT: &str = "/home/u/project";

fn guard_of(tree: &FakeTree) -> Guard {
    plan(&policy(), &user(), tree).unwrap().sandbox.guard.unwrap()
}

/// Whether something in the project would be refused in this plan, and was not without what leads there.
fn refuses(guard: &Guard, path: &str) -> bool {
    let path = Path::new(PROJECT).join(path);
    guard.matcher().judge(Path::new(PROJECT), &path, &mut |_| false).is_some()
}

/// Proves: FS-9 more-paths
#[test]
fn what_a_link_in_the_hooks_leads_to_is_guarded() {
    let mut tree = FakeTree::new();
    tree.link(format!("{PROJECT}/.git/hooks/pre-commit"), "../../scripts/check");
    tree.file(format!("{PROJECT}/.git/hooks/commit-msg"), "");
    tree.link(format!("{PROJECT}/scripts/check"), "real/check.sh");
    tree.file(format!("{PROJECT}/scripts/real/check.sh"), "");
    let guard = guard_of(&tree);
    assert!(refuses(&guard, "scripts/real/check.sh"), "{:?}", guard.more);
    assert!(refuses(&guard, "scripts/check"), "a link on the way could lead elsewhere");
    assert!(!refuses(&guard, "scripts/other") && !refuses(&guard, ".git/config"));

    let mut tree = FakeTree::new();
    tree.link(format!("{PROJECT}/.git/hooks"), "../tools/hooks");
    let guard = guard_of(&tree);
    assert!(refuses(&guard, "tools/hooks/pre-commit"), "also before it is there");
}

/// Proves: FS-9 more-paths
#[test]
fn files_that_settings_of_git_include_are_guarded() {
    let mut tree = FakeTree::new();
    let config =
        "[include]\n\tpath = ../shared/one\n[includeIf \"gitdir:~/x\"]\n\tpath = ~/project/two\n";
    tree.file(format!("{PROJECT}/.git/config"), config);
    tree.file(
        format!("{PROJECT}/shared/one"),
        "[include]\n\tpath = three\n[core]\n\thooksPath = deep/hooks\n",
    );
    tree.file("/home/u/.gitconfig", "[include]\n\tpath = ~/project/four\n\tpath = ~/five\n");
    let guard = guard_of(&tree);
    for path in ["shared/one", "two", "shared/three", "four", "deep/hooks/pre-push"] {
        assert!(refuses(&guard, path), "{path}: {:?}", guard.more);
    }
    assert!(!refuses(&guard, "shared/other") && !refuses(&guard, ".git/config"));
    assert_eq!(guard.more.len(), 5, "what is not writable needs no guard: {:?}", guard.more);
}

/// Proves: FS-9 more-paths
#[test]
fn a_long_beginning_hides_no_setting() {
    let mut tree = FakeTree::new();
    let long = "[user]\n\tname = somebody\n".repeat(1000);
    tree.file(format!("{PROJECT}/.git/config"), &format!("{long}[core]\n\thooksPath = h\n"));
    assert!(refuses(&guard_of(&tree), "h/pre-commit"));
}

/// Proves: FS-9 more-paths
#[test]
fn settings_that_include_each_other_come_to_an_end() {
    let mut tree = FakeTree::new();
    tree.file(format!("{PROJECT}/.git/config"), "[include]\n\tpath = ../a\n");
    tree.file(format!("{PROJECT}/a"), "[include]\n\tpath = b\n\tpath = ./a\n");
    tree.file(format!("{PROJECT}/b"), "[include]\n\tpath = a\n");
    let guard = guard_of(&tree);
    assert!(refuses(&guard, "a") && refuses(&guard, "b"));
}

/// Proves: FS-9 more-paths
#[test]
fn the_file_behind_a_linked_configuration_is_guarded_and_a_moved_git_directory_is_not() {
    let mut tree = FakeTree::new();
    tree.link(format!("{PROJECT}/.git/config"), "../config.shared");
    tree.file(format!("{PROJECT}/config.shared"), "[core]\n\thooksPath = h\n");
    let guard = guard_of(&tree);
    assert!(refuses(&guard, "config.shared"), "{:?}", guard.more);

    let mut tree = FakeTree::new();
    tree.file(format!("{PROJECT}/store/config"), "");
    tree.link(format!("{PROJECT}/.git"), "store");
    assert!(!refuses(&guard_of(&tree), "store/config"), "judged key by key, by its structure");
}

/// Proves: FS-9 more-paths
#[test]
fn what_a_link_under_a_listed_name_leads_to_is_guarded() {
    let mut tree = FakeTree::new();
    tree.link(format!("{PROJECT}/.vscode"), "tools/editor");
    tree.dir(format!("{PROJECT}/tools/editor"));
    tree.link(format!("{PROJECT}/.envrc"), "tools/env.sh");
    tree.link(format!("{PROJECT}/.claude/settings.json"), "../tools/agent.json");
    tree.link(format!("{PROJECT}/.cargo/config.toml"), "../tools/cargo.toml");
    tree.link(format!("{PROJECT}/.yarn"), "tools/yarn");
    tree.link(format!("{PROJECT}/docs"), "tools/docs");
    let guard = guard_of(&tree);
    for path in [
        "tools/editor/settings.json",
        "tools/env.sh",
        "tools/agent.json",
        "tools/cargo.toml",
        "tools/yarn/releases/yarn.cjs",
    ] {
        assert!(refuses(&guard, path), "{path}: {:?}", guard.more);
    }
    for path in ["tools/docs/x", "tools/yarn/cache/x", "tools/other"] {
        assert!(!refuses(&guard, path), "{path}");
    }
}

/// Proves: FS-9 more-paths, FS-9 home-names
#[test]
fn what_a_home_directory_takes_from_the_project_is_guarded() {
    let mut tree = FakeTree::new();
    tree.link("/home/u/.bashrc", "project/bash/rc").file(format!("{PROJECT}/bash/rc"), "");
    tree.link("/home/u/.config/fish", "../project/fish").dir(format!("{PROJECT}/fish"));
    tree.link("/home/u/notes", "project/notes");
    let guard = guard_of(&tree);
    assert!(refuses(&guard, "bash/rc") && refuses(&guard, "fish/config.fish"), "{:?}", guard.more);
    assert!(!refuses(&guard, "notes") && !refuses(&guard, "bash/other"));
}

/// Proves: FS-9 linked-settings
#[test]
fn links_in_settings_of_the_home_directory_are_followed_into_the_project() {
    let mut tree = FakeTree::new();
    tree.link("/home/u/.ssh/config", "../project/ssh/config");
    tree.link("/home/u/.config/fish/config.fish", "../../project/fish/config.fish");
    tree.link("/home/u/.config/fish/functions/f.fish", "/home/u/project/fish/f.fish");
    tree.link("/home/u/.local/bin/tool", "../../project/bin/tool");
    tree.link("/home/u/bin", "project/scripts").dir(format!("{PROJECT}/scripts"));
    tree.link(
        "/home/u/.config/systemd/user/default.target.wants/a.service",
        "../../../../project/a.service",
    );
    tree.link("/home/u/.vimrc", "dotvim").link("/home/u/dotvim", "project/vimrc");
    tree.link("/home/u/.emacs.d/init.el", "../project/init.el");
    tree.link("/home/u/.config/nvim", "../project/nvim")
        .link(format!("{PROJECT}/nvim/init.lua"), "../lua/init.lua");
    tree.link("/home/u/.cargo/bin/rustc", "../../.rustup/rustc");
    tree.link("/home/u/notes/link", "../project/notes");
    let guard = guard_of(&tree);
    for path in [
        "ssh/config",
        "fish/config.fish",
        "fish/f.fish",
        "bin/tool",
        "scripts/ls",
        "a.service",
        "vimrc",
        "init.el",
        "nvim/init.lua",
        "lua/init.lua",
    ] {
        assert!(refuses(&guard, path), "{path}: {:?}", guard.more);
    }
    for path in ["ssh/other", "fish/other.fish", "bin/other", "notes", "lua/other.lua"] {
        assert!(!refuses(&guard, path), "{path}");
    }
}

/// Proves: FS-9 linked-settings
#[test]
fn a_home_directory_of_any_size_is_gone_through_in_bounded_time() {
    let mut tree = FakeTree::new();
    for dir in 0..200 {
        for name in 0..5 {
            tree.file(format!("/home/u/.config/nvim/lua{dir}/deep{name}/file"), "");
        }
    }
    tree.link("/home/u/.ssh/config", "../project/ssh/config");
    let guard = guard_of(&tree);
    assert!(refuses(&guard, "ssh/config"), "one large directory hides no other: {:?}", guard.more);
}

/// Proves: FS-9 more-paths
#[test]
fn relative_places_of_hooks_are_remembered_and_others_are_not() {
    let mut tree = FakeTree::new();
    tree.file(
        format!("{PROJECT}/.git/config"),
        "[core]\n\thooksPath = ./tools/hooks\n\thooksPath = ../x\n",
    );
    tree.file("/home/u/.gitconfig", "[core]\n\thooksPath = ~/hooks\n\thooksPath = /srv/hooks\n");
    assert_eq!(guard_of(&tree).hooks, [Path::new("tools/hooks")]);
}
