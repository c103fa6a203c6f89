use super::{Offer, offer};
use crate::line::Cli;
use clap::CommandFactory;

fn offered(line: &str) -> Offer {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let mut root = Cli::command();
    root.build();
    offer(&root, &words)
}

fn words(line: &str) -> Vec<String> {
    match offered(line) {
        Offer::Words(words) => words.into_iter().map(|(word, _)| word).collect(),
        other => panic!("{line}: {other:?}"),
    }
}

/// Proves: LIFE-3 completions
#[test]
fn commands_and_options_are_completed() {
    assert_eq!(words("pl"), ["plan"]);
    assert_eq!(words("policy ch"), ["check"]);
    assert!(words("").contains(&"run".to_owned()) && !words("").contains(&"complete".to_owned()));
    assert_eq!(words("run --pres"), ["--preset"]);
    assert_eq!(words("run --quiet --pres"), ["--preset"]);
}

/// Proves: LIFE-3 completions
#[test]
fn presets_are_completed_in_every_form() {
    assert_eq!(words("run --preset stri"), ["strict"]);
    assert_eq!(words("plan --preset=stri"), ["--preset=strict"]);
    assert_eq!(words("run --preset = stri"), ["strict"], "as bash parts it");
    assert_eq!(words("completions z"), ["zsh"]);
}

/// Proves: LIFE-3 completions
#[test]
fn after_two_hyphens_another_commands_line_begins() {
    assert_eq!(offered("run -- "), Offer::Command(2));
    assert_eq!(offered("run --ro /x -- git comm"), Offer::Command(4));
    assert_eq!(offered("-- git comm"), Offer::Command(1));
    assert_eq!(offered("run git comm"), Offer::Command(1));
    assert_eq!(offered("run gi"), Offer::Command(1));
    assert_eq!(offered("run --env -- x"), Offer::Command(3), "the hyphens are no value");
}

#[test]
fn paths_are_left_to_the_shell() {
    assert_eq!(offered("run --ro "), Offer::Files);
    assert_eq!(offered("run --cwd /o"), Offer::Directories);
    assert_eq!(offered("policy check a"), Offer::Files);
    assert_eq!(words("run --hostname x"), [""; 0]);
}
