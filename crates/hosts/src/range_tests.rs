use super::*;
use proptest::prelude::*;

fn what(address: &str) -> Option<&'static str> {
    always_blocked(address.parse().unwrap()).map(|blocked| blocked.what)
}

/// Proves: NET-3 special-addresses
#[test]
fn special_addresses_are_blocked_by_name() {
    for (address, name) in [
        ("0.0.0.0", "this host"),
        ("0.255.255.255", "this host"),
        ("10.0.0.0", "private"),
        ("10.255.255.255", "private"),
        ("100.64.0.0", "carrier-grade NAT"),
        ("100.127.255.255", "carrier-grade NAT"),
        ("100.100.100.200", METADATA),
        ("127.0.0.1", "loopback"),
        ("127.255.255.255", "loopback"),
        ("168.63.129.16", METADATA),
        ("169.254.0.1", "link-local"),
        ("169.254.169.254", METADATA),
        ("172.16.0.0", "private"),
        ("172.31.255.255", "private"),
        ("192.0.0.192", "protocol assignments"),
        ("192.168.1.1", "private"),
        ("198.18.0.1", "benchmarking"),
        ("198.19.255.255", "benchmarking"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.255", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "broadcast"),
        ("::", "this host"),
        ("::1", "loopback"),
        ("fc00::1", "private"),
        ("fdff::1", "private"),
        ("fd00:ec2::254", METADATA),
        ("fd20:ce::254", METADATA),
        ("fd53:616e:6442::1", "the sandbox's own"),
        ("fe80::1", "link-local"),
        ("febf::1", "link-local"),
        ("fec0::1", "site-local"),
        ("feff::1", "site-local"),
        ("ff02::1", "multicast"),
    ] {
        assert_eq!(what(address), Some(name), "{address}");
    }
}

/// Proves: NET-3 special-addresses
#[test]
fn neighbours_of_special_addresses_are_free() {
    for address in [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "203.0.113.1",
        "223.255.255.255",
        "2001:db8::1",
        "2001:1::1",
        "2003::1",
        "64:ff9b:2::1",
        "2600::1",
        "fbff::1",
    ] {
        assert_eq!(what(address), None, "{address}");
    }
}

#[test]
fn a_blocked_address_says_its_range() {
    assert_eq!(
        always_blocked("10.1.2.3".parse().unwrap()).unwrap().to_string(),
        "private (10.0.0.0/8)"
    );
}

/// Ranges are whole: no bits beyond the prefix, which `contains` would ignore without a word.
#[test]
fn the_table_is_well_formed() {
    for blocked in ALWAYS_BLOCKED {
        assert_eq!(blocked.range.addr(), blocked.range.network(), "{}", blocked.range);
    }
}

/// Everything that carries an IPv4 address in IPv6, but the mapped form.
fn tunnels(v4: Ipv4Addr) -> [Ipv6Addr; 8] {
    let [a, b, c, d] = v4.octets();
    let high = u16::from_be_bytes([a, b]);
    let low = u16::from_be_bytes([c, d]);
    [
        Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
        Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low),
        Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
        Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low),
        Ipv6Addr::new(0x64, 0xff9b, 1, high, low >> 8, low << 8, 0, 0),
        Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
        Ipv6Addr::new(0x2001, 0, high, low, 0, 0, 0, 0),
        Ipv6Addr::new(0x2001, 0, 0x4136, 0xe378, 0x8000, 0x63bf, !high, !low),
    ]
}

proptest! {
    /// N06: a blocked address is blocked in each of its clothes, and tunnels are for none.
    ///
    /// Proves: NET-3 special-addresses, NET-3 spellings
    #[test]
    fn blocked_is_blocked_in_all_embeddings(bits: u32) {
        let v4 = Ipv4Addr::from(bits);
        prop_assert_eq!(always_blocked(v4.to_ipv6_mapped().into()), always_blocked(v4.into()));
        for tunnel in tunnels(v4) {
            prop_assert!(always_blocked(tunnel.into()).is_some(), "{}", tunnel);
        }
    }

    /// The standard library's own idea of special addresses is contained in ours.
    ///
    /// Proves: NET-3 special-addresses
    #[test]
    fn what_the_standard_library_knows_is_blocked(v4 in any::<u32>().prop_map(Ipv4Addr::from), v6 in any::<u128>().prop_map(Ipv6Addr::from)) {
        if v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast() || v4.is_broadcast() || v4.is_unspecified() {
            prop_assert!(always_blocked(v4.into()).is_some(), "{}", v4);
        }
        if v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_multicast() {
            prop_assert!(always_blocked(v6.into()).is_some(), "{}", v6);
        }
    }
}
