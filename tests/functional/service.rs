//! `sandbox serve`: sandboxes and their commands over HTTP, with a real client.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt as _, symlink};

use palisade_testkit::{World, sandbox_program};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::service_support::{Server, answer, events, written};
use crate::sessions_support::{Sessions, wait_until};

/// Proves: TOOL-1 http, TOOL-1 http-commands
#[test]
fn a_sandbox_is_made_used_and_ended_over_http() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let server = Server::start(&world, &[]);
    assert_eq!(server.get("/healthz").body, "ok\n");
    assert_eq!(server.get("/readyz").body, "ok\n");
    let id = server.create(&json!({ "name": "work", "timeToLiveSeconds": 600 }));
    let seen = server.get("/v1/sandboxes/work").expect(200);
    assert_eq!((&seen["id"], &seen["isRunning"]), (&json!(id), &json!(true)));
    assert!(seen["status"]["expiresInMs"].as_u64().unwrap() > 500_000, "{seen}");
    assert_eq!(seen["project"], json!(world.project()));
    let listed = server.get("/v1/sandboxes").expect(200);
    assert_eq!(listed["sandboxes"][0]["name"], "work");
    assert!(sessions.sandbox(&["ps"]).out().contains("work"), "it is a session like any other");

    let body = json!({
        "argv": ["sh", "-c", "cat; echo $MORE; pwd; echo err >&2; exit 3"],
        "environment": { "MORE": "this" },
        "cwd": "/usr",
        "stdin": "in\n",
        "wait": true,
    });
    let ended = server.post("/v1/sandboxes/work/commands", &body).expect(200);
    assert_eq!(ended["exitCode"], 3);
    assert_eq!(ended["stdout"], json!({ "data": "in\nthis\n/usr\n", "encoding": "text" }));
    assert_eq!(ended["stderr"]["data"], "err\n");
    let bytes = server.run("work", &["printf", "\\377\\n"]);
    assert_eq!(bytes["stdout"], json!({ "data": "/wo=", "encoding": "base64" }));
    let killed = server.run("work", &["sh", "-c", "kill -9 $$"]);
    assert_eq!((&killed["exitCode"], &killed["signal"]), (&json!(137), &json!(9)));
    let long =
        json!({ "argv": ["sh", "-c", "yes | head -c 300000"], "wait": true, "maxOutputBytes": 10 });
    let long = server.post("/v1/sandboxes/work/commands", &long).expect(200);
    assert_eq!(
        (&long["stdout"]["data"], &long["stdoutBytes"]),
        (&json!("y\ny\ny\ny\ny\n"), &json!(300_000))
    );
    let slow = json!({ "argv": ["sleep", "100"], "wait": true, "timeoutSeconds": 1 });
    let slow = server.post("/v1/sandboxes/work/commands", &slow).expect(200);
    assert_eq!((&slow["timedOut"], &slow["signal"]), (&json!(true), &json!(15)));
    let missing = json!({ "argv": ["no-such-program"], "wait": true });
    let missing = server.post("/v1/sandboxes/work/commands", &missing);
    missing.expect_problem(422, "validation");
    assert_eq!(missing.json()["exitCode"], 127);

    let more = server.post("/v1/sandboxes/work/extend", &json!({ "seconds": 6000 })).expect(200);
    assert!(more["status"]["expiresInMs"].as_u64().unwrap() > 5_000_000, "{more}");
    server.delete("/v1/sandboxes/work").expect(204);
    let gone = server.get(&format!("/v1/sandboxes/{id}"));
    assert!(gone.expect_problem(404, "validation").contains(&id));
    assert!(!sessions.directory(&id).exists());
}

