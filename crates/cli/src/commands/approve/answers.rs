//! Which keys and words are answers. The same as in the panel of a run's own terminal: what holds for runs to come needs
//! Enter, and a secret needs a whole word.

use crossterm::event::KeyCode;
use palisade_ask::{Answer, Lifetime, Scope, Store};

/// What is typed about a secret, before Enter.
const WORDS: [(&str, Answer); 4] = [
    ("yes", allow(Scope::File, Lifetime::Once)),
    ("session", allow(Scope::File, Lifetime::Session)),
    ("no", Answer::Deny { lifetime: Lifetime::Session }),
    ("never", Answer::Deny { lifetime: ALWAYS }),
];

const ALWAYS: Lifetime = Lifetime::Always(Store::User);

const fn allow(scope: Scope, lifetime: Lifetime) -> Answer {
    Answer::Allow { scope, lifetime }
}

pub(crate) fn of_key(code: KeyCode) -> Option<Answer> {
    let KeyCode::Char(key) = code else { return None };
    Some(match key {
        'y' => allow(Scope::File, Lifetime::Once),
        's' => allow(Scope::File, Lifetime::Session),
        'a' => allow(Scope::File, ALWAYS),
        'd' => allow(Scope::Directory, Lifetime::Session),
        'D' => allow(Scope::Directory, ALWAYS),
        'e' => allow(Scope::DirectoryToRun, Lifetime::Session),
        'c' => allow(Scope::PrivateCopy, Lifetime::Session),
        'n' => Answer::Deny { lifetime: Lifetime::Session },
        'x' => Answer::Deny { lifetime: ALWAYS },
        _ => return None,
    })
}

pub(crate) fn of_word(word: &str) -> Option<Answer> {
    WORDS.iter().find(|(known, _)| *known == word).map(|(_, answer)| *answer)
}

/// Whether some word that is an answer begins with this letter.
pub(crate) fn begins_word(first: char) -> bool {
    WORDS.iter().any(|(word, _)| word.starts_with(first))
}

pub(crate) fn is_permanent(answer: Answer) -> bool {
    matches!(answer.lifetime(), Lifetime::Always(_))
}

/// What Enter would do.
pub(crate) fn told(answer: Answer) -> &'static str {
    match answer {
        Answer::Allow { scope, .. } if scope.is_directory() => "allow the directory always",
        Answer::Allow { .. } => "allow always",
        Answer::Deny { .. } => "deny always",
    }
}
