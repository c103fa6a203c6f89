use super::*;
use crate::error::FailureKind;
use crate::network::Front;
use palisade_sys::Errno;
use palisade_wire::{WireError, decode, encode};

fn error() -> LaunchError {
    LaunchError::new("starting the command", "exec a\x1fb\x1ec: no").with_fix("do this")
}

#[test]
fn every_message_of_pid_1_comes_back_as_it_was() {
    let observation =
        |observed| Observation { probe: "read-canary".into(), expected: Errno::NOENT, observed };
    let observations = [None, Some(Errno::NOENT)].map(observation).into();
    for message in [
        FromInit::PrivateHome { inodes: u64::MAX },
        FromInit::Network(Handed { front: Front::ByPort, tcp: 2, udp: 1 }),
        FromInit::Checked(Checked { took: Duration::from_micros(123), observations }),
        FromInit::Failed(error().with_kind(FailureKind::NotFound)),
        FromInit::Exited(ExitCause::Code(-3)),
    ] {
        assert_eq!(decode(&encode(&message).unwrap()), Ok(message.clone()));
        let passed_on = FromCommand::PassOn(message);
        assert_eq!(decode(&encode(&passed_on).unwrap()), Ok(passed_on));
    }
}

#[test]
fn every_order_comes_back_as_it_was() {
    for order in [ToInit::Mapped, ToInit::Signal(15), ToInit::End] {
        assert_eq!(decode(&encode(&order).unwrap()), Ok(order));
    }
    assert!(matches!(decode::<ToInit>(&[9]), Err(WireError::Undecodable(_))));
}

/// The reason is what a person needs; an error that does not arrive would be taken for a death without one.
#[test]
fn an_endless_error_arrives_with_its_beginning() {
    let endless = "é".repeat(20_000);
    let error = LaunchError::new(&endless, &endless).with_fix(&endless);
    let packet = encode(&FromCommand::PassOn(FromInit::Failed(error))).unwrap();
    let Ok(FromCommand::PassOn(FromInit::Failed(error))) = decode(&packet) else {
        panic!("not decoded");
    };
    for text in [error.step, error.detail, error.fix.unwrap()] {
        assert!(text.starts_with('é') && text.len() < endless.len());
    }
}
