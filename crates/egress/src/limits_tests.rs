use super::*;
use crate::test_support::{config, run};
use std::future::pending;
use tokio::task::{JoinHandle, spawn_local, yield_now};

fn load(most: usize) -> Rc<Load> {
    let mut config = config(&[]);
    config.limits.connections = most;
    Load::new(&config)
}

fn to(name: &str) -> Destination {
    (name.to_owned(), 443)
}

/// A connection that never gets beyond waiting.
async fn waiting(load: &Rc<Load>, name: &str) -> JoinHandle<Option<()>> {
    let slot = load.slot(to(name)).unwrap();
    let handle = spawn_local(slot.hold(pending()));
    yield_now().await;
    handle
}

/// A connection that is served for ever.
async fn served(load: &Rc<Load>) -> JoinHandle<Option<()>> {
    serve(load, load.slot(to("a.example")).unwrap()).await
}

async fn serve(load: &Rc<Load>, slot: Rc<ConnectionSlot>) -> JoinHandle<Option<()>> {
    let load = Rc::clone(load);
    let serving = async move {
        let _permit = load.enter().unwrap();
        pending::<()>().await;
    };
    let handle = spawn_local(slot.hold(serving));
    yield_now().await;
    handle
}

/// Proves: NET-7 limit
#[test]
fn no_more_are_served_than_the_limit() {
    run(async {
        let load = load(2);
        let one = served(&load).await;
        let _two = served(&load).await;
        assert!(load.slot(to("a.example")).is_none());
        one.abort();
        yield_now().await;
        assert!(load.slot(to("a.example")).is_some());
    });
}

/// Proves: NET-7 limit
#[test]
fn a_slow_one_makes_way_for_a_new_one_and_a_served_one_does_not() {
    run(async {
        let load = load(3);
        let kept = served(&load).await;
        let mut slow = Vec::new();
        for _ in 0..1000 {
            slow.push(waiting(&load, "slow.example").await);
        }
        yield_now().await;
        assert!(!kept.is_finished());
        assert_eq!(slow.iter().filter(|one| !one.is_finished()).count(), 2);
        let new = served(&load).await;
        yield_now().await;
        assert!(!new.is_finished() && !kept.is_finished());
    });
}

#[test]
fn the_longest_queue_gives_way_first() {
    run(async {
        let load = load(4);
        let asked_about = waiting(&load, "asked.example").await;
        for _ in 0..100 {
            waiting(&load, "slow.example").await;
        }
        yield_now().await;
        assert!(!asked_about.is_finished());
    });
}

#[test]
fn one_that_was_served_waits_again() {
    run(async {
        let load = load(1);
        let slot = load.slot(to("a.example")).unwrap();
        let inside = Rc::clone(&load);
        let one = spawn_local(slot.hold(async move {
            drop(inside.enter().unwrap());
            pending::<()>().await;
        }));
        yield_now().await;
        let _two = load.slot(to("b.example")).unwrap();
        assert_eq!(one.await.unwrap(), None);
    });
}

#[test]
fn a_permit_that_waits_can_be_pushed_out() {
    run(async {
        let load = load(1);
        let slot = load.slot(to("a.example")).unwrap();
        let inside = Rc::clone(&load);
        let one = spawn_local(slot.hold(async move {
            let permit = inside.enter().unwrap();
            permit.wait();
            pending::<()>().await;
        }));
        yield_now().await;
        assert!(load.slot(to("b.example")).is_some());
        assert_eq!(one.await.unwrap(), None);
        assert_eq!(load.served.get(), 0);
        assert!(load.waiting.borrow().is_empty());
    });
}

#[test]
fn two_ways_out_of_one_connection_count_once() {
    run(async {
        let load = load(1);
        let slot = load.slot(to("a.example")).unwrap();
        let inside = Rc::clone(&load);
        let counted = slot.hold(async move {
            let (_one, _two) = (inside.enter().unwrap(), inside.enter().unwrap());
            inside.served.get()
        });
        assert_eq!(counted.await, Some(1));
        assert_eq!(load.served.get(), 0);
    });
}

#[test]
fn without_the_check_nothing_is_refused() {
    let mut config = config(&[]);
    config.limits.connections = 1;
    config.limits.bytes = Some(1);
    config.checks.bounded = false;
    let load = Load::new(&config);
    let permits: Vec<_> = (0..10).map(|_| load.enter().unwrap()).collect();
    assert_eq!(permits.len(), 10);
    assert!(load.carry(100));
}

#[test]
fn the_one_that_came_first_makes_way_first_whatever_it_did_meanwhile() {
    run(async {
        let load = load(2);
        let slot = load.slot(to("a.example")).unwrap();
        let inside = Rc::clone(&load);
        let (go_on, wait) = tokio::sync::oneshot::channel::<()>();
        let first = spawn_local(slot.hold(async move {
            let permit = inside.enter().unwrap();
            wait.await.unwrap();
            permit.wait();
            pending::<()>().await;
        }));
        yield_now().await;
        let second = waiting(&load, "a.example").await;
        go_on.send(()).unwrap();
        yield_now().await;
        let _third = load.slot(to("b.example")).unwrap();
        assert_eq!(first.await.unwrap(), None);
        assert!(!second.is_finished());
    });
}

/// A connection of a client, served for ever.
async fn served_for(load: &Rc<Load>, client: &str) -> Option<JoinHandle<Option<()>>> {
    let address = client.parse().unwrap();
    let slot = load.slot_of((client.to_owned(), 0), Some(Client::of(address)))?;
    Some(serve(load, slot).await)
}

/// Proves: NET-10 shares
#[test]
fn no_client_takes_the_places_of_all_others() {
    run(async {
        let load = load(16);
        let mut held = Vec::new();
        for (client, share) in
            [("192.0.2.1", 8), ("192.0.2.2", 4), ("192.0.2.3", 2), ("2001:db8::1", 1)]
        {
            let mut own = 0;
            while let Some(one) = served_for(&load, client).await {
                held.push(one);
                own += 1;
            }
            assert_eq!(own, share, "{client}");
        }
        assert!(served_for(&load, "2001:db8::2").await.is_none(), "the same network");
        let client = Client::of("192.0.2.1".parse().unwrap());
        assert!(load.full_for(Some(client)).contains("this client"));
        held.remove(0).abort();
        yield_now().await;
        assert!(served_for(&load, "192.0.2.9").await.is_some(), "who left makes room");
        let few = self::load(2);
        let one = [served_for(&few, "192.0.2.1").await, served_for(&few, "192.0.2.1").await];
        assert!(one.iter().all(Option::is_some), "too few to be divided");
    });
}

/// Proves: NET-10 shares
#[test]
fn a_client_with_its_share_pushes_out_its_own_that_wait() {
    run(async {
        let load = load(8);
        let client = Client::of("192.0.2.1".parse().unwrap());
        let mut waiting = Vec::new();
        for _ in 0..20 {
            let slot = load.slot_of(("192.0.2.1".to_owned(), 0), Some(client)).unwrap();
            waiting.push(spawn_local(slot.hold(pending::<()>())));
            yield_now().await;
        }
        yield_now().await;
        assert_eq!(waiting.iter().filter(|one| !one.is_finished()).count(), 4);
        assert!(served_for(&load, "192.0.2.2").await.is_some());
    });
}
