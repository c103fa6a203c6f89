//! What is put back is judged by another terminal: everything is written to one model, with a question in the middle,
//! and to another without, and both must agree.

use super::*;
use std::num::NonZeroU16;

const SIZE: Size = (10, 40);
const QUESTION: &[u8] = b"\x1b[H\x1b[2J\x1b[48;2;9;9;9mquestion\x1b[8;1Hkeys";

fn terminal() -> vt100::Parser {
    vt100::Parser::new(NonZeroU16::new(SIZE.0).unwrap(), NonZeroU16::new(SIZE.1).unwrap(), 50)
}

/// What a terminal is in after this output, with and without a question before the last piece.
fn both(first: &[u8], then: &[u8]) -> (String, String) {
    let mut with = terminal();
    let mut screen = Screen::new(SIZE);
    with.process(first);
    screen.watch(first);
    let around = screen.surroundings();
    for piece in [&around.before, QUESTION, &around.after, then] {
        with.process(piece);
    }
    let mut without = terminal();
    without.process(first);
    without.process(then);
    (with.screen().state_formatted(), without.screen().state_formatted())
}

/// Proves: GATE-11 screen-restored
#[test]
fn everything_is_as_it_was_on_both_screens() {
    for first in [
        &b"$ one\r\n\x1b[1;31mtwo\r\n\x1b[42mthree"[..],
        b"inline\r\n\x1b[2Ahalf way up\x1b[5C\x1b[7m",
        b"\x1b[?25l\x1b[?2004h\x1b[?1002h\x1b[?1006h\x1b[?1h\x1b=hidden cursor",
        b"\x1b[3;6r\x1b[4;2Hin a region",
        b"\x1b[?1049h\x1b[Htop\x1b[5;5H\x1b[38;2;1;2;3mfull\x1b[48;5;20m screen",
        b"main\x1b[?1049h\x1b[2;8r\x1b[?6h\x1b[3;3Hin its origin",
        b"\x1b[?1049h\x1b[H0123456789012345678901234567890123456789",
    ] {
        for then in [&b""[..], b"more", b"\r\n\r\n\r\n\r\n\r\n\r\nmore\x1b[0m", b"\x1b[?1049lback"]
        {
            // Of a screen that was never entered, this takes back the cursor that the terminal keeps for the question.
            if then.starts_with(b"\x1b[?1049l") && !first.windows(8).any(|it| it == b"\x1b[?1049h")
            {
                continue;
            }
            let (with, without) = both(first, then);
            assert_eq!(with, without, "{:?} {:?}", first.escape_ascii(), then.escape_ascii());
        }
    }
}

/// A sequence that the inside does not end in time is begun again behind the question.
///
/// Proves: GATE-11 screen-restored, GATE-11 between-sequences
#[test]
fn a_sequence_that_a_question_cuts_off_is_still_whole() {
    let sequences = WHOLE_SEQUENCES.iter().filter(|whole| whole.starts_with('\x1b'));
    for whole in sequences {
        for screen in ["", "\x1b[?1049h\x1b[H"] {
            for cut in 1..whole.len() {
                let first = format!("{screen}before {}", &whole[..cut]);
                let then = format!("{}after", &whole[cut..]);
                let (with, without) = both(first.as_bytes(), then.as_bytes());
                assert_eq!(with, without, "{screen:?} {whole:?} at {cut}");
            }
        }
    }
}

fn around(written: &[u8]) -> (String, String) {
    let mut screen = Screen::new(SIZE);
    screen.watch(written);
    let around = screen.surroundings();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(around.before), text(around.after))
}

/// Proves: GATE-11 cannot-hide
#[test]
fn colours_that_were_changed_are_reset_and_come_back() {
    let (before, after) =
        around(b"\x1b]4;0;rgb:00/00/00;15;#000000\x07\x1b]10;black\x1b\\\x1b]11;#000\x07");
    for reset in ["\x1b]104\x1b\\", "\x1b]110\x1b\\", "\x1b]111\x1b\\", "\x1b]112\x1b\\"] {
        assert!(before.contains(reset), "{before:?}");
    }
    for set in [
        "\x1b]4;0;rgb:00/00/00\x1b\\",
        "\x1b]4;15;#000000\x1b\\",
        "\x1b]10;black\x1b\\",
        "\x1b]11;#000\x1b\\",
    ] {
        assert!(after.contains(set), "{after:?}");
    }
    let (before, after) = around("plain \u{9d}4;1;red\u{9c}".as_bytes());
    assert!(before.contains("\x1b]104\x1b\\") && !after.contains("\x1b]4"), "one character");
    let (before, _) = around(b"\x1b]4;1;?\x07\x1b]104\x07plain");
    assert!(before.contains("\x1b]104"), "asked for only");
    let (before, after) = around("plain text, \u{201d}quoted\u{201c}\x1b]2;title\x07".as_bytes());
    assert!(!before.contains("\x1b]1") && !after.contains("\x1b]1"), "a person's own colours stay");
}

