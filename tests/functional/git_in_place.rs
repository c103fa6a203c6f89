//! Repositories that are made by other programs than git: libgit2, `cp`, `tar`, a script. They write `.git/config` in place;
//! it is judged when it is closed (FS-9).

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use palisade_testkit::{Output, World, rust_toolchain};

const TIMEOUT: Duration = Duration::from_secs(180);
const MODES: [&[&str]; 2] = [&[], &["--static"]];

fn run(world: &World, flags: &[&str], script: &str) -> Output {
    world.sandbox_run(flags, ["bash", "-euc", script]).deadline(TIMEOUT).run()
}

/// The script ends well, and nothing was refused to it.
#[track_caller]
fn works(world: &World, flags: &[&str], script: &str) -> String {
    let output = run(world, flags, script);
    output.assert_code(0);
    let report = output.report.as_ref().unwrap();
    assert!(report.get("protectedWrites").is_none(), "{}", report["protectedWrites"]);
    output.out().into_owned()
}

/// A project that holds a repository with a commit, a configuration of its own, and git's sample hooks.
fn project() -> World {
    let world = World::new();
    let script = "mkdir repo; cd repo; git init --quiet --initial-branch=main
        git config user.name Test; git config user.email test@example.org
        mkdir -p .git/hooks; echo '#!/bin/sh' > .git/hooks/pre-commit.sample
        echo a > a; git add a; git commit --quiet -m one
        touch -d 2001-02-03 .git/config; chmod 640 .git/config";
    world.bare("bash").args(["-euc", script]).run().assert_code(0);
    world
}

#[track_caller]
fn git(world: &World, arguments: &[&str]) -> String {
    let output = world.bare("git").args(arguments).run();
    output.assert_code(0);
    output.out().trim_end().to_owned()
}

/// Proves: FS-9 git-in-place, FS-9 programs
#[test]
fn cargo_makes_a_package_with_a_repository() {
    let toolchain = rust_toolchain();
    for mode in MODES {
        let world = World::new();
        let script = format!(
            "export PATH={}/bin:$PATH CARGO_HOME=$PWD/.cargo-home
             cargo new --quiet --offline --vcs git made; git -C made status --short",
            toolchain.display()
        );
        let flags = [mode, &["--ro", toolchain.to_str().unwrap()]].concat();
        assert!(works(&world, &flags, &script).contains("Cargo.toml"));
        assert_eq!(git(&world, &["-C", "made", "config", "core.bare"]), "false");
    }
}

/// Proves: FS-9 git-in-place, FS-9 programs
#[test]
fn libgit2_starts_and_clones_repositories() {
    for mode in MODES {
        let world = project();
        let script = "/usr/bin/python3 -c '\n\
            import pygit2\n\
            made = pygit2.init_repository(\"made\")\n\
            made.config[\"user.name\"] = \"Somebody\"\n\
            pygit2.init_repository(\"bare.git\", bare=True)\n\
            pygit2.clone_repository(\"repo\", \"cloned\")'\n\
            git -C cloned log --format=%s; git -C made config user.name";
        assert_eq!(works(&world, mode, script), "one\nSomebody\n");
        assert_eq!(git(&world, &["-C", "bare.git", "config", "core.bare"]), "true");
        let url = git(&world, &["-C", "cloned", "config", "remote.origin.url"]);
        assert!(url.ends_with("/repo"), "{url}");
    }
}

/// Proves: FS-9 git-in-place, FS-9 programs
#[test]
fn a_repository_is_copied_and_worked_in() {
    let commit = "commit --quiet --allow-empty -m two";
    for (way, keeps_times) in [
        ("cp -r repo copy", false),
        ("cp -a repo copy", true),
        ("cp -al repo copy", true),
        ("tar cf repo.tar repo; mkdir x; tar -C x -xf repo.tar; mv x/repo copy", true),
        ("/usr/bin/python3 -c 'import shutil; shutil.copytree(\"repo\", \"copy\")'", true),
        (
            "cp -r repo/.git bare.git; git clone --quiet bare.git copy
          cp repo/.git/config copy/.git/config",
            false,
        ),
    ] {
        for mode in MODES {
            let world = project();
            let script = format!("{way}; git -C copy status --short; git -C copy {commit}");
            assert_eq!(works(&world, mode, &script), "", "{way}");
            assert_eq!(git(&world, &["-C", "copy", "log", "--format=%s"]), "two\none", "{way}");
            assert_eq!(git(&world, &["-C", "copy", "config", "user.name"]), "Test", "{way}");
            let found = fs::metadata(world.project().join("copy/.git/config")).unwrap();
            if keeps_times {
                let original = fs::metadata(world.project().join("repo/.git/config")).unwrap();
                assert_eq!(found.mtime(), original.mtime(), "{way}");
                assert_eq!(found.mode(), original.mode(), "{way}");
            }
        }
    }
}

