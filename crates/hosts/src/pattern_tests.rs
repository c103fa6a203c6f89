use super::*;

fn matches(pattern: &str, host: &str) -> bool {
    HostPattern::parse(pattern).unwrap().matches(&Host::parse(host).unwrap())
}

/// Proves: NET-3 globs
#[test]
fn a_glob_says_how_much_of_a_domain() {
    for (pattern, inside, outside) in [
        (
            "x.example",
            &["x.example", "X.EXAMPLE."][..],
            &["a.x.example", "example", "xx.example", "x.example.evil"][..],
        ),
        (
            "*.x.example",
            &["a.x.example", "b.a.x.example"],
            &["x.example", "ax.example", "x.example.evil", "example"],
        ),
        (
            "**.x.example",
            &["x.example", "a.x.example", "b.a.x.example"],
            &["ax.example", "example", "x.example.evil"],
        ),
        ("*", &["x.example", "192.0.2.1", "2001:db8::1"], &[]),
        ("*.Bücher.example", &["a.xn--bcher-kva.example"], &["xn--bcher-kva.example"]),
    ] {
        for host in inside {
            assert!(matches(pattern, host), "{pattern} {host}");
        }
        for host in outside {
            assert!(!matches(pattern, host), "{pattern} {host}");
        }
    }
}

/// Proves: NET-3 cidrs
#[test]
fn a_range_is_about_addresses_only() {
    for (pattern, inside, outside) in [
        (
            "192.0.2.0/24",
            &["192.0.2.0", "192.0.2.255", "0xc0000201", "::ffff:192.0.2.9"][..],
            &["192.0.3.0", "x.example", "2001:db8::1"][..],
        ),
        ("192.0.2.7", &["192.0.2.7", "3221225991"], &["192.0.2.8"]),
        ("2001:db8::/32", &["2001:db8::1", "2001:db8:ffff::"], &["2001:db9::", "192.0.2.1"]),
        ("[2001:db8::]/32", &["2001:db8::1"], &["2001:db9::"]),
        ("[2001:db8::1]", &["2001:db8::1"], &["2001:db8::2"]),
        ("::ffff:192.0.2.0/120", &["192.0.2.1"], &["192.0.3.1"]),
        ("0.0.0.0/0", &["192.0.2.1"], &["2001:db8::1", "x.example"]),
    ] {
        for host in inside {
            assert!(matches(pattern, host), "{pattern} {host}");
        }
        for host in outside {
            assert!(!matches(pattern, host), "{pattern} {host}");
        }
    }
}

/// Proves: NET-3 globs
#[test]
fn wildcards_elsewhere_are_refused() {
    for text in [
        "a*.x.example",
        "a.*.example",
        "*x.example",
        "***.example",
        "*.*.example",
        "**",
        "x.*",
        "192.0.2.*",
    ] {
        assert_eq!(HostPattern::parse(text), Err(HostError::Wildcard(text.into())), "{text}");
    }
    assert!(HostError::Wildcard("a*.x".into()).to_string().contains("*.HOST"));
}

/// Proves: NET-3 cidrs
#[test]
fn a_range_that_is_none_is_refused() {
    for text in [
        "192.0.2.0/33",
        "192.0.2/24",
        "x.example/24",
        "192.0.2.0/",
        "2001:db8::/129",
        "::ffff:0:0/90",
        "*/8",
        "1.2.3.4/+8",
    ] {
        assert_eq!(HostPattern::parse(text), Err(HostError::Range(text.into())), "{text}");
    }
    let error = HostPattern::parse("192.0.2.9/24").unwrap_err();
    assert!(error.to_string().ends_with("write 192.0.2.0/24"), "{error}");
    for text in ["*.", "**.", "*.192.0.2.1", "http://x.example/", ""] {
        assert!(HostPattern::parse(text).is_err(), "{text}");
    }
}

#[test]
fn it_is_shown_as_it_was_written() {
    assert_eq!(HostPattern::parse("*.X.Example").unwrap().to_string(), "*.X.Example");
}
