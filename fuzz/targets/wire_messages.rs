//! Messages between our processes: decoding any bytes never panics, and a message that was decoded can be sent on
//! and is understood as the same one.
//!
//! An input is a byte that chooses the type, and a packet.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palisade_broker::BrokerMessage;
use palisade_gate::AccessReply;
use palisade_keeper::{KeeperEvent, KeeperRequest};
use palisade_launch::message::{FromCommand, FromInit, ToCommand, ToInit};
use palisade_session::supervise::interface::{FromSupervisor, Request};
use palisade_wire::{WireMessage, decode, encode};

const TYPES: [fn(&[u8]); 10] = [
    check::<FromInit>,
    check::<ToInit>,
    check::<FromCommand>,
    check::<ToCommand>,
    check::<BrokerMessage>,
    check::<AccessReply>,
    check::<KeeperRequest>,
    check::<KeeperEvent>,
    check::<Request>,
    check::<FromSupervisor>,
];

fuzz_target!(|data: &[u8]| {
    if let Some((first, packet)) = data.split_first() {
        TYPES[usize::from(*first) % TYPES.len()](packet);
    }
});

/// Texts may be longer than our own senders let them be; sent on, they are truncated once and for all.
fn check<T: WireMessage>(packet: &[u8]) {
    let Ok(message) = decode::<T>(packet) else { return };
    let sent = encode(&message).expect("what was received can be sent on");
    let again = decode::<T>(&sent).expect("what was sent can be received");
    assert_eq!(encode(&again).as_deref(), Ok(sent.as_slice()));
}
