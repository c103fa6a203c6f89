//! Patterns of command lines (CARGO-1): a limit of their length, what is blocked, and what alone is allowed.
//!
//! Patterns are a help against mistakes. They are no wall: there are many ways to write a command, and what a program does
//! when it runs is not in its command line. The sandbox is the wall.

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

/// Of a command line, in bytes, unless a declaration says less.
pub(crate) const MAX_LENGTH: usize = 64 << 10;
/// What a pattern may take in memory when it is compiled.
const MAX_COMPILED: usize = 1 << 20;
/// Brackets within brackets.
const MAX_NESTED: u32 = 50;

/// What a tool's command line has to be like.
#[derive(Clone, Debug)]
pub struct CommandPatterns {
    pub(crate) max_length: usize,
    /// With any of these, one has to match.
    pub(crate) allowed: Vec<Pattern>,
    pub(crate) blocked: Vec<Pattern>,
}

impl Default for CommandPatterns {
    fn default() -> Self {
        Self { max_length: MAX_LENGTH, allowed: Vec::new(), blocked: Vec::new() }
    }
}

/// Why a command line is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("the command has {length} bytes; at most {most} are allowed (patterns.maxLength)")]
    TooLong { length: usize, most: usize },
    #[error("the command matches the blocked pattern `{pattern}` (patterns.blocked)")]
    Blocked { pattern: String },
    #[error("the command matches none of the allowed patterns (patterns.allowed)")]
    NotAllowed,
}

impl CommandPatterns {
    /// Checks the length first, since matching takes time, then what is blocked, then what is allowed.
    pub fn check(&self, command: &str) -> Result<(), PatternError> {
        let length = command.len();
        if length > self.max_length {
            return Err(PatternError::TooLong { length, most: self.max_length });
        }
        if let Some(blocked) = self.blocked.iter().find(|pattern| pattern.matches(command)) {
            return Err(PatternError::Blocked { pattern: blocked.text.clone() });
        }
        if !self.allowed.is_empty() && !self.allowed.iter().any(|it| it.matches(command)) {
            return Err(PatternError::NotAllowed);
        }
        Ok(())
    }

    pub fn max_length(&self) -> usize {
        self.max_length
    }

    pub fn allowed(&self) -> impl Iterator<Item = &str> {
        self.allowed.iter().map(|pattern| pattern.text.as_str())
    }

    pub fn blocked(&self) -> impl Iterator<Item = &str> {
        self.blocked.iter().map(|pattern| pattern.text.as_str())
    }
}

/// A regular expression that is matched in time proportional to the text, whatever it says.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    text: String,
    compiled: Regex,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let size = Some(MAX_COMPILED);
        let compiled = Regex::builder()
            .configure(Regex::config().nfa_size_limit(size))
            .syntax(syntax::Config::new().nest_limit(MAX_NESTED))
            .build(text)
            .map_err(|error| match error.syntax_error() {
                Some(error) => error.to_string(),
                None => error.to_string(),
            })?;
        Ok(Self { text: text.to_owned(), compiled })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        self.compiled.is_match(text)
    }
}

#[cfg(test)]
mod tests {
    use super::{CommandPatterns, Pattern, PatternError};

    fn patterns(allowed: &[&str], blocked: &[&str]) -> CommandPatterns {
        let compiled = |texts: &[&str]| texts.iter().map(|it| Pattern::new(it).unwrap()).collect();
        CommandPatterns { max_length: 40, allowed: compiled(allowed), blocked: compiled(blocked) }
    }

    /// Proves: CARGO-1 patterns
    #[test]
    fn what_is_blocked_or_too_long_is_refused_even_if_it_is_allowed() {
        let cargo =
            patterns(&[r"^cargo (build|check|test|clean|doc)( |$)"], &["--config", r"[;&|`$]"]);
        assert_eq!(cargo.check("cargo build"), Ok(()));
        assert_eq!(cargo.check("cargo test --lib"), Ok(()));
        assert_eq!(cargo.check("cargo builder"), Err(PatternError::NotAllowed));
        assert_eq!(cargo.check("rm -r /"), Err(PatternError::NotAllowed));
        let blocked = |pattern: &str| Err(PatternError::Blocked { pattern: pattern.to_owned() });
        assert_eq!(cargo.check("cargo build --config=x"), blocked("--config"));
        assert_eq!(cargo.check("cargo build; true"), blocked("[;&|`$]"));
        let long = format!("cargo build {}", "x".repeat(40));
        assert_eq!(cargo.check(&long), Err(PatternError::TooLong { length: 52, most: 40 }));
        assert_eq!(patterns(&[], &[]).check("anything"), Ok(()));
    }

    #[test]
    fn a_pattern_that_would_take_too_much_is_refused() {
        assert!(Pattern::new("(").is_err());
        assert!(Pattern::new("((a{1000}){1000}){1000}").is_err());
        // A backtracking matcher needs longer than anybody waits for this one.
        let slow = Pattern::new("^(a+)+$").unwrap();
        assert!(!slow.matches(&format!("{}b", "a".repeat(4000))));
    }
}