/// Proves: GATE-11 cannot-hide
#[test]
fn whatever_was_written_the_question_starts_from_the_same_state() {
    for hidden in [
        &b"\x1b[8m"[..],
        b"\x1b[30;40m",
        b"\x1b[?5h",
        b"\x1b[13;14r",
        b"\x1b(0",
        b"\x1b)0\x0e",
        b"\x1b[?7l",
        b"\x1b[4h",
        b"\x1b[?6h",
        b"\x1b[?69h\x1b[3;4s",
        b"\x1b[?2026h",
        b"\x1bP",
        b"\x1b]2;",
        b"\x1b[38;5;",
        b"\x1b[?25l",
    ] {
        let (before, _) = around(hidden);
        assert!(before.starts_with("\x18\x1b\\"), "an open string ends first: {before:?}");
        for reset in [
            "\x1b[r",
            "\x1b[?5l",
            "\x1b[?6l",
            "\x1b[?69l",
            "\x1b[?7l",
            "\x1b[4l",
            "\x1b[?2026l",
            "\x1b(B",
            "\x0f",
            "\x1b[0m",
            "\x1b[?25h",
            "\x1b[?1003l",
            "\x1b[?2004h",
        ] {
            assert!(before.contains(reset), "{reset:?} after {:?}", hidden.escape_ascii());
        }
        let kept = before.find("\x1b[?1049h").unwrap();
        assert!(kept < before.find("\x1b[r").unwrap(), "the cursor is kept before it moves");
    }
}

/// Proves: GATE-11 screen-restored
#[test]
fn modes_that_the_model_does_not_know_come_back_too() {
    let (_, after) = around(
        b"\x1b[?5h\x1b[?7l\x1b[?1004h\x1b[4h\x1b(0\x0e\x1b[9;4:3;58:5:1;38;5;9;53m\x1b[>4;2m",
    );
    for set in ["\x1b[?5h", "\x1b[?1004h", "\x1b[4h", "\x1b(0", "\x0e", "\x1b[>4;2m"] {
        assert!(after.contains(set), "{set:?}: {after:?}");
    }
    assert!(!after.contains("\x1b[?7h"), "{after:?}");
    assert!(after.contains("\x1b[0;4:3;9;53;38;5;9;58:5:1m"), "{after:?}");
    let (_, after) = around(b"\x1b[1;31mred\x1b7\x1b[0m\x1b8");
    assert!(after.contains("\x1b[0;1;31m"), "{after:?}");
}

/// Proves: GATE-11 screen-restored
#[test]
fn margins_come_back_unless_the_alignment_pattern_removed_them() {
    let margins = b"\x1b[?69h\x1b[3;9s\x1b[2;6r".as_slice();
    for (screen, then, is_set) in [
        ("", "", true),
        ("\x1b[?1049h", "", true),
        ("", "\x1b#8", false),
        ("\x1b[?1049h", "\x1b#8", false),
    ] {
        let written = [screen.as_bytes(), margins, then.as_bytes()].concat();
        let (_, after) = around(&written);
        assert!(after.contains("\x1b[?69h"), "{after:?}");
        for set in ["\x1b[3;9s", "\x1b[2;6r"] {
            assert_eq!(after.contains(set), is_set, "{set:?} {after:?}");
        }
    }
}

/// The terminal keeps its tab stops, and nothing that a question writes may change them.
///
/// Proves: GATE-11 screen-restored
#[test]
fn a_question_leaves_the_tab_stops_alone() {
    for screen in ["", "\x1b[?1049h"] {
        let (before, after) = around(format!("{screen}\x1b[3g\x1b[5G\x1bH").as_bytes());
        for sequence in ["\x1bH", "\x1b[g", "\x1b[0g", "\x1b[3g", "\x1b[?5W", "\x1bc", "\t"] {
            for written in [&before, &after] {
                assert!(!written.contains(sequence), "{sequence:?}: {written:?}");
            }
        }
    }
}

#[test]
fn after_another_size_the_full_screen_is_put_back_for_it() {
    let mut screen = Screen::new(SIZE);
    screen.watch(b"\x1b[?1049h\x1b[Hfirst row\x1b[2;1Hsecond row");
    screen.resize((5, 20));
    let after = String::from_utf8(screen.surroundings().after).unwrap();
    assert!(after.contains("first row") && after.contains("second row"), "{after:?}");
}
