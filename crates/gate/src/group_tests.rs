use super::group;
use crate::offer::PathContext;
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn paths(texts: &[&str]) -> Vec<PathBuf> {
    texts.iter().map(PathBuf::from).collect()
}

fn grouped(touched: &[&str]) -> Vec<String> {
    let around = PathContext {
        home: Some(Path::new("/home/u")),
        mounted: &[],
        never: &[],
        secrets: &paths(&["/home/u/.ssh"]),
    };
    group(&paths(touched), &around).iter().map(|pattern| pattern.text().unwrap()).collect()
}

/// Proves: GATE-4 learned-groups
#[test]
fn many_files_become_their_directory_and_few_stay_files() {
    assert_eq!(grouped(&["/srv/d/a", "/srv/d/b"]), ["/srv/d/a", "/srv/d/b"]);
    assert_eq!(grouped(&["/srv/d/a", "/srv/d/b", "/srv/d/c", "/srv/e"]), ["/srv/d/**", "/srv/e"]);
    assert_eq!(grouped(&["/opt/k/a/1", "/opt/k/b/2", "/opt/k/3"]), ["/opt/k/**"]);
}

/// Proves: GATE-4 learned-groups
#[test]
fn many_directories_become_the_one_around_them() {
    let touched: Vec<String> = ["a", "b", "c"]
        .iter()
        .flat_map(|one| ["1", "2", "3"].map(|two| format!("/srv/lib/{one}/{two}")))
        .collect();
    let touched: Vec<&str> = touched.iter().map(String::as_str).collect();
    assert_eq!(grouped(&touched), ["/srv/lib/**"]);
}

/// Proves: GATE-4 learned-groups
#[test]
fn neither_the_home_directory_nor_a_secret_is_ever_given_as_a_whole() {
    assert_eq!(
        grouped(&["/home/u/a", "/home/u/b", "/home/u/c"]),
        ["/home/u/a", "/home/u/b", "/home/u/c"]
    );
    let keys = ["/home/u/.ssh/a", "/home/u/.ssh/b", "/home/u/.ssh/c"];
    assert_eq!(grouped(&keys), keys);
}

proptest! {
    #[test]
    fn everything_touched_is_matched_and_no_secret_but_those_touched(
        touched in prop::collection::vec("/home/u(/(a|b|c|\\.ssh)){1,4}", 1..20),
    ) {
        let secret = PathBuf::from("/home/u/.ssh");
        let around = PathContext {
            home: Some(Path::new("/home/u")), mounted: &[], never: &[],
            secrets: std::slice::from_ref(&secret),
        };
        let files: Vec<PathBuf> = touched.iter().map(PathBuf::from).collect();
        let patterns = group(&files, &around);
        for file in &files {
            prop_assert!(patterns.iter().any(|pattern| pattern.matches(file)), "{file:?}");
        }
        let never_touched = secret.join("untouched");
        prop_assert!(!patterns.iter().any(|pattern| pattern.matches(&never_touched)));
    }
}
