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
fn tabs_go_to_the_stops_that_were_set() {
    for (written, expected) in [
        (&b"\ta"[..], "        a"),
        (b"\x1b[4G\x1bH\r\ta\tb", "   a    b"),
        (b"\x1b[9G\x1b[g\r\ta", "                a"),
        (b"\x1b[3g\ta", "                   a"),
        (b"\x1b[3g\x1b[3G\x1bH\x1b[6G\x1bH\r\x1b[2Ia", "     a"),
        (b"\x1b[3g\x1b[3G\x1bH\x1b[6G\x1bH\x1b[10Gb\x1b[2Za", "  a      b"),
        (b"\x1b[10Gb\x1b[Za", "        ab"),
        (b"\x1b[3g\x1b[?5W\ta", "        a"),
        (b"\x1b[3g\x1bc\ta", "        a"),
        (b"\x1b[3g\x1b[3G\x1bH\x1b[?7l\r\ta", "  a"),
    ] {
        let row = &shown(&[b"\x1b[?1049h\x1b[H", written])[0];
        assert_eq!(row, expected, "{:?}", written.escape_ascii());
    }
}

#[test]
fn the_alignment_pattern_fills_the_screen() {
    let full = vec!["E".repeat(SIZE.1.into()); SIZE.0.into()];
    let enter = b"\x1b[?1049h\x1b[2;3r\x1b[?6h\x1b[1;31mtext";
    assert_eq!(shown(&[enter, b"\x1b#8"]), full);
    let then = shown(&[enter, b"\x1b#8", b"top\x1b[6;1Hend"]);
    assert!(then[0].starts_with("topEE") && then[5].starts_with("endEE"), "{then:?}");
    let mut model = Model::default();
    model.take(b"\x1b[?1049h\x1b[1;31m\x1b#8red", true, SIZE);
    let drawn = String::from_utf8(model.drawn(SIZE).unwrap().contents()).unwrap();
    assert!(drawn.contains("\x1b[0;1;31mred"), "{drawn:?}");
    assert!(drawn.contains("\x1b[0mEEE"), "{drawn:?}");
}

/// Each would take as long as the largest screen takes to be drawn.
#[test]
fn many_alignment_patterns_at_once_are_drawn_once() {
    let (size, started) = ((MAX_ROWS, MAX_COLUMNS), std::time::Instant::now());
    let mut model = Model::default();
    model.take(&b"\x1b#8".repeat(BATCH / 3 + 1), true, size);
    model.take(&b"\x1b[3g\x1b[999I\r".repeat(BATCH / 11 + 1), true, size);
    model.take(b"\x1b#8text\x1b#8te", true, size);
    let drawn = model.drawn(size).unwrap();
    let rows: Vec<String> = drawn.screen().rows(0, 4).collect();
    assert_eq!((rows[0].as_str(), rows[299].as_str()), ("teEE", "EEEE"));
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
}

/// Of what covers the screen again and again only the last is drawn, on either screen.
#[test]
fn what_is_erased_twice_is_erased_once_and_looks_the_same() {
    for (written, expected) in [
        (&b"one\x1b[2Jtwo\x1b[2J\x1b[Hthree"[..], ["three", ""]),
        (b"one\x1b[2J\x1b#8\x1b[2J\x1b[2;2Htwo", ["", " two"]),
        (b"one\x1b[2J\x1b[?47l\x1b[2J\x1b[Hmain\x1b[?47h", ["", ""]),
        (b"one\x1b[?47l\x1b[Hmain\x1b[2J\x1b[?47h\x1b[H1", ["1ne", ""]),
        (b"one\x1b[2J\x1bc\x1b[2J\x1b[Htwo", ["two", ""]),
    ] {
        let rows = shown(&[b"\x1b[?1049h\x1b[H", written]);
        assert_eq!(rows[..2], expected, "{:?}", written.escape_ascii());
    }
}

