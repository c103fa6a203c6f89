//! Decodes `filesystem.rules`.

use super::mistake::{Mistake, Mistakes, items, mistake};
use crate::model::rule::StoredRule;
use crate::nearest::nearest;
use crate::settings::Value;
use crate::syntax::tree::{Entry, Node, Tree};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use palisade_gate::{Access, Effect, Pattern, Store};

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
    /// A date includes the whole day.
    OfDay,
    None,
}

/// A timestamp, or a date in UTC, so that a policy means the same in every time zone.
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
