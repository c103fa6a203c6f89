//! `sandbox serve --warm`: sandboxes that are made before a request asks for them, who gets them, and what becomes of the others. And
//! `POST /v1/runs`: a command in a sandbox of its own.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;

use palisade_testkit::{World, is_alive};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::service_support::Server;
use crate::sessions_support::{Sessions, adopt_orphans, wait_for_end, wait_until};

/// The value of one of the server's counters.
fn counter(server: &Server<'_>, name: &str) -> u64 {
    let text = server.get("/metrics").body;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name}: {text}"))
}

fn prepared(server: &Server<'_>) -> u64 {
    counter(server, "palisade_service_warm_sandboxes")
}

pub(crate) fn claimed(server: &Server<'_>) -> u64 {
    counter(server, "palisade_service_warm_requests_total{result=\"claimed\"}")
}

pub(crate) fn wait_for_prepared(server: &Server<'_>, count: u64) {
    wait_until("sandboxes are prepared", || prepared(server) == count);
}

/// What there is of sessions, whether anybody can find them or not: their ids.
pub(crate) fn directories(world: &World) -> BTreeSet<String> {
    let all = world.home().join(".local/state/palisade/sessions");
    let names = fs::read_dir(all).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.len() >= 36).collect()
}

fn supervisor(world: &World, id: &str) -> u32 {
    let file = world.home().join(".local/state/palisade/sessions").join(id).join("session.json");
    let record: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    record["supervisor"].as_u64().unwrap().try_into().unwrap()
}

fn stdout(ended: &Value) -> &str {
    ended["stdout"]["data"].as_str().unwrap()
}

/// Proves: TOOL-1 http-warm
#[test]
fn a_request_gets_a_sandbox_that_was_prepared_and_nobody_else_sees_it_before() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let server = Server::start(&world, &["--warm", "1"]);
    wait_for_prepared(&server, 1);
    let waiting = directories(&world).into_iter().next().unwrap();
    assert_eq!(server.get("/v1/sandboxes?all=true").expect(200)["sandboxes"], json!([]));
    server.get(&format!("/v1/sandboxes/{waiting}")).expect_problem(404, "validation");
    assert!(!sessions.sandbox(&["ps", "--all"]).out().contains(&waiting[24..]));
    assert_ne!(sessions.sandbox(&["exec", &waiting, "--", "true"]).code(), 0);
    assert_ne!(sessions.sandbox(&["rm", "--force", &waiting]).code(), 0);

    // With a name and everything that a session has.
    let id = server.create(&json!({ "name": "mine" }));
    assert_eq!((&id, claimed(&server)), (&waiting, 1));
    let seen = server.get("/v1/sandboxes/mine").expect(200);
    assert_eq!((&seen["id"], &seen["isRunning"]), (&json!(id), &json!(true)));
    assert!(sessions.sandbox(&["ps"]).out().contains("mine"));
    assert_eq!(sessions.output_of("mine", &["pwd"]).trim(), world.project().to_str().unwrap());
    let log = server.get(&format!("/v1/audit?sandbox={id}&event=session-claimed")).expect(200);
    assert_eq!(log["records"][0]["details"]["name"], "mine", "{log}");
    // The name is taken, and the sandbox for the next request waits on.
    wait_for_prepared(&server, 1);
    let taken = server.post("/v1/sandboxes", &json!({ "name": "mine" }));
    assert!(taken.expect_problem(409, "validation").contains("mine"));
    wait_for_prepared(&server, 1);

    // What the first one did and was given, the second does not have.
    let body = json!({ "argv": ["sh", "-c", "echo left > /tmp/left; env"], "wait": true,
        "environment": { "TOKEN_OF_MINE": "secret" } });
    let said = server.post("/v1/sandboxes/mine/commands", &body).expect(200);
    assert!(stdout(&said).contains("TOKEN_OF_MINE=secret"));
    let other = server.create(&json!({ "name": "other" }));
    assert_eq!(claimed(&server), 2);
    assert_ne!(other, id);
    let look = "env; cat /proc/1/environ; ls /tmp; echo $SANDBOX_SESSION";
    let said = server.run("other", &["sh", "-c", look]);
    assert!(!stdout(&said).contains("secret") && !stdout(&said).contains("left"), "{said}");
    assert!(!stdout(&said).contains(&id), "{said}");
    server.delete("/v1/sandboxes/mine").expect(204);
    server.delete("/v1/sandboxes/other").expect(204);
}

