//! One rule: its effect, the paths it applies to, and its origin.

use crate::pattern::Pattern;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The requested access. Executing and writing include reading; neither includes the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    #[default]
    Read,
    Execute,
    /// To change a file; for a directory, to create, change and rename files in it.
    Write,
}

impl Access {
    /// As in the policy files.
    const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Execute => "execute",
            Self::Write => "write",
        }
    }

    /// Whether permission for this access includes the other one.
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

impl Effect {
    /// As in the policy files.
    const fn word(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Allow => "allow",
        }
    }
}

/// Where a rule is stored, in the order of precedence: the first store that has a rule for a path decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Store {
    Organisation,
    Project,
    User,
    Session,
}

impl Store {
    /// As in the policy files.
    const fn word(self) -> &'static str {
        match self {
            Self::Organisation => "organisation",
            Self::Project => "project",
            Self::User => "user",
            Self::Session => "session",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub effect: Effect,
    pub pattern: Pattern,
    pub access: Access,
    pub store: Store,
    /// The rule expires at this time.
    pub until: Option<Timestamp>,
    pub origin: Origin,
}

/// Who made a rule, when, and where it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    pub by: Option<String>,
    pub at: Option<Timestamp>,
    /// `FILE:LINE`, or a description such as "answered in this session".
    pub place: String,
}

impl Rule {
    /// Whether the rule applies to this access. A permission to execute or write includes reading; a denial of
    /// reading includes executing and writing.
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
        out.write_str(self.word())
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

impl fmt::Display for Store {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The word that is read from and written to a file.
    struct Written<'w, T>(&'w T);

    impl<T: Serialize> fmt::Display for Written<'_, T> {
        fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.serialize(out)
        }
    }

    #[test]
    fn the_words_are_those_of_the_policy_files() {
        fn same<T: fmt::Display + Serialize>(all: &[T]) {
            all.iter().for_each(|one| assert_eq!(one.to_string(), Written(one).to_string()));
        }
        same(&[Access::Read, Access::Execute, Access::Write]);
        same(&[Effect::Deny, Effect::Allow]);
        same(&[Store::Organisation, Store::Project, Store::User, Store::Session]);
    }
}
