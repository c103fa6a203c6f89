//! Adds rules to the text of a policy file; everything else in it stays byte for byte (POL-5).
//!
//! One insertion, nothing is ever written anew: comments, order and spelling are the author's. What comes
//! out is read again and must say what was said before and the new rules, or it is not handed out.

use crate::diagnostic::Diagnostic;
use crate::document::PolicyDocument;
use crate::loaders::{SourceKind, load};
use crate::outline::{Entry, Outline, Shape, Style};
use crate::parse::Format;
use crate::rules::StoredRule;
use crate::settings::Value;
use crate::tree;
use palisade_gate::{Rule, Store};
use std::path::PathBuf;

const RULES: &str = "filesystem.rules";

/// A file's text with rules added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    pub text: String,
    /// Those that were not there already.
    pub added: Vec<StoredRule>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    #[error("{file} has mistakes, and is not touched: {}", first_of(.problems))]
    Mistaken { file: String, problems: Vec<Diagnostic> },
    #[error(
        "{file} is another program's file; make a policy of it first with `sandbox policy import`"
    )]
    Foreign { file: String },
    #[error("{} can not be written in a policy file (not UTF-8, or the root itself)", .path.display())]
    NotText { path: PathBuf },
    #[error(
        "{file} is written in a way that no rule can be added to by itself; add it by hand: {rule}"
    )]
    CanNotEdit { file: String, rule: String },
}

fn first_of(problems: &[Diagnostic]) -> String {
    problems.first().map(Diagnostic::to_string).unwrap_or_default()
}

/// Adds the rules to the text of `file`, whose name tells JSON from YAML.
pub fn add_rules(text: &str, file: &str, rules: &[Rule]) -> Result<Saved, SaveError> {
    let before = read(text, file)?;
    let mut added: Vec<StoredRule> = Vec::new();
    for rule in rules {
        let rule = stored(rule, file)?;
        let is_there = |known: &StoredRule| known.says_the_same(&rule);
        if !rules_of(&before).iter().chain(&added).any(is_there) {
            added.push(rule);
        }
    }
    if added.is_empty() {
        return Ok(Saved { text: text.to_owned(), added });
    }
    let can_not_edit =
        || SaveError::CanNotEdit { file: file.to_owned(), rule: added[0].to_json_text() };
    let outline = Outline::of(text).ok_or_else(can_not_edit)?;
    let edit = Edit { text, format: Format::of(file), rules: &added };
    let (place, insertion) = edit.insertion(&outline).ok_or_else(can_not_edit)?;
    let (head, tail) = text.split_at_checked(place).ok_or_else(can_not_edit)?;
    let text = [head, &insertion, tail].concat();
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
        // As every document's rules before a layer takes them.
        store: Store::User,
        file: file.to_owned(),
        line: 0,
        column: 0,
    })
}

/// Whether the second says what the first does and these rules, and nothing else.
fn differ_by(before: &PolicyDocument, after: &PolicyDocument, added: &[StoredRule]) -> bool {
    let expected = rules_of(before).iter().chain(added).map(StoredRule::to_document_json);
    let found = rules_of(after).iter().map(StoredRule::to_document_json);
    let rest = |document: &PolicyDocument| {
        let mut document = document.clone();
        document.settings.remove(RULES);
        document.to_json()
    };
    found.eq(expected) && rest(before) == rest(after)
}

struct Edit<'a> {
    text: &'a str,
    format: Format,
    rules: &'a [StoredRule],
}

