use crate::config::{Checks, OnUnknown, Upstream};
use crate::engine::dns::test_support::{Inside, Zone, code, config, question, rules, run};
use hickory_proto::op::ResponseCode::{NXDomain, NoError, Refused, ServFail};
use hickory_proto::rr::{DNSClass, RecordType};
use palisade_hosts::Name;

const OTHER_TYPES: [RecordType; 8] = [
    RecordType::HTTPS,
    RecordType::SVCB,
    RecordType::TXT,
    RecordType::MX,
    RecordType::SRV,
    RecordType::NS,
    RecordType::CNAME,
    RecordType::ANY,
];

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

/// Proves: NET-6 allowed-names, NET-6 logged, NET-5 ignoring
#[test]
fn an_allowed_name_gets_addresses_that_lead_back_to_it() {
    run(async {
        let zone = Zone::start().await;
        zone.set("api.allowed.example", &["203.0.113.10"]);
        let mut inside =
            Inside::start(config(rules(&["*.allowed.example"], &[]), zone.config())).await;
        for record in [RecordType::A, RecordType::AAAA] {
            let address = inside.address("API.allowed.example.", record).await;
            assert_eq!(address.is_ipv4(), record == RecordType::A);
            assert_eq!(inside.engine.dns.name_of(address), Some(name("api.allowed.example")));
        }
        for event in inside.event() {
            assert_eq!(event.name, "api.allowed.example");
            assert_eq!(event.answer, "NOERROR");
            assert_eq!(event.rule.as_deref(), Some("*.allowed.example"));
            assert_eq!((event.reason, event.suspicion), (None, None));
        }
    });
}

/// Data in a name that nobody allowed goes nowhere, whatever is asked of it (N03).
/// Proves: NET-6 allowed-names, NET-6 tunnelling
#[test]
fn nothing_of_a_name_that_is_not_allowed_is_asked_outside() {
    run(async {
        let zone = Zone::start().await;
        zone.set("secret.evil.example", &["203.0.113.66"]);
        zone.set("bad.allowed.example", &["203.0.113.66"]);
        let rules = rules(&["*.allowed.example"], &["bad.allowed.example"]);
        let mut inside = Inside::start(config(rules, zone.config())).await;
        for record in OTHER_TYPES.into_iter().chain([RecordType::A, RecordType::AAAA]) {
            for name in ["secret.evil.example", "bad.allowed.example", "allowed.example"] {
                assert_eq!(inside.ask(name, record).await, code(NXDomain), "{name} {record}");
            }
        }
        assert_eq!(zone.asked(), Vec::<String>::new());
        let event = inside.event();
        assert_eq!(event.len(), 30);
        assert!(event.iter().all(|event| event.answer == "NXDOMAIN" && event.reason.is_some()));
        let by_rule =
            |name: &str| event.iter().find(|event| event.name == name).unwrap().rule.clone();
        assert_eq!(by_rule("secret.evil.example"), None);
        assert_eq!(by_rule("bad.allowed.example").as_deref(), Some("bad.allowed.example"));
    });
}

/// The same with the layer off: the test above is able to fail.
#[test]
fn without_rules_every_name_is_looked_up() {
    run(async {
        let zone = Zone::start().await;
        zone.set("secret.evil.example", &["203.0.113.66"]);
        let mut config = config(rules(&[], &[]), zone.config());
        config.checks = Checks { rules: false, ..Checks::default() };
        let inside = Inside::start(config).await;
        inside.address("secret.evil.example", RecordType::A).await;
        assert!(zone.asked().contains(&"secret.evil.example A".to_owned()));
    });
}

/// One bad address among good ones is enough (N04).
/// Proves: NET-4 pinned, NET-3 special-addresses
#[test]
fn a_name_that_stands_for_a_blocked_address_is_refused() {
    run(async {
        let zone = Zone::start().await;
        let blocked = [
            ["169.254.169.254", "203.0.113.10"],
            ["203.0.113.10", "127.0.0.1"],
            ["203.0.113.10", "10.1.2.3"],
            ["203.0.113.10", "::1"],
            ["203.0.113.10", "64:ff9b::7f00:1"],
            ["203.0.113.10", "::ffff:192.168.1.1"],
        ];
        let mut config = config(rules(&["*.allowed.example"], &[]), zone.config());
        let mut inside = Inside::start(config.clone()).await;
        for (number, addresses) in blocked.iter().enumerate() {
            let name = format!("n{number}.allowed.example");
            zone.set(&name, addresses);
            assert_eq!(inside.ask(&name, RecordType::A).await, code(Refused), "{addresses:?}");
            assert_eq!(inside.ask(&name, RecordType::AAAA).await, code(Refused), "{addresses:?}");
        }
        let event = inside.event();
        assert!(event[0].reason.as_ref().unwrap().contains("169.254.169.254"), "{event:?}");

        config.checks = Checks { addresses: false, ..Checks::default() };
        Inside::start(config).await.address("n0.allowed.example", RecordType::A).await;
    });
}

#[test]
fn what_does_not_exist_outside_does_not_exist_inside() {
    run(async {
        let zone = Zone::start().await;
        zone.set("empty.allowed.example", &[]);
        zone.fail("broken.allowed.example", ServFail);
        let mut inside =
            Inside::start(config(rules(&["*.allowed.example"], &[]), zone.config())).await;
        for (name, answer) in [
            ("no.allowed.example", NXDomain),
            ("empty.allowed.example", NoError),
            ("broken.allowed.example", ServFail),
        ] {
            assert_eq!(inside.ask(name, RecordType::A).await, code(answer), "{name}");
        }
        assert!(inside.event().iter().all(|event| event.rule.is_some()));
    });
}

