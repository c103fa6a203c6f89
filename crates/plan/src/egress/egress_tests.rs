use super::*;
use crate::PlanError;
use crate::fake::{FakeTree, op_at, plan, policy, root, shows, user};
use crate::layer::{Layer, Strength};
use crate::model::{Egress, NatHelper, NatPlan, OnUnknown, ProxyPlan, Publish};
use crate::model::{MountOp, Plan};
use palisade_hosts::registry::Tool;
use palisade_hosts::{Host, HostEntry, Verdict};
use palisade_policy::model::{AllowedPorts, Level, Mode, NetworkMode, OnAsk, Policy, View};
use palisade_policy::network::Credential;
use std::net::IpAddr;

fn proxied() -> Policy {
    let mut policy = policy();
    policy.network.mode = NetworkMode::Proxy;
    policy.network.allowed_hosts = vec![entry("api.example"), entry("ssh.example:22")];
    policy
}

fn entry(text: &str) -> HostEntry {
    HostEntry::parse(text).unwrap()
}

fn tree() -> FakeTree {
    let mut tree = FakeTree::new();
    tree.file("/etc/resolv.conf", "nameserver 127.0.0.53\n").file("/etc/hosts", "10.0.0.1 db\n");
    tree
}

fn proxy(plan: &Plan) -> &ProxyPlan {
    match &plan.sandbox.egress {
        Some(Egress::Proxy(proxy)) => proxy,
        other => panic!("{other:?}"),
    }
}

fn variable<'a>(plan: &'a Plan, name: &str) -> Option<&'a str> {
    let found = plan.command.env.iter().find(|(key, _)| key == name);
    found.and_then(|(_, value)| value.to_str())
}

fn content<'a>(plan: &'a Plan, path: &str) -> Option<&'a str> {
    match op_at(plan, path)? {
        MountOp::File { content, .. } => Some(content),
        _ => None,
    }
}

fn is_allowed(plan: &Plan, host: &str, port: u16) -> bool {
    let verdict = proxy(plan).rules.judge(&Host::parse(host).unwrap(), port);
    matches!(verdict, Verdict::Allowed { .. })
}

fn noted(plan: &Plan, text: &str) -> bool {
    plan.explanation.notes.iter().any(|note| note.text.contains(text))
}

fn credential(from: &str) -> Credential {
    let text = format!(
        r#"{{"name": "API_TOKEN", "from": "{from}", "hosts": ["api.example"], "header": "authorization",
            "format": "Bearer {{}}"}}"#
    );
    serde_json::from_str(&text).unwrap()
}

/// Proves: NET-1 proxy, NET-5 variables
#[test]
fn the_proxy_is_what_names_and_variables_lead_to() {
    let mut facts = user();
    facts.env.insert("HTTP_PROXY".into(), "http://elsewhere.example:80".into());
    let plan = plan(&proxied(), &facts, &tree()).unwrap();
    assert_eq!(content(&plan, "/etc/resolv.conf"), Some("nameserver 198.18.0.1\n"));
    assert!(content(&plan, "/etc/hosts").is_some_and(|hosts| !hosts.contains("10.0.0.1")));
    for name in ["HTTP_PROXY", "https_proxy", "ALL_PROXY"] {
        assert_eq!(variable(&plan, name), Some("http://198.18.0.1:3128"), "{name}");
    }
    assert!(variable(&plan, "no_proxy").is_some_and(|list| list.contains("127.0.0.1")));
    assert!(noted(&plan, "the proxy in HTTP_PROXY is not used; use --upstream-proxy URL"));
    assert!(is_allowed(&plan, "api.example", 443) && is_allowed(&plan, "ssh.example", 22));
    assert!(!is_allowed(&plan, "api.example", 22) && !is_allowed(&plan, "ssh.example", 443));
}

/// Proves: NET-1 none-default
#[test]
fn without_a_way_out_nothing_of_it_is_there() {
    let mut facts = user();
    facts.env.insert("HTTP_PROXY".into(), "http://elsewhere.example:80".into());
    let plan = plan(&policy(), &facts, &tree()).unwrap();
    assert!(plan.sandbox.egress.is_none() && plan.sandbox.publish.is_empty());
    assert!(content(&plan, "/etc/resolv.conf").is_some_and(|text| !text.contains("127.0.0.53")));
    assert_eq!(variable(&plan, "HTTP_PROXY"), Some("http://elsewhere.example:80"));
}

