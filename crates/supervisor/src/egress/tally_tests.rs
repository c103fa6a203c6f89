use super::{MAX_HOSTS, MAX_PORTS, Tally};
use palisade_record::OtherHosts;
use palisade_record::network::{ConnectionClosed, NameQueried, NetworkAction, NetworkAttempt, Via};

fn attempt(action: NetworkAction, host: &str) -> NetworkAttempt {
    let is_allowed = action.is_allowed();
    NetworkAttempt {
        action,
        via: Via::Transparent,
        host: host.to_owned(),
        address: None,
        port: 443,
        rule: is_allowed.then(|| host.to_owned()),
        reason: (!is_allowed).then(|| "no rule allows it".to_owned()),
        allow: (!is_allowed).then(|| format!("--allow-host {host}")),
        count: 1,
    }
}

fn queried(name: &str, answer: &str, reason: Option<&str>) -> NameQueried {
    NameQueried {
        name: name.to_owned(),
        record: "A".to_owned(),
        answer: answer.to_owned(),
        rule: None,
        reason: reason.map(str::to_owned),
        suspicion: None,
        count: 1,
    }
}

/// Proves: NET-7 logged
#[test]
fn hosts_are_counted_with_their_bytes() {
    let mut tally = Tally::new("proxy");
    tally.front("transparent");
    tally.attempt(&attempt(NetworkAction::ProxyAllowed, "a.example"));
    tally.attempt(&attempt(NetworkAction::ProxyAllowed, "a.example"));
    tally.attempt(&attempt(NetworkAction::ProxyAllowed, "b.example"));
    for (sent, received) in [(10, 2000), (5, 1)] {
        tally.closed(&ConnectionClosed {
            via: Via::Transparent,
            host: "a.example".to_owned(),
            address: None,
            port: 443,
            sent,
            received,
            duration_ms: 1,
            count: 1,
        });
    }
    let report = tally.into_report(|_| None);
    let event: Vec<_> = report
        .hosts
        .iter()
        .map(|host| (host.host.as_str(), host.connections, host.sent, host.received))
        .collect();
    assert_eq!(event, [("a.example", 2, 15, 2001), ("b.example", 1, 0, 0)]);
    assert_eq!((report.mode.as_str(), report.front.as_str()), ("proxy", "transparent"));
}

/// Proves: NET-7 summary
#[test]
fn a_denied_host_is_told_once_with_the_flag_that_allows_it() {
    let mut tally = Tally::new("proxy");
    let mut many = attempt(NetworkAction::ProxyDenied, "a.example");
    many.count = 40;
    tally.attempt(&many);
    let mut again = attempt(NetworkAction::ProxyDenied, "a.example");
    again.allow = None;
    tally.attempt(&again);
    let mut blocked = attempt(NetworkAction::DnsRebindBlocked, "b.example");
    blocked.allow = None;
    tally.attempt(&blocked);
    let denied = tally.into_report(|_| None).denied;
    let event: Vec<_> =
        denied.iter().map(|host| (host.place(), host.count, host.allow.as_deref())).collect();
    assert_eq!(
        event,
        [
            ("a.example:443".to_owned(), 41, Some("--allow-host a.example")),
            ("b.example:443".to_owned(), 1, None),
        ]
    );
}

/// Proves: NET-7 summary
#[test]
fn a_name_that_got_no_address_is_a_denied_host() {
    let mut tally = Tally::new("proxy");
    tally.queried(&queried("a.example", "NXDOMAIN", Some("no rule allows it")));
    tally.queried(&queried("a.example", "NXDOMAIN", Some("no rule allows it")));
    tally.queried(&queried("good.example", "NOERROR", None));
    let mut gone = queried("gone.example", "NXDOMAIN", Some("there is no such name"));
    gone.rule = Some("*.example".to_owned());
    tally.queried(&gone);
    let report = tally.into_report(|_| None);
    let event: Vec<_> =
        report.denied.iter().map(|host| (host.place(), host.allow.as_deref())).collect();
    assert_eq!(event, [("a.example".to_owned(), Some("--allow-host a.example"))]);
    assert_eq!((report.queries.answered, report.queries.refused), (1, 3));
}