/// Proves: NET-6 allowed-names
#[test]
fn other_records_of_allowed_names_are_empty_and_not_asked_for() {
    run(async {
        let zone = Zone::start().await;
        zone.set("allowed.example", &["203.0.113.10"]);
        let inside = Inside::start(config(rules(&["allowed.example"], &[]), zone.config())).await;
        for record in OTHER_TYPES {
            assert_eq!(inside.ask("allowed.example", record).await, code(NoError), "{record}");
        }
        assert_eq!(zone.asked(), Vec::<String>::new());
    });
}

/// The question to a person comes with the connection; nobody outside is asked before.
/// Proves: NET-6 allowed-names
#[test]
fn an_unknown_name_gets_an_address_while_people_are_asked() {
    run(async {
        let zone = Zone::start().await;
        let mut config = config(rules(&["allowed.example"], &["denied.example"]), zone.config());
        config.on_unknown = OnUnknown::Ask;
        let inside = Inside::start(config).await;
        let address = inside.address("unknown.example", RecordType::A).await;
        assert_eq!(inside.engine.dns.name_of(address), Some(name("unknown.example")));
        assert_eq!(inside.ask("unknown.example", RecordType::TXT).await, code(NoError));
        assert_eq!(inside.ask("denied.example", RecordType::A).await, code(NXDomain));
        assert_eq!(zone.asked(), Vec::<String>::new());
    });
}

#[test]
fn with_a_proxy_outside_nothing_is_looked_up_here() {
    run(async {
        let zone = Zone::start().await;
        let mut config = config(rules(&["allowed.example"], &[]), zone.config());
        let host = "proxy.example".to_owned();
        config.upstream = Some(Upstream { host, port: 3128, authorization: None });
        let inside = Inside::start(config).await;
        inside.address("allowed.example", RecordType::AAAA).await;
        assert_eq!(inside.ask("denied.example", RecordType::A).await, code(NXDomain));
        assert_eq!(zone.asked(), Vec::<String>::new());
    });
}

/// Proves: NET-3 spellings, NET-3 local-names
#[test]
fn addresses_and_local_names_are_not_looked_up() {
    run(async {
        let zone = Zone::start().await;
        let inside = Inside::start(config(rules(&["*"], &[]), zone.config())).await;
        for name in [
            "127.0.0.1",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "10.0.0.256",
            "x.internal",
            "printer.local",
        ] {
            assert_eq!(inside.ask(name, RecordType::A).await, code(NXDomain), "{name}");
        }
        assert_eq!(zone.asked(), Vec::<String>::new());
    });
}

#[test]
fn localhost_is_the_sandbox_itself() {
    run(async {
        let zone = Zone::start().await;
        let inside = Inside::start(config(rules(&[], &["localhost"]), zone.config())).await;
        for name in ["localhost", "app.LOCALHOST."] {
            let v4 = inside.address(name, RecordType::A).await;
            let v6 = inside.address(name, RecordType::AAAA).await;
            assert_eq!((v4, v6), ("127.0.0.1".parse().unwrap(), "::1".parse().unwrap()));
        }
        assert_eq!(inside.ask("localhost", RecordType::HTTPS).await, code(NoError));
        assert_eq!(
            inside.ask("1.0.0.127.in-addr.arpa", RecordType::PTR).await.data,
            ["localhost."]
        );
    });
}

#[test]
fn an_address_of_ours_tells_its_name_backwards() {
    run(async {
        let zone = Zone::start().await;
        zone.set("allowed.example", &["203.0.113.10"]);
        let inside = Inside::start(config(rules(&["*"], &[]), zone.config())).await;
        inside.address("allowed.example", RecordType::A).await;
        let v6 = "0.0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.2.4.4.6.e.6.1.6.3.5.d.f.ip6.arpa";
        for arpa in ["0.1.18.198.in-addr.arpa", v6] {
            assert_eq!(
                inside.ask(arpa, RecordType::PTR).await.data,
                ["allowed.example."],
                "{arpa}"
            );
            assert_eq!(inside.ask(arpa, RecordType::TXT).await, code(NoError), "{arpa}");
        }
        for arpa in
            ["1.1.18.198.in-addr.arpa", "1.0.18.198.in-addr.arpa", "10.113.0.203.in-addr.arpa"]
        {
            assert_eq!(inside.ask(arpa, RecordType::PTR).await, code(NXDomain), "{arpa}");
        }
        assert!(!zone.asked().iter().any(|asked| asked.contains("arpa")), "{:?}", zone.asked());
    });
}

#[test]
fn other_classes_and_the_root_have_nothing() {
    run(async {
        let zone = Zone::start().await;
        let inside = Inside::start(config(rules(&["*"], &[]), zone.config())).await;
        let chaos = question("version.bind", RecordType::TXT, DNSClass::CH);
        assert_eq!(inside.send(&chaos).await.metadata.response_code, Refused);
        assert_eq!(inside.ask(".", RecordType::NS).await, code(NoError));
        assert_eq!(zone.asked(), Vec::<String>::new());
    });
}