/// Proves: TOOL-1 http-commands
#[test]
fn a_command_in_the_background_is_read_by_cursors_typed_into_and_cancelled() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let server = Server::start(&world, &[]);
    server.create(&json!({ "name": "s" }));
    let start = |body: Value| {
        let started = server.post("/v1/sandboxes/s/commands", &body).expect(201);
        format!("/v1/sandboxes/s/commands/{}", started["number"])
    };
    let reader = ["sh", "-c", "while read line; do echo got $line; done; echo over; exit 5"];
    let command = start(json!({ "argv": reader, "stdin": "one\n", "keepStdinOpen": true }));
    server.post(&format!("{command}/stdin"), &json!({ "data": "two\n" })).expect(204);
    let last = json!({ "data": "dGhyZWUK", "encoding": "base64", "close": true });
    server.post(&format!("{command}/stdin"), &last).expect(204);
    let stream = server.get(&format!("{command}/output"));
    assert_eq!(stream.content_type, "text/event-stream");
    assert_eq!(written(&stream.body), "got one\ngot two\ngot three\nover\n");
    let (name, end) = events(&stream.body).pop().unwrap();
    assert_eq!((name.as_str(), &end["exitCode"]), ("end", &json!(5)));
    let rest = server.get(&format!("{command}/output?since=18&follow=false"));
    assert_eq!(written(&rest.body), "t three\nover\n");
    let header = ["-H", "Last-Event-ID: 26"];
    let rest = answer(server.curl(&format!("{command}/output")).args(header));
    assert_eq!(written(&rest.body), "over\n");
    server
        .post(&format!("{command}/stdin"), &json!({ "data": "late" }))
        .expect_problem(409, "validation");

    let deaf = start(json!({ "argv": ["sleep", "1000"], "keepStdinOpen": true }));
    let much = json!({ "data": "x".repeat(64 << 10) });
    let mut sent = (0..10).map(|_| server.post(&format!("{deaf}/stdin"), &much));
    let refused = sent.find(|answer| answer.status != 204).unwrap();
    assert!(refused.expect_problem(409, "validation").contains("has not read"));
    let too_much = json!({ "data": "x".repeat((64 << 10) + 1) });
    server.post(&format!("{deaf}/stdin"), &too_much).expect_problem(413, "resource");
    server.delete(&format!("{deaf}?kill=true")).expect(204);

    let shell = json!({ "argv": ["sh"], "terminal": { "rows": 24, "columns": 80 } });
    let shell = start(shell);
    let resized = json!({ "rows": 50, "columns": 132 });
    server.post(&format!("{shell}/resize"), &resized).expect(204);
    server.post(&format!("{shell}/stdin"), &json!({ "data": "stty size; exit\n" })).expect(204);
    let shown = server.get(&format!("{shell}/output"));
    assert!(written(&shown.body).contains("50 132"), "{}", shown.body);

    let trap = "trap 'echo hup; exit 9' HUP; echo ready; while :; do sleep 0.05; done";
    let trapped = start(json!({ "argv": ["sh", "-c", trap] }));
    wait_until("it is ready", || {
        written(&server.get(&format!("{trapped}/output?follow=false")).body).contains("ready")
    });
    server.post(&format!("{trapped}/signal"), &json!({ "signal": "HUP" })).expect(204);
    let end = events(&server.get(&format!("{trapped}/output")).body).pop().unwrap().1;
    assert_eq!((&end["state"], &end["exitCode"]), (&json!("exited"), &json!(9)));

    let deaf = start(json!({ "argv": ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"] }));
    server.delete(&deaf).expect(204);
    assert_eq!(server.get(&deaf).expect(200)["state"], "signalled");
    let listed = server.get("/v1/sandboxes/s/commands").expect(200);
    assert_eq!(listed["commands"].as_array().unwrap().len(), 5, "{listed}");
    server.get("/v1/sandboxes/s/commands/99").expect_problem(404, "validation");
    drop(sessions);
}

/// Proves: TOOL-1 http-commands
#[test]
fn a_command_in_the_background_has_its_two_outputs_apart_if_asked() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let server = Server::start(&world, &[]);
    server.create(&json!({ "name": "s" }));
    let line = "echo out; echo err >&2; read next; echo more >&2; exec 2>&1; echo both >&2";
    let body = json!({ "argv": ["sh", "-c", line], "separateStderr": true, "keepStdinOpen": true });
    let started = server.post("/v1/sandboxes/s/commands", &body).expect(201);
    let command = format!("/v1/sandboxes/s/commands/{}", started["number"]);
    let of = |body: &str, stream: &str| -> String {
        let parts = events(body).into_iter().filter(|(name, _)| name == "output");
        let parts = parts.filter(|(_, part)| part["stream"] == stream);
        parts.map(|(_, part)| part["data"].as_str().unwrap().to_owned()).collect()
    };
    wait_until("both are logged", || {
        server.get(&format!("{command}/output?follow=false")).body.contains("err")
    });
    let close = json!({ "data": "go\n", "close": true });
    server.post(&format!("{command}/stdin"), &close).expect(204);
    let whole = server.get(&format!("{command}/output")).body;
    assert_eq!(
        (of(&whole, "stdout"), of(&whole, "stderr")),
        ("out\nboth\n".into(), "err\nmore\n".into())
    );
    // Later, from the log alone, and from the middle of a part.
    let rest = server.get(&format!("{command}/output?since=5&follow=false")).body;
    assert_eq!((of(&rest, "stdout"), of(&rest, "stderr")), ("both\n".into(), "rr\nmore\n".into()));
    let shown = sessions.sandbox(&["logs", "s"]);
    assert_eq!(shown.out(), "out\nboth\n");
    assert_eq!(shown.err(), "err\nmore\n");
    let both = json!({ "argv": ["true"], "separateStderr": true, "terminal": { "rows": 1, "columns": 1 } });
    server.post("/v1/sandboxes/s/commands", &both).expect_problem(422, "validation");
}

/// A request that waits has the command with it: when its client goes, the command is hung up.
/// Proves: TOOL-1 http-commands
#[test]
fn a_command_that_is_waited_for_ends_with_its_client() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = Server::start(&world, &[]);
    server.create(&json!({ "name": "s" }));
    let body = json!({ "argv": ["sleep", "1000"], "wait": true }).to_string();
    let header = ["-H", "Content-Type: application/json", "-d", &body];
    let client = server.curl("/v1/sandboxes/s/commands").args(header).spawn();
    let running = || {
        let seen = server.get("/v1/sandboxes/s").expect(200);
        seen["status"]["runningCommands"].as_u64().unwrap()
    };
    wait_until("it runs", || running() == 1);
    client.signal(Signal::KILL);
    let _ = client.wait();
    wait_until("it is gone", || running() == 0);
}

