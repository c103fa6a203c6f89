use super::{CastError, CastHeader, CastKind, CastReader, CastWriter, SafeOutput};
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one.cast");
    (directory, path)
}

fn events(path: &std::path::Path) -> Vec<(CastKind, String)> {
    let mut reader = CastReader::open(path).unwrap();
    std::iter::from_fn(|| reader.next_event().unwrap()).map(|it| (it.kind, it.text)).collect()
}

/// Proves: LIFE-6 format
#[test]
fn what_is_written_is_read() {
    let (_directory, path) = place();
    let header = CastHeader::new(Some((100, 30)), "make test");
    let mut writer = CastWriter::create(&path, &header, 1 << 20).unwrap();
    writer.output(b"caf\xc3");
    writer.output(b"\xa9\x1b[1m\r\n");
    writer.input(b"x");
    writer.resize(90, 25);
    writer.marker("allowed /etc/hosts");
    writer.output(b"\xff");
    drop(writer);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(
        events(&path),
        [
            (CastKind::Output, "caf".to_owned()),
            (CastKind::Output, "é\u{1b}[1m\r\n".to_owned()),
            (CastKind::Input, "x".to_owned()),
            (CastKind::Resize, "90x25".to_owned()),
            (CastKind::Marker, "allowed /etc/hosts".to_owned()),
            (CastKind::Output, "\u{fffd}".to_owned()),
        ]
    );
    let text = fs::read_to_string(&path).unwrap();
    let header: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((&header["version"], &header["width"]), (&2.into(), &100.into()));
}

/// Proves: LIFE-6 limit
#[test]
fn a_recording_that_is_full_says_so_and_stays_within_its_limit() {
    let (_directory, path) = place();
    let mut writer = CastWriter::create(&path, &CastHeader::new(None, ""), 10_000).unwrap();
    for _ in 0..1000 {
        writer.output(&[b'x'; 100]);
    }
    drop(writer);
    assert!(fs::metadata(&path).unwrap().len() <= 10_000);
    let (kind, last) = events(&path).pop().unwrap();
    assert!(kind == CastKind::Marker && last.contains("limit of 10000 bytes"), "{last}");
}

/// Proves: LIFE-6 failure
#[test]
fn a_disk_that_is_full_is_told_once() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let path = PathBuf::from("/dev/full");
    assert!(CastWriter::begin(full, &path, &CastHeader::new(None, ""), 1 << 20).is_err());
    let (_directory, path) = place();
    let mut writer = CastWriter::create(&path, &CastHeader::new(None, ""), 1 << 20).unwrap();
    let read_only = fs::File::open(&path).unwrap();
    writer.file = Some(read_only);
    writer.output(b"x");
    writer.flush();
    assert!(writer.take_failure().unwrap().contains("the recording ends here"));
    writer.output(b"y");
    writer.flush();
    assert_eq!(writer.take_failure(), None);
}

#[test]
fn what_is_no_recording_is_refused() {
    let (_directory, path) = place();
    for text in ["", "x\n", "{\"version\":9,\"width\":1,\"height\":1}\n", "{}\n"] {
        fs::write(&path, text).unwrap();
        assert!(matches!(CastReader::open(&path), Err(CastError::NoHeader(_))), "{text}");
    }
    let header = "{\"version\":2,\"width\":80,\"height\":24}\n";
    fs::write(
        &path,
        format!("{header}[-1e308,\"o\",\"a\"]\n[1e308,\"o\",\"b\"]\n[0,\"z\",\"c\"]\n[1,"),
    )
    .unwrap();
    let mut reader = CastReader::open(&path).unwrap();
    let times: Vec<_> =
        std::iter::from_fn(|| reader.next_event().unwrap()).map(|it| it.time).collect();
    assert!(times.len() == 3 && times.is_sorted(), "{times:?}");
    fs::write(&path, format!("{header}[1]\n")).unwrap();
    let error = CastReader::open(&path).unwrap().next_event().unwrap_err();
    assert!(error.to_string().contains("line 2"), "{error}");
}

