use super::*;
use crate::events::Outbox;
use crate::test_support::{host, run};
use std::rc::Rc;
use std::time::Duration;
use tokio::task::{JoinHandle, spawn_local, yield_now};

fn asks() -> (Rc<Asks>, Outbox) {
    let (events, outbox) = Events::new();
    (Rc::new(Asks::new(events)), outbox)
}

async fn asking(asks: &Rc<Asks>, name: &str, port: u16) -> JoinHandle<Result<Answer, TooMany>> {
    let (asks, host) = (Rc::clone(asks), host(name));
    let handle = spawn_local(async move { asks.ask(&host, port).await });
    yield_now().await;
    handle
}

fn yes() -> Answer {
    Answer { allowed: true, source: "terminal".to_owned() }
}

fn asked(ask: u64, name: &str) -> EgressEvent {
    EgressEvent::Asked { ask, host: name.to_owned(), port: 443, client: None }
}

/// Proves: NET-8 asked
#[test]
fn the_first_who_waits_is_told() {
    run(async {
        let (asks, mut outbox) = asks();
        let client = |port| SocketAddr::from(([198, 18, 0, 1], port));
        for port in [4001, 4002] {
            let asks = Rc::clone(&asks);
            let ask = async move { asks.ask(&host("a.example"), 443).await };
            spawn_local(on_behalf_of(client(port), ask));
            yield_now().await;
        }
        let EgressEvent::Asked { client: event, .. } = &outbox.rest()[0] else {
            panic!("no question")
        };
        assert_eq!(*event, Some(client(4001)));
    });
}

#[test]
fn who_waits_for_the_same_place_shares_one_question() {
    run(async {
        let (asks, mut outbox) = asks();
        let one = asking(&asks, "a.example", 443).await;
        let two = asking(&asks, "A.example.", 443).await;
        let other = asking(&asks, "b.example", 443).await;
        assert_eq!(outbox.rest(), [asked(1, "a.example"), asked(2, "b.example")]);
        assert_eq!(asks.answer(1, yes(), Holds::Once), None);
        assert_eq!((one.await.unwrap(), two.await.unwrap()), (Ok(yes()), Ok(yes())));
        assert!(!other.is_finished());
    });
}

#[test]
fn a_question_is_withdrawn_when_the_last_one_leaves() {
    run(async {
        let (asks, mut outbox) = asks();
        let one = asking(&asks, "a.example", 443).await;
        let two = asking(&asks, "a.example", 443).await;
        one.abort();
        yield_now().await;
        assert_eq!(outbox.rest(), [asked(1, "a.example")]);
        two.abort();
        yield_now().await;
        assert_eq!(outbox.rest(), [EgressEvent::Withdrawn { ask: 1 }]);
    });
}

#[test]
fn an_answer_for_the_session_holds_even_if_it_comes_late() {
    run(async {
        let (asks, _outbox) = asks();
        let one = asking(&asks, "a.example", 443).await;
        one.abort();
        yield_now().await;
        let standing = asks.answer(1, yes(), Holds::Session).unwrap();
        assert_eq!(
            (standing.host, standing.port, standing.allowed),
            (host("a.example"), 443, true)
        );
        assert_eq!(asks.answer(1, yes(), Holds::Session), None, "an answer counts once");
    });
}

#[test]
fn an_answer_to_nothing_does_nothing() {
    run(async {
        let (asks, _outbox) = asks();
        assert_eq!(asks.answer(7, yes(), Holds::Session), None);
    });
}

#[test]
fn an_answer_is_not_withdrawn_afterwards() {
    run(async {
        let (asks, mut outbox) = asks();
        let one = asking(&asks, "a.example", 443).await;
        asks.answer(1, yes(), Holds::Once);
        one.await.unwrap().unwrap();
        assert_eq!(outbox.rest(), [asked(1, "a.example")]);
        let again = asking(&asks, "a.example", 443).await;
        assert_eq!(outbox.rest(), [asked(2, "a.example")]);
        drop(again);
    });
}

/// Proves: NET-8 asked
#[test]
fn only_so_many_questions_are_open_and_the_others_wait_in_line() {
    run(async {
        let (asks, mut outbox) = asks();
        let mut open = Vec::new();
        for number in 0..MAX_OPEN {
            open.push(asking(&asks, &format!("{number}.example"), 443).await);
        }
        assert_eq!(outbox.rest().len(), MAX_OPEN);
        let one = asking(&asks, "one-more.example", 443).await;
        let same = asking(&asks, "one-more.example", 443).await;
        let left = asking(&asks, "who-leaves.example", 443).await;
        let last = asking(&asks, "last.example", 443).await;
        assert_eq!(outbox.rest(), [], "there is no room");
        left.abort();
        yield_now().await;
        // The rate limit allows a burst of as many as were opened.
        tokio::time::sleep(Duration::from_millis(200)).await;
        asks.answer(1, yes(), Holds::Once);
        yield_now().await;
        let next = MAX_OPEN as u64 + 1;
        assert_eq!(outbox.rest(), [asked(next, "one-more.example")]);
        asks.answer(next, yes(), Holds::Once);
        assert_eq!(one.await.unwrap(), Ok(yes()));
        assert_eq!(same.await.unwrap(), Ok(yes()));
        assert_eq!(outbox.rest(), [asked(next + 1, "last.example")]);
        assert!(!last.is_finished() && !open[MAX_OPEN - 1].is_finished());
        assert_eq!(asks.state.borrow().in_line, 0);
    });
}

#[test]
fn the_line_is_bounded() {
    run(async {
        let (asks, _outbox) = asks();
        for number in 0..MAX_OPEN {
            asking(&asks, &format!("{number}.example"), 443).await;
        }
        let places: Vec<_> = (0..MAX_IN_LINE).map(|_| Place::take(&asks).unwrap()).collect();
        assert_eq!(asking(&asks, "one-more.example", 443).await.await.unwrap(), Err(TooMany::Open));
        drop(places);
        assert!(!asking(&asks, "one-more.example", 443).await.is_finished());
    });
}

/// Proves: NET-8 asked
#[test]
fn a_flood_of_questions_that_nobody_waits_for_is_held_back() {
    run(async {
        let (asks, mut outbox) = asks();
        let start = Instant::now();
        let mut refused = 0;
        for number in 0..1000 {
            let one = asking(&asks, &format!("{number}.example"), 443).await;
            if one.is_finished() {
                assert_eq!(one.await.unwrap(), Err(TooMany::New));
                refused += 1;
            } else {
                one.abort();
                yield_now().await;
            }
        }
        let passed = start.elapsed().as_secs() + 1;
        let most = u64::from(NEW_A_SECOND) * (2 + passed);
        let event = outbox.rest().len() as u64;
        assert!(event <= 2 * most, "{event} in {passed} s");
        assert!(refused >= 1000 - most, "{refused} in {passed} s");
    });
}

/// Each is a line on a terminal and a record.
///
/// Proves: NET-7 bounded-log
#[test]
fn an_hour_of_new_questions_is_a_few_thousand() {
    let start = Instant::now();
    let mut pace = Pace::new(start);
    let mut asked = |seconds: u64| {
        let now = start + Duration::from_secs(seconds);
        (0..100).filter(|_| pace.take(now)).count()
    };
    let at_first: usize = (0..10).map(&mut asked).sum();
    assert!(at_first > 150, "{at_first}");
    let later: usize = (10..3600).map(&mut asked).sum();
    assert!(later < 3700, "{later}");
    assert_eq!(asked(3700), 32, "a quiet time makes up for it");
}