/// However few bytes change however much, a batch takes a bounded time, on the largest terminal, too.
///
/// Proves: GATE-11 screen-restored
#[test]
fn a_few_bytes_that_change_much_do_not_keep_the_supervisor_busy() {
    let size = (MAX_ROWS, MAX_COLUMNS);
    let margins = b"\x1b[?69h\x1b[2;999s\x1b[999;2H";
    for (before, sequence) in [
        (&b""[..], &b"\x1b[2J"[..]),
        (b"", b"\x1b[2J\x1b[?47h"),
        (b"", b"\x1b[H\x1b[J"),
        (b"", b"\x1b[999S"),
        (b"", b"\x1b[H\x1b[999L"),
        (b"", b"\x1b[?1049h"),
        (b"", b"a\x1b[65535b"),
        (b"", b"\x1bM"),
        (b"", b"\x1bc"),
        (b"", b"\x1b#8\x1b[?47h"),
        (margins, b"\x1b[999S"),
        (margins, b"\x1b[999@"),
        (margins, b"\n"),
    ] {
        let mut model = Model::default();
        model.take(&[b"\x1b[?1049h", before].concat(), true, size);
        let started = std::time::Instant::now();
        model.take(&sequence.repeat(BATCH / sequence.len() + 1), true, size);
        let took = started.elapsed();
        assert!(took.as_secs() < 30, "{}: {took:?}", sequence.escape_ascii());
        model.take(b"\x1bc\x1b[?1049h\x1b[Hafterwards", true, size);
        let drawn = model.drawn(size).unwrap();
        assert_eq!(drawn.screen().rows(0, 10).next().unwrap(), "afterwards");
    }
}

/// What a question draws again is bounded by the screen, whatever its cells look like: not by what a link is long.
#[test]
fn no_cell_takes_many_bytes_to_be_drawn_again() {
    const MAX_BYTES_A_CELL: usize = 160;
    let link = format!("\x1b]8;;https://{}\x1b\\", "x".repeat(4000));
    let padded = format!("\x1b[{}1m", "0".repeat(35));
    let heavy = "\x1b[1;2;3;4:3;5;7;9;11;53;38;2;255;255;255;48;2;255;255;255;58;2;255;255;255m";
    for (before, cell) in [
        (link.as_str(), "\x1b[1ma\x1b[mb"),
        (&padded, "\x1b[7ma\x1b[27mb"),
        (heavy, "\x1b[31ma\x1b[38;2;255;255;255mb"),
        ("\x1b[41m", "\x1b[41m\x1b[X\x1b[C\x1b[42m\x1b[X\x1b[C"),
    ] {
        let mut model = Model::default();
        let cells = usize::from(SIZE.0 * SIZE.1);
        let written = format!("\x1b[?1049h\x1b[H{before}{}", cell.repeat(cells / 2));
        model.take(written.as_bytes(), true, SIZE);
        let drawn = model.drawn(SIZE).unwrap().contents();
        let most = before.len() + 200 + cells * MAX_BYTES_A_CELL;
        assert!(drawn.len() <= most, "{} of {most} bytes for {cell:?}", drawn.len());
    }
}

