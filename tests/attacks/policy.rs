//! The sandbox that cannot be set up, and the command that edits the policy it runs under.

use std::fs;

use palisade_testkit::{Attack, Demonstration, Output, World, sandbox_program};

use crate::files::TO_WRITE_OUTSIDE;
use crate::host::strings;
use crate::secrets::TO_READ_WHAT_IS_HIDDEN;

const ORIGINAL: &str = "# as the owner left it\n";

fn assert_failed_closed(world: &World, output: &Output) {
    output.assert_code(125);
    assert!(!world.project().join("ran").exists(), "the command ran all the same");
}

/// Proves: PROC-7 never-less, PROC-7 says-why
#[test]
fn r06_without_user_namespaces_nothing_runs() {
    let shown = Demonstration::of(
        "R06",
        "run where user namespaces are forbidden",
        "set-up stops at the first step that fails, before the command",
    );
    let Some(mut shown) = shown.begin() else { return };
    let world = World::new();
    let sandbox = sandbox_program().display().to_string();
    let command = ["without-user-namespaces", "--", &sandbox, "run", "--", "touch", "ran"];
    let output = world.bare(world.probe()).args(command).run();
    assert_failed_closed(&world, &output);
    assert!(output.err().contains("max_user_namespaces"), "{}", output.err());
    // In the same surroundings, and without the sandbox, it would have run.
    let command = ["without-user-namespaces", "--", "touch", "ran"];
    world.bare(world.probe()).args(command).run().assert_code(0);
    assert!(world.project().join("ran").exists());
    shown.worked_bare();
    shown.held();
}

/// Proves: PROC-7 never-less
#[test]
fn r06_without_a_place_for_its_records_nothing_runs() {
    let shown = Demonstration::of(
        "R06",
        "run where no audit record can be written",
        "the first record is written before anything is set up",
    )
    .no_bare_run("there are no records without a sandbox");
    let Some(shown) = shown.begin() else { return };
    let world = World::new();
    world.write("home/.local/state", "a file where a directory belongs");
    let output = world.sandbox_run([""; 0], ["touch", "ran"]).run();
    assert_failed_closed(&world, &output);
    assert!(output.err().contains(".local/state"), "{}", output.err());
    shown.held();
}

fn put_policy(world: &World) {
    world.write_in_project(".palisade/policy.yaml", ORIGINAL);
}

fn policy_was_replaced(world: &World, _: &Output) -> bool {
    let policy = world.project().join(".palisade/policy.yaml");
    fs::read_to_string(policy).is_ok_and(|text| text != ORIGINAL)
}

/// Proves: FS-1 read-only
#[test]
fn r06_the_project_policy_cannot_be_written() {
    Attack::new("R06", "write the policy of the project from inside")
        .proves(&["FS-1 read-only"])
        .held_by(&["read-only-mounts", "guard"])
        .prepare(put_policy)
        .command(|world| strings(&[&world.probe(), "write", ".palisade/policy.yaml"]))
        .succeeded(policy_was_replaced)
        .contained(|_, output| output.out().starts_with("refused 30 "))
        .check();
}

/// Proves: FS-1 read-only
#[test]
fn r06_the_project_policy_cannot_be_moved_away() {
    let script = "mv .palisade aside && mkdir .palisade && echo other > .palisade/policy.yaml";
    Attack::new("R06", "put another directory in the place of the policy's")
        .proves(&["FS-1 read-only"])
        .held_by(&["read-only-mounts", "guard"])
        .prepare(put_policy)
        .command(move |_| strings(&["sh", "-c", script]))
        .succeeded(policy_was_replaced)
        .check();
}

/// A directory above the policy's, granted for writing as a whole, can be renamed no more than the
/// policy's own.
///
/// Proves: FS-1 rw-flag
#[test]
fn r06_no_directory_above_the_project_policy_can_be_moved_away() {
    let shown = Demonstration::of(
        "R06",
        "move away a directory above the policy, where all of it may be written",
        "a directory with a mount in it cannot be renamed",
    );
    let Some(mut shown) = shown.begin() else { return };
    let script = "cd ../.. && mv work aside && mkdir -p work/inner/.palisade \
                  && echo other > work/inner/.palisade/policy.yaml";
    let prepared = || {
        let world = World::new();
        world.write_in_project("work/inner/.git/HEAD", "");
        world.write_in_project("work/inner/.palisade/policy.yaml", ORIGINAL);
        world
    };
    let policy_of = |world: &World| {
        let policy = world.project().join("work/inner/.palisade/policy.yaml");
        fs::read_to_string(policy).unwrap()
    };
    let world = prepared();
    let inner = world.project().join("work/inner");
    world.bare("sh").args(["-c", script]).cwd(inner).run().assert_code(0);
    assert_ne!(policy_of(&world), ORIGINAL);
    shown.worked_bare();

    let world = prepared();
    let inner = world.project().join("work/inner");
    let output = world.sandbox_run(["--rw", "../.."], ["sh", "-c", script]).cwd(inner).run();
    output.assert_code(1);
    assert_eq!(policy_of(&world), ORIGINAL);
    shown.held();
}

