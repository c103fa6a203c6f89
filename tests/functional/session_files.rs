//! Files of a session from outside (`sandbox cp`): what is read and written there obeys the plan that commands obey (TOOL-3).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use palisade_testkit::{Output, World};

use crate::gate::{Client, hidden};
use crate::sessions_support::{Sessions, wait_until};

fn copy(sessions: &Sessions<'_>, from: &str, to: &str) -> Output {
    sessions.sandbox(&["cp", from, to])
}

/// Proves: TOOL-3 same-plan
#[test]
fn a_file_goes_in_and_comes_out_as_it_was() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let work = sessions.create(&["--name", "work"]);
    let content: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
    let given = world.write("outside/given", &content);
    fs::set_permissions(&given, fs::Permissions::from_mode(0o750)).unwrap();
    fs::create_dir(world.project().join("sub")).unwrap();
    copy(&sessions, given.to_str().unwrap(), "work:sub/").assert_code(0);
    assert_eq!(fs::read(world.project().join("sub/given")).unwrap(), content);
    let mode = fs::metadata(world.project().join("sub/given")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    let back = world.path().join("outside/back");
    copy(&sessions, &format!("{work}:sub/given"), back.to_str().unwrap()).assert_code(0);
    assert_eq!(fs::read(&back).unwrap(), content);
    let streamed = world.sandbox(["cp", "-", "work:streamed"]).stdin("typed\n").run();
    streamed.assert_code(0);
    assert_eq!(copy(&sessions, "work:streamed", "-").out(), "typed\n");
    let kept = world.sandbox(["cp", "-n", "-", "work:streamed"]).stdin("other").run();
    kept.assert_code(125);
    assert!(kept.err().contains("EEXIST"), "{}", kept.err());
    let kept = sessions.sandbox(&["cp", "-n", "work:streamed", back.to_str().unwrap()]);
    kept.assert_code(125);
    assert_eq!(fs::read(&back).unwrap(), content);
    let names = fs::read_dir(world.path().join("outside")).unwrap().count();
    assert_eq!(names, 2, "nothing else is left beside the files");
}

/// What a command cannot read, nobody reads through the session, and the same for writing.
///
/// Proves: TOOL-3 same-plan
#[test]
fn what_commands_cannot_do_is_not_done_for_a_client_either() {
    let world = World::new();
    world.write("home/.ssh/id_ed25519", "a key\n");
    let outside = hidden(&world, "notes");
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "work", "--on-ask", "deny"]);
    let key = world.home().join(".ssh/id_ed25519");
    let hook = ".git/hooks/pre-commit";
    sessions.output_of("work", &["git", "init", "-q", "."]);
    for path in [key.to_str().unwrap(), &outside] {
        let command = sessions.sandbox(&["exec", "work", "--", "cat", path]);
        assert_ne!(command.code(), 0, "{path}");
        let copied = copy(&sessions, &format!("work:{path}"), "-");
        copied.assert_code(125);
        assert_eq!(copied.out(), "", "{path}");
        let why = if command.err().contains("No such file") { "ENOENT" } else { "EACCES" };
        assert!(copied.err().contains(why), "{} {}", command.err(), copied.err());
    }
    for path in [hook, ".envrc", "/usr/bin/made", key.to_str().unwrap(), &outside] {
        let script = format!("echo x > {path}");
        assert_ne!(sessions.sandbox(&["exec", "work", "--", "sh", "-c", &script]).code(), 0);
        let copied = world.sandbox(["cp", "-", &format!("work:{path}")]).stdin("x").run();
        copied.assert_code(125);
        assert!(copied.err().contains("(E"), "{path}: {}", copied.err());
    }
    assert!(!world.project().join(hook).exists());
    assert!(!world.project().join(".envrc").exists());
    assert_eq!(fs::read_to_string(&outside).unwrap(), "content of notes\n");
}

/// Proves: TOOL-3 same-plan
#[test]
fn a_question_makes_a_copy_wait_as_it_makes_a_command_wait() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let sessions = Sessions::new(&world);
    let work = sessions.create(&["--on-ask", "wait"]);
    let copying = world.sandbox(["cp", &format!("{work}:{file}"), "-"]).spawn();
    let mut client = Client::connect(&world);
    let question = client.question_about(&file);
    client.allow(&question, "once");
    let output = copying.wait();
    output.assert_code(0);
    assert_eq!(output.out(), "content of wanted\n");
}

/// Proves: TOOL-3 same-plan
#[test]
fn in_a_transaction_a_copy_waits_with_the_other_changes() {
    let world = World::new();
    world.write_in_project("file", "old\n");
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "work", "--transaction"]);
    world.sandbox(["cp", "-", "work:file"]).stdin("new\n").run().assert_code(0);
    assert_eq!(sessions.output_of("work", &["cat", "file"]), "new\n");
    assert_eq!(fs::read_to_string(world.project().join("file")).unwrap(), "old\n");
    let diff = sessions.sandbox(&["diff", "work"]);
    assert!(diff.out().contains("+new"), "{}", diff.out());
}

/// Bad input says what is wrong, and where.
#[test]
fn what_cannot_be_copied_says_why() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "work"]);
    let outside = world.path().join("outside");
    for (from, to, why) in [
        ("work:missing", "-", "missing: No such file or directory (ENOENT)"),
        ("work:.", "-", "(EISDIR)"),
        ("work:/dev/zero", "-", "(EOPNOTSUPP)"),
        (outside.to_str().unwrap(), "work:", "is a directory"),
        ("a", "b", "neither place is in a session"),
        ("work:a", "work:b", "both places are in a session"),
        ("nobody:a", "-", "nobody"),
        ("-", "work:", "needs a name"),
        ("-", "work:no/such/directory", "(ENOENT)"),
    ] {
        let output = world.sandbox(["cp", from, to]).stdin("x").run();
        output.assert_code(125);
        assert!(output.err().contains(why), "{from} {to}: {}", output.err());
    }
    wait_until("nobody serves any longer", || {
        sessions.inspect("work")["status"]["commands"] == serde_json::json!([])
    });
}
