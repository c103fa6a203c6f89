//! `sandbox mcp` at its streams: tools, what they reach, questions, and the end.

use std::fs;

use palisade_testkit::World;
use rustix::process::Signal;
use serde_json::json;

use crate::gate::hidden;
use crate::mcp_support::{McpClient, nothing_is_left};
use crate::sessions_support::{Sessions, wait_until};

/// Proves: TOOL-1 mcp, TOOL-3 operations
#[test]
fn tools_work_in_a_sandbox_that_ends_with_the_client() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let mut client = McpClient::start(&world, &[], &json!({}));
    let tools = client.ask("tools/list", &json!({}));
    let bash = client.call("bash", &json!({ "command": "echo out; echo err >&2; pwd; exit 3" }));
    let write = client.call("write", &json!({ "path": "sub/f", "content": "one\ntwo\none\n" }));
    let twice = client.call("edit", &json!({ "path": "sub/f", "oldText": "one", "newText": "1" }));
    let edit = client.call("edit", &json!({ "path": "sub/f", "oldText": "two", "newText": "2" }));
    let read = client.call("read", &json!({ "path": "sub/f", "offset": 2, "limit": 1 }));
    let list = client.call("list", &json!({ "depth": 2 }));
    let grep = client.call("grep", &json!({ "pattern": "^o.e$" }));
    let none = client.call("grep", &json!({ "pattern": "nothing like this" }));
    let wrong = client.call("grep", &json!({ "pattern": "(" }));
    let long = client.call("bash", &json!({ "command": "seq 1 5000", "maxOutputBytes": 300 }));
    let slow = client.call("bash", &json!({ "command": "sleep 60", "background": true }));
    let unknown = client.ask("tools/call", &json!({ "name": "nothing", "arguments": {} }));
    let bad = client.call("bash", &json!({ "cmd": "true" }));
    // What is no message is left out, and the rest goes on.
    client.running.send(b"{no json\n");
    let status = client.call("sandbox_status", &json!({}));
    let told = client.end();

    assert_eq!(told.message(tools)["result"]["tools"].as_array().unwrap().len(), 14);
    let bash = told.data(bash);
    assert_eq!((&bash["exitCode"], &bash["running"]), (&json!(3), &json!(false)));
    let output = format!("out\nerr\n{}\n", world.project().display());
    assert_eq!(bash["output"], output);
    assert_eq!(told.data(write)["size"], 12);
    assert!(told.error(twice).contains("2 times"));
    assert_eq!(told.data(edit)["replacements"], 1);
    assert_eq!(fs::read_to_string(world.project().join("sub/f")).unwrap(), "one\n2\none\n");
    let read = told.data(read);
    assert_eq!((&read["content"], &read["nextLine"]), (&json!("2\n"), &json!(3)));
    assert_eq!(told.data(list)["entries"][1]["path"], "sub/f");
    assert_eq!(told.data(grep)["matches"][1], json!({ "path": "sub/f", "line": 3, "text": "one" }));
    assert_eq!(told.data(none)["matches"], json!([]));
    assert!(told.error(wrong).contains("grep"));
    let long = told.data(long);
    assert_eq!((&long["truncated"], &long["nextCursor"]), (&json!(true), &json!(23893)));
    let output = long["output"].as_str().unwrap();
    assert!(output.starts_with("1\n2\n") && output.ends_with("5000\n"), "{output}");
    assert_eq!(told.data(slow)["running"], true);
    assert_eq!(told.message(unknown)["error"]["code"], -32602);
    assert!(told.error(bad).contains("wrong arguments"));
    assert_eq!(told.data(status)["isRunning"], true);
    assert!(nothing_is_left(&world), "the sandbox has ended, and is forgotten");
}

/// Programs get the class of an error, and what led to it, beside the words for a model.
///
/// Proves: ERR-1 mcp
#[test]
fn errors_have_their_class_and_causes() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let mut client = McpClient::start(&world, &["--transaction"], &json!({}));
    let pattern = client.call("grep", &json!({ "pattern": "(" }));
    let arguments = client.call("bash", &json!({ "cmd": "true" }));
    let missing = client.call("read", &json!({ "path": "nothing" }));
    client.call("write", &json!({ "path": "new", "content": "x" }));
    let alone = client.call("sandbox_apply", &json!({}));
    let told = client.end();
    let class = |id| told.message(id)["result"]["_meta"]["palisade/error"]["kind"].clone();
    assert_eq!((class(pattern), class(arguments)), (json!("validation"), json!("validation")));
    assert_eq!((class(missing), class(alone)), (json!("validation"), json!("security")));

    world.write("policy.yaml", "version: 1\nnetwork: { allowedHosts: [':x'] }\n");
    let mut client = McpClient::start(&world, &["--policy", "../policy.yaml"], &json!({}));
    let policy = client.call("bash", &json!({ "command": "true" }));
    let told = client.end();
    let about = &told.message(policy)["result"]["_meta"]["palisade/error"];
    assert_eq!(about["kind"], "validation", "{about}");
}

