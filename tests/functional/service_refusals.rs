//! What `sandbox serve` does not do: each a clear refusal, and the server goes on.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use palisade_testkit::{Invocation, Running, World, patiently};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use serde_json::json;

use crate::service_support::{Answer, Server, answer};
use crate::sessions_support::{Sessions, wait_until};

/// Proves: ERR-1 http, ERR-1 kinds
#[test]
fn what_cannot_be_read_or_done_is_a_problem_with_its_class() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = Server::start(&world, &[]);
    let json_type = "Content-Type: application/json";
    let send = |arguments: &[&str]| answer(server.curl("/v1/sandboxes").args(arguments));
    let malformed = send(&["-H", json_type, "-d", "{\"name\":"]);
    assert!(malformed.expect_problem(400, "validation").contains("line 1"));
    send(&["-H", json_type, "-d", "nonsense"]).expect_problem(400, "validation");
    send(&["-d", "{}"]).expect_problem(415, "validation");
    send(&["-H", "Content-Type: text/plain", "-d", "{}"]).expect_problem(415, "validation");
    send(&["-X", "PUT"]).expect_problem(405, "validation");
    let unknown = server.post("/v1/sandboxes", &json!({ "nmae": "x" }));
    assert!(unknown.expect_problem(422, "validation").contains("nmae"));
    server.post("/v1/sandboxes", &json!({ "name": 7 })).expect_problem(422, "validation");
    let invalid = [
        json!({ "name": "--help" }),
        json!({ "name": "a b" }),
        json!({ "presets": ["no-such-preset"] }),
        json!({ "settings": { "no.such": 1 } }),
        json!({ "settings": { "resources.maxMemory": [] } }),
        json!({ "settings": { "a=b": 1 } }),
        json!({ "project": "relative" }),
        json!({ "project": "/no/such/directory" }),
        json!({ "project": "/etc/passwd" }),
        json!({ "timeToLiveSeconds": 0 }),
    ];
    for body in invalid {
        let refused = server.post("/v1/sandboxes", &body);
        assert!(!refused.expect_problem(422, "validation").is_empty(), "{body}");
    }
    let host = server.post("/v1/sandboxes", &json!({ "settings": { "network.mode": "host" } }));
    assert!(host.expect_problem(403, "security").contains("approval"));
    assert_eq!(server.get("/v1/sandboxes").expect(200)["sandboxes"], json!([]));

    for path in ["/v2/sandboxes", "/v1/sandboxes/", "/v1/sandboxes/x", "/v1/../etc/passwd"] {
        server.get(path).expect_problem(404, "validation");
    }
    server.get("/v1/sandboxes/%2e%2e%2f%2e%2e").expect_problem(404, "validation");
    server.get("/v1/sandboxes?limit=x").expect_problem(400, "validation");
    server.get("/v1/sandboxes?limit=5000").expect_problem(422, "validation");

    server.create(&json!({ "name": "s" }));
    let commands = "/v1/sandboxes/s/commands";
    for body in [
        json!({ "argv": [] }),
        json!({ "argv": [""] }),
        json!({ "argv": ["a\0b"] }),
        json!({ "argv": ["true"], "environment": { "A=B": "" } }),
        json!({ "argv": ["true"], "timeoutSeconds": 1 }),
        json!({ "argv": ["true"], "wait": true, "terminal": { "rows": 1, "columns": 1 } }),
        json!({ "argv": ["true"], "wait": true, "maxOutputBytes": 1 << 30 }),
    ] {
        server.post(commands, &body).expect_problem(422, "validation");
    }
    let taken = server.post("/v1/sandboxes", &json!({ "name": "s" }));
    assert!(taken.expect_problem(409, "validation").contains("taken"));
    let no_transaction = server.get("/v1/sandboxes/s/diff");
    assert!(!no_transaction.expect_problem(409, "validation").is_empty());
    server.get(&format!("{commands}/x")).expect_problem(404, "validation");
    server.run("s", &["true"]);
}

