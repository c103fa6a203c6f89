use super::*;
use std::net::Ipv4Addr;

fn refusal(last: u8, packets: u64) -> Refusal {
    let address = Ipv4Addr::new(203, 0, 113, last).into();
    Refusal { address, port: 443, protocol: 17, packets }
}

/// Proves: NET-7 logged
#[test]
fn only_what_is_new_is_told_and_each_destination_apart() {
    let mut told = Counts::new();
    let first = new_attempts(&mut told, &[refusal(1, 3), refusal(2, 1)], 4);
    let counts: Vec<_> = first.iter().map(|one| (one.host.as_str(), one.count)).collect();
    assert_eq!(counts, [("203.0.113.1", 3), ("203.0.113.2", 1)]);
    assert_eq!(first[0].reason.as_deref(), Some("only TCP and look-ups get out, not UDP"));
    assert!(new_attempts(&mut told, &[refusal(1, 3), refusal(2, 1)], 4).is_empty());
    let second = new_attempts(&mut told, &[refusal(1, 5), refusal(2, 1)], 6);
    assert_eq!(second.iter().map(|one| one.count).collect::<Vec<_>>(), [2]);
}

#[test]
fn packets_to_destinations_that_were_not_remembered_are_counted() {
    let mut told = Counts::new();
    let attempts = new_attempts(&mut told, &[refusal(1, 3)], 10);
    assert_eq!(attempts.iter().map(|one| one.count).sum::<u64>(), 10);
    assert_eq!(attempts[1].host, "(others)");
}
