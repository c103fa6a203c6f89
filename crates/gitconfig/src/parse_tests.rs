use super::*;
use proptest::prelude::*;
use proptest::sample::select;
use std::process::Command;
use std::sync::LazyLock;

fn entries(text: &str) -> Vec<(String, Option<String>)> {
    let text_of = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let entries = parse(text.as_bytes()).unwrap().into_iter();
    entries.map(|entry| (text_of(entry.key), entry.value.map(text_of))).collect()
}

fn one(text: &str) -> (String, Option<String>) {
    let mut entries = entries(text);
    assert_eq!(entries.len(), 1, "{text:?}");
    entries.remove(0)
}

#[test]
fn every_form_of_a_setting_is_read() {
    for (text, key, value) in [
        ("[Core]\n\tBare = false\n", "core.bare", Some("false")),
        ("[core] bare = false", "core.bare", Some("false")),
        ("[core]bare", "core.bare", None),
        ("[core]bare=", "core.bare", Some("")),
        ("\u{feff}[core]\r\nbare = x\r\n", "core.bare", Some("x")),
        ("[a \"B \\\" \\c\"] d = e", "a.B \" c.d", Some("e")),
        ("[a.B] d = e", "a.b.d", Some("e")),
        ("[a.B \"C\"] d = e", "a.b.C.d", Some("e")),
        ("[a]\n# c\n; d = e\nb = c # d\n", "a.b", Some("c")),
        ("[a] b = \"c # d\" ; e", "a.b", Some("c # d")),
        ("[a] b = c \\\n  d", "a.b", Some("c   d")),
        ("[a] b = \"  c  \"  ", "a.b", Some("  c  ")),
        ("[a] b = c\\td\\n\\\\\\\"", "a.b", Some("c\td\n\\\"")),
        ("b = c", "b", Some("c")),
    ] {
        assert_eq!(one(text), (key.to_owned(), value.map(str::to_owned)), "{text:?}");
    }
    let two = entries("[a]b=c\n[d]e=f");
    assert_eq!(two.len(), 2);
    assert_eq!(parse(b"[a]\nb = c\n\nd = e\n").unwrap()[1].line, 4);
}

#[test]
fn what_git_refuses_is_refused() {
    for text in [
        "[a\nb = c",
        "[a \"b\n\"]",
        "[a b]",
        "[]",
        "[a] 1 = 2",
        "[a] b = \"c\n",
        "[a] b = \\x",
        "[a] b c",
        "[a] b # c",
        "]",
    ] {
        assert!(parse(text.as_bytes()).is_err(), "{text:?}");
    }
    assert_eq!(parse(b"[a]\nb = c\0d").unwrap_err().line, 2);
}

#[test]
fn what_stands_before_an_error_is_read() {
    for (text, expected) in [
        ("[a] b = c\n[d", &["a.b"][..]),
        ("[a] b = c\nd = \"e\n", &["a.b"]),
        ("[a] b = c\n\0\nd = e\n", &["a.b"]),
        ("[a] # \0\nb = c\n", &["a.b"]),
        ("[a \"b\0\"] c = d\n", &["a.b"]),
        ("]\n[a] b = c\n", &[]),
    ] {
        let keys: Vec<_> = beginning_of(text.as_bytes()).into_iter().map(|it| it.key).collect();
        assert_eq!(keys, expected.iter().map(|key| key.as_bytes()).collect::<Vec<_>>(), "{text:?}");
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let words = [
        "[",
        "]",
        "\"",
        "\\",
        "#",
        ";",
        "=",
        " ",
        "\t",
        "\n",
        "\r\n",
        "\r",
        ".",
        "-",
        "a",
        "B",
        "core",
        "[core]",
        "[a \"B c\"]",
        "[x.Y]",
        "key",
        "value",
        "\\\n",
        "\\n",
        "\\\"",
        "é",
        "\u{feff}",
        "[a]\n",
        "\nk = v\n",
        "[r \"o\\\\\"]",
        "1",
        "\0",
        "#\0\n",
        "[a \"b\0c\"]",
    ];
    proptest::collection::vec(select(words.to_vec()), 0..14).prop_map(|words| words.concat())
}

/// What git itself sees in a file, and whether it reads it to the end.
fn seen_by_git(text: &str) -> (Vec<u8>, bool) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config");
    std::fs::write(&file, text).unwrap();
    let output = Command::new("git")
        .args(["config", "--list", "-z", "--file"])
        .arg(&file)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .current_dir(dir.path())
        .output()
        .expect("git");
    (output.stdout, output.status.success())
}

fn as_git_prints(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in entries {
        out.extend(&entry.key);
        if let Some(value) = &entry.value {
            out.push(b'\n');
            out.extend(value);
        }
        out.push(0);
    }
    out
}

/// Before 2.45, git read every white space within a value as a blank.
static GIT_KEEPS_TABS: LazyLock<bool> =
    LazyLock::new(|| seen_by_git("[a]\nb = x\ty").0.contains(&b'\t'));

/// What can be compared with the git that is installed.
fn comparable(printed: &[u8]) -> Vec<u8> {
    let is_blank = |byte: &u8| !*GIT_KEEPS_TABS && matches!(byte, b'\t' | b'\r' | 0x0b | 0x0c);
    printed.iter().map(|byte| if is_blank(byte) { b' ' } else { *byte }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves: FS-9 git-parser
    #[test]
    fn git_sees_exactly_what_is_seen_here(text in pieces()) {
        let (there, to_the_end) = seen_by_git(&text);
        let there = comparable(&there);
        let here = |entries: &[Entry]| comparable(&as_git_prints(entries));
        prop_assert_eq!(here(&beginning_of(text.as_bytes())), there.clone(), "{:?}", text);
        match parse(text.as_bytes()) {
            Ok(entries) => {
                prop_assert!(to_the_end, "git refuses {:?}", text);
                prop_assert_eq!(here(&entries), there, "{:?}", text);
            }
            Err(_) => prop_assert!(!to_the_end || text.contains('\0'), "git reads {:?}", text),
        }
    }
}
