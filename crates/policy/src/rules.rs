//! `filesystem.rules`: what is said once and for all about paths that would be asked about.
//!
//! Rules of several layers are never mixed into one list: each keeps its store and its line, and
//! which of them decides is the gate's part, not the merge's.

use crate::layers::LayerKind;
use crate::nearest::nearest;
use crate::settings::Value;
use crate::tree::{Entry, Node, Tree};
use crate::value::{Mistake, Mistakes, items, mistake};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use palisade_gate::{Access, Effect, Origin, Pattern, PatternError, Rule, Store};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::fmt;
use std::path::Path;

/// A rule, whose it is and where it is written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredRule {
    pub effect: Effect,
    /// As it was written: `/x/file`, `/x/**`, `~/notes/*.md`.
    pub pattern: String,
    pub access: Access,
    /// From this moment on it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The user's, until a layer takes it for its own.
    pub store: Store,
    pub file: String,
    /// 0 where it was in no file.
    pub line: usize,
    #[serde(skip)]
    pub(crate) column: usize,
}

/// Two rules with the same are one: files have thousands, so they are compared by hash.
pub(crate) type Saying<'a> = (Effect, &'a str, Access, Option<Timestamp>, Store);

impl StoredRule {
    /// As the gate takes it. `home` is what `~/` stands for, links resolved.
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

    /// `FILE:LINE`.
    pub fn place(&self) -> String {
        match self.line {
            0 => self.file.clone(),
            line => format!("{}:{line}", self.file),
        }
    }

    /// What it says, wherever it is written and whoever wrote it.
    pub(crate) fn saying(&self) -> Saying<'_> {
        (self.effect, &self.pattern, self.access, self.until, self.store)
    }

    /// As a document has it.
    pub(crate) fn to_document_json(&self) -> Json {
        let fields = self.fields().into_iter();
        Json::Object(fields.map(|(name, text)| (name.to_owned(), json!(text))).collect())
    }

    /// The same in one line, the path first.
    pub(crate) fn to_json_text(&self) -> String {
        let fields = self.fields().into_iter();
        let fields: Vec<String> =
            fields.map(|(name, text)| format!("\"{name}\": {}", json!(text))).collect();
        format!("{{ {} }}", fields.join(", "))
    }

    /// What a document says of it, in the order in which people read it.
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

/// Which store a layer's rules belong to.
pub(crate) fn store_of(kind: LayerKind) -> Store {
    match kind {
        LayerKind::Organisation => Store::Organisation,
        LayerKind::Project(_) => Store::Project,
        LayerKind::BuiltIn
        | LayerKind::User
        | LayerKind::Writable(_)
        | LayerKind::Environment
        | LayerKind::CommandLine => Store::User,
    }
}

const FIELDS: [&str; 7] = ["allow", "deny", "access", "until", "by", "at", "note"];
const EXPECTED: &str = "a mapping with `allow` or `deny` and a path";

pub(crate) fn decode(node: &Node, file: &str) -> Result<Value, Mistakes> {
    items(node, EXPECTED, |item| decode_rule(item, file)).map(Value::Rules)
}

fn decode_rule(node: &Node, file: &str) -> Result<StoredRule, Mistakes> {
    let Tree::Map(entries) = &node.tree else { return mistake(node, EXPECTED) };
    for (index, entry) in entries.iter().enumerate() {
        check_name(entry, &entries[..index])?;
    }
    let (effect, path) = match (node.get("allow"), node.get("deny")) {
        (Some(path), None) => (Effect::Allow, path),
        (None, Some(path)) => (Effect::Deny, path),
        _ => return mistake(node, "a rule with exactly one of `allow` and `deny`"),
    };
    let text = |name| match node.get(name) {
        None => Ok(None),
        Some(Node { tree: Tree::Text(text), .. }) => Ok(Some(text.clone())),
        Some(other) => mistake(other, &format!("a rule whose `{name}` is text")),
    };
    Ok(StoredRule {
        effect,
        pattern: decode_pattern(path)?,
        access: decode_access(node.get("access"))?,
        until: node.get("until").map(|until| moment(until, End::OfDay)).transpose()?,
        by: text("by")?,
        at: node.get("at").map(|at| moment(at, End::None)).transpose()?,
        note: text("note")?,
        store: Store::User,
        file: file.to_owned(),
        line: node.at.line,
        column: node.at.column,
    })
}

fn check_name(entry: &Entry, before: &[Entry]) -> Result<(), Mistakes> {
    let found = Node { tree: Tree::Text(entry.key.clone()), at: entry.at };
    if !FIELDS.contains(&entry.key.as_str()) {
        let nearest = nearest(&entry.key, FIELDS);
        let near = nearest.map(|near| format!(" (nearest: {near})")).unwrap_or_default();
        return mistake(&found, &format!("a rule made of {}{near}", FIELDS.join(", ")));
    }
    if before.iter().any(|other| other.key == entry.key) {
        return mistake(&found, &format!("a rule that gives `{}` once", entry.key));
    }
    Ok(())
}

fn decode_pattern(node: &Node) -> Result<String, Mistakes> {
    let Tree::Text(text) = &node.tree else { return mistake(node, "a rule about a path") };
    if text.contains('\0') {
        return mistake(node, "a rule about a path");
    }
    match Pattern::check(text) {
        Ok(()) => Ok(text.clone()),
        Err(why) => {
            let expected = format!("a rule about a path or pattern ({why})");
            Err(vec![Mistake { found: node.clone(), expected }])
        }
    }
}

fn decode_access(node: Option<&Node>) -> Result<Access, Mistakes> {
    match node.map(|node| (node, &node.tree)) {
        None => Ok(Access::default()),
        Some((_, Tree::Text(word))) if word == "read" => Ok(Access::Read),
        Some((_, Tree::Text(word))) if word == "execute" => Ok(Access::Execute),
        Some((_, Tree::Text(word))) if word == "write" => Ok(Access::Write),
        Some((node, _)) => mistake(node, "a rule whose `access` is read, execute or write"),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// A date means to its very end.
    OfDay,
    None,
}

/// A timestamp, or a date by the world's clock: a policy means the same wherever it is read.
fn moment(node: &Node, end: End) -> Result<Timestamp, Mistakes> {
    let Tree::Text(text) = &node.tree else { return not_a_moment(node) };
    if let Ok(timestamp) = text.parse() {
        return Ok(timestamp);
    }
    let date = text.parse::<Date>().and_then(|date| match end {
        End::OfDay => date.tomorrow(),
        End::None => Ok(date),
    });
    match date.and_then(|date| date.to_zoned(TimeZone::UTC)) {
        Ok(start) => Ok(start.timestamp()),
        Err(_) => not_a_moment(node),
    }
}

fn not_a_moment(node: &Node) -> Result<Timestamp, Mistakes> {
    mistake(node, "a date such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z")
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
