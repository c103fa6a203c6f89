//! What a transaction brings to the host, looked at from there: every attack is a run whose changes are applied at its end.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use palisade_testkit::{Attack, Demonstration, Output, World};

use crate::host::probe;

const AUTO: &str = "--transaction=auto";
const SET_ID_BITS: u32 = 0o6000;
const UNTOUCHED: &str = "untouched";

fn at_end(_: &World) -> Vec<String> {
    vec![AUTO.to_owned()]
}

fn has_set_id(world: &World, name: &str) -> bool {
    let found = fs::symlink_metadata(world.project().join(name));
    found.is_ok_and(|found| found.permissions().mode() & SET_ID_BITS != 0)
}

/// Proves: FS-1 no-setid-file, LIFE-2 apply
#[test]
fn f14_a_set_user_id_file_loses_its_bit_when_it_is_applied() {
    for way in ["chmod", "fchmod"] {
        Attack::new("F14", format!("have a set-user-id file applied to the project: {way}"))
            .held_by(&["seccomp", "reviewed-changes"])
            .prepare(|world| drop(world.write_in_project("left", "")))
            .flags(at_end)
            .command(move |world| probe(world, &["set-user-id", way, "left"]))
            .succeeded(|world, _| has_set_id(world, "left"))
            .check();
    }
}

/// No call for it is needed: the kernel copies the bit when the file is renamed.
///
/// Proves: FS-1 no-setid-file, LIFE-2 apply
#[test]
fn f16_a_set_user_id_file_that_an_overlay_copied_up_loses_its_bit_when_it_is_applied() {
    Attack::new(
        "F16",
        "give a set-user-id file another name in a transaction, and have it applied",
    )
    .held_by(&["reviewed-changes"])
    .prepare(|world| {
        let tool = world.write_in_project("tool", "a program");
        fs::set_permissions(tool, fs::Permissions::from_mode(0o4755)).unwrap();
    })
    .flags(at_end)
    .command(|_| ["mv", "tool", "renamed"].map(str::to_owned).into())
    .succeeded(|world, _| has_set_id(world, "renamed"))
    .contained(|world, _| world.project().join("renamed").is_file())
    .check();
}

/// A program of the host writes its log there later, as it did before.
///
/// Proves: LIFE-2 apply, AUD-1 no-follow
#[test]
fn f20_a_file_that_the_host_writes_later_does_not_become_a_link_that_leads_out() {
    let writes_elsewhere = |world: &World, _: &Output| {
        let log = fs::OpenOptions::new().append(true).open(world.project().join("log"));
        log.unwrap().write_all(b"a line").unwrap();
        fs::read_to_string(world.outside().join("canary")).unwrap() != UNTOUCHED
    };
    Attack::new("F20", "make a log of the host a link to another file, and have that applied")
        .held_by(&["reviewed-changes"])
        .prepare(|world| {
            world.write_in_project("log", "");
            world.write("outside/canary", UNTOUCHED);
        })
        .flags(at_end)
        .command(|world| {
            let canary = world.outside().join("canary").display().to_string();
            ["ln", "-sf", &canary, "log"].map(str::to_owned).into()
        })
        .succeeded(writes_elsewhere)
        .contained(|_, output| output.err().contains("the changes were not applied"))
        .check();
}

/// Proves: LIFE-2 apply, LIFE-2 diff
#[test]
fn f17_a_directory_deleted_in_a_transaction_stays_deleted_when_it_is_applied() {
    let shown = Demonstration::of(
        "F17",
        "delete and make anew a directory in a transaction, and find its old files on the host after it was applied",
        "what an opaque directory hides counts as deleted",
    )
    .no_bare_run("there is no overlay without a sandbox");
    let Some(shown) = shown.begin() else { return };
    let world = World::new();
    world.write_in_project("tree/old/file", "old");
    world.write_in_project("gone/file", "old");
    let script = "rm -r tree gone && mkdir -p tree/old && echo new > tree/new";
    world.sandbox_run(["--transaction"], ["sh", "-c", script]).run().assert_code(0);
    let difference = world.sandbox(["diff", "--name-status"]).run();
    for line in ["D\ttree/old/file", "D\tgone/file", "A\ttree/new"] {
        assert!(difference.out().lines().any(|found| found == line), "{}", difference.out());
    }
    world.sandbox(["apply"]).run().assert_code(0);
    let project = world.project();
    assert!(!project.join("gone").exists());
    assert_eq!(fs::read_dir(project.join("tree/old")).unwrap().count(), 0);
    assert_eq!(fs::read_to_string(project.join("tree/new")).unwrap(), "new\n");
    shown.held();
}

/// Both the project and the place where its changes are kept have such names.
///
/// Proves: FS-3 strange-paths, LIFE-2 apply
#[test]
fn f18_a_transaction_below_special_characters_changes_nothing_else() {
    let shown = Demonstration::of(
        "F18",
        "name a project or the place of its changes so that mount options name another one too",
        "layers are given to the kernel by descriptor, not as text",
    )
    .no_bare_run("shown for the mount options themselves by another test of F18");
    let Some(shown) = shown.begin() else { return };
    for name in ["a:b", "a,b", "a\\b", "a\"b", "a\nb", " a ", "a:b,upperdir=b"] {
        let world = World::new();
        let project = world.home().join(name);
        fs::create_dir_all(&project).unwrap();
        fs::write(project.join("mine"), "lower").unwrap();
        for other in ["a", "b"] {
            world.write(format!("home/{other}/mine"), UNTOUCHED);
        }
        let script = "cat mine; echo upper > mine; echo made > made";
        let run = world.sandbox_run([AUTO], ["sh", "-c", script]);
        let output = run.cwd(&project).env("XDG_STATE_HOME", world.path().join(name)).run();
        assert_eq!(output.assert_code(0).out(), "lower", "{name:?}: {}", output.err());
        assert_eq!(fs::read_to_string(project.join("mine")).unwrap(), "upper\n", "{name:?}");
        assert_eq!(fs::read_to_string(project.join("made")).unwrap(), "made\n", "{name:?}");
        for other in ["a", "b"] {
            let other = world.home().join(other);
            assert_eq!(fs::read_to_string(other.join("mine")).unwrap(), UNTOUCHED, "{name:?}");
            assert_eq!(fs::read_dir(other).unwrap().count(), 1, "{name:?}");
        }
    }
    shown.held();
}
