//! `sandbox serve --e2b`: who is not answered, what is refused, and that neither leaves anything behind.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use palisade_testkit::World;
use serde_json::{Value, json};

use crate::e2b_support::{E2bServer, STREAM, envelope, headers};
use crate::service_support::Answer;
use crate::sessions_support::{Sessions, wait_until};

const UNARY: &str = "Content-Type: application/json";

/// The error that the last message of a stream says.
#[track_caller]
fn stream_error(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let start = answer.body.find("{\"error\"").unwrap_or_else(|| panic!("{}", answer.body));
    let end: Value = serde_json::from_str(&answer.body[start..]).unwrap();
    end["error"]["code"].as_str().unwrap().to_owned()
}

/// Proves: TOOL-4 access
#[test]
fn only_who_has_the_key_is_answered_and_a_sandbox_opens_no_other() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let server = E2bServer::start(&world);
    let status = |headers: &[&str]| server.ask("/v2/sandboxes", headers, None).status;
    let key = format!("X-API-Key: {}", server.token());
    let with_prefix = format!("X-API-Key: e2b_{}", server.token());
    assert_eq!((status(&[&key]), status(&[&with_prefix])), (200, 200));
    assert_eq!(status(&[]), 401);
    assert_eq!(status(&["X-API-Key: e2b_wrong"]), 401);
    assert_eq!(status(&[&key, "Host: evil.example"]), 403);
    assert_eq!(status(&[&key, "Origin: http://evil.example"]), 403);

    let (one, one_token) = server.create();
    let (other, other_token) = server.create();
    let health = |id: &str, token: &str| {
        let [id, token] = headers(id, token);
        server.ask("/health", &[&id, &token], None).status
    };
    assert_eq!((health(&one, &one_token), health(&other, &other_token)), (204, 204));
    assert_eq!(health(&one, &other_token), 401, "the token of another sandbox");
    assert_eq!(health(&one, &server.token()), 401, "the key is no token of a sandbox");
    assert_eq!(health("../../x", &one_token), 401);
    let [id, token] = headers(&one, &other_token);
    let list = server.ask("/process.Process/List", &[&id, &token, UNARY], Some(b"{}"));
    assert_eq!(list.status, 401, "{}", list.body);
    let path = "/files?path=a&signature=v1_AAAA";
    assert_eq!(server.ask(path, &[], None).status, 401);
    assert_eq!(server.ask("/files?path=a", &[], None).status, 400);

    // Sessions that others made are not there.
    let own = sessions.create(&["--name", "own"]);
    assert_eq!(server.api(&format!("/sandboxes/{own}"), None).status, 404);
    assert_eq!(server.api("/sandboxes/own", None).status, 404);
    let listed = server.api("/v2/sandboxes", None).expect(200);
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    let ours = world.home().join(".local/state/palisade/service/e2b").join(format!("{one}.json"));
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(ours).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);

    let refused = world.sandbox(["serve", "--e2b", "--listen", "unix:/tmp/x"]).run();
    assert_ne!(refused.code(), 0);
    assert!(refused.err().contains("--listen tcp:"), "{}", refused.err());
}

/// Proves: TOOL-4 unsupported
#[test]
fn what_is_not_served_says_so() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = E2bServer::start(&world);
    let (id, _) = server.create();
    let below = format!("/sandboxes/{id}");
    for path in [
        &format!("{below}/pause"),
        &format!("{below}/snapshots"),
        &format!("{below}/metrics"),
        "/templates",
        "/v3/templates/x/builds",
        "/volumes",
        "/secrets/x",
    ] {
        let refused = server.api(path, Some(&json!({}))).expect(501);
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("not supported here"), "{path}: {message}");
    }
    for wanted in [
        json!({ "autoPause": true }),
        json!({ "network": { "allowOut": ["x"] } }),
        json!({ "volumeMounts": [{ "name": "a", "path": "/a" }] }),
        json!({ "mcp": { "x": {} } }),
    ] {
        server.api("/v2/sandboxes", Some(&wanted)).expect(501);
    }
    let unknown = server.api("/v2/sandboxes", Some(&json!({ "templateID": "mine" }))).expect(404);
    assert!(unknown["message"].as_str().unwrap().contains("strict"), "{unknown}");
    let preset = server.api("/v2/sandboxes", Some(&json!({ "templateID": "strict" }))).expect(201);
    assert_eq!(preset["templateID"], "strict");
    server.api("/v2/sandboxes", Some(&json!({ "timeout": 1_u64 << 40 }))).expect(400);
    server.api("/v2/sandboxes", Some(&json!({ "envVars": { "A=B": "c" } }))).expect(400);
    server.api("/v2/sandboxes?limit=0", None).expect(400);
}