/// Proves: TOOL-1 http-warm
#[test]
fn no_sandbox_is_given_twice_and_each_is_replaced() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = Server::start(&world, &["--warm", "3"]);
    wait_for_prepared(&server, 3);
    let ask = || {
        let curl = server.curl("/v1/sandboxes").args(["-H", "Content-Type: application/json"]);
        curl.args(["-d", "{}"]).spawn()
    };
    let asking: Vec<_> = (0..6).map(|_| ask()).collect();
    let made = asking.into_iter().map(|curl| curl.wait());
    let made = made.map(|curl| serde_json::from_slice::<Value>(&curl.stdout).unwrap());
    let ids: Vec<String> = made.map(|made| made["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 6, "{ids:?}");
    assert!(claimed(&server) >= 3);
    wait_for_prepared(&server, 3);
    for id in ids {
        assert_eq!(server.run(&id, &["true"])["exitCode"], 0);
        server.delete(&format!("/v1/sandboxes/{id}")).expect(204);
    }
}

/// Proves: TOOL-1 http-warm
#[test]
fn what_waits_ends_with_the_server_even_if_it_is_killed_and_leaves_nothing() {
    adopt_orphans();
    let world = World::new();
    let _sessions = Sessions::new(&world);
    for signal in [Signal::KILL, Signal::TERM] {
        let mut server = Server::start(&world, &["--warm", "2"]);
        wait_for_prepared(&server, 2);
        let kept = server.create(&json!({}));
        wait_for_prepared(&server, 2);
        let waiting: Vec<_> = directories(&world).into_iter().filter(|id| *id != kept).collect();
        let supervisors: Vec<_> = waiting.iter().map(|id| supervisor(&world, id)).collect();
        assert_eq!(supervisors.len(), 2);
        server.end(signal);
        wait_for_end(&supervisors);
        wait_until("their directories are gone", || directories(&world).len() == 1);
        assert!(is_alive(supervisor(&world, &kept)), "what was claimed stays");
        world.sandbox(["rm", "--force", &kept]).run().assert_code(0);
    }
}

/// Proves: TOOL-1 http-warm
#[test]
fn one_that_was_made_from_other_files_is_given_to_nobody() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    world.write("home/secret/plan", "the plan\n");
    let server = Server::start(&world, &["--warm", "1"]);
    wait_for_prepared(&server, 1);
    let before = directories(&world).into_iter().next().unwrap();
    let path = world.home().join("secret/plan").display().to_string();
    let policy = json!({ "filesystem": { "deniedPaths": [world.home().join("secret")] } });
    world.write("home/.config/palisade/policy.json", policy.to_string());
    let first = server.create(&json!({ "name": "first" }));
    assert_ne!(first, before);
    assert_ne!(server.run("first", &["cat", &path])["exitCode"], 0, "the new policy counts");
    wait_until("it is gone", || !directories(&world).contains(&before));

    // The same path, and another directory.
    wait_for_prepared(&server, 1);
    let before: BTreeSet<_> = directories(&world);
    let project = world.project();
    fs::rename(&project, world.path().join("moved")).unwrap();
    fs::create_dir(&project).unwrap();
    fs::write(project.join("new"), "").unwrap();
    let second = server.create(&json!({ "name": "second" }));
    assert!(!before.contains(&second));
    assert_eq!(stdout(&server.run("second", &["ls"])), "new\n");
    for name in ["first", "second"] {
        server.delete(&format!("/v1/sandboxes/{name}")).expect(204);
    }
}

/// Its guard would not know where the link leads.
///
/// Proves: TOOL-1 http-warm, FS-9 more-paths
#[test]
fn one_that_was_made_before_a_link_in_gits_hooks_is_given_to_nobody() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    for directory in [".git/objects", ".git/refs", ".git/hooks"] {
        fs::create_dir_all(world.project().join(directory)).unwrap();
    }
    world.write_in_project(".git/HEAD", "ref: refs/heads/main\n");
    world.write_in_project(".git/config", "[core]\n\tbare = false\n");
    world.write_in_project("ci/pre-commit", "#!/bin/sh\n");
    let server = Server::start(&world, &["--warm", "1"]);
    let write = |name: &str| {
        server.create(&json!({ "name": name }));
        let said = server.run(name, &["sh", "-c", "echo more >> ci/pre-commit"]);
        server.delete(&format!("/v1/sandboxes/{name}")).expect(204);
        said["exitCode"] == 0
    };
    wait_for_prepared(&server, 1);
    assert!(write("before"), "no hook leads there yet");
    assert_eq!(claimed(&server), 1);
    wait_for_prepared(&server, 1);
    symlink("../../ci/pre-commit", world.project().join(".git/hooks/pre-commit")).unwrap();
    assert!(!write("after"), "git on the host runs it");
    assert_eq!(claimed(&server), 1);
}

