//! Adds rules and hosts to the text of a policy file; everything else stays byte for byte (POL-5).
//!
//! The text is changed by one insertion and never reformatted: comments, order and spelling are the author's.
//! The result is parsed again. It must mean the same as before plus the new entries, or it is rejected.

mod edit;
mod listing;

pub use listing::{ListEntry, entries, without};

use crate::decode::document::PolicyDocument;
use crate::diagnostic::Diagnostic;
use crate::loaders::{SourceKind, load};
use crate::model::rule::StoredRule;
use crate::settings::Value;
use crate::syntax::outline::{Outline, Shape, Style};
use crate::syntax::tree::Format;
use edit::{Edit, Item};
use palisade_gate::{Rule, Store};
use palisade_hosts::HostEntry;
use std::collections::HashSet;
use std::path::PathBuf;

const RULES: &str = "filesystem.rules";

/// A file's text with rules added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    pub text: String,
    /// Only those that were not in the file already.
    pub added: Vec<StoredRule>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    #[error("{file} has errors and was not changed: {}", first_of(.problems))]
    Mistaken { file: String, problems: Vec<Diagnostic> },
    #[error("{file} belongs to another program; convert it first with `sandbox policy import`")]
    Foreign { file: String },
    #[error("{} cannot be written in a policy file (not UTF-8, or the root itself)", .path.display())]
    NotText { path: PathBuf },
    #[error("{file} cannot be changed automatically; add this rule by hand: {rule}")]
    CanNotEdit { file: String, rule: String },
    #[error("{file} cannot be changed automatically; remove line {line} by hand")]
    CanNotRemove { file: String, line: usize },
}

fn first_of(problems: &[Diagnostic]) -> String {
    problems.first().map(Diagnostic::to_string).unwrap_or_default()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostList {
    Allowed,
    Denied,
}

impl HostList {
    fn key(self) -> &'static str {
        match self {
            Self::Allowed => "network.allowedHosts",
            Self::Denied => "network.deniedHosts",
        }
    }

    fn last(self) -> &'static str {
        match self {
            Self::Allowed => "allowedHosts",
            Self::Denied => "deniedHosts",
        }
    }
}

/// A file's text with entries added to a list of hosts or paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedHosts {
    pub text: String,
    /// Only those that were not in the file already.
    pub added: Vec<String>,
}

/// Adds the hosts, each `HOST[:PORT]`, to a list in the text of `file`.
pub fn add_hosts(
    text: &str,
    file: &str,
    list: HostList,
    hosts: &[String],
) -> Result<SavedHosts, SaveError> {
    add_to(text, file, (list.key(), ["network", list.last()]), hosts, is_same_host)
}

/// Adds paths to `filesystem.readWritePaths`.
pub fn add_writable_paths(
    text: &str,
    file: &str,
    paths: &[String],
) -> Result<SavedHosts, SaveError> {
    const LIST: (&str, [&str; 2]) = ("filesystem.readWritePaths", ["filesystem", "readWritePaths"]);
    add_to(text, file, LIST, paths, |one, other| one == other)
}

/// Sets `network.mode: proxy` in a file with hosts, unless it sets the mode already.
pub fn with_proxy(text: &str, file: &str) -> Result<String, SaveError> {
    const MODE: &str = "network.mode";
    let before = read(text, file)?;
    if before.settings.contains_key(MODE) {
        return Ok(text.to_owned());
    }
    let can_not_edit =
        || SaveError::CanNotEdit { file: file.to_owned(), rule: format!("{MODE}: proxy") };
    let outline = Outline::of(text).ok_or_else(can_not_edit)?;
    let section = outline.entry("network").ok_or_else(can_not_edit)?;
    let Shape::Map { style, .. } = &section.value.shape else { return Err(can_not_edit()) };
    let (place, line) = match style {
        Style::Block => {
            let indent = " ".repeat(section.value.column);
            (section.value.start, format!("mode: proxy\n{indent}"))
        }
        Style::Flow => (section.value.start + 1, "\"mode\": \"proxy\", ".to_owned()),
    };
    let (head, tail) = text.split_at_checked(place).ok_or_else(can_not_edit)?;
    let changed = [head, &line, tail].concat();
    let after = read(&changed, file).map_err(|_| can_not_edit())?;
    let is_as_meant =
        after.settings.contains_key(MODE) && rest(&before, MODE) == rest(&after, MODE);
    if is_as_meant { Ok(changed) } else { Err(can_not_edit()) }
}

