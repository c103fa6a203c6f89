//! What is wrong with a command line, in one line, and how the command is used.

use crate::line::Cli;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, CommandFactory as _};
use palisade_policy::nearest;
use palisade_record::escape;
use std::ffi::OsString;

/// Options of similar programs, and what they are called here.
const ELSEWHERE: [(&str, &str); 18] = [
    ("--read", "--ro"),
    ("--allow-read", "--ro"),
    ("--ro-bind", "--ro"),
    ("--write", "--rw"),
    ("--bind", "--rw"),
    ("--volume", "--rw"),
    ("--deny", "--blacklist"),
    ("--hide", "--blacklist"),
    ("--net", "--network"),
    ("--allow-net", "--allow-host"),
    ("--allow-domain", "--allow-host"),
    ("--unshare-net", "--network none"),
    ("--share-net", "--network host"),
    ("--chdir", "--cwd"),
    ("--workdir", "--cwd"),
    ("--setenv", "--env"),
    ("--clearenv", "--env-mode clean"),
    ("--time-limit", "--timeout"),
];

/// A shorter beginning says too little of what was meant.
const MIN_PREFIX_LEN: usize = 3;

/// For the line that was read: what is wrong, and what to look at.
pub(crate) fn told(error: &clap::Error, line: &[OsString]) -> [String; 2] {
    let (name, mut command) = command_of(line);
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let options: Vec<&str> =
        command.get_arguments().filter(|it| !it.is_hide_set()).filter_map(Arg::get_long).collect();
    let wrong = wrong(error, &name, &Known { names, options });
    let usage = command.render_usage().to_string();
    let usage: Vec<&str> = usage.trim_start_matches("Usage: ").split_whitespace().collect();
    [wrong, format!("usage: {}; see `{name} --help`", usage.join(" "))]
}

/// What the command has.
struct Known<'c> {
    /// Commands of its own.
    names: Vec<&'c str>,
    /// Options, without hyphens.
    options: Vec<&'c str>,
}

fn wrong(error: &clap::Error, name: &str, known: &Known<'_>) -> String {
    let Known { names, options } = known;
    let argument = context(error, ContextKind::InvalidArg);
    let option = argument.split([' ', '=']).next().unwrap_or_default();
    let value = context(error, ContextKind::InvalidValue);
    match error.kind() {
        ErrorKind::UnknownArgument if argument.starts_with('-') => {
            let elsewhere = ELSEWHERE.iter().find(|(theirs, _)| *theirs == option);
            let is_run = ["sandbox", "sandbox run", "sandbox plan"].contains(&name);
            let meant = match elsewhere.filter(|_| is_run) {
                Some((_, ours)) => format!("; did you mean {ours}?"),
                None => near_option(option, options),
            };
            format!("unknown option {argument}{meant}")
        }
        ErrorKind::UnknownArgument => format!("unexpected argument `{argument}`"),
        ErrorKind::InvalidSubcommand => {
            let word = context(error, ContextKind::InvalidSubcommand);
            let meant = nearest(&word, names.iter().copied());
            let meant = meant.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            format!("`{word}` is not a command of {name}{meant}")
        }
        ErrorKind::InvalidValue if value.is_empty() => format!("{argument} needs a value"),
        ErrorKind::InvalidValue => {
            let meant = suggested(error, ContextKind::SuggestedValue, "`");
            let valid = context(error, ContextKind::ValidValue);
            format!("{option}: `{value}` is not one of: {valid}{meant}")
        }
        ErrorKind::ValueValidation => {
            let why = std::error::Error::source(error).map(ToString::to_string);
            let why = why.unwrap_or_else(|| "it is invalid".to_owned());
            let typed = if option.starts_with('-') { format!("{option} {value}") } else { value };
            format!("{typed}: {}", escape::text(&why))
        }
        ErrorKind::MissingRequiredArgument => format!("missing: {argument}"),
        ErrorKind::ArgumentConflict => {
            let other = context(error, ContextKind::PriorArg);
            match other == argument {
                true => format!("{argument} can be given only once"),
                false => format!("{argument} cannot be used with {other}"),
            }
        }
        // Clap's own words, without the name it begins them with and the usage that follows.
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            escape::text(first.trim_start_matches("error: ")).into_owned()
        }
    }
}

/// `; did you mean --this?`, if something is near.
fn suggested(error: &clap::Error, kind: ContextKind, quote: &str) -> String {
    let near = match error.get(kind) {
        Some(ContextValue::String(near)) => near.as_str(),
        // The nearest is the last.
        Some(ContextValue::Strings(near)) => near.last().map_or("", String::as_str),
        _ => "",
    };
    if near.is_empty() { String::new() } else { format!("; did you mean {quote}{near}{quote}?") }
}

/// What was typed is escaped: a line may have been pasted.
fn context(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => escape::text(text).into_owned(),
        Some(ContextValue::Strings(texts)) => escape::text(&texts.join(", ")).into_owned(),
        _ => String::new(),
    }
}

/// An option with few other letters, or the only one that begins like this. Clap's own idea of near is too wide for short
/// words: it takes `--read` for `--threads`.
fn near_option(typed: &str, options: &[&str]) -> String {
    let typed = typed.trim_start_matches('-');
    let longer: Vec<&str> =
        options.iter().copied().filter(|option| option.starts_with(typed)).collect();
    let near = match (nearest(typed, options.iter().copied()), &longer[..]) {
        (Some(near), _) => near,
        (None, [only]) if typed.len() >= MIN_PREFIX_LEN => only,
        (None, _) => return String::new(),
    };
    format!("; did you mean --{near}?")
}

/// The command that the words name.
fn command_of(line: &[OsString]) -> (String, clap::Command) {
    let mut command = Cli::command();
    command.build();
    let mut name = command.get_name().to_owned();
    for word in line.iter().skip(1) {
        let next = word.to_str().and_then(|word| command.find_subcommand(word));
        let Some(next) = next.cloned() else { break };
        name = format!("{name} {}", next.get_name());
        command = next;
    }
    (name, command)
}
