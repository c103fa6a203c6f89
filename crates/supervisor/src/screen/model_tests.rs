use super::*;
use proptest::prelude::*;

const SIZE: Size = (6, 20);

impl Drawn<'_> {
    fn screen(&self) -> &vt100::Screen {
        self.0.parser.screen()
    }
}

fn shown(pieces: &[&[u8]]) -> Vec<String> {
    let mut model = Model::default();
    pieces.iter().for_each(|piece| model.take(piece, true, SIZE));
    let drawn = model.drawn(SIZE).unwrap();
    drawn.screen().rows(0, SIZE.1).map(|row| row.trim_end().to_owned()).collect()
}

#[test]
fn a_frame_of_line_drawing_letters_is_drawn_with_the_same_letters() {
    let mut model = Model::default();
    model.take(b"\x1b[?1049h\x1b[H\x1b(0lqk\x1b(B text\r\n\x1b)0\x0ex x\x0f x", true, SIZE);
    let drawn = String::from_utf8(model.drawn(SIZE).unwrap().contents()).unwrap();
    for part in ["\x1b(0\x1b[0mlqk", "\x1b(B\x1b[0m text", "\x1b(0\x1b[0mx x", "\x1b(B\x1b[0m x"] {
        assert!(drawn.contains(part), "{part:?}: {drawn:?}");
    }
}

#[test]
fn both_screens_are_known_by_every_number() {
    for (enter, leave) in [("?1049h", "?1049l"), ("?1047h", "?1047l"), ("?47h", "?47l")] {
        let enter = format!("\x1b[Hmain\x1b[{enter}\x1b[2J\x1b[Halt");
        assert_eq!(shown(&[enter.as_bytes()])[0], "alt");
        let leave = format!("\x1b[{leave}");
        assert_eq!(shown(&[enter.as_bytes(), leave.as_bytes()])[0], "main");
    }
}

#[test]
fn of_a_long_output_only_the_end_is_kept() {
    let mut model = Model::default();
    for line in 0..100_000 {
        model.take(format!("line {line}\r\n").as_bytes(), false, SIZE);
        assert!(model.waiting.len() <= BATCH + 16 && model.fed.is_none());
    }
    let rows: Vec<String> = model.drawn(SIZE).unwrap().screen().rows(0, SIZE.1).collect();
    assert_eq!(rows[..5], [95, 96, 97, 98, 99].map(|last| format!("line 999{last}")));
}

#[test]
fn a_screen_without_bounds_is_not_modelled() {
    let mut model = Model::default();
    model.take(b"text", true, (u16::MAX, u16::MAX));
    assert!(model.drawn((u16::MAX, u16::MAX)).is_none());
    assert!(model.waiting.is_empty());
}

proptest! {
    /// Whatever is written, the supervisor lives.
    #[test]
    fn nothing_that_is_written_breaks_the_model(
        pieces in proptest::collection::vec(
            (proptest::collection::vec(
                prop_oneof![
                    Just("\x1b[".to_owned()), Just("\x1b[?1049h".to_owned()), Just("\x1b[2;3r".to_owned()),
                    Just("漢".to_owned()), Just("\u{300}".to_owned()), Just("\x1b[99999X".to_owned()),
                    Just("\x1b[65535b".to_owned()), Just("\x1b[65535;65535H".to_owned()), Just("\x1b[?6h".to_owned()),
                    Just("\x1b[65535L".to_owned()), Just("\x1b[65535P".to_owned()), Just("\x1b[65535@".to_owned()),
                    Just("\x1b[?1049l".to_owned()), Just("\x1b7".to_owned()), Just("\x1b8".to_owned()),
                    Just("\x1bM\n".to_owned()), Just("\t\x08".to_owned()), ".{0,4}", "[0-9;?>]{1,3}[A-Za-z@`]",
                ],
                0..30,
            ), 1_u16..8, 1_u16..8),
            1..6,
        ),
    ) {
        let mut model = Model::default();
        let mut size = SIZE;
        for (words, rows, columns) in pieces {
            model.take(words.concat().as_bytes(), true, size);
            model.resize(size, (rows, columns));
            size = (rows, columns);
            let drawn = model.drawn(size).unwrap();
            let _ = (drawn.contents(), drawn.cursor(0), drawn.cursor(1));
        }
    }
}