/// Proves: TOOL-1 http, LIFE-2 apply, LIFE-5 rollback
#[test]
fn changes_are_shown_kept_brought_back_and_applied_over_http() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    world.write_in_project("file", "old\n");
    let server = Server::start(&world, &[]);
    server.create(&json!({ "name": "t", "transaction": "overlay" }));
    let sandbox = "/v1/sandboxes/t";
    server.run("t", &["sh", "-c", "echo new > file"]);
    let diff = server.get(&format!("{sandbox}/diff")).expect(200);
    assert_eq!(diff["changes"][0]["path"], "file");
    let patch = server.get(&format!("{sandbox}/diff?format=patch&path=file"));
    assert_eq!(patch.content_type, "text/x-diff");
    assert!(patch.body.contains("-old\n+new\n"), "{}", patch.body);
    let kept = server.post(&format!("{sandbox}/checkpoints"), &json!({ "message": "m" }));
    assert_eq!(kept.expect(201)["number"], 1);
    server.run(
        "t",
        &["sh", "-c", "echo newer > file; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit"],
    );
    let held = server.post(&format!("{sandbox}/apply"), &json!({}));
    held.expect_problem(409, "validation");
    assert_eq!(held.json()["held"]["refused"][0]["path"], ".git/hooks/pre-commit");
    let back = server.post(&format!("{sandbox}/checkpoints/1/rollback"), &json!({}));
    assert_eq!(back.expect(200)["keptAs"], 2);
    let fork =
        server.post(&format!("{sandbox}/fork"), &json!({ "at": 2, "name": "f" })).expect(201);
    assert_eq!(fork["name"], "f");
    assert_eq!(server.run("f", &["cat", "file"])["stdout"]["data"], "newer\n");
    let listed = server.get(&format!("{sandbox}/checkpoints")).expect(200);
    assert_eq!(listed["checkpoints"].as_array().unwrap().len(), 2);
    let applied =
        server.post(&format!("{sandbox}/apply"), &json!({ "paths": ["file"] })).expect(200);
    assert_eq!(applied["applied"], json!(["file"]));
    assert_eq!(fs::read_to_string(world.project().join("file")).unwrap(), "new\n");
    let waiting = server.delete("/v1/sandboxes/f");
    assert!(waiting.expect_problem(409, "validation").contains("changes that wait"));
    server.post("/v1/sandboxes/f/discard", &json!({})).expect(204);
    server.delete("/v1/sandboxes/t?kill=true&discard=true").expect(204);
    server.get(&format!("{sandbox}/diff")).expect_problem(404, "validation");
}

