//! Transactions where the kernel mounts no overlay: the command works in a copy of the project (LIFE-2).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use palisade_testkit::{Output, World, am_root, sandbox_program};

use crate::inside::{inside, private_mounts};
use crate::transaction::{EDITS, assert_hidden_files_stay, everything, project, sandbox, sessions};

const COPY: &[&str] = &["--transaction=copy"];

fn relative(world: &World) -> Vec<String> {
    let top = world.project().display().to_string();
    everything(&world.project()).iter().map(|line| line.replace(&top, "")).collect()
}

/// Proves: LIFE-2 diff, LIFE-2 apply, LIFE-2 discard
#[test]
fn changes_in_a_copy_wait_and_are_applied_or_discarded_like_those_in_an_overlay() {
    let (world, bare) = (World::new(), World::new());
    for world in [&world, &bare] {
        project(world);
    }
    let before = everything(&world.project());
    for _ in 0..2 {
        let output = inside(&world, COPY, EDITS);
        output.assert_code(0);
        assert_eq!(output.out(), "one\n2\nthree\nmoved\n");
        assert!(output.err().contains("works in a copy of"), "{}", output.err());
        assert_eq!(everything(&world.project()), before, "the host's files changed");
        let names = sandbox(&world, &["diff", "--name-status"]);
        assert!(names.out().contains("R100\tmoved/deep/file\trenamed/deep/file"), "{names:?}");
        assert!(names.out().contains("M\tchanged\nM\tkept\n"), "{names:?}");
        if sessions(&world) == 1 && !bare.project().join("new").exists() {
            sandbox(&world, &["discard"]).assert_code(0);
            assert_eq!(everything(&world.project()), before);
            assert_eq!(sessions(&world), 0);
            bare.bare("sh").args(["-ec", EDITS]).run().assert_code(0);
        }
    }
    sandbox(&world, &["apply"]).assert_code(0);
    assert_eq!(relative(&world), relative(&bare));
    assert_eq!(sessions(&world), 0, "something of the session was left");
}

/// Proves: LIFE-2 apply
#[test]
fn what_others_change_meanwhile_is_left_to_them() {
    let world = World::new();
    project(&world);
    sandbox(&world, &["create", "--name", "s", "--transaction=copy", "--quiet"]).assert_code(0);
    let inspected = sandbox(&world, &["inspect", "s"]);
    assert!(inspected.out().contains("made in a copy of the project"), "{inspected:?}");
    world.write_in_project("kept", "changed outside\n");
    world.write_in_project("changed", "changed outside\n");
    world.write_in_project("made outside", "new\n");
    let words = ["exec", "s", "--", "sh", "-c", "echo inside > changed; echo x > new; cat kept"];
    assert_eq!(sandbox(&world, &words).out(), "kept\n", "a copy is one of the start");
    let names = sandbox(&world, &["diff", "s", "--name-only"]);
    assert_eq!(names.out(), "changed\nnew\n");
    let held = sandbox(&world, &["apply", "s"]);
    held.assert_code(1);
    assert!(held.out().contains("changed: "), "{held:?}");
    sandbox(&world, &["apply", "s", "--ours"]).assert_code(0);
    for (file, content) in [
        ("kept", "changed outside\n"),
        ("changed", "changed outside\n"),
        ("made outside", "new\n"),
        ("new", "x\n"),
    ] {
        assert_eq!(fs::read_to_string(world.project().join(file)).unwrap(), content, "{file}");
    }
    sandbox(&world, &["rm", "--force", "s"]).assert_code(0);
}

