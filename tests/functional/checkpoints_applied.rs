//! A kept state is applied, and not what the session has made of it since (LIFE-5, TOOL-2).

use std::fs;

use palisade_testkit::World;
use serde_json::json;

use crate::checkpoints::{keep, project, script};
use crate::mcp_support::McpClient;
use crate::sessions_support::Sessions;

/// Proves: LIFE-5 applied
#[test]
fn a_checkpoint_is_applied_whatever_the_session_changed_since() {
    let world = World::new();
    project(&world);
    let sessions = Sessions::new(&world);
    let session = sessions.create(&["--transaction"]);
    script(&sessions, &session, "echo seen > changed; echo new > new; rm -r dir");
    assert_eq!(keep(&sessions, &session), "1");
    script(&sessions, &session, "echo unseen > changed; echo unseen > other");
    sessions.sandbox(&["apply", "--checkpoint", "1", &session]).assert_code(0);
    let read = |name: &str| fs::read_to_string(world.project().join(name)).ok();
    assert_eq!(read("changed").as_deref(), Some("seen\n"));
    assert_eq!(read("new").as_deref(), Some("new\n"));
    assert_eq!((read("other"), read("dir/deep/file")), (None, None));
    // What came after it still waits.
    let left = sessions.sandbox(&["diff", "--name-only", &session]);
    left.assert_code(0);
    assert_eq!(left.out().lines().collect::<Vec<_>>(), ["changed", "other"]);
    sessions.sandbox(&["apply", &session]).assert_code(0);
    assert_eq!(read("changed").as_deref(), Some("unseen\n"));
    let missing = sessions.sandbox(&["apply", "--checkpoint", "7", &session]);
    missing.assert_code(125);
    assert!(missing.err().contains("has no checkpoint 7"), "{}", missing.err());
}

/// Where the project is a copy, a state has the host's files of the start, too.
#[test]
fn a_checkpoint_of_a_copy_is_not_applied() {
    let world = World::new();
    project(&world);
    let sessions = Sessions::new(&world);
    let session = sessions.create(&["--transaction", "--set", "filesystem.transactionBy=\"copy\""]);
    script(&sessions, &session, "echo seen > changed");
    keep(&sessions, &session);
    let refused = sessions.sandbox(&["apply", "--checkpoint", "1", &session]);
    refused.assert_code(125);
    assert!(refused.err().contains("works in a copy"), "{}", refused.err());
    sessions.sandbox(&["apply", &session]).assert_code(0);
}

/// What is left of a checkpoint waits like anything else that nobody applied.
///
/// Proves: LIFE-5 applied
#[test]
fn a_part_of_a_checkpoint_leaves_the_rest_of_it() {
    let world = World::new();
    project(&world);
    let sessions = Sessions::new(&world);
    let session = sessions.create(&["--transaction"]);
    script(&sessions, &session, "echo a > a; echo b > b");
    assert_eq!(keep(&sessions, &session), "1");
    sessions.sandbox(&["rollback", &session, "0"]).assert_code(0);
    sessions.sandbox(&["kill", &session]).assert_code(0);
    sessions.sandbox(&["apply", "--checkpoint", "1", &session, "--", "a"]).assert_code(0);
    assert!(world.project().join("a").exists() && !world.project().join("b").exists());
    sessions.sandbox(&["apply", "--checkpoint", "1", &session]).assert_code(0);
    assert_eq!(fs::read_to_string(world.project().join("b")).unwrap(), "b\n");
}

