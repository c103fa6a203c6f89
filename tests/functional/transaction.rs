//! A project whose changes wait until they are applied (LIFE-2).

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use palisade_testkit::{Output, World};

use crate::inside::{inside, tree};

const TRANSACTION: &[&str] = &["--transaction"];

/// Names, contents, modes and links below a directory, for comparing.
pub(crate) fn everything(directory: &Path) -> Vec<String> {
    let describe = |path: String| {
        let found = fs::symlink_metadata(&path).unwrap();
        let content = match found.file_type() {
            kind if kind.is_symlink() => fs::read_link(&path).unwrap().display().to_string(),
            kind if kind.is_file() => {
                String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
            }
            _ => String::new(),
        };
        format!("{path} {:o} {content}", found.mode())
    };
    tree(directory).into_iter().map(describe).collect()
}

pub(crate) fn sandbox(world: &World, words: &[&str]) -> Output {
    world.sandbox(words).run()
}

/// Directories of sessions that are left.
pub(crate) fn sessions(world: &World) -> usize {
    let all = world.home().join(".local/state/palisade/sessions");
    let is_session = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    fs::read_dir(all).map_or(0, |entries| entries.flatten().filter(is_session).count())
}

pub(crate) fn project(world: &World) {
    world.write_in_project("kept", "kept\n");
    world.write_in_project("changed", "one\ntwo\nthree\n");
    world.write_in_project("removed", "old\n");
    world.write_in_project("moved/deep/file", "moved\n");
    let project = world.project();
    fs::set_permissions(project.join("kept"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("kept", project.join("link")).unwrap();
}

/// A rename of a directory of the lower layer is what an overlay in a user namespace cannot do.
pub(crate) const EDITS: &str = "sed -i s/two/2/ changed && rm removed && mkdir -p new/a && echo x > new/a/b && \
     chmod 755 kept && rm link && ln -s changed link && \
     python3 -c 'import os; os.rename(\"moved\", \"renamed\")' && echo y > 'sp ace: ,\"' && \
     cat changed renamed/deep/file";

/// Proves: LIFE-2 diff, LIFE-2 apply
#[test]
fn changes_wait_are_shown_and_applied_as_a_bare_run_would_have_made_them() {
    let (world, bare) = (World::new(), World::new());
    for world in [&world, &bare] {
        project(world);
    }
    let before = everything(&world.project());
    let output = inside(&world, TRANSACTION, EDITS);
    output.assert_code(0);
    assert_eq!(output.out(), "one\n2\nthree\nmoved\n");
    assert!(output.err().contains("changes wait: look with `sandbox diff"), "{}", output.err());
    assert_eq!(everything(&world.project()), before, "the host's files changed");

    let diff = sandbox(&world, &["diff"]);
    diff.assert_code(0);
    for line in
        ["-two", "+2", "deleted file mode", "rename to renamed/deep/file", "old mode 100640"]
    {
        assert!(diff.out().contains(line), "{line} is missing in\n{}", diff.out());
    }
    let names = sandbox(&world, &["diff", "--name-status"]);
    assert!(names.out().contains("R100\tmoved/deep/file\trenamed/deep/file"), "{}", names.out());
    let json: serde_json::Value =
        serde_json::from_str(&sandbox(&world, &["diff", "--json"]).out()).unwrap();
    assert!(json["changes"].as_array().unwrap().len() > 5, "{json}");
    let some = sandbox(&world, &["diff", "--name-only", "--", "new"]);
    assert_eq!(some.out(), "new/a/b\n");

    sandbox(&world, &["apply"]).assert_code(0);
    bare.bare("sh").args(["-ec", EDITS]).run().assert_code(0);
    let strip = |world: &World| -> Vec<String> {
        let top = world.project().display().to_string();
        everything(&world.project()).iter().map(|line| line.replace(&top, "")).collect()
    };
    assert_eq!(strip(&world), strip(&bare));
    assert_eq!(sessions(&world), 0, "something of the session was left");
    sandbox(&world, &["diff"]).assert_code(125);
}

/// Proves: LIFE-2 discard
#[test]
fn discarded_changes_leave_nothing() {
    let world = World::new();
    project(&world);
    let before = everything(&world.project());
    inside(&world, TRANSACTION, EDITS).assert_code(0);
    sandbox(&world, &["discard"]).assert_code(0);
    assert_eq!(everything(&world.project()), before);
    assert_eq!(sessions(&world), 0);
}

/// Proves: LIFE-2 discard
#[test]
fn a_run_that_changed_nothing_leaves_no_session() {
    let world = World::new();
    project(&world);
    let output = inside(&world, TRANSACTION, "cat kept; echo changed > /tmp/elsewhere");
    assert_eq!((&*output.out(), &*output.err()), ("kept\n", ""));
    assert_eq!(sessions(&world), 0);
}

/// Proves: LIFE-2 apply
#[test]
fn auto_applies_what_ended_well_and_keeps_what_did_not() {
    let world = World::new();
    project(&world);
    let auto = &["--transaction=auto"];
    let output = inside(&world, auto, "echo new > made");
    output.assert_code(0);
    assert!(output.err().contains("applied 1 change"), "{}", output.err());
    assert_eq!(fs::read_to_string(world.project().join("made")).unwrap(), "new\n");
    assert_eq!(sessions(&world), 0);

    let before = everything(&world.project());
    inside(&world, auto, "echo other > made; exit 3").assert_code(3);
    assert_eq!(everything(&world.project()), before);
    assert_eq!(sessions(&world), 1);
}

/// Proves: LIFE-2 apply
#[test]
fn what_changed_on_the_host_meanwhile_is_not_overwritten_unless_asked() {
    let world = World::new();
    project(&world);
    let changed = world.project().join("changed");
    inside(&world, TRANSACTION, "echo session > changed; echo more > made").assert_code(0);
    fs::write(&changed, "host\n").unwrap();

    let held = sandbox(&world, &["apply"]);
    held.assert_code(1);
    assert_eq!(held.out(), "changed: it changed on the host\n");
    assert!(!world.project().join("made").exists(), "a part was applied");

    sandbox(&world, &["apply", "--ours"]).assert_code(0);
    assert_eq!(fs::read_to_string(&changed).unwrap(), "host\n");
    assert_eq!(fs::read_to_string(world.project().join("made")).unwrap(), "more\n");

    sandbox(&world, &["apply", "--force"]).assert_code(0);
    assert_eq!(fs::read_to_string(&changed).unwrap(), "session\n");
    assert_eq!(sessions(&world), 0);
}

/// A later commit of the host is not the common version: the session would seem to have removed what is in it.
///
/// Proves: LIFE-2 merge
#[test]
fn what_both_changed_is_merged_by_the_commit_that_was_checked_out() {
    let world = World::new();
    let git = |script: &str| {
        let script = format!("git -c user.name=n -c user.email=e@example.org {script}");
        world.bare("sh").args(["-c", &script]).run().assert_code(0);
    };
    let text = |first: &str, last: &str| format!("{first}\n2\n3\n4\n{last}\n");
    world.write_in_project("both", text("1", "5"));
    world.write_in_project("same-line", text("1", "5"));
    git("init -q && git add . && git -c user.name=n -c user.email=e@example.org commit -qm first");
    inside(&world, TRANSACTION, "sed -i s/5/session/ both same-line").assert_code(0);
    world.write_in_project("both", text("host", "5"));
    world.write_in_project("same-line", text("1", "host"));
    git("commit -qam second");

    let held = sandbox(&world, &["apply", "--merge"]);
    held.assert_code(1);
    assert_eq!(held.out(), "same-line: both changed the same lines\n", "{}", held.err());
    sandbox(&world, &["apply", "--merge", "--", "both"]).assert_code(0);
    let merged = fs::read_to_string(world.project().join("both")).unwrap();
    assert_eq!(merged, text("host", "session"));
}

/// Inside a transaction such names can be written; what counts is what comes to the host.
///
/// Proves: FS-9 list, LIFE-2 apply
#[test]
fn names_that_the_host_would_run_later_are_refused_when_changes_are_applied() {
    let world = World::new();
    world.git_init();
    let script = "echo '#!/bin/sh' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && \
                  mkdir .vscode && echo {} > .vscode/tasks.json && ln -s /etc/passwd out && \
                  echo fine > fine && git config core.fsmonitor ./fine";
    inside(&world, TRANSACTION, script).assert_code(0);
    let before = everything(&world.project());

    let held = sandbox(&world, &["apply"]);
    held.assert_code(1);
    for refused in [".git/config: ", ".git/hooks/pre-commit: ", ".vscode: ", "out: "] {
        assert!(held.out().contains(refused), "{refused} is missing in\n{}", held.out());
    }
    assert_eq!(everything(&world.project()), before, "a part was applied");

    sandbox(&world, &["apply", "--skip-refused"]).assert_code(0);
    assert_eq!(fs::read_to_string(world.project().join("fine")).unwrap(), "fine\n");
    for absent in [".vscode", ".git/hooks/pre-commit", "out"] {
        assert!(fs::symlink_metadata(world.project().join(absent)).is_err(), "{absent}");
    }
    let config = fs::read_to_string(world.project().join(".git/config")).unwrap();
    assert!(!config.contains("fsmonitor"), "{config}");
}

/// What is hidden in the project is hidden in the transaction, and is no change.
///
/// Proves: LIFE-2 diff, FS-2 hidden
#[test]
fn what_is_hidden_does_not_look_removed() {
    let world = World::new();
    project(&world);
    world.write_in_project("keys/private", "top secret\n");
    let flags = &["--transaction", "--blacklist", "keys"];
    let output = inside(&world, flags, "cat keys/private; ls; echo x > made");
    assert!(!output.out().contains("secret") && !output.out().contains("keys"), "{}", output.out());
    let names = sandbox(&world, &["diff", "--name-status"]);
    assert_eq!(names.out(), "A\tmade\n", "{}", names.err());
}

/// Proves: LIFE-2 diff
#[test]
fn a_session_sees_its_changes_in_every_command_until_they_are_applied() {
    let world = World::new();
    project(&world);
    let session = sandbox(&world, &["create", "--name", "work", "--transaction"]);
    session.assert_code(0);
    sandbox(&world, &["exec", "work", "--", "sh", "-c", "echo 1 > made"]).assert_code(0);
    let seen = sandbox(&world, &["exec", "work", "--", "cat", "made"]);
    assert_eq!(seen.out(), "1\n", "{}", seen.err());
    assert!(!world.project().join("made").exists());
    assert_eq!(sandbox(&world, &["diff", "--name-status", "work"]).out(), "A\tmade\n");
    // While it lives, copies are applied, and it goes on.
    sandbox(&world, &["apply", "work"]).assert_code(0);
    assert_eq!(fs::read_to_string(world.project().join("made")).unwrap(), "1\n");
    sandbox(&world, &["exec", "work", "--", "sh", "-c", "echo 2 >> made"]).assert_code(0);
    assert_eq!(fs::read_to_string(world.project().join("made")).unwrap(), "1\n");
    sandbox(&world, &["apply", "work"]).assert_code(0);
    assert_eq!(fs::read_to_string(world.project().join("made")).unwrap(), "1\n2\n");
    let running = sandbox(&world, &["discard", "work"]);
    running.assert_code(125);
    assert!(running.err().contains("is running"), "{}", running.err());
    sandbox(&world, &["exec", "work", "--", "sh", "-c", "echo 3 >> made"]).assert_code(0);
    sandbox(&world, &["stop", "work"]).assert_code(0);
    // Nobody loses changes by tidying up.
    let kept = sandbox(&world, &["prune"]);
    assert!(kept.err().contains("kept, because changes wait: work"), "{}", kept.err());
    let refused = sandbox(&world, &["rm", "work"]);
    refused.assert_code(125);
    assert!(refused.err().contains("has changes that wait (1)"), "{}", refused.err());
    sandbox(&world, &["rm", "--force", "work"]).assert_code(0);
    assert_eq!(sessions(&world), 0);
}

/// Under another name a protected file could be written by any later run.
///
/// Proves: FS-9 list, LIFE-2 apply
#[test]
fn a_protected_file_gets_no_second_name_when_changes_are_applied() {
    let world = World::new();
    world.git_init();
    world.write_in_project(".git/hooks/pre-commit", "#!/bin/sh\n");
    world.write_in_project("plain", "plain\n");
    let script = "ln .git/hooks/pre-commit hook && ln .git/config config && ln plain other && \
                  git config user.email somebody@localhost && ln .git/config third";
    inside(&world, TRANSACTION, script).assert_code(0);
    sandbox(&world, &["apply"]).assert_code(0);
    let inode = |name: &str| fs::metadata(world.project().join(name)).unwrap().ino();
    for (name, protected) in
        [("hook", ".git/hooks/pre-commit"), ("config", ".git/config"), ("third", ".git/config")]
    {
        assert_ne!(inode(name), inode(protected), "{name} is {protected}");
    }
    assert_eq!(inode("other"), inode("plain"));
}

/// The command could not know what it overwrote or removed.
///
/// Proves: FS-2 hidden, LIFE-2 apply
#[test]
fn what_was_hidden_is_neither_replaced_nor_removed_when_changes_are_applied() {
    let world = World::new();
    world.write_in_project("secret", "top secret\n");
    world.write_in_project("keys/private", "top secret\n");
    world.write_in_project("mixed/hidden", "top secret\n");
    world.write_in_project("mixed/seen", "seen\n");
    let flags = ["--transaction", "--blacklist", "secret", "--blacklist", "keys"];
    let flags = [&flags[..], &["--blacklist", "mixed/hidden"]].concat();
    let script = "echo planted > secret; mkdir keys; echo planted > keys/private; rm -rf mixed; ls";
    inside(&world, &flags, script).assert_code(0);
    assert_hidden_files_stay(&world);
}

/// That what the command could not see is neither replaced nor removed, whoever insists.
#[track_caller]
pub(crate) fn assert_hidden_files_stay(world: &World) {
    let held = sandbox(world, &["apply"]);
    held.assert_code(1);
    for refused in ["secret: ", "keys/private: ", "mixed: "] {
        assert!(held.out().contains(refused), "{refused} is missing in\n{}", held.out());
    }
    sandbox(world, &["apply", "--skip-refused", "--force"]).assert_code(0);
    for kept in ["secret", "keys/private", "mixed/hidden"] {
        let content = fs::read_to_string(world.project().join(kept)).unwrap();
        assert_eq!(content, "top secret\n", "{kept}");
    }
}

/// What is mounted in a directory cannot be moved with it.
///
/// Proves: FS-1 rw-flag
#[test]
fn a_directory_that_holds_a_mount_is_not_moved() {
    let world = World::new();
    fs::create_dir_all(world.project().join("holder/live/deep")).unwrap();
    let flags = ["--transaction", "--no-protect-names", "--rw", "holder/live"];
    let script = "python3 -c 'import os; os.rename(\"holder\", \"moved\")'; ls";
    let output = inside(&world, &flags, script);
    assert!(output.err().contains("OSError"), "{}{}", output.out(), output.err());
    assert!(world.project().join("holder/live/deep").is_dir(), "the host's directory is gone");
}

/// Proves: LIFE-2 discard
#[test]
fn changes_that_nobody_can_read_can_be_discarded() {
    let world = World::new();
    project(&world);
    let before = everything(&world.project());
    let script = "for i in $(seq 600); do mkdir d$i; chmod 0 d$i; done";
    inside(&world, TRANSACTION, script).assert_code(0);
    let all = world.home().join(".local/state/palisade/sessions");
    let named = fs::read_dir(all).unwrap().flatten().map(|entry| entry.file_name());
    let session = named.map(|name| name.into_string().unwrap()).find(|name| name.len() == 36);
    sandbox(&world, &["discard", &session.expect("a session")]).assert_code(0);
    assert_eq!(everything(&world.project()), before);
    assert_eq!(sessions(&world), 0);
}
