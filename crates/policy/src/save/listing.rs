//! Single entries of a policy file: the position of each, and the text without one of them.
//!
//! The text is changed by one deletion and never reformatted. The result is parsed again. It must mean the same
//! as before without that entry, or it is rejected.

use super::{SaveError, read};
use crate::decode::document::PolicyDocument;
use crate::settings::Value;
use crate::syntax::outline::{Entry, Outline, Shape, Style};
use jiff::Timestamp;
use serde::Serialize;
use std::ops::Range;

/// The lists that contain users' decisions, and the words that describe an entry of each.
const LISTS: [(&str, [&str; 2], &str); 9] = [
    ("filesystem.rules", ["filesystem", "rules"], ""),
    ("filesystem.readOnlyPaths", ["filesystem", "readOnlyPaths"], "read "),
    ("filesystem.readWritePaths", ["filesystem", "readWritePaths"], "write "),
    ("filesystem.unprotectedPaths", ["filesystem", "unprotectedPaths"], "write protected name "),
    ("filesystem.buildDirs", ["filesystem", "buildDirs"], "build directory "),
    ("filesystem.deniedPaths", ["filesystem", "deniedPaths"], "hide "),
    ("network.allowedHosts", ["network", "allowedHosts"], "allow host "),
    ("network.deniedHosts", ["network", "deniedHosts"], "deny host "),
    ("process.allowedEnvVars", ["process", "allowedEnvVars"], "pass variable "),
];

/// One entry of such a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListEntry {
    pub key: &'static str,
    /// Its index in the list.
    #[serde(skip)]
    pub index: usize,
    pub line: usize,
    /// A description: `allow /opt/sdk/** execute`, `deny host tracker.example`.
    pub what: String,
    /// As written: a path, a pattern, a host or a name.
    pub value: String,
    /// Whether an untrusted file may contain it.
    pub tightens: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// All entries of a file, ordered by line.
pub fn entries(text: &str, file: &str) -> Result<Vec<ListEntry>, SaveError> {
    let document = read(text, file)?;
    let Some(outline) = Outline::of(text) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for (key, path, word) in LISTS {
        let Some(items) = list_of(&outline, path) else { continue };
        let said = said(&document, key, word);
        // The values do not correspond to the items of the text one to one, so their lines are unknown.
        if said.len() != items.len() {
            continue;
        }
        for (index, (item, said)) in items.iter().zip(said).enumerate() {
            let line = 1 + text.get(..item.start).map_or(0, |head| head.matches('\n').count());
            let Said { what, value, tightens, by, at } = said;
            found.push(ListEntry { key, index, line, what, value, tightens, by, at });
        }
    }
    found.sort_by_key(|entry| entry.line);
    Ok(found)
}

/// The text without one entry. If it was the last one, the list is removed as well: an empty list would clear
/// the entries of other layers.
pub fn without(text: &str, file: &str, entry: &ListEntry) -> Result<String, SaveError> {
    let refused = || SaveError::CanNotRemove { file: file.to_owned(), line: entry.line };
    let before = read(text, file)?;
    let outline = Outline::of(text).ok_or_else(refused)?;
    let (_, path, _) = LISTS.into_iter().find(|(key, ..)| *key == entry.key).ok_or_else(refused)?;
    let expected = expected(&before, path, entry.index).ok_or_else(refused)?;
    let cuts = cuts(text, &outline, path, entry.index).ok_or_else(refused)?;
    cuts.into_iter()
        .filter_map(|cut| Some([text.get(..cut.start)?, text.get(cut.end..)?].concat()))
        .find(|after| read(after, file).is_ok_and(|after| after.to_json() == expected))
        .ok_or_else(refused)
}

/// The meaning of an entry.
struct Said {
    what: String,
    value: String,
    tightens: bool,
    by: Option<String>,
    at: Option<Timestamp>,
}

