use super::*;
use proptest::prelude::*;

fn entries(texts: &[&str]) -> Vec<HostEntry> {
    texts.iter().map(|text| HostEntry::parse(text).unwrap()).collect()
}

fn rules(allowed: &[&str], denied: &[&str]) -> Rules {
    Rules::new(entries(allowed), entries(denied), Vec::new(), Vec::new())
}

fn judge(rules: &Rules, host: &str, port: u16) -> Verdict {
    rules.judge(&Host::parse(host).unwrap(), port)
}

fn judge_name(rules: &Rules, name: &str) -> Verdict {
    rules.judge_name(&Name::parse(name).unwrap())
}

fn allowed(rule: &str) -> Verdict {
    Verdict::Allowed { rule: rule.to_owned() }
}

fn denied(rule: &str, reason: Reason) -> Verdict {
    Verdict::Denied { rule: Some(rule.to_owned()), reason }
}

const LOCAL: Verdict = Verdict::Denied { rule: None, reason: Reason::LocalName };

fn blocked(address: &str) -> Verdict {
    let blocked = crate::always_blocked(address.parse().unwrap()).unwrap();
    Verdict::Denied { rule: None, reason: Reason::Address(blocked) }
}

/// Proves: NET-3 globs
#[test]
fn an_allowed_name_names_its_rule() {
    let rules = rules(&["x.example", "*.y.example", "**.z.example"], &[]);
    for (host, verdict) in [
        ("X.example.", allowed("x.example")),
        ("a.x.example", Verdict::Unknown),
        ("a.b.y.example", allowed("*.y.example")),
        ("y.example", Verdict::Unknown),
        ("z.example", allowed("**.z.example")),
        ("a.z.example", allowed("**.z.example")),
        ("example", Verdict::Unknown),
        ("203.0.113.1", Verdict::Unknown),
    ] {
        assert_eq!(judge(&rules, host, 443), verdict, "{host}");
    }
}

/// Proves: NET-3 ports
#[test]
fn without_ports_they_are_the_webs() {
    let rules = rules(&["x.example", "ssh.example:22", "*.example:8443"], &[]);
    assert_eq!(judge(&rules, "x.example", 80), allowed("x.example"));
    assert_eq!(judge(&rules, "x.example", 443), allowed("x.example"));
    assert_eq!(judge(&rules, "x.example", 8443), allowed("*.example:8443"));
    assert_eq!(judge(&rules, "x.example", 22), denied("x.example", Reason::Port));
    assert_eq!(judge(&rules, "ssh.example", 22), allowed("ssh.example:22"));
    assert_eq!(judge(&rules, "ssh.example", 443), denied("ssh.example:22", Reason::Port));
    assert_eq!(rules.all_ports(), [22, 80, 443, 8443]);
}

/// Proves: NET-3 ports
#[test]
fn the_usual_ports_can_be_others() {
    let rules = Rules::new(entries(&["x.example"]), Vec::new(), vec![9443, 8080, 9443], Vec::new());
    assert_eq!(judge(&rules, "x.example", 8080), allowed("x.example"));
    assert_eq!(judge(&rules, "x.example", 443), denied("x.example", Reason::Port));
    assert_eq!(rules.all_ports(), [8080, 9443]);
}

/// Proves: NET-3 block-list
#[test]
fn a_denial_wins_over_everything() {
    let mut rules = rules(
        &["*", "evil.example", "203.0.113.7"],
        &["**.evil.example", "203.0.113.0/24", "*:25", "x.example:8443"],
    );
    for (host, port, rule) in [
        ("evil.example", 443, "**.evil.example"),
        ("a.EVIL.example.", 443, "**.evil.example"),
        ("203.0.113.7", 443, "203.0.113.0/24"),
        ("::ffff:203.0.113.7", 443, "203.0.113.0/24"),
        ("any.example", 25, "*:25"),
        ("x.example", 8443, "x.example:8443"),
    ] {
        assert_eq!(judge(&rules, host, port), denied(rule, Reason::Listed), "{host}");
        rules.allow(Host::parse(host).unwrap(), port, "answered");
        assert_eq!(judge(&rules, host, port), denied(rule, Reason::Listed), "{host} answered");
    }
    assert_eq!(judge(&rules, "x.example", 443), allowed("*"));
    assert_eq!(judge_name(&rules, "a.evil.example"), denied("**.evil.example", Reason::Listed));
    assert_eq!(judge_name(&rules, "x.example"), allowed("*"));
}

