use super::{HostSums, View, bytes};
use crate::commands::net::text;
use crate::output::Paint;
use palisade_record::network::{
    ConnectionClosed, HostDecided, NameQueried, NetworkAction, NetworkAttempt, Via,
};
use palisade_record::{Decision, Destroyed, Event, EventKind, State};

fn hear(view: &mut View, kind: EventKind) -> Option<String> {
    let happened = view.hear(&Event::new("s", State::Monitoring, kind))?;
    Some(format!("{} {}", happened.what, happened.text))
}

fn attempt(action: NetworkAction, host: &str, allow: Option<&str>) -> EventKind {
    EventKind::NetworkAttempt(Box::new(NetworkAttempt {
        action,
        via: Via::Connect,
        host: host.to_owned(),
        address: action.is_allowed().then_some([203, 0, 113, 7].into()),
        port: 443,
        rule: action.is_allowed().then(|| "*.example".to_owned()),
        reason: (!action.is_allowed()).then(|| "no rule allows it".to_owned()),
        allow: allow.map(str::to_owned),
        count: 1,
    }))
}

fn closed(host: &str) -> EventKind {
    EventKind::ConnectionClosed(Box::new(ConnectionClosed {
        via: Via::Connect,
        host: host.to_owned(),
        address: None,
        port: 443,
        sent: 100,
        received: 3 << 20,
        duration_ms: 1500,
        count: 1,
    }))
}

/// Proves: NET-7 shown
#[test]
fn open_connections_bytes_and_denials_add_up_by_host() {
    let mut view = View::of("s");
    for _ in 0..2 {
        let told =
            hear(&mut view, attempt(NetworkAction::ProxyAllowed, "a.example", None)).unwrap();
        assert_eq!(told, "allowed a.example:443 (203.0.113.7) by CONNECT: *.example");
    }
    let told = hear(&mut view, closed("a.example")).unwrap();
    assert_eq!(told, "closed a.example:443, 100 B sent, 3.0 MiB received in 1.5 s");
    let flag = Some("--allow-host evil.example");
    let told = hear(&mut view, attempt(NetworkAction::ProxyDenied, "evil.example", flag)).unwrap();
    assert_eq!(
        told,
        "denied evil.example:443 by CONNECT: no rule allows it; allow with --allow-host \
         evil.example"
    );
    let reached = HostSums {
        host: "a.example".to_owned(),
        port: Some(443),
        open: 1,
        connections: 2,
        sent: 100,
        received: 3 << 20,
        ..HostSums::default()
    };
    assert_eq!(view.hosts[0], reached);
    assert_eq!((view.hosts[1].denied, view.hosts[1].allow.as_deref()), (1, flag));
    assert_eq!(hear(&mut view, EventKind::SandboxDestroyed(Destroyed { duration_ms: 1 })), None);
    assert!(view.is_over && view.hosts[0].open == 0);
}

/// Proves: NET-7 shown, AUD-2 escaped-text
#[test]
fn the_page_tells_all_of_it_and_escapes_names() {
    let mut view = View::of("s");
    view.network = "proxy".to_owned();
    hear(&mut view, attempt(NetworkAction::ProxyDenied, "x\x1b]52;c;y\x07.example", None));
    hear(
        &mut view,
        EventKind::NameQueried(Box::new(NameQueried {
            name: "y\u{202e}.example".to_owned(),
            record: "A".to_owned(),
            answer: "REFUSED".to_owned(),
            rule: None,
            reason: Some("too many".to_owned()),
            suspicion: Some("too long".to_owned()),
            count: 3,
        })),
    );
    let page = text::page(&view, Paint::none());
    assert!(!page.contains(['\x1b', '\x07', '\u{202e}']), "{page}");
    assert!(page.starts_with("run s (running), network proxy\nHOST"), "{page}");
    assert!(page.contains("names: 0 answered, 3 not, 3 look like tunnelling\n"), "{page}");
    assert!(page.contains("name      y\\u{202e}.example A: REFUSED, too many"), "{page}");
}

