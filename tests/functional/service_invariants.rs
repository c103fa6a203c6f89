//! The invariants INV-S1 to INV-S9 of a tool that runs commands for an agent, as far as the service can break them: what a request
//! gets that says nothing, and what a request cannot get. INV-S8 and INV-S9 are tried through the service's own sandboxes, too, in
//! an internet of the test's (`Lab`).

use std::net::TcpListener;

use palisade_testkit::{Lab, World};
use serde_json::{Value, json};

use crate::service_support::{Answer, Server, answer, written};
use crate::sessions_support::{Sessions, wait_until};

fn stdout(ended: &Value) -> &str {
    ended["stdout"]["data"].as_str().unwrap()
}

/// Proves: TOOL-1 http-sandboxed
#[test]
fn inv_s1_bash_runs_in_a_sandbox_by_default() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    world.write("home/.ssh/id_ed25519", "a key\n");
    let server = Server::start(&world, &[]);
    server.create(&json!({ "name": "s" }));
    let look = "for kind in user mnt pid net ipc uts; do readlink /proc/self/ns/$kind; done; cat ~/.ssh/id_ed25519";
    let outside = world.bare("bash").args(["-c", look]).run();
    outside.assert_code(0);
    let inside = server.run("s", &["bash", "-c", look]);
    assert_ne!(inside["exitCode"], 0);
    let (outside, inside) = (outside.out().into_owned(), stdout(&inside).to_owned());
    assert!(outside.contains("a key") && !inside.contains("a key"), "{inside}");
    assert_eq!(inside.lines().count(), 6, "{inside}");
    assert!(inside.lines().all(|namespace| !outside.contains(namespace)), "{inside}");
    // Nor does it reach the server that started it.
    let socket = server.socket().display().to_string();
    let reached = server.run("s", &["curl", "-sS", "--unix-socket", &socket, "http://x/healthz"]);
    assert_ne!(reached["exitCode"], 0, "{reached}");
}

/// Proves: TOOL-1 http-sandboxed
#[test]
fn inv_s2_there_is_no_network_by_default() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("exec 3<> /dev/tcp/127.0.0.1/{port}");
    world.bare("bash").args(["-c", &connect]).run().assert_code(0);
    let server = Server::start(&world, &[]);
    server.create(&json!({ "name": "s" }));
    assert_ne!(server.run("s", &["bash", "-c", &connect])["exitCode"], 0);
    let interfaces = server.run("s", &["sh", "-c", "cut -d: -f1 -s /proc/net/dev"]);
    assert_eq!(stdout(&interfaces).trim(), "lo");
}

/// Even where every host is allowed.
/// Proves: TOOL-1 http-sandboxed
#[test]
fn inv_s3_inv_s4_private_and_metadata_addresses_are_not_reached() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = Server::start(&world, &[]);
    let open = json!({ "network.mode": "proxy", "network.allowedHosts": ["*"] });
    server.create(&json!({ "name": "s", "settings": open, "ask": "never" }));
    for address in ["169.254.169.254", "10.0.0.5", "192.168.1.1", "127.0.0.1", "[fd00::5]"] {
        let tried = server.run("s", &["curl", "-sS", "-m", "20", &format!("http://{address}/")]);
        assert!(tried["exitCode"] != 0 || stdout(&tried).contains("denied"), "{address}: {tried}");
    }
    let denied = server.get("/v1/audit?sandbox=s&event=network-attempt").expect(200);
    let denied = denied["records"].as_array().unwrap();
    let is_denied = |host: &str| {
        denied.iter().any(|record| {
            let details = record["details"].to_string();
            details.contains(host) && !details.contains("proxy_allowed")
        })
    };
    assert!(is_denied("169.254.169.254") && is_denied("10.0.0.5"), "{denied:#?}");
}

/// Proves: TOOL-1 http-sandboxed
#[test]
fn inv_s5_inv_s6_commands_have_no_capabilities_and_are_not_root() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = Server::start(&world, &[]);
    server.create(&json!({ "name": "s" }));
    let status = server.run("s", &["sh", "-c", "grep ^Cap /proc/self/status; id -u"]);
    let lines: Vec<&str> = stdout(&status).lines().collect();
    let (uid, capabilities) = lines.split_last().unwrap();
    assert_ne!(*uid, "0");
    assert_eq!(capabilities.len(), 5, "{lines:?}");
    assert!(capabilities.iter().all(|line| line.ends_with("0000000000000000")), "{lines:?}");
}

