//! A parsed file in which every key and value has its line and column.
//!
//! Besides `outline.rs` the only module that uses the YAML library. It must accept nothing ambiguous or
//! explosive: no tags, no aliases, no merge keys, no YAML 1.1 booleans, one document per file.
//!
//! The build script compiles this file to parse the presets, so it must not use anything else of the crate.

use granit_parser::{Event, Marker, Options, Parser, ScalarStyle, StrInput};

/// Deeper than any policy, and far from exhausting the stack.
const MAX_DEPTH: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON only.
    Json,
    /// YAML 1.2, a superset of JSON.
    Yaml,
}

impl Format {
    /// By the file's name: `.json` is JSON, everything else YAML.
    pub fn of(file: &str) -> Format {
        if file.to_ascii_lowercase().ends_with(".json") { Format::Json } else { Format::Yaml }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) tree: Tree,
    pub(crate) at: Position,
}

#[derive(Clone, Debug)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// One entry of a mapping. Duplicates are kept, so that the decoder can report them.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) at: Position,
    pub(crate) value: Node,
}

#[derive(Clone, Debug)]
pub(crate) struct SyntaxError {
    pub(crate) at: Position,
    pub(crate) message: String,
}

impl Node {
    pub(crate) fn kind(&self) -> &'static str {
        match self.tree {
            Tree::Null => "nothing",
            Tree::Bool(_) => "a boolean",
            Tree::Integer(_) | Tree::Float(_) => "a number",
            Tree::Text(_) => "text",
            Tree::List(_) => "a list",
            Tree::Map(_) => "a mapping",
        }
    }

    /// The value of `key`, if this is a mapping that contains it.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        match &self.tree {
            Tree::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|e| &e.value),
            _ => None,
        }
    }
}

/// Parses `text`. A `.json` file must be pure JSON.
pub(crate) fn read(text: &str, format: Format) -> Result<Node, SyntaxError> {
    if format == Format::Json {
        serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(|error| SyntaxError {
            // serde_json reports column 0 if the file ends after a line break.
            at: Position { line: error.line().max(1), column: error.column().max(1) },
            message: json_message(&error),
        })?;
    }
    let mut options = Options::default();
    options.set_emit_comments(false);
    Reader { events: Parser::new_from_str_with_options(text, options) }.document()
}

/// serde_json appends the position to its messages, which the diagnostic already contains.
fn json_message(error: &serde_json::Error) -> String {
    let whole = error.to_string();
    let end = whole.rfind(" at line ").unwrap_or(whole.len());
    format!("not JSON: {}", whole.get(..end).unwrap_or(&whole))
}

/// Builds the tree directly from the parser's events, not through serde: a run reads its policy files before
/// its command can start.
struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
}

impl<'a> Reader<'a> {
    fn document(mut self) -> Result<Node, SyntaxError> {
        let mut found = None;
        loop {
            let (event, at) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(..) if found.is_none() => {
                    let (event, at) = self.next()?;
                    found = Some(self.node(event, at, 0)?);
                }
                _ => return refused(at, "there is a second document; a policy file has one"),
            }
        }
        Ok(found.unwrap_or(Node { tree: Tree::Null, at: Position { line: 1, column: 1 } }))
    }

    fn next(&mut self) -> Result<(Event<'a>, Position), SyntaxError> {
        match self.events.next() {
            Some(Ok((event, span))) => Ok((event, position(&span.start))),
            Some(Err(error)) => refused(position(error.marker()), &error.info()),
            None => Ok((Event::StreamEnd, Position::default())),
        }
    }

    fn node(&mut self, event: Event<'a>, at: Position, depth: usize) -> Result<Node, SyntaxError> {
        if depth > MAX_DEPTH {
            return refused(at, "nested too deeply");
        }
        let tree = match event {
            Event::Scalar(text, ScalarStyle::Plain, _, None) => plain(text.into_owned()),
            Event::Scalar(text, _, _, None) => Tree::Text(text.into_owned()),
            Event::SequenceStart(_, _, None) => self.list(depth)?,
            Event::MappingStart(_, _, None) => self.map(depth)?,
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                return refused(at, "aliases are not accepted; write the value out");
            }
            Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..) => {
                return refused(at, "tags are not accepted; write the plain value");
            }
            _ => return refused(at, "a value is missing"),
        };
        Ok(Node { tree, at })
    }

    fn list(&mut self, depth: usize) -> Result<Tree, SyntaxError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Tree::List(items)),
                (event, at) => items.push(self.node(event, at, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Tree, SyntaxError> {
        let mut entries = Vec::new();
        loop {
            match self.next()? {
                (Event::MappingEnd, _) => return Ok(Tree::Map(entries)),
                (Event::Scalar(key, _, _, None), at) => {
                    let (event, value_at) = self.next()?;
                    let value = self.node(event, value_at, depth + 1)?;
                    entries.push(Entry { key: key.into_owned(), at, value });
                }
                (_, at) => return refused(at, "a key must be plain text"),
            }
        }
    }
}

fn refused<T>(at: Position, message: &str) -> Result<T, SyntaxError> {
    Err(SyntaxError { at, message: message.to_owned() })
}

/// Lines count from 1 in the parser, columns from 0.
fn position(marker: &Marker) -> Position {
    Position { line: marker.line(), column: marker.col() + 1 }
}

/// The value of an unquoted scalar, by the core schema of YAML 1.2.2, section 10.3.2.
pub(crate) fn plain(text: String) -> Tree {
    let radix = |digits: &str, radix| i128::from_str_radix(digits, radix).ok().map(Tree::Integer);
    let number = match (text.strip_prefix("0x"), text.strip_prefix("0o")) {
        (Some(digits), _) => radix(digits, 16),
        (_, Some(digits)) => radix(digits, 8),
        _ if text.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c)) => {
            let float = || text.parse().ok().filter(|n: &f64| n.is_finite()).map(Tree::Float);
            text.parse().ok().map(Tree::Integer).or_else(float)
        }
        _ => None,
    };
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => Tree::Null,
        "true" | "True" | "TRUE" => Tree::Bool(true),
        "false" | "False" | "FALSE" => Tree::Bool(false),
        _ => number.unwrap_or(Tree::Text(text)),
    }
}

/// Whether an unquoted scalar is text.
pub(crate) fn is_text(scalar: &str) -> bool {
    matches!(plain(scalar.to_owned()), Tree::Text(_))
}

/// For values that do not come from a file: flags and variables.
impl From<serde_json::Value> for Node {
    fn from(value: serde_json::Value) -> Self {
        use serde_json::Value as Json;
        let tree = match value {
            Json::Null => Tree::Null,
            Json::Bool(value) => Tree::Bool(value),
            Json::Number(number) => number
                .as_i128()
                .map(Tree::Integer)
                .or_else(|| number.as_f64().map(Tree::Float))
                .unwrap_or(Tree::Null),
            Json::String(text) => Tree::Text(text),
            Json::Array(items) => Tree::List(items.into_iter().map(Node::from).collect()),
            Json::Object(map) => Tree::Map(
                map.into_iter()
                    .map(|(key, value)| Entry { key, at: Position::default(), value: value.into() })
                    .collect(),
            ),
        };
        Node { tree, at: Position::default() }
    }
}
