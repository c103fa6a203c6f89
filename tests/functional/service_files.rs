//! Files of a sandbox over HTTP: read, written, listed, renamed, removed and watched, as its commands could (TOOL-3).

use std::fs;

use palisade_testkit::World;
use serde_json::json;

use crate::gate::{Client, hidden};
use crate::service_support::{Answer, Server, answer};
use crate::sessions_support::{Sessions, wait_until};

fn put(server: &Server<'_>, path: &str, content: &str, headers: &[&str]) -> Answer {
    let path = format!("/v1/sandboxes/work/files/content?{path}");
    let curl = server.curl(&path).args(["-X", "PUT", "--data-binary", "@-"]);
    let curl = headers.iter().fold(curl, |curl, header| curl.args(["-H", header]));
    answer(curl.stdin(content))
}

fn read(server: &Server<'_>, path: &str) -> Answer {
    server.get(&format!("/v1/sandboxes/work/files/content?path={path}"))
}

/// Proves: TOOL-3 operations, TOOL-1 http
#[test]
fn files_are_written_read_listed_renamed_and_removed() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = Server::start(&world, &[]);
    server.create(&json!({ "name": "work" }));
    let made = put(&server, "path=sub/file&makeParents=true&mode=0640", "content", &[]).expect(200);
    assert_eq!((&made["size"], &made["mode"]), (&json!(7), &json!("0640")));
    assert_eq!(fs::read_to_string(world.project().join("sub/file")).unwrap(), "content");
    assert_eq!(read(&server, "sub/file").body, "content");
    let part = server.curl("/v1/sandboxes/work/files/content?path=sub/file");
    let part = answer(part.args(["-H", "Range: bytes=3-5"]));
    assert_eq!((part.status, part.body.as_str()), (206, "ten"));
    let none = server.curl("/v1/sandboxes/work/files/content?path=sub/file");
    answer(none.args(["-H", "Range: bytes=7-"])).expect_problem(416, "validation");
    put(&server, "path=sub/file&ifExists=append", "!", &[]).expect(200);
    put(&server, "path=sub/file&ifExists=refuse", "?", &[]).expect_problem(409, "validation");
    assert_eq!(read(&server, "sub/file").body, "content!");

    let seen = server.get("/v1/sandboxes/work/files?path=sub/file").expect(200);
    let version = format!("If-Match: {}", seen["etag"].as_str().unwrap());
    put(&server, "path=sub/file", "first", &[&version]).expect(200);
    put(&server, "path=sub/file", "second", &[&version]).expect_problem(412, "validation");
    assert_eq!(read(&server, "sub/file").body, "first");

    let directory = json!({ "path": "a/b", "makeParents": true });
    let made = server.post("/v1/sandboxes/work/files/directories", &directory).expect(201);
    assert_eq!(made["type"], "directory");
    let renaming = json!({ "from": "sub/file", "to": "a/b/moved" });
    server.post("/v1/sandboxes/work/files/rename", &renaming).expect(200);
    let listed = server.get("/v1/sandboxes/work/files/entries?path=a&depth=9").expect(200);
    let mut paths: Vec<_> = listed["entries"].as_array().unwrap().iter().collect();
    paths.sort_by_key(|entry| entry["path"]["data"].as_str().unwrap().len());
    let paths: Vec<_> = paths.iter().map(|entry| entry["path"]["data"].as_str().unwrap()).collect();
    assert_eq!(paths, ["b", "b/moved"]);
    server.delete("/v1/sandboxes/work/files?path=a").expect_problem(409, "validation");
    assert_eq!(server.delete("/v1/sandboxes/work/files?path=a&recursive=true").status, 204);
    server.get("/v1/sandboxes/work/files?path=a").expect_problem(404, "validation");
    read(&server, "sub").expect_problem(422, "validation");
    server.get("/v1/sandboxes/nobody/files?path=a").expect_problem(404, "validation");
    server.get("/v1/sandboxes/work/files").expect_problem(400, "validation");
}

/// What a command cannot do there, a request cannot do either.
///
/// Proves: TOOL-3 same-plan
#[test]
fn requests_reach_no_further_than_commands() {
    let world = World::new();
    world.write("home/.ssh/id_ed25519", "a key\n");
    let outside = hidden(&world, "notes");
    let _sessions = Sessions::new(&world);
    let server = Server::start(&world, &[]);
    server.create(&json!({ "name": "work", "ask": "never" }));
    let key = world.home().join(".ssh/id_ed25519");
    for path in [key.to_str().unwrap(), &outside] {
        let ended = server.run("work", &["cat", path]);
        assert_ne!(ended["exitCode"], 0, "{ended}");
        let answer = read(&server, path);
        assert!([403, 404].contains(&answer.status), "{path}: {}", answer.body);
        assert!(!answer.body.contains("a key") && !answer.body.contains("content of"));
    }
    for path in [".envrc", "/usr/bin/made", key.to_str().unwrap()] {
        let answer = put(&server, &format!("path={path}"), "x", &[]);
        assert!([403, 404].contains(&answer.status), "{path}: {}", answer.body);
    }
    assert!(!world.project().join(".envrc").exists());
}

/// Proves: TOOL-3 operations
#[test]
fn changes_are_followed_and_a_client_that_is_gone_leaves_nobody() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let server = Server::start(&world, &[]);
    server.create(&json!({ "name": "work" }));
    let watch = server.curl("/v1/sandboxes/work/files/watch?path=.&recursive=true").arg("-N");
    let watching = watch.spawn();
    watching.wait_for_stdout("event: watching");
    server.run("work", &["sh", "-c", "mkdir sub && echo x > sub/file"]);
    watching.wait_for_stdout("sub/file");
    watching.signal(rustix::process::Signal::TERM);
    drop(watching.wait());
    let commands = || sessions.inspect("work")["status"]["commands"].clone();
    wait_until("nobody serves files any longer", || commands() == json!([]));
}

/// A request that waits for a person, and whose client goes away meanwhile.
///
/// Proves: TOOL-3 same-plan
#[test]
fn a_request_waits_for_an_answer_and_is_given_up_with_its_client() {
    let world = World::new();
    let (wanted, given_up) = (hidden(&world, "wanted"), hidden(&world, "given-up"));
    let sessions = Sessions::new(&world);
    let server = Server::start(&world, &[]);
    server.create(&json!({ "name": "work", "ask": "always" }));
    let content = |path: &str| format!("/v1/sandboxes/work/files/content?path={path}");
    let reading = server.curl(&content(&wanted)).spawn();
    let mut client = Client::connect(&world);
    let question = client.question_about(&wanted);
    client.allow(&question, "once");
    assert_eq!(reading.wait().out(), "content of wanted\n");
    let waiting = server.curl(&content(&given_up)).spawn();
    client.question_about(&given_up);
    waiting.signal(rustix::process::Signal::TERM);
    drop(waiting.wait());
    let commands = || sessions.inspect("work")["status"]["commands"].clone();
    wait_until("nobody serves files any longer", || commands() == json!([]));
}
