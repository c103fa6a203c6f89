use super::*;

#[test]
fn lengths_count_headers_and_not_the_padding() {
    let message = Message::new("a test", 0x1234, flags::CREATE, &[7])
        .text(3, "lo")
        .nested(5, |inner| inner.number(1, 0x0102_0304));
    let bytes = message.finish(9, true).unwrap();
    assert_eq!(bytes.len(), HEADER + 4 + 8 + 12);
    assert_eq!(bytes[..4], u32::try_from(bytes.len()).unwrap().to_ne_bytes());
    assert_eq!(bytes[4..6], 0x1234_u16.to_ne_bytes());
    let expected = flags::CREATE | flags::REQUEST | flags::ACK;
    assert_eq!(bytes[6..8], expected.to_ne_bytes());
    assert_eq!(bytes[8..12], 9_u32.to_ne_bytes());
    assert_eq!(bytes[20..22], 7_u16.to_ne_bytes(), "four of header, two letters, a zero");
    assert_eq!(&bytes[24..28], b"lo\0\0");
    assert_eq!(bytes[28..30], 12_u16.to_ne_bytes());
    assert_eq!(bytes[30..32], (5 | NESTED).to_ne_bytes());
    assert_eq!(bytes[36..], [1, 2, 3, 4]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let message = Message::new("a test", 1, 0, &[]).attribute(1, &vec![0; 70_000]);
    assert_eq!(message.finish(1, false).unwrap_err(), Errno::MSGSIZE);
}