fn said(document: &PolicyDocument, key: &str, word: &str) -> Vec<Said> {
    match document.settings.get(key).map(|setting| &setting.value) {
        Some(Value::Rules(rules)) => rules
            .iter()
            .map(|rule| Said {
                what: rule.to_string(),
                value: rule.pattern.clone(),
                tightens: rule.effect == palisade_gate::Effect::Deny,
                by: rule.by.clone(),
                at: rule.at,
            })
            .collect(),
        Some(Value::List(values)) => values
            .iter()
            .map(|value| Said {
                what: format!("{word}{value}"),
                value: value.clone(),
                tightens: key.contains("denied"),
                by: None,
                at: None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn list_of<'o>(top: &'o Outline, [section, list]: [&str; 2]) -> Option<&'o [Outline]> {
    match &top.entry(section)?.value.entry(list)?.value.shape {
        Shape::List { items, .. } => Some(items),
        _ => None,
    }
}

/// The document without the entry.
fn expected(
    before: &PolicyDocument,
    [section, list]: [&str; 2],
    index: usize,
) -> Option<serde_json::Value> {
    let mut json = before.to_json();
    let within = json.get_mut(section)?.as_object_mut()?;
    let items = within.get_mut(list)?.as_array_mut()?;
    if index >= items.len() {
        return None;
    }
    items.remove(index);
    if items.is_empty() {
        within.remove(list);
    }
    if within.is_empty() {
        json.as_object_mut()?.remove(section);
    }
    Some(json)
}

/// The ranges that could be removed, in the order in which to try them.
fn cuts(
    text: &str,
    top: &Outline,
    [section, list]: [&str; 2],
    index: usize,
) -> Option<Vec<Range<usize>>> {
    let section = top.entry(section)?;
    let list = section.value.entry(list)?;
    let Shape::List { style, items } = &list.value.shape else { return None };
    let item = items.get(index)?;
    if items.len() == 1 {
        let mut cuts = [of_entry(text, &section.value, list), of_entry(text, top, section)];
        // An empty section has no effect, so the whole section is tried first.
        if matches!(&section.value.shape, Shape::Map { entries, .. } if entries.len() == 1) {
            cuts.reverse();
        }
        return Some(cuts.into_iter().flatten().collect());
    }
    let cut = match (style, index) {
        (Style::Block, _) => {
            let lines = lines(text, item.start, item.end)?;
            (text.get(lines.start..item.start)?.trim() == "-").then_some(lines)?
        }
        (Style::Flow, 0) => item.start..items.get(1)?.start,
        (Style::Flow, _) => items.get(index - 1)?.end..item.end,
    };
    Some(vec![cut])
}

/// The range of a key with its value.
fn of_entry(text: &str, map: &Outline, entry: &Entry) -> Option<Range<usize>> {
    let Shape::Map { style, entries } = &map.shape else { return None };
    let end = entry.key_end.max(entry.value.end);
    if *style == Style::Block {
        let lines = lines(text, entry.key_start, end)?;
        return text.get(lines.start..entry.key_start)?.trim().is_empty().then_some(lines);
    }
    let at = entries.iter().position(|other| other.key_start == entry.key_start)?;
    Some(match (at.checked_sub(1).and_then(|before| entries.get(before)), entries.get(at + 1)) {
        (Some(before), _) => before.key_end.max(before.value.end)..end,
        (None, Some(next)) => entry.key_start..next.key_start,
        (None, None) => entry.key_start..end,
    })
}

/// The range of whole lines, including their line ends.
fn lines(text: &str, start: usize, end: usize) -> Option<Range<usize>> {
    let begin = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
    let rest = text.get(end..)?;
    Some(begin..end + rest.find('\n').map_or(rest.len(), |at| at + 1))
}

#[cfg(test)]
mod tests {
    use super::{entries, without};

    const YAML: &str = "\
# mine
filesystem:
  rules:
    - allow: /opt/sdk/**   # the kit
      access: execute
      by: terminal
      at: 2026-01-31T12:00:00Z
    - deny: ~/diary
  project: read-only
network:
  allowedHosts: [api.example, \"*.cdn.example\"]
  deniedHosts:
    - tracker.example
";

    fn removed(text: &str, file: &str, what: &str) -> String {
        let all = entries(text, file).unwrap();
        let entry = all.iter().find(|entry| entry.what == what).unwrap();
        without(text, file, entry).unwrap()
    }

    /// Proves: POL-5 rules
    #[test]
    fn every_entry_has_its_line_its_author_and_its_words() {
        let all = entries(YAML, "policy.yaml").unwrap();
        let shown: Vec<(usize, &str)> = all.iter().map(|e| (e.line, e.what.as_str())).collect();
        assert_eq!(
            shown,
            [
                (4, "allow /opt/sdk/** execute"),
                (8, "deny ~/diary"),
                (11, "allow host api.example"),
                (11, "allow host *.cdn.example"),
                (13, "deny host tracker.example"),
            ]
        );
        assert_eq!(all[0].by.as_deref(), Some("terminal"));
        assert_eq!(all[0].at.unwrap().to_string(), "2026-01-31T12:00:00Z");
        assert!(!all[0].tightens && all[1].tightens && all[4].tightens);
    }

    /// Proves: POL-5 forget
    #[test]
    fn one_entry_goes_and_everything_else_stays_byte_for_byte() {
        let first = removed(YAML, "p.yaml", "allow /opt/sdk/** execute");
        assert_eq!(first, YAML.replace(
            "    - allow: /opt/sdk/**   # the kit\n      access: execute\n      by: terminal\n      at: 2026-01-31T12:00:00Z\n",
            "",
        ));
        let second = removed(YAML, "p.yaml", "deny ~/diary");
        assert_eq!(second, YAML.replace("    - deny: ~/diary\n", ""));
        let host = removed(YAML, "p.yaml", "allow host api.example");
        assert_eq!(host, YAML.replace("api.example, ", ""));
        let host = removed(YAML, "p.yaml", "allow host *.cdn.example");
        assert_eq!(host, YAML.replace(", \"*.cdn.example\"", ""));
    }

    /// Proves: POL-5 forget
    #[test]
    fn with_its_last_entry_a_list_goes_too_for_an_empty_one_would_clear_others() {
        let last = removed(YAML, "p.yaml", "deny host tracker.example");
        assert_eq!(last, YAML.replace("  deniedHosts:\n    - tracker.example\n", ""));
        let only = "view: host\nfilesystem:\n  rules:\n    - deny: /x\n";
        assert_eq!(removed(only, "p.yaml", "deny /x"), "view: host\n");
        let json = r#"{"network": {"allowedHosts": ["a.example"], "mode": "proxy"}}"#;
        let after = removed(json, "p.json", "allow host a.example");
        assert_eq!(after, r#"{"network": {"mode": "proxy"}}"#);
        let json = r#"{"view": "host", "filesystem": {"rules": [{"deny": "/x"}]}}"#;
        assert_eq!(removed(json, "p.json", "deny /x"), r#"{"view": "host"}"#);
    }
}
