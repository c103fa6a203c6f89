use super::{Glob, GlobError, Parsed, parse};
use globset::GlobBuilder;
use proptest::prelude::*;

fn glob(text: &str) -> Glob {
    match parse(text.as_bytes()) {
        Ok(Parsed::Glob(glob)) => glob,
        Ok(_) => panic!("{text} is no glob"),
        Err(error) => panic!("{text}: {error}"),
    }
}

fn matches(text: &str, path: &str) -> bool {
    glob(text).matches(path.as_bytes())
}

/// Proves: GATE-4 rule-patterns
#[test]
fn a_star_stays_within_one_name_and_two_cross_directories() {
    assert!(matches("/x/*.h", "/x/a.h"));
    assert!(matches("/x/*.h", "/x/.h"));
    assert!(!matches("/x/*.h", "/x/y/a.h"));
    assert!(!matches("/x/*.h", "/x/a.hh"));
    assert!(!matches("/x/*.h", "/xy/a.h"));
    assert!(matches("/x/**/y", "/x/y"));
    assert!(matches("/x/**/y", "/x/a/b/y"));
    assert!(!matches("/x/**/y", "/x/a/b/y/z"));
    assert!(matches("/x/*/lib/**", "/x/a/lib"));
    assert!(matches("/x/*/lib/**", "/x/a/lib/b/c"));
    assert!(!matches("/x/*/lib/**", "/x/lib/a"));
    assert!(matches("/**/a/**/b", "/a/a/c/b/b"));
    assert!(!matches("/**/a/**/b", "/b/b/a"));
}

#[test]
fn single_characters() {
    assert!(matches("/x/a?c", "/x/abc"));
    assert!(matches("/x/a?c", "/x/aéc"));
    assert!(!matches("/x/a?c", "/x/ac"));
    assert!(matches("/x/[a-c]", "/x/b"));
    assert!(!matches("/x/[!a-c]", "/x/b"));
    assert!(matches("/x/[!a-c]", "/x/é"));
    assert!(matches("/x/[]-]", "/x/]"));
    assert!(matches("/x/[]-]", "/x/-"));
    assert!(matches("/x/\\**", "/x/*a"));
    assert!(!matches("/x/\\**", "/x/a"));
    assert!(glob("/x/?").matches(b"/x/\xff"));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let refused = |text: &str| match parse(text.as_bytes()) {
        Err(error) => error,
        Ok(_) => panic!("{text} was taken"),
    };
    assert_eq!(refused("/x/a**"), GlobError::StarsInName);
    assert_eq!(refused("/x/[ab"), GlobError::OpenClass);
    assert_eq!(refused("/x/[a/b]"), GlobError::OpenClass);
    assert_eq!(refused("/x/[b-a]"), GlobError::Range);
    assert_eq!(refused("/x/[é]"), GlobError::NotAscii);
    assert_eq!(refused("/x/{a,b}"), GlobError::Braces);
    assert_eq!(refused("/x/a\\"), GlobError::Backslash);
    assert_eq!(refused("/x/../y*"), GlobError::Dots);
    assert_eq!(refused(&format!("/{}", "x".repeat(5000))), GlobError::TooLong);
}

/// A pattern made to be slow is not.
#[test]
fn stars_do_not_blow_up() {
    let pattern = format!("/x/{}b", "*a".repeat(100));
    let path = format!("/x/{}", "a".repeat(250));
    assert!(!matches(&pattern, &path));
    let pattern = format!("/{}b", "**/a/".repeat(100));
    let path = "/a".repeat(1000);
    assert!(!matches(&pattern, &path));
}

fn pattern_text() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "a", "b", "ab", "*", "a*", "*b", "*a*", "?", "a?", "[ab]", "[!a]b", "**", "\\*",
    ]);
    prop::collection::vec(name, 1..6).prop_map(|names| format!("/{}", names.join("/")))
}

fn path_text() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "ab", "ba", "aab", "c", "*"]);
    prop::collection::vec(name, 1..7).prop_map(|names| format!("/{}", names.join("/")))
}

proptest! {
    /// The same as a library that many know, but for `/x/**`, which here means `/x` too.
    #[test]
    fn agrees_with_globset(text in pattern_text(), path in path_text()) {
        let other = |text: &str| {
            let built = GlobBuilder::new(text).literal_separator(true).build().unwrap();
            built.compile_matcher()
        };
        let mut expected = other(&text).is_match(&path);
        let mut shorter = text.as_str();
        while let Some(top) = shorter.strip_suffix("/**") {
            shorter = top;
            expected |= top.is_empty() || other(top).is_match(&path);
        }
        let found = match parse(text.as_bytes()).unwrap() {
            Parsed::Glob(glob) => glob.matches(path.as_bytes()),
            Parsed::Tree(top) => top == b"/" || path == String::from_utf8_lossy(&top)
                || path.as_bytes().starts_with(&[&top[..], b"/"].concat()),
            Parsed::Path(exact) => exact == path.as_bytes(),
        };
        prop_assert_eq!(found, expected, "{} {}", text, path);
    }

    #[test]
    fn its_text_is_read_as_the_same_again(text in pattern_text()) {
        if let Ok(Parsed::Glob(glob)) = parse(text.as_bytes()) {
            let again = parse(&glob.text());
            prop_assert!(matches!(again, Ok(Parsed::Glob(same)) if same == glob));
        }
    }

    #[test]
    fn no_text_makes_it_fall_over(text in "[/a*?\\[\\]!\\\\{}^.-]{0,40}", path in path_text()) {
        if let Ok(Parsed::Glob(glob)) = parse(text.as_bytes()) {
            glob.matches(path.as_bytes());
            prop_assert!(parse(&glob.text()).is_ok());
        }
    }
}
