//! The plainest YAML, read in one pass: mappings of one-line values. Every run reads a preset before its command
//! can start, and a whole parser took a tenth of the time until then.
//!
//! For shipped presets only. It must never read anything otherwise than [`tree::read`] would: whatever is not as
//! plain as this is left to that.

use crate::tree::{self, Entry, Node, Position, Tree};
use std::iter::Peekable;

/// How much further in the lines of a section stand.
const INDENT: usize = 2;

struct Line<'a> {
    number: usize,
    indent: usize,
    text: &'a str,
}

impl Line<'_> {
    /// Of what stands so many bytes behind its beginning.
    fn position(&self, behind: usize) -> Position {
        Position { line: self.number, column: self.indent + behind + 1 }
    }
}

/// The document, if it is plain.
pub(crate) fn read(text: &str) -> Option<Node> {
    let mut lines = lines(text).peekable();
    let document = mapping(&mut lines, 0)?;
    lines.peek().is_none().then_some(document)
}

/// Those that say something.
fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let numbered = text.split('\n').zip(1..).map(|(line, number)| {
        let text = line.trim_start_matches(' ');
        Line { number, indent: line.len() - text.len(), text }
    });
    numbered.filter(|line| !line.text.is_empty() && !line.text.starts_with('#'))
}

fn mapping<'a>(
    lines: &mut Peekable<impl Iterator<Item = Line<'a>>>,
    indent: usize,
) -> Option<Node> {
    let at = lines.peek().filter(|first| first.indent == indent)?.position(0);
    let mut entries = Vec::with_capacity(16);
    while let Some(line) = lines.next_if(|line| line.indent == indent) {
        let (key, rest) = line.text.split_once(':')?;
        if !is_word(key) {
            return None;
        }
        let value = match rest.strip_prefix(' ') {
            Some(text) => Node { tree: value(text)?, at: line.position(key.len() + 2) },
            None if rest.is_empty() => mapping(lines, indent + INDENT)?,
            None => return None,
        };
        entries.push(Entry { key: key.to_owned(), at: line.position(0), value });
    }
    Some(Node { tree: Tree::Map(entries), at })
}

fn value(text: &str) -> Option<Tree> {
    match text {
        "[]" => return Some(Tree::List(Vec::new())),
        "{}" => return Some(Tree::Map(Vec::new())),
        _ => {}
    }
    if let Some(quoted) = text.strip_prefix('"') {
        let inside = quoted.strip_suffix('"')?;
        let is_plain = |c: char| (' '..='~').contains(&c) && c != '"' && c != '\\';
        return inside.chars().all(is_plain).then(|| Tree::Text(inside.to_owned()));
    }
    is_word(text).then(|| tree::plain(text.to_owned()))
}

/// Letters, digits and what may stand between them: no sign that YAML gives a meaning to.
fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::Format;
    use crate::presets::presets;

    /// Proves: POL-7 presets
    #[test]
    fn a_preset_is_read_as_the_parser_would() {
        let mut plain = Vec::new();
        for preset in presets() {
            if let Some(node) = read(preset.text) {
                let parsed = tree::read(preset.text, Format::Yaml).unwrap();
                assert_eq!(format!("{node:#?}"), format!("{parsed:#?}"), "{}", preset.name);
                plain.push(preset.name);
            }
        }
        assert!(plain.contains(&"default"), "every run would pay for the parser: {plain:?}");
    }

    /// Proves: POL-7 presets
    #[test]
    fn what_is_not_plain_is_left_to_the_parser() {
        for text in [
            "",
            "a: 1 # a comment",
            "a:\n- 1",
            "a:\n    b: 1",
            "a:",
            "a: \"\\n\"",
            "a: 'b'",
            "a: b c",
            "a: *b",
            "a: !b c",
            "? a",
            "a: [b]",
            "a: {b: c}",
            "a: |\n  b",
            "a : b",
            "a:  b",
            "a: b\n  c: d",
            " a: b",
            "a: b\r\nc: d",
            "a: b\n---\nc: d",
            "\ta: b",
        ] {
            assert!(read(text).is_none(), "{text:?}");
        }
    }

    /// Proves: POL-7 presets
    #[test]
    fn words_numbers_and_sections_mean_the_same_to_both() {
        for text in [
            "a: 1\nb: 1e3\nc: 0x1f\nd: true\ne: null\nf: no\ng: 5m",
            "a:\n  b: 1\n\n  # why\n  c:\n    d: x-y_z\ne: \"f # g: h\"",
            "a: []\nb: {}\na: []\n",
        ] {
            let parsed = tree::read(text, Format::Yaml).unwrap();
            let plain = read(text).unwrap();
            assert_eq!(format!("{plain:#?}"), format!("{parsed:#?}"), "{text}");
        }
    }
}
