use super::*;
use crate::always_blocked;

/// Proves: NET-3 special-addresses
#[test]
fn what_is_ours_is_never_dialled_and_its_neighbours_are_not_ours() {
    for address in [
        "198.18.0.0",
        "198.18.0.1",
        "198.19.255.255",
        "::ffff:198.18.0.1",
        "fd53:616e:6442::1",
        "fd53:616e:6442:ffff::1",
    ] {
        let address = address.parse().unwrap();
        assert!(is_ours(address), "{address}");
        assert!(always_blocked(address).is_some(), "{address}");
    }
    for address in ["198.17.255.255", "198.20.0.0", "fd53:616e:6441::1", "fd53:616e:6443::1"] {
        assert!(!is_ours(address.parse().unwrap()), "{address}");
    }
}

#[test]
fn our_own_addresses_and_those_of_pairs_are_of_our_ranges_and_apart() {
    assert!(is_ours(INSIDE_V4.into()) && is_ours(INSIDE_V6.into()));
    assert!(OURS_V4.contains(&VETH_V4) && !VETH_V4.contains(&INSIDE_V4));
}
