use super::*;
use crate::decode::parse::parse;
use crate::keys::{TOOL_NAMES, USUAL_PORTS};
use crate::model::AllowedPorts;
use crate::syntax::tree::Format;
use crate::{Diagnostic, LayerKind, Merged, NetworkMode, PolicyLayer, Problem, Subject, Trust};
use crate::{export, merge, show_json, show_lines};
use palisade_hosts::registry::Tool;

fn merged(layers: &[(LayerKind, &str)]) -> Result<Merged, Vec<Diagnostic>> {
    let layers = layers.iter().map(|(kind, text)| PolicyLayer {
        kind: *kind,
        document: parse(text, &format!("{}.yaml", kind.name()), Format::Yaml).unwrap(),
    });
    merge(&Subject::Run, layers.collect())
}

fn of_user(text: &str) -> Result<Merged, Vec<Diagnostic>> {
    merged(&[(LayerKind::User, text)])
}

fn mistake_in(text: &str) -> String {
    let problems = parse(text, "p.yaml", Format::Yaml).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems[0].to_string()
}

/// Proves: POL-2 network-keys
#[test]
fn the_words_are_those_that_hosts_are_found_for() {
    assert_eq!(TOOL_NAMES.map(Tool::from_word), Tool::ALL.map(Some));
    let everything = "network:
  mode: proxy
  allowedHosts: [api.example, '*.cdn.example:8443', '203.0.113.0/24', '[2001:db8::1]:443']
  deniedHosts: ['**.bad.example']
  allowedPorts: [443]
  allowedPrivate: [10.1.0.0/16, 'fd12::/16']
  allowedFor: [npm, pip, cargo, git]
  maxConnections: 5
  maxBytes: 1g
  maxQueries: 10
  followRedirects: true
  upstreamProxy: http://me:secret@proxy.example:3128
  publish: ['8080:80', '0.0.0.0:2222:22', '[::1]:8443:443']
  intercept: true
  credentials:
    - { name: API_TOKEN, from: 'env:REAL_TOKEN', host: api.example }
    - { name: KEY, from: 'file:~/.key', hosts: [a.example, '*.b.example:8443'], header: X-Api-Key, format: '{}' }
approvals: [{ what: 'network:private', reason: the office }]
";
    let network = of_user(everything).unwrap().policy.network;
    assert_eq!(network.mode, NetworkMode::Proxy);
    assert_eq!(network.allowed_hosts[1].ports, Some(vec![8443]));
    assert_eq!((network.max_connections, network.max_bytes), (Some(5), Some(1 << 30)));
    assert!(network.follow_redirects && network.intercept);
    let published: Vec<String> = network.publish.iter().map(ToString::to_string).collect();
    assert_eq!(published, ["127.0.0.1:8080:80", "0.0.0.0:2222:22", "[::1]:8443:443"]);
    let [token, key] = &network.credentials[..] else { panic!() };
    assert_eq!((token.header.as_str(), token.format.as_str()), ("authorization", "Bearer {}"));
    assert_eq!(token.from, SecretSource::Env("REAL_TOKEN".to_owned()));
    assert_eq!((key.header.as_str(), key.format.as_str()), ("x-api-key", "{}"));
    assert_eq!(key.from, SecretSource::File("~/.key".to_owned()));
    assert_eq!((&key.hosts[0].ports, &key.hosts[1].ports), (&None, &Some(vec![8443])));
}

/// Proves: POL-2 wrong-type, NET-3 globs, NET-3 cidrs
#[test]
fn what_is_no_host_or_port_is_refused_with_its_place() {
    for (line, says) in [
        ("allowedHosts: ['a*.example']", "p.yaml:2:18: `network.allowedHosts` must be"),
        ("allowedHosts: ['https://a.example/']", "is a URL"),
        ("allowedHosts: [a.example, '10.0.0.1/8']", "write 10.0.0.0/8"),
        ("allowedHosts: ['a.example:0']", "is no port"),
        ("deniedHosts: ['[::1']", "`network.deniedHosts` must be"),
        ("allowedPrivate: [127.0.0.0/8]", "a CIDR within one of 10.0.0.0/8, 172.16.0.0/12"),
        ("allowedPrivate: [169.254.169.254/32]", "a CIDR within"),
        ("allowedPrivate: [0.0.0.0/0]", "a CIDR within"),
        ("allowedPrivate: [10.0.0.1/8]", "a CIDR within"),
        ("allowedFor: [cago]", "(nearest: cargo)"),
        ("upstreamProxy: https://proxy.example:3128", "a proxy such as http://"),
        ("upstreamProxy: http://proxy.example", "a proxy such as http://"),
        ("publish: ['80']", "[ADDRESS:]PORT:INNER"),
        ("publish: ['0:80']", "[ADDRESS:]PORT:INNER"),
        ("publish: ['host.example:80:80']", "[ADDRESS:]PORT:INNER"),
        ("publish: ['::1:80:80']", "[ADDRESS:]PORT:INNER"),
        ("maxQueries: 0", "above zero"),
    ] {
        let found = mistake_in(&format!("network:\n  {line}\n"));
        assert!(found.contains(says), "{line}: {found}");
    }
}

