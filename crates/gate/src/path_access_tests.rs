use super::*;
use palisade_wire::{WireError, decode, encode};

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

#[test]
fn nothing_is_missing_where_something_may_only_be_read() {
    let missing = PathAccess {
        id: 1,
        call: "openat".to_owned(),
        wants: Wants::Write,
        path: b"/home/u/work/file".to_vec(),
        existing: "/home/u".len(),
        is_covered: false,
        is_read_only: false,
        new_path: Vec::new(),
        follow: true,
        may_be_served: false,
        pid: 1,
        executable: Vec::new(),
        cwd: Vec::new(),
    };
    assert_eq!(missing.missing_name(), Some("/home/u/work".into()));
    assert_eq!(PathAccess { is_read_only: true, ..missing }.missing_name(), None);
}