/// Proves: FS-2 hidden, LIFE-2 apply
#[test]
fn what_is_hidden_is_not_in_the_copy_and_stays_as_it_is() {
    let world = World::new();
    world.write_in_project("secret", "top secret\n");
    world.write_in_project("keys/private", "top secret\n");
    world.write_in_project("mixed/hidden", "top secret\n");
    world.write_in_project("mixed/seen", "seen\n");
    let flags = ["--transaction=copy", "--blacklist", "secret", "--blacklist", "keys"];
    let flags = [&flags[..], &["--blacklist", "mixed/hidden"]].concat();
    let nothing = inside(&world, &flags, "cat secret keys/private mixed/hidden; ls -A . mixed");
    assert_eq!(nothing.out(), ".:\nmixed\n\nmixed:\nseen\n", "{}", nothing.err());
    assert_eq!(sessions(&world), 0, "what is hidden looks changed");
    let script = "echo planted > secret; mkdir keys; echo planted > keys/private; rm -rf mixed";
    inside(&world, &flags, script).assert_code(0);
    let state = world.home().join(".local/state/palisade");
    let found = world.bare("grep").args(["-r", "top secret"]).arg(&state).run();
    found.assert_code(1);
    assert_hidden_files_stay(&world);
}

/// Proves: LIFE-5 checkpoint, LIFE-5 rollback
#[test]
fn states_of_a_copy_are_kept_compared_and_brought_back() {
    let world = World::new();
    project(&world);
    world.write_in_project("secret", "top secret\n");
    let flags = ["--transaction=copy", "--blacklist", "secret", "--quiet"];
    sandbox(&world, &[&["create", "--name", "s"], &flags[..]].concat()).assert_code(0);
    let exec = |script: &str| sandbox(&world, &["exec", "s", "--", "sh", "-c", script]);
    exec("echo one > notes; rm -r moved").assert_code(0);
    assert_eq!(sandbox(&world, &["checkpoint", "s"]).out(), "1\n");
    exec("echo two > notes; echo 3 > changed; mkdir -p a/b").assert_code(0);
    let since = sandbox(&world, &["diff", "s", "1..", "--name-only"]);
    assert_eq!(since.out(), "a/b/\nchanged\nnotes\n", "{since:?}");
    sandbox(&world, &["rollback", "s", "1"]).assert_code(0);
    assert_eq!(exec("cat notes changed; ls -d a moved").out(), "one\none\ntwo\nthree\n");
    sandbox(&world, &["rollback", "s", "0"]).assert_code(0);
    let back = exec("cat notes secret; cat moved/deep/file");
    assert_eq!(back.out(), "moved\n");
    assert_eq!(sandbox(&world, &["diff", "s", "--name-only"]).out(), "");
    let refused = sandbox(&world, &["fork", "s", "--name", "other"]);
    assert!(refused.err().contains("cannot be forked"), "{refused:?}");
    // The same when no process of it is left.
    sandbox(&world, &["stop", "s"]).assert_code(0);
    sandbox(&world, &["rollback", "s", "1"]).assert_code(0);
    let names = sandbox(&world, &["diff", "s", "--name-status"]);
    assert_eq!(names.out(), "D\tmoved/deep/file\nA\tnotes\n");
    sandbox(&world, &["rollback", "s", "0"]).assert_code(0);
    assert_eq!(sandbox(&world, &["diff", "s", "--name-only"]).out(), "");
    sandbox(&world, &["rm", "--force", "s"]).assert_code(0);
}

