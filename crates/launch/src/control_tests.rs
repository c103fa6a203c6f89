use super::*;
use palisade_sys::Errno;

fn round_trip(message: &FromInit) {
    assert_eq!(FromInit::decode(&message.encode()).as_ref(), Some(message));
}

#[test]
fn every_message_survives_the_socket() {
    round_trip(&FromInit::Started);
    round_trip(&FromInit::Terminal);
    round_trip(&FromInit::PrivateHome { inodes: 12 });
    round_trip(&FromInit::NetworkCounters);
    round_trip(&FromInit::Stopped(20));
    for front in [Front::Transparent, Front::ByPort, Front::Closed] {
        round_trip(&FromInit::Network(Handed { front, tcp: 2, udp: 1 }));
    }
    round_trip(&FromInit::Exited(Ending::Code(-3)));
    round_trip(&FromInit::Exited(Ending::Signal(9)));
    round_trip(&FromInit::Checked(Checked::default()));
    round_trip(&FromInit::Checked(Checked {
        took: Duration::from_micros(123),
        observations: [None, Some(Errno::NOENT)]
            .map(|observed| Observation {
                probe: "read-canary".into(),
                expected: Errno::NOENT,
                observed,
            })
            .into(),
    }));
    round_trip(&FromInit::Failed(
        LaunchError::new("building the view", "open_tree /x: no").with_mend("do this"),
    ));
    for message in
        [ToInit::Mapped, ToInit::Resume, ToInit::End, ToInit::Signal(15), ToInit::Connected]
    {
        assert_eq!(ToInit::decode(&message.encode()), Some(message));
    }
}

#[test]
fn milestones_are_told_apart() {
    use Milestone::{Go, NetworkReady, OldRootGone, RootChanged};
    for milestone in [NetworkReady, RootChanged, OldRootGone, Go] {
        assert_eq!(Milestone::decode(milestone.encode()), Some(milestone));
        assert_eq!(FromInit::decode(milestone.encode()), None);
    }
    for packet in [&b""[..], b"g", b"gone", &FromInit::Started.encode()] {
        assert_eq!(Milestone::decode(packet), None, "{packet:?}");
    }
}

#[test]
fn what_does_not_parse_is_refused() {
    for packet in
        [&b""[..], b"exit", b"exited\x1fcode", b"stopped\x1fx", b"started\x1fmore", b"\xff"]
    {
        assert_eq!(FromInit::decode(packet), None, "{packet:?}");
    }
    for errno in ["", "x", "0", "-2", "4096"] {
        let packet = format!("checked\x1f1\x1fread-canary\x1e{errno}\x1e");
        assert_eq!(FromInit::decode(packet.as_bytes()), None, "{packet:?}");
    }
    assert_eq!(ToInit::decode(b"signal\x1fnine"), None);
    assert_eq!(ToInit::decode(b"mapped\x1f1"), None);
    assert_eq!(FromInit::decode(b"network\x1fopen\x1f1\x1f1"), None);
}

#[test]
fn an_endless_error_text_is_cut_not_refused() {
    let long = LaunchError::new("step", "é".repeat(20_000));
    let Some(FromInit::Failed(error)) = FromInit::decode(&FromInit::Failed(long).encode()) else {
        panic!("not decoded");
    };
    assert!(error.detail.starts_with('é'));
}
