//! The answers of a session, and where permanent answers are kept.

use jiff::Timestamp;
use palisade_ask::Store;
use palisade_gate::{Effect, Rule};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::path::PathBuf;
use std::rc::Rc;

/// An answer about a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostAnswer {
    pub effect: Effect,
    /// With its port, as a policy's list has it.
    pub host: String,
    pub at: Timestamp,
    pub by: String,
}

/// What people answered, whatever it was about.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    pub rules: Vec<Rule>,
    pub hosts: Vec<HostAnswer>,
}

impl Answers {
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.hosts.is_empty()
    }
}

impl From<Vec<Rule>> for Answers {
    fn from(rules: Vec<Rule>) -> Self {
        Self { rules, hosts: Vec::new() }
    }
}

/// Keeps permanent answers. The supervisor does not know in which files.
pub trait AnswerStore: Debug {
    /// The error is for people.
    fn save(&self, answers: &Answers, store: Store) -> Result<(), String>;

    /// The policy file that denies this host, if one does.
    fn file_that_denies(&self, host: &str) -> Option<PathBuf>;
}

/// Shared by everything that asks.
pub type SharedStore = Rc<dyn AnswerStore>;