/// Proves: LIFE-2 copy
#[test]
fn a_project_that_cannot_be_copied_is_told_before_the_command() {
    if am_root() {
        eprintln!("skipped: root reads everything");
        return;
    }
    let world = World::new();
    world.write_in_project("closed", "x");
    let closed = world.project().join("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let output = inside(&world, COPY, "echo ran");
    output.assert_code(125);
    assert_eq!(output.out(), "");
    assert!(output.err().contains("closed cannot be read"), "{}", output.err());
    assert!(output.err().contains("--blacklist"), "{}", output.err());
    assert_eq!(sessions(&world), 0);
    inside(&world, &["--transaction=copy", "--blacklist", "closed"], "true").assert_code(0);
}

/// The script in a mount table of its own. The kernel stacks two overlays, and refuses a third.
fn on_stacked_overlays(world: &World, script: &str) -> Output {
    let script = format!(
        "mkdir ../layers; mount -t tmpfs none ../layers; cd ../layers; mkdir one two state; cd - >/dev/null
         stack() {{ mkdir -p \"$2/u\" \"$2/w\"; \
             mount -t overlay -o \"lowerdir=$1,upperdir=$2/u,workdir=$2/w,userxattr\" none \"$3\"; }}
         {script}"
    );
    let own: &[&str] =
        if am_root() { &[] } else { &["--user", "--map-current-user", "--keep-caps"] };
    let mounts = ["--mount", "--propagation", "private", "sh", "-ec", &script];
    let run = world.bare("unshare").args([own, &mounts[..]].concat());
    run.env("PALISADE", sandbox_program()).run()
}

const USED: &str = "
    \"$PALISADE\" plan --transaction -- true >../plan
    \"$PALISADE\" run --transaction -- sh -c 'echo inside >> changed; rm removed; mkdir new; echo x > new/file'
    cat changed
    \"$PALISADE\" diff --name-status
    \"$PALISADE\" apply
    cat changed; ls";

fn assert_used(world: &World, output: &Output, why: &str) {
    output.assert_code(0);
    let expected = "one\ntwo\nthree\nM\tchanged\nA\tnew/file\nD\tremoved\n";
    assert!(output.out().starts_with(expected), "{}{}", output.out(), output.err());
    let after = "one\ntwo\nthree\ninside\nchanged\nkept\nlink\nmoved\nnew\n";
    assert!(output.out().ends_with(after), "{}", output.out());
    assert!(output.err().contains(why), "{}", output.err());
    let plan = fs::read_to_string(world.project().join("../plan")).unwrap();
    assert!(plan.contains("a writable copy"), "{plan}");
}

/// Proves: LIFE-2 copy, LIFE-3 poor-hosts
#[test]
fn a_project_that_no_overlay_can_lie_on_is_copied() {
    let world = World::new();
    project(&world);
    let script = format!(
        "mkdir ../layers/one/m
         stack \"$PWD\" ../layers/one ../layers/one/m
         stack ../layers/one/m ../layers/two \"$PWD\"
         cd \"$PWD\"
         {USED}"
    );
    let output = on_stacked_overlays(&world, &script);
    assert_used(&world, &output, "it is on overlay, where the kernel mounts no overlay");
}

/// Proves: LIFE-2 copy, LIFE-3 poor-hosts
#[test]
fn a_project_is_copied_where_our_state_cannot_hold_an_overlays_changes() {
    let world = World::new();
    project(&world);
    let script = format!(
        "mkdir ../state ../layers/empty
         stack ../layers/empty ../layers/state ../state
         export XDG_STATE_HOME=$(realpath ../state)
         {USED}"
    );
    let output = on_stacked_overlays(&world, &script);
    if am_root() {
        // Nothing can be written there on behalf of another user, as in any other run of root's.
        output.assert_code(125);
        assert!(output.err().contains("cannot map ids"), "{}", output.err());
        return;
    }
    assert_used(&world, &output, "state is on overlay, which cannot hold");
}

/// What is mounted in the project is no part of it, neither in an overlay nor in a copy.
///
/// Proves: LIFE-2 copy, LIFE-2 apply
#[test]
fn a_mount_in_the_project_is_an_empty_directory_in_the_copy_and_stays_as_it_is() {
    if !am_root() {
        eprintln!("skipped: only root can mount");
        return;
    }
    let world = World::new();
    project(&world);
    fs::create_dir(world.project().join("mounted")).unwrap();
    let script = "mount -t tmpfs none mounted; echo host > mounted/file
        \"$PALISADE\" run --transaction=auto,copy -- sh -c 'ls -A mounted; echo new > made'
        cat made mounted/file; ls -A mounted";
    let output = private_mounts(&world, script).run();
    output.assert_code(0);
    assert_eq!(output.out(), "new\nhost\nfile\n", "{}", output.err());
}
