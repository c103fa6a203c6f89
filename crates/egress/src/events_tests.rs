use super::account::{MAX_PLACES, MAX_SUMS, SINGLY_AT_ONCE, SUM_AFTER_AT_MOST};
use super::*;
use crate::test_support::run;
use palisade_record::network::{
    ConnectionClosed, NameQueried, NetworkAction, NetworkAttempt, OTHERS, Via,
};

fn attempt(host: &str) -> EgressEvent {
    EgressEvent::Attempt(NetworkAttempt {
        action: NetworkAction::ProxyDenied,
        via: Via::Transparent,
        host: host.to_owned(),
        address: None,
        port: 443,
        rule: None,
        reason: None,
        allow: None,
        count: 1,
    })
}

fn port(host: &str, port: u16) -> EgressEvent {
    let EgressEvent::Attempt(one) = attempt(host) else { panic!("not an attempt") };
    let allow = Some(format!("--allow-host {host}:{port}"));
    let reason = Some("no rule allows it".to_owned());
    EgressEvent::Attempt(NetworkAttempt { port, allow, reason, ..one })
}

fn allowed(host: &str) -> EgressEvent {
    let EgressEvent::Attempt(one) = attempt(host) else { panic!("not an attempt") };
    EgressEvent::Attempt(NetworkAttempt { action: NetworkAction::ProxyAllowed, ..one })
}

fn queried(name: &str) -> EgressEvent {
    EgressEvent::Queried(NameQueried {
        name: name.to_owned(),
        record: "A".to_owned(),
        answer: "NXDOMAIN".to_owned(),
        rule: None,
        reason: Some("no rule allows it".to_owned()),
        suspicion: Some(format!("many names below {name}")),
        count: 1,
    })
}

fn closed(sent: u64) -> EgressEvent {
    closed_at("a.example", sent)
}

fn closed_at(host: &str, sent: u64) -> EgressEvent {
    EgressEvent::Closed(ConnectionClosed {
        via: Via::Transparent,
        host: host.to_owned(),
        address: None,
        port: 443,
        sent,
        received: 1,
        duration_ms: 1,
        count: 1,
    })
}

fn count(event: &EgressEvent) -> u64 {
    match event {
        EgressEvent::Attempt(attempt) => attempt.count,
        EgressEvent::Closed(closed) => closed.count,
        EgressEvent::Queried(queried) => queried.count,
        _ => 1,
    }
}

/// So many connections to this host are told by its name, and so many bytes that went there.
fn told_of(event: &[EgressEvent], name: &str) -> (u64, u64) {
    event.iter().fold((0, 0), |(count, sent), event| match event {
        EgressEvent::Attempt(one) if one.action.is_allowed() && one.host == name => {
            (count + one.count, sent)
        }
        EgressEvent::Closed(one) if one.host == name => (count, sent + one.sent),
        _ => (count, sent),
    })
}

#[test]
fn events_come_out_in_order() {
    run(async {
        let (events, mut outbox) = Events::new();
        events.tell(EgressEvent::Ready);
        events.tell(attempt("a.example"));
        assert_eq!(outbox.next().await, EgressEvent::Ready);
        assert_eq!(outbox.next().await, attempt("a.example"));
    });
}

/// Proves: NET-7 logged
#[test]
fn a_flood_is_told_in_sums_and_none_is_lost() {
    run(async {
        let (events, mut outbox) = Events::new();
        for _ in 0..100_000 {
            events.tell(attempt("a.example"));
        }
        let event = outbox.rest();
        assert!(event.len() <= 1024, "{}", event.len());
        assert_eq!(event.iter().map(count).sum::<u64>(), 100_000);
    });
}

#[test]
fn a_flood_of_different_names_takes_little_room() {
    run(async {
        let (events, mut outbox) = Events::new();
        for number in 0..100_000 {
            events.tell(attempt(&format!("{number}.example")));
        }
        let event = outbox.rest();
        assert!(event.len() <= 1024 + MAX_SUMS, "{}", event.len());
        assert_eq!(event.iter().map(count).sum::<u64>(), 100_000);
        assert!(
            event
                .iter()
                .any(|event| matches!(event, EgressEvent::Attempt(sum) if sum.host == OTHERS))
        );
    });
}

/// Proves: NET-7 logged
#[test]
fn what_was_refused_does_not_hide_what_was_reached() {
    run(async {
        let (events, mut outbox) = Events::new();
        for number in 0..5000 {
            events.tell(port("203.0.113.200", number));
            events.tell(attempt(&format!("{number}.example")));
            events.tell(queried(&format!("{number}.example")));
        }
        events.tell(allowed("evil.example"));
        events.tell(closed_at("evil.example", 7));
        let event = outbox.rest();
        assert!(event.contains(&allowed("evil.example")), "told at once, and alone");
        assert_eq!(told_of(&event, "evil.example"), (1, 7));
    });
}