/// Proves: NET-5 variables
#[test]
fn name_servers_stand_where_the_link_leads() {
    let mut tree = FakeTree::new();
    tree.link("/etc/resolv.conf", "../run/systemd/resolve/stub-resolv.conf");
    let missing = plan(&proxied(), &user(), &tree).unwrap();
    let place = "/run/systemd/resolve/stub-resolv.conf";
    assert_eq!(content(&missing, place), Some("nameserver 198.18.0.1\n"));
    tree.file(place, "nameserver 127.0.0.53\n");
    let there = plan(&proxied(), &user(), &tree).unwrap();
    assert_eq!(content(&there, place), Some("nameserver 198.18.0.1\n"));
    let nowhere = plan(&proxied(), &user(), &FakeTree::new()).unwrap();
    assert!(noted(&nowhere, "cannot provide /etc/resolv.conf"));
}

/// Proves: NET-8 asked
#[test]
fn unknown_hosts_are_asked_about_where_anything_is() {
    let on_unknown = |policy: &Policy| {
        let plan = plan(policy, &user(), &tree()).unwrap();
        proxy(&plan).on_unknown
    };
    assert_eq!(on_unknown(&proxied()), OnUnknown::Ask);
    assert_eq!(on_unknown(&Policy { mode: Mode::Static, ..proxied() }), OnUnknown::Deny);
    assert_eq!(on_unknown(&Policy { on_ask: OnAsk::Deny, ..proxied() }), OnUnknown::Deny);
    let minimal = Policy { view: View::Minimal, on_ask: OnAsk::Wait, ..proxied() };
    assert_eq!(on_unknown(&minimal), OnUnknown::Ask, "also where files are not asked about");
    let mut none = Policy { on_ask: OnAsk::Deny, ..proxied() };
    none.network.allowed_hosts.clear();
    assert!(noted(&plan(&none, &user(), &tree()).unwrap(), "no host is allowed"));
}

/// Proves: NET-3 default-hosts
#[test]
fn hosts_of_tools_are_those_of_their_settings() {
    let mut policy = proxied();
    policy.network.allowed_for = vec!["npm".to_owned(), "pip".to_owned()];
    let mut facts = user();
    facts.registries.insert(Tool::Npm, vec![entry("registry.example:4873")]);
    facts.registries.insert(Tool::Cargo, vec![entry("crates.example")]);
    facts.registry_notes.push("this was not followed".to_owned());
    let plan = plan(&policy, &facts, &tree()).unwrap();
    assert!(is_allowed(&plan, "registry.example", 4873));
    assert!(!is_allowed(&plan, "crates.example", 443), "not asked for");
    assert!(noted(&plan, "no host is allowed for pip"));
    assert!(noted(&plan, "this was not followed"));
}

/// Proves: NET-3 special-addresses
#[test]
fn what_is_allowed_in_vain_is_told() {
    let mut policy = proxied();
    let hosts = ["127.0.0.1:8080", "10.1.0.0/16", "10.2.0.1", "203.0.113.9", "0.0.0.0/0"];
    policy.network.allowed_hosts = hosts.map(entry).to_vec();
    policy.network.allowed_private = vec!["10.2.0.0/16".parse().unwrap()];
    let plan = plan(&policy, &user(), &tree()).unwrap();
    assert!(noted(&plan, "127.0.0.1:8080 is an allowed host but cannot be reached"));
    assert!(noted(&plan, "it is loopback (127.0.0.0/8)"));
    assert!(noted(&plan, "10.1.0.0/16 is an allowed host but cannot be reached"));
    for reachable in ["10.2.0.1", "203.0.113.9", "0.0.0.0/0"] {
        assert!(!noted(&plan, &format!("{reachable} is among")), "{reachable}");
    }
}

/// Proves: NET-3 ports, POL-2 empty-list
#[test]
fn an_empty_list_of_ports_leaves_only_hosts_that_name_their_own() {
    let mut policy = proxied();
    policy.network.allowed_ports = AllowedPorts::Only(Vec::new());
    let plan = plan(&policy, &user(), &tree()).unwrap();
    assert!(!is_allowed(&plan, "api.example", 443) && is_allowed(&plan, "ssh.example", 22));
}

