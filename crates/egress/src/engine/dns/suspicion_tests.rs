use super::*;
use proptest::prelude::*;

fn alone(name: &str) -> Option<Suspicion> {
    Watch::new(Instant::now()).look(name, Instant::now())
}

/// Proves: NET-6 tunnelling
#[test]
fn names_that_carry_data_are_told() {
    let base32 = "mzxw6ytboi4dsnzrgq2tmnzy";
    let hex = "5f4dcc3b5aa765d61d8327deb882cf99";
    for (name, suspicion) in [
        (format!("{}.{}.evil.example", "a".repeat(50), "b".repeat(50)), Suspicion::Long),
        ("a.b.c.d.e.f.g.h.i.evil.example".to_owned(), Suspicion::ManyLabels),
        (format!("{base32}.evil.example"), Suspicion::Random),
        (format!("{hex}.evil.example"), Suspicion::Random),
        (r"x\200y.evil.example".to_owned(), Suspicion::OddBytes),
    ] {
        assert_eq!(alone(&name), Some(suspicion), "{name}");
    }
}

#[test]
fn ordinary_names_are_not_told() {
    for name in [
        "localhost",
        "example.com",
        "www.example.co.uk",
        "d111111abcdef8.cdn.example",
        "my-load-balancer-1234567890.eu-central-1.elb.cloud.example",
        "bucket-for-the-results-of-2026.s3.dualstack.eu-central-1.cloud.example",
        "internationalbusinessmachines.example",
        "123e4567-e89b-12d3-a456-426614174000.app.example",
        "_xmpp-server._tcp.example.com",
        "4.3.2.1.in-addr.arpa",
        "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa",
    ] {
        assert_eq!(alone(name), None, "{name}");
    }
}

/// Low and slow encodings are seen by the number of names.
/// Proves: NET-6 tunnelling
#[test]
fn many_names_below_one_domain_are_told() {
    let start = Instant::now();
    let mut watch = Watch::new(start);
    for number in 0..MANY_NAMES {
        assert_eq!(watch.look(&format!("w{number}.evil.example"), start), None);
    }
    let event = watch.look("one-more.evil.example", start);
    assert_eq!(event, Some(Suspicion::ManyNames { below: "evil.example".to_owned() }));
    assert_eq!(watch.look("w3.evil.example", start), None, "asked for before");
    assert_eq!(watch.look("a.other.example", start), None, "another domain");
    assert_eq!(watch.look("one-more.evil.example", start + WINDOW), None, "the next minute");
}

#[test]
fn room_is_bounded_whatever_comes() {
    let start = Instant::now();
    let mut watch = Watch::new(start);
    let mut event = 0;
    for number in 0..5000 {
        event += usize::from(watch.look(&format!("d{number}.example"), start).is_some());
    }
    assert_eq!(watch.domains.len(), MAX_DOMAINS + 1);
    assert_eq!(event, 5000 - MAX_DOMAINS - MANY_NAMES);
}

#[test]
fn a_domain_is_what_somebody_registered() {
    for (name, domain) in [
        ("example", "example"),
        ("a.example", "a.example"),
        ("x.y.a.example", "a.example"),
        ("x.y.co.uk", "y.co.uk"),
        ("co.uk", "co.uk"),
        ("x.abcd.uk", "abcd.uk"),
        ("", ""),
        (".", "."),
    ] {
        assert_eq!(domain_of(name), domain, "{name}");
    }
}

proptest! {
    #[test]
    fn any_text_is_looked_at(name in ".{0,300}") {
        alone(&name);
    }
}
