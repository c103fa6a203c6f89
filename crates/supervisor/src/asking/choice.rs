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
    let may_be_copied = file.is_some_and(|file| file.may_be_copied);
    let may_be_once = file.is_none_or(FileSubject::may_be_once);
    let may_last = file.is_none_or(FileSubject::may_last);
    let is_secret = question.is_secret;
    let once = file.map_or("allow this time", once);
    let (session, saved) = file.map_or(PLAINLY, for_longer);
    let (dir_session, dir_saved) = file.map_or(PLAINLY, directory);
    let to_run = "allow the directory with programs and libraries until this run ends";
    let copy = "let it change a private copy, discarded when the run ends";
    let allow = |scope, lifetime| Answer::Allow { scope, lifetime };
    let deny = |lifetime| Answer::Deny { lifetime };
    let always = Lifetime::Always(Store::User);
    let until_end = Lifetime::Session;
    let choice = |key, typed, word, meaning, answer| Choice { key, typed, word, meaning, answer };
    [
        (may_be_once, choice('y', "yes", "once", once, allow(Scope::File, Lifetime::Once))),
        (may_last, choice('s', "session", "session", session, allow(Scope::File, until_end))),
        (may_last && !is_secret, choice('a', "", "always", saved, allow(Scope::File, always))),
        (has_directory, choice('d', "", "dir", dir_session, allow(Scope::Directory, until_end))),
        (has_directory, choice('D', "", "dir always", dir_saved, allow(Scope::Directory, always))),
        (
            has_directory && is_read_only,
            choice('e', "", "dir + run", to_run, allow(Scope::DirectoryToRun, until_end)),
        ),
        (
            may_be_copied,
            choice('c', "", "private copy", copy, allow(Scope::PrivateCopy, until_end)),
        ),
        (true, choice('n', "no", "no", "deny until this run ends", deny(until_end))),
        (true, choice('x', "never", "never", "deny and save", deny(always))),
    ]
    .into_iter()
    .filter(|(is_offered, _)| *is_offered)
    .map(|(_, choice)| choice)
}

fn once(file: &FileSubject) -> &'static str {
    match file.act {
        Act::Enter => "allow it to enter; what is in it is asked about",
        _ if file.is_name_only => "allow it to see that the directory exists",
        // Programs look at a file before they open it, and the question is asked once.
        Act::See if !file.is_directory => "allow this use of it, with reading",
        // A descriptor of a directory gives access to everything below it.
        Act::Read if file.is_directory => {
            "allow this time, with everything below it while it is open"
        }
        Act::Create => "allow it to be made, and this process to change it",
        _ => "allow this time",
    }
}

/// What an answer means for the session, and what it means if it is saved.
type Meanings = (&'static str, &'static str);

const PLAINLY: Meanings = ("allow until this run ends", "allow and save");
const WRITING: Meanings = (
    "allow writing everything in the directory until this run ends",
    "allow writing everything in the directory and save",
);

fn for_longer(file: &FileSubject) -> Meanings {
    match file.act {
        // A request that only looks into a directory is granted all of it.
        _ if file.is_tree() && file.entry.is_some() => WRITING,
        _ if file.is_tree() => (
            "allow it with everything below it until this run ends",
            "allow it with everything below it and save",
        ),
        Act::Change => {
            ("allow until this run ends, and to write it, too", "allow this and writing, and save")
        }
        _ => PLAINLY,
    }
}

fn directory(file: &FileSubject) -> Meanings {
    match file.access {
        Access::Write => WRITING,
        Access::Read => (
            "allow reading the directory until this run ends, not running what is in it",
            "allow reading the directory, not running what is in it, and save",
        ),
        Access::Execute => (
            "allow reading the directory and running what is in it until this run ends",
            "allow reading the directory and running what is in it, and save",
        ),
    }
}
