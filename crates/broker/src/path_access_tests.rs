use super::*;
use crate::message::BrokerMessage;
use palisade_wire::{WireError, decode, encode};

/// A path that was cut would be another path.
#[test]
fn the_longest_path_is_told_whole_whatever_comes_with_it() {
    let request = PathAccess {
        id: u64::MAX,
        call: "openat".into(),
        wants: Wants::Open { directory: true, path_only: false },
        path: vec![0xff; MAX_PATH_BYTES],
        existing: MAX_PATH_BYTES,
        is_covered: true,
        new_path: Vec::new(),
        follow: true,
        pid: 77,
        executable: vec![b'e'; 1 << 16],
        cwd: vec![b'c'; 1 << 16],
    };
    let told = decode(&encode(&BrokerMessage::PathAccess(request.clone())).unwrap());
    let shown = vec![b'e'; MAX_FIELD];
    let whole = PathAccess { executable: shown, cwd: vec![b'c'; MAX_FIELD], ..request };
    assert_eq!(told, Ok(BrokerMessage::PathAccess(whole)));
}

#[test]
fn every_reply_comes_back_as_it_was() {
    let request = u64::MAX;
    let longest = vec![0xff; MAX_PATH_BYTES];
    for reply in [
        AccessReply::Continue { request },
        AccessReply::fail(request, Errno::ACCESS),
        AccessReply::WriteOnce { request, path: longest },
    ] {
        assert_eq!(decode(&encode(&reply).unwrap()), Ok(reply.clone()));
        assert_eq!(reply.request(), request);
    }
}

#[test]
fn a_path_that_does_not_fit_is_refused_and_not_cut() {
    let reply = AccessReply::WriteOnce { request: 1, path: vec![b'p'; AccessReply::MAX_BYTES] };
    assert_eq!(encode(&reply), Err(WireError::TooLong { limit: AccessReply::MAX_BYTES }));
}
