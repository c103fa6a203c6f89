use super::*;
use crate::config::Checks;
use crate::engine::dns::test_support::Zone;
use crate::events::Outbox;
use crate::test_support::{attempts, config, engine, host, listen, run};
use std::io;
use std::net::Ipv4Addr;
use tokio::task::spawn_local;

fn wanted(name: &str, port: u16) -> Wanted {
    Wanted { via: Via::Transparent, host: host(name), port }
}

fn known(allowed: &[&str]) -> Config {
    config(allowed).knows("a.example", Ipv4Addr::LOCALHOST)
}

async fn refused(config: Config, name: &str, port: u16) -> Refused {
    let (engine, mut outbox) = engine(config);
    let refused = engine.admit(wanted(name, port)).await.unwrap_err();
    let event = attempts(&mut outbox);
    assert_eq!(event, [refused.attempt(Via::Transparent)], "told once, and the same");
    refused
}

/// Proves: NET-7 logged
#[test]
fn an_allowed_host_is_admitted_and_told_with_rule_and_address() {
    run(async {
        let (engine, mut outbox) = engine(known(&["*.example:443"]));
        let admitted = engine.admit(wanted("A.example.", 443)).await.unwrap();
        assert_eq!(admitted.addresses, [SocketAddr::from((Ipv4Addr::LOCALHOST, 443))]);
        let event = attempts(&mut outbox);
        let [event] = event.as_slice() else { panic!("{event:?}") };
        assert_eq!((event.action, event.host.as_str()), (NetworkAction::ProxyAllowed, "a.example"));
        assert_eq!(event.rule.as_deref(), Some("*.example:443"));
        assert_eq!(event.address, Some(Ipv4Addr::LOCALHOST.into()));
    });
}

/// Proves: NET-7 logged
#[test]
fn a_connection_that_is_over_is_told_with_what_it_carried() {
    run(async {
        let (engine, mut outbox) = engine(known(&["a.example"]));
        let admitted = engine.admit(wanted("a.example", 443)).await.unwrap();
        admitted.sent(5).unwrap();
        admitted.received(7).unwrap();
        outbox.rest();
        drop(admitted);
        let event = outbox.rest();
        let [EgressEvent::Closed(closed)] = event.as_slice() else { panic!("{event:?}") };
        assert_eq!((closed.sent, closed.received, closed.port), (5, 7, 443));
    });
}

#[test]
fn a_host_that_no_rule_names_is_denied_with_the_flag_that_would_allow_it() {
    run(async {
        let refused = refused(known(&["b.example"]), "a.example", 8443).await;
        assert_eq!((refused.cause, refused.action), (Cause::Denied, NetworkAction::ProxyDenied));
        assert_eq!(refused.flag.as_deref(), Some("--allow-host a.example:8443"));
    });
}

/// Proves: NET-3 block-list
#[test]
fn a_denied_host_is_denied_whatever_allows_it() {
    run(async {
        let refused = refused(known(&[]).denies(&["*"], &["a.example"]), "a.example", 443).await;
        assert_eq!(refused.rule.as_deref(), Some("a.example"));
        assert_eq!(refused.flag, None, "no flag beats a denial");
    });
}

/// Proves: NET-3 block-list
#[test]
fn a_denied_host_is_not_reached_by_another_name() {
    run(async {
        let zone = Zone::start().await;
        zone.set_alias("a.example", "b.example");
        zone.set_alias("b.example", "c.example");
        zone.set("c.example", &["203.0.113.10"]);
        let with = |denied: &[&str]| Config {
            lookup: zone.config(),
            ..known(&[]).denies(&["a.example"], denied)
        };
        for denied in ["b.example", "b.example:443", "c.example"] {
            let refused = refused(with(&[denied]), "a.example", 443).await;
            assert_eq!(refused.cause, Cause::Denied);
            assert!(refused.reason.ends_with(&format!("denied by `{denied}`")), "{refused:?}");
        }
        for elsewhere in ["b.example:80", "d.example"] {
            let (engine, _outbox) = engine(with(&[elsewhere]));
            assert!(engine.admit(wanted("a.example", 443)).await.is_ok(), "{elsewhere}");
        }
    });
}

/// What a name stands for is looked up anew when its time is over, and checked anew (rebinding, N05).
///
/// Proves: NET-4 pinned, NET-3 special-addresses
#[test]
fn an_address_that_a_name_gets_later_is_checked_too() {
    run(async {
        let zone = Zone::start().await;
        for later in ["127.0.0.1", "10.0.0.5", "169.254.169.254", "::1", "fd00::5"] {
            zone.set_for("a.example", &["203.0.113.10"], 0);
            let checks = Checks::default();
            let checked = Config { lookup: zone.config(), checks, ..config(&["a.example"]) };
            let (engine, _outbox) = engine(checked);
            engine.admit(wanted("a.example", 443)).await.unwrap();
            zone.set_for("a.example", &["203.0.113.10", later], 0);
            engine.admit(wanted("a.example", 443)).await.unwrap();
            let Host::Name(name) = host("a.example") else { panic!("no name") };
            engine.lookup.age(&name);
            let refused = engine.admit(wanted("a.example", 443)).await.unwrap_err();
            assert_eq!(
                (refused.cause, refused.action),
                (Cause::Address, NetworkAction::DnsRebindBlocked)
            );
        }
    });
}

