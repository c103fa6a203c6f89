use super::*;
use palisade_gate::MAX_PATH_BYTES;
use palisade_wire::{decode, encode};

#[test]
fn every_message_comes_back_as_it_was() {
    let executable = b"/usr/bin/\xff\n\x1f\0".to_vec();
    for message in [
        BrokerMessage::Blocked(BlockedCall {
            number: 165,
            arguments: [0, 1, u64::MAX, 3, 4, 5],
            pid: 77,
            executable: executable.clone(),
            errno: 1,
            suspicious: true,
        }),
        BrokerMessage::NotExecuted(NotExecuted {
            call: "execve".into(),
            path: b"/bin/echo".to_vec(),
            rule: "process.allowExec".into(),
            pid: 4,
            executable,
        }),
        BrokerMessage::Staging { is_open: true },
        BrokerMessage::Made { request: 7, file: (1, u64::MAX, -1, 9) },
        BrokerMessage::Lost { count: 12, suspicious: 3 },
    ] {
        assert_eq!(decode(&encode(&message).unwrap()), Ok(message));
    }
}

#[test]
fn no_field_makes_a_message_too_long() {
    let long = vec![b'x'; 1 << 20];
    let text = String::from_utf8(long.clone()).unwrap();
    let message = BrokerMessage::Protected(Protected {
        call: text.clone(),
        path: long.clone(),
        rule: text.clone(),
        why: text,
        pid: u32::MAX,
        executable: long,
    });
    let told = decode(&encode(&message).unwrap());
    let Ok(BrokerMessage::Protected(told)) = told else { panic!("{told:?}") };
    assert_eq!(told.path, [b'x'; MAX_FIELD]);
}

/// A path that was cut would be another path.
#[test]
fn the_longest_path_is_told_whole_whatever_comes_with_it() {
    let request = PathAccess {
        id: u64::MAX,
        call: "openat".into(),
        wants: palisade_gate::Wants::Open { directory: true, path_only: false },
        path: vec![0xff; MAX_PATH_BYTES],
        existing: MAX_PATH_BYTES,
        is_covered: true,
        is_read_only: true,
        new_path: Vec::new(),
        follow: true,
        may_be_served: false,
        pid: 77,
        executable: vec![b'e'; 1 << 16],
        cwd: vec![b'c'; 1 << 16],
    };
    let told = decode(&encode(&BrokerMessage::PathAccess(request.clone())).unwrap());
    let shown = vec![b'e'; MAX_FIELD];
    let whole = PathAccess { executable: shown, cwd: vec![b'c'; MAX_FIELD], ..request };
    assert_eq!(told, Ok(BrokerMessage::PathAccess(whole)));
}