/// As xterm does it ("Control Sequences": `DECSLRM`), which tmux and neovim use to scroll one of two windows.
///
/// Proves: GATE-11 screen-restored
#[test]
fn text_stays_between_its_side_margins() {
    const WINDOWS: &str =
        "\x1b[?1049h\x1b[H11111|aaaaa\r\n22222|bbbbb\r\n33333|ccccc\r\n44444|ddddd\x1b[1;4r";
    let margins = "\x1b[?69h\x1b[7;11s";
    for (written, expected) in [
        // Scrolling, in each way that there is.
        ("\x1b[4;7H\n", ["11111|bbbbb", "22222|ccccc", "33333|ddddd", "44444|"]),
        ("\x1b[4;7H\x1bD", ["11111|bbbbb", "22222|ccccc", "33333|ddddd", "44444|"]),
        ("\x1b[4;9H\r\nnew", ["11111|bbbbb", "22222|ccccc", "33333|ddddd", "44444|new"]),
        ("\x1b[4;3H\n", ["11111|aaaaa", "22222|bbbbb", "33333|ccccc", "44444|ddddd"]),
        ("\x1b[1;7H\x1bM", ["11111|", "22222|aaaaa", "33333|bbbbb", "44444|ccccc"]),
        ("\x1b[2S", ["11111|ccccc", "22222|ddddd", "33333|", "44444|"]),
        ("\x1b[2T", ["11111|", "22222|", "33333|aaaaa", "44444|bbbbb"]),
        ("\x1b[2;8H\x1b[Lx", ["11111|aaaaa", "22222|x", "33333|bbbbb", "44444|ccccc"]),
        ("\x1b[2;8H\x1b[M", ["11111|aaaaa", "22222|ccccc", "33333|ddddd", "44444|"]),
        ("\x1b[2;3H\x1b[M", ["11111|aaaaa", "22222|bbbbb", "33333|ccccc", "44444|ddddd"]),
        ("\x1b[2;3r\x1b[3;7H\n", ["11111|aaaaa", "22222|ccccc", "33333|", "44444|ddddd"]),
        // Characters and the cursor.
        ("\x1b[1;8H\x1b[2@", ["11111|a  aa", "22222|bbbbb", "33333|ccccc", "44444|ddddd"]),
        ("\x1b[1;8H\x1b[2P", ["11111|aaa", "22222|bbbbb", "33333|ccccc", "44444|ddddd"]),
        ("\x1b[1;8H\x1b[4hxy", ["11111|axyaa", "22222|bbbbb", "33333|ccccc", "44444|ddddd"]),
        ("\x1b[1;10Hwxyz", ["11111|aaawx", "22222|yzbbb", "33333|ccccc", "44444|ddddd"]),
        ("\x1b[1;10H\x1b[?7lwxyz", ["11111|aaawz", "22222|bbbbb", "33333|ccccc", "44444|ddddd"]),
        ("\x1b[1;10Hw漢", ["11111|aaawa", "22222|漢bbb", "33333|ccccc", "44444|ddddd"]),
        ("\x1b[1;9H\x1b[9Dx\x1b[9Cy", ["11111|xaaay", "22222|bbbbb", "33333|ccccc", "44444|ddddd"]),
        ("\x1b[1;8H\x08\x08x", ["11111|xaaaa", "22222|bbbbb", "33333|ccccc", "44444|ddddd"]),
        ("\x1b[1;7H\tx", ["11111|aaxaa", "22222|bbbbb", "33333|ccccc", "44444|ddddd"]),
        ("\x1b[?6h\x1b[2;2Hx", ["11111|aaaaa", "22222|bxbbb", "33333|ccccc", "44444|ddddd"]),
        ("\x1b[?6h\x1b[4;1H\nx", ["11111|bbbbb", "22222|ccccc", "33333|ddddd", "44444|x"]),
        // Without them, all of the row moves.
        ("\x1b[s\x1b[S", ["22222|bbbbb", "33333|ccccc", "44444|ddddd", ""]),
        ("\x1b[?69l\x1b[S", ["22222|bbbbb", "33333|ccccc", "44444|ddddd", ""]),
        ("\x1b[!p\x1b[r\x1b[6S\x1b[4Hx", ["", "", "", "x"]),
    ] {
        let rows = shown(&[WINDOWS.as_bytes(), margins.as_bytes(), written.as_bytes()]);
        assert_eq!(rows[..4], expected, "{written:?}");
    }
    let mut model = Model::default();
    let red = "\x1b[31m\x1b[4;7Hred\x1b[m\x1b[4;7H\nplain";
    model.take([WINDOWS, margins, red].concat().as_bytes(), true, SIZE);
    let drawn = String::from_utf8(model.drawn(SIZE).unwrap().contents()).unwrap();
    assert!(
        drawn.contains("\x1b[0;31mred\x1b(B\x1b[0mdd") && drawn.contains("|plain"),
        "{drawn:?}"
    );
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
                    Just("\x1bM\n".to_owned()), Just("\t\x08".to_owned()), Just("\x1bH".to_owned()), Just("\x1b#8".to_owned()), Just("\x1b[?69h\x1b[2;3s".to_owned()), ".{0,4}", "[0-9;?>]{1,3}[A-Za-z@`]",
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