/// Proves: TOOL-1 http-repeated
#[test]
fn a_request_that_is_repeated_with_its_key_is_carried_out_once() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = Server::start(&world, &[]);
    let key = ["Idempotency-Key: one"];
    let create = |body: &Value| server.post_with("/v1/sandboxes", body, &key);
    let first = create(&json!({ "name": "s" })).expect(201);
    assert_eq!(create(&json!({ "name": "s" })).expect(201)["id"], first["id"]);
    create(&json!({ "name": "other" })).expect_problem(422, "validation");
    let listed = server.get("/v1/sandboxes").expect(200);
    assert_eq!(listed["sandboxes"].as_array().unwrap().len(), 1);
    let command = json!({ "argv": ["sh", "-c", "echo x >> count"], "wait": true });
    for _ in 0..3 {
        server.post_with("/v1/sandboxes/s/commands", &command, &key).expect(200);
    }
    assert_eq!(fs::read_to_string(world.project().join("count")).unwrap(), "x\n");
    let failed = json!({ "argv": ["no-such-program"], "wait": true });
    for _ in 0..2 {
        let answer =
            server.post_with("/v1/sandboxes/s/commands", &failed, &["Idempotency-Key: two"]);
        answer.expect_problem(422, "validation");
    }
}

/// Proves: TOOL-1 http-repeated
#[test]
fn a_key_is_known_to_the_next_server_also_if_nobody_knows_what_became_of_its_request() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let mut server = Server::start(&world, &[]);
    let body = json!({ "name": "s" });
    let key = ["Idempotency-Key: one"];
    let first = server.post_with("/v1/sandboxes", &body, &key).expect(201);
    let script = "echo x >> count; while [ ! -e go ]; do sleep 0.05; done";
    let command = json!({ "argv": ["sh", "-c", script], "wait": true });
    let curl = server.curl("/v1/sandboxes/s/commands");
    let curl = curl.args(["-H", "Content-Type: application/json", "-H", "Idempotency-Key: two"]);
    let waiting = curl.args(["-d", &command.to_string()]).spawn();
    wait_until("it runs", || world.project().join("count").exists());
    let again = |server: &Server<'_>| {
        server.post_with("/v1/sandboxes/s/commands", &command, &["Idempotency-Key: two"])
    };
    let problem = |server: &Server<'_>| {
        let answer = again(server);
        assert_eq!(answer.status, 409, "{}", answer.body);
        answer.json()["type"].as_str().unwrap().to_owned()
    };
    assert_eq!(problem(&server), "urn:palisade:problem:in-progress");
    let _ = server.end(Signal::KILL);
    let _ = waiting.wait();
    server.restart();
    assert_eq!(problem(&server), "urn:palisade:problem:interrupted");
    let repeated = server.post_with("/v1/sandboxes", &body, &key).expect(201);
    assert_eq!(repeated["id"], first["id"]);
    assert_eq!(fs::read_to_string(world.project().join("count")).unwrap(), "x\n");
    let listed = sessions.sandbox(&["ps", "--all", "--json"]).out().matches("\"id\"").count();
    assert_eq!(listed, 1);
}

/// Proves: TOOL-1 http
#[test]
fn a_sandbox_that_cannot_be_made_leaves_nothing_but_a_reason() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let server = Server::start(&world, &[]);
    // Before there is a log, somebody may wait for it.
    let stream = server.curl("/v1/audit/stream").arg("-N").spawn();
    for _ in 0..3 {
        let body = json!({ "settings": { "filesystem.readWritePaths": ["~/.config"] } });
        server.post("/v1/sandboxes", &body).expect_problem(403, "security");
    }
    let missing = sessions.sandbox(&["create", "--", "no-such-program"]);
    missing.assert_code(127);
    assert!(missing.err().contains("no-such-program"), "{}", missing.err());
    let none = json!([]);
    assert_eq!(server.get("/v1/sandboxes?all=true").expect(200)["sandboxes"], none);
    let all = world.home().join(".local/state/palisade/sessions");
    let names: Vec<_> = fs::read_dir(all).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["names.lock"]);
    stream.wait_for_stdout("event: SANDBOX_FAILED\n");
    stream.signal(Signal::TERM);
    let _ = stream.wait();
    let id = server.create(&json!({ "name": "taken" }));
    let taken = server.post("/v1/sandboxes", &json!({ "name": "taken" }));
    assert!(taken.expect_problem(409, "validation").contains(&id));
    assert_eq!(taken.json()["type"], "urn:palisade:problem:name-taken");
}

