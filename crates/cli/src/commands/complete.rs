//! `sandbox completions`: scripts for shells, which ask `sandbox complete` for the words that fit.
//!
//! The scripts know nothing of options: those come from the one definition of each, and presets and sessions from
//! where they are. Nothing is changed here, and a mistake in the line is no error: there is just nothing to offer.

use crate::output;
use clap::{Arg, Args, Command, ValueEnum};
use palisade_record::escape;
use palisade_session::quarantine::{self, QuarantineEntry};
use palisade_session::sessions::{self, SessionRecord};
use palisade_session::stores::{SavedRule, Stores};
use palisade_session::{AppDirs, Caller, runs};
use std::process::ExitCode;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sandbox completions bash > ~/.local/share/bash-completion/completions/sandbox
  sandbox completions zsh > ~/.zfunc/_sandbox      a directory of fpath
  sandbox completions fish > ~/.config/fish/completions/sandbox.fish")]
pub(crate) struct Completions {
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Completions {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        output::print(match self.shell {
            Shell::Bash => include_str!("../../../../completions/sandbox.bash"),
            Shell::Zsh => include_str!("../../../../completions/_sandbox"),
            Shell::Fish => include_str!("../../../../completions/sandbox.fish"),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Args, Debug)]
pub(crate) struct Complete {
    /// The words after `sandbox` up to the cursor, the last of which is to be completed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl Complete {
    /// `root` is the whole command line, whose words are offered.
    pub(crate) fn execute(self, mut root: Command) -> anyhow::Result<ExitCode> {
        root.build();
        output::print(&offer(&root, &self.words).told())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What fits in a place.
#[derive(Debug, PartialEq, Eq)]
enum Offer {
    /// Each with what it means.
    Words(Vec<(String, String)>),
    Files,
    Directories,
    /// Another command's line begins at the word with this index.
    Command(usize),
}

impl Offer {
    /// The kind on the first line, then a word a line, with what it means behind a tab.
    fn told(&self) -> String {
        match self {
            Self::Files => "files\n".to_owned(),
            Self::Directories => "directories\n".to_owned(),
            Self::Command(index) => format!("command {index}\n"),
            Self::Words(words) => {
                let lines = words.iter().map(|(word, about)| format!("{word}\t{about}\n"));
                std::iter::once("words\n".to_owned()).chain(lines).collect()
            }
        }
    }
}

fn offer(root: &Command, words: &[String]) -> Offer {
    let Some((current, before)) = words.split_last() else { return Offer::Words(Vec::new()) };
    let mut command = root;
    let mut positionals = 0;
    let mut pending: Option<&Arg> = None;
    for (index, word) in before.iter().enumerate() {
        // bash parts `--preset=x` at the sign.
        if word == "=" {
            continue;
        }
        if pending.take().is_some() {
            continue;
        }
        if word == "--" {
            if command.get_name() == root.get_name() || takes_command(command, usize::MAX) {
                return Offer::Command(index + 1);
            }
        } else if word.starts_with('-') && word.len() > 1 {
            pending = option(command, word).filter(|_| !word.contains('='));
        } else if let Some(found) = command.find_subcommand(word).filter(|_| positionals == 0) {
            command = found;
        } else if takes_command(command, positionals) {
            return Offer::Command(index);
        } else {
            positionals += 1;
        }
    }
    if let Some(option) = pending {
        let typed = if current == "=" { "" } else { current };
        return value(option, typed, "");
    }
    if let Some((name, typed)) = current.split_once('=').filter(|_| current.starts_with("--")) {
        let found = option(command, name);
        return found.map_or(Offer::Words(Vec::new()), |it| value(it, typed, &format!("{name}=")));
    }
    if current.starts_with('-') {
        return options(command, current);
    }
    let subcommands: Vec<(String, String)> = command
        .get_subcommands()
        .filter(|it| !it.is_hide_set() && it.get_name().starts_with(current.as_str()))
        .map(|it| (it.get_name().to_owned(), about(it.get_about())))
        .collect();
    if takes_command(command, positionals) {
        return Offer::Command(before.len());
    }
    let positional = command.get_positionals().nth(positionals).or_else(|| {
        command
            .get_positionals()
            .last()
            .filter(|it| it.get_num_args().is_some_and(|n| n.max_values() > 1))
    });
    match positional {
        Some(positional) => match value(positional, current, "") {
            Offer::Words(words) => Offer::Words([subcommands, words].concat()),
            other if subcommands.is_empty() => other,
            _ => Offer::Words(subcommands),
        },
        None => Offer::Words(subcommands),
    }
}

/// Whether another command's line begins here, after so many words that belong to ours.
fn takes_command(command: &Command, positionals: usize) -> bool {
    let begins = command
        .get_positionals()
        .position(|it| it.is_trailing_var_arg_set() && it.get_id() == "command");
    begins.is_some_and(|begins| begins <= positionals)
}

/// The option that this word is, if it takes a value.
fn option<'c>(command: &'c Command, word: &str) -> Option<&'c Arg> {
    let name = word.split('=').next().unwrap_or(word);
    let is_meant = |it: &&Arg| match name.strip_prefix("--") {
        Some(long) => it.get_long() == Some(long),
        None => it.get_short().is_some_and(|short| name.ends_with(short)),
    };
    command.get_arguments().find(is_meant).filter(|it| it.get_action().takes_values())
}

fn options(command: &Command, typed: &str) -> Offer {
    let shown = command.get_arguments().filter(|it| !it.is_hide_set());
    let named =
        shown.filter_map(|it| Some((format!("--{}", it.get_long()?), about(it.get_help()))));
    Offer::Words(named.filter(|(name, _)| name.starts_with(typed)).collect())
}

fn value(argument: &Arg, typed: &str, prefix: &str) -> Offer {
    let words: Vec<(String, String)> = match argument.get_id().as_str() {
        "preset" => presets(),
        "session" => sessions(),
        "sid" => kept_sessions(),
        "rules" => saved_rules(),
        "quarantined" => quarantined(),
        _ => {
            let possible = argument.get_possible_values().into_iter();
            possible.map(|it| (it.get_name().to_owned(), about(it.get_help()))).collect()
        }
    };
    if words.is_empty() {
        let name = argument.get_value_names().and_then(|names| names.first());
        match name.map_or("", |name| name.as_str()) {
            "DIR" => return Offer::Directories,
            "PATH" | "FILE" | "FILES" => return Offer::Files,
            _ => {}
        }
    }
    let fits = words.into_iter().filter(|(word, _)| word.starts_with(typed));
    Offer::Words(fits.map(|(word, about)| (format!("{prefix}{word}"), about)).collect())
}

fn presets() -> Vec<(String, String)> {
    let all = palisade_policy::presets().iter();
    all.map(|preset| (preset.name.to_owned(), preset.description())).collect()
}

/// Those that run. Their command lines come from their callers.
fn sessions() -> Vec<(String, String)> {
    let Ok(running) = Caller::here().map(|caller| runs::list(&caller.places)) else {
        return Vec::new();
    };
    let running = running.unwrap_or_default().into_iter();
    running.map(|run| (run.session, escape::text(&run.command).replace('\t', " "))).collect()
}

/// Those that stay, by their names where they have one.
fn kept_sessions() -> Vec<(String, String)> {
    let listed = AppDirs::here().and_then(|places| sessions::list(&places));
    let word = |record: SessionRecord| {
        let about = record.command.as_ref().map_or_else(
            || record.project.to_string_lossy().into_owned(),
            |command| command.join(" "),
        );
        let about = format!("{:?}: {about}", record.state);
        (record.name.unwrap_or(record.id), escape::text(&about).replace('\t', " "))
    };
    listed.unwrap_or_default().into_iter().map(|(_, record)| word(record)).collect()
}

/// Tools that do not run, by their ids.
fn quarantined() -> Vec<(String, String)> {
    let listed = AppDirs::here().and_then(|places| quarantine::list(&places));
    let about = |entry: &QuarantineEntry| {
        escape::text(&format!("{}: {}", entry.tool, entry.command)).replace('\t', " ")
    };
    let listed = listed.unwrap_or_default().into_iter();
    listed.map(|entry| (entry.id.clone(), about(&entry))).collect()
}

/// As `sandbox policy forget` knows them. One with a tab or a line break in it would look like several.
fn saved_rules() -> Vec<(String, String)> {
    let Ok(stores) = Caller::here().map(|caller| Stores::new(&caller)) else { return Vec::new() };
    let rules = stores.rules().unwrap_or_default();
    let word = |rule: &SavedRule| (stores.words_for(rule, &rules), rule.entry.what.clone());
    let is_plain = |(word, about): &(String, String)| {
        [word, about].into_iter().all(|text| escape::text(text) == text.as_str())
    };
    rules.iter().map(word).filter(is_plain).collect()
}

/// The first line of a help text, which is what fits beside a word.
fn about(help: Option<&clap::builder::StyledStr>) -> String {
    let text = help.map(ToString::to_string).unwrap_or_default();
    let first = text.split([';', '\n']).next().unwrap_or_default();
    first.trim().to_owned()
}

#[cfg(test)]
#[path = "complete_tests.rs"]
mod tests;