/// Proves: NET-7 shown
#[test]
fn a_name_that_nobody_allowed_is_a_denied_host() {
    let mut view = View::of("s");
    for (name, rule) in [("a.example", None), ("gone.example", Some("*.example".to_owned()))] {
        hear(
            &mut view,
            EventKind::NameQueried(Box::new(NameQueried {
                name: name.to_owned(),
                record: "A".to_owned(),
                answer: "NXDOMAIN".to_owned(),
                rule,
                reason: Some("no rule allows it".to_owned()),
                suspicion: None,
                count: 2,
            })),
        );
    }
    assert_eq!(view.hosts.len(), 1, "{:?}", view.hosts);
    let page = text::page(&view, Paint::none());
    let line = page.lines().find(|line| line.starts_with("a.example ")).unwrap();
    assert!(line.ends_with("2  allow with --allow-host a.example"), "{line}");
}

/// Proves: NET-7 shown
#[test]
fn no_option_is_told_for_what_an_answer_denies_for_good() {
    for (lifetime, is_told) in [("always, user", false), ("session", true), ("once", true)] {
        let mut view = View::of("s");
        let decided = HostDecided {
            host: "evil.example".to_owned(),
            port: 443,
            decision: Decision::Denied,
            lifetime: lifetime.to_owned(),
            source: "terminal".to_owned(),
            details: None,
            question: Some(1),
            latency_us: 1,
        };
        hear(&mut view, EventKind::HostDecided(Box::new(decided)));
        let flag = Some("--allow-host evil.example");
        let told =
            hear(&mut view, attempt(NetworkAction::ProxyDenied, "evil.example", flag)).unwrap();
        assert_eq!(told.contains("allow with"), is_told, "{lifetime}");
        assert_eq!(view.hosts[0].allow.is_some(), is_told, "{lifetime}");
    }
}

/// Proves: NET-7 shown
#[test]
fn what_was_refused_does_not_take_the_place_of_what_was_reached() {
    let mut view = View::of("s");
    for number in 0..2100 {
        hear(&mut view, attempt(NetworkAction::ProxyDenied, &format!("n{number}.example"), None));
    }
    hear(&mut view, attempt(NetworkAction::ProxyAllowed, "evil.example", None));
    hear(&mut view, closed("evil.example"));
    let evil = view.hosts.iter().find(|host| host.host == "evil.example").unwrap();
    assert_eq!((evil.connections, evil.sent), (1, 100));
    let others = view.hosts.iter().find(|host| host.host == "(others)").unwrap();
    assert_eq!((others.port, others.denied, view.beyond), (None, 600, 600));
    assert_eq!(view.hosts.iter().map(|host| host.denied).sum::<u64>(), 2100);
    let page = text::page(&view, Paint::none());
    assert!(page.lines().nth(2).unwrap().starts_with("evil.example:443 "), "{page}");
}

/// Proves: NET-7 shown
#[test]
fn a_sum_of_several_hosts_or_ports_names_no_port() {
    let mut view = View::of("s");
    for (action, host) in
        [(NetworkAction::ProxyAllowed, "(others)"), (NetworkAction::ProxyDenied, "a.example")]
    {
        let EventKind::NetworkAttempt(mut sum) = attempt(action, host, None) else {
            panic!("not an attempt")
        };
        (sum.port, sum.count, sum.address) = (0, 5, None);
        let told = hear(&mut view, EventKind::NetworkAttempt(sum)).unwrap();
        assert!(told.contains(&format!("{host}, 5 times")), "{told}");
    }
    let EventKind::ConnectionClosed(mut sum) = closed("(others)") else { panic!("not a close") };
    (sum.port, sum.count) = (0, 5);
    let told = hear(&mut view, EventKind::ConnectionClosed(sum)).unwrap();
    assert!(told.starts_with("closed (others), 5 times, 100 B sent"), "{told}");
    let others = &view.hosts[0];
    assert_eq!((others.port, others.open, others.connections, others.sent), (None, 0, 5, 100));
}

#[test]
fn nothing_tried_is_said_so() {
    let mut view = View::of("s");
    view.network = "none".to_owned();
    assert_eq!(
        text::page(&view, Paint::none()),
        "run s (running), network none\nno connection was attempted\n"
    );
}

#[test]
fn sizes_have_units() {
    let told = [0, 1023, 1024, 1 << 20, (1 << 30) * 5 / 2].map(bytes);
    assert_eq!(told, ["0 B", "1023 B", "1.0 KiB", "1.0 MiB", "2.5 GiB"]);
}
