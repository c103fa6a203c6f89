//! Who is told of an attempt to break out, and what becomes of a run when nobody can be (ESC-1).

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use palisade_testkit::World;
use serde_json::Value;

use crate::escape_response::{
    SETNS, calling_and_ending, escape_of, events, quarantined, run, running,
};

/// What a webhook does with who connects.
enum Server {
    Answers(&'static str),
    Hangs,
}

/// Serves two connections at most, and gives what was sent.
fn serve(server: Server) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url =
        format!("http://127.0.0.1:{}/hook?token=hidden", listener.local_addr().unwrap().port());
    listener.set_nonblocking(true).unwrap();
    let thread = thread::spawn(move || {
        let mut heard = Vec::new();
        let mut kept = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(15);
        while Instant::now() < deadline && heard.len() < 2 {
            let Ok((mut stream, _)) = listener.accept() else {
                thread::sleep(Duration::from_millis(5));
                continue;
            };
            let request = request(&mut stream);
            let is_last = request == "stop";
            if is_last {
                break;
            }
            heard.push(request);
            match server {
                Server::Answers(answer) => stream.write_all(answer.as_bytes()).unwrap(),
                Server::Hangs => kept.push(stream),
            }
        }
        heard
    });
    (url, thread)
}

fn stop(url: &str, thread: JoinHandle<Vec<String>>) -> Vec<String> {
    let place = url.strip_prefix("http://").unwrap().split('/').next().unwrap();
    if let Ok(mut stream) = TcpStream::connect(place) {
        let _ = stream.write_all(b"stop");
        let _ = stream.shutdown(std::net::Shutdown::Write);
    }
    thread.join().unwrap()
}

fn request(stream: &mut TcpStream) -> String {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        text.extend_from_slice(&buffer[..read]);
        let whole = String::from_utf8_lossy(&text);
        let length = whole.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let length = length.and_then(|length| length.trim().parse::<usize>().ok());
        let body = whole.split_once("\r\n\r\n").map(|(_, body)| body.len());
        if length.is_some() && body == length {
            break;
        }
    }
    String::from_utf8(text).unwrap()
}

/// Proves: ESC-1 alert
#[test]
fn a_webhook_gets_the_incident_without_secrets() {
    let world = World::new();
    let (url, server) = serve(Server::Answers("HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n"));
    let escape = format!("onCritical: quarantine, webhook: '{url}'");
    let script = calling_and_ending(SETNS);
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let output = run(&world, &escape, &[], &["python3", "-c", &script, "--token", secret]);
    output.assert_code(137);
    let heard = stop(&url, server);
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(heard[0].starts_with("POST /hook?token=hidden HTTP/1.1\r\n"), "{heard:?}");
    let body: Value = serde_json::from_str(heard[0].split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["action"], "quarantine");
    assert_eq!(body["attempt"]["id"], "syscall.blocked");
    assert!(!heard[0].contains(secret));
    let alerts = &escape_of(&output)["response"]["alerts"];
    assert_eq!(alerts[0]["by"], "webhook");
    assert!(alerts[0].get("error").is_none(), "{alerts}");
    // The address is a secret of its own.
    let policy = world.path().join("policy.yaml").display().to_string();
    for words in [
        &["policy", "show", "--policy", &policy][..],
        &["plan", "--policy", &policy, "--json", "--", "true"],
    ] {
        let shown = world.sandbox(words.iter().copied()).run();
        assert!(!shown.assert_code(0).out().contains("token=hidden"), "{}", shown.out());
    }
}

/// A server of one request, with a certificate that vouches for itself. Prints its port, then what it was sent.
const TLS_SERVER: &str = "
import http.server, ssl, sys
class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        self.send_response(204); self.end_headers()
        print(self.path, body.decode(), flush=True)
    def log_message(self, *words): pass
server = http.server.HTTPServer(('127.0.0.1', 0), Hook)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
server.timeout = 60
print(server.server_address[1], flush=True)
for _ in range(3): server.handle_request()
";

