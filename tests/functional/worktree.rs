//! Git where `.git` is a file that points elsewhere: it works if it is genuine, and grants nothing
//! if it is not (FS-1).

use std::fs;

use palisade_testkit::World;

use crate::inside::inside;

const COMMIT: &str = "echo new > made && git add made && git commit --quiet -m inside && \
                      git log --format=%s";

fn git(world: &World, directory: &str, arguments: &[&str]) {
    let directory = world.path().join(directory);
    let identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"];
    let allowed = ["-c", "protocol.file.allow=always"];
    let all = identity.into_iter().chain(allowed).chain(arguments.iter().copied());
    world.bare("git").args(all).cwd(directory).run().assert_code(0);
}

/// A repository with one commit at `home/project`, and a worktree of it at `home/tree`.
fn world_with_worktree() -> World {
    let world = World::new();
    world.git_init();
    world.write_in_project("first", "");
    git(&world, "home/project", &["add", "first"]);
    git(&world, "home/project", &["commit", "--quiet", "-m", "outside"]);
    git(&world, "home/project", &["worktree", "add", "--quiet", "../tree"]);
    world
}

/// Proves: FS-1 worktree
#[test]
fn a_worktree_can_commit() {
    let world = world_with_worktree();
    let tree = world.home().join("tree");
    let output = world.sandbox_run([""; 0], ["sh", "-c", COMMIT]).cwd(&tree).run();
    output.assert_code(0);
    assert_eq!(output.out(), "inside\noutside\n");
    let log = world.bare("git").args(["log", "--format=%s", "tree"]).run();
    assert_eq!(log.out(), "inside\noutside\n");
    world.bare("git").args(["fsck", "--strict"]).run().assert_code(0);
}

/// Proves: FS-1 worktree
#[test]
fn a_worktree_can_plant_nothing_in_the_repository() {
    let world = world_with_worktree();
    let hook = "cd ../project/.git && touch new; \
                for f in hooks/pre-commit config info/attributes HEAD \
                worktrees/tree/commondir worktrees/tree/gitdir MERGE_HEAD index.lock; do \
                (echo planted > $f) 2>/dev/null && [ $f != config ] && echo wrote $f; done; \
                git config core.fsmonitor evil 2>/dev/null && echo configured; \
                cat ../first 2>/dev/null; ls -A ..";
    let tree = world.home().join("tree");
    let output = world.sandbox_run([""; 0], ["sh", "-c", hook]).cwd(&tree).run();
    assert_eq!(output.out(), ".git\n", "{}", output.err());
    assert!(!world.project().join(".git/hooks/pre-commit").exists());
    assert!(!world.project().join(".git/new").exists());
    let config = fs::read_to_string(world.project().join(".git/config")).unwrap();
    assert!(!config.contains("planted") && !config.contains("evil"), "{config}");
}

/// Proves: FS-1 worktree
#[test]
fn what_git_packs_in_a_worktree_is_there_on_the_host() {
    for mode in [&[][..], &["--static"]] {
        let world = world_with_worktree();
        git(&world, "home/project", &["branch", "kept"]);
        git(&world, "home/project", &["branch", "packed"]);
        let tree = world.home().join("tree");
        let script = "git branch new; git pack-refs --all; git branch -D packed; git gc --quiet; git fsck --strict";
        let output = world.sandbox_run(mode, ["sh", "-euc", script]).cwd(&tree).run();
        output.assert_code(0);
        let branches = world.bare("git").args(["branch", "--format=%(refname:short)"]).run();
        assert_eq!(branches.out(), "kept\nmain\nnew\ntree\n");
        world.bare("git").args(["fsck", "--strict"]).run().assert_code(0);
    }
}

