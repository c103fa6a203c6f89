use super::*;

#[test]
fn every_message_comes_back_as_it_was() {
    let executable = b"/usr/bin/\xff\n\x1f".to_vec();
    for message in [
        Message::Blocked(Blocked {
            number: 165,
            arguments: [0, 1, u64::MAX, 3, 4, 5],
            pid: 77,
            executable: executable.clone(),
            errno: 1,
            suspicious: true,
        }),
        Message::Protected(Protected {
            call: "renameat2".into(),
            path: b"/p/.git/hooks/pre-commit".to_vec(),
            rule: "git hooks".into(),
            why: "git runs them".into(),
            pid: 3,
            executable: executable.clone(),
        }),
        Message::NotExecuted(NotExecuted {
            call: "execve".into(),
            path: b"/bin/echo".to_vec(),
            rule: "process.allowExec".into(),
            pid: 4,
            executable,
        }),
        Message::Socket { path: b"/p/s".to_vec(), pid: 9 },
        Message::Staging { is_open: true },
        Message::Staging { is_open: false },
        Message::Busy { tree: b"/p".to_vec() },
        Message::Lost { count: 12, suspicious: 3 },
        Message::Failed("setns: EPERM".into()),
    ] {
        assert_eq!(Message::decode(&message.encode()), Some(message));
    }
}

#[test]
fn what_is_cut_or_foreign_is_no_message() {
    let whole = Message::Lost { count: 12, suspicious: 3 }.encode();
    assert_eq!(Message::decode(&whole[..whole.len() - 1]), None);
    assert_eq!(Message::decode(b""), None);
    assert_eq!(Message::decode(b"lost\0many\0"), None);
    assert_eq!(Message::decode(b"lost\x0012\x003\0more\0"), None);
}

#[test]
fn no_field_makes_a_message_too_long() {
    let long = vec![b'x'; 1 << 20];
    let message = Message::Protected(Protected {
        call: String::from_utf8(long.clone()).unwrap(),
        path: long.clone(),
        rule: String::from_utf8(long.clone()).unwrap(),
        why: String::from_utf8(long.clone()).unwrap(),
        pid: u32::MAX,
        executable: long,
    });
    let packet = message.encode();
    assert!(packet.len() < LONGEST_MESSAGE, "{}", packet.len());
    assert!(Message::decode(&packet).is_some());
}