/// Nor does what else was reached, as far as its hosts are told by name.
///
/// Proves: NET-7 logged
#[test]
fn what_was_reached_does_not_hide_behind_its_like() {
    run(async {
        let (events, mut outbox) = Events::new();
        let flood = |events: &Events| {
            for number in 0..20_000 {
                let name = format!("{}.example", number % (MAX_PLACES - 1));
                events.tell(allowed(&name));
                events.tell(closed_at(&name, 1));
            }
        };
        flood(&events);
        events.tell(allowed("evil.example"));
        events.tell(closed_at("evil.example", 7));
        flood(&events);
        events.tell(allowed("evil.example"));
        events.tell(closed_at("evil.example", 8));
        let event = outbox.rest();
        assert_eq!(told_of(&event, "evil.example"), (2, 15));
        assert_eq!(told_of(&event, OTHERS), (0, 0));
    });
}

/// Proves: NET-7 logged
#[test]
fn more_hosts_than_are_told_by_name_are_counted_with_their_bytes() {
    run(async {
        let (events, mut outbox) = Events::new();
        for number in 0..5000 {
            events.tell(allowed(&format!("{number}.example")));
            events.tell(closed_at(&format!("{number}.example"), 3));
        }
        let event = outbox.rest();
        let named = (0..MAX_PLACES).map(|number| told_of(&event, &format!("{number}.example")));
        assert!(named.into_iter().all(|(count, sent)| (count, sent) == (1, 3)));
        let (connections, sent) = told_of(&event, OTHERS);
        assert!(connections > 3000 && sent > 3 * 3000, "{connections} {sent}");
        let all: u64 = event.iter().map(count).sum();
        assert_eq!(all, 10_000);
    });
}

/// Proves: NET-7 logged
#[test]
fn many_ports_of_a_host_are_one_sum() {
    run(async {
        let (events, mut outbox) = Events::new();
        // All that will be told singly in the next minutes.
        let spent = Instant::now() + Duration::from_secs(600);
        while events.shared.rest.borrow_mut().take(spent) {}
        for number in 1..=1000 {
            events.tell(port("203.0.113.200", number));
        }
        events.tell(port("203.0.113.201", 25));
        events.tell(port("203.0.113.201", 25));
        let event = outbox.rest();
        let event: Vec<_> = event
            .iter()
            .map(|event| match event {
                EgressEvent::Attempt(sum) => {
                    (sum.host.as_str(), sum.port, sum.count, sum.reason.as_deref(), &sum.allow)
                }
                _ => panic!("not an attempt"),
            })
            .collect();
        let reason = Some("no rule allows it");
        let flag = Some("--allow-host 203.0.113.201:25".to_owned());
        assert_eq!(
            event,
            [("203.0.113.200", 0, 1000, reason, &None), ("203.0.113.201", 25, 2, reason, &flag)]
        );
    });
}

#[test]
fn sums_of_what_was_carried_are_right() {
    run(async {
        let (events, mut outbox) = Events::new();
        for _ in 0..1000 {
            events.tell(closed(7));
        }
        let sent = |event: &EgressEvent| match event {
            EgressEvent::Closed(closed) => closed.sent,
            _ => 0,
        };
        let event = outbox.rest();
        assert_eq!(event.iter().map(sent).sum::<u64>(), 7000);
        assert_eq!(event.iter().map(count).sum::<u64>(), 1000);
    });
}

#[test]
fn sums_come_out_without_a_new_event() {
    run(async {
        let (events, mut outbox) = Events::new();
        for _ in 0..1000 {
            events.tell(attempt("a.example"));
        }
        let mut counted = 0;
        while counted < 1000 {
            counted += count(&outbox.next().await);
        }
        assert_eq!(counted, 1000);
    });
}

#[test]
fn questions_are_never_summed() {
    run(async {
        let (events, mut outbox) = Events::new();
        for ask in 0..2000 {
            events.tell(EgressEvent::Withdrawn { ask });
        }
        assert_eq!(outbox.rest().len(), 2000);
    });
}

#[test]
fn a_full_queue_holds_up_what_comes_next() {
    run(async {
        let (events, mut outbox) = Events::new();
        for ask in 0..MAX_QUEUE_LEN as u64 {
            events.tell(EgressEvent::Withdrawn { ask });
        }
        let mut room = std::pin::pin!(events.room());
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut room).await.is_err());
        outbox.next().await;
        room.await;
    });
}