impl Edit<'_> {
    /// What to put where; none for a shape that is not understood.
    fn insertion(&self, top: &Outline) -> Option<(usize, String)> {
        let Some(filesystem) = top.entry("filesystem") else {
            return self.add_to_mapping(top, &["filesystem", "rules"]);
        };
        let Some(rules) = filesystem.value.entry("rules") else {
            return match filesystem.value.shape {
                Shape::Nothing => {
                    let indent = self.indent_of(filesystem.key_end) + 2;
                    Some(self.lines(filesystem.key_end, &self.block(&["rules"], indent)))
                }
                _ => self.add_to_mapping(&filesystem.value, &["rules"]),
            };
        };
        match &rules.value.shape {
            Shape::List { style: Style::Block, items } => {
                let before = self.line_of(items.first()?.start);
                let dash = before.find('-').filter(|_| before.trim() == "-")?;
                Some(self.lines(rules.value.end, &self.block_items(dash)))
            }
            Shape::List { style: Style::Flow, items } => {
                Some(self.add_in_brackets(&rules.value, items.last(), &self.flow_rules()))
            }
            _ => None,
        }
    }

    fn add_to_mapping(&self, map: &Outline, keys: &[&str]) -> Option<(usize, String)> {
        match &map.shape {
            Shape::Nothing if self.format == Format::Yaml => {
                Some(self.lines(self.text.len(), &self.block(keys, 0)))
            }
            Shape::Map { style: Style::Block, .. } => {
                Some(self.lines(map.end, &self.block(keys, map.column)))
            }
            Shape::Map { style: Style::Flow, entries } => {
                let last = entries.last().map(Entry::outline);
                let indent = self.indent_in(map, last.as_ref());
                let value = self.flow(keys, indent);
                Some(self.add_in_brackets(map, last.as_ref(), &[value]))
            }
            _ => None,
        }
    }

    /// Whole lines behind the line that holds the byte before `end`.
    fn lines(&self, end: usize, lines: &str) -> (usize, String) {
        let newline = self.newline();
        let text = lines.replace('\n', newline);
        if end == 0 || self.text[..end].ends_with('\n') {
            return (end, text);
        }
        match self.text[end..].find('\n') {
            Some(rest) => (end + rest + 1, text),
            None => (self.text.len(), format!("{newline}{text}")),
        }
    }

    fn block(&self, keys: &[&str], indent: usize) -> String {
        let mut text = String::new();
        let mut indent = indent;
        for key in keys {
            text += &format!("{:indent$}{key}:\n", "");
            indent += 2;
        }
        text + &self.block_items(indent)
    }

    fn block_items(&self, indent: usize) -> String {
        let mut text = String::new();
        for rule in self.rules {
            let mut mark = "- ";
            for (name, value) in rule.fields() {
                text += &format!("{:indent$}{mark}{name}: {}\n", "", yaml_scalar(&value));
                mark = "  ";
            }
        }
        text
    }

    fn flow_rules(&self) -> Vec<String> {
        self.rules.iter().map(StoredRule::to_json_text).collect()
    }

    /// `"filesystem": { "rules": […] }`, over several lines where the file is written so.
    fn flow(&self, keys: &[&str], indent: Option<usize>) -> String {
        let Some((key, inner)) = keys.split_first() else { return String::new() };
        let deeper = indent.map(|indent| indent + 2);
        let (open, items, close) = match inner {
            [] => ('[', self.flow_rules(), ']'),
            inner => ('{', vec![self.flow(inner, deeper)], '}'),
        };
        let (between, first, last) = match indent {
            Some(indent) => {
                let newline = self.newline();
                let line = format!("{newline}{:1$}", "", indent + 2);
                (format!(",{line}"), line, format!("{newline}{:indent$}", ""))
            }
            None => (", ".to_owned(), String::new(), String::new()),
        };
        format!("\"{key}\": {open}{first}{}{last}{close}", items.join(&between))
    }

    /// New items behind the last one, on lines of their own where that one has one.
    fn add_in_brackets(
        &self,
        around: &Outline,
        last: Option<&Outline>,
        items: &[String],
    ) -> (usize, String) {
        let indent = self.indent_in(around, last);
        let newline = self.newline();
        let separator = match indent {
            Some(indent) => format!(",{newline}{:indent$}", ""),
            None => ", ".to_owned(),
        };
        let items = items.join(&separator);
        match (last, indent) {
            (Some(last), _) => (last.end, format!("{separator}{items}")),
            (None, Some(indent)) => {
                let close = format!("{newline}{:1$}", "", indent.saturating_sub(2));
                (around.start + 1, format!("{newline}{:indent$}{items}{close}", ""))
            }
            (None, None) => (around.start + 1, items),
        }
    }

    /// How far items within these brackets are indented; none if they stand in one line.
    fn indent_in(&self, around: &Outline, last: Option<&Outline>) -> Option<usize> {
        match last {
            Some(last) => self.starts_line(last.start).then(|| self.indent_of(last.start)),
            None => {
                let is_spread = self.text.trim().contains('\n') && self.format == Format::Json;
                (is_spread || self.text.trim() == "{}").then(|| self.indent_of(around.start) + 2)
            }
        }
    }

    fn line_of(&self, place: usize) -> &str {
        let start = self.text[..place].rfind('\n').map_or(0, |newline| newline + 1);
        &self.text[start..place]
    }

    fn starts_line(&self, place: usize) -> bool {
        self.text[..place].contains('\n') && self.line_of(place).trim().is_empty()
    }

    fn indent_of(&self, place: usize) -> usize {
        let line = self.line_of(place);
        line.len() - line.trim_start_matches(' ').len()
    }

    fn newline(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }
}

impl Entry {
    /// From the key to the end of the value.
    fn outline(&self) -> Outline {
        Outline {
            start: self.key_start,
            end: self.value.end,
            column: self.value.column,
            shape: Shape::Scalar,
        }
    }
}

/// Without quotes where nobody could take it for anything else.
fn yaml_scalar(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._~*?+@%=-:".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/');
    let plain = begins && text.chars().all(is_plain) && !text.ends_with(':');
    if plain && tree::is_text(text) {
        text.to_owned()
    } else {
        serde_json::Value::from(text).to_string()
    }
}

#[cfg(test)]
#[path = "save_tests.rs"]
mod tests;