/// Proves: NET-5 credentials
#[test]
fn a_credential_leaves_a_placeholder_inside_and_nothing_else() {
    let mut policy = proxied();
    policy.network.credentials = vec![credential("env:REAL")];
    policy.process.env.insert("REAL".to_owned(), "s3cr3t".to_owned());
    let mut facts = user();
    facts.env.insert("REAL".into(), "s3cr3t".into());
    let plan_of = |policy: &Policy, facts: &_| plan(policy, facts, &tree()).unwrap();
    let by_variable = plan_of(&policy, &facts);
    assert_eq!(variable(&by_variable, "REAL"), None);
    let placeholder = &proxy(&by_variable).credentials[0].placeholder;
    assert_eq!(variable(&by_variable, "API_TOKEN"), Some(placeholder.as_str()));
    assert!(!by_variable.to_json().unwrap().contains("s3cr3t"));
    assert!(noted(&by_variable, "TLS to api.example needs --intercept"));

    policy.network.credentials = vec![credential("env:API_TOKEN")];
    facts.env.insert("API_TOKEN".into(), "s3cr3t".into());
    assert_eq!(variable(&plan_of(&policy, &facts), "API_TOKEN"), Some(placeholder.as_str()));

    policy.network.mode = NetworkMode::None;
    assert_eq!(variable(&plan_of(&policy, &facts), "API_TOKEN"), Some(placeholder.as_str()));

    policy.network.credentials = vec![credential("file:~/project/token")];
    let mut tree = tree();
    tree.file("/home/u/project/token", "s3cr3t");
    let by_file = plan(&policy, &facts, &tree).unwrap();
    assert!(!shows(&by_file, "/home/u/project/token") && shows(&by_file, "/home/u/project/src"));
}

/// Proves: NET-5 credentials
#[test]
fn the_authority_of_the_run_is_trusted_inside_besides_the_hosts() {
    let mut policy = proxied();
    policy.network.credentials = vec![credential("env:REAL")];
    policy.network.intercept = true;
    let mut facts = user();
    facts.authority = Some("OURS\n".to_owned());
    let mut tree = tree();
    tree.file("/etc/ssl/certs/ca-certificates.crt", "THEIRS\n");
    tree.link("/etc/ssl/cert.pem", "certs/ca-certificates.crt");
    let plan = plan(&policy, &facts, &tree).unwrap();
    let bundle = "/etc/ssl/certs/ca-certificates.crt";
    assert_eq!(content(&plan, bundle), Some("THEIRS\nOURS\n"));
    assert_eq!(content(&plan, AUTHORITY), Some("OURS\n"));
    assert_eq!(variable(&plan, "SSL_CERT_FILE"), Some(bundle));
    assert_eq!(variable(&plan, "CARGO_HTTP_CAINFO"), Some(bundle));
    assert_eq!(variable(&plan, "NODE_EXTRA_CA_CERTS"), Some(AUTHORITY));
    assert!(!noted(&plan, "needs --intercept"));

    facts.env.insert("SSL_CERT_FILE".into(), "/usr/share/company.pem".into());
    tree.file("/usr/share/company.pem", "COMPANY");
    let own = self::plan(&policy, &facts, &tree).unwrap();
    assert_eq!(content(&own, "/usr/share/company.pem"), Some("COMPANY\nOURS\n"));
    assert_eq!(variable(&own, "SSL_CERT_FILE"), Some("/usr/share/company.pem"));
    facts.env.insert("SSL_CERT_FILE".into(), "/home/u/.ssh/key".into());
    tree.file("/home/u/.ssh/key", "KEY");
    let hidden = self::plan(&policy, &facts, &tree).unwrap();
    assert!(!hidden.to_json().unwrap().contains("KEY\\nOURS"));
}

/// Proves: NET-5 upstream
#[test]
fn a_proxy_to_go_through_is_shown_without_who_logs_in() {
    let mut policy = proxied();
    policy.network.upstream_proxy = Some("http://me:pa55@proxy.example:3128".to_owned());
    let plan = plan(&policy, &user(), &tree()).unwrap();
    for shown in [plan.to_string(), plan.to_json().unwrap()] {
        assert!(shown.contains("http://…@proxy.example:3128") && !shown.contains("pa55"));
    }
    let special =
        plan.explanation.promises.iter().find(|it| it.layers == [Layer::AddressCheck]).unwrap();
    assert_eq!(special.strength, Strength::Advisory);
}

fn nat() -> Policy {
    let mut policy = policy();
    policy.network.mode = NetworkMode::Nat;
    policy.network.denied_hosts = vec![entry("203.0.113.0/24")];
    policy
}

fn nat_plan(plan: &Plan) -> &NatPlan {
    match &plan.sandbox.egress {
        Some(Egress::Nat(nat)) => nat,
        other => panic!("{other:?}"),
    }
}

