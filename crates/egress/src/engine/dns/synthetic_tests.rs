use super::*;
use proptest::prelude::*;

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn numbered(number: u32) -> Name {
    name(&format!("n{number}.example"))
}

/// Both families of one name lead back to it, and to it only.
/// Proves: NET-5 ignoring
#[test]
fn an_address_tells_its_name() {
    let synthetic = Synthetic::default();
    let first = synthetic.stand_in(&name("a.example")).unwrap();
    let second = synthetic.stand_in(&name("b.example")).unwrap();
    assert_eq!(
        first,
        StandIn { v4: "198.18.1.0".parse().unwrap(), v6: "fd53:616e:6442::100".parse().unwrap() }
    );
    assert_ne!(first, second);
    for address in [IpAddr::V4(first.v4), IpAddr::V6(first.v6)] {
        assert_eq!(synthetic.name_of(address), Some(name("a.example")));
    }
    assert_eq!(synthetic.name_of(IpAddr::V6(second.v6)), Some(name("b.example")));
}

#[test]
fn a_name_keeps_its_addresses() {
    let synthetic = Synthetic::default();
    let before = synthetic.stand_in(&name("a.example"));
    for number in 0..1000 {
        synthetic.stand_in(&numbered(number));
    }
    assert_eq!(synthetic.stand_in(&name("A.Example.")), before);
}

#[test]
fn addresses_that_were_not_given_stand_for_nothing() {
    let synthetic = Synthetic::default();
    synthetic.stand_in(&name("a.example"));
    for text in [
        "198.18.0.0",
        "198.18.0.1",
        "198.18.0.255",
        "198.18.1.1",
        "198.17.255.255",
        "198.19.255.255",
        "198.20.0.0",
        "0.0.0.0",
        "255.255.255.255",
        "fd53:616e:6442::1",
        "fd53:616e:6442::101",
        "fd53:616e:6442:0:1::100",
        "fd53:616e:6443::100",
        "::",
    ] {
        assert_eq!(synthetic.name_of(text.parse().unwrap()), None, "{text}");
    }
}

/// A name that was used within the hour keeps its addresses, whatever number of names is tried; after the hour the
/// longest unused one gives way.
/// Proves: NET-6 tunnelling
#[test]
fn an_address_rests_before_it_stands_for_another_name() {
    let mut table = Table::default();
    let start = Instant::now();
    for number in 0..MAX_NAMES {
        let now = start + Duration::from_millis(u64::from(number));
        assert!(table.stand_in(&numbered(number), now).is_some());
    }
    let first = StandIn::of(0);
    assert_eq!(
        table.stand_in(&name("late.example"), start + REST - Duration::from_millis(1)),
        None
    );
    assert_eq!(table.name_of(first.v4.into(), start), Some(numbered(0)));
    assert_eq!(table.stand_in(&name("late.example"), start + REST), Some(first));
    assert_eq!(table.name_of(first.v4.into(), start + REST), Some(name("late.example")));

    let again = start + REST + Duration::from_millis(1);
    assert_eq!(table.stand_in(&numbered(0), again), Some(StandIn::of(1)));
    assert_eq!(table.slots.len(), MAX_NAMES as usize);
    assert_eq!(table.by_name.len(), MAX_NAMES as usize);
}

/// A connection is a use too.
#[test]
fn being_connected_to_keeps_an_address() {
    let mut table = Table::default();
    let start = Instant::now();
    for number in 0..MAX_NAMES {
        table.stand_in(&numbered(number), start);
    }
    table.name_of(StandIn::of(0).v6.into(), start + REST / 2);
    assert_eq!(table.stand_in(&name("late.example"), start + REST), Some(StandIn::of(1)));
}

proptest! {
    #[test]
    fn slots_and_addresses_agree(slot in 0..MAX_NAMES) {
        let StandIn { v4, v6 } = StandIn::of(slot);
        prop_assert_eq!(slot_of(v4.into()), Some(slot));
        prop_assert_eq!(slot_of(v6.into()), Some(slot));
        prop_assert!(v4.octets()[0] == 198 && v4.octets()[1] & 0xfe == 18);
    }

    #[test]
    fn no_other_address_has_a_slot(bits in any::<u32>()) {
        let address = Ipv4Addr::from_bits(bits);
        let ours = (BASE_V4 + FIRST..BASE_V4 + FIRST + MAX_NAMES).contains(&bits);
        prop_assert_eq!(slot_of(address.into()).is_some(), ours);
    }
}