/// Some clients ask for them whatever the server declares.
///
/// Proves: TOOL-1 mcp
#[test]
fn methods_of_what_the_server_does_not_offer_do_not_exist() {
    let world = World::new();
    let mut client = McpClient::start(&world, &[], &json!({}));
    let reference = json!({ "type": "ref/prompt", "name": "p" });
    let completion = json!({ "ref": reference, "argument": { "name": "a", "value": "" } });
    let asked = [
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("completion/complete", completion),
        ("logging/setLevel", json!({ "level": "info" })),
    ]
    .map(|(method, parameters)| {
        let id = client.ask(method, &parameters);
        client.running.wait_for_stdout(&format!("\"id\":{id},"));
        (method, id)
    });
    let told = client.end();
    for (method, id) in asked {
        assert_eq!(told.message(id)["error"]["code"], -32601, "{method}");
    }
}

/// The rest of an output is there to be read.
///
/// Proves: TOOL-1 mcp
#[test]
fn output_is_read_on_by_its_bytes_and_a_command_is_killed() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let mut client = McpClient::start(&world, &[], &json!({}));
    client.call("bash", &json!({ "command": "printf abcdef", "maxOutputBytes": 300 }));
    let rest = client.call("bash_output", &json!({ "commandId": 1, "cursor": 2 }));
    client.call("bash", &json!({ "command": "sleep 100", "background": true }));
    let killed = client.call("bash_kill", &json!({ "commandId": 2 }));
    let late = client.call("bash", &json!({ "command": "sleep 100", "timeoutSeconds": 1 }));
    let told = client.end();
    let rest = told.data(rest);
    assert_eq!((&rest["output"], &rest["nextCursor"]), (&json!("cdef"), &json!(6)));
    assert_eq!(told.data(killed)["signal"], 15);
    assert_eq!(told.data(late)["timedOut"], true);
}

/// Proves: TOOL-3 same-plan
#[test]
fn tools_reach_no_further_than_commands_and_a_denial_says_what_to_do() {
    let world = World::new();
    world.write("home/.ssh/id_ed25519", "a key\n");
    let outside = hidden(&world, "notes");
    let _sessions = Sessions::new(&world);
    let key = world.home().join(".ssh/id_ed25519");
    let mut client = McpClient::start(&world, &["--ask-in", "none"], &json!({}));
    let mut calls = Vec::new();
    for path in [key.to_str().unwrap(), &outside] {
        calls.push(client.call("read", &json!({ "path": path })));
        calls.push(client.call("edit", &json!({ "path": path, "oldText": "a", "newText": "b" })));
    }
    let bash = client.call("bash", &json!({ "command": format!("cat {outside}") }));
    let protected = client.call("write", &json!({ "path": ".envrc", "content": "x" }));
    let told = client.end();
    for call in calls {
        let text = told.error(call);
        assert!(!text.contains("a key") && !text.contains("content of"), "{text}");
        assert!(text.contains("A person can"), "{text}");
    }
    let bash = told.message(bash)["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(bash.contains("A person can") && !bash.contains("content of"), "{bash}");
    told.error(protected);
    assert!(!world.project().join(".envrc").exists());
}

/// What a model changed reaches the project only if a person agrees.
///
/// Proves: TOOL-1 mcp, TOOL-2 one-queue
#[test]
fn changes_of_a_transaction_wait_for_a_person() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let mut client = McpClient::start(&world, &["--transaction"], &json!({}));
    client.call("write", &json!({ "path": "new", "content": "text\n" }));
    let diff = client.call("sandbox_diff", &json!({}));
    let kept = client.call("sandbox_checkpoint", &json!({ "message": "first" }));
    client.call("write", &json!({ "path": "new", "content": "other\n" }));
    let back = client.call("sandbox_rollback", &json!({ "checkpoint": 1 }));
    let read = client.call("read", &json!({ "path": "new" }));
    let apply = client.call("sandbox_apply", &json!({}));
    let told = client.end();
    assert!(told.data(diff)["diff"].as_str().unwrap().contains("+text"));
    assert_eq!(told.data(kept)["checkpoint"]["number"], 1);
    assert_eq!(told.data(back)["rolledBack"], true);
    assert_eq!(told.data(read)["content"], "text\n");
    assert!(told.error(apply).contains("a person has to agree"));
    assert!(!world.project().join("new").exists());
    assert!(told.0.err().contains("changes wait in session"), "{}", told.0.err());
    assert!(!nothing_is_left(&world));
}