fn user_policy(world: &World) -> String {
    world.home().join(".config/palisade/policy.yaml").display().to_string()
}

fn put_user_policy(world: &World) {
    world.write("home/.config/palisade/policy.yaml", ORIGINAL);
}

/// Proves: FS-3 own-root
#[test]
fn r06_the_user_policy_cannot_be_written() {
    Attack::new("R06", "write the policy of the user from inside")
        .proves(&["FS-3 own-root"])
        .held_by(TO_WRITE_OUTSIDE)
        .prepare(put_user_policy)
        .flags(|world| strings(&["--static", "--ro", &world.home().display().to_string()]))
        .command(|world| strings(&[&world.probe(), "write", &user_policy(world)]))
        .succeeded(|world, _| fs::read_to_string(user_policy(world)).unwrap() != ORIGINAL)
        .check();
}

/// Proves: FS-2 hidden
#[test]
fn r06_the_user_policy_cannot_be_seen() {
    Attack::new("R06", "read the policy of the user from inside")
        .proves(&["FS-2 hidden"])
        .held_by(TO_READ_WHAT_IS_HIDDEN)
        .prepare(put_user_policy)
        .flags(|world| strings(&["--static", "--ro", &world.home().display().to_string()]))
        .command(|world| strings(&[&world.probe(), "read", &user_policy(world)]))
        .succeeded(|_, output| output.out().contains(ORIGINAL.trim()))
        .check();
}

/// Proves: FS-1 rw-flag
#[test]
fn r06_nobody_can_grant_the_policy_for_writing() {
    let shown = Demonstration::of(
        "R06",
        "have the policy's own directories granted for writing",
        "such a grant is refused before anything starts",
    )
    .no_bare_run("there is no policy without a sandbox");
    let Some(shown) = shown.begin() else { return };
    let world = World::new();
    put_user_policy(&world);
    for granted in ["~/.config", "~/.config/palisade", "~/.local/state", "~"] {
        let output = world.sandbox_run(["--rw", granted], ["touch", "ran"]).run();
        output.assert_code(126);
        assert!(!world.project().join("ran").exists(), "{granted}");
    }
    shown.held();
}

/// A wall that did not come up: the run stops before the command, and only a run that does not look
/// goes on.
///
/// Proves: ESC-2 stops
#[test]
fn r06_a_command_does_not_start_where_a_wall_is_down() {
    Attack::new("R06", "run where the filter did not come up")
        .held_by(&["self-check", "seccomp"])
        .only_together("with the filter off and the check on, the run has to stop")
        .command(|world| strings(&[&world.probe(), "io-uring"]))
        .succeeded(|_, output| output.out().starts_with("done"))
        .check();
}

/// Proves: FS-6 file-size
#[test]
fn r03_no_file_grows_beyond_its_limit() {
    const TOO_MUCH: &str = "2000000";
    Attack::new("R03", "make a file larger than allowed")
        .held_by(&["rlimits"])
        .prepare(|world| {
            world.write("limits.yaml", "filesystem: {maxFileSize: 1000000}\n");
        })
        .flags(|world| {
            strings(&["--policy", &world.path().join("limits.yaml").display().to_string()])
        })
        .command(|world| strings(&[&world.probe(), "grow", "large", TOO_MUCH]))
        .succeeded(|world, _| {
            let found = fs::metadata(world.project().join("large"));
            found.is_ok_and(|found| found.len().to_string() == TOO_MUCH)
        })
        .check();
}

/// Proves: RES-2 wall-time
#[test]
fn r07_a_run_does_not_outstay_its_time() {
    Attack::new("R07", "go on after the time is up")
        .held_by(&["timer"])
        .flags(|_| strings(&["--timeout", "1s"]))
        .command(|world| strings(&[&world.probe(), "linger", "3", "stayed"]))
        .succeeded(|world, _| world.project().join("stayed").exists())
        .contained(|_, output| output.code() == 124)
        .check();
}

/// A policy in the project, named for the run, with a way to it over two links.
fn put_named_policy(world: &World) {
    world.write_in_project("conf/real.yaml", ORIGINAL);
    for (link, target) in [("conf/second.yaml", "real.yaml"), ("policy.yaml", "conf/second.yaml")] {
        std::os::unix::fs::symlink(target, world.project().join(link)).unwrap();
    }
}

fn named_policy(_: &World) -> Vec<String> {
    strings(&["--policy", "policy.yaml"])
}