/// Proves: NET-3 block-list
#[test]
fn a_name_whose_ports_are_all_denied_is_not_looked_up() {
    let rules = rules(&["x.example:443", "y.example:443,22"], &["*:443"]);
    assert_eq!(judge_name(&rules, "x.example"), denied("*:443", Reason::Port));
    assert_eq!(judge_name(&rules, "y.example"), allowed("y.example:443,22"));
    assert_eq!(judge_name(&rules, "z.example"), Verdict::Unknown);
}

/// Proves: NET-8 other-ports, NET-3 block-list
#[test]
fn a_yes_for_one_port_leaves_the_others_open_and_a_no_does_not() {
    let rules = rules(&["x.example:80", "y.example:80"], &["x.example:22", "y.example"]);
    for (host, port, is_open) in [
        ("x.example", 80, false),
        ("x.example", 443, true),
        ("x.example", 22, false),
        ("y.example", 443, false),
        ("z.example", 443, true),
        ("z.internal", 443, false),
        ("10.0.0.1", 443, false),
    ] {
        assert_eq!(judge(&rules, host, port).is_open(), is_open, "{host}:{port}");
    }
    let taken_back = self::rules(&["x.example:80"], &["x.example:80"]);
    assert!(!judge(&taken_back, "x.example", 80).is_open());
    assert!(judge_name(&taken_back, "x.example").is_open(), "for the other ports");
}

/// Proves: NET-3 cidrs
#[test]
fn names_and_addresses_do_not_match_each_other() {
    let rules = rules(&["203.0.113.0/24", "2001:db8::/32:22", "x.example"], &[]);
    assert_eq!(judge(&rules, "203.0.113.9", 443), allowed("203.0.113.0/24"));
    assert_eq!(judge(&rules, "0xcb007109", 443), allowed("203.0.113.0/24"));
    assert_eq!(judge(&rules, "203.0.114.9", 443), Verdict::Unknown);
    assert_eq!(judge(&rules, "2001:db8::9", 22), allowed("2001:db8::/32:22"));
    assert_eq!(judge(&rules, "2001:db8::9", 443), denied("2001:db8::/32:22", Reason::Port));
    assert_eq!(judge(&rules, "y.example", 443), Verdict::Unknown);
}

