//! Values of policy keys, and the resolved [`Policy`] built from a full set of them.

use crate::diagnostic::Origin;
use crate::keys::{self, ValueKind};
use crate::model::escape::shown_webhook;
use crate::model::network::{Credential, shown_upstream};
use crate::model::rule::StoredRule;
use crate::model::{Approval, Policy};
use crate::units;
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::hash::Hash;

/// A decoded value, already in the key's unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Word(&'static str),
    Bool(bool),
    Number(u64),
    Seconds(i64),
    Text(String),
    List(Vec<String>),
    Ports(Vec<u16>),
    Cpus(BTreeSet<u32>),
    Map(BTreeMap<String, String>),
    Approvals(Vec<Approval>),
    Credentials(Vec<Credential>),
    Rules(Vec<StoredRule>),
}

/// A value and where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// Settings by key path; the paths are those of the key table.
pub(crate) type Settings = BTreeMap<&'static str, Setting>;

impl Value {
    /// As in the resolved policy.
    fn to_json(&self) -> Json {
        match self {
            Value::Word(word) => json!(word),
            Value::Bool(value) => json!(value),
            Value::Number(number) => json!(number),
            Value::Seconds(seconds) => json!(seconds),
            Value::Text(text) => json!(text),
            Value::List(items) => json!(items),
            Value::Ports(ports) => json!(ports),
            Value::Cpus(cpus) => json!(cpus),
            Value::Map(map) => json!(map),
            Value::Approvals(approvals) => json!(approvals),
            Value::Credentials(credentials) => json!(credentials),
            Value::Rules(rules) => json!(rules),
        }
    }

    /// As a document would write it.
    fn to_document_json(&self, kind: ValueKind) -> Json {
        match (self, kind) {
            (Value::Number(milli), ValueKind::Cpus) if milli.is_multiple_of(1000) => {
                json!(milli / 1000)
            }
            (Value::Number(milli), ValueKind::Cpus) => json!(units::show_cpus(*milli)),
            (Value::Cpus(cpus), _) => json!(units::show_cpu_set(cpus)),
            (Value::Rules(rules), _) => rules.iter().map(StoredRule::to_document_json).collect(),
            (value, _) => value.to_json(),
        }
    }

    /// For display, in the units that a document accepts.
    pub(crate) fn show(&self, kind: ValueKind) -> String {
        match (self, kind) {
            (Value::Number(bytes), ValueKind::Size | ValueKind::SizeOrZero) => {
                units::show_size(*bytes)
            }
            (Value::Number(millis), ValueKind::Millis) => units::show_millis(*millis),
            (Value::Number(milli), ValueKind::Cpus) => units::show_cpus(*milli),
            (Value::Cpus(cpus), _) => units::show_cpu_set(cpus),
            (Value::Word(word), _) => (*word).to_owned(),
            (Value::Text(url), ValueKind::Webhook) => Json::from(shown_webhook(url)).to_string(),
            (Value::Text(url), ValueKind::Upstream) => Json::from(shown_upstream(url)).to_string(),
            (Value::Rules(rules), _) => {
                let rules: Vec<String> = rules.iter().map(StoredRule::to_string).collect();
                format!("[{}]", rules.join(", "))
            }
            (value, _) => value.to_json().to_string(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Value::List(items) => items.is_empty(),
            Value::Ports(ports) => ports.is_empty(),
            Value::Map(map) => map.is_empty(),
            Value::Approvals(approvals) => approvals.is_empty(),
            Value::Credentials(credentials) => credentials.is_empty(),
            Value::Rules(rules) => rules.is_empty(),
            _ => false,
        }
    }

    /// The entries of both lists, in order and without duplicates; the newer value if they are not lists.
    pub(crate) fn union(&self, newer: &Value) -> Value {
        fn few<T: Clone + PartialEq>(old: &[T], new: &[T]) -> Vec<T> {
            let mut all = old.to_vec();
            for item in new {
                if !all.contains(item) {
                    all.push(item.clone());
                }
            }
            all
        }
        match (self, newer) {
            (Value::List(old), Value::List(new)) => Value::List(joined(old, new)),
            (Value::Ports(old), Value::Ports(new)) => Value::Ports(few(old, new)),
            (Value::Approvals(old), Value::Approvals(new)) => Value::Approvals(few(old, new)),
            (Value::Credentials(old), Value::Credentials(new)) => Value::Credentials(few(old, new)),
            (Value::Rules(old), Value::Rules(new)) => Value::Rules(joined(old, new)),
            (Value::Map(old), Value::Map(new)) => {
                let mut all = old.clone();
                all.extend(new.clone());
                Value::Map(all)
            }
            _ => newer.clone(),
        }
    }

    /// Whether every entry of this list is in `other`.
    pub(crate) fn is_subset(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::List(small), Value::List(large)) => small.iter().all(|i| large.contains(i)),
            (Value::Ports(small), Value::Ports(large)) => small.iter().all(|i| large.contains(i)),
            (Value::Approvals(small), Value::Approvals(large)) => {
                small.iter().all(|i| large.contains(i))
            }
            (Value::Credentials(small), Value::Credentials(large)) => {
                small.iter().all(|i| large.contains(i))
            }
            (Value::Rules(small), Value::Rules(large)) => small.iter().all(|i| large.contains(i)),
            _ => false,
        }
    }
}

