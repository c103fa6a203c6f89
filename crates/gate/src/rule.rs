//! One rule: what it says about which paths, and whose word it is.

use crate::pattern::Pattern;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What is wanted of a path. Executing and writing include reading, and neither includes the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    #[default]
    Read,
    Execute,
    /// To change it; of a directory, what is in it: to make, change and rename files there.
    Write,
}

impl Access {
    /// Whether who may have this may have the other as well.
    pub fn includes(self, other: Self) -> bool {
        self == other || other == Self::Read
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    Deny,
    Allow,
}

/// Where a rule is kept, in the order in which they are asked: the first store that has a rule for
/// a path decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Store {
    Organisation,
    Project,
    User,
    Session,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub effect: Effect,
    pub pattern: Pattern,
    pub access: Access,
    pub store: Store,
    /// From this moment on the rule says nothing.
    pub until: Option<Timestamp>,
    pub origin: Origin,
}

/// Who made a rule, when, and where it can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    pub by: Option<String>,
    pub at: Option<Timestamp>,
    /// `FILE:LINE`, or in words, such as "answered in this session".
    pub place: String,
}

impl Rule {
    /// Whether the rule speaks about this access. Who may execute or write may read, and who may not read may do
    /// neither.
    pub(crate) fn covers(&self, access: Access) -> bool {
        match self.effect {
            Effect::Allow => self.access.includes(access),
            Effect::Deny => access.includes(self.access),
        }
    }

    pub(crate) fn holds_at(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

impl fmt::Display for Access {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Access::Read => "read",
            Access::Execute => "execute",
            Access::Write => "write",
        })
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Effect::Deny => "deny",
            Effect::Allow => "allow",
        })
    }
}

impl fmt::Display for Store {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Store::Organisation => "organisation",
            Store::Project => "project",
            Store::User => "user",
            Store::Session => "session",
        })
    }
}