/// N04: what is allowed by an address or by everything, stays blocked.
///
/// Proves: NET-3 special-addresses, NET-3 spellings
#[test]
fn special_addresses_are_blocked_whatever_is_allowed() {
    let rules = rules(&["*", "169.254.169.254", "127.0.0.0/8", "::/0"], &[]);
    for (spelling, address) in [
        ("169.254.169.254", "169.254.169.254"),
        ("0xa9fea9fe", "169.254.169.254"),
        ("2852039166", "169.254.169.254"),
        ("::ffff:169.254.169.254", "169.254.169.254"),
        ("127.1", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("10.0.0.1", "10.0.0.1"),
        ("[64:ff9b::a9fe:a9fe]", "64:ff9b::a9fe:a9fe"),
        ("[2002:7f00:1::]", "2002:7f00:1::"),
        ("[::1]", "::1"),
    ] {
        assert_eq!(judge(&rules, spelling, 80), blocked(address), "{spelling}");
        assert!(rules.check_address(address.parse().unwrap()).is_err());
    }
    assert_eq!(judge(&rules, "203.0.113.1", 80), Verdict::Unknown);
    assert_eq!(judge(&rules, "2001:db8::1", 80), allowed("::/0"));
    assert_eq!(rules.check_address("203.0.113.1".parse().unwrap()), Ok(()));
}

/// Proves: NET-3 special-addresses
#[test]
fn an_approval_opens_private_networks_and_nothing_else() {
    let everywhere = ["0.0.0.0/0", "::/0"].map(|range| range.parse().unwrap());
    let open = Rules::new(entries(&["10.1.2.3"]), Vec::new(), Vec::new(), everywhere.to_vec());
    for address in
        ["10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd12::1", "::ffff:10.1.2.3"]
    {
        assert_eq!(open.check_address(address.parse().unwrap()), Ok(()), "{address}");
    }
    for address in [
        "127.0.0.1",
        "169.254.169.254",
        "169.254.0.1",
        "100.100.100.200",
        "fd00:ec2::254",
        "::1",
        "fe80::1",
        "198.18.0.5",
        "fd53:616e:6442::5",
        "64:ff9b::a01:203",
        "224.0.0.1",
    ] {
        assert!(open.check_address(address.parse().unwrap()).is_err(), "{address}");
    }
    assert_eq!(judge(&open, "10.1.2.3", 443), allowed("10.1.2.3"));
    assert_eq!(judge(&open, "10.1.2.4", 443), Verdict::Unknown);

    let part = Rules::new(Vec::new(), Vec::new(), Vec::new(), vec!["10.1.0.0/16".parse().unwrap()]);
    assert_eq!(part.check_address("10.1.9.9".parse().unwrap()), Ok(()));
    assert!(part.check_address("10.2.0.1".parse().unwrap()).is_err());
}

/// Proves: NET-3 block-list, NET-3 cidrs
#[test]
fn a_denied_range_holds_for_what_names_stand_for() {
    let rules = rules(&["x.example"], &["203.0.113.0/24", "198.51.100.0/24:25"]);
    for address in ["203.0.113.9", "::ffff:203.0.113.9", "198.51.100.1"] {
        let blocked = rules.check_address(address.parse().unwrap()).unwrap_err();
        assert_eq!(blocked.what, "denied by a rule", "{address}");
    }
    assert_eq!(rules.check_address("203.0.114.9".parse().unwrap()), Ok(()));
}

/// Proves: NET-3 local-names
#[test]
fn local_names_need_a_rule_about_them() {
    for name in [
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "printer.local",
        "metadata.google.internal",
        "internal",
        "local",
    ] {
        for rules in [rules(&[], &[]), rules(&["*", "x.example"], &[])] {
            assert_eq!(judge(&rules, name, 443), LOCAL, "{name}");
            assert_eq!(judge_name(&rules, name), LOCAL, "{name}");
        }
    }
    let named = rules(&["*", "db.internal:5432", "**.svc.local"], &["secret.svc.local"]);
    assert_eq!(judge(&named, "db.internal", 5432), allowed("db.internal:5432"));
    assert_eq!(judge(&named, "db.internal", 443), denied("db.internal:5432", Reason::Port));
    assert_eq!(judge(&named, "other.internal", 443), LOCAL);
    assert_eq!(judge(&named, "a.svc.local", 443), allowed("**.svc.local"));
    assert_eq!(judge(&named, "secret.svc.local", 443), denied("secret.svc.local", Reason::Listed));
    assert_eq!(judge_name(&named, "db.internal"), allowed("db.internal:5432"));
    assert_eq!(judge(&named, "local.example", 443), allowed("*"));
}

#[test]
fn answers_fill_what_the_lists_leave_open() {
    let mut rules = rules(&["x.example"], &[]);
    let ssh = Host::parse("ssh.example").unwrap();
    rules.allow(ssh.clone(), 22, "answered at the terminal");
    assert_eq!(rules.judge(&ssh, 22), allowed("answered at the terminal"));
    assert_eq!(rules.judge(&ssh, 443), Verdict::Unknown);
    assert_eq!(judge_name(&rules, "ssh.example"), allowed("answered at the terminal"));
    assert_eq!(judge_name(&rules, "other.example"), Verdict::Unknown);
    assert_eq!(rules.all_ports(), [22, 80, 443]);

    rules.deny(ssh.clone(), 22, "denied at the terminal");
    assert_eq!(rules.judge(&ssh, 22), denied("denied at the terminal", Reason::Listed));
    assert_eq!(judge_name(&rules, "ssh.example"), Verdict::Unknown);
    rules.deny(Host::parse("x.example").unwrap(), 443, "denied");
    assert_eq!(judge(&rules, "x.example", 443), denied("denied", Reason::Listed));
    assert_eq!(judge(&rules, "x.example", 80), allowed("x.example"));

    let loopback = Host::parse("127.0.0.1").unwrap();
    rules.allow(loopback.clone(), 80, "answered");
    assert_eq!(rules.judge(&loopback, 80), blocked("127.0.0.1"));
}

#[test]
fn they_are_shown_as_they_were_written() {
    let rules = Rules::new(
        entries(&["*.X.example:8443"]),
        entries(&["evil.example"]),
        Vec::new(),
        vec!["10.0.0.0/8".parse().unwrap()],
    );
    let shown = serde_json::to_value(&rules).unwrap();
    let expected = serde_json::json!({
        "allowed": ["*.X.example:8443"], "denied": ["evil.example"], "ports": [80, 443], "private": ["10.0.0.0/8"],
    });
    assert_eq!(shown, expected);
}

#[test]
fn reasons_are_few_words() {
    let verdict = rules(&[], &[]).judge(&Host::parse("127.1").unwrap(), 80);
    let Verdict::Denied { reason, .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!(reason.to_string(), "blocked address: loopback (127.0.0.0/8)");
}

proptest! {
    /// The maps of a table find what its patterns match, one by one.
    ///
    /// Proves: NET-3 globs, NET-3 block-list
    #[test]
    fn a_table_agrees_with_its_patterns(
        patterns in proptest::collection::vec(r"(\*\.|\*\*\.)?[ab](\.[ab]){0,2}|\*|192\.0\.2\.[01]|192\.0\.2\.0/3[01]", 0..6),
        host in r"[ab](\.[ab]){0,3}|192\.0\.2\.[0-3]",
    ) {
        let host = Host::parse(&host).unwrap();
        let texts: Vec<&str> = patterns.iter().map(String::as_str).collect();
        let matching = entries(&texts).iter().any(|entry| entry.pattern.matches(&host));
        let allowing = entries(&texts).iter().any(|entry| {
            let is_about = entry.written != "*" || matches!(host, Host::Name(_));
            is_about && entry.pattern.matches(&host)
        });
        prop_assert_eq!(rules(&texts, &[]).judge(&host, 443).is_allowed(), allowing);
        let is_denied = matches!(rules(&["*"], &texts).judge(&host, 443), Verdict::Denied { .. });
        prop_assert_eq!(is_denied, matching);
    }
}

/// The flag that is offered is one that is understood, and allows what it is for.
///
/// Proves: NET-3 ports
#[test]
fn a_flag_allows_what_it_is_for() {
    for (ports, host, port, flag) in [
        (&[][..], "x.example", 443, "--allow-host x.example"),
        (&[], "x.example", 80, "--allow-host x.example"),
        (&[], "x.example", 8443, "--allow-host x.example:8443"),
        (&[], "192.0.2.1", 22, "--allow-host 192.0.2.1:22"),
        (&[], "2001:db8::1", 443, "--allow-host 2001:db8::1"),
        (&[], "2001:db8::1", 22, "--allow-host '[2001:db8::1]:22'"),
        (&[8443], "x.example", 8443, "--allow-host x.example"),
        (&[8443], "x.example", 443, "--allow-host x.example:443"),
    ] {
        let host = Host::parse(host).unwrap();
        let rules = |allowed| Rules::new(allowed, Vec::new(), ports.to_vec(), Vec::new());
        assert_eq!(rules(Vec::new()).flag_for(&host, port), flag);
        let value = flag.split_once(' ').unwrap().1.trim_matches('\'');
        let allowed = rules(vec![HostEntry::parse(value).unwrap()]);
        assert!(allowed.judge(&host, port).is_allowed(), "{flag}");
    }
}
