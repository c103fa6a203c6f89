//! What is told of the way out: in the log, in the report, at the end of a run, live, and to who hits a
//! limit (NET-7).

use std::time::Duration;

use palisade_testkit::Output;
use rustix::process::Signal;
use serde_json::Value;

use crate::egress_support::Net;
use crate::inside::eventually;

fn network_of(output: &Output) -> &Value {
    let report = output.report.as_ref().expect("a report");
    &report["network"]
}

/// Proves: NET-7 logged, NET-6 logged, AUD-2 proxy-events
#[test]
fn every_attempt_is_in_the_log_with_its_verdict_and_rule() {
    let net = Net::new();
    net.script(
        &["--allow-host", "*.example", "--deny-host", "other.example"],
        "curl -s --noproxy '*' --max-time 10 https://web.example/; \
         curl -s --noproxy '*' --max-time 10 http://web.example:8080/; \
         curl -s --max-time 10 http://other.example/; curl -s --max-time 10 http://private.example/; \
         curl -s --noproxy '*' --max-time 10 http://203.0.113.11/; curl -s --max-time 10 https://unheard.test/; :",
    );
    let attempts = net.events("NETWORK_ATTEMPT");
    let find = |host: &str, port: u16| {
        let found = attempts.iter().find(|one| one["host"] == host && one["port"] == port);
        found.unwrap_or_else(|| panic!("{host}:{port} is not among {attempts:#?}"))
    };
    let allowed = find("web.example", 443);
    assert_eq!(allowed["action"], "proxy_allowed", "{allowed}");
    assert_eq!((&allowed["via"], &allowed["rule"]), (&"transparent".into(), &"*.example".into()));
    assert_eq!(allowed["address"], "203.0.113.10", "{allowed}");
    for (host, port, action) in [
        ("web.example", 8080, "proxy_denied_port"),
        ("other.example", 80, "proxy_denied"),
        ("private.example", 80, "dns_rebind_blocked"),
        ("203.0.113.11", 80, "proxy_denied"),
        ("unheard.test", 443, "proxy_denied"),
    ] {
        assert_eq!(find(host, port)["action"], action, "{host}");
    }
    assert_eq!(find("other.example", 80)["rule"], "other.example");
    let closed = net.events("CONNECTION_CLOSED");
    let closed = closed.iter().find(|one| one["host"] == "web.example").expect("closed");
    assert!(closed["received"].as_u64().unwrap() > 100, "{closed}");
    let asked = net.events("NAME_QUERIED");
    assert!(asked.iter().any(|one| one["name"] == "web.example"), "{asked:#?}");
    net.world.sandbox(["audit", "verify"]).run().assert_code(0);
}

/// Proves: NET-7 refusals
#[test]
fn the_end_of_a_run_names_what_was_denied_and_the_flag_for_each() {
    let net = Net::new();
    let output = net.script(
        &["--allow-host", "web.example"],
        "curl -s --max-time 10 https://other.example/; curl -s --noproxy '*' --max-time 10 http://web.example:8080/ \
           >/dev/null; curl -s --max-time 10 http://10.0.0.5/ >/dev/null; :",
    );
    output.assert_code(0);
    let err = output.err();
    assert!(err.contains("--allow-host other.example"), "{err}");
    assert!(err.contains("--allow-host web.example:8080"), "{err}");
    assert!(!err.contains("--allow-host 10.0.0.5"), "no flag would allow that: {err}");
    // The flag does allow it, as it was printed.
    let flags = [
        "--allow-host",
        "web.example",
        "--allow-host",
        "web.example:8080",
        "--allow-host",
        "other.example",
    ];
    let again = net.script(
        &flags,
        "curl -s --max-time 10 https://other.example/; curl -s --noproxy '*' --max-time 10 http://web.example:8080/",
    );
    assert_eq!(again.out(), "hello from other.example\nhello from web.example\n");
}

