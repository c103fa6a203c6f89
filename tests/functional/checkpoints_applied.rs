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
