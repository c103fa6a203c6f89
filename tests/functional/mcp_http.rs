//! `sandbox mcp --listen`: who is answered, and what is refused.

use std::net::TcpListener;

use palisade_testkit::{Invocation, Running, World};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::mcp_support::nothing_is_left;
use crate::service_support::{Answer, answer};
use crate::sessions_support::{Sessions, wait_until};

const REVISION: &str = "2026-07-28";

/// A request of revision 2026-07-28, which needs no beginning.
fn request(method: &str, mut parameters: Value) -> Value {
    parameters["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo": { "name": "curl", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": parameters })
}

fn post(curl: Invocation, body: &impl ToString, headers: &[&str]) -> Answer {
    let types = ["Content-Type: application/json", "Accept: application/json, text/event-stream"];
    let curl = types.iter().chain(headers).fold(curl, |curl, header| curl.args(["-H", header]));
    answer(curl.args(["--data-binary", "@-"]).stdin(body.to_string()))
}

fn headers(method: &str) -> [String; 2] {
    [format!("MCP-Protocol-Version: {REVISION}"), format!("Mcp-Method: {method}")]
}

/// The message in an answer, which may be an event.
fn message(answer: &Answer) -> Value {
    let mut events = answer.body.lines().filter_map(|line| line.strip_prefix("data: "));
    let text = events.next_back().unwrap_or(&answer.body);
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {}", answer.body))
}

fn end(server: Running, world: &World) {
    server.signal(Signal::TERM);
    server.wait().assert_code(0);
    assert!(nothing_is_left(world));
}

/// Proves: TOOL-1 mcp, TOOL-1 http-access
#[test]
fn over_tcp_only_who_has_the_token_is_answered_under_our_name() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = format!("tcp:127.0.0.1:{port}");
    let server = world.sandbox(["mcp", "--listen", &listen]).spawn();
    server.wait_for_stderr("the token is in");
    let file = world.home().join(".local/state/palisade/service/token");
    let token = std::fs::read_to_string(file).unwrap();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let curl = || world.bare("curl").args(["-sS", "-m", "60"]).arg(&url);
    let right = format!("Authorization: Bearer {}", token.trim());
    let list = request("tools/list", json!({}));
    let [version, method] = headers("tools/list");
    let send =
        |more: &[&str]| post(curl(), &list, &[&[version.as_str(), &method][..], more].concat());

    assert_eq!(send(&[]).status, 401);
    assert_eq!(send(&["Authorization: Bearer 0123456789abcdef0123456789abcdef"]).status, 401);
    assert_eq!(send(&[&right, "Origin: http://evil.example"]).status, 403);
    assert_eq!(send(&[&right, "Host: evil.example"]).status, 403);
    let listed = send(&[&right]);
    assert_eq!(listed.status, 200, "{}", listed.body);
    assert_eq!(message(&listed)["result"]["tools"].as_array().unwrap().len(), 14);
    let [version, method] = headers("server/discover");
    let discovered =
        post(curl(), &request("server/discover", json!({})), &[&version, &method, &right]);
    let versions = message(&discovered)["result"]["supportedVersions"].clone();
    assert!(versions.as_array().unwrap().contains(&json!(REVISION)), "{versions}");
    // Headers that say something else than the message.
    let wrong = post(curl(), &list, &[&version, "Mcp-Method: tools/call", &right]);
    assert_eq!(wrong.status, 400, "{}", wrong.body);
    let called =
        request("tools/call", json!({ "name": "bash", "arguments": { "command": "echo hi" } }));
    let [version, method] = headers("tools/call");
    let called = post(curl(), &called, &[&version, &method, "Mcp-Name: bash", &right]);
    assert_eq!(
        message(&called)["result"]["structuredContent"]["output"],
        "hi\n",
        "{}",
        called.body
    );

    let broken = post(curl(), &"{no json", &[&right]);
    assert!((400..500).contains(&broken.status), "{}", broken.status);
    let large = " ".repeat((16 << 20) + 1);
    assert_eq!(post(curl(), &large, &[&right]).status, 413);
    assert_eq!(send(&[&right]).status, 200, "it goes on");
    end(server, &world);
}

/// Proves: TOOL-1 mcp, TOOL-1 http-access
#[test]
fn at_a_unix_socket_the_same_user_is_answered() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let socket = world.path().join("mcp.sock");
    let listen = format!("unix:{}", socket.display());
    let server = world.sandbox(["mcp", "--listen", &listen]).spawn();
    server.wait_for_stderr("listening at");
    let curl = world.bare("curl").args(["-sS", "-m", "60", "--unix-socket"]).arg(&socket);
    let [version, method] = headers("tools/list");
    let listed = post(
        curl.arg("http://localhost/mcp"),
        &request("tools/list", json!({})),
        &[&version, &method],
    );
    assert_eq!(listed.status, 200, "{}", listed.body);
    end(server, &world);
    let far = world.sandbox(["mcp", "--listen", "tcp:0.0.0.0:0"]).run();
    assert_ne!(far.code(), 0, "no other machine without TLS");
}

