//! The command of a tool: words, and places for values of its input.
//!
//! A place is a whole argument (`{path}`) or the value of a long option (`--include={glob}`). A caller's value never becomes
//! more than one argument, and never an option: what begins with `-` or `+` is refused, except behind a `--` of the command, as
//! the value of a long option, and in a group right behind an option (`[-e, "{pattern}"]`), where the program takes whatever follows.

use super::input::InputValues;
use serde_json::{Value, json};

/// Of one argument, in bytes: the kernel takes 128 KiB (MAX_ARG_STRLEN in execve(2)).
const MAX_ARGUMENT: usize = 100 << 10;

/// A command with places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandTemplate {
    pub(crate) parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Word(Word),
    /// Left out if one of its places has no value, or one of its conditions does not hold.
    Group(Vec<Word>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Literal(String),
    /// `{name}`.
    Place(String),
    /// `--option={name}`: what is before the value, and the name.
    OptionPlace(String, String),
    /// `{?name}`: no argument; the group is there only if the value is given and not false.
    If(String),
    /// `{!name}`: the contrary.
    Unless(String),
}

/// Why a value cannot be put into a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error(
        "`{name}` begins with `{first}`, so the program could take it for an option; for a file, write ./ before it"
    )]
    LooksLikeOption { name: String, first: char },
    #[error("`{name}` has a zero byte (\\0) in it, which no argument of a program can have")]
    ZeroByte { name: String },
    #[error("`{name}` has {length} bytes; an argument has at most {MAX_ARGUMENT}")]
    TooLong { name: String, length: usize },
}

impl Word {
    /// `{{name}}` is the text `{name}`.
    pub(crate) fn parse(text: &str) -> Self {
        let within = |text: &str| -> Option<String> {
            Some(text.strip_prefix('{')?.strip_suffix('}')?.to_owned())
        };
        let is_name = |text: &str| {
            text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let is_option = |text: &str| {
            text.strip_prefix("--").is_some_and(|name| {
                name.starts_with(|c: char| c.is_ascii_alphanumeric())
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            })
        };
        if let Some(inner) = within(text) {
            if is_name(&inner) {
                return Self::Place(inner);
            }
            if let Some(name) = inner.strip_prefix('?').filter(|name| is_name(name)) {
                return Self::If(name.to_owned());
            }
            if let Some(name) = inner.strip_prefix('!').filter(|name| is_name(name)) {
                return Self::Unless(name.to_owned());
            }
            if within(&inner).is_some_and(|name| is_name(&name)) {
                return Self::Literal(inner);
            }
        }
        if let Some((option, value)) = text.split_once('=')
            && is_option(option)
            && let Some(name) = within(value).filter(|name| is_name(name))
        {
            return Self::OptionPlace(format!("{option}="), name);
        }
        Self::Literal(text.to_owned())
    }

    /// The value that it stands for, if it stands for one.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Literal(_) => None,
            Self::Place(name) | Self::OptionPlace(_, name) => Some(name),
            Self::If(name) | Self::Unless(name) => Some(name),
        }
    }

    fn is_condition(&self) -> bool {
        matches!(self, Self::If(_) | Self::Unless(_))
    }

    fn show(&self) -> String {
        match self {
            Self::Literal(text) => text.clone(),
            Self::Place(name) => format!("{{{name}}}"),
            Self::OptionPlace(option, name) => format!("{option}{{{name}}}"),
            Self::If(name) => format!("{{?{name}}}"),
            Self::Unless(name) => format!("{{!{name}}}"),
        }
    }
}

impl Part {
    pub(crate) fn words(&self) -> &[Word] {
        match self {
            Self::Word(word) => std::slice::from_ref(word),
            Self::Group(words) => words,
        }
    }
}

impl CommandTemplate {
    pub(crate) fn words(&self) -> impl Iterator<Item = &Word> {
        self.parts.iter().flat_map(Part::words)
    }

