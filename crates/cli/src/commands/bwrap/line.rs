//! The words of bubblewrap's command line: which option takes how many, and where the command begins.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use thiserror::Error;

/// The version whose options are known here.
pub(super) const VERSION: &str = "0.11.0";

/// Of all words that descriptors add: more is no command line.
const MAX_ARGUMENTS: usize = 9000;
/// A descriptor may name another one, but not for ever.
const MAX_DEPTH: usize = 8;

#[derive(Debug, Error)]
pub(super) enum BwrapError {
    #[error("`{0}` is not an option of bubblewrap that is known here; see `sandbox bwrap --help`")]
    Unknown(String),
    #[error("{option} needs {count} more words")]
    Incomplete { option: &'static str, count: usize },
    #[error("{option} has no meaning here: {why}")]
    NoMeaning { option: String, why: &'static str },
    #[error("{option}: `{value}` is not a number that fits")]
    NotANumber { option: &'static str, value: String },
    #[error("{option} {path}: {why}")]
    Path { option: String, path: PathBuf, why: &'static str },
    #[error("{option} {descriptor}: cannot read from this descriptor: {source}")]
    Descriptor { option: &'static str, descriptor: u32, source: io::Error },
    #[error("{option} {descriptor}: what it contains is not text")]
    NotText { option: &'static str, descriptor: u32 },
    #[error("more than {MAX_ARGUMENTS} words, or descriptors that name each other")]
    TooLong,
    #[error("no command given; write it after the options")]
    NoCommand,
}

/// An option with its words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BwrapOption {
    pub(super) name: &'static str,
    pub(super) values: Vec<OsString>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct BwrapLine {
    pub(super) options: Vec<BwrapOption>,
    pub(super) command: Vec<OsString>,
}

/// Every option of bubblewrap, and how many words follow it.
const OPTIONS: &[(&str, usize)] = &[
    ("--args", 1),
    ("--argv0", 1),
    ("--unshare-all", 0),
    ("--share-net", 0),
    ("--unshare-user", 0),
    ("--unshare-user-try", 0),
    ("--unshare-ipc", 0),
    ("--unshare-pid", 0),
    ("--unshare-net", 0),
    ("--unshare-uts", 0),
    ("--unshare-cgroup", 0),
    ("--unshare-cgroup-try", 0),
    ("--userns", 1),
    ("--userns2", 1),
    ("--disable-userns", 0),
    ("--assert-userns-disabled", 0),
    ("--pidns", 1),
    ("--uid", 1),
    ("--gid", 1),
    ("--hostname", 1),
    ("--chdir", 1),
    ("--clearenv", 0),
    ("--setenv", 2),
    ("--unsetenv", 1),
    ("--lock-file", 1),
    ("--sync-fd", 1),
    ("--bind", 2),
    ("--bind-try", 2),
    ("--dev-bind", 2),
    ("--dev-bind-try", 2),
    ("--ro-bind", 2),
    ("--ro-bind-try", 2),
    ("--bind-fd", 2),
    ("--ro-bind-fd", 2),
    ("--remount-ro", 1),
    ("--overlay-src", 1),
    ("--overlay", 3),
    ("--tmp-overlay", 1),
    ("--ro-overlay", 1),
    ("--exec-label", 1),
    ("--file-label", 1),
    ("--proc", 1),
    ("--dev", 1),
    ("--tmpfs", 1),
    ("--mqueue", 1),
    ("--dir", 1),
    ("--file", 2),
    ("--bind-data", 2),
    ("--ro-bind-data", 2),
    ("--symlink", 2),
    ("--seccomp", 1),
    ("--add-seccomp-fd", 1),
    ("--block-fd", 1),
    ("--userns-block-fd", 1),
    ("--info-fd", 1),
    ("--json-status-fd", 1),
    ("--new-session", 0),
    ("--die-with-parent", 0),
    ("--as-pid-1", 0),
    ("--cap-add", 1),
    ("--cap-drop", 1),
    ("--perms", 1),
    ("--size", 1),
    ("--chmod", 2),
    ("--level-prefix", 0),
];

pub(super) fn parse(words: Vec<OsString>) -> Result<BwrapLine, BwrapError> {
    let mut options = Vec::new();
    let mut rest = words.into_iter();
    let mut command = read(&mut rest, &mut options, 0)?;
    command.extend(rest);
    match command.is_empty() {
        true => Err(BwrapError::NoCommand),
        false => Ok(BwrapLine { options, command }),
    }
}

/// Takes options, and returns the first words of the command if it begins here.
fn read(
    words: &mut dyn Iterator<Item = OsString>,
    options: &mut Vec<BwrapOption>,
    depth: usize,
) -> Result<Vec<OsString>, BwrapError> {
    while let Some(word) = words.next() {
        if word == "--" {
            return Ok(words.next().into_iter().collect());
        }
        if !word.as_bytes().starts_with(b"-") {
            return Ok(vec![word]);
        }
        let known = OPTIONS.iter().find(|(name, _)| word == OsStr::new(name));
        let Some((name, count)) = known else {
            return Err(BwrapError::Unknown(word.to_string_lossy().into_owned()));
        };
        let values: Vec<OsString> = words.take(*count).collect();
        if values.len() < *count {
            let count = count - values.len();
            return Err(BwrapError::Incomplete { option: name, count });
        }
        if options.len() >= MAX_ARGUMENTS {
            return Err(BwrapError::TooLong);
        }
        if *name != "--args" {
            options.push(BwrapOption { name, values });
            continue;
        }
        if depth >= MAX_DEPTH {
            return Err(BwrapError::TooLong);
        }
        let content = content(name, &values[0])?.1;
        let parts = content.split(|byte| *byte == 0).map(|part| OsString::from_vec(part.to_vec()));
        let mut parts: Vec<OsString> = parts.collect();
        // Each one ends with a NUL.
        parts.pop_if(|last| last.is_empty());
        let mut parts = parts.into_iter();
        let begun = read(&mut parts, options, depth + 1)?;
        if !begun.is_empty() {
            return Ok(begun.into_iter().chain(parts).collect());
        }
    }
    Ok(Vec::new())
}

/// What can be read from a descriptor that we were started with, and its number.
pub(super) fn content(option: &'static str, value: &OsStr) -> Result<(u32, Vec<u8>), BwrapError> {
    let descriptor: u32 = number(option, value)?;
    // Opened anew: its number is all that we have of it.
    match fs::read(format!("/proc/self/fd/{descriptor}")) {
        Ok(bytes) => Ok((descriptor, bytes)),
        Err(source) => Err(BwrapError::Descriptor { option, descriptor, source }),
    }
}

pub(super) fn number<N: std::str::FromStr>(
    option: &'static str,
    value: &OsStr,
) -> Result<N, BwrapError> {
    let parsed = value.to_str().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| BwrapError::NotANumber {
        option,
        value: value.to_string_lossy().into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::{BwrapError, BwrapLine, parse};
    use std::ffi::OsString;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn names(line: &BwrapLine) -> Vec<&str> {
        line.options.iter().map(|option| option.name).collect()
    }

    #[test]
    fn a_command_begins_at_the_first_word_that_is_no_option() {
        let line = parse(words("--ro-bind / / --unshare-all sh -c --bind")).unwrap();
        assert_eq!(names(&line), ["--ro-bind", "--unshare-all"]);
        assert_eq!(line.command, words("sh -c --bind"));
        let line = parse(words("--dir /a -- -strange --bind")).unwrap();
        assert_eq!(line.command, words("-strange --bind"));
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said() {
        assert!(matches!(parse(words("--bind /a")), Err(BwrapError::Incomplete { count: 1, .. })));
        assert!(matches!(parse(words("--bond /a /b true")), Err(BwrapError::Unknown(_))));
        assert!(matches!(parse(words("--unshare-all")), Err(BwrapError::NoCommand)));
        assert!(matches!(parse(words("--args 3000 true")), Err(BwrapError::Descriptor { .. })));
        assert!(matches!(parse(words("--args x true")), Err(BwrapError::NotANumber { .. })));
    }
}
