//! The possible answers to a question, and their keys.

use palisade_ask::{Access, Act, Answer, FileSubject, Lifetime, Question, Scope, Store};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) key: char,
    /// What is typed instead of a key to answer about a secret; empty if this answer is not offered there.
    pub(super) typed: &'static str,
    pub(super) word: &'static str,
    pub(super) meaning: &'static str,
    pub(super) answer: Answer,
}

impl Choice {
    /// Whether it can be given where the screen has room for one row only: nobody may grant more than that row shows.
    pub(super) fn fits_one_row(self, shows_whole_path: bool) -> bool {
        match self.answer {
            Answer::Deny { lifetime } => lifetime == Lifetime::Session,
            Answer::Allow { scope, lifetime } => {
                shows_whole_path && (scope, lifetime) == (Scope::File, Lifetime::Once)
            }
        }
    }

    /// Whether it applies to later runs, and so needs Enter.
    pub(super) fn is_permanent(self) -> bool {
        match self.answer {
            Answer::Allow { lifetime, .. } | Answer::Deny { lifetime } => {
                matches!(lifetime, Lifetime::Always(_))
            }
        }
    }
}

/// In the order of display.
pub(super) fn choices(question: &Question) -> impl Iterator<Item = Choice> {
    let file = question.subject.file();
    let has_directory = file.is_some_and(|file| file.directory.is_some());
    let is_read_only = file.is_some_and(|file| file.access == Access::Read);
    let is_written = file.is_some_and(|file| file.access == Access::Write);
    let may_be_copied = file.is_some_and(|file| file.may_be_copied);
    let may_be_once = file.is_none_or(FileSubject::may_be_once);
    let may_last = file.is_none_or(FileSubject::may_last);
    // A request that only looks into a directory is granted all of it.
    let is_tree = file.is_some_and(FileSubject::is_tree);
    let is_metadata = file.is_some_and(|file| file.act == Act::Change);
    let is_entry = file.is_some_and(|file| file.entry.is_some());
    let whole = |plain, tree, writable| match is_tree {
        true if is_entry => writable,
        true => tree,
        false => plain,
    };
    // Programs look at a file before they open it, and the question is asked once.
    let is_look = file.is_some_and(|file| file.act == Act::See && !file.is_directory);
    let is_listed = file.is_some_and(|file| file.act == Act::Read && file.is_directory);
    let is_name_only = file.is_some_and(|file| file.is_name_only);
    let once = match file.map(|file| file.act) {
        Some(Act::Enter) => "allow it to enter; what is in it is asked about",
        _ if is_name_only => "allow it to see that the directory exists",
        _ if is_look => "allow this use of it, with reading",
        // A descriptor of a directory gives access to everything below it.
        _ if is_listed => "allow this time, with everything below it while it is open",
        Some(Act::Create) => "allow it to be made, and this process to change it",
        _ => "allow this time",
    };
    let is_secret = question.is_secret;
    let allow = |scope, lifetime| Answer::Allow { scope, lifetime };
    let deny = |lifetime| Answer::Deny { lifetime };
    let always = Lifetime::Always(Store::User);
    let choice = |key, typed, word, meaning, answer| Choice { key, typed, word, meaning, answer };
    [
        (choice('y', "yes", "once", once, allow(Scope::File, Lifetime::Once)), may_be_once),
        (
            choice(
                's',
                "session",
                "session",
                whole(
                    if is_metadata {
                        "allow until this run ends, and to write it, too"
                    } else {
                        "allow until this run ends"
                    },
                    "allow it with everything below it until this run ends",
                    "allow writing everything in the directory until this run ends",
                ),
                allow(Scope::File, Lifetime::Session),
            ),
            may_last,
        ),
        (
            choice(
                'a',
                "",
                "always",
                whole(
                    if is_metadata { "allow this and writing, and save" } else { "allow and save" },
                    "allow it with everything below it and save",
                    "allow writing everything in the directory and save",
                ),
                allow(Scope::File, always),
            ),
            !is_secret && may_last,
        ),
        (
            choice(
                'd',
                "",
                "dir",
                match is_read_only {
                    _ if is_written => {
                        "allow writing everything in the directory until this run ends"
                    }
                    true => {
                        "allow reading the directory until this run ends, not running what is in it"
                    }
                    false => {
                        "allow reading the directory and running what is in it until this run ends"
                    }
                },
                allow(Scope::Directory, Lifetime::Session),
            ),
            has_directory,
        ),
        (
            choice(
                'D',
                "",
                "dir always",
                match is_read_only {
                    _ if is_written => "allow writing everything in the directory and save",
                    true => "allow reading the directory, not running what is in it, and save",
                    false => "allow reading the directory and running what is in it, and save",
                },
                allow(Scope::Directory, always),
            ),
            has_directory,
        ),
        (
            choice(
                'e',
                "",
                "dir + run",
                "allow the directory with programs and libraries until this run ends",
                allow(Scope::DirectoryToRun, Lifetime::Session),
            ),
            has_directory && is_read_only,
        ),
        (
            choice(
                'c',
                "",
                "private copy",
                "let it change a private copy, discarded when the run ends",
                allow(Scope::PrivateCopy, Lifetime::Session),
            ),
            may_be_copied,
        ),
        (choice('n', "no", "no", "deny until this run ends", deny(Lifetime::Session)), true),
        (choice('x', "never", "never", "deny and save", deny(always)), true),
    ]
    .into_iter()
    .filter(|(_, is_offered)| *is_offered)
    .map(|(choice, _)| choice)
}