/// Proves: TOOL-1 http-warm
#[test]
fn a_project_that_is_named_by_a_link_is_the_one_that_the_link_leads_to_at_the_request() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    world.write("home/r1/which", "one\n");
    world.write("home/r2/which", "two\n");
    let [first, second, link, new] =
        ["r1", "r2", "current", "new"].map(|name| world.home().join(name));
    symlink(first, &link).unwrap();
    let server = Server::start(&world, &["--warm", "1"]);
    let which = || {
        let id = server.create(&json!({ "project": link }));
        let said = stdout(&server.run(&id, &["cat", "which"])).to_owned();
        server.delete(&format!("/v1/sandboxes/{id}")).expect(204);
        said
    };
    wait_until("one of this project is claimed", || {
        assert_eq!(which(), "one\n");
        claimed(&server) > 0
    });
    wait_for_prepared(&server, 1);
    symlink(second, &new).unwrap();
    fs::rename(&new, &link).unwrap();
    assert_eq!(which(), "two\n");
    let before = claimed(&server);
    wait_until("one of the other project is claimed", || {
        assert_eq!(which(), "two\n");
        claimed(&server) > before
    });
}

/// Proves: TOOL-1 http-warm
#[test]
fn only_what_is_asked_for_in_the_same_words_is_given_and_places_follow_what_is_asked_for() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = Server::start(&world, &["--warm", "1"]);
    wait_for_prepared(&server, 1);
    let wanted =
        json!({ "settings": { "filesystem.deniedPaths": ["/opt"] }, "timeToLiveSeconds": 600 });
    let make = || {
        let id = server.create(&wanted);
        let seen = server.get(&format!("/v1/sandboxes/{id}")).expect(200);
        assert!(seen["status"]["expiresInMs"].as_u64().unwrap() > 590_000, "from now on: {seen}");
        server.delete(&format!("/v1/sandboxes/{id}")).expect(204);
    };
    make();
    assert_eq!(claimed(&server), 0, "another kind was prepared");
    make();
    wait_until("one of the new kind is prepared", || {
        make();
        claimed(&server) > 0
    });
    // One with a transaction begins with the project as it is then.
    let before = claimed(&server);
    for _ in 0..3 {
        let id = server.create(&json!({ "transaction": "overlay" }));
        server.delete(&format!("/v1/sandboxes/{id}")).expect(204);
    }
    assert_eq!(claimed(&server), before);
}

/// Proves: TOOL-1 http-warm
#[test]
fn what_holds_secrets_never_waits() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let secret = world.write("home/token", "the token\n");
    fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let policy = json!({ "network": { "mode": "proxy", "allowedHosts": ["web.example"],
        "credentials": [{ "name": "API_KEY", "from": format!("file:{}", secret.display()), "host": "web.example" }] } });
    world.write("home/.config/palisade/policy.json", policy.to_string());
    let server = Server::start(&world, &["--warm", "1"]);
    wait_until("it was tried", || counter(&server, "palisade_service_warm_failures_total") > 0);
    assert_eq!((prepared(&server), directories(&world).len()), (0, 0));
    server.create(&json!({ "name": "s" }));
    let said = server.run("s", &["sh", "-c", "echo $API_KEY"]);
    assert_eq!(said["exitCode"], 0);
    assert!(!stdout(&said).trim().is_empty() && !stdout(&said).contains("the token"), "{said}");
    assert_eq!(claimed(&server), 0);
    server.delete("/v1/sandboxes/s").expect(204);
}

