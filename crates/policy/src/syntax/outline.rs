//! The positions of lists and mappings in a text, for code that edits it.
//!
//! Besides `tree.rs` the only module that uses the YAML library. It does not validate: its input was parsed
//! before.

use granit_parser::{Event, Options, Parser, Span, StrInput, StructureStyle};

/// The range of a value, in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Outline {
    pub(crate) start: usize,
    /// The end of the last content in it that is not a comment or blank.
    pub(crate) end: usize,
    /// The column at which it starts.
    pub(crate) column: usize,
    pub(crate) shape: Shape,
}

#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// A key without a value, or a text without a document.
    Nothing,
    Scalar,
    List {
        style: Style,
        items: Vec<Outline>,
    },
    Map {
        style: Style,
        entries: Vec<Entry>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Structured by lines and indentation.
    Block,
    /// Structured by brackets.
    Flow,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_start: usize,
    pub(crate) key_end: usize,
    pub(crate) value: Outline,
}

impl Outline {
    /// The outline of the only document; `None` if the text cannot be parsed.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let mut options = Options::default();
        options.set_emit_comments(false);
        let mut reader = Reader { events: Parser::new_from_str_with_options(text, options) };
        loop {
            match reader.next()? {
                (Event::StreamEnd, _) => {
                    let end = text.len();
                    return Some(Self { start: end, end, column: 0, shape: Shape::Nothing });
                }
                (Event::DocumentStart(..), _) => {
                    let (event, span) = reader.next()?;
                    return reader.node(&event, &span);
                }
                _ => {}
            }
        }
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.shape {
            Shape::Map { entries, .. } => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }
}

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<(Event<'a>, Span)> {
        self.events.next()?.ok()
    }

    fn node(&mut self, event: &Event<'a>, span: &Span) -> Option<Outline> {
        let range = span.byte_range()?;
        let column = span.start.col();
        let (shape, end) = match event {
            Event::Scalar(..) if range.is_empty() => (Shape::Nothing, range.end),
            Event::Scalar(..) => (Shape::Scalar, range.end),
            Event::SequenceStart(style, ..) => self.list(*style)?,
            Event::MappingStart(style, ..) => self.map(*style)?,
            _ => return None,
        };
        Some(Outline { start: range.start, end, column, shape })
    }

    fn list(&mut self, style: StructureStyle) -> Option<(Shape, usize)> {
        let mut items: Vec<Outline> = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, span) => {
                    let style = style_of(style);
                    let end = end_of(style, &span, items.last().map(|item| item.end))?;
                    return Some((Shape::List { style, items }, end));
                }
                (event, span) => items.push(self.node(&event, &span)?),
            }
        }
    }

    fn map(&mut self, style: StructureStyle) -> Option<(Shape, usize)> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            match self.next()? {
                (Event::MappingEnd, span) => {
                    let style = style_of(style);
                    let last = entries.last().map(|entry| entry.key_end.max(entry.value.end()));
                    let end = end_of(style, &span, last)?;
                    return Some((Shape::Map { style, entries }, end));
                }
                (Event::Scalar(key, ..), span) => {
                    let (key_start, key_end) = (span.byte_range()?.start, span.byte_range()?.end);
                    let (event, span) = self.next()?;
                    let value = self.node(&event, &span)?;
                    entries.push(Entry { key: key.into_owned(), key_start, key_end, value });
                }
                _ => return None,
            }
        }
    }
}

impl Outline {
    /// An empty value has no end: the parser may place it after the comments that follow.
    fn end(&self) -> usize {
        match self.shape {
            Shape::Nothing => 0,
            _ => self.end,
        }
    }
}

fn style_of(style: StructureStyle) -> Style {
    match style {
        StructureStyle::Block => Style::Block,
        StructureStyle::Flow => Style::Flow,
    }
}

/// A flow style value ends at its bracket, a block style value with its last content.
fn end_of(style: Style, closing: &Span, last: Option<usize>) -> Option<usize> {
    match style {
        Style::Flow => Some(closing.byte_range()?.end),
        Style::Block => last,
    }
}