/// Proves: TOOL-2 http, TOOL-2 one-queue
#[test]
fn questions_are_listed_streamed_and_answered_over_http() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    for name in ["yes", "no"] {
        world.write(format!("outside/{name}/file"), "asked for\n");
    }
    let server = Server::start(&world, &[]);
    let id = server.create(&json!({ "name": "s", "ask": "always" }));
    let stream = server.curl("/v1/approvals/stream").arg("-N").spawn();
    let ask = |name: &str| {
        let path = world.outside().join(name).join("file");
        let body = json!({ "argv": ["cat", path] });
        let started = server.post("/v1/sandboxes/s/commands", &body).expect(201);
        format!("/v1/sandboxes/s/commands/{}/output", started["number"])
    };
    let answer = |question: &Value, body: &Value| {
        let path = format!("/v1/approvals/{id}/{}", question["id"]);
        server.post(&path, body)
    };
    let question = || {
        let mut found = Value::Null;
        for _ in 0..1000 {
            found = server.get("/v1/approvals").expect(200)["questions"][0].clone();
            if !found.is_null() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert!(found["path"].as_str().is_some_and(|path| path.contains("outside")), "{found}");
        found
    };
    let allowed = ask("yes");
    stream.wait_for_stdout("outside/yes/file");
    let asked = question();
    answer(&asked, &json!({ "decision": "allow" })).expect(204);
    assert_eq!(written(&server.get(&allowed).body), "asked for\n");
    answer(&asked, &json!({ "decision": "allow" })).expect_problem(409, "validation");
    let denied = ask("no");
    stream.wait_for_stdout("outside/no/file");
    answer(&question(), &json!({ "decision": "deny" })).expect(204);
    assert!(written(&server.get(&denied).body).contains("Permission denied"));
    stream.wait_for_stdout("event: event.fs_request");
    stream.wait_for_stdout("\"decision\":\"deny\"");
    stream.signal(Signal::TERM);
    let _ = stream.wait();
    server
        .post("/v1/approvals/x/y", &json!({ "decision": "deny" }))
        .expect_problem(404, "validation");
}

/// Proves: AUD-2 follow, TEL-1 prometheus
#[test]
fn the_audit_log_and_the_counters_are_read_over_http() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = Server::start(&world, &[]);
    let id = server.create(&json!({ "name": "s" }));
    let stream = server.curl("/v1/audit/stream?sandbox=s").arg("-N").spawn();
    server.run("s", &["true"]);
    stream.wait_for_stdout("event: SESSION_EXEC\n");
    let page = server.get("/v1/audit?sandbox=s&limit=2").expect(200);
    let records = page["records"].as_array().unwrap();
    assert_eq!((records.len(), &records[0]["event"]), (2, &json!("SANDBOX_CREATED")));
    let next = server.get(&format!("/v1/audit?sandbox=s&since={}", page["next"])).expect(200);
    assert_eq!(next["records"][0]["seq"].as_u64(), page["next"].as_u64().map(|seq| seq + 1));
    let commands = server.get("/v1/audit?event=session-exec").expect(200);
    assert_eq!(commands["records"][0]["sandboxId"], json!(id));
    server.get("/v1/audit?level=loud").expect_problem(422, "validation");
    server.get("/v1/audit?sandbox=--follow").expect_problem(422, "validation");
    server.delete("/v1/sandboxes/s").expect(204);
    // It ends with the sandbox.
    assert!(stream.wait().out().contains("event: SANDBOX_DESTROYED"));
    let counters = server.get("/metrics").body;
    for line in [
        "palisade_service_sandboxes_made_total 1",
        "palisade_service_sandboxes_running 0",
        "palisade_sandboxes_created_total{level=\"LEVEL_2\"} 1",
    ] {
        assert!(counters.lines().any(|it| it == line), "{line}: {counters}");
    }
}