/// Proves: FS-9 git-in-place, FS-9 told
#[test]
fn of_a_repository_with_hooks_all_but_the_hooks_is_copied() {
    for way in ["cp -r repo copy", "mkdir copy; tar -C repo -c . | tar -C copy -x"] {
        let world = project();
        world.write_in_project("repo/.git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
        let output = run(&world, &[], &format!("set +e; set -o pipefail; {way}"));
        assert_ne!(output.code(), 0);
        assert!(
            output.err().contains("copy/.git/hooks/pre-commit (git runs its hooks"),
            "{}",
            output.err()
        );
        assert!(!world.project().join("copy/.git/hooks/pre-commit").exists());
        assert_eq!(git(&world, &["-C", "copy", "log", "--format=%s"]), "one");
        assert_eq!(git(&world, &["-C", "copy", "config", "user.name"]), "Test");
    }
}

/// Proves: FS-9 git-in-place
#[test]
fn settings_are_written_in_place() {
    for mode in MODES {
        let world = project();
        let told = works(
            &world,
            mode,
            "cd repo; printf '[i18n]\\n\\tcommitEncoding = latin1\\n' >> .git/config; git config i18n.commitEncoding
             /usr/bin/python3 -c '
with open(\".git/config\", \"r+\") as config:
    text = config.read().replace(\"latin1\", \"utf-8\")
    config.seek(0); config.truncate(); config.write(text)'
             git config i18n.commitEncoding
             chmod 600 .git/config; touch -d 2002-03-04 .git/config; truncate -s +1 .git/config.txt
             /usr/bin/python3 -c 'import os; os.truncate(\".git/config\", os.stat(\".git/config\").st_size)'
             git config user.name",
        );
        assert_eq!(told, "latin1\nutf-8\nTest\n");
        let found = fs::metadata(world.project().join("repo/.git/config")).unwrap();
        assert_eq!(found.mode() & 0o777, 0o600);
    }
}

/// The descriptor is closed by the end of the last process.
///
/// Proves: FS-9 git-in-place
#[test]
fn what_is_open_to_the_end_is_judged_at_the_end() {
    for mode in MODES {
        let world = project();
        works(
            &world,
            mode,
            "exec 5>>repo/.git/config; printf '[i18n]\\n\\tcommitEncoding = latin1\\n' >&5",
        );
        assert_eq!(git(&world, &["-C", "repo", "config", "i18n.commitEncoding"]), "latin1");
        let output =
            run(&world, mode, "exec 5>>repo/.git/config; printf '[core]\\n\\tpager = evil\\n' >&5");
        assert!(
            output.err().contains("repo/.git/config (`core.pager` in line"),
            "{}",
            output.err()
        );
        assert!(output.err().contains("is a command that git runs"), "{}", output.err());
        let pager = world.bare("git").args(["-C", "repo", "config", "core.pager"]).run();
        assert_eq!(pager.out(), "");
    }
}

/// Proves: FS-9 git-in-place, FS-9 like-the-kernel
#[test]
fn a_link_to_the_configuration_answers_as_the_kernel_does() {
    let world = project();
    let script = "cd repo/.git; cp config config.lock
        ln config.lock config 2>err && exit 1; grep -q 'File exists' err
        rm config; ln config.lock config; cmp config config.lock; [ ! config -ef config.lock ]";
    works(&world, &[], script);
}

/// Proves: FS-9 git-keys, FS-9 git-works
#[test]
fn git_sets_what_is_harmless() {
    let world = project();
    let settings = [
        ("i18n.commitEncoding", "latin1"),
        ("branch.sort", "-committerdate"),
        ("tag.sort", "version:refname"),
        ("status.color.added", "green"),
        ("core.commentChar", ";"),
        ("am.threeWay", "true"),
        ("format.pretty", "format:%h %s"),
        ("gc.bigPackThreshold", "2g"),
        ("gc.logExpiry", "1.day.ago"),
        ("notes.rewriteRef", "refs/notes/commits"),
        ("notes.rewrite.amend", "true"),
        ("fetch.unpackLimit", "100"),
        ("maintenance.gc.enabled", "false"),
        ("maintenance.autoDetach", "false"),
        ("pager.branch", "false"),
        ("commit.gpgSign", "false"),
        ("blame.ignoreRevsFile", ".git-blame-ignore-revs"),
        ("core.sharedRepository", "group"),
        ("http.postBuffer", "524288000"),
        ("rebase.missingCommitsCheck", "warn"),
    ];
    let lines = settings.map(|(key, value)| format!("git config {key} '{value}'\n"));
    works(&world, &[], &format!("cd repo\n{}", lines.concat()));
    for (key, value) in settings {
        assert_eq!(git(&world, &["-C", "repo", "config", key]), value, "{key}");
    }
}

/// Proves: FS-9 git-works
#[test]
fn git_clones_with_submodules() {
    let world = project();
    let make = "git init --quiet --initial-branch=main super; cd super
        git -c protocol.file.allow=always submodule --quiet add \"$PWD/../repo\" module
        git -c user.name=T -c user.email=t@example.org commit --quiet -m super";
    world.bare("bash").args(["-euc", make]).run().assert_code(0);
    for mode in MODES {
        let script = "rm -rf clone; git -c protocol.file.allow=always clone --quiet --recurse-submodules super clone
            cat clone/module/a; git -C clone submodule foreach --quiet 'git log --format=%s'";
        assert_eq!(works(&world, mode, script), "a\none\n");
    }
}
