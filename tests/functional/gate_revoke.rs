//! `sandbox revoke`: what was granted is taken back while the command runs (GATE-4).

use palisade_testkit::{Output, Running, World};
use serde_json::Value;

use crate::gate::{Client, asking, hidden, no, socket};

/// Waits for a line between what is done before and after.
fn waiting(world: &World, before: &str, after: &str) -> Running {
    let script = format!("{before}; echo before; read line; {after}; echo after");
    asking(world, &[], &["sh", "-c", &script]).keep_stdin_open().spawn()
}

fn session(world: &World) -> String {
    socket(world).file_stem().unwrap().to_str().unwrap().to_owned()
}

fn revoke(world: &World, path: &str, options: &[&str]) -> Output {
    let session = session(world);
    world.sandbox(["revoke", &session[session.len() - 8..], path]).args(options).run()
}

fn directory(world: &World) -> String {
    world.outside().join("data").to_str().unwrap().to_owned()
}

/// Proves: GATE-4 revoked
#[test]
fn a_directory_is_gone_and_asked_about_again_and_who_has_it_open_is_told() {
    let world = World::new();
    let first = hidden(&world, "data/first");
    let second = hidden(&world, "data/second");
    let data = directory(&world);
    let mut run = waiting(
        &world,
        &format!("exec 3<{first}; cd {data}; cat {second}"),
        &format!("cat {second}; cat <&3; cat second; ls {data}"),
    );
    let mut client = Client::connect(&world);
    let question = client.question_about(&first);
    client.allow_directory(&question);
    run.wait_for_stdout("content of data/second");
    run.wait_for_stdout("before");

    let output = revoke(&world, &data, &[]);
    output.assert_code(0);
    let told = output.out();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], format!("revoked: {data}"));
    assert!(lines[1].starts_with("still open in sh ("), "{told}");
    assert!(lines[1].ends_with("): descriptor 3; working directory"), "{told}");
    assert_eq!(lines.len(), 2, "{told}");

    run.send(b"go\n");
    let question = client.question_about(&second);
    client.deny(&question, "once");
    let question = client.question_about(&data);
    client.deny(&question, "once");
    let output = run.wait();
    // What was open is read on, and so is what the directory has that the shell is in.
    let expected =
        "content of data/second\nbefore\ncontent of data/first\ncontent of data/second\nafter\n";
    assert_eq!(output.out(), expected, "{}", output.err());
    assert_eq!(client.answer_all(&no("once")).len(), 0, "something else was asked");
}

/// Proves: GATE-4 revoked
#[test]
fn a_file_is_taken_back_in_json_and_in_the_log_and_can_be_granted_again() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let mut run = waiting(&world, &format!("cat {file}"), &format!("cat {file}"));
    let mut client = Client::connect(&world);
    let question = client.question_about(&file);
    client.allow(&question, "session");
    run.wait_for_stdout("before");

    let output = revoke(&world, &file, &["--json"]);
    output.assert_code(0);
    let told: Value = serde_json::from_str(&output.out()).unwrap();
    assert_eq!(told["paths"], serde_json::json!([file]));
    assert_eq!(told["stillOpen"], serde_json::json!([]));
    let again = revoke(&world, &file, &[]);
    again.assert_code(1);
    assert!(again.err().contains("nothing is granted at"), "{}", again.err());

    run.send(b"go\n");
    let question = client.question_about(&file);
    client.allow(&question, "session");
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out().matches("content of wanted").count(), 2, "{}", output.err());
    let shown = world.sandbox(["audit", "show"]).run();
    let log = shown.out();
    let line = log.lines().find(|line| line.contains("revoked")).unwrap_or_default();
    assert!(line.contains(&format!("{file}, by sandbox revoke")), "{log}");
}

/// Proves: GATE-4 revoked
#[test]
fn what_cannot_be_taken_back_says_why() {
    let world = World::new();
    let file = hidden(&world, "data/wanted");
    let mut run = waiting(&world, &format!("cat {file}"), "true");
    let mut client = Client::connect(&world);
    let question = client.question_about(&file);
    client.allow_directory(&question);
    run.wait_for_stdout("before");
    let project = world.project().to_str().unwrap().to_owned();
    let other = world.outside().join("nothing").to_str().unwrap().to_owned();
    for (path, why) in [
        (&project, "was granted when the sandbox was started"),
        (&other, "nothing is granted at"),
        (&file, "is granted as part of"),
    ] {
        let output = revoke(&world, path, &[]);
        output.assert_code(1);
        assert!(output.err().contains(why), "{path}: {}", output.err());
    }
    let output = world.sandbox(["revoke", "no-such-session", &file]).run();
    output.assert_code(125);
    assert!(output.err().contains("no run `no-such-session`; these run:"), "{}", output.err());
    run.send(b"go\n");
    run.wait().assert_code(0);
}

/// Grants within grants, in any order, and a process that is in one of them.
///
/// Proves: GATE-4 revoked
#[test]
fn nothing_is_left_of_grants_within_grants() {
    let world = World::new();
    let inner = hidden(&world, "data/sub/x");
    let deep = hidden(&world, "data/sub/deep/z");
    let outer = hidden(&world, "data/a");
    let data = directory(&world);
    let sub = format!("{data}/sub");
    let mut run = waiting(
        &world,
        &format!("(cd {sub}; cat {inner}; cat x deep/z; cat {outer}; cat {deep}; cat x)"),
        &format!("for file in {inner} {deep} {outer}; do cat $file; done; ls {sub}; ls {data}"),
    );
    let mut client = Client::connect(&world);
    let question = client.question_about(&sub);
    client.allow(&question, "once");
    let question = client.question_about(&inner);
    client.allow_directory(&question);
    let question = client.question_about(&outer);
    client.allow_directory(&question);
    run.wait_for_stdout("before");
    revoke(&world, &data, &[]).assert_code(0);
    run.send(b"go\n");
    let asked = client.answer_all(&no("once"));
    let output = run.wait();
    let after = output.out().split_once("before").unwrap().1.to_owned();
    assert_eq!(after.trim(), "after", "{}", output.err());
    for path in [&inner, &deep, &outer, &sub, &data] {
        assert!(
            asked.iter().any(|question| question["path"] == path.as_str()),
            "{path}: {asked:?}"
        );
    }
}

/// Proves: GATE-4 revoked, GATE-10 read-is-not-write
#[test]
fn what_is_granted_for_reading_again_is_not_written_and_a_file_made_once_is_asked_about() {
    let world = World::new();
    let file = hidden(&world, "data/file");
    let made = world.outside().join("data/made").to_str().unwrap().to_owned();
    let mut run = waiting(
        &world,
        &format!("echo more >>{file}; echo once >{made}"),
        &format!("cat {file}; echo again >>{file}; echo again >>{made}"),
    );
    let mut client = Client::connect(&world);
    let question = client.question_about(&file);
    client.allow(&question, "session");
    let question = client.question();
    client.allow(&question, "once");
    run.wait_for_stdout("before");
    revoke(&world, &directory(&world), &[]).assert_code(0);
    run.send(b"go\n");
    let question = client.question_about(&file);
    assert_eq!(question["access"], "read");
    client.allow(&question, "session");
    let asked = client.answer_all(&no("once"));
    run.wait().assert_code(0);
    assert!(asked.iter().all(|question| question["access"] == "write"), "{asked:?}");
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "content of data/file\nmore\n");
    assert_eq!(std::fs::read_to_string(&made).unwrap(), "once\n");
}