#[test]
fn what_is_handed_on_is_not_lost_when_nobody_takes_it() {
    run(async {
        let (events, mut outbox) = Events::new();
        events.tell(attempt("a.example"));
        outbox.gather().await;
        let stuck = outbox.hand_on(async |_| {
            std::future::pending::<()>().await;
            Ok::<_, ()>(())
        });
        assert!(tokio::time::timeout(Duration::from_millis(20), stuck).await.is_err());
        let mut heard = Vec::new();
        let passed = outbox.hand_on(async |event| {
            heard.push(event.clone());
            Ok::<_, ()>(())
        });
        passed.await.unwrap();
        assert_eq!(heard, [attempt("a.example")]);
        assert!(outbox.rest().is_empty());
    });
}

#[test]
fn a_question_does_not_wait_for_others() {
    run(async {
        let (events, mut outbox) = Events::new();
        events.tell(EgressEvent::Ready);
        let mut gathered = std::pin::pin!(outbox.gather());
        let ready = std::future::poll_fn(|context| gathered.as_mut().poll(context).map(|()| true));
        assert!(tokio::time::timeout(Duration::ZERO, ready).await.is_ok());
    });
}

/// What an hour of it writes, in bytes. None of it is lost.
fn an_hour_of(one: impl Fn(u64, &str) -> EgressEvent) -> usize {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let (events, mut outbox) = Events::new();
        let (mut event, mut bytes, mut counted) = (0, 0, 0);
        let began = Instant::now();
        let mut write = |one: EgressEvent| {
            bytes += one.encode().len();
            counted += count(&one);
        };
        while began.elapsed() < Duration::from_secs(3600) {
            for _ in 0..5 {
                events.tell(one(event, &format!("{event:0>245}.example")));
                event += 1;
            }
            // As much time as a supervisor takes to hear of it.
            while let Ok(one) =
                tokio::time::timeout(Duration::from_millis(100), outbox.next()).await
            {
                write(one);
            }
        }
        outbox.rest().into_iter().for_each(write);
        assert_eq!(counted, event, "none is lost");
        bytes
    })
}

/// Whatever is chosen inside: names of the longest kind, each another one, by turns reached, denied and looked up.
///
/// Proves: NET-7 bounded-log
#[test]
fn an_hour_of_a_flood_makes_a_few_megabytes() {
    let bytes = an_hour_of(|number, name| match number % 4 {
        0 => attempt(name),
        1 => allowed(name),
        2 => closed_at(name, 1),
        _ => queried(name),
    });
    assert!(bytes < 5 << 20, "{bytes}");
}

/// Hosts that are all told by name are so only now and then.
///
/// Proves: NET-7 bounded-log
#[test]
fn an_hour_of_what_is_told_by_name_makes_no_more() {
    let bytes = an_hour_of(|number, _| {
        let name = format!("{:0>200}.example", number / 2 % MAX_PLACES as u64);
        if number % 2 == 0 { allowed(&name) } else { closed_at(&name, 1) }
    });
    assert!(bytes < 4 << 20, "{bytes}");
}

#[test]
fn sums_come_more_seldom_while_it_goes_on_and_soon_again_after_it() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let (events, mut outbox) = Events::new();
        for _ in 0..SINGLY_AT_ONCE {
            events.tell(attempt("a.example"));
            outbox.next().await;
        }
        let mut after = async || {
            let began = Instant::now();
            while events.shared.rest.borrow_mut().take(Instant::now()) {}
            events.tell(attempt("a.example"));
            outbox.next().await;
            began.elapsed().as_secs()
        };
        let mut times = Vec::new();
        for _ in 0..8 {
            times.push(after().await);
        }
        assert_eq!(times, [1, 2, 4, 8, 16, 32, 60, 60]);
        sleep(SUM_AFTER_AT_MOST).await;
        assert_eq!(after().await, 1);
    });
}

#[test]
fn long_names_are_cut_and_their_options_left_out() {
    run(async {
        let (events, mut outbox) = Events::new();
        let long = format!("{}.example", "é".repeat(245));
        let EgressEvent::Attempt(mut given) = attempt(&long) else { panic!("not an attempt") };
        given.reason = Some(long.repeat(2));
        given.allow = Some(format!("--allow-host {long}"));
        events.tell(EgressEvent::Attempt(given));
        let EgressEvent::Attempt(event) = outbox.next().await else { panic!("not told") };
        assert_eq!(event.host.chars().count(), MAX_NAME_LEN + 1);
        assert!(event.host.starts_with('…') && event.host.ends_with("é.example"));
        assert_eq!(event.reason.unwrap().chars().count(), MAX_TEXT_LEN + 1);
        assert_eq!(event.allow, None);
    });
}
