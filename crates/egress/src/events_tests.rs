use super::*;
use crate::test_support::run;

fn attempt(host: &str) -> Told {
    Told::Attempt(NetworkAttempt {
        action: Action::ProxyDenied,
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

fn closed(sent: u64) -> Told {
    Told::Closed(ConnectionClosed {
        via: Via::Transparent,
        host: "a.example".to_owned(),
        address: None,
        port: 443,
        sent,
        received: 1,
        duration_ms: 1,
        count: 1,
    })
}

fn count(told: &Told) -> u64 {
    match told {
        Told::Attempt(attempt) => attempt.count,
        Told::Closed(closed) => closed.count,
        Told::Queried(queried) => queried.count,
        _ => 1,
    }
}

#[test]
fn events_come_out_in_order() {
    run(async {
        let (events, mut outbox) = Events::new();
        events.tell(Told::Ready);
        events.tell(attempt("a.example"));
        assert_eq!(outbox.next().await, Told::Ready);
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
        let told = outbox.rest();
        assert!(told.len() <= 1024, "{}", told.len());
        assert_eq!(told.iter().map(count).sum::<u64>(), 100_000);
    });
}

#[test]
fn a_flood_of_different_names_takes_little_room() {
    run(async {
        let (events, mut outbox) = Events::new();
        for number in 0..100_000 {
            events.tell(attempt(&format!("{number}.example")));
        }
        let told = outbox.rest();
        assert!(told.len() <= 1024, "{}", told.len());
        assert_eq!(told.iter().map(count).sum::<u64>(), 100_000);
        assert!(told.iter().any(|told| matches!(told, Told::Attempt(sum) if sum.host == OTHERS)));
    });
}

#[test]
fn sums_of_what_was_carried_are_right() {
    run(async {
        let (events, mut outbox) = Events::new();
        for _ in 0..1000 {
            events.tell(closed(7));
        }
        let sent = |told: &Told| match told {
            Told::Closed(closed) => closed.sent,
            _ => 0,
        };
        let told = outbox.rest();
        assert_eq!(told.iter().map(sent).sum::<u64>(), 7000);
        assert_eq!(told.iter().map(count).sum::<u64>(), 1000);
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
            events.tell(Told::Withdrawn { ask });
        }
        assert_eq!(outbox.rest().len(), 2000);
    });
}

#[test]
fn a_full_queue_holds_up_what_comes_next() {
    run(async {
        let (events, mut outbox) = Events::new();
        for ask in 0..LONGEST_QUEUE as u64 {
            events.tell(Told::Withdrawn { ask });
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
        let passed = outbox.hand_on(async |told| {
            heard.push(told.clone());
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
        events.tell(Told::Ready);
        let mut gathered = std::pin::pin!(outbox.gather());
        let ready = std::future::poll_fn(|context| gathered.as_mut().poll(context).map(|()| true));
        assert!(tokio::time::timeout(Duration::ZERO, ready).await.is_ok());
    });
}
