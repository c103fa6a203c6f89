use super::*;
use proptest::prelude::*;

fn normal(text: &str) -> String {
    Name::parse(text).unwrap().as_str().to_owned()
}

/// N11: every way to write a name ends in one form.
///
/// Proves: NET-3 spellings
#[test]
fn a_name_has_one_form() {
    for spelling in [
        "registry.example",
        "REGISTRY.Example",
        "registry.example.",
        "registry。example",
        "registry．example。",
        "ｒｅｇｉｓｔｒｙ.example",
        "regis\u{ad}try.example",
        "regis\u{200b}try.example",
    ] {
        assert_eq!(normal(spelling), "registry.example", "{spelling:?}");
    }
    for spelling in
        ["bücher.example", "BÜCHER.example", "xn--bcher-kva.example", "bu\u{308}cher.example"]
    {
        assert_eq!(normal(spelling), "xn--bcher-kva.example", "{spelling:?}");
    }
}

/// N11: what another parser could read as something else is no name.
///
/// Proves: NET-3 spellings
#[test]
fn what_is_no_name_is_refused() {
    let character = |name: &str, character| HostError::Character { name: name.into(), character };
    for (text, error) in [
        ("", HostError::Empty),
        (".", HostError::Empty),
        ("\u{ad}", HostError::Empty),
        ("good.example@evil.example", HostError::User("good.example@evil.example".into())),
        ("https://good.example", HostError::Url("https://good.example".into())),
        ("good.example\0.evil.example", character("good.example\0.evil.example", '\0')),
        ("good.example evil", character("good.example evil", ' ')),
        ("good.example\u{a0}evil", character("good.example\u{a0}evil", ' ')),
        ("good.example/evil", character("good.example/evil", '/')),
        ("good.example:443", character("good.example:443", ':')),
        ("good%2eexample", character("good%2eexample", '%')),
        ("good..example", HostError::Label("good..example".into())),
        (".example", HostError::Label(".example".into())),
        ("example..", HostError::Label("example.".into())),
        ("xn--\u{7f}.example", HostError::International("xn--\u{7f}.example".into())),
        ("xn--a-.example", HostError::International("xn--a-.example".into())),
        ("127.0.0.1", HostError::Number("127.0.0.1".into())),
        ("name.0x7f", HostError::Number("name.0x7f".into())),
    ] {
        assert_eq!(Name::parse(text), Err(error), "{text:?}");
    }
}

#[test]
fn lengths_are_those_of_dns() {
    let label = "a".repeat(63);
    assert!(Name::parse(&format!("{label}.example")).is_ok());
    assert!(matches!(Name::parse(&format!("{label}a.example")), Err(HostError::Label(_))));
    let longest = format!("{label}.{label}.{label}.{}", "b".repeat(61));
    assert_eq!(longest.len(), 253);
    assert!(Name::parse(&longest).is_ok());
    assert!(Name::parse(&format!("{longest}.")).is_ok());
    assert!(matches!(Name::parse(&format!("{longest}b")), Err(HostError::NameTooLong(_))));
}

#[test]
fn names_of_services_and_of_machines_are_names() {
    for name in [
        "_xmpp._tcp.example",
        "my_host.example",
        "r3---sn.example",
        "1.2.0.192.in-addr.arpa",
        "3com.example",
        "host",
    ] {
        assert_eq!(normal(name), name);
    }
    assert_eq!(
        Name::parse("a.b.example").unwrap().labels().collect::<Vec<_>>(),
        ["a", "b", "example"]
    );
}

proptest! {
    /// N11: the normal form of a normal form is itself, and holds nothing but host name characters.
    ///
    /// Proves: NET-3 spellings
    #[test]
    fn the_normal_form_is_final(text in r"(\PC|[a-zA-Z0-9.。_-]){1,40}") {
        if let Ok(name) = Name::parse(&text) {
            prop_assert_eq!(Name::parse(name.as_str()), Ok(name.clone()));
            prop_assert_eq!(Name::parse(&name.as_str().to_ascii_uppercase()), Ok(name.clone()));
            prop_assert_eq!(Name::parse(&format!("{name}.")), Ok(name.clone()));
            prop_assert!(name.as_str().bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.')));
        }
    }
}
