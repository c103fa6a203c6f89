use super::{is_within, link_stays_within, normal, order, quoted};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

#[test]
fn names_are_quoted_as_git_does() {
    let name = |bytes: &'static [u8]| quoted(Path::new(OsStr::from_bytes(bytes)));
    assert_eq!(name(b"src/main.rs"), "src/main.rs");
    assert_eq!(name(b"with blank"), "with blank");
    assert_eq!(name(b"a\nb\tc\"d\\e"), r#""a\nb\tc\"d\\e""#);
    assert_eq!(name(b"\x1b[2J\x7f"), r#""\033[2J\177""#);
    assert_eq!(name("f\u{fc}r".as_bytes()), r#""f\303\274r""#);
    assert_eq!(name(b"\xff"), r#""\377""#);
}

#[test]
fn what_a_person_types_stays_in_the_project() {
    let typed = |text: &str| normal(Path::new(text));
    assert_eq!(typed("./a/../b/"), Some(PathBuf::from("b")));
    assert_eq!(typed("."), Some(PathBuf::new()));
    assert_eq!(typed("../b"), None);
    assert_eq!(typed("/etc"), None);
}

#[test]
fn a_link_may_climb_only_within_the_tree_and_only_at_its_beginning() {
    let stays = |path: &str, target: &str| link_stays_within(Path::new(path), target.as_bytes());
    assert!(stays("a/b/link", "../../c"));
    assert!(stays("link", "a/b"));
    assert!(stays("a/link", ".."));
    assert!(!stays("link", ".."));
    assert!(!stays("a/b/link", "../../../c"));
    assert!(!stays("link", "/etc/passwd"));
    assert!(!stays("link", ""));
    // `up` may be a link to the top: `up/..` is then outside.
    assert!(!stays("a/b/link", "up/../x"));
}

#[test]
fn paths_are_ordered_by_their_names() {
    let mut names = ["a", "a/b", "a/b/c", "a-b", "a b/c", "ab", "b", "a/\u{1}", "\u{1}", "a/c"];
    let mut other = names;
    names.sort_by(|one, other| order(Path::new(one), Path::new(other)));
    other.sort_by(|one, other| Path::new(one).cmp(Path::new(other)));
    assert_eq!(names, other);
    for one in names {
        for other in names {
            let (one, other) = (Path::new(one), Path::new(other));
            assert_eq!(is_within(one, other), one.starts_with(other));
        }
        assert!(is_within(Path::new(one), Path::new("")));
    }
}