/// Proves: NET-9 pasta, NET-9 slirp, NET-9 veth, NET-9 private
#[test]
fn whoever_is_here_forwards_and_private_ranges_stay_blocked() {
    let none = plan(&nat(), &user(), &tree()).unwrap_err();
    assert!(none.to_string().contains("passt") && none.to_string().contains("slirp4netns"));

    let mut facts = user();
    facts.nat.slirp4netns = Some("/usr/bin/slirp4netns".into());
    let slirp = plan(&nat(), &facts, &tree()).unwrap();
    assert!(matches!(nat_plan(&slirp).helper, NatHelper::Slirp4netns(_)));
    assert_eq!(content(&slirp, "/etc/resolv.conf"), Some("nameserver 10.0.2.3\n"));
    facts.nat.pasta = Some("/usr/bin/pasta".into());
    let own = ["192.0.2.2", "10.0.0.7", "2001:db8:1::2"];
    facts.nat.own_addresses = own.map(|address| address.parse().unwrap()).to_vec();
    let pasta = plan(&nat(), &facts, &tree()).unwrap();
    assert!(matches!(nat_plan(&pasta).helper, NatHelper::Pasta(_)));
    assert_eq!(content(&pasta, "/etc/resolv.conf"), Some("nameserver 198.18.0.1\n"));
    let blocked = &nat_plan(&pasta).blocked;
    for own in ["192.0.2.2/32", "2001:db8:1::2/128"] {
        assert!(blocked.contains(&own.parse().unwrap()), "the host itself: {own}");
    }
    for range in ["10.0.0.0/8", "169.254.0.0/16", "fc00::/7", "203.0.113.0/24"] {
        assert!(blocked.contains(&range.parse().unwrap()), "{range}");
    }
    for loopback in ["127.0.0.0/8", "::1/128", "::ffff:0:0/96"] {
        assert!(blocked.contains(&loopback.parse().unwrap()), "a link leads to no {loopback}");
    }
    assert!(nat_plan(&pasta).packet_rules);

    let mut privileged = root();
    privileged.nat = facts.nat.clone();
    privileged.nat.ip_forward = true;
    let mut tree = tree();
    tree.file("/run/systemd/resolve/resolv.conf", "nameserver 192.0.2.53\n");
    let veth = plan(&nat(), &privileged, &tree).unwrap();
    assert_eq!(nat_plan(&veth).helper, NatHelper::Veth);
    assert_eq!(nat_plan(&veth).resolvers, ["192.0.2.53".parse::<IpAddr>().unwrap()]);
    assert_eq!(content(&veth, "/etc/resolv.conf"), Some("nameserver 192.0.2.53\n"));
}

/// Proves: NET-9 published
#[test]
fn ports_are_published_in_every_mode_with_a_network_of_its_own() {
    let mut policy = policy();
    policy.network.publish = vec!["8080:80".parse().unwrap()];
    let none = plan(&policy, &user(), &tree()).unwrap();
    let localhost = IpAddr::from([127, 0, 0, 1]);
    assert_eq!(none.sandbox.publish, [Publish { address: localhost, port: 8080, inner: 80 }]);
    assert!(none.to_string().contains("published: 127.0.0.1:8080, forwarded to 80 in the sandbox"));
    policy.process.user_namespace = false;
    policy.isolation_level = Level::Process;
    let error = plan(&policy, &user(), &tree()).unwrap_err();
    assert!(matches!(error, PlanError::NeedsNamespaces { what: "--publish", .. }), "{error}");
}

/// Proves: NET-1 proxy
#[test]
fn without_a_network_of_its_own_nothing_leads_out_of_it() {
    let mut policy = Policy { isolation_level: Level::Process, ..proxied() };
    policy.process.user_namespace = false;
    let error = plan(&policy, &user(), &tree()).unwrap_err();
    assert!(error.to_string().contains("network mode proxy needs namespaces"), "{error}");
    let nothing = Policy { isolation_level: Level::None, ..proxied() };
    assert!(matches!(plan(&nothing, &user(), &tree()), Err(PlanError::NoIsolation { .. })));
}

/// Proves: NET-3 globs
#[test]
fn the_plan_shows_what_may_be_reached() {
    let mut policy = proxied();
    policy.network.denied_hosts = vec![entry("*.bad.example")];
    let text = plan(&policy, &user(), &tree()).unwrap().to_string();
    for line in [
        "  allowed: ssh.example:22",
        "  denied: *.bad.example",
        "  ports: 22 80 443",
        "  other hosts: asked about",
        "  at most 512 connections, 100 DNS queries per second",
        "  NET-3   enforced  only hosts and ports that rules allow are reached [egress-rules, net-namespace]",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}
