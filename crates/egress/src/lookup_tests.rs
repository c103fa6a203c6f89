use super::*;
use crate::engine::dns::test_support::{Zone, run};
use hickory_resolver::proto::op::ResponseCode;
use std::future::poll_fn;
use std::task::Poll;

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

impl Lookup {
    /// As if the answer about a name had been given long ago.
    pub(crate) fn age(&self, name: &Name) {
        let entries = &mut self.remembered.borrow_mut().entries;
        let found = Rc::try_unwrap(entries.remove(name).unwrap()).unwrap().into_inner().unwrap();
        let found = Found { until: Instant::now(), ..found };
        entries.insert(name.clone(), Rc::new(OnceCell::new_with(Some(found))));
    }
}

#[test]
fn both_families_are_found() {
    run(async {
        let zone = Zone::start().await;
        zone.set("a.example", &["203.0.113.10", "2001:db8::10", "203.0.113.11"]);
        let lookup = Lookup::new(&zone.config());
        let pinned = lookup.addresses(&name("a.example")).await.unwrap();
        assert_eq!(
            pinned.resolved.addresses,
            addresses(&["203.0.113.10", "203.0.113.11", "2001:db8::10"])
        );
        assert_eq!(zone.asked().len(), 2, "no search domains: {:?}", zone.asked());
    });
}

/// The server changes its mind at once (rebinding, N05): the first answer holds, and after its time the new one
/// is there to be checked anew.
/// Proves: NET-4 pinned
#[test]
fn the_first_answer_holds() {
    run(async {
        let zone = Zone::start().await;
        zone.set_for("a.example", &["203.0.113.10"], 0);
        let lookup = Lookup::new(&zone.config());
        let first = lookup.addresses(&name("a.example")).await.unwrap();
        assert!(first.until > Instant::now() + HOLDS_AT_LEAST / 2);

        zone.set_for("a.example", &["127.0.0.1"], 0);
        assert_eq!(lookup.addresses(&name("a.example")).await.unwrap(), first);
        assert_eq!(zone.asked().len(), 2);

        lookup.age(&name("a.example"));
        let second = lookup.addresses(&name("a.example")).await.unwrap();
        assert_eq!(second.resolved.addresses, addresses(&["127.0.0.1"]));
    });
}

#[test]
fn an_answer_holds_an_hour_at_most() {
    run(async {
        let zone = Zone::start().await;
        zone.set_for("long.example", &["203.0.113.10"], 1_000_000);
        zone.set_for("middle.example", &["203.0.113.10"], 600);
        let lookup = Lookup::new(&zone.config());
        let long = lookup.addresses(&name("long.example")).await.unwrap().until;
        let middle = lookup.addresses(&name("middle.example")).await.unwrap().until;
        let now = Instant::now();
        assert!(long <= now + HOLDS_AT_MOST && long > now + HOLDS_AT_MOST / 2);
        assert!(
            middle <= now + Duration::from_secs(600) && middle > now + Duration::from_secs(500)
        );
    });
}

#[test]
fn absence_holds_for_a_moment() {
    run(async {
        let zone = Zone::start().await;
        zone.set("empty.example", &[]);
        zone.fail("broken.example", ResponseCode::Refused);
        let lookup = Lookup::new(&zone.config());
        assert_eq!(lookup.addresses(&name("no.example")).await, Err(LookupError::NotFound));
        assert_eq!(lookup.addresses(&name("empty.example")).await, Err(LookupError::NoAddress));
        let broken = lookup.addresses(&name("broken.example")).await;
        assert!(matches!(broken, Err(LookupError::Failed(_))), "{broken:?}");

        let before = zone.asked();
        assert_eq!(lookup.addresses(&name("no.example")).await, Err(LookupError::NotFound));
        assert_eq!(zone.asked(), before);
        zone.set("no.example", &["203.0.113.10"]);
        lookup.age(&name("no.example"));
        assert!(lookup.addresses(&name("no.example")).await.is_ok());
    });
}