/// Proves: NET-5 upstream
#[test]
fn the_login_of_a_proxy_is_in_no_error_and_nothing_that_is_shown() {
    let wrong = mistake_in("network:\n  upstreamProxy: http://somebody:hunter2@proxy.example\n");
    assert!(wrong.contains("http://…@proxy.example"), "{wrong}");
    let right =
        "network:\n  mode: proxy\n  upstreamProxy: http://somebody:hunter2@proxy.example:3128\n";
    let merged = of_user(right).unwrap();
    let told = merged.policy.network.upstream_proxy.as_deref();
    assert_eq!(told, Some("http://somebody:hunter2@proxy.example:3128"));
    let text = show_lines(&merged).join("\n");
    let json = show_json(&merged).to_string();
    for shown in [&wrong, &text, &json] {
        assert!(!shown.contains("hunter2") && !shown.contains("somebody"), "{shown}");
        assert!(shown.contains("http://…@proxy.example"), "{shown}");
    }
    assert!(export(&merged).to_string().contains("hunter2"), "it loads again");
}

/// Proves: NET-5 credentials
#[test]
fn a_credential_says_where_it_goes_and_nothing_else() {
    for (credential, says) in [
        ("{ name: T, from: 'env:X' }", "`name`, `from` and `hosts`"),
        ("{ name: T, host: a.example }", "`name`, `from` and `hosts`"),
        ("{ name: 'a b', from: 'env:X', host: a.example }", "`name` is a variable's"),
        ("{ name: T, from: X, host: a.example }", "env:VARIABLE or file:PATH"),
        ("{ name: T, from: 'env:X', host: '*' }", "for hosts such as"),
        ("{ name: T, from: 'env:X', host: '*:8443' }", "for hosts such as"),
        ("{ name: T, from: 'env:X', host: 'a.example:0' }", "for hosts such as"),
        ("{ name: T, from: 'env:X', hosts: [] }", "for hosts such as"),
        ("{ name: T, from: 'env:X', host: a.example, hosts: [b.example] }", "one of `host`"),
        ("{ name: T, from: 'env:X', host: a.example, header: Host }", "can carry a secret"),
        ("{ name: T, from: 'env:X', host: a.example, header: 'a: b' }", "can carry a secret"),
        ("{ name: T, from: 'env:X', host: a.example, format: Bearer }", "one {} for the secret"),
        ("{ name: T, from: 'env:X', host: a.example, format: \"{}\\r\\nX: y\" }", "one {}"),
        ("{ name: T, from: 'env:X', host: a.example, heder: b }", "(nearest: header)"),
    ] {
        let found = mistake_in(&format!("network: {{ credentials: [{credential}] }}"));
        assert!(found.contains(says), "{credential}: {found}");
    }
}

fn contradiction(text: &str) -> String {
    let problems = parse(text, "p.yaml", Format::Yaml).map_or_else(
        |problems| problems,
        |document| {
            let layer = PolicyLayer { kind: LayerKind::User, document };
            merge(&Subject::Run, vec![layer]).map(|_| Vec::new()).unwrap_or_else(|found| found)
        },
    );
    let found = problems.iter().find(|problem| problem.problem == Problem::Contradiction);
    found.map(ToString::to_string).unwrap_or_default()
}

/// Proves: POL-2 contradiction, NET-1 proxy
#[test]
fn what_a_mode_cannot_do_is_refused_and_says_what_can() {
    let nat = "approvals: [{ what: 'network:nat', reason: r }]";
    for (text, says) in [
        (
            "network: { mode: nat, allowedHosts: [a.example] }",
            "nat, which reaches any host; use `network.mode: proxy`",
        ),
        ("network: { mode: nat, allowedFor: [npm] }", "`network.allowedFor`"),
        (
            "network: { mode: nat, deniedHosts: [a.example] }",
            "`a.example` is a name, and nat blocks addresses only",
        ),
        (
            "network: { mode: nat, credentials: [{ name: T, from: 'env:X', host: a.example }] }",
            "`network.credentials`",
        ),
        ("network: { mode: host, publish: ['80:80'] }", "`network.publish`"),
        ("network: { mode: host, allowedPorts: [80] }", "the host's own network"),
        ("network: { mode: proxy, intercept: true }", "add one (`--credential`)"),
        ("network: { publish: ['8080:80', '127.0.0.1:8080:81'] }", "port 8080 is published twice"),
        ("network: { publish: ['8080:80', '0.0.0.0:8080:80'] }", "port 8080 is published twice"),
        (
            "network: { mode: proxy }\nisolationLevel: LEVEL_1\nprocess: { userNamespace: false }",
            "needs a network namespace",
        ),
        (
            "network: { publish: ['80:80'] }\nisolationLevel: LEVEL_1\nprocess: { userNamespace: false }",
            "`network.publish`",
        ),
    ] {
        let found = contradiction(&format!("{text}\n{nat}"));
        assert!(found.contains(says), "{text}: {found}");
    }
    let fine = "network: { mode: nat, deniedHosts: [203.0.113.0/24], publish: ['80:80'] }";
    assert_eq!(contradiction(&format!("{fine}\n{nat}")), "");
}