/// Proves: TOOL-1 http-runs
#[test]
fn a_run_has_a_sandbox_of_its_own_of_which_nothing_is_left() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    for warm in ["0", "1"] {
        let server = Server::start(&world, &["--warm", warm]);
        wait_for_prepared(&server, warm.parse().unwrap());
        let run = |body: &Value| server.post("/v1/runs", body).expect(200);
        let script = "cat; echo $MORE; echo err >&2; ls /tmp; echo 1 > /tmp/left; exit 3";
        for _ in 0..2 {
            let ended = run(&json!({ "command": { "argv": ["sh", "-c", script], "stdin": "in\n",
                "environment": { "MORE": "this" } } }));
            assert_eq!((&ended["exitCode"], stdout(&ended)), (&json!(3), "in\nthis\n"));
            assert_eq!(ended["stderr"]["data"], "err\n");
            wait_for_prepared(&server, warm.parse().unwrap());
        }
        assert_eq!(claimed(&server), 2 * warm.parse::<u64>().unwrap());
        let denied = json!({ "filesystem.deniedPaths": ["/etc/hostname"] });
        let other = json!({ "command": { "argv": ["cat", "/etc/hostname"] }, "sandbox": { "settings": denied } });
        assert_ne!(run(&other)["exitCode"], 0);
        let slow = json!({ "command": { "argv": ["sleep", "100"], "timeoutSeconds": 1 } });
        assert_eq!(run(&slow)["timedOut"], true);
        let missing = json!({ "command": { "argv": ["no-such-program"] } });
        let missing = server.post("/v1/runs", &missing);
        missing.expect_problem(422, "validation");
        let kept =
            json!({ "command": { "argv": ["true"] }, "sandbox": { "transaction": "overlay" } });
        server.post("/v1/runs", &kept).expect_problem(422, "validation");
        drop(server);
        wait_until("nothing is left", || directories(&world).is_empty());
    }
}

/// Proves: TOOL-1 http-runs
#[test]
fn a_run_ends_with_its_client() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = Server::start(&world, &["--warm", "1"]);
    wait_for_prepared(&server, 1);
    let script = "trap '' HUP TERM; touch begun; while :; do sleep 0.05; done";
    let body = json!({ "command": { "argv": ["sh", "-c", script] } });
    let curl = server.curl("/v1/runs").args(["-H", "Content-Type: application/json", "-d", "@-"]);
    let client = curl.stdin(body.to_string()).spawn();
    wait_until("it runs", || world.project().join("begun").exists());
    let running = server.get("/v1/sandboxes").expect(200)["sandboxes"].clone();
    let id = running[0]["id"].as_str().unwrap_or_else(|| panic!("{running}")).to_owned();
    client.signal(Signal::KILL);
    let _ = client.wait();
    wait_until("its sandbox is gone", || !directories(&world).contains(&id));
}

/// The claim of such a run is on its way while its sandbox is made: what is wrong with the sandbox is the answer all the same.
///
/// Proves: TOOL-1 http-runs
#[test]
fn a_run_whose_sandbox_cannot_be_made_or_claimed_is_told_why() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = Server::start(&world, &["--warm", "0"]);
    let run = |sandbox: Value| {
        let command = json!({ "argv": ["touch", "ran"] });
        server.post("/v1/runs", &json!({ "command": command, "sandbox": sandbox }))
    };
    let wrong = run(json!({ "settings": { "network.mode": "nonsense" } }));
    assert!(wrong.status >= 400 && wrong.body.contains("network.mode"), "{}", wrong.body);
    server.create(&json!({ "name": "taken" }));
    let taken = run(json!({ "name": "taken" }));
    assert!(taken.status == 409 && taken.body.contains("taken"), "{}", taken.body);
    assert!(!world.project().join("ran").exists());
    server.delete("/v1/sandboxes/taken?kill=true").expect(204);
    wait_until("nothing is left", || directories(&world).is_empty());
}

/// Proves: TOOL-1 http-runs
#[test]
fn a_run_whose_client_goes_while_its_sandbox_is_made_leaves_nothing() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = Server::start(&world, &["--warm", "0"]);
    let body = json!({ "command": { "argv": ["sleep", "1000"] } }).to_string();
    for _ in 0..5 {
        let curl =
            server.curl("/v1/runs").args(["-H", "Content-Type: application/json", "-d", "@-"]);
        let client = curl.stdin(body.clone()).spawn();
        // Its directory is made first, and nothing is running in it then.
        wait_until("it is being made", || !directories(&world).is_empty());
        client.signal(Signal::KILL);
        let _ = client.wait();
        wait_until("nothing is left", || directories(&world).is_empty());
    }
    // Its places are free again.
    let after = json!({ "command": { "argv": ["true"] } });
    assert_eq!(server.post("/v1/runs", &after).expect(200)["exitCode"], 0);
}