/// Proves: NET-3 ports
#[test]
fn a_port_that_is_not_allowed_is_told_as_such() {
    run(async {
        let refused = refused(known(&["a.example"]), "a.example", 22).await;
        assert_eq!(refused.action, NetworkAction::ProxyDeniedPort);
        assert_eq!(refused.flag.as_deref(), Some("--allow-host a.example:22"));
    });
}

/// Proves: NET-4 pinned
#[test]
fn one_address_that_is_never_allowed_refuses_the_name() {
    run(async {
        let mut config = config(&["a.example"])
            .knows("a.example", Ipv4Addr::new(203, 0, 113, 7))
            .knows("a.example", Ipv4Addr::new(169, 254, 169, 254));
        config.checks = Checks::default();
        let refused = refused(config, "a.example", 443).await;
        assert_eq!(
            (refused.cause, refused.action),
            (Cause::Address, NetworkAction::DnsRebindBlocked)
        );
        assert!(refused.reason.contains("169.254.169.254"), "{}", refused.reason);
    });
}

/// Proves: NET-3 special-addresses, NET-3 spellings
#[test]
fn loopback_is_refused_in_every_spelling() {
    run(async {
        for spelling in ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "[::ffff:127.0.0.1]"] {
            let mut config = config(&["*", "127.0.0.0/8"]);
            config.checks = Checks::default();
            let refused = refused(config, spelling, 443).await;
            assert_eq!(refused.cause, Cause::Address, "{spelling}");
        }
    });
}

#[test]
fn a_name_that_cannot_be_looked_up_is_refused() {
    run(async {
        let refused = refused(config(&["a.example"]), "a.example", 443).await;
        assert_eq!(
            (refused.cause, refused.action),
            (Cause::Lookup, NetworkAction::ProxyBlockedDns)
        );
    });
}

