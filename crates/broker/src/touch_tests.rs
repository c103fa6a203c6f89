use super::*;
use crate::message::{LONGEST_MESSAGE, Message};

fn touch(wants: Wants) -> Touch {
    Touch {
        touch: u64::MAX,
        call: "openat".into(),
        wants,
        path: b"/opt/\xff\n/x".to_vec(),
        existing: 4,
        follow: true,
        pid: 77,
        executable: b"/usr/bin/cat".to_vec(),
        cwd: b"/home/u".to_vec(),
    }
}

#[test]
fn every_touch_comes_back_as_it_was() {
    for (_, wants) in Wants::WORDS {
        let message = Message::Touch(touch(wants));
        assert_eq!(Message::decode(&message.encode()), Some(message));
    }
    for message in [Message::Returned { touch: 7 }, Message::Withdrawn { touch: u64::MAX }] {
        assert_eq!(Message::decode(&message.encode()), Some(message));
    }
}

/// A path that was cut would be another path.
#[test]
fn the_longest_path_is_told_whole() {
    let mut longest = touch(Wants::Look);
    longest.path = vec![b'p'; LONGEST_PATH];
    longest.executable = vec![b'e'; 1 << 16];
    longest.cwd = vec![b'c'; 1 << 16];
    let packet = Message::Touch(longest.clone()).encode();
    assert!(packet.len() < LONGEST_MESSAGE, "{}", packet.len());
    let Some(Message::Touch(told)) = Message::decode(&packet) else { panic!("no touch") };
    assert_eq!(told.path, longest.path);
}

#[test]
fn every_reply_comes_back_as_it_was() {
    let touch = 9;
    for reply in [
        Reply::Continue { touch },
        Reply::ContinueAndWatch { touch },
        Reply::Ended { touch },
        Reply::Absent { touch },
        Reply::Fail { touch, errno: 13 },
        Reply::File { touch },
    ] {
        assert_eq!(Reply::decode(&reply.encode()), Some(reply.clone()));
        assert_eq!(reply.touch(), touch);
    }
    assert_eq!(Reply::decode(b"continue\0"), None);
    assert_eq!(Reply::decode(b"fail\x009\0"), None);
    assert_eq!(Reply::decode(b"file\x009\0more\0"), None);
}
