//! A parsed file in which every key and value still knows its line and column.
//!
//! The only module that knows the YAML library. It must accept nothing ambiguous: no tags, no merge
//! keys, no YAML 1.1 booleans, one document a file.

use crate::parse::Format;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy};
use std::fmt;

/// Deeper than any policy goes, and far from exhausting a stack.
const MAX_DEPTH: usize = 32;

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

/// One line of a mapping; duplicates are still here, the decoder reports them.
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

    /// The value under `key`, where this is a mapping that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        match &self.tree {
            Tree::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|e| &e.value),
            _ => None,
        }
    }
}

/// Reads `text`; a `.json` file must be JSON and nothing more.
pub(crate) fn read(text: &str, format: Format) -> Result<Node, SyntaxError> {
    if format == Format::Json {
        serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(|error| SyntaxError {
            at: Position { line: error.line(), column: error.column() },
            message: json_message(&error),
        })?;
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: MAX_DEPTH },
        // Kept, so that the decoder can report every duplicate with its place.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        merge_keys: MergeKeyPolicy::AsOrdinary,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let at = error.location().map_or(Position { line: 1, column: 1 }, position);
        let whole = error.to_string();
        let message = whole.split(" at line ").next().unwrap_or(&whole).to_owned();
        SyntaxError { at, message }
    })
}

/// serde_json ends its messages with the place, which the diagnostic already names.
fn json_message(error: &serde_json::Error) -> String {
    let whole = error.to_string();
    let end = whole.rfind(" at line ").unwrap_or(whole.len());
    format!("not JSON: {}", whole.get(..end).unwrap_or(&whole))
}

fn position(location: serde_saphyr::Location) -> Position {
    let narrow = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Position { line: narrow(location.line()), column: narrow(location.column()) }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Tree>::deserialize(source)?;
        Ok(Node { at: position(spanned.referenced), tree: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Integer(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Integer(value.into()))
    }
    fn visit_i128<E>(self, value: i128) -> Result<Tree, E> {
        Ok(Tree::Integer(value))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Float(value))
    }
    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }
    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }
    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Tree, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = pairs.next_entry::<Spanned<String>, Node>()? {
            entries.push(Entry { at: position(key.referenced), key: key.value, value });
        }
        Ok(Tree::Map(entries))
    }
}

/// For values that were never in a file: flags and variables.
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
