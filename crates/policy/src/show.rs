//! Prints a merged policy as text or JSON, every value with its origin.

use crate::decode::document::VERSION;
use crate::keys;
use crate::merge::{Merged, Provenance};
use crate::model::rule::StoredRule;
use crate::settings::{self, Value};
use serde_json::{Value as Json, json};

/// One line for each key, and one for each rule: `network.mode: none  # built-in, preset default:20`. Callers
/// must escape the lines before printing.
pub fn show_lines(merged: &Merged) -> Vec<String> {
    let mut lines: Vec<(String, String)> = Vec::new();
    for key in keys::KEYS {
        let Some(setting) = merged.settings.get(key.path) else { continue };
        let sources = merged.provenance.get(key.path).map(Vec::as_slice).unwrap_or_default();
        let sources: Vec<String> = sources.iter().map(Provenance::to_string).collect();
        if let Value::Rules(rules) = &setting.value
            && !rules.is_empty()
        {
            let line = |rule: &StoredRule| {
                (format!("{}: {rule}", key.path), format!("{}, {}", rule.store, rule.place()))
            };
            lines.extend(rules.iter().map(line));
            continue;
        }
        let value = format!("{}: {}", key.path, setting.value.show(key.kind));
        lines.push((value, sources.join("; ")));
    }
    let width = lines.iter().map(|(value, _)| value.chars().count()).filter(|w| *w <= 60).max();
    let width = width.unwrap_or_default();
    let lines = lines.iter().map(|(value, sources)| format!("{value:width$}  # {sources}"));
    lines.chain(merged.notes.iter().map(|note| format!("note: {note}"))).collect()
}

/// An object with `policy`, `provenance` by key path, and `notes`.
pub fn show_json(merged: &Merged) -> Json {
    json!({
        "policy": merged.policy,
        "provenance": merged.provenance,
        "notes": merged.notes,
    })
}

/// The merged policy as a document that can be loaded without other layers.
pub fn export(merged: &Merged) -> Json {
    let mut document = settings::to_document(&merged.settings);
    document.insert("version".to_owned(), json!(VERSION));
    Json::Object(document)
}

#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