/// Proves: TOOL-2 one-queue
#[test]
fn a_person_at_the_client_is_asked_and_told_that_it_goes_on() {
    let world = World::new();
    let (wanted, refused) = (hidden(&world, "wanted"), hidden(&world, "refused"));
    let _sessions = Sessions::new(&world);
    let can_ask = json!({ "elicitation": { "form": {} } });
    let mut client = McpClient::start(&world, &["--transaction"], &can_ask);
    let answer = |id: u64, answer: &str| {
        let content = json!({ "answer": answer });
        json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "accept", "content": content } })
    };
    let read = client.begin("bash", &json!({ "command": format!("cat {wanted}") }));
    client.running.wait_for_stdout("\"id\":0,\"method\":\"elicitation/create\"");
    client.running.wait_for_stdout("waiting for a person");
    client.send(&answer(0, "once"));
    client.running.wait_for_stdout(&format!("\"id\":{read},"));
    let denied = client.begin("read", &json!({ "path": refused }));
    client.running.wait_for_stdout("\"id\":1,\"method\":\"elicitation/create\"");
    client.send(&answer(1, "deny"));
    client.running.wait_for_stdout(&format!("\"id\":{denied},"));
    client.call("write", &json!({ "path": "new", "content": "x" }));
    let apply = client.begin("sandbox_apply", &json!({}));
    client.running.wait_for_stdout("\"id\":2,\"method\":\"elicitation/create\"");
    client.send(&answer(2, "yes"));
    client.running.wait_for_stdout(&format!("\"id\":{apply},"));
    let told = client.end();
    assert_eq!(told.data(read)["output"], "content of wanted\n");
    let text = told.error(denied);
    assert!(text.contains("Denied by the sandbox: read") && text.contains("--ro"), "{text}");
    assert_eq!(told.data(apply)["applied"], true);
    assert_eq!(fs::read_to_string(world.project().join("new")).unwrap(), "x");
    assert!(nothing_is_left(&world));
}

/// Proves: TOOL-1 mcp
#[test]
fn a_call_that_is_cancelled_ends_its_command() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let mut client = McpClient::start(&world, &[], &json!({}));
    let started = world.project().join("started");
    let ended = world.project().join("ended");
    let command = "trap 'echo > ended; exit' TERM; echo > started; while :; do sleep 0.1; done";
    let id = client.begin("bash", &json!({ "command": command }));
    wait_until("the command runs", || started.exists());
    let cancelled = json!({ "requestId": id, "reason": "enough" });
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }),
    );
    wait_until("the command was asked to end", || ended.exists());
    drop(client.end());
    assert!(nothing_is_left(&world));
}

/// Proves: TOOL-1 mcp
#[test]
fn a_server_that_is_killed_leaves_nothing_behind() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let mut client = McpClient::start(&world, &[], &json!({}));
    client.begin("bash", &json!({ "command": "echo > started; sleep 1000" }));
    wait_until("the command runs", || world.project().join("started").exists());
    assert!(!nothing_is_left(&world));
    client.running.signal(Signal::KILL);
    drop(client.running.wait());
    wait_until("the sandbox has ended", || nothing_is_left(&world));
}

/// Proves: TOOL-1 mcp
#[test]
fn a_sandbox_that_is_kept_or_was_there_stays() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let mut client = McpClient::start(&world, &["--keep", "--name", "kept"], &json!({}));
    client.call("bash", &json!({ "command": "echo > /tmp/here" }));
    let told = client.end();
    assert!(told.0.err().contains("stays"), "{}", told.0.err());
    let mut client = McpClient::start(&world, &["--session", "kept"], &json!({}));
    let seen = client.call("bash", &json!({ "command": "ls /tmp/here" }));
    assert_eq!(client.end().data(seen)["output"], "/tmp/here\n");
    assert!(sessions.inspect("kept")["supervisor"].is_u64());
    let wrong = world.sandbox(["mcp", "--session", "kept", "--ro", "/x"]).run();
    assert_ne!(wrong.code(), 0);
}