/// Proves: TOOL-1 http-sandboxed
#[test]
fn inv_s7_more_network_needs_an_approval() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = Server::start(&world, &[]);
    for mode in ["host", "nat"] {
        let wanted = json!({ "settings": { "network.mode": mode } });
        let refused = server.post("/v1/sandboxes", &wanted).expect_problem(403, "security");
        assert!(refused.contains("approval"), "{refused}");
    }
    // A host that no rule names waits for an answer.
    let asking = json!({ "name": "s", "settings": { "network.mode": "proxy" }, "ask": "always" });
    let id = server.create(&asking);
    let body = json!({ "argv": ["curl", "-sS", "-m", "60", "http://asked.example/"] });
    server.post("/v1/sandboxes/s/commands", &body).expect(201);
    let question = || server.get("/v1/approvals").expect(200)["questions"][0].clone();
    wait_until("it is asked", || question()["host"] == "asked.example");
    let deny = json!({ "decision": "deny" });
    server.post(&format!("/v1/approvals/{id}/{}", question()["id"]), &deny).expect(204);
    let said = server.get("/v1/sandboxes/s/commands/1/output").body;
    assert!(written(&said).contains("denied") || said.contains("\"exitCode\":"), "{said}");
    let log = server.get("/v1/audit?sandbox=s&event=host-decided").expect(200);
    assert!(log["records"][0].to_string().contains("asked.example"), "{log}");
}

/// A server in the lab, and what curl printed in a new sandbox of it: the status of each address.
fn fetched(lab: &Lab, world: &World, settings: &Value, urls: &[&str]) -> Vec<String> {
    let socket = world.path().join("http.sock");
    let listen = format!("unix:{}", socket.display());
    let server = world.sandbox(["serve", "--listen", &listen]).started_by(&lab.enter()).spawn();
    server.wait_for_stderr("listening at");
    // In the lab, too: who is in another user namespace is not answered.
    let curl = |path: &str| {
        let curl = lab.bare(world, "curl").args(["-sS", "-m", "100", "--unix-socket"]).arg(&socket);
        curl.arg(format!("http://localhost{path}"))
    };
    let post = |path: &str, body: &Value| -> Answer {
        let curl = curl(path).args(["-H", "Content-Type: application/json", "-d", "@-"]);
        answer(curl.stdin(body.to_string()))
    };
    let made = json!({ "name": "s", "settings": settings, "ask": "never" });
    post("/v1/sandboxes", &made).expect(201);
    let fetch = |url: &&str| {
        let argv = ["curl", "-sL", "-o", "page", "-w", "%{http_code}", "-m", "20", *url];
        let body = json!({ "argv": argv, "wait": true });
        stdout(&post("/v1/sandboxes/s/commands", &body).expect(200)).to_owned()
    };
    let codes = urls.iter().map(fetch).collect();
    answer(curl("/v1/sandboxes/s?kill=true").args(["-X", "DELETE"])).expect(204);
    server.signal(rustix::process::Signal::TERM);
    server.wait().assert_code(0);
    codes
}

/// The name is allowed, and what it leads to is not: an address of the private network, alone or beside a public one, or by way of an alias.
/// Proves: NET-4 pinned, TOOL-1 http-sandboxed
#[test]
fn inv_s8_the_address_that_a_name_leads_to_is_judged_and_not_only_the_name() {
    let (lab, world) = (Lab::start(), World::new());
    let _sessions = Sessions::new(&world);
    let bare = lab.bare(&world, "curl").args(["-s", "-m", "20", "http://private.example/"]).run();
    bare.assert_code(0);
    assert!(lab.connected("10.0.0.5:"), "without a sandbox it is reached");
    lab.forget();
    let open = json!({ "network.mode": "proxy", "network.allowedHosts": ["*.example"] });
    let codes = fetched(
        &lab,
        &world,
        &open,
        &[
            "http://web.example/",
            "http://private.example/",
            "http://alias-of-private.example/",
            "http://mixed.example/",
        ],
    );
    assert_eq!(codes, ["200", "403", "403", "403"]);
    assert!(lab.connected("203.0.113.10:"), "what may be reached is");
    assert!(!lab.connected("10.0.0.5:"), "{:#?}", lab.journal());
}

/// Proves: NET-4 redirects, TOOL-1 http-sandboxed
#[test]
fn inv_s9_a_redirect_to_an_address_that_is_not_reached_is_not_followed() {
    let (lab, world) = (Lab::start(), World::new());
    let _sessions = Sessions::new(&world);
    let urls = [
        "http://web.example/redirect?http://four.example/",
        "http://web.example/redirect?http://10.0.0.5/",
        "http://web.example/redirect?http://169.254.169.254/",
        "http://web.example/redirect?http://private.example/",
        "http://web.example/redirect?http://web.example/redirect?http://10.0.0.5/",
    ];
    for url in &urls[1..3] {
        let _ = lab.bare(&world, "curl").args(["-sL", "-m", "20", url]).run();
    }
    for reached in ["10.0.0.5:", "169.254.169.254:"] {
        assert!(lab.connected(reached), "without a sandbox it is: {reached}");
    }
    // Whether the client follows it or the proxy does.
    for follows in [false, true] {
        lab.forget();
        let settings = json!({
            "network.mode": "proxy",
            "network.allowedHosts": ["*.example"],
            "network.followRedirects": follows,
        });
        assert_eq!(fetched(&lab, &world, &settings, &urls), ["200", "403", "403", "403", "403"]);
        for place in ["10.0.0.5:", "169.254."] {
            assert!(!lab.connected(place), "{place}: {:#?}", lab.journal());
        }
        assert!(lab.connected("203.0.113.14:"), "what may be reached is");
    }
}
