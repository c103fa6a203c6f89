use super::{Approve, Listing};
use clap::Parser;
use palisade_ask::sessions::Sessions;
use palisade_ask::{Answer, Lifetime, Scope, Store};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    approve: Approve,
}

fn parse(words: &[&str]) -> Result<Approve, clap::Error> {
    let words = std::iter::once(&"approve").chain(words);
    Line::try_parse_from(words).map(|line| line.approve)
}

fn answer(words: &[&str]) -> Answer {
    let (address, answer) = parse(words).unwrap().answer().unwrap().unwrap();
    assert_eq!(address.to_string(), "3");
    answer
}

/// Proves: GATE-4 once, GATE-4 session, GATE-4 always, GATE-4 tree, GATE-4 stores
#[test]
fn options_make_an_answer() {
    let allow = |scope, lifetime| Answer::Allow { scope, lifetime };
    let table: &[(&[&str], Answer)] = &[
        (&["--yes", "3"], allow(Scope::File, Lifetime::Once)),
        (&["--yes", "3", "--once"], allow(Scope::File, Lifetime::Once)),
        (&["--yes", "3", "--session"], allow(Scope::File, Lifetime::Session)),
        (&["--yes", "3", "--always"], allow(Scope::File, Lifetime::Always(Store::User))),
        (&["--yes", "3", "--directory"], allow(Scope::Directory, Lifetime::Session)),
        (
            &["--yes", "3", "--directory", "--always", "--store", "project"],
            allow(Scope::Directory, Lifetime::Always(Store::Project)),
        ),
        (&["--no", "3"], Answer::Deny { lifetime: Lifetime::Session }),
        (&["--no", "3", "--once"], Answer::Deny { lifetime: Lifetime::Once }),
        (
            &["--no", "3", "--always", "--store", "organisation"],
            Answer::Deny { lifetime: Lifetime::Always(Store::Organisation) },
        ),
    ];
    for (words, expected) in table {
        assert_eq!(answer(words), *expected, "{words:?}");
    }
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    for words in [
        &["--yes", "3", "--no", "4"][..],
        &["--yes", "3", "--once", "--always"],
        &["--yes", "3", "--directory", "--once"],
        &["--no", "3", "--directory"],
        &["--yes", "3", "--store", "user"],
        &["--yes", "3", "--json"],
        &["--no", "3", "--secret"],
        &["--secret"],
        &["--yes", "3", "--secret", "--directory"],
        &["--watch"],
        &["--json", "--always"],
        &["--yes", "three"],
        &["--yes", "3", "--always", "--store", "everybody"],
    ] {
        assert!(parse(words).is_err(), "{words:?}");
    }
    assert!(parse(&["--always"]).unwrap().answer().is_err());
    assert_eq!(parse(&["--json", "--watch"]).unwrap().answer().unwrap(), None);
}

#[test]
fn no_session_is_an_empty_list() {
    let directory = tempfile::tempdir().unwrap();
    let mut sessions = Sessions::new(&directory.path().join("none"), "test");
    sessions.refresh().unwrap();
    let line = palisade_ask::to_line(&Listing::of(&sessions)).unwrap();
    assert_eq!(line, "{\"sessions\":[],\"questions\":[]}\n");
}
