//! `filesystem.rules`: permanent decisions about paths that the user would otherwise be asked about.
//!
//! Rules of several layers are never reduced to one: each keeps its store and its line, and the gate, not the
//! merge, decides which one applies.

use jiff::Timestamp;
use palisade_gate::{Access, Effect, Origin, Pattern, PatternError, Rule, Store};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::fmt;
use std::path::Path;

/// A rule, its store, and where it is written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredRule {
    pub effect: Effect,
    /// As written: `/x/file`, `/x/**`, `~/notes/*.md`.
    pub pattern: String,
    pub access: Access,
    /// The rule expires at this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// `User` until a layer sets its own store.
    pub store: Store,
    pub file: String,
    /// 0 if it is not in a file.
    pub line: usize,
    #[serde(skip)]
    pub(crate) column: usize,
}

/// Rules with the same value are duplicates. Files have thousands of rules, so this is compared by hash.
pub(crate) type Saying<'a> = (Effect, &'a str, Access, Option<Timestamp>, Store);

impl StoredRule {
    /// As a rule of the gate. `home` replaces `~`, with links resolved.
    pub fn rule(&self, home: Option<&Path>) -> Result<Rule, PatternError> {
        Ok(Rule {
            effect: self.effect,
            pattern: Pattern::parse(&self.pattern, home)?,
            access: self.access,
            store: self.store,
            until: self.until,
            origin: Origin { by: self.by.clone(), at: self.at, place: self.place() },
        })
    }

    /// Whether it denies something at this path or below, as far as that can be told from its pattern.
    pub fn may_deny_within(&self, tree: &Path, home: Option<&Path>) -> bool {
        // A rule below the home directory of somebody who has none names nothing.
        let Ok(pattern) = Pattern::parse(&self.pattern, home) else { return false };
        self.effect == Effect::Deny && pattern.may_be_within(tree)
    }

    /// `FILE:LINE`.
    pub fn place(&self) -> String {
        match self.line {
            0 => self.file.clone(),
            line => format!("{}:{line}", self.file),
        }
    }

    /// The meaning of the rule, without its position and author.
    pub(crate) fn saying(&self) -> Saying<'_> {
        (self.effect, &self.pattern, self.access, self.until, self.store)
    }

    /// As in a document.
    pub(crate) fn to_document_json(&self) -> Json {
        let fields = self.fields().into_iter();
        Json::Object(fields.map(|(name, text)| (name.to_owned(), json!(text))).collect())
    }

    /// The same in one line, starting with the path.
    pub(crate) fn to_json_text(&self) -> String {
        let fields = self.fields().into_iter();
        let fields: Vec<String> =
            fields.map(|(name, text)| format!("\"{name}\": {}", json!(text))).collect();
        format!("{{ {} }}", fields.join(", "))
    }

    /// The fields as in a document, in the usual order of reading.
    pub(crate) fn fields(&self) -> Vec<(&'static str, String)> {
        let effect = match self.effect {
            Effect::Allow => "allow",
            Effect::Deny => "deny",
        };
        let access = (self.access != Access::default()).then(|| self.access.to_string());
        let fields = [
            (effect, Some(self.pattern.clone())),
            ("access", access),
            ("until", self.until.map(|until| until.to_string())),
            ("by", self.by.clone()),
            ("at", self.at.map(|at| at.to_string())),
            ("note", self.note.clone()),
        ];
        fields.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
    }
}

/// `allow /opt/sdk/** execute until 2027-01-01T00:00:00Z`.
impl fmt::Display for StoredRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.effect, self.pattern)?;
        if self.access != Access::default() {
            write!(out, " {}", self.access)?;
        }
        self.until.map_or(Ok(()), |until| write!(out, " until {until}"))
    }
}
