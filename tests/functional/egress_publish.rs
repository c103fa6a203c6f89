//! Published ports when there are too many clients for them, and at the end of a run (NET-7, NET-9).

use crate::egress_support::Net;
use crate::inside::eventually;

const PORT: &str = "18083:8000";

/// So few that a handful of connections takes them all.
const DESCRIPTORS: &str = "--nofile=90:90";

const INSIDE: &str = "/usr/bin/python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 & \
     until curl -s -o /dev/null --noproxy '*' http://127.0.0.1:8000/; do sleep 0.1; done; \
     echo ready; read line; curl -s --max-time 10 --noproxy '*' http://web.example/; read line";

const MANY_CLIENTS: &str = "import socket
held = [socket.create_connection(('127.0.0.1', 18083)) for _ in range(60)]
print('held', flush=True)
input()";

/// Proves: NET-7 limit, NET-9 published
#[test]
fn too_many_clients_neither_close_the_way_out_nor_the_port_for_good() {
    let net = Net::new();
    let mut words = net.lab.enter();
    words.extend(["prlimit", DESCRIPTORS].map(str::to_owned));
    let mut run = net
        .world
        .sandbox_run(["--publish", PORT, "--allow-host", "web.example"], ["sh", "-c", INSIDE])
        .started_by(&words)
        .keep_stdin_open()
        .spawn();
    run.wait_for_stdout("ready");
    let mut clients = net
        .lab
        .bare(&net.world, "/usr/bin/python3")
        .args(["-c", MANY_CLIENTS])
        .keep_stdin_open()
        .spawn();
    clients.wait_for_stdout("held");
    run.send(b"\n");
    run.wait_for_stdout("hello from web.example");
    clients.send(b"\n");
    clients.wait().assert_code(0);
    let page = || {
        let fixed = ["-s", "--max-time", "5", "http://127.0.0.1:18083/"];
        net.lab.bare(&net.world, "curl").args(fixed).run()
    };
    eventually("the port leads in again", || page().code() == 0);
    run.send(b"\n");
    run.wait().assert_code(0);
    let attempts = net.events("NETWORK_ATTEMPT");
    let refused = |one: &serde_json::Value| {
        one["via"] == "published" && one["reason"].as_str().is_some_and(|why| why.contains("limit"))
    };
    assert!(attempts.iter().any(refused), "{attempts:#?}");
    let is_gone = |one: &serde_json::Value| one["host"] == "(published ports)";
    assert!(!attempts.iter().any(is_gone), "they lead in until the end: {attempts:#?}");
}

/// Answers once, with more than is under way at any moment, and is gone.
const LAST_WORDS: &str = "import socket
s = socket.socket(); s.bind(('127.0.0.1', 8000)); s.listen(); print('ready', flush=True)
c, _ = s.accept(); c.recv(100); c.sendall(b'x' * 200000); c.close()";

const LISTENER: &str = "import socket
s = socket.create_connection(('127.0.0.1', 18083), 10); s.sendall(b'hello')
heard = 0
while part := s.recv(65536): heard += len(part)
print(heard)";

/// Proves: NET-9 published
#[test]
fn what_was_said_last_arrives_though_who_said_it_has_ended() {
    const ROUNDS: usize = 10;
    for _ in 0..ROUNDS {
        let net = Net::new();
        let run = net
            .world
            .sandbox_run(["--publish", PORT], ["/usr/bin/python3", "-c", LAST_WORDS])
            .started_by(&net.lab.enter())
            .spawn();
        run.wait_for_stdout("ready");
        let heard = net.lab.bare(&net.world, "/usr/bin/python3").args(["-c", LISTENER]).run();
        assert_eq!(heard.out(), "200000\n", "{}", heard.err());
        run.wait().assert_code(0);
    }
}