/// Proves: TOOL-4 bounds
#[test]
fn malformed_and_oversized_requests_are_refused_and_leave_nothing() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = E2bServer::start(&world);
    let (id, token) = server.create();
    let [id, token] = headers(&id, &token);
    let call =
        |path: &str, kind: &str, body: &[u8]| server.ask(path, &[&id, &token, kind], Some(body));
    let start = |body: &[u8]| call("/process.Process/Start", STREAM, body);
    assert_eq!(stream_error(&start(b"")), "invalid_argument");
    assert_eq!(stream_error(&start(b"\0\0\0")), "invalid_argument");
    assert_eq!(stream_error(&start(&envelope(0, b"{"))), "invalid_argument");
    assert_eq!(stream_error(&start(&envelope(0, b"[1]"))), "invalid_argument");
    assert_eq!(stream_error(&start(&envelope(1, b"{}"))), "unimplemented", "compressed");
    assert_eq!(stream_error(&start(b"\0\xff\xff\xff\xff")), "resource_exhausted");
    assert_eq!(stream_error(&start(&envelope(0, b"{}"))), "invalid_argument", "no program");
    let nul = br#"{"process":{"cmd":"a\u0000b"}}"#;
    assert_eq!(stream_error(&start(&envelope(0, nul))), "invalid_argument");
    let missing = br#"{"process":{"cmd":"/no/such/program"}}"#;
    assert_eq!(stream_error(&start(&envelope(0, missing))), "invalid_argument");
    let proto = call("/process.Process/Start", "Content-Type: application/connect+proto", b"");
    assert_eq!(stream_error(&proto), "unimplemented");

    let code = |answer: Answer, status: u16| {
        let said = answer.expect(status);
        said["code"].as_str().unwrap().to_owned()
    };
    let list = "/process.Process/List";
    assert_eq!(code(call(list, UNARY, b"{"), 400), "invalid_argument");
    assert_eq!(code(call(list, "Content-Type: application/proto", b""), 501), "unimplemented");
    let long = vec![b' '; (4 << 20) + 1];
    assert_eq!(code(call(list, UNARY, &long), 429), "resource_exhausted");
    let unknown = br#"{"process":{"pid":99},"signal":"SIGNAL_SIGKILL"}"#;
    assert_eq!(code(call("/process.Process/SendSignal", UNARY, unknown), 404), "not_found");
    let nothing = br#"{"watcherId":"x"}"#;
    let events = "/filesystem.Filesystem/GetWatcherEvents";
    assert_eq!(code(call(events, UNARY, nothing), 404), "not_found");

    let form = "Content-Type: multipart/form-data; boundary=b";
    let cut = b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\ncut";
    call("/files?path=cut", form, cut).expect(400);
    call("/files?path=cut", form, b"--b--").expect(400);
    call("/files?path=cut", "Content-Type: text/plain", b"x").expect(415);
    call("/files", "Content-Type: application/octet-stream", b"x").expect(400);
    let gone = server.ask("/files?path=cut", &[&id, &token], None);
    assert_eq!(gone.status, 404, "half a file is no file: {}", gone.body);
    let listed = call(list, UNARY, b"{}").expect(200);
    assert_eq!(listed, json!({ "processes": [] }), "nothing of it was started");
}

/// A client that starts a command and does not read, or is gone, keeps nobody from anything.
///
/// Proves: TOOL-4 bounds
#[test]
fn a_client_that_reads_nothing_or_goes_away_costs_little() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = E2bServer::start(&world);
    let (id, token) = server.create();
    let [id_header, token_header] = headers(&id, &token);
    let command = br#"{"process":{"cmd":"yes"},"stdin":false}"#;
    let body = envelope(0, command);
    let mut slow = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let head = format!(
        "POST /process.Process/Start HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{id_header}\r\n{token_header}\r\n{STREAM}\r\n\
         Connect-Timeout-Ms: 3000\r\nContent-Length: {}\r\n\r\n",
        server.port,
        body.len()
    );
    slow.write_all(head.as_bytes()).unwrap();
    slow.write_all(&body).unwrap();
    let mut first = [0; 512];
    slow.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert!(slow.read(&mut first).unwrap() > 0);
    let listed = || {
        let headers = [&*id_header, &*token_header, UNARY];
        server.ask("/process.Process/List", &headers, Some(b"{}")).expect(200)
    };
    assert_eq!(listed()["processes"][0]["config"]["cmd"], "yes");
    let memory = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let peak = memory.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 200 << 10, "the server has taken {peak} KiB");
    drop(slow);
    // The command has the time that the client gave it, and no more.
    wait_until("the command has ended with its time", || listed()["processes"] == json!([]));
}