/// Proves: LIFE-6 hostile
#[test]
fn only_what_prints_moves_and_colours_passes() {
    let same = |text: &str| assert_eq!(SafeOutput::default().filter(text), text);
    same(
        "a\r\n\tb\x08 é 漢 \x1b[31;1mred\x1b[0m\x1b[2J\x1b[H\x1b[10;20H\x1b[K\x1b7\x1b8\x1b(0lqk\x1b(B",
    );
    same("\x1b[?1049h\x1b[?25l\x1b[1;20r\x1b[38;2;1;2;3mx\x1b[?1049l");
    let gone = |text: &str| assert_eq!(SafeOutput::default().filter(text), "", "{text:?}");
    for hostile in [
        "\x1b]52;c;ZXZpbA==\x07",
        "\x1b]0;title\x1b\\",
        "\x1b]8;;http://x\x1b\\",
        "\x1b]10;?\x07",
        "\x1bP+q544e\x1b\\",
        "\x1b_Gi=1;AAAA\x1b\\",
        "\x1b[c",
        "\x1b[>c",
        "\x1b[6n",
        "\x1b[?6n",
        "\x1b[18t",
        "\x1b[21t",
        "\x1b[?1000h",
        "\x1b[?1003;1006h",
        "\x1b[?2004h",
        "\x1b[?1004h",
        "\x1b[?1h",
        "\x1b=",
        "\x1b[>4;2m",
        "\x1b[>1u",
        "\x1b[?25;1000h",
        "\x1b[!p",
        "\x1b[20h",
        "\x1b[1;2;3;4;5T",
        "\x1b[99999999b",
        "\x1bZ",
        "\x1b#8",
        "\x05\x07\0",
        "\u{9b}6n".trim_end_matches("6n"),
        "\u{9d}",
    ] {
        gone(hostile);
    }
    // What would be the end of a sequence is text where none was begun.
    assert_eq!(SafeOutput::default().filter("\u{9b}6n"), "6n");
    let after = |text: &str| {
        let mut filter = SafeOutput::default();
        filter.filter(text);
        filter.end()
    };
    assert!(!after("plain").contains(['r', 'H']), "the cursor stays where it is");
    assert!(!after("plain").contains("[?6"));
    assert!(after("\x1b[2;5r").contains("\x1b[r") && after("\x1b[?6h").contains("\x1b[?6l"));
    assert!(after("\x1b[?1049h").contains("\x1b[?1049l"));
    let mut cut = SafeOutput::default();
    assert_eq!(cut.filter("x\x1b]52;c;") + &cut.filter("ZXZ\x07y"), "xy");
    assert_eq!(SafeOutput::default().filter("\x1b]0;a\x1b[31mb"), "\x1b[31mb");
}

proptest! {
    /// However it is cut, the same passes; and nothing passes that a terminal would answer.
    ///
    /// Proves: LIFE-6 hostile
    #[test]
    fn cutting_changes_nothing(text in "[\\x1b\\]\\[?;0-9a-zA-Z\\\\\\x07\\x18\\x00-\\x1f\u{80}-\u{a0}]{0,60}", at in 0..60_usize) {
        let whole = SafeOutput::default().filter(&text);
        let mut filter = SafeOutput::default();
        let at = text.char_indices().map(|(index, _)| index).nth(at).unwrap_or(text.len());
        let parts = filter.filter(&text[..at]) + &filter.filter(&text[at..]);
        prop_assert_eq!(&whole, &parts);
        let again = SafeOutput::default().filter(&whole);
        prop_assert_eq!(&again, &whole, "what passed passes");
        let asks = ["\x1b]", "\x1bP", "\x1b_", "\x07"].iter().any(|it| whole.contains(it));
        let controls = whole.chars().any(|it| (128..160).contains(&u32::from(it)));
        prop_assert!(!asks && !controls, "{:?}", whole);
    }
}
