//! `sandbox proxy`: the explicit proxy alone, for containers on an internal network (NET-10).

use palisade_testkit::{Output, Running};
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
        let file = net.world.write("proxy.json", policy);
        let proxy = net
            .world
            .sandbox(["proxy", "--listen", "203.0.113.40:3128", "--json", "--config"])
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
fn a_policy_that_can_not_be_read_starts_no_proxy() {
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
