use super::{Pattern, PatternError};
use proptest::prelude::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

fn parse(text: &str) -> Pattern {
    Pattern::parse(text, Some(Path::new("/home/u"))).unwrap()
}

/// Proves: GATE-4 rule-patterns
#[test]
fn a_file_a_tree_and_the_home_directory() {
    assert_eq!(parse("/x/y"), Pattern::Exact("/x/y".into()));
    assert_eq!(parse("/x/y/"), Pattern::Tree("/x/y".into()));
    assert_eq!(parse("/x/y/**"), Pattern::Tree("/x/y".into()));
    assert_eq!(parse("/x//y"), Pattern::Exact("/x/y".into()));
    assert_eq!(parse("/"), Pattern::Tree("/".into()));
    assert_eq!(parse("~/notes"), Pattern::Exact("/home/u/notes".into()));
    assert_eq!(parse("~/"), Pattern::Tree("/home/u".into()));
    assert!(parse("~/*.txt").matches(Path::new("/home/u/a.txt")));
    assert!(parse("/x/y/").matches(Path::new("/x/y")));
    assert!(!parse("/x/y/").matches(Path::new("/x/yz")));
}

/// Proves: GATE-4 rule-patterns
#[test]
fn a_home_directory_is_taken_literally() {
    let pattern = Pattern::parse("~/a", Some(Path::new("/home/[u]*"))).unwrap();
    assert_eq!(pattern, Pattern::Exact("/home/[u]*/a".into()));
}

#[test]
fn relative_paths_are_refused() {
    for text in ["x", "./x", "~x", "~", ""] {
        assert_eq!(Pattern::check(text), Err(PatternError::NotAbsolute), "{text}");
    }
    assert_eq!(Pattern::parse("~/x", None), Err(PatternError::NoHome));
}

#[test]
fn what_cannot_be_written_has_no_text() {
    let path = PathBuf::from(OsStr::from_bytes(b"/x/\xff"));
    assert_eq!(Pattern::Exact(path).text(), None);
    assert_eq!(Pattern::Exact("/".into()).text(), None);
    assert_eq!(Pattern::Tree("/".into()).text().as_deref(), Some("/**"));
}

proptest! {
    /// Proves: POL-5 save
    #[test]
    fn a_written_path_is_read_as_itself(names in prop::collection::vec("[a*?\\[\\]{}\\\\ #:é]{1,6}", 1..4)) {
        let path = PathBuf::from(format!("/{}", names.join("/")));
        for pattern in [Pattern::Exact(path.clone()), Pattern::Tree(path)] {
            let text = pattern.text().unwrap();
            prop_assert_eq!(Pattern::parse(&text, None).unwrap(), pattern);
        }
    }
}
