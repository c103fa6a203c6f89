//! Questions that are like one another, to be answered together: in one directory, of one program, for one host.
//!
//! A secret is never among them: each is looked at by itself. What is answered is what was counted when it was
//! shown, and nothing that was asked since.

use super::row::{Identity, Row};
use crossterm::event::KeyCode;
use palisade_ask::{Question, Subject};
use palisade_record::escape;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What questions have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Likeness {
    /// At or below it.
    Directory(PathBuf),
    Program(String),
    Host(String),
}

impl Likeness {
    /// What a question could have in common with others, each with its key.
    pub(crate) fn of(question: &Question) -> Vec<(char, Self)> {
        let place = match &question.subject {
            Subject::File(file) => {
                file.path.parent().map(|parent| ('d', Self::Directory(parent.to_owned())))
            }
            Subject::Host(host) => Some(('h', Self::Host(host.host.clone()))),
        };
        let program = question.processes.first();
        let program = program.map(|process| ('p', Self::Program(process.executable.clone())));
        place.into_iter().chain(program).collect()
    }

    pub(crate) fn covers(&self, question: &Question) -> bool {
        match (self, &question.subject) {
            // Below the root is everything.
            (Self::Directory(directory), Subject::File(file)) if directory == Path::new("/") => {
                file.path.parent() == Some(directory)
            }
            (Self::Directory(directory), Subject::File(file)) => file.path.starts_with(directory),
            (Self::Host(name), Subject::Host(host)) => host.host == *name,
            (Self::Program(program), _) => {
                question.processes.first().is_some_and(|process| process.executable == *program)
            }
            (Self::Directory(_), Subject::Host(_)) | (Self::Host(_), Subject::File(_)) => false,
        }
    }

    /// For people, escaped.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Directory(path) => {
                format!("in directory {}", escape::bytes(path.as_os_str().as_bytes()))
            }
            Self::Program(program) => format!("of program {}", escape::text(program)),
            Self::Host(host) => format!("for host {}", escape::text(host)),
        }
    }
}

/// Questions that one key will answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) likeness: Likeness,
    pub(crate) members: Vec<Identity>,
    /// Secrets that are like them.
    pub(crate) left_out: usize,
}

impl Group {
    pub(crate) fn of(likeness: Likeness, rows: &[Row]) -> Self {
        let alike = rows.iter().filter(|row| likeness.covers(&row.question));
        let (secret, plain): (Vec<&Row>, Vec<&Row>) = alike.partition(|row| row.question.is_secret);
        let members = plain.into_iter().map(Row::identity).collect();
        Self { members, left_out: secret.len(), likeness }
    }

    /// How many there are, before anything is answered.
    pub(crate) fn told(&self) -> String {
        let count = match self.members.len() {
            1 => "1 question".to_owned(),
            count => format!("{count} questions"),
        };
        let left_out = match self.left_out {
            0 => String::new(),
            1 => "; 1 secret is left out".to_owned(),
            count => format!("; {count} secrets are left out"),
        };
        format!("{count} {}{left_out}", self.likeness.told())
    }
}

/// The groups that the selected question belongs to, each with its key and its size.
pub(crate) fn choices(selected: &Row, rows: &[Row]) -> Vec<(char, Group)> {
    let kinds = Likeness::of(&selected.question).into_iter();
    kinds.map(|(key, likeness)| (key, Group::of(likeness, rows))).collect()
}

pub(crate) fn chosen(code: KeyCode, selected: &Row, rows: &[Row]) -> Option<Group> {
    let mut choices = choices(selected, rows).into_iter();
    choices.find(|(key, _)| code == KeyCode::Char(*key)).map(|(_, group)| group)
}
