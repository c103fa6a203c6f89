//! One question of one run, as the list shows it.

use palisade_ask::{Question, QuestionId};

/// One question, and what is known of the session it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// As it can be named on a command line.
    pub(crate) address: String,
    pub(crate) command: String,
    pub(crate) project: String,
    pub(crate) question: Question,
}

impl Row {
    pub(crate) fn identity(&self) -> Identity {
        (self.question.session.clone(), self.question.id)
    }
}

/// Which question, whatever its place in the list is.
pub(crate) type Identity = (String, QuestionId);