fn named_policy_says_otherwise(world: &World, _: &Output) -> bool {
    fs::read_to_string(world.project().join("policy.yaml")).is_ok_and(|text| text != ORIGINAL)
}

/// Proves: POL-4 sealed
#[test]
fn r06_the_policy_of_the_run_cannot_be_written_wherever_it_lies() {
    let ways = [
        ("write it", "echo other > conf/real.yaml"),
        ("write it through its links", "echo other > policy.yaml"),
        ("replace it", "echo other > new; mv -f new conf/real.yaml"),
        ("remove it and make it anew", "rm -f conf/real.yaml; echo other > conf/real.yaml"),
        (
            "put another directory in its place",
            "mv conf aside; mkdir conf; echo other > conf/real.yaml; ln -s real.yaml conf/second.yaml",
        ),
        ("write it by a second name", "ln conf/real.yaml conf/again; echo other > conf/again"),
    ];
    for (name, script) in ways {
        Attack::new("R06", format!("the policy of the run, in the project: {name}"))
            .proves(&["POL-4 sealed"])
            .held_by(&["read-only-mounts", "guard"])
            .prepare(put_named_policy)
            .flags(named_policy)
            .command(move |_| strings(&["sh", "-c", script]))
            .succeeded(named_policy_says_otherwise)
            .check();
    }
}

/// Proves: POL-4 sealed
#[test]
fn r06_no_link_on_the_way_to_the_policy_can_be_made_to_lead_elsewhere() {
    let ways = [
        ("the first link", "echo other > new; ln -sfn new policy.yaml"),
        (
            "a link further on",
            "echo other > conf/new; rm conf/second.yaml; ln -s new conf/second.yaml",
        ),
        ("a file for a link", "rm policy.yaml; echo other > policy.yaml"),
        ("by renaming", "echo other > new; mv -f new policy.yaml"),
    ];
    for (name, script) in ways {
        Attack::new("R06", format!("lead the policy of the run elsewhere: {name}"))
            .proves(&["POL-4 sealed"])
            .held_by(&["guard"])
            .prepare(put_named_policy)
            .flags(named_policy)
            .command(move |_| strings(&["sh", "-c", script]))
            .succeeded(named_policy_says_otherwise)
            .check();
    }
}

/// Proves: POL-4 sealed
#[test]
fn r06_the_users_policy_behind_a_link_into_the_project_cannot_be_written() {
    Attack::new("R06", "write the policy of the user, a link into the project, from inside")
        .proves(&["POL-4 sealed"])
        .held_by(&["read-only-mounts", "guard"])
        .prepare(|world| {
            let target = world.write_in_project("dotfiles/policy.yaml", ORIGINAL);
            let link = world.home().join(".config/palisade/policy.yaml");
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(target, link).unwrap();
        })
        .command(|_| strings(&["sh", "-c", "echo other > dotfiles/policy.yaml"]))
        .succeeded(|world, _| fs::read_to_string(user_policy(world)).is_ok_and(|t| t != ORIGINAL))
        .check();
}

/// Whole: what an earlier command wrote, and somebody names for the next one.
const PLANTED: &str =
    "isolationLevel: LEVEL_0\napprovals: [{what: no-isolation, reason: planted}]\n";

/// Proves: POL-4 writable-file
#[test]
fn r06_a_policy_that_a_command_planted_gives_nothing() {
    let shown = Demonstration::of(
        "R06",
        "plant a policy for the next run to be started with",
        "a file that commands could have written only tightens until its content is trusted",
    );
    let Some(mut shown) = shown.begin() else { return };
    let script = "echo changed > ~/private/file";
    let prepared = || {
        let world = World::new();
        let private = world.write("home/private/file", "untouched");
        (world, private)
    };
    // The same text where no command could have written it.
    let (world, private) = prepared();
    let outside = world.write("outside.yaml", PLANTED).display().to_string();
    world.sandbox_run(["--policy", &outside], ["sh", "-c", script]).run().assert_code(0);
    assert_ne!(fs::read_to_string(&private).unwrap(), "untouched");
    shown.worked_bare();

    let (world, private) = prepared();
    let plant = format!("printf '%s' '{PLANTED}' > made.yaml");
    world.sandbox_run([""; 0], ["sh", "-c", &plant]).run().assert_code(0);
    assert_eq!(fs::read_to_string(world.project().join("made.yaml")).unwrap(), PLANTED);
    let output = world.sandbox_run(["--policy", "made.yaml"], ["sh", "-c", script]).run();
    assert_eq!(fs::read_to_string(&private).unwrap(), "untouched", "{}", output.err());
    for told in ["isolationLevel", "cannot approve", "sandbox policy trust"] {
        assert!(output.err().contains(told), "{told}: {}", output.err());
    }
    shown.held();
}