    /// What is wrong with it whatever the values are.
    pub(crate) fn complaint(&self) -> Option<String> {
        match self.parts.first() {
            None => return Some("`command` is empty; begin with the program".to_owned()),
            Some(Part::Word(Word::Literal(program))) if program.is_empty() => {
                return Some("the first word of `command` is empty; name the program".to_owned());
            }
            Some(Part::Word(Word::Literal(_))) => {}
            Some(_) => {
                let message = "`command` must begin with the program itself: no value of the input chooses what runs";
                return Some(message.to_owned());
            }
        }
        let stray = self.parts.iter().find_map(|part| match part {
            Part::Word(word) if word.is_condition() => Some(word.show()),
            _ => None,
        });
        stray.map(|word| {
            format!("`{word}` stands for nothing alone; put it in a list with what depends on it")
        })
    }

    /// An option, and a place right behind it that stands outside a list. If the place had no value, the option would take the next
    /// argument for its own, and that can be the `--` which keeps values from being options.
    pub(crate) fn places_of_options(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parts.windows(2).filter_map(|pair| match pair {
            [Part::Word(Word::Literal(option)), Part::Word(Word::Place(name))]
                if is_option_without_value(option) =>
            {
                Some((option.as_str(), name.as_str()))
            }
            _ => None,
        })
    }

    /// The arguments with their values, the program first.
    pub fn fill(&self, values: &InputValues) -> Result<Vec<String>, TemplateError> {
        let mut argv = Vec::new();
        let mut is_past_options = false;
        for part in &self.parts {
            let words = part.words();
            let is_left_out = words.iter().any(|word| match word {
                Word::Literal(_) => false,
                Word::Place(name) | Word::OptionPlace(_, name) => values.get(name).is_none(),
                Word::If(name) => !values.is_set(name),
                Word::Unless(name) => values.is_set(name),
            });
            if is_left_out {
                continue;
            }
            let mut previous: Option<&Word> = None;
            for word in words.iter().filter(|word| !word.is_condition()) {
                let is_of_option = matches!(
                    (part, previous),
                    (Part::Group(_), Some(Word::Literal(option)))
                        if is_option_without_value(option)
                );
                let exempt = match (is_past_options, is_of_option) {
                    (true, _) => Exempt::All,
                    (false, true) => Exempt::First,
                    (false, false) => Exempt::None,
                };
                fill_word(word, values, exempt, &mut argv)?;
                is_past_options |= matches!(word, Word::Literal(text) if text == "--");
                previous = Some(word);
            }
        }
        Ok(argv)
    }

    /// As a declaration has it.
    pub fn to_json(&self) -> Value {
        let part = |part: &Part| match part {
            Part::Word(word) => json!(word.show()),
            Part::Group(words) => json!(words.iter().map(Word::show).collect::<Vec<_>>()),
        };
        self.parts.iter().map(part).collect()
    }
}

/// Which values of a place may begin like an option.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exempt {
    None,
    /// The value of an option; a list has more of them.
    First,
    All,
}

fn is_option_without_value(word: &str) -> bool {
    word.starts_with('-') && word != "--" && word != "-" && !word.contains('=')
}

fn fill_word(
    word: &Word,
    values: &InputValues,
    exempt: Exempt,
    argv: &mut Vec<String>,
) -> Result<(), TemplateError> {
    match word {
        Word::Literal(text) => argv.push(text.clone()),
        Word::Place(name) => {
            for (index, value) in values.get(name).into_iter().flatten().enumerate() {
                let is_exempt = exempt == Exempt::All || (exempt == Exempt::First && index == 0);
                let first = value.chars().next().filter(|first| matches!(first, '-' | '+'));
                if let Some(first) = first.filter(|_| !is_exempt) {
                    return Err(TemplateError::LooksLikeOption { name: name.clone(), first });
                }
                argv.push(checked(name, value.clone())?);
            }
        }
        Word::OptionPlace(option, name) => {
            for value in values.get(name).into_iter().flatten() {
                argv.push(checked(name, format!("{option}{value}"))?);
            }
        }
        Word::If(_) | Word::Unless(_) => {}
    }
    Ok(())
}

fn checked(name: &str, argument: String) -> Result<String, TemplateError> {
    if argument.contains('\0') {
        return Err(TemplateError::ZeroByte { name: name.to_owned() });
    }
    if argument.len() > MAX_ARGUMENT {
        return Err(TemplateError::TooLong { name: name.to_owned(), length: argument.len() });
    }
    Ok(argument)
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
