//! `sandbox proxy`: the explicit proxy alone, for containers on an internal network (NET-10).

use palisade_testkit::{Output, Running, am_root};
use rustix::process::Signal;
use serde_json::Value;

use crate::egress_support::Net;
use crate::inside::{eventually, status_field};

const POLICY: &str = r#"{"network": {"mode": "proxy", "allowedHosts": ["web.example", "*.sub.other.example"], "deniedHosts": ["four.example"]}}"#;

struct Alone<'a> {
    net: &'a Net,
    proxy: Running,
}

impl<'a> Alone<'a> {
    fn start(net: &'a Net, policy: &str) -> Self {
        Self::start_at(net, policy, "203.0.113.40:3128")
    }

    fn start_at(net: &'a Net, policy: &str, listen: &str) -> Self {
        let file = net.world.write("proxy.json", policy);
        let proxy = net
            .world
            .sandbox(["proxy", "--listen", listen, "--json", "--config"])
            .arg(file)
            .started_by(&net.lab.enter())
            .spawn();
        let alone = Self { net, proxy };
        eventually("the proxy answers", || alone.curl(&["http://web.example/"]).code() == 0);
        alone
    }

    fn curl(&self, arguments: &[&str]) -> Output {
        let fixed = ["-s", "--max-time", "10", "-x", "http://203.0.113.40:3128"];
        self.net.lab.bare(&self.net.world, "curl").args(fixed).args(arguments).run()
    }

    fn code_of(&self, url: &str) -> String {
        self.curl(&["-o", "/dev/null", "-w", "%{http_code} %{http_connect}", url])
            .out()
            .into_owned()
    }

    fn end(self) -> Output {
        self.proxy.signal(Signal::TERM);
        self.proxy.wait()
    }
}

/// Proves: NET-10 alone
#[test]
fn the_proxy_runs_alone_and_judges_the_same() {
    let net = Net::new();
    let alone = Alone::start(&net, POLICY);
    for url in ["http://web.example/", "https://web.example/", "http://deep.sub.other.example/"] {
        assert!(alone.curl(&[url]).out().starts_with("hello from "), "{url}");
    }
    for (url, codes) in [
        ("http://other.example/", "403 000"),
        ("http://four.example/", "403 000"),
        ("https://other.example/", "000 403"),
        ("https://web.example:8443/", "000 403"),
        ("http://169.254.169.254/", "403 000"),
        ("http://203.0.113.40:3128/", "403 000"),
        ("http://127.0.0.1/", "403 000"),
    ] {
        assert_eq!(alone.code_of(url), codes, "{url}");
    }
    assert!(!net.lab.asked_for("four.example"), "{:#?}", net.lab.journal());
    let said = alone.end();
    said.assert_code(0);
    let told: Vec<Value> =
        said.err().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert!(told.iter().any(|one| one.to_string().contains("proxy_allowed")), "{}", said.err());
    assert!(told.iter().any(|one| one.to_string().contains("proxy_denied")), "{}", said.err());
}

/// Of ranges that are the host's as a whole every address leads back to it.
///
/// Proves: NET-10 own-address
#[test]
fn no_address_of_its_host_leads_to_the_proxy_itself() {
    const RANGES: &str = r#"{"network": {"mode": "proxy", "allowedPorts": [80, 3128],
        "allowedHosts": ["203.0.113.0/24", "2001:db8::/32", "web.example"]}}"#;
    const ALONE: &str = r#"{"network": {"mode": "proxy", "allowedPorts": [80, 3128],
        "allowedHosts": ["203.0.113.1", "203.0.113.99", "2001:db8::1"]}}"#;
    for listen in ["0.0.0.0:3128", "[::]:3128"] {
        for (policy, other_port) in [(RANGES, "403 000"), (ALONE, "200 000")] {
            let net = Net::new();
            let alone = Alone::start_at(&net, policy, listen);
            for own in ["203.0.113.1", "203.0.113.99", "[2001:db8::1]"] {
                let code = alone.code_of(&format!("http://{own}:3128/"));
                assert_eq!(code, "403 000", "{own} by {listen}");
                assert_eq!(alone.code_of(&format!("http://{own}/")), other_port, "{own}: {policy}");
            }
            alone.end().assert_code(0);
        }
    }
}