/// Proves: TOOL-1 http-bounds
#[test]
fn what_is_too_large_or_too_slow_is_refused_and_others_are_served() {
    let world = World::new();
    let server = Server::start(&world, &["--client-timeout", "1s"]);
    let large = vec![b'x'; 2 << 20];
    let json_type = ["-H", "Content-Type: application/json"];
    let send = |more: &[&str]| {
        let curl = server.curl("/v1/sandboxes").args(json_type).args(more);
        answer(curl.args(["--data-binary", "@-"]).stdin(large.clone()))
    };
    send(&["-H", "Expect:"]).expect_problem(413, "resource");
    send(&["-H", "Expect:", "-H", "Transfer-Encoding: chunked"]).expect_problem(413, "resource");

    let reply = |sent: &str| {
        let mut stream = UnixStream::connect(server.socket()).unwrap();
        stream.set_read_timeout(Some(patiently(Duration::from_secs(30)))).unwrap();
        stream.write_all(sent.as_bytes()).unwrap();
        let mut said = Vec::new();
        match stream.read_to_end(&mut said) {
            // It did not read all that was sent: what it said is read before that.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            read => drop(read.unwrap()),
        }
        String::from_utf8(said).unwrap()
    };
    // By a tunnel, another site's page may get as far as the socket, but not under our name.
    let other = reply("GET /healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert!(other.starts_with("HTTP/1.1 403"), "{other}");
    let head =
        "POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let slow_body = reply(&format!("{head}Content-Length: 100\r\n\r\n{{"));
    assert!(slow_body.starts_with("HTTP/1.1 408"), "{slow_body}");
    assert!(slow_body.contains("application/problem+json"), "{slow_body}");
    // The connection is closed, without an answer: there is no request yet.
    for unfinished in ["", "GET /heal", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nA: "] {
        let said = reply(unfinished);
        assert!(!said.contains("200 OK"), "{said}");
    }
    let long = format!("GET /healthz HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(100_000));
    let said = reply(&long);
    assert!(said.starts_with("HTTP/1.1 431"), "{said}");
    let garbage = reply("\u{16}\u{3}\u{1} no HTTP at all\r\n\r\n");
    assert!(garbage.starts_with("HTTP/1.1 400"), "{garbage}");

    // Connections that say nothing do not keep others out.
    let idle: Vec<_> = (0..200).map(|_| UnixStream::connect(server.socket()).unwrap()).collect();
    assert_eq!(server.get("/healthz").body, "ok\n");
    drop(idle);
}

/// A client that asks for much and reads nothing neither holds the server up nor fills its memory.
/// Proves: TOOL-1 http-bounds
#[test]
fn a_client_that_reads_nothing_is_given_up() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = Server::start(&world, &["--client-timeout", "1s"]);
    server.create(&json!({ "name": "s" }));
    let flood = json!({ "argv": ["sh", "-c", "yes | head -c 4000000"] });
    server.post("/v1/sandboxes/s/commands", &flood).expect(201);
    let mut stream = UnixStream::connect(server.socket()).unwrap();
    stream
        .write_all(b"GET /v1/sandboxes/s/commands/1/output HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    // Its end is seen without reading.
    let is_closed = || {
        let mut polled = [PollFd::new(&stream, PollFlags::empty())];
        poll(&mut polled, Some(&Timespec::default())).unwrap();
        polled[0].revents().contains(PollFlags::HUP)
    };
    wait_until("its connection is closed", is_closed);
    server.run("s", &["true"]);
}

/// Only root can be two users.
/// Proves: TOOL-1 http-access
#[test]
fn another_user_is_refused_at_the_socket() {
    let world = World::new();
    // Nobody else gets into the world of a test.
    let open = tempfile::tempdir_in("/tmp").unwrap();
    let server = Server::start_in(&world, open.path(), &[]);
    let mode = fs::metadata(server.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be another user");
        return;
    }
    // As if somebody had opened the socket to everybody.
    fs::set_permissions(server.socket(), fs::Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(open.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let curl = world.bare("setpriv").args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    let curl = curl.args(["curl", "-sS", "-m", "60", "--unix-socket"]).arg(server.socket());
    let refused = answer(curl.arg("http://localhost/v1/sandboxes").cwd("/"));
    assert!(refused.expect_problem(403, "security").contains("65534"));
    server.get("/v1/sandboxes").expect(200);
}

/// A server at a TCP socket.
struct TcpServer<'a> {
    world: &'a World,
    running: Option<Running>,
    port: u16,
    token: String,
}

impl<'a> TcpServer<'a> {
    fn start(world: &'a World, arguments: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let listen = format!("tcp:127.0.0.1:{port}");
        let running = world.sandbox(["serve", "--listen", &listen]).args(arguments).spawn();
        running.wait_for_stderr("the token is in");
        let token = world.home().join(".local/state/palisade/service/token");
        assert_eq!(fs::metadata(&token).unwrap().permissions().mode() & 0o777, 0o600);
        let token = fs::read_to_string(token).unwrap().trim().to_owned();
        Self { world, running: Some(running), port, token }
    }

    fn curl(&self, arguments: &[&str]) -> Invocation {
        let curl = self.world.bare("curl").args(["-sS", "-m", "60"]);
        curl.arg(format!("http://127.0.0.1:{}/v1/sandboxes", self.port)).args(arguments)
    }

    fn with_token(&self, arguments: &[&str]) -> Answer {
        let token = format!("Authorization: Bearer {}", self.token);
        answer(self.curl(&["-H", &token]).args(arguments))
    }
}

impl Drop for TcpServer<'_> {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.signal(Signal::TERM);
            let _ = running.wait();
        }
    }
}

/// Proves: TOOL-1 http-access
#[test]
fn over_tcp_a_request_needs_the_token_our_name_and_no_other_origin() {
    let world = World::new();
    let server = TcpServer::start(&world, &["--host", "box.example"]);
    server.with_token(&[]).expect(200);
    answer(server.curl(&[])).expect_problem(401, "security");
    answer(server.curl(&["-H", "Authorization: Bearer wrong"])).expect_problem(401, "security");
    let almost = format!("Authorization: Bearer {}x", server.token);
    answer(server.curl(&["-H", &almost])).expect_problem(401, "security");
    let port = server.port;
    for (header, status) in [
        ("Host: evil.example".to_owned(), 403),
        (format!("Host: evil.example:{port}"), 403),
        (format!("Host: localhost:{port}"), 200),
        (format!("Host: box.example:{port}"), 200),
        ("Origin: http://evil.example".to_owned(), 403),
        ("Origin: null".to_owned(), 403),
        (format!("Origin: http://127.0.0.1:{port}"), 200),
    ] {
        let seen = server.with_token(&["-H", &header]);
        assert_eq!(seen.status, status, "{header}: {}", seen.body);
        if status == 403 {
            seen.expect_problem(403, "security");
        }
    }
    let health = server.world.bare("curl").args(["-sS", "-m", "60"]);
    let health = answer(health.arg(format!("http://127.0.0.1:{port}/healthz")));
    assert_eq!((health.status, health.body.as_str()), (200, "ok\n"));
}

/// Proves: TOOL-1 http-access
#[test]
fn what_would_be_open_to_others_is_refused_at_the_start() {
    let world = World::new();
    let refused = |arguments: &[&str], why: &str| {
        let output = world.sandbox(["serve"]).args(arguments).run();
        output.assert_code(125);
        assert!(output.err().contains(why), "{arguments:?}: {}", output.err());
    };
    refused(&["--listen", "tcp:0.0.0.0:0"], "--tls-cert");
    refused(&["--listen", "tcp:[::]:0"], "--tls-cert");
    refused(&["--listen", "tcp:nowhere"], "no address");
    refused(&["--listen", "http://127.0.0.1:1"], "no address");
    refused(&["--token-file", "t"], "--listen tcp:");
    refused(&["--listen", "tcp:127.0.0.1:0", "--tls-cert", "x"], "--tls-key");
    let missing = ["--listen", "tcp:127.0.0.1:0", "--tls-cert", "/no/cert", "--tls-key", "/no/key"];
    refused(&missing, "/no/cert");
    let file = world.write("token", "0123456789abcdef0123456789abcdef\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let file = file.display().to_string();
    let with_token = ["--listen", "tcp:127.0.0.1:0", "--token-file", &file];
    refused(&with_token, "chmod 600");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&file, "short").unwrap();
    refused(&with_token, "at least 32");
    let in_the_way = world.write("in-the-way", "");
    refused(&["--listen", &format!("unix:{}", in_the_way.display())], "not a socket");
}

/// Proves: TOOL-1 http-access
#[test]
fn off_loopback_there_is_tls() {
    let world = World::new();
    let made = rcgen::generate_simple_self_signed(vec!["box.example".to_owned()]).unwrap();
    let certificate = world.write("cert.pem", made.cert.pem());
    let key = world.write("key.pem", made.signing_key.serialize_pem());
    let tls = ["--tls-cert", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let arguments = [&tls[..], &["--host", "box.example"]].concat();
    let server = TcpServer::start(&world, &arguments);
    let token = format!("Authorization: Bearer {}", server.token);
    let place = format!("box.example:{}", server.port);
    let curl = world.bare("curl").args(["-sS", "-m", "60", "-H", &token, "--cacert"]);
    let curl = curl.arg(&certificate).args(["--resolve", &format!("{place}:127.0.0.1")]);
    answer(curl.arg(format!("https://{place}/v1/sandboxes"))).expect(200);
    let plain = server.curl(&["-H", &token]).run();
    assert_ne!(plain.code(), 0, "without TLS there is no answer");
}
