use super::*;
use palisade_netlink::Refusal;
use std::net::Ipv4Addr;

fn refusals(packets: u64, to: &[(u8, u64)]) -> Refusals {
    let refusal = |(last, packets): &(u8, u64)| {
        let address = Ipv4Addr::new(203, 0, 113, *last).into();
        Refusal { address, port: 443, protocol: 17, packets: *packets }
    };
    Refusals { destinations: to.iter().map(refusal).collect(), packets }
}

fn counts(new: &[(Option<Destination>, u64)]) -> Vec<u64> {
    new.iter().map(|(_, packets)| *packets).collect()
}

/// Proves: NET-7 logged
#[test]
fn only_what_is_new_is_told_and_each_destination_apart() {
    let mut event = Counts::new();
    let first = new_packets(&mut event, &refusals(4, &[(1, 3), (2, 1)]));
    assert_eq!(counts(&first), [3, 1]);
    assert!(new_packets(&mut event, &refusals(4, &[(1, 3), (2, 1)])).is_empty());
    assert_eq!(counts(&new_packets(&mut event, &refusals(6, &[(1, 5), (2, 1)]))), [2]);
}

#[test]
fn packets_to_destinations_that_were_not_remembered_are_counted() {
    let new = new_packets(&mut Counts::new(), &refusals(10, &[(1, 3)]));
    assert_eq!(counts(&new), [3, 7]);
    assert_eq!(attempt(Refused::Protocols, new[1].0, 7).host, "(others)");
}

/// Proves: NET-7 logged
#[test]
fn it_is_told_what_was_wrong_with_a_packet() {
    let reason = |refused, address: &str| {
        let event = attempt(refused, Some((address.parse().unwrap(), 443, 17)), 2);
        assert_eq!((event.host.as_str(), event.port, event.count), (address, 443, 2));
        (event.via, event.reason.unwrap())
    };
    let by_protocol = "only TCP and look-ups get out, not UDP".to_owned();
    assert_eq!(reason(Refused::Protocols, "10.0.0.5"), (Via::Datagram, by_protocol));
    let private = "blocked address: private (10.0.0.0/8)".to_owned();
    assert_eq!(reason(Refused::Addresses, "10.0.0.5"), (Via::Transparent, private));
    let own = "an address of the host, or one that the policy denies".to_owned();
    assert_eq!(reason(Refused::Addresses, "192.0.2.2"), (Via::Transparent, own));
}