/// Who cannot be told from somebody else gets nothing.
///
/// Proves: ESC-1 alert
#[test]
fn a_webhook_over_tls_must_have_a_certificate_that_is_trusted() {
    let world = World::new();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let certificate = world.write("hook.pem", made.cert.pem());
    let key = world.write("hook.key", made.signing_key.serialize_pem());
    let mut server = Command::new("/usr/bin/python3")
        .args(["-c", TLS_SERVER])
        .args([&certificate, &key])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut heard = BufReader::new(server.stdout.take().unwrap()).lines();
    let port = heard.next().unwrap().unwrap();
    let escape = format!("onCritical: quarantine, webhook: 'https://127.0.0.1:{port}/hook'");
    let alerted = |round: u32, trusted: Option<&Path>| {
        let script = format!("{}  # {round}", calling_and_ending(SETNS));
        let invocation = running(&world, &escape, &[], &["python3", "-c", &script]);
        let output = match trusted {
            Some(file) => invocation.env("SSL_CERT_FILE", file.as_os_str()).run(),
            None => invocation.run(),
        };
        output.assert_code(137);
        escape_of(&output)["response"]["alerts"][0].clone()
    };
    // Tried twice, and never sent.
    let refused = alerted(0, None);
    assert!(refused["error"].as_str().unwrap().contains("certificate"), "{refused}");
    let told = alerted(1, Some(&certificate));
    assert!(told.get("error").is_none(), "{told}");
    let request = heard.next().unwrap().unwrap();
    let (path, body) = request.split_once(' ').unwrap();
    assert_eq!(path, "/hook");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["attempt"]["id"], "syscall.blocked");
    // It has ended by now, or does with this.
    let _ = server.kill();
    server.wait().unwrap();
}

/// Proves: ESC-1 alert
#[test]
fn a_webhook_that_refuses_or_hangs_is_told_and_holds_nothing_up_for_long() {
    let world = World::new();
    let refusing = serve(Server::Answers("HTTP/1.1 500 No\r\n\r\n"));
    let hanging = serve(Server::Hangs);
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://127.0.0.1:{}/", listener.local_addr().unwrap().port())
    };
    let cases =
        [(refusing.0.clone(), "status 500"), (hanging.0.clone(), ""), (nobody, "cannot connect")];
    for (round, (url, why)) in cases.iter().enumerate() {
        let start = Instant::now();
        let script = format!("{}  # {round}", calling_and_ending(SETNS));
        let escape = format!("onCritical: quarantine, webhook: '{url}'");
        let output = run(&world, &escape, &[], &["python3", "-c", &script]);
        output.assert_code(137);
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
        let error = escape_of(&output)["response"]["alerts"][0]["error"].as_str().unwrap();
        assert!(error.contains(why), "{error}");
        assert!(output.err().contains("the webhook alert failed"), "{}", output.err());
        let recorded = events(&world, "ESCAPE_RESPONSE");
        assert!(recorded[round]["alerts"][0]["error"].is_string());
        assert_eq!(quarantined(&world).len(), round + 1);
    }
    assert_eq!(stop(&refusing.0, refusing.1).len(), 2, "it is tried twice");
    assert_eq!(stop(&hanging.0, hanging.1).len(), 2);
}

/// Proves: ESC-1 alert
#[test]
fn the_desktop_is_told_without_a_shell() {
    let world = World::new();
    let told = world.path().join("told");
    let notify = world.write(
        "bin/notify-send",
        format!("#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done > {}\n", told.display()),
    );
    fs::set_permissions(&notify, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", world.path().join("bin").display());
    let script = calling_and_ending(SETNS);
    let output = running(&world, "onCritical: kill", &[], &["python3", "-c", &script, "$(id)<b>"])
        .env("PATH", path)
        .env("DISPLAY", ":0")
        .run();
    output.assert_code(137);
    assert!(fs::read_to_string(told).unwrap().contains("The sandbox ended a command"));
    assert_eq!(escape_of(&output)["response"]["alerts"][0]["by"], "desktop");
}
