use super::{bytes, is_deceptive, json, quoted, shell_word, text};
use proptest::prelude::*;

/// Proves: AUD-2 escaped-text
#[test]
fn what_a_terminal_acts_on_is_spelt_out() {
    let table = [
        ("plain text, ümläut, 漢字, 🦀", "plain text, ümläut, 漢字, 🦀"),
        ("two\nlines\r\tand a tab", "two\\nlines\\r\\tand a tab"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]52;c;ZXZpbA==\x07", "\\x1b]52;c;ZXZpbA==\\x07"),
        ("\u{9b}31m C1 control", "\\u{9b}31m C1 control"),
        ("\x7f", "\\x7f"),
        ("gnp.\u{202e}exe", "gnp.\\u{202e}exe"),
        ("\u{2066}isolate\u{2069}", "\\u{2066}isolate\\u{2069}"),
        ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
        ("tag\u{e0041}", "tag\\u{e0041}"),
        ("line\u{2028}separator", "line\\u{2028}separator"),
        // Without doubling, this could not be told from a real escape character.
        ("literal \\x1b", "literal \\\\x1b"),
    ];
    for (untrusted, shown) in table {
        assert_eq!(text(untrusted), shown);
        assert_eq!(bytes(untrusted.as_bytes()), shown);
    }
}

#[test]
fn bytes_that_are_not_utf8_are_spelt_out() {
    assert_eq!(bytes(b"/tmp/\xff\xfe\x1b"), "/tmp/\\xff\\xfe\\x1b");
}

#[test]
fn one_word_does_not_look_like_two() {
    assert_eq!(quoted("-O2"), "-O2");
    assert_eq!(quoted("a b"), "'a b'");
    assert_eq!(quoted(""), "''");
    assert_eq!(quoted("it's"), "'it'\\''s'");
    assert_eq!(quoted("a\nb"), "a\\nb");
}

#[test]
fn a_word_to_copy_is_quoted_where_a_shell_would_read_it_otherwise() {
    for plain in ["/srv/data/x", "~/data/x", "example.org:443", "a@b%c"] {
        assert_eq!(shell_word(plain), plain);
    }
    assert_eq!(shell_word("/srv/**"), "'/srv/**'");
    assert_eq!(shell_word("~/my data"), "'~/my data'");
    assert_eq!(shell_word("a~b"), "'a~b'");
    assert_eq!(shell_word("it's"), "'it'\\''s'");
    assert_eq!(shell_word(""), "''");
}

#[test]
fn json_keeps_its_meaning() {
    let value = serde_json::json!({ "pa\u{202e}th": "a\u{9b}\u{7f}\u{e0041}\nb\u{200b}" });
    let escaped = json(value.to_string());
    assert!(escaped.is_ascii() && !escaped.contains('\x7f'), "{escaped}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
}

proptest! {
    /// Proves: AUD-2 escaped-text
    #[test]
    fn nothing_deceptive_survives(untrusted in any::<String>()) {
        prop_assert!(!text(&untrusted).chars().any(is_deceptive));
        prop_assert!(!bytes(untrusted.as_bytes()).chars().any(is_deceptive));
        let written = serde_json::to_string(&untrusted).unwrap();
        let escaped = json(written);
        prop_assert!(!escaped.chars().any(is_deceptive));
        prop_assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), untrusted);
    }

    #[test]
    fn two_texts_never_look_the_same(a in "[\\\\nx\u{1b}\n]{0,4}", b in "[\\\\nx\u{1b}\n]{0,4}") {
        prop_assert_eq!(a == b, text(&a) == text(&b));
    }
}