/// Proves: NET-1 host-approved
#[test]
fn a_list_for_other_runs_does_not_stand_in_the_way_of_one_that_opens_more() {
    let list = "network: { allowedHosts: [a.example], allowedFor: [npm] }";
    let open = "network: { mode: nat }\napprovals: [{ what: 'network:nat', reason: r }]";
    let layers = [(LayerKind::User, list), (LayerKind::CommandLine, open)];
    assert_eq!(merged(&layers).unwrap().policy.network.mode, NetworkMode::Nat);
    let denied = [(LayerKind::User, "network: { deniedHosts: [a.example] }"), layers[1]];
    assert!(merged(&denied).unwrap_err()[0].to_string().contains("nat blocks addresses only"));
}

/// Proves: NET-8 approval
#[test]
fn opening_the_network_is_recorded_and_more_than_the_proxy_needs_a_word() {
    let merged_policy = of_user("\nnetwork:\n  mode: proxy\n").unwrap();
    let approval = &merged_policy.policy.approvals[0];
    assert_eq!(approval.what, "network:proxy");
    assert_eq!(approval.reason, "user.yaml:3: network.mode: proxy");
    assert_eq!(merged_policy.provenance["approvals"][0].layer, LayerKind::User.name());
    assert!(of_user("network: { allowedHosts: [a.example] }").unwrap().policy.approvals.is_empty());

    let nat = of_user("network: { mode: nat }").unwrap_err();
    assert_eq!(nat[0].problem, Problem::NeedsApproval);
    assert!(nat[0].to_string().contains("needs the approval `network:nat`"), "{nat:?}");
    let private = "network: { mode: proxy, allowedPrivate: [10.0.0.0/8] }";
    assert!(of_user(private).unwrap_err()[0].to_string().contains("`network:private`"));
    let approved = format!("{private}\napprovals: [{{ what: 'network:private', reason: lab }}]");
    let whats: Vec<String> =
        of_user(&approved).unwrap().policy.approvals.into_iter().map(|it| it.what).collect();
    assert_eq!(whats, ["network:private", "network:proxy"]);
    let by_organisation = merged(&[(LayerKind::Organisation, private)]).unwrap().policy.approvals;
    assert!(by_organisation.iter().all(|it| it.reason.contains("organisation")));
}

/// Proves: NET-8 approval, POL-4 untrusted-project
#[test]
fn an_untrusted_project_opens_nothing() {
    let project = LayerKind::Project(Trust::Untrusted);
    let wishes = "network:
  mode: proxy
  allowedHosts: [evil.example]
  allowedPrivate: [10.0.0.0/8]
  allowedFor: [npm]
  publish: ['80:80']
  upstreamProxy: http://evil.example:80
  followRedirects: true
  credentials: [{ name: T, from: 'env:GH_TOKEN', host: evil.example }]
";
    let plain = merged(&[]).unwrap().policy.network;
    let with = merged(&[(project, wishes)]).unwrap();
    assert_eq!(with.policy.network, plain);
    assert_eq!(with.notes.len(), 8, "{:?}", with.notes);
}

/// Proves: NET-3 ports, POL-2 empty-list
#[test]
fn ports_that_nobody_names_are_the_usual_ones() {
    let project = LayerKind::Project(Trust::Untrusted);
    let ports = |layers: &[(LayerKind, &str)]| merged(layers).unwrap().policy.network.allowed_ports;
    let user = |text| (LayerKind::User, text);
    assert_eq!(USUAL_PORTS, [80, 443]);
    assert_eq!(ports(&[]), AllowedPorts::Usual);
    let only = |ports: &[u16]| AllowedPorts::Only(ports.to_vec());
    assert_eq!(
        ports(&[(project, "network: { allowedPorts: [443] }")]),
        only(&[443]),
        "of the usual"
    );
    assert_eq!(ports(&[(project, "network: { allowedPorts: [22] }")]), AllowedPorts::Usual);
    assert_eq!(ports(&[user("network: { allowedPorts: [8443] }")]), only(&[8443]), "no others");
    let organisation = (LayerKind::Organisation, "network: { allowedPorts: [8443, 80] }");
    assert_eq!(ports(&[organisation, (project, "network: { allowedPorts: [] }")]), only(&[]));
    assert_eq!(ports(&[organisation, user("network: { allowedPorts: [80] }")]), only(&[80]));
}