/// Proves: FS-1 worktree, FS-9 git-works
#[test]
fn a_worktree_can_have_its_submodules() {
    for mode in [&[][..], &["--static"]] {
        let world = World::new();
        world.git_init();
        fs::create_dir_all(world.home().join("library")).unwrap();
        git(&world, "home/library", &["init", "--quiet", "--initial-branch=main"]);
        git(&world, "home/library", &["commit", "--quiet", "--allow-empty", "-m", "library"]);
        git(&world, "home/project", &["submodule", "--quiet", "add", "../library", "sub"]);
        git(&world, "home/project", &["commit", "--quiet", "-m", "outside"]);
        git(&world, "home/project", &["submodule", "--quiet", "deinit", "--force", "--all"]);
        git(&world, "home/project", &["worktree", "add", "--quiet", "../tree"]);
        let script = "git -c protocol.file.allow=always submodule --quiet update --init; cd sub
            git -c user.name=T -c user.email=t@example.org commit --quiet --allow-empty -m inside; git log --format=%s";
        let flags = [mode, &["--ro", "~/library"]].concat();
        let run = world.sandbox_run(&flags, ["sh", "-euc", script]).cwd(world.home().join("tree"));
        let output = run.run();
        output.assert_code(0);
        assert_eq!(output.out(), "inside\nlibrary\n");
        let sub = world.home().join("tree/sub");
        let log = world.bare("git").args(["log", "--format=%s"]).cwd(&sub).run();
        assert_eq!(log.out(), "inside\nlibrary\n");
        // Where its files are is all that it may say.
        let lead = "cd sub; git config core.worktree ../../../../../../other 2>&1 || true";
        let run = world.sandbox_run(&flags, ["sh", "-euc", lead]).cwd(world.home().join("tree"));
        assert!(run.run().err().contains("core.worktree"));
        let log = world.bare("git").args(["status", "--short"]).cwd(&sub).run();
        log.assert_code(0);
    }
}

/// Proves: FS-1 worktree
#[test]
fn a_pointer_that_is_not_answered_grants_nothing() {
    let world = World::new();
    world.write("home/.ssh/id", "top secret\n");
    world.write("home/private/HEAD", "ref: refs/heads/main\n");
    for target in [".ssh", "private"] {
        let place = world.home().join(target);
        world.write_in_project(".git", format!("gitdir: {}\n", place.display()));
        let output = inside(&world, &[], &format!("ls -A ~; cat ~/{target}/*"));
        assert_eq!(output.out(), "project\n", "{}", output.err());
        assert!(output.err().contains("does not point back"), "{}", output.err());
    }
    // Nor does a back pointer that the project could not have been given.
    world.write("home/private/gitdir", "/elsewhere/.git\n");
    world.write("home/private/commondir", "..\n");
    assert_eq!(inside(&world, &[], "ls -A ~").out(), "project\n");
}

/// Proves: FS-1 worktree
#[test]
fn a_submodule_can_commit_and_plant_nothing() {
    let world = World::new();
    world.git_init();
    fs::create_dir_all(world.home().join("library")).unwrap();
    git(&world, "home/library", &["init", "--quiet", "--initial-branch=main"]);
    git(&world, "home/library", &["commit", "--quiet", "--allow-empty", "-m", "outside"]);
    let add = ["submodule", "--quiet", "add", "../library", "sub"];
    git(&world, "home/project", &[&["-c", "core.hooksPath=/dev/null"][..], &add].concat());
    let sub = world.project().join("sub");
    for (key, value) in [("user.name", "Test"), ("user.email", "test@example.org")] {
        world.bare("git").args(["config", key, value]).cwd(&sub).run().assert_code(0);
    }
    let output = world.sandbox_run([""; 0], ["sh", "-c", COMMIT]).cwd(&sub).run();
    output.assert_code(0);
    assert_eq!(output.out(), "inside\noutside\n");
    let hook = "cd ../.git/modules/sub && (echo planted >> hooks/pre-commit) 2>/dev/null && echo wrote; \
                echo planted >> config; git config i18n.commitEncoding latin1; true";
    let output = world.sandbox_run([""; 0], ["sh", "-c", hook]).cwd(&sub).run();
    output.assert_code(0);
    assert_eq!(output.out(), "");
    let config = fs::read_to_string(world.project().join(".git/modules/sub/config")).unwrap();
    assert!(!config.contains("planted") && config.contains("latin1"), "{config}");
}