/// Proves: NET-7 summary
#[test]
fn what_a_rule_denies_is_told_with_the_rule_and_its_file_and_no_flag() {
    let mut tally = Tally::new("proxy");
    // Asked about, and never to be asked about again.
    tally.attempt(&attempt(NetworkAction::ProxyDenied, "never.example"));
    tally.forbidden("never.example:443".to_owned());
    // The same for this session only.
    tally.attempt(&attempt(NetworkAction::ProxyDenied, "today.example"));
    let by_rule = |host: &str, rule: &str| NetworkAttempt {
        rule: Some(rule.to_owned()),
        reason: Some("denied by a rule".to_owned()),
        allow: None,
        ..attempt(NetworkAction::ProxyDenied, host)
    };
    for (host, rule) in [
        ("never.example", "answered by socket"),
        ("today.example", "answered by socket"),
        ("old.example", "old.example:443"),
        ("flag.example", "*.example"),
    ] {
        tally.attempt(&by_rule(host, rule));
    }
    let mut looked_up = queried("bad.example", "NXDOMAIN", Some("denied by a rule"));
    looked_up.rule = Some("**.bad.example".to_owned());
    tally.queried(&looked_up);
    let file_of = |rule: &str| (rule != "*.example").then(|| "/home/u/policy.yaml".into());
    let denied = tally.into_report(file_of).denied;
    let event = |place: &str| {
        let found = denied.iter().find(|host| host.place() == place).unwrap();
        (found.reason.as_deref().unwrap_or_default(), found.allow.as_deref())
    };
    let saved =
        "denied by `never.example:443` in /home/u/policy.yaml; to allow it, remove that rule";
    assert_eq!(event("never.example:443"), (saved, None));
    let flag = Some("--allow-host today.example");
    assert_eq!(event("today.example:443"), ("denied by a rule", flag));
    let older = "denied by `old.example:443` in /home/u/policy.yaml; to allow it, remove that rule";
    assert_eq!(event("old.example:443"), (older, None));
    let (elsewhere, none) = event("flag.example:443");
    assert!(elsewhere.contains("`sandbox policy show`") && none.is_none(), "{elsewhere}");
    assert!(event("bad.example").0.starts_with("denied by `**.bad.example` in"), "{denied:#?}");
}

#[test]
fn lists_are_bounded_and_counts_are_not() {
    let mut tally = Tally::new("proxy");
    for number in 0..MAX_HOSTS + 7 {
        tally.attempt(&attempt(NetworkAction::ProxyDenied, &format!("n{number}.example")));
        let mut suspected = queried(&format!("x{number}.example"), "REFUSED", None);
        suspected.suspicion = Some("too random".to_owned());
        tally.queried(&suspected);
    }
    let mut datagram = attempt(NetworkAction::ProxyDenied, "203.0.113.9");
    datagram.via = Via::Datagram;
    datagram.count = 9;
    tally.attempt(&datagram);
    let report = tally.into_report(|_| None);
    assert_eq!((report.denied.len(), report.beyond), (MAX_HOSTS, 7));
    assert_eq!(report.datagrams_rejected, 9);
    assert_eq!(report.queries.suspicious, MAX_HOSTS as u64 + 7);
    assert!(report.queries.suspected.len() < 30);
}

/// Proves: NET-7 logged
#[test]
fn who_comes_from_outside_and_what_stands_for_many_is_no_host() {
    let mut tally = Tally::new("proxy");
    for action in [NetworkAction::ProxyAllowed, NetworkAction::ProxyDenied] {
        tally.attempt(&NetworkAttempt { via: Via::Published, ..attempt(action, "127.0.0.1") });
        tally.attempt(&NetworkAttempt { count: 7, ..attempt(action, "(others)") });
    }
    for (via, host) in [(Via::Published, "127.0.0.1"), (Via::Transparent, "(others)")] {
        tally.closed(&ConnectionClosed {
            via,
            host: host.to_owned(),
            address: None,
            port: 443,
            sent: 1,
            received: 1,
            duration_ms: 1,
            count: 1,
        });
    }
    let report = tally.into_report(|_| None);
    assert!(report.hosts.is_empty() && report.denied.is_empty(), "{report:?}");
    assert_eq!(report.beyond, 14);
    assert_eq!(report.others, Some(OtherHosts { connections: 7, sent: 1, received: 1 }));
}

/// Proves: NET-7 logged
#[test]
fn hosts_that_are_not_listed_are_counted_with_their_bytes() {
    let mut tally = Tally::new("proxy");
    for number in 0..MAX_HOSTS + 7 {
        let host = format!("n{number}.example");
        tally.attempt(&attempt(NetworkAction::ProxyAllowed, &host));
        tally.closed(&ConnectionClosed {
            via: Via::Transparent,
            host,
            address: None,
            port: 443,
            sent: 2,
            received: 3,
            duration_ms: 1,
            count: 1,
        });
    }
    let report = tally.into_report(|_| None);
    assert_eq!((report.hosts.len(), report.beyond), (MAX_HOSTS, 7));
    assert_eq!(report.others, Some(OtherHosts { connections: 7, sent: 14, received: 21 }));
}

/// Proves: NET-7 summary
#[test]
fn one_host_does_not_fill_the_list_with_its_ports() {
    let mut tally = Tally::new("proxy");
    for port in 1..=1000 {
        tally.attempt(&NetworkAttempt {
            port,
            ..attempt(NetworkAction::ProxyDenied, "203.0.113.200")
        });
    }
    // As a sum of several ports is told.
    tally.attempt(&NetworkAttempt {
        port: 0,
        count: 50,
        allow: None,
        ..attempt(NetworkAction::ProxyDenied, "203.0.113.200")
    });
    tally.attempt(&attempt(NetworkAction::ProxyDenied, "203.0.113.201"));
    let report = tally.into_report(|_| None);
    assert_eq!((report.denied.len(), report.beyond), (MAX_PORTS + 2, 0));
    assert_eq!(report.denied.iter().map(|denied| denied.count).sum::<u64>(), 1051);
    let together = report.denied.iter().find(|denied| denied.port.is_none()).unwrap();
    assert_eq!((together.place().as_str(), &together.allow), ("203.0.113.200", &None));
}
