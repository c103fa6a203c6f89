use super::*;

fn call() -> Message {
    let mut message = Message::new(MessageKind::Call, 7);
    message.destination = Some("a.b".to_owned());
    message.path = Some("/a".to_owned());
    message.interface = Some("a.b.C".to_owned());
    message.member = Some("Do".to_owned());
    message.signature = "s".to_owned();
    let mut body = Writer::default();
    body.string("hi");
    message.body = body.bytes;
    message
}

/// Byte for byte, as the specification's section "Message Format" has it.
#[test]
fn the_shortest_call() {
    let mut message = Message::new(MessageKind::Call, 1);
    message.path = Some("/".to_owned());
    message.member = Some("M".to_owned());
    #[rustfmt::skip]
    let expected = [
        b'l', 1, 2, 1,  0, 0, 0, 0,  1, 0, 0, 0,  26, 0, 0, 0,
        1, 1, b'o', 0,  1, 0, 0, 0,  b'/', 0, 0, 0,  0, 0, 0, 0,
        3, 1, b's', 0,  1, 0, 0, 0,  b'M', 0, 0, 0,  0, 0, 0, 0,
    ];
    assert_eq!(message.bytes(), expected);
}

#[test]
fn what_is_written_is_read_again() {
    let bytes = call().bytes();
    let start: [u8; FIXED] = bytes[..FIXED].try_into().unwrap();
    assert_eq!(Message::length(&start).unwrap(), bytes.len());
    assert_eq!(Message::parse(&bytes).unwrap(), call());
    let mut answer = Message::new(MessageKind::Error, 9);
    answer.reply_to = Some(7);
    answer.error = Some("a.b.Error".to_owned());
    assert_eq!(Message::parse(&answer.bytes()).unwrap(), answer);
}

#[test]
fn arrays_count_from_their_first_element() {
    let mut writer = Writer::default();
    writer.array(8, |elements| {
        elements.align(8);
        elements.u32(5);
    });
    assert_eq!(writer.bytes, [4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0]);
    let mut empty = Writer::default();
    empty.array(8, |_| {});
    assert_eq!(empty.bytes, [0; 8]);
}

/// Every shortened message is refused, and none makes us read beyond it.
#[test]
fn a_cut_message_is_refused() {
    let bytes = call().bytes();
    let header = bytes.len() - call().body.len();
    for end in 0..header {
        assert!(Message::parse(&bytes[..end]).is_err(), "{end}");
    }
}

#[test]
fn a_changed_byte_never_panics() {
    let bytes = call().bytes();
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut changed = bytes.clone();
            changed[at] = value;
            if let Ok(message) = Message::parse(&changed) {
                let _ = Reader::new(&message.body).string();
            }
        }
    }
}

#[test]
fn lengths_beyond_reason_are_refused_before_anything_is_allocated() {
    let mut start = [0; FIXED];
    start[..4].copy_from_slice(&[b'l', 1, 0, 1]);
    assert_eq!(Message::length(&start).unwrap(), FIXED);
    for at in [4, 12] {
        let mut long = start;
        long[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(Message::length(&long).is_err());
    }
    start[0] = b'B';
    assert!(Message::length(&start).is_err());
}
