use super::*;
use proptest::prelude::*;

fn odd() -> PathBuf {
    OsString::from_vec(b"/opt/\xff\n\x1f sdk".to_vec()).into()
}

#[test]
fn every_question_comes_back_as_it_was() {
    let path = odd().into_os_string().into_vec();
    for ask in [
        Ask::Look { token: 1, path, follow: true, execute: false, change: Change::Nothing },
        Ask::Look {
            token: u64::MAX,
            path: b"/".to_vec(),
            follow: false,
            execute: true,
            change: Change::Nothing,
        },
        Ask::Graft { token: 2, what: What::Found, exec: true, write: false },
        Ask::Graft { token: 3, what: What::Directory(odd()), exec: false, write: false },
        Ask::Graft { token: 4, what: What::Links, exec: false, write: false },
        Ask::Graft { token: 5, what: What::Name, exec: false, write: true },
        Ask::Lend { token: 6, parent: false },
        Ask::Open { token: 4, flags: u32::MAX },
        Ask::Ungraft { graft: 5 },
        Ask::Forget { token: 6 },
    ] {
        assert_eq!(Ask::decode(&ask.encode()), Some(ask));
    }
}

#[test]
fn every_answer_comes_back_as_it_was() {
    let found = |kind, links, needs| {
        Told::Found(Found { token: 7, path: odd(), kind, links, needs, unwritable: Some(30) })
    };
    for told in [
        found(Kind::File, vec![(odd(), "sdk-1.2".into()), ("/a".into(), odd())], vec![odd()]),
        found(Kind::Directory, Vec::new(), vec!["/lib64/ld.so".into(), "/bin/sh".into()]),
        found(Kind::Link, vec![(odd(), odd())], Vec::new()),
        found(Kind::Special, Vec::new(), Vec::new()),
        Told::Absent { token: 8 },
        Told::Grafted { token: 9, graft: 10 },
        Told::NotWhole { token: 6 },
        Told::Opened { token: 11 },
        Told::Failed { token: 12, step: "move_mount".into(), errno: 28 },
        Told::Ungrafted { graft: 13 },
        Told::NotUngrafted { graft: 14, step: "umount2".into(), errno: 16 },
        Told::Unable { why: "setns: EPERM".into() },
    ] {
        assert_eq!(Told::decode(&told.encode()), Some(told));
    }
}

#[test]
fn what_is_cut_or_foreign_is_no_message() {
    let whole = Told::Grafted { token: 1, graft: 2 }.encode();
    for length in 0..whole.len() {
        assert_eq!(Told::decode(&whole[..length]), None, "{length}");
    }
    let mut longer = whole.clone();
    longer.push(0);
    assert_eq!(Told::decode(&longer), None);
    assert_eq!(Ask::decode(&whole), None);
}

proptest! {
    /// No packet, however made, is more than refused.
    #[test]
    fn any_bytes_are_decoded_or_refused(packet in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Ask::decode(&packet);
        let _ = Told::decode(&packet);
    }
}
