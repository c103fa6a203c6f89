use super::*;
use proptest::prelude::*;
use std::net::Ipv4Addr;

fn address(text: &str) -> Host {
    Host::Address(text.parse().unwrap())
}

/// N07: one address, however it is written.
///
/// Proves: NET-3 spellings
#[test]
fn an_address_has_one_form() {
    for spelling in [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0X7F.1",
        "0x7f.0.0.0x1",
        "0177.0.0.1",
        "017700000001",
        "0177.0x0.1",
        "127。0。0。1",
        "１２７.0.0.1",
        "[::ffff:127.0.0.1]",
        "::ffff:7f00:1",
        "[::FFFF:7F00:0001]",
    ] {
        assert_eq!(Host::parse(spelling), Ok(address("127.0.0.1")), "{spelling}");
    }
    for spelling in [
        "2001:db8::1",
        "[2001:db8::1]",
        "2001:DB8:0:0::1",
        "[2001:0db8:0000:0000:0000:0000:0000:0001]",
    ] {
        assert_eq!(Host::parse(spelling), Ok(address("2001:db8::1")), "{spelling}");
    }
}

/// N07, N11: neither a name nor an address.
///
/// Proves: NET-3 spellings
#[test]
fn what_looks_like_a_number_is_never_a_name() {
    for text in
        ["127.0.0.256", "1.2.3.4.5", "09", "host.09", "host.0x1", "4294967296", "127.0.0.1.1."]
    {
        assert_eq!(Host::parse(text), Err(HostError::Number(text.into())), "{text}");
    }
    for text in ["fe80::1%eth0", "[fe80::1%25eth0]"] {
        assert!(matches!(Host::parse(text), Err(HostError::Zone(_))), "{text}");
    }
    for text in
        ["[::1", "::1]", "[host.example]", "[127.0.0.1]", "1:2", "host.example:443", "[::1]:443"]
    {
        assert!(matches!(Host::parse(text), Err(HostError::NotV6(_))), "{text}");
    }
    assert!(matches!(Host::parse("http://[::1]"), Err(HostError::Url(_))));
}

#[test]
fn names_are_names() {
    assert_eq!(
        Host::parse("Registry.Example."),
        Ok(Host::Name(Name::parse("registry.example").unwrap()))
    );
    assert_eq!(Host::parse("1.2.3.4.example").unwrap().to_string(), "1.2.3.4.example");
    assert_eq!(Host::parse("[2001:DB8::1]").unwrap().to_string(), "2001:db8::1");
}

/// One number of an address, in one of the bases that resolvers read.
fn spelled(number: u32, base: u8) -> String {
    match base % 3 {
        0 => number.to_string(),
        1 => format!("0x{number:x}"),
        _ => format!("0{number:o}"),
    }
}

proptest! {
    /// N07
    ///
    /// Proves: NET-3 spellings
    #[test]
    fn every_spelling_is_the_same_address(bits: u32, bases: [u8; 4], parts in 1usize..=4, dot: bool) {
        let shifts = [24, 16, 8];
        let mut written: Vec<String> = (0..parts - 1)
            .map(|part| spelled(bits >> shifts[part] & 0xff, bases[part]))
            .collect();
        let rest = bits & u32::MAX.checked_shr(8 * u32::try_from(parts - 1).unwrap()).unwrap();
        written.push(spelled(rest, bases[3]));
        let mut text = written.join(".");
        if dot {
            text.push('.');
        }
        let v4 = Ipv4Addr::from(bits);
        prop_assert_eq!(Host::parse(&text), Ok(Host::from(IpAddr::from(v4))), "{}", text);
        prop_assert_eq!(Host::from(IpAddr::from(v4.to_ipv6_mapped())), Host::from(IpAddr::from(v4)));
    }

    /// Proves: NET-3 spellings
    #[test]
    fn what_is_shown_is_read_again(text in r"(\PC|[0-9a-fxX.:\[\]]){1,24}") {
        if let Ok(host) = Host::parse(&text) {
            prop_assert_eq!(Host::parse(&host.to_string()), Ok(host));
        }
    }
}
