//! Finds where in a text an item is added to a list, and formats it in the style of the file. Always a single
//! insertion.

use crate::syntax::outline::{Entry, Outline, Shape, Style};
use crate::syntax::tree;
use crate::syntax::tree::Format;

/// A new item of a list.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// The fields for block style, and JSON for flow style.
    Fields(Vec<(&'static str, String)>, String),
    Scalar(String),
}

#[derive(Debug)]
pub(super) struct Edit<'a> {
    pub(super) text: &'a str,
    pub(super) format: Format,
    /// The section, and the list in it.
    pub(super) key: [&'a str; 2],
    pub(super) items: Vec<Item>,
}

impl Edit<'_> {
    /// The text with the items added at the end of the list; `None` if the structure is not supported.
    pub(super) fn apply(&self) -> Option<String> {
        let outline = Outline::of(self.text)?;
        let (place, insertion) = self.insertion(&outline)?;
        let (head, tail) = self.text.split_at_checked(place)?;
        Some([head, &insertion, tail].concat())
    }

    /// The position and the text to insert; `None` if the structure is not supported.
    fn insertion(&self, top: &Outline) -> Option<(usize, String)> {
        let [section, list] = self.key;
        let Some(section) = top.entry(section) else {
            return self.add_to_mapping(top, &self.key);
        };
        let Some(list) = section.value.entry(list) else {
            return match section.value.shape {
                Shape::Nothing => {
                    let indent = self.indent_of(section.key_end) + 2;
                    Some(self.lines(section.key_end, &self.block(&[list], indent)))
                }
                _ => self.add_to_mapping(&section.value, &[list]),
            };
        };
        match &list.value.shape {
            Shape::List { style: Style::Block, items } => {
                let before = self.line_of(items.first()?.start);
                let dash = before.find('-').filter(|_| before.trim() == "-")?;
                Some(self.lines(list.value.end, &self.block_items(dash)))
            }
            Shape::List { style: Style::Flow, items } => {
                Some(self.add_in_brackets(&list.value, items.last(), &self.flow_items()))
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

    /// Inserts whole lines after the line that contains the byte before `end`.
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
        for item in &self.items {
            let mut mark = "- ";
            match item {
                Item::Scalar(value) => {
                    text += &format!("{:indent$}{mark}{}\n", "", yaml_scalar(value));
                }
                Item::Fields(fields, _) => {
                    for (name, value) in fields {
                        text += &format!("{:indent$}{mark}{name}: {}\n", "", yaml_scalar(value));
                        mark = "  ";
                    }
                }
            }
        }
        text
    }

    fn flow_items(&self) -> Vec<String> {
        let flow = |item: &Item| match item {
            Item::Fields(_, json) => json.clone(),
            Item::Scalar(value) => serde_json::Value::from(value.as_str()).to_string(),
        };
        self.items.iter().map(flow).collect()
    }

    /// `"filesystem": { "rules": […] }`, over several lines if the file is formatted so.
    fn flow(&self, keys: &[&str], indent: Option<usize>) -> String {
        let Some((key, inner)) = keys.split_first() else { return String::new() };
        let deeper = indent.map(|indent| indent + 2);
        let (open, items, close) = match inner {
            [] => ('[', self.flow_items(), ']'),
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

    /// Adds items after the last one, on separate lines if the last one has its own line.
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

    /// The indentation of items in these brackets; `None` if they are on one line.
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
    /// The range from the key to the end of the value.
    fn outline(&self) -> Outline {
        Outline {
            start: self.key_start,
            end: self.value.end,
            column: self.value.column,
            shape: Shape::Scalar,
        }
    }
}

/// Without quotes if the text is unambiguous.
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