/// An address that the host gets while the proxy serves is refused as those are that it had.
///
/// Proves: NET-3 own-addresses
#[test]
fn an_address_that_the_host_gets_later_is_its_own() {
    let net = Net::new();
    if !am_root() {
        println!("not tried: only root can give the host of the lab another address");
        return;
    }
    let alone =
        Alone::start(&net, r#"{"network": {"mode": "proxy", "allowedHosts": ["*.example"]}}"#);
    assert_eq!(alone.code_of("http://four.example/"), "200 000");
    let add = ["address", "add", "203.0.113.14/32", "dev", "lo"];
    net.lab.bare(&net.world, "ip").args(add).run().assert_code(0);
    assert_eq!(alone.code_of("http://four.example/"), "403 000");
    alone.end().assert_code(0);
}

/// Proves: NET-10 alone
#[test]
fn a_changed_policy_counts_and_a_broken_one_changes_nothing() {
    let net = Net::new();
    let alone = Alone::start(&net, POLICY);
    let reread = |policy: &str| {
        net.world.write("proxy.json", policy);
        alone.proxy.signal(Signal::HUP);
    };
    assert_eq!(alone.code_of("http://other.example/"), "403 000");
    reread(r#"{"network": {"mode": "proxy", "allowedHosts": ["other.example"]}}"#);
    eventually("the new policy counts", || alone.code_of("http://other.example/") == "200 000");
    assert_eq!(alone.code_of("http://web.example/"), "403 000");
    reread(r#"{"network": {"mode": "proxy", "allowedHosts": ["#);
    alone.proxy.wait_for_stderr("proxy.json");
    assert_eq!(alone.code_of("http://other.example/"), "200 000");
    alone.end().assert_code(0);
}

/// Three that stay connected: one asks with whole URLs, one does and makes a tunnel then, one asks in a tunnel. What comes
/// first in an answer is its status.
const STAYING: &str = r#"
import socket, sys

def connected():
    stream = socket.create_connection(("203.0.113.40", 3128), 120)
    return stream, stream.makefile("rb")

def ask(client, *lines):
    stream, answers = client
    stream.sendall("".join(line + "\r\n" for line in (*lines, "")).encode())
    status = answers.readline().split()[1].decode()
    length = 0
    while (field := answers.readline().strip().lower()):
        if field.startswith(b"content-length:"):
            length = int(field.split(b":")[1])
    answers.read(length)
    return status

whole, later, inner = connected(), connected(), connected()
url = ["GET http://web.example/ HTTP/1.1", "Host: web.example"]
path = ["GET / HTTP/1.1", "Host: web.example"]
tunnel = lambda host: [f"CONNECT {host}:80 HTTP/1.1", f"Host: {host}:80"]
print("before", ask(whole, *url), ask(later, *url), ask(inner, *tunnel("web.example")), ask(inner, *path), ".", flush=True)
sys.stdin.readline()
print("between", ask(whole, *url), ask(inner, *path), ".", flush=True)
sys.stdin.readline()
print("after", ask(whole, *url), ask(later, *tunnel("other.example")), ask(inner, *path), ".")
"#;

/// Proves: NET-10 now, NET-10 reread
#[test]
fn whoever_stayed_connected_is_judged_by_the_rules_of_now() {
    const BOTH: &str =
        r#"{"allowlist": {"hosts": ["web.example", "other.example"], "ports": [80]}}"#;
    const NEITHER: &str = r#"{"allowlist": {"hosts": ["four.example"], "ports": [80]},
        "blocklist": {"hosts": ["web.example", "other.example"]}}"#;
    let net = Net::new();
    let alone = Alone::start(&net, BOTH);
    let python = net.lab.bare(&net.world, "/usr/bin/python3").args(["-c", STAYING]);
    let mut staying = python.keep_stdin_open().spawn();
    staying.wait_for_stdout("before 200 200 200 200 .");
    net.world.write("proxy.json", r#"{"allowlist": {"hosts": ["#);
    alone.proxy.signal(Signal::HUP);
    alone.proxy.wait_for_stderr("NOT_REREAD");
    staying.send(b"\n");
    staying.wait_for_stdout("between 200 200 .");
    net.world.write("proxy.json", NEITHER);
    alone.proxy.signal(Signal::HUP);
    alone.proxy.wait_for_stderr(r#""REREAD""#);
    staying.send(b"\n");
    staying.wait_for_stdout("after 403 403 403 .");
    staying.wait().assert_code(0);
    assert!(!net.lab.asked_for("other.example"), "{:#?}", net.lab.journal());
    alone.end().assert_code(0);
}

/// Proves: NET-7 limit, NET-7 logged, NET-10 alone, NET-10 reread
#[test]
fn past_the_limit_clients_and_the_log_are_told_and_no_signal_resets_it() {
    const TWO: &str =
        r#"{"network": {"mode": "proxy", "allowedHosts": ["web.example"], "maxConnections": 2}}"#;
    let net = Net::new();
    let alone = Alone::start(&net, TWO);
    let endless = || {
        let curl = net.lab.bare(&net.world, "curl");
        let place = ["-x", "http://203.0.113.40:3128", "http://web.example/endless"];
        curl.args(["-s", "-o", "/dev/null"]).args(place).spawn()
    };
    let served = [endless(), endless()];
    // Before that one of them could be pushed out.
    eventually("both are served", || {
        let asked = |entry: &&Value| entry["line"] == "GET /endless HTTP/1.1";
        net.lab.journal().iter().filter(asked).count() == 2
    });
    eventually("no place is left", || alone.code_of("http://web.example/") == "429 000");
    assert_eq!(alone.code_of("https://web.example/"), "000 429");
    alone.proxy.signal(Signal::HUP);
    alone.proxy.wait_for_stderr("REREAD");
    assert_eq!(alone.code_of("http://web.example/"), "429 000");
    for client in served {
        client.signal(Signal::TERM);
        assert_ne!(client.wait().code(), 0, "it did not end by itself");
    }
    eventually("there is room again", || alone.code_of("http://web.example/") == "200 000");
    let said = alone.end();
    said.assert_code(0);
    let refused = |one: &Value| {
        let text = one.to_string();
        text.contains("web.example") && text.contains("2 connections are open, which is the limit")
    };
    let told = said.err();
    let mut told = told.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    assert!(told.any(|one| refused(&one)), "{}", said.err());
}

/// What it can still do was decided before it met its first client.
///
/// Proves: NET-10 confined
#[test]
fn the_proxy_gives_up_what_it_does_not_need() {
    let net = Net::new();
    let alone = Alone::start(&net, POLICY);
    for (field, value) in [
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
        ("CapEff", "0000000000000000"),
        ("CapPrm", "0000000000000000"),
    ] {
        assert_eq!(status_field(alone.proxy.pid(), field).as_deref(), Some(value), "{field}");
    }
    alone.end().assert_code(0);
}

/// Proves: NET-10 alone, POL-2 contradiction
#[test]
fn a_policy_that_cannot_be_read_starts_no_proxy() {
    let net = Net::new();
    let file = net.world.write("proxy.json", r#"{"network": {"allowedHosts": ["a*b.example"]}}"#);
    let output = net
        .world
        .sandbox(["proxy", "--listen", "203.0.113.40:3128", "--config"])
        .arg(file)
        .started_by(&net.lab.enter())
        .run();
    assert_ne!(output.code(), 0);
    assert!(output.err().contains("proxy.json"), "{}", output.err());
}