fn add_to(
    text: &str,
    file: &str,
    (key, path): (&'static str, [&'static str; 2]),
    values: &[String],
    is_same: impl Fn(&str, &str) -> bool,
) -> Result<SavedHosts, SaveError> {
    let before = read(text, file)?;
    let mut added: Vec<String> = Vec::new();
    for value in values {
        let mut known = values_of(&before, key).iter().chain(&added);
        if !known.any(|known| is_same(known, value)) {
            added.push(value.clone());
        }
    }
    if added.is_empty() {
        return Ok(SavedHosts { text: text.to_owned(), added });
    }
    let can_not_edit =
        || SaveError::CanNotEdit { file: file.to_owned(), rule: format!("{key}: [{}]", added[0]) };
    let items = added.iter().cloned().map(Item::Scalar).collect();
    let edit = Edit { text, format: Format::of(file), key: path, items };
    let text = edit.apply().ok_or_else(can_not_edit)?;
    let after = read(&text, file).map_err(|_| can_not_edit())?;
    let expected = values_of(&before, key).iter().chain(&added);
    let is_as_meant =
        values_of(&after, key).iter().eq(expected) && rest(&before, key) == rest(&after, key);
    if is_as_meant { Ok(SavedHosts { text, added }) } else { Err(can_not_edit()) }
}

fn values_of<'d>(document: &'d PolicyDocument, key: &str) -> &'d [String] {
    match document.settings.get(key).map(|setting| &setting.value) {
        Some(Value::List(values)) => values,
        _ => &[],
    }
}

fn is_same_host(one: &str, other: &str) -> bool {
    let parts = |text: &str| HostEntry::parse(text).map(|entry| (entry.pattern, entry.ports));
    one == other || matches!((parts(one), parts(other)), (Ok(one), Ok(other)) if one == other)
}

/// Adds the rules to the text of `file`. The file name selects JSON or YAML.
pub fn add_rules(text: &str, file: &str, rules: &[Rule]) -> Result<Saved, SaveError> {
    let before = read(text, file)?;
    let rules = rules.iter().map(|rule| stored(rule, file)).collect::<Result<Vec<_>, _>>()?;
    let mut known: HashSet<_> = rules_of(&before).iter().map(StoredRule::saying).collect();
    let mut added: Vec<StoredRule> = Vec::new();
    for rule in &rules {
        if known.insert(rule.saying()) {
            added.push(rule.clone());
        }
    }
    if added.is_empty() {
        return Ok(Saved { text: text.to_owned(), added });
    }
    let can_not_edit =
        || SaveError::CanNotEdit { file: file.to_owned(), rule: added[0].to_json_text() };
    let items = added.iter().map(|rule| Item::Fields(rule.fields(), rule.to_json_text()));
    let edit = Edit {
        text,
        format: Format::of(file),
        key: ["filesystem", "rules"],
        items: items.collect(),
    };
    let text = edit.apply().ok_or_else(can_not_edit)?;
    let after = read(&text, file).map_err(|_| can_not_edit())?;
    if !differ_by(&before, &after, &added) {
        return Err(can_not_edit());
    }
    Ok(Saved { text, added })
}

fn read(text: &str, file: &str) -> Result<PolicyDocument, SaveError> {
    let loaded = load(text, file)
        .map_err(|problems| SaveError::Mistaken { file: file.to_owned(), problems })?;
    match loaded.kind {
        SourceKind::Palisade => Ok(loaded.document),
        _ => Err(SaveError::Foreign { file: file.to_owned() }),
    }
}

fn rules_of(document: &PolicyDocument) -> &[StoredRule] {
    match document.settings.get(RULES).map(|setting| &setting.value) {
        Some(Value::Rules(rules)) => rules,
        _ => &[],
    }
}

fn stored(rule: &Rule, file: &str) -> Result<StoredRule, SaveError> {
    let pattern = rule.pattern.text().ok_or_else(|| SaveError::NotText {
        path: rule.pattern.path().map(PathBuf::from).unwrap_or_default(),
    })?;
    Ok(StoredRule {
        effect: rule.effect,
        pattern,
        access: rule.access,
        until: rule.until,
        by: rule.origin.by.clone(),
        at: rule.origin.at,
        note: None,
        // The same value as in any parsed document; the layer determines the real store.
        store: Store::User,
        file: file.to_owned(),
        line: 0,
        column: 0,
    })
}

/// Whether the second document is the first one plus these rules, and nothing else.
fn differ_by(before: &PolicyDocument, after: &PolicyDocument, added: &[StoredRule]) -> bool {
    let expected = rules_of(before).iter().chain(added).map(StoredRule::to_document_json);
    let found = rules_of(after).iter().map(StoredRule::to_document_json);
    found.eq(expected) && rest(before, RULES) == rest(after, RULES)
}

/// Everything in a document except this key.
fn rest(document: &PolicyDocument, key: &str) -> serde_json::Value {
    let mut document = document.clone();
    document.settings.remove(key);
    document.to_json()
}

#[cfg(test)]
#[path = "save_tests.rs"]
mod tests;