/// An answer is told from others by the id of its request: a second request of the same id would get the answer to the first.
/// Proves: TOOL-1 mcp
#[test]
fn an_id_that_is_in_flight_in_a_session_is_refused_there_and_nowhere_else() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let socket = world.path().join("mcp.sock");
    let listen = format!("unix:{}", socket.display());
    let server = world.sandbox(["mcp", "--listen", &listen]).spawn();
    server.wait_for_stderr("listening at");
    let curl = || {
        let curl = world.bare("curl").args(["-sS", "-N", "-m", "60", "--unix-socket"]).arg(&socket);
        curl.arg("http://localhost/mcp")
    };
    // As revision 2025-11-25 begins a session.
    let begin = || {
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "curl", "version": "1" } } });
        let said = post(curl().args(["-D", "-"]), &hello, &[]).body;
        let header = said.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
        });
        let session = format!("Mcp-Session-Id: {}", header.unwrap_or_else(|| panic!("{said}")));
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(post(curl(), &ready, &[&session]).status, 202);
        session
    };
    let (session, other) = (begin(), begin());
    let call = |id: &Value, command: &str| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "bash", "arguments": { "command": command } } })
    };
    let go = world.project().join("go");
    let waiting = call(&json!(7), "touch begun; until [ -e go ]; do sleep 0.05; done; echo first");
    let types = ["Content-Type: application/json", "Accept: application/json, text/event-stream"];
    let first = types.iter().fold(curl(), |curl, header| curl.args(["-H", header]));
    let first = first.args(["-H", &session, "-d", "@-"]).stdin(waiting.to_string()).spawn();
    wait_until("the first call runs", || world.project().join("begun").exists());

    let refused = post(curl(), &call(&json!(7), "echo second"), &[&session]);
    assert_eq!(refused.status, 400, "{}", refused.body);
    let refused = message(&refused);
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(7), &json!(-32600)));
    assert!(refused["error"]["message"].as_str().unwrap().contains("in flight"), "{refused}");
    // Another id, a text of the same digits, and another session.
    for (id, session) in [(json!(8), &session), (json!("7"), &session), (json!(7), &other)] {
        let answered = post(curl(), &call(&id, "echo other"), &[session]);
        assert_eq!(answered.status, 200, "{}", answered.body);
        assert_eq!(message(&answered)["id"], id);
    }
    std::fs::write(&go, "").unwrap();
    let first = first.wait();
    assert!(first.out().contains("first"), "{}", first.out());
    assert!(!first.out().contains("second"), "{}", first.out());
    wait_until("the id is free again", || {
        post(curl(), &call(&json!(7), "echo again"), &[&session]).status == 200
    });
    end(server, &world);
}