/// Proves: NET-7 bytes
#[test]
fn beyond_the_limit_of_bytes_nothing_is_admitted() {
    run(async {
        let mut config = known(&["a.example"]);
        config.limits.bytes = Some(10);
        let (engine, mut outbox) = engine(config);
        let admitted = engine.admit(wanted("a.example", 443)).await.unwrap();
        admitted.sent(10).unwrap();
        let error = admitted.received(1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
        let refused = engine.admit(wanted("a.example", 443)).await.unwrap_err();
        assert_eq!(refused.cause, Cause::Limit);
        assert_eq!(attempts(&mut outbox).len(), 2);
    });
}

/// Proves: NET-7 limit
#[test]
fn beyond_the_limit_of_connections_nothing_is_admitted() {
    run(async {
        let mut config = known(&["a.example"]);
        config.limits.connections = 1;
        let (engine, _outbox) = engine(config);
        let first = engine.admit(wanted("a.example", 443)).await.unwrap();
        let refused = engine.admit(wanted("a.example", 443)).await.unwrap_err();
        assert_eq!(refused.cause, Cause::Limit);
        drop(first);
        engine.admit(wanted("a.example", 443)).await.unwrap();
    });
}

fn asking() -> (Rc<Engine>, Outbox) {
    let mut config = known(&[]);
    config.on_unknown = OnUnknown::Ask;
    engine(config)
}

/// Admits, and answers the question that comes of it.
async fn admit_answered(
    engine: &Rc<Engine>,
    outbox: &mut Outbox,
    allowed: bool,
    holds: Holds,
) -> Result<Admitted, Refused> {
    let admitting = Rc::clone(engine);
    let admitted = spawn_local(async move { admitting.admit(wanted("a.example", 443)).await });
    let event = outbox.next().await;
    let EgressEvent::Asked { ask, .. } = event else { panic!("{event:?}") };
    engine.answered(ask, Answer { allowed, source: "terminal".to_owned() }, holds);
    admitted.await.unwrap()
}

/// Proves: NET-8 asked
#[test]
fn an_unknown_host_waits_for_an_answer() {
    run(async {
        let (engine, mut outbox) = asking();
        let admitted = admit_answered(&engine, &mut outbox, true, Holds::Once).await.unwrap();
        assert_eq!(admitted.rule, "answered by terminal");
        outbox.rest();
        let refused = admit_answered(&engine, &mut outbox, false, Holds::Once).await.unwrap_err();
        assert_eq!(refused.cause, Cause::Denied);
        assert_eq!(refused.flag.as_deref(), Some("--allow-host a.example"));
    });
}

#[test]
fn an_answer_for_the_session_is_a_rule_from_then_on() {
    run(async {
        for allowed in [true, false] {
            let (engine, mut outbox) = asking();
            let first = admit_answered(&engine, &mut outbox, allowed, Holds::Session).await;
            assert_eq!(first.is_ok(), allowed);
            assert!(!engine.would_ask(&host("a.example"), 443));
            assert_eq!(engine.admit(wanted("a.example", 443)).await.is_ok(), allowed);
            assert!(engine.would_ask(&host("a.example"), 8443), "for that port only");
        }
    });
}

/// Proves: NET-8 other-ports
#[test]
fn another_port_of_an_allowed_host_is_asked_about_and_told_as_a_port() {
    run(async {
        let mut config = known(&["a.example:80"]);
        config.on_unknown = OnUnknown::Ask;
        let (engine, mut outbox) = engine(config);
        let refused = admit_answered(&engine, &mut outbox, false, Holds::Once).await.unwrap_err();
        assert_eq!(refused.action, NetworkAction::ProxyDeniedPort);
        assert_eq!(refused.reason, "the port is not allowed, and somebody said no");
        assert_eq!(refused.flag.as_deref(), Some("--allow-host a.example"));
        outbox.rest();
        let admitted = admit_answered(&engine, &mut outbox, true, Holds::Session).await.unwrap();
        assert_eq!(admitted.rule, "answered by terminal");
        assert!(engine.judge(&host("a.example"), 80).is_allowed(), "as before");
    });
}

#[test]
fn what_was_admitted_is_dialled_and_nothing_else() {
    run(async {
        let (listener, address) = listen().await;
        let allowed = format!("a.example:{}", address.port());
        let (engine, _outbox) = engine(known(&[&allowed]));
        let admitted = engine.admit(wanted("a.example", address.port())).await.unwrap();
        let dialled = engine.dial(&admitted).await.unwrap();
        assert_eq!(dialled.peer_addr().unwrap(), address);
        drop(listener);
        let refused = engine.dial(&admitted).await.unwrap_err();
        assert_eq!(refused.cause, Cause::Unreachable);
    });
}

#[test]
fn without_rules_everything_is_allowed_but_addresses_are_checked() {
    run(async {
        let mut config = known(&[]);
        config.checks = Checks { rules: false, ..Checks::default() };
        let refused = refused(config, "a.example", 443).await;
        assert_eq!(refused.cause, Cause::Address);
        let mut config = known(&[]);
        config.checks.rules = false;
        engine(config).0.admit(wanted("a.example", 443)).await.unwrap();
    });
}

/// Two names may be asked for at once, and then one a second.
const MANY: usize = 50;

fn knows_many() -> Config {
    let mut config = config(&["*.example"]);
    config.limits.queries_a_second = 1;
    (0..MANY).fold(config, |config, n| config.knows(&format!("n{n}.example"), Ipv4Addr::LOCALHOST))
}

/// Proves: NET-6 rate
#[test]
fn names_that_come_with_connections_are_held_against_the_rate() {
    run(async {
        let mut through_proxy = knows_many();
        through_proxy.upstream = crate::config::Upstream::parse("http://127.0.0.1:9");
        for (via, config) in [
            (Via::Connect, knows_many()),
            (Via::Http, knows_many()),
            (Via::Socks, knows_many()),
            (Via::Connect, through_proxy),
        ] {
            let (engine, _outbox) = engine(config);
            let mut refused = 0;
            for n in 0..MANY {
                let name = format!("n{n}.example");
                match engine.admit(Wanted { via, ..wanted(&name, 443) }).await {
                    Ok(_) => {}
                    Err(error) => {
                        assert_eq!(error.cause, Cause::Limit, "{error:?}");
                        refused += 1;
                    }
                }
            }
            assert!(refused > MANY / 2, "{via:?}: {refused}");
            let again = engine.admit(Wanted { via, ..wanted("n0.example", 443) }).await;
            assert!(again.is_ok(), "what is known says nothing new: {again:?}");
        }
    });
}

/// Proves: NET-6 tunnelling
#[test]
fn a_name_that_looks_like_data_is_told_whichever_way_it_comes() {
    run(async {
        let name = "0a1b2c3d4e5f60718293a4b5c6d7e8f9.example";
        let (engine, mut outbox) = engine(config(&["*.example"]).knows(name, Ipv4Addr::LOCALHOST));
        let _admitted = engine.admit(Wanted { via: Via::Connect, ..wanted(name, 443) }).await;
        let event = outbox.rest();
        let is_suspicious = |event: &EgressEvent| matches!(event, EgressEvent::Queried(query) if query.suspicion.is_some() && query.name == name);
        assert!(event.iter().any(is_suspicious), "{event:?}");
    });
}