#[test]
fn who_comes_meanwhile_shares_the_answer() {
    run(async {
        let zone = Zone::start().await;
        zone.set("a.example", &["203.0.113.10"]);
        let lookup = Lookup::new(&zone.config());
        let wanted = name("a.example");
        let (one, two, three) = tokio::join!(
            lookup.addresses(&wanted),
            lookup.addresses(&wanted),
            lookup.addresses(&wanted)
        );
        assert!(one.is_ok() && one == two && two == three);
        assert_eq!(zone.asked().len(), 2);
    });
}

/// Who waits is not left alone when the one that asked gives up.
#[test]
fn one_that_gives_up_does_not_take_the_others_along() {
    run(async {
        let zone = Zone::start().await;
        zone.set("a.example", &["203.0.113.10"]);
        let lookup = Rc::new(Lookup::new(&zone.config()));
        let wanted = name("a.example");
        let mut asking = Box::pin(lookup.addresses(&wanted));
        let begun =
            poll_fn(|context| Poll::Ready(asking.as_mut().poll(context).is_pending())).await;
        assert!(begun);
        let other = tokio::task::spawn_local({
            let (lookup, wanted) = (Rc::clone(&lookup), wanted.clone());
            async move { lookup.addresses(&wanted).await }
        });
        tokio::task::yield_now().await;
        drop(asking);
        assert!(other.await.unwrap().is_ok());
    });
}

#[test]
fn known_hosts_are_not_asked_for() {
    run(async {
        let zone = Zone::start().await;
        let mut config = zone.config();
        config.known =
            known_in("203.0.113.5 Box.Example box # our box\n2001:db8::5 box.example.\n");
        let lookup = Lookup::new(&config);
        let pinned = lookup.addresses(&name("box.example")).await.unwrap();
        assert_eq!(pinned.resolved.addresses, addresses(&["203.0.113.5", "2001:db8::5"]));
        assert_eq!(zone.asked(), Vec::<String>::new());
    });
}

#[test]
fn without_a_server_nothing_is_found() {
    run(async {
        let lookup = Lookup::new(&config::Lookup::default());
        let found = lookup.addresses(&name("a.example")).await;
        assert!(matches!(found, Err(LookupError::Failed(_))), "{found:?}");
    });
}

/// A flood of names cannot undo a pin.
/// Proves: NET-4 pinned
#[test]
fn what_holds_is_not_forgotten_to_make_room() {
    let now = Instant::now();
    let later = now + Duration::from_secs(100);
    let mut remembered = Remembered::default();
    for number in 0..MAX_NAMES {
        let until = if number < 10 { now + ABSENCE_HOLDS } else { later };
        let entry = remembered.entry(&name(&format!("n{number}.example")), now).unwrap();
        entry.set(Found { result: Err(LookupError::NotFound), until }).unwrap();
    }
    let one_more = name("one-more.example");
    assert_eq!(remembered.entry(&one_more, now).unwrap_err(), LookupError::TooMany);
    assert!(remembered.entry(&name("n20.example"), now).unwrap().initialized(), "still there");
    let after = now + ABSENCE_HOLDS;
    assert!(remembered.entry(&one_more, after).is_ok());
    assert_eq!(remembered.entries.len(), MAX_NAMES - 9);
}

#[test]
fn a_resolv_conf_names_servers() {
    let text = "# comment\nsearch corp.example\nnameserver 192.0.2.53\nnameserver\t2001:db8::53 \n\
                nameserver fe80::1%eth0\nnameservers 192.0.2.1\noptions ndots:5\n";
    let servers: Vec<SocketAddr> =
        vec!["192.0.2.53:53".parse().unwrap(), "[2001:db8::53]:53".parse().unwrap()];
    assert_eq!(servers_in(text), servers);
    assert_eq!(servers_in(""), vec!["127.0.0.1:53".parse().unwrap()]);
}

#[test]
fn a_hosts_file_names_addresses() {
    let text = "127.0.0.1\tlocalhost\n\n# x\n::1 localhost ip6-localhost\nnonsense a.example\n\
                203.0.113.7 a..b c.example#d.example\n";
    let known = |name: &str, address: &str| (name.to_owned(), address.parse().unwrap());
    assert_eq!(
        known_in(text),
        [
            known("localhost", "127.0.0.1"),
            known("localhost", "::1"),
            known("ip6-localhost", "::1"),
            known("c.example", "203.0.113.7"),
        ]
    );
}
