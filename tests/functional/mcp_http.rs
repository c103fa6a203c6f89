//! `sandbox mcp --listen`: who is answered, and what is refused.

use std::net::TcpListener;

use palisade_testkit::{Invocation, Running, World};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::mcp_support::nothing_is_left;
use crate::service_support::{Answer, answer};
use crate::sessions_support::Sessions;

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
