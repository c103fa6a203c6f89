use super::*;
use palisade_wire::{WireError, decode, encode};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

fn odd() -> PathBuf {
    OsString::from_vec(b"/opt/\xff\n\x1f\0 sdk".to_vec()).into()
}

#[test]
fn every_question_comes_back_as_it_was() {
    let path = odd().into_os_string().into_vec();
    for request in [
        KeeperRequest::Look {
            token: u64::MAX,
            path,
            follow: true,
            execute: false,
            change: Change::Name,
        },
        KeeperRequest::Graft { token: 3, what: What::Directory(odd()), exec: false, write: true },
        KeeperRequest::Open { token: 4, flags: u32::MAX },
        KeeperRequest::Forget { token: 6 },
    ] {
        assert_eq!(decode(&encode(&request).unwrap()), Ok(request));
    }
}

#[test]
fn every_answer_comes_back_as_it_was() {
    let links = vec![(odd(), "sdk-1.2".into()), ("/a".into(), odd())];
    let (kind, needs) = (FileKind::Special, vec!["/lib64/ld.so".into(), odd()]);
    for event in [
        KeeperEvent::Found(Found {
            token: 7,
            path: odd(),
            kind,
            links,
            needs,
            unwritable: Some(30),
            identity: Some((1, 2, 3, 4)),
        }),
        KeeperEvent::Grafted { token: 9, graft: 10 },
        KeeperEvent::NotUngrafted { graft: 14, step: "umount2".into(), errno: 16 },
    ] {
        assert_eq!(decode(&encode(&event).unwrap()), Ok(event));
    }
}

#[test]
fn why_it_is_unable_is_told_however_long_but_no_path_is_cut() {
    let long = "x".repeat(MAX_BYTES);
    assert!(encode(&KeeperEvent::Unable { why: long.clone() }).is_ok());
    let what = What::Directory(long.into());
    let request = KeeperRequest::Graft { token: 1, what, exec: false, write: false };
    assert_eq!(encode(&request), Err(WireError::TooLong { limit: MAX_BYTES }));
}
