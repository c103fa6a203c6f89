use super::{Scanner, Token, numbers};
use proptest::prelude::*;

fn found(pieces: &[&[u8]]) -> Vec<String> {
    let mut scanner = Scanner::default();
    let mut all = Vec::new();
    for piece in pieces {
        scanner.scan(piece, |token| {
            all.push(match token {
                Token::Text(text) => format!("text {}", text.escape_ascii()),
                Token::Control(byte) => format!("control {byte}"),
                Token::Escape { intermediate, end } => {
                    let first = intermediate.map(char::from).map(String::from).unwrap_or_default();
                    format!("escape {first}{}", char::from(end))
                }
                Token::Sequence { body, end } => {
                    format!("sequence {}{}", body.escape_ascii(), char::from(end))
                }
                Token::Command(text) => format!("command {}", text.escape_ascii()),
            });
        });
    }
    all
}

#[test]
fn text_sequences_and_strings_are_told_apart() {
    assert_eq!(
        found(&[
            b"a\r\n\x1b[?25;1049hb\x1b(0q\x0e\x1b]4;1;red\x07\x1b]2;t\x1b\\\x1bPq\x07z\x1b\\c\x1b7"
        ]),
        [
            "text a\\r\\n",
            "sequence ?25;1049h",
            "text b",
            "escape (0",
            "text q",
            "control 14",
            "command 4;1;red",
            "command 2;t",
            "text c",
            "escape 7",
        ]
    );
}

#[test]
fn a_string_ends_where_a_terminal_ends_it() {
    assert_eq!(found(&[b"\x1b]2;a\x18b"]), ["text b"], "CAN");
    assert_eq!(found(&[b"\x1b]2;a\x1b[1mb"]), ["sequence 1m", "text b"], "another sequence");
    assert_eq!(found(&[b"\x1bP1\x1b7b"]), ["escape 7", "text b"]);
    assert_eq!(found(&[b"\x1b[1\x1b[2m"]), ["sequence 2m"]);
}

#[test]
fn what_is_too_long_is_skipped_as_a_whole() {
    let long = vec![b'a'; 5000];
    assert_eq!(found(&[b"\x1b]2;", &long, b"\x07b"]), ["text b"]);
    let long = vec![b'1'; 5000];
    assert_eq!(found(&[b"\x1b[", &long, b"mb"]), ["text b"]);
}

#[test]
fn numbers_that_are_left_out_are_zero() {
    assert_eq!(numbers(b"").collect::<Vec<_>>(), [0]);
    assert_eq!(numbers(b"1;;99999;4:3").collect::<Vec<_>>(), [1, 0, 65535, 4]);
}

proptest! {
    #[test]
    fn where_it_is_cut_makes_no_difference(
        written in proptest::collection::vec(
            prop_oneof![Just(0x1b_u8), Just(b'['), Just(b']'), Just(b'\\'), Just(7), Just(0x18), Just(b';'), any::<u8>()],
            0..60,
        ),
        cut in 0_usize..60,
    ) {
        let cut = cut.min(written.len());
        let joined = |tokens: Vec<String>| {
            let mut all: Vec<String> = Vec::new();
            for token in tokens {
                match (all.last_mut(), token.strip_prefix("text ")) {
                    (Some(last), Some(more)) if last.starts_with("text ") => last.push_str(more),
                    _ => all.push(token),
                }
            }
            all
        };
        let whole = joined(found(&[&written]));
        prop_assert_eq!(joined(found(&[&written[..cut], &written[cut..]])), whole);
    }
}

/// Sequences, strings and characters that a program may be in the middle of writing.
pub(crate) const WHOLE: [&str; 17] = [
    "\x1b[1;38;2;10;20;30m",
    "\x1b[?2004h",
    "\x1b[5;7H",
    "\x1b(0",
    "\x1b)0",
    "\x1b7",
    "\x1b[2 q",
    "\x1b]0;a title\x07",
    "\x1b]8;;https://example.org/\x1b\\",
    "\x1b]4;1;rgb:12/34/56\x1b\\",
    "\x1bP1$r0m\x1b\\",
    "\x1b_Ga=q;AAAA\x1b\\",
    "\x1b^private\x1b\\",
    "\x1bXstart\x1b\\",
    "é",
    "漢",
    "🙂",
];

#[test]
fn what_is_unfinished_is_known_at_every_byte() {
    for whole in WHOLE {
        for before in ["", "text", "\x1b[m", "漢"] {
            for cut in 1..whole.len() {
                let (head, tail) = whole.as_bytes().split_at(cut);
                let bytes = before.bytes().chain(head.iter().copied());
                let one_by_one: Vec<Vec<u8>> = bytes.map(|byte| vec![byte]).collect();
                for pieces in [vec![[before.as_bytes(), head].concat()], one_by_one] {
                    let mut scanner = Scanner::default();
                    pieces.iter().for_each(|piece| scanner.scan(piece, |_| {}));
                    assert_eq!(scanner.unfinished(), head, "{whole:?} at {cut}");
                    let next = [tail, b"and more\x1b[m"].concat();
                    let length = scanner.length_to_finish(&next);
                    assert_eq!(length, tail.len(), "{whole:?} at {cut}");
                    scanner.scan(&next[..length], |_| {});
                    assert!(scanner.unfinished().is_empty(), "{whole:?} at {cut}");
                }
            }
        }
    }
}

#[test]
fn what_never_ends_takes_no_more_memory_than_it_may() {
    let mut scanner = Scanner::default();
    scanner.scan(b"\x1b]52;c;", |_| {});
    for _ in 0..100 {
        scanner.scan(&[b'a'; 1000], |_| {});
    }
    assert_eq!(scanner.unfinished().len(), super::MAX_UNFINISHED_BYTES);
    assert!(scanner.unfinished().starts_with(b"\x1b]52;c;a"));
    assert_eq!(scanner.length_to_finish(&[b'a'; 50]), 50);
}

#[test]
fn bytes_that_are_no_text_are_not_waited_for() {
    for text in [&b"\xff"[..], b"\x80\x80", b"\xc0", b"\xe2\x82\x41", b"\xe2\x28"] {
        let mut scanner = Scanner::default();
        scanner.scan(text, |_| {});
        assert!(scanner.unfinished().is_empty(), "{:?}", text.escape_ascii());
    }
}
