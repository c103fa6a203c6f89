//! What a person can get wrong: a clear word, a code that is not the command's, and nothing runs
//! (LIFE-3).

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use palisade_testkit::{World, am_root};

use crate::inside::{host_script, inside, private_mounts};

/// Proves: LIFE-3 bad-input, LIFE-3 own-exit-codes
#[test]
fn commands_that_cannot_be_started_say_why() {
    let world = World::new();
    world.write_in_project("plain", "no program\n");
    for (command, code, word) in [
        ("no-such-program", 127, "no-such-program"),
        ("/no/such/program", 127, "/no/such/program"),
        ("./plain", 126, "plain"),
        ("/usr", 126, "/usr"),
        ("./plain/below", 127, "plain/below"),
        ("", 127, "command"),
    ] {
        let output = world.sandbox_run([""; 0], [command]).run();
        output.assert_code(code);
        assert!(output.err().starts_with("sandbox: "), "{command:?}: {}", output.err());
        assert!(output.err().contains(word), "{command:?}: {}", output.err());
    }
}

/// Proves: LIFE-3 bad-input
#[test]
fn wrong_options_never_have_a_code_of_the_commands() {
    let world = World::new();
    for arguments in [
        &["run"][..],
        &["run", "--"],
        &["run", "--no-such-option", "--", "true"],
        &["run", "--level"],
        &["run", "--level", "9", "--", "true"],
        &["run", "--mode", "sometimes", "--", "true"],
        &["run", "--static", "--mode", "dynamic", "--", "true"],
        &["run", "--timeout", "soon", "--", "true"],
        &["run", "--preset", "no-such-preset", "--", "true"],
        &["run", "--env", "NOT_SET_ANYWHERE", "--", "true"],
        &["run", "--env-mode", "dirty", "--", "true"],
        &["run", "--ro", "/no/such/path", "--", "true"],
        &["run", "--overlay", "/no/such/path", "--", "true"],
        &["run", "--policy", "/no/such/policy.yaml", "--", "true"],
        &["run", "--policy", "/", "--", "true"],
        &["run", "--policy", "/dev/zero", "--", "true"],
        &["run", "--hostname", "not a name!", "--", "true"],
        &["run", "--ro", "~nobody/x", "--", "true"],
        &["run", "--ro", "$NOT_SET_ANYWHERE/x", "--", "true"],
        &["no-such-command"],
    ] {
        let output = world.sandbox(arguments).run();
        output.assert_code(125);
        assert!(output.err().starts_with("sandbox: "), "{arguments:?}: {}", output.err());
        assert_eq!(output.out(), "", "{arguments:?}");
    }
}

/// Proves: LIFE-3 bad-input
#[test]
fn a_wrong_value_is_told_what_is_right() {
    let world = World::new();
    for (flags, word) in [
        (&["--env", "=x"][..], "write NAME=VALUE"),
        (&["--level", "1", "--hostname", "x"], "UTS namespace of LEVEL_2"),
        (&["--no-userns"], "--level 1"),
        (&["--time-offset", "99999999999"], "4611686018"),
        (&["--report", "-"], "--json"),
    ] {
        let output = world.sandbox(["run"]).args(flags).args(["--", "touch", "ran"]).run();
        output.assert_code(125);
        assert!(output.err().contains(word), "{flags:?}: {}", output.err());
    }
    let level = world.sandbox(["run", "--level", "3", "--", "touch", "ran"]).run();
    assert!(!level.err().contains("nearest"), "{}", level.err());
    assert_eq!(fs::read_dir(world.project()).unwrap().count(), 0);
    let trusted = world.sandbox(["policy", "trust", "--list"]).run();
    assert_eq!(trusted.out(), "nothing is trusted\n");
}

/// Proves: LIFE-3 bad-input
#[test]
fn a_policy_that_may_not_be_read_stops_the_run() {
    let world = World::new();
    let policy = world.write("home/.config/palisade/policy.yaml", "view: host\n");
    fs::write(policy.with_file_name("policy.json"), "{}").unwrap();
    let two = inside(&world, &[], "touch ran");
    two.assert_code(125);
    assert!(two.err().contains("two policies"), "{}", two.err());
    fs::remove_file(policy.with_file_name("policy.json")).unwrap();

    fs::write(&policy, [0xff, 0xfe, 0x00]).unwrap();
    inside(&world, &[], "touch ran").assert_code(125);
    if !am_root() {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&policy, fs::Permissions::from_mode(0o000)).unwrap();
        let closed = inside(&world, &[], "touch ran");
        closed.assert_code(125);
        assert!(closed.err().contains("Permission denied"), "{}", closed.err());
    }
    assert!(!world.project().join("ran").exists());
}