/// Proves: NET-7 logged
#[test]
fn the_report_sums_up_hosts_bytes_queries_and_datagrams() {
    let net = Net::new();
    let output = net.script(
        &["--allow-host", "web.example"],
        "for i in 1 2 3; do curl -s -o /dev/null --noproxy '*' --max-time 20 http://web.example/big/1; done; \
         curl -s --max-time 10 http://other.example/; \
         /usr/bin/python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b\"x\", (\"203.0.113.10\", 123))'; :",
    );
    output.assert_code(0);
    let network = network_of(&output);
    assert_eq!(
        (&network["mode"], &network["front"]),
        (&"proxy".into(), &"transparent".into()),
        "{network:#}"
    );
    let host = &network["hosts"][0];
    assert_eq!(
        (&host["host"], &host["connections"]),
        (&"web.example".into(), &3.into()),
        "{network:#}"
    );
    assert!(host["received"].as_u64().unwrap() >= 3 * 1024 * 1024, "{network:#}");
    let denied = &network["denied"][0];
    assert_eq!(denied["host"], "other.example", "{network:#}");
    assert_eq!(denied["allow"], "--allow-host other.example", "{network:#}");
    assert!(network["queries"]["answered"].as_u64().unwrap() > 0, "{network:#}");
    assert!(network["datagramsRejected"].as_u64().unwrap() > 0, "{network:#}");
}

/// Proves: NET-7 limit
#[test]
fn only_so_many_connections_at_once_and_one_that_ends_makes_room() {
    let net = Net::new();
    let output = net.python(
        &["--allow-host", "web.example:7", "--max-connections", "5"],
        "import socket, time\n\
         def open():\n\
         \x20 s = socket.socket(); s.settimeout(10)\n\
         \x20 try: s.connect(('web.example', 7)); s.sendall(b'hi'); return s if s.recv(2) == b'hi' else None\n\
         \x20 except OSError: return None\n\
         held = [open() for _ in range(12)]\n\
         print(sum(s is not None for s in held))\n\
         for s in held:\n\
         \x20 if s: s.close()\n\
         end = time.time() + 10\n\
         while open() is None and time.time() < end: time.sleep(0.02)\n\
         print(open() is not None)\n",
    );
    output.assert_code(0);
    assert_eq!(output.out(), "5\nTrue\n", "{}", output.err());
}

/// Proves: NET-7 limit
#[test]
fn who_says_nothing_for_long_keeps_nobody_else_out() {
    let net = Net::new();
    let output = net.python(
        &["--allow-host", "web.example", "--max-connections", "20"],
        "import socket\n\
         def slow(place, data):\n\
         \x20 try:\n\
         \x20  s = socket.create_connection(place, 10); s.sendall(data); return s\n\
         \x20 except OSError: return None\n\
         held = [slow(('198.18.0.1', 3128), b'GET http://web.exa') for _ in range(100)]\n\
         held += [slow(('198.18.0.1', 3128), b'') for _ in range(100)]\n\
         s = socket.create_connection(('web.example', 80), 10)\n\
         s.sendall(b'GET / HTTP/1.0\\r\\nHost: web.example\\r\\n\\r\\n')\n\
         print(s.recv(1000).decode().splitlines()[0])\n",
    );
    output.assert_code(0);
    assert_eq!(output.out(), "HTTP/1.1 200 OK\n", "{}", output.err());
}

/// Proves: NET-7 bytes
#[test]
fn no_more_goes_through_than_was_said() {
    let net = Net::new();
    let output = net.script(
        &["--allow-host", "web.example", "--max-bytes", "4M"],
        "for way in '' '*'; do \
           curl -s -o /dev/null -w '%{size_download}\\n' --noproxy \"$way\" --max-time 20 http://web.example/big/16; \
         done",
    );
    let sizes: Vec<u64> = output.out().lines().map(|line| line.parse().unwrap()).collect();
    assert!(sizes[0] > 1024 * 1024, "{sizes:?}");
    assert!(sizes.iter().sum::<u64>() <= 5 * 1024 * 1024, "{sizes:?}");
}

