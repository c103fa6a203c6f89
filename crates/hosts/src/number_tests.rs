use super::*;

#[test]
fn parts_fill_what_is_left() {
    for (text, address) in [
        ("0", [0, 0, 0, 0]),
        ("1", [0, 0, 0, 1]),
        ("0x", [0, 0, 0, 0]),
        ("127.1", [127, 0, 0, 1]),
        ("127.0.1", [127, 0, 0, 1]),
        ("192.0.513", [192, 0, 2, 1]),
        ("192.513", [192, 0, 2, 1]),
        ("4294967295", [255, 255, 255, 255]),
        ("0377.0xff.65535", [255, 255, 255, 255]),
    ] {
        assert_eq!(parse_v4(text), Some(Ipv4Addr::from(address)), "{text}");
    }
}

#[test]
fn what_is_too_much_is_no_address() {
    for text in [
        "4294967296",
        "256.1",
        "1.16777216",
        "1.2.65536",
        "1.2.3.256",
        "1.2.3.4.5",
        "08",
        "1.0x1g",
        "1..2",
        "",
        "+1",
        "99999999999999999999",
        "0x+1",
    ] {
        assert_eq!(parse_v4(text), None, "{text}");
    }
}

#[test]
fn the_last_label_decides() {
    for number in ["1", "a.1", "09", "a.0x", "a.0Xfe", "1.2.3.4"] {
        assert!(ends_in_number(number), "{number}");
    }
    for name in ["a", "1.a", "0xg", "a.1a", "1e3", ""] {
        assert!(!ends_in_number(name), "{name}");
    }
}