/// Also two files of the same content that became one.
///
/// Proves: LIFE-5 applied
#[test]
fn a_checkpoint_shows_all_that_is_applied() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    for name in ["one", "two"] {
        world.write_in_project(name, "");
    }
    let same_time = "touch -d @1000000000 one two";
    world.bare("sh").args(["-c", same_time]).cwd(world.project()).run().assert_code(0);
    let session = sessions.create(&["--transaction"]);
    script(&sessions, &session, &format!("rm two; ln one two; {same_time}"));
    assert_eq!(keep(&sessions, &session), "1");
    let diff = |arguments: &[&str]| {
        let output = sessions.sandbox(&[&["diff"][..], arguments].concat());
        output.assert_code(0);
        output.out().into_owned()
    };
    let shown: serde_json::Value =
        serde_json::from_str(&diff(&["--json", &session, "0..1"])).unwrap();
    let shown: Vec<_> = shown["changes"].as_array().unwrap().iter().map(|it| &it["path"]).collect();
    assert_eq!(shown, [&json!("two")]);
    assert_eq!(diff(&[&session, "0..1"]), "# two is the same file as one now\n");
    assert_eq!(diff(&["--name-status", &session]), "M\ttwo\n");
    let applied = sessions.sandbox(&["apply", "--json", "--checkpoint", "1", &session]);
    applied.assert_code(0);
    let applied: serde_json::Value = serde_json::from_str(&applied.out()).unwrap();
    assert_eq!(applied["applied"], json!(["two"]));
}

/// A question that is asked over and over takes the place of a few, and is nothing that somebody would miss.
///
/// Proves: LIFE-5 applied
#[test]
fn a_state_that_was_kept_for_a_question_gives_way_to_later_ones() {
    let world = World::new();
    project(&world);
    let sessions = Sessions::new(&world);
    let session = sessions.create(&["--transaction"]);
    script(&sessions, &session, "echo new > new");
    for _ in 0..6 {
        sessions.sandbox(&["checkpoint", "--for-review", &session]).assert_code(0);
    }
    let kept = sessions.sandbox(&["checkpoints", "--json", &session]);
    let kept: serde_json::Value = serde_json::from_str(&kept.out()).unwrap();
    let kept = kept["checkpoints"].as_array().unwrap();
    assert_eq!(kept.len(), 4, "{kept:?}");
    assert_eq!((&kept[0]["number"], &kept[0]["reason"]), (&json!(3), &json!("forReview")));
    sessions.sandbox(&["rollback", &session, "0"]).assert_code(0);
    sessions.sandbox(&["kill", &session]).assert_code(0);
    sessions.sandbox(&["apply", "--checkpoint", "1", &session]).assert_code(125);
}

/// A person is not asked about what cannot be applied.
///
/// Proves: TOOL-2 as-shown
#[test]
fn nobody_is_asked_about_a_state_that_cannot_be_applied() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let can_ask = json!({ "elicitation": { "form": {} } });
    let by_copy = ["--transaction", "--set", "filesystem.transactionBy=\"copy\""];
    let mut client = McpClient::start(&world, &by_copy, &can_ask);
    client.call("write", &json!({ "path": "new", "content": "text" }));
    let apply = client.call("sandbox_apply", &json!({}));
    let told = client.end();
    assert!(told.error(apply).contains("works in a copy"), "{}", told.error(apply));
    assert!(!told.0.out().contains("elicitation/create"), "{}", told.0.out());
}

/// Proves: TOOL-2 as-shown
#[test]
fn what_a_command_writes_while_a_person_is_asked_is_not_applied() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let can_ask = json!({ "elicitation": { "form": {} } });
    let mut client = McpClient::start(&world, &["--transaction"], &can_ask);
    client.call("write", &json!({ "path": "new", "content": "shown" }));
    let apply = client.begin("sandbox_apply", &json!({}));
    client.running.wait_for_stdout("\"id\":0,\"method\":\"elicitation/create\"");
    let later = client.call("write", &json!({ "path": "new", "content": "not shown" }));
    let content = json!({ "answer": "yes" });
    let answer = json!({ "action": "accept", "content": content });
    client.send(&json!({ "jsonrpc": "2.0", "id": 0, "result": answer }));
    client.running.wait_for_stdout(&format!("\"id\":{apply},"));
    let read = client.call("read", &json!({ "path": "new" }));
    let told = client.end();
    told.data(later);
    assert_eq!(told.data(read)["content"], "not shown", "it was written in time");
    assert_eq!(told.data(apply)["applied"], true);
    assert_eq!(fs::read_to_string(world.project().join("new")).unwrap(), "shown");
}