/// Proves: NET-7 shown
#[test]
fn what_goes_on_is_shown_live_and_afterwards() {
    let net = Net::new();
    let run = net.spawn(
        &["--allow-host", "web.example"],
        &["sh", "-c", "curl -s --max-time 10 http://other.example/ >/dev/null; curl -s --noproxy '*' http://web.example/endless >/dev/null"],
    );
    net.lab.wait_for("the download", |entry| entry["line"] == "GET /endless HTTP/1.1");
    let shown = || net.sandbox(&["net", "--json"]);
    eventually("both attempts shown", || {
        let out = shown();
        out.code() == 0 && out.out().contains("web.example") && out.out().contains("other.example")
    });
    let text = net.sandbox(&["net"]);
    text.assert_code(0);
    assert!(
        text.out().contains("web.example") && text.out().contains("other.example"),
        "{}",
        text.out()
    );
    run.signal(Signal::TERM);
    drop(run.wait());
    let after = net.sandbox(&["net"]);
    after.assert_code(0);
    assert!(after.out().contains("web.example"), "{}", after.out());
}

/// Proves: NET-7 logged
#[test]
fn a_flood_of_attempts_is_summed_and_stops_nobody() {
    let net = Net::new();
    let output = net
        .lab
        .sandbox_run(
            &net.world,
            ["--allow-host", "web.example"],
            [
                "/usr/bin/python3",
                "-c",
                "import socket, threading\n\
                 def try_often():\n\
                 \x20 for i in range(100):\n\
                 \x20  s = socket.socket(); s.settimeout(10)\n\
                 \x20  try: s.connect(('203.0.113.11', 443)); s.recv(1)\n\
                 \x20  except OSError: pass\n\
                 \x20  s.close()\n\
                 many = [threading.Thread(target=try_often) for _ in range(8)]\n\
                 for one in many: one.start()\n\
                 for one in many: one.join()\n\
                 s = socket.create_connection(('web.example', 80), 10); s.sendall(b'GET / HTTP/1.0\\r\\nHost: web.example\\r\\n\\r\\n')\n\
                 print(s.recv(1000).decode().splitlines()[0])\n",
            ],
        )
        .deadline(Duration::from_secs(100))
        .run();
    output.assert_code(0);
    assert_eq!(output.out(), "HTTP/1.1 200 OK\n");
    let attempts = net.events("NETWORK_ATTEMPT");
    let denied: Vec<&Value> = attempts.iter().filter(|one| one["host"] == "203.0.113.11").collect();
    let told: u64 = denied.iter().map(|one| one["count"].as_u64().unwrap_or(1)).sum();
    assert_eq!(told, 800, "every one is counted");
}

/// Asks the proxy for many hosts, each with a long name of its own.
const FLOOD: &str = "import socket, random
for _ in range(3000):
    name = '.'.join(''.join(random.choices('abcdefghij', k=60)) for _ in range(4))[:240]
    client = socket.create_connection(('198.18.0.1', 3128))
    client.sendall(('CONNECT %s:443 HTTP/1.1\\r\\nHost: %s:443\\r\\n\\r\\n' % (name, name)).encode())
    assert b' 403 ' in client.recv(65536)
    client.close()";

/// Proves: NET-7 bounded-log, NET-7 logged
#[test]
fn a_flood_of_attempts_is_counted_and_does_not_fill_the_disk() {
    let net = Net::new();
    let output = net.python(&["--allow-host", "web.example", "--on-ask", "deny"], FLOOD);
    output.assert_code(0);
    let attempts = net.events("NETWORK_ATTEMPT");
    let denied = attempts.iter().filter(|one| one["action"] == "proxy_denied");
    let counted: u64 = denied.map(|one| one["count"].as_u64().unwrap_or(1)).sum();
    assert_eq!(counted, 3000, "none is lost");
    let log = net.world.home().join(".local/state/palisade/audit.jsonl");
    let length = std::fs::metadata(log).unwrap().len();
    assert!(length < 1_000_000, "{length} bytes");
    net.world.sandbox(["audit", "verify"]).run().assert_code(0);
}