pub(crate) fn word(settings: &Settings, path: &str) -> Option<&'static str> {
    match settings.get(path).map(|setting| &setting.value) {
        Some(Value::Word(word)) => Some(word),
        _ => None,
    }
}

pub(crate) fn boolean(settings: &Settings, path: &str) -> Option<bool> {
    match settings.get(path).map(|setting| &setting.value) {
        Some(Value::Bool(value)) => Some(*value),
        _ => None,
    }
}

pub(crate) fn number(settings: &Settings, path: &str) -> Option<u64> {
    match settings.get(path).map(|setting| &setting.value) {
        Some(Value::Number(number)) => Some(*number),
        _ => None,
    }
}

pub(crate) fn list<'a>(settings: &'a Settings, path: &str) -> &'a [String] {
    match settings.get(path).map(|setting| &setting.value) {
        Some(Value::List(items)) => items,
        _ => &[],
    }
}

pub(crate) fn approvals(settings: &Settings) -> &[Approval] {
    match settings.get("approvals").map(|setting| &setting.value) {
        Some(Value::Approvals(approvals)) => approvals,
        _ => &[],
    }
}

/// The settings as a nested mapping, in the form a document has.
pub(crate) fn to_document(settings: &Settings) -> Map<String, Json> {
    nest(settings, |path, value| {
        let kind = keys::find(path).map_or(ValueKind::Bool, |key| key.kind);
        (path, value.to_document_json(kind))
    })
}

/// The policy, or an error if a required key has no value.
pub(crate) fn to_policy(settings: &Settings) -> Result<Policy, IncompleteSettings> {
    let mut nested = nest(settings, |path, value| match path {
        "resources.cpus" => ("resources.milliCpus", value.to_json()),
        path => (path, value.to_json()),
    });
    // The only section in which every key may be unset.
    nested.entry("resources").or_insert_with(|| json!({}));
    serde_json::from_value(Json::Object(nested))
        .map_err(|error| IncompleteSettings(error.to_string()))
}

fn nest(
    settings: &Settings,
    entry: impl Fn(&'static str, &Value) -> (&'static str, Json),
) -> Map<String, Json> {
    let mut top = Map::new();
    for (path, setting) in settings {
        let (path, value) = entry(path, &setting.value);
        match path.split_once('.') {
            None => {
                top.insert(path.to_owned(), value);
            }
            Some((section, name)) => {
                let section = top.entry(section).or_insert_with(|| json!({}));
                if let Json::Object(map) = section {
                    map.insert(name.to_owned(), value);
                }
            }
        }
    }
    top
}

/// The layers left a required key without a value.
#[derive(Debug)]
pub(crate) struct IncompleteSettings(String);

impl fmt::Display for IncompleteSettings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the layers do not add up to a complete policy: {}", self.0)
    }
}

/// The entries of both lists, in order and without duplicates. Uses a hash set: lists written by programs can
/// have thousands of entries.
pub(crate) fn joined<T: Clone + Eq + Hash>(old: &[T], new: &[T]) -> Vec<T> {
    let mut known: HashSet<&T> = old.iter().collect();
    let added = new.iter().filter(|item| known.insert(item));
    old.iter().chain(added).cloned().collect()
}