/// Proves: LIFE-4 server
#[test]
fn a_server_that_is_killed_loses_no_sandbox_no_output_and_no_record() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let mut server = Server::start(&world, &[]);
    let id = server.create(&json!({ "name": "s" }));
    let script = "echo before; while [ ! -e go ]; do sleep 0.05; done; echo after; exit 6";
    let body = json!({ "argv": ["sh", "-c", script] });
    server.post("/v1/sandboxes/s/commands", &body).expect(201);
    let output = "/v1/sandboxes/s/commands/1/output";
    wait_until("it writes", || {
        written(&server.get(&format!("{output}?follow=false")).body) == "before\n"
    });
    let _ = server.end(Signal::KILL);
    assert!(server.socket().exists(), "nobody removed it");
    world.write_in_project("go", "");
    server.restart();
    let stream = server.get(&format!("{output}?since=7"));
    assert_eq!(written(&stream.body), "after\n");
    let end = events(&stream.body).pop().unwrap().1;
    assert_eq!((&end["state"], &end["exitCode"]), (&json!("exited"), &json!(6)));
    assert_eq!(server.get("/v1/sandboxes/s").expect(200)["id"], json!(id));
    sessions.sandbox(&["audit", "verify"]).assert_code(0);
    let records = server.get("/v1/audit?event=session-exec-ended").expect(200);
    assert_eq!(records["records"].as_array().unwrap().len(), 1);
}

/// Proves: LIFE-4 server
#[test]
fn a_server_that_is_asked_to_end_lets_requests_end_and_leaves_sandboxes() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let mut server = Server::start(&world, &[]);
    let id = server.create(&json!({ "name": "s" }));
    let body = json!({ "argv": ["sh", "-c", "touch began; while [ ! -e go ]; do sleep 0.05; done; echo done"], "wait": true });
    let body = body.to_string();
    let header = ["-H", "Content-Type: application/json", "-d", &body];
    let waiting = server.curl("/v1/sandboxes/s/commands").args(header).spawn();
    let stream = server.curl("/v1/audit/stream").arg("-N").spawn();
    stream.wait_for_stdout("SANDBOX_CREATED");
    wait_until("it runs", || world.project().join("began").exists());
    let second =
        world.sandbox(["serve", "--listen", &format!("unix:{}", server.socket().display())]);
    let second = second.run();
    second.assert_code(125);
    assert!(second.err().contains("another server listens"), "{}", second.err());
    let pid = rustix::process::Pid::from_raw(server.pid().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    wait_until("nobody listens", || !server.socket().exists());
    assert_eq!(stream.wait().code(), 0, "a stream ends as it should");
    world.write_in_project("go", "");
    assert!(waiting.wait().out().contains("done"));
    assert_eq!(server.finish().code(), 0);
    assert!(sessions.sandbox(&["ps"]).out().contains("s"));
    assert_eq!(sessions.output_of(&id, &["echo", "there"]), "there\n");
}

/// The documented requests, as typed.
/// Proves: TOOL-1 http
#[test]
fn the_documented_example_works() {
    const PAGE: &str = include_str!("../../docs/service.md");
    let example = PAGE.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let world = World::new();
    let _sessions = Sessions::new(&world);
    fs::create_dir(world.path().join("bin")).unwrap();
    symlink(sandbox_program(), world.path().join("bin/sandbox")).unwrap();
    let path = format!("{}:/usr/bin:/bin", world.path().join("bin").display());
    // Whatever fails, the server ends with the example, also if that is killed.
    let example = example.replace("kill %1", "");
    let example = example.replace("sandbox serve &", "setpriv --pdeathsig TERM sandbox serve &");
    assert!(example.contains("setpriv"));
    let example = format!("trap 'kill %1 || true' EXIT\n{example}");
    // The path of a socket has at most 108 bytes, and that of the test's home is long.
    let runtime = world.path().join("r");
    DirBuilder::new().mode(0o700).create(&runtime).unwrap();
    let bash = world.bare("bash").args(["-emc", &example]).env("XDG_RUNTIME_DIR", &runtime);
    let output = bash.env("PATH", path).run();
    output.assert_code(0);
    let said = output.out();
    assert!(said.contains("\"data\":\"1 notes\\n\""), "{said}");
    assert!(said.contains("+one\n"), "{said}");
    assert!(said.contains("\"applied\":[\"notes\"]"), "{said}");
    // Whatever comes together is one event.
    let events = said.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = events.map(|event| serde_json::from_str::<Value>(event).unwrap());
    let output: String =
        events.filter_map(|event| Some(event["data"].as_str()?.to_owned())).collect();
    assert_eq!(output, "1\n2\n3\n", "{said}");
    assert_eq!(fs::read_to_string(world.project().join("notes")).unwrap(), "one\n");
}