/// Proves: FS-3 strange-paths, LIFE-3 bad-input
#[test]
fn arguments_and_names_may_be_any_bytes() {
    let world = World::new();
    let odd = OsStr::from_bytes(b"odd \xff\xfe\n\t'\"$(x)");
    let output = world.sandbox_run([""; 0], [OsStr::new("printf"), OsStr::new("%s"), odd]).run();
    output.assert_code(0);
    assert_eq!(output.stdout, odd.as_bytes());

    let directory = world.project().join(OsStr::from_bytes(b"dir\xff"));
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join(OsStr::from_bytes(b"file\xfe")), "content").unwrap();
    world.git_init();
    let output = world.sandbox_run([""; 0], ["sh", "-c", "cat ./*; pwd"]).cwd(&directory).run();
    output.assert_code(0);
    assert!(output.stdout.starts_with(b"content"));
    assert!(output.stdout.ends_with(b"dir\xff\n"), "{:?}", output.stdout);
}

/// Proves: FS-3 strange-paths
#[test]
fn a_command_named_like_an_option_is_a_command() {
    let world = World::new();
    let tool = world.write_in_project("--level", "#!/bin/sh\necho \"ran $*\"\n");
    fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = world
        .sandbox_run([""; 0], ["--level", "--network", "host", "--"])
        .env("PATH", format!("{}:/usr/bin:/bin", world.project().display()))
        .run();
    output.assert_code(0);
    assert_eq!(output.out(), "ran --network host --\n");
}

/// Proves: LIFE-3 run
#[test]
fn closed_streams_are_no_reason_to_fail() {
    let world = World::new();
    for (closing, expected) in [("<&-", 0), (">&-", 0), ("2>&-", 0), ("<&- >&- 2>&-", 0)] {
        let script = format!("\"$PALISADE\" run -- sh -c 'touch ran; exit 0' {closing}");
        let output = host_script(&world, &script).run();
        output.assert_code(expected);
        let ran = world.project().join("ran");
        assert!(ran.exists(), "{closing}");
        fs::remove_file(ran).unwrap();
    }
    // What would have been descriptor 0, 1 or 2 must not be a file of the sandbox's own.
    let script = "\"$PALISADE\" run -- sh -c 'ls -l /proc/self/fd > fds' <&- >&- 2>&-";
    host_script(&world, script).run().assert_code(0);
    let open = fs::read_to_string(world.project().join("fds")).unwrap();
    assert!(
        !open.contains("audit") && !open.contains("socket") && !open.contains("mount"),
        "{open}"
    );
}

/// Proves: LIFE-3 bad-input
#[test]
fn without_proc_it_says_so() {
    if !am_root() {
        eprintln!("skipped: only root can take /proc away");
        return;
    }
    let world = World::new();
    for hide in ["umount -l /proc", "mount -t tmpfs none /proc"] {
        let script = format!("{hide}; set +e; \"$PALISADE\" run -- touch ran; echo \"= $?\"");
        let output = private_mounts(&world, &script).run();
        assert_eq!(output.out(), "= 125\n", "{hide}: {}", output.err());
        assert!(output.err().contains("/proc"), "{hide}: {}", output.err());
        assert!(!world.project().join("ran").exists());
    }
}

/// Proves: LIFE-3 bad-input
#[test]
fn a_sandbox_inside_a_sandbox_is_refused_with_a_reason() {
    let world = World::new();
    let copy = world.project().join("sandbox");
    fs::copy(palisade_testkit::sandbox_program(), &copy).unwrap();
    let copy = copy.to_str().unwrap();
    let output = world
        .sandbox_run(["--env", "XDG_STATE_HOME=/tmp/state"], [copy, "run", "--", "touch", "ran"])
        .run();
    output.assert_code(125);
    assert!(output.err().contains("sandbox: "), "{}", output.err());
    assert!(output.err().contains("not possible inside another sandbox"), "{}", output.err());
    assert!(!world.project().join("ran").exists());
}
