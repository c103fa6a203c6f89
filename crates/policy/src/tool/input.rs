//! The input of a tool: a small part of JSON Schema that says which values there are, and the check of what a caller gave.
//!
//! A keyword that is not known is an error and is never ignored: it would be a check that is not made. What is not declared is
//! refused.

use super::pattern::Pattern;
use crate::decode::Decoder;
use crate::diagnostic::{Diagnostic, Problem};
use crate::nearest::nearest;
use crate::syntax::tree::{Entry, Format, Node, Tree};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Of a text, in characters, unless the schema says less.
const MAX_TEXT: u64 = 1 << 20;
/// Of a list.
const MAX_ITEMS: u64 = 1000;
const MAX_PROPERTIES: usize = 100;

const SCHEMA_KEYS: [&str; 5] =
    ["type", "description", "properties", "required", "additionalProperties"];
const TEXT_KEYS: [&str; 7] =
    ["type", "description", "default", "enum", "minLength", "maxLength", "pattern"];
const NUMBER_KEYS: [&str; 5] = ["type", "description", "default", "minimum", "maximum"];
const BOOLEAN_KEYS: [&str; 3] = ["type", "description", "default"];
const LIST_KEYS: [&str; 6] = ["type", "description", "default", "items", "minItems", "maxItems"];

/// The values that a tool takes.
#[derive(Clone, Debug, Default)]
pub struct InputSchema {
    properties: Vec<Property>,
}

#[derive(Clone, Debug)]
struct Property {
    name: String,
    description: Option<String>,
    is_required: bool,
    default: Option<Value>,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Text(Text),
    Integer { minimum: Option<f64>, maximum: Option<f64> },
    Number { minimum: Option<f64>, maximum: Option<f64> },
    Boolean,
    List { items: Text, fewest: u64, most: u64 },
}

#[derive(Clone, Debug, Default)]
struct Text {
    shortest: u64,
    longest: Option<u64>,
    choices: Vec<String>,
    pattern: Option<Pattern>,
}

/// Why an input is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    #[error("the input must be an object with the values by name, not {found}")]
    NotObject { found: &'static str },
    #[error("the tool takes no `{name}`{}", .nearest.as_ref().map(|it| format!("; did you mean `{it}`?")).unwrap_or_default())]
    Unknown { name: String, nearest: Option<String> },
    #[error("`{name}` is missing")]
    Missing { name: String },
    #[error("`{name}` {wrong}")]
    Wrong { name: String, wrong: String },
}

/// Values that passed the check, as the arguments that they become.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputValues {
    values: BTreeMap<String, Value>,
    arguments: BTreeMap<String, Vec<String>>,
}

impl InputValues {
    /// The arguments that a value becomes: one, or one for each item of a list. An empty list is no value: an option before it would
    /// take the next argument for its own.
    pub(crate) fn get(&self, name: &str) -> Option<&Vec<String>> {
        self.arguments.get(name).filter(|arguments| !arguments.is_empty())
    }

    /// Whether it was given, and is not `false`.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some() && self.values.get(name) != Some(&Value::Bool(false))
    }

    /// A value with its defaults, as JSON.
    pub fn json(&self) -> Value {
        json!(self.values)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.as_str()
    }
}

impl InputSchema {
    /// A schema of our own.
    pub(crate) fn of_json(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let node = crate::decode::parse::read_tree(text, "schema", Format::Json)?;
        let mut decoder = Decoder::new("schema");
        let schema = decode(&mut decoder, &node, "input");
        if decoder.problems.is_empty() { Ok(schema) } else { Err(decoder.problems) }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.properties.iter().any(|property| property.name == name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.properties.iter().map(|property| property.name.as_str())
    }

    pub(crate) fn is_text(&self, name: &str) -> bool {
        let found = self.properties.iter().find(|property| property.name == name);
        found.is_some_and(|property| matches!(property.kind, Kind::Text(_)))
    }

    /// Whether it has a value in each call.
    pub(crate) fn always_has(&self, name: &str) -> bool {
        let found = self.properties.iter().find(|property| property.name == name);
        found.is_some_and(|property| {
            // A caller can give an empty list, whatever the default is.
            let may_be_empty = matches!(property.kind, Kind::List { fewest: 0, .. });
            (property.is_required || property.default.is_some()) && !may_be_empty
        })
    }

    /// The values of an input, with defaults; everything that is wrong with it otherwise.
    pub fn check(&self, input: &Value) -> Result<InputValues, Vec<InputError>> {
        let Value::Object(given) = input else {
            return Err(vec![InputError::NotObject { found: word_for(input) }]);
        };
        let mut errors: Vec<InputError> = given
            .keys()
            .filter(|name| !self.has(name))
            .map(|name| InputError::Unknown {
                name: name.clone(),
                nearest: nearest(name, self.names()).map(str::to_owned),
            })
            .collect();
        let mut values = InputValues::default();
        for property in &self.properties {
            let name = &property.name;
            // As most schemas and their users have it: null is no value.
            let value = given.get(name).filter(|value| !value.is_null());
            let Some(value) = value.or(property.default.as_ref()) else {
                if property.is_required {
                    errors.push(InputError::Missing { name: name.clone() });
                }
                continue;
            };
            match property.kind.arguments(value) {
                Ok(arguments) => {
                    values.arguments.insert(name.clone(), arguments);
                    values.values.insert(name.clone(), value.clone());
                }
                Err(wrong) => errors.push(InputError::Wrong { name: name.clone(), wrong }),
            }
        }
        if errors.is_empty() { Ok(values) } else { Err(errors) }
    }

    /// As JSON Schema, for clients and models.
    pub fn to_json(&self) -> Value {
        let properties: Map<String, Value> =
            self.properties.iter().map(|it| (it.name.clone(), it.to_json())).collect();
        let required: Vec<&str> =
            self.properties.iter().filter(|it| it.is_required).map(|it| it.name.as_str()).collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }
}

impl Property {
    fn to_json(&self) -> Value {
        let mut schema = self.kind.to_json();
        if let Some(description) = &self.description {
            schema["description"] = json!(description);
        }
        if let Some(default) = &self.default {
            schema["default"] = default.clone();
        }
        schema
    }
}

impl Kind {
    /// What is wrong with a value is said behind its name.
    fn arguments(&self, value: &Value) -> Result<Vec<String>, String> {
        let expected = |words: &str| Err(format!("must be {words}, not {}", word_for(value)));
        match (self, value) {
            (Self::Text(text), Value::String(value)) => {
                text.check(value).map(|()| vec![value.clone()])
            }
            (Self::Text(_), _) => expected("text"),
            (Self::Integer { minimum, maximum }, Value::Number(number))
                if number.is_i64() || number.is_u64() =>
            {
                within(number, *minimum, *maximum)
            }
            (Self::Integer { .. }, _) => expected("a whole number"),
            (Self::Number { minimum, maximum }, Value::Number(number)) => {
                within(number, *minimum, *maximum)
            }
            (Self::Number { .. }, _) => expected("a number"),
            (Self::Boolean, Value::Bool(value)) => Ok(vec![value.to_string()]),
            (Self::Boolean, _) => expected("true or false"),
            (Self::List { items, fewest, most }, Value::Array(values)) => {
                let count = values.len() as u64;
                if count < *fewest || count > *most {
                    return Err(format!("has {count} items; {fewest} to {most} are allowed"));
                }
                let item = |(index, value): (usize, &Value)| match value {
                    Value::String(text) => match items.check(text) {
                        Ok(()) => Ok(text.clone()),
                        Err(wrong) => Err(format!("item {index} {wrong}")),
                    },
                    other => Err(format!("item {index} must be text, not {}", word_for(other))),
                };
                values.iter().enumerate().map(item).collect()
            }
            (Self::List { .. }, _) => expected("a list of texts"),
        }
    }

    fn to_json(&self) -> Value {
        let number = |name: &str, minimum: &Option<f64>, maximum: &Option<f64>| {
            let mut schema = json!({ "type": name });
            for (key, bound) in [("minimum", minimum), ("maximum", maximum)] {
                if let Some(bound) = bound {
                    schema[key] = shown_number(*bound);
                }
            }
            schema
        };
        match self {
            Self::Text(text) => text.to_json(),
            Self::Integer { minimum, maximum } => number("integer", minimum, maximum),
            Self::Number { minimum, maximum } => number("number", minimum, maximum),
            Self::Boolean => json!({ "type": "boolean" }),
            Self::List { items, fewest, most } => json!({
                "type": "array", "items": items.to_json(), "minItems": fewest, "maxItems": most,
            }),
        }
    }
}

fn within(
    number: &serde_json::Number,
    minimum: Option<f64>,
    maximum: Option<f64>,
) -> Result<Vec<String>, String> {
    let value = number.as_f64().unwrap_or(f64::NAN);
    if let Some(minimum) = minimum.filter(|minimum| value < *minimum) {
        return Err(format!("is {number}; it must be {} or more", shown_number(minimum)));
    }
    if let Some(maximum) = maximum.filter(|maximum| value > *maximum) {
        return Err(format!("is {number}; it must be {} or less", shown_number(maximum)));
    }
    Ok(vec![number.to_string()])
}

/// Without a point where it is whole.
fn shown_number(number: f64) -> Value {
    // Whole numbers up to here are exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        #[allow(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
        return json!(number as i64);
    }
    json!(number)
}

impl Text {
    fn check(&self, value: &str) -> Result<(), String> {
        let length = value.chars().count() as u64;
        let longest = self.longest.unwrap_or(MAX_TEXT);
        if length < self.shortest {
            return Err(format!("has {length} characters; at least {} are needed", self.shortest));
        }
        if length > longest {
            return Err(format!("has {length} characters; at most {longest} are allowed"));
        }
        if !self.choices.is_empty() && !self.choices.iter().any(|choice| choice == value) {
            return Err(format!("must be one of: {}", self.choices.join(", ")));
        }
        match &self.pattern {
            Some(pattern) if !pattern.matches(value) => {
                Err(format!("does not match the pattern `{}`", pattern.text()))
            }
            _ => Ok(()),
        }
    }

    fn to_json(&self) -> Value {
        let mut schema = json!({ "type": "string" });
        if self.shortest > 0 {
            schema["minLength"] = json!(self.shortest);
        }
        if let Some(longest) = self.longest {
            schema["maxLength"] = json!(longest);
        }
        if !self.choices.is_empty() {
            schema["enum"] = json!(self.choices);
        }
        if let Some(pattern) = &self.pattern {
            schema["pattern"] = json!(pattern.text());
        }
        schema
    }
}

fn word_for(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Reads a schema. What is wrong with it is left in the decoder.
pub(crate) fn decode(decoder: &mut Decoder, node: &Node, shown: &str) -> InputSchema {
    let mut schema = InputSchema::default();
    let entries = known(decoder, node, shown, &SCHEMA_KEYS);
    let mut required = Vec::new();
    for entry in entries {
        let path = format!("{shown}.{}", entry.key);
        match entry.key.as_str() {
            "type" if is_text(&entry.value, "object") => {}
            "type" => decoder.wrong_type(&entry.value, &path, "object"),
            "additionalProperties" if matches!(entry.value.tree, Tree::Bool(false)) => {}
            "additionalProperties" => {
                decoder.wrong_type(&entry.value, &path, "false: only declared values are taken");
            }
            "required" => {
                required = texts(decoder, &entry.value, &path);
            }
            "properties" => {
                if matches!(&entry.value.tree, Tree::Map(all) if all.len() > MAX_PROPERTIES) {
                    decoder.wrong_type(&entry.value, &path, "at most 100 values");
                    return schema;
                }
                for property in decoder.entries(&entry.value, &path) {
                    let shown = format!("{path}.{}", property.key);
                    if let Some(property) = decode_property(decoder, property, &shown) {
                        schema.properties.push(property);
                    }
                }
            }
            _ => {}
        }
    }
    for (name, node) in required {
        match schema.properties.iter_mut().find(|property| property.name == name) {
            Some(property) => property.is_required = true,
            None => {
                let message =
                    format!("`{shown}.required` names `{name}`, which is not among the properties");
                let path = format!("{shown}.required");
                decoder.complain(Problem::UnknownName, node.at, &path, message, None);
            }
        }
    }
    schema
}

fn decode_property(decoder: &mut Decoder, entry: &Entry, shown: &str) -> Option<Property> {
    let name = &entry.key;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name {
        let message =
            format!("`{shown}`: a name has letters, digits and _ only, and begins with no digit");
        decoder.complain(Problem::WrongType, entry.at, shown, message, None);
        return None;
    }
    let node = &entry.value;
    let type_path = format!("{shown}.type");
    let Some(type_) = node.get("type") else {
        let message = format!("`{shown}` has no `type`: string, integer, number, boolean or array");
        decoder.complain(Problem::WrongType, entry.at, &type_path, message, None);
        return None;
    };
    let kind = match &type_.tree {
        Tree::Text(text) if text == "string" => Kind::Text(decode_text(decoder, node, shown)),
        Tree::Text(text) if text == "integer" || text == "number" => {
            known(decoder, node, shown, &NUMBER_KEYS);
            let minimum = number(decoder, node, shown, "minimum");
            let maximum = number(decoder, node, shown, "maximum");
            match text.as_str() {
                "integer" => Kind::Integer { minimum, maximum },
                _ => Kind::Number { minimum, maximum },
            }
        }
        Tree::Text(text) if text == "boolean" => {
            known(decoder, node, shown, &BOOLEAN_KEYS);
            Kind::Boolean
        }
        Tree::Text(text) if text == "array" => {
            known(decoder, node, shown, &LIST_KEYS);
            let path = format!("{shown}.items");
            let items = match node.get("items") {
                Some(items) => {
                    match items.get("type") {
                        Some(type_) if is_text(type_, "string") => {}
                        _ => decoder.wrong_type(items, &path, "a schema of type string"),
                    }
                    decode_text(decoder, items, &path)
                }
                None => Text::default(),
            };
            let fewest = count(decoder, node, shown, "minItems").unwrap_or(0);
            let most = count(decoder, node, shown, "maxItems").unwrap_or(MAX_ITEMS).min(MAX_ITEMS);
            Kind::List { items, fewest, most }
        }
        _ => {
            decoder.wrong_type(type_, &type_path, "string, integer, number, boolean or array");
            return None;
        }
    };
    let description = match node.get("description") {
        None => None,
        Some(Node { tree: Tree::Text(text), .. }) => Some(text.clone()),
        Some(other) => {
            decoder.wrong_type(other, &format!("{shown}.description"), "text");
            None
        }
    };
    let default = node.get("default").map(to_json);
    if let (Some(value), Some(at)) = (&default, node.get("default"))
        && let Err(wrong) = kind.arguments(value)
    {
        let path = format!("{shown}.default");
        let message = format!("`{path}` {wrong}");
        decoder.complain(Problem::WrongType, at.at, &path, message, None);
    }
    Some(Property { name: name.clone(), description, is_required: false, default, kind })
}

fn decode_text(decoder: &mut Decoder, node: &Node, shown: &str) -> Text {
    known(decoder, node, shown, &TEXT_KEYS);
    let mut text = Text {
        shortest: count(decoder, node, shown, "minLength").unwrap_or(0),
        longest: count(decoder, node, shown, "maxLength").map(|most| most.min(MAX_TEXT)),
        ..Text::default()
    };
    if let Some(choices) = node.get("enum") {
        let path = format!("{shown}.enum");
        text.choices = texts(decoder, choices, &path).into_iter().map(|(name, _)| name).collect();
    }
    if let Some(pattern) = node.get("pattern") {
        text.pattern = decode_pattern(decoder, pattern, &format!("{shown}.pattern"));
    }
    text
}

/// A pattern, or a complaint.
pub(crate) fn decode_pattern(decoder: &mut Decoder, node: &Node, shown: &str) -> Option<Pattern> {
    let Tree::Text(text) = &node.tree else {
        decoder.wrong_type(node, shown, "a regular expression");
        return None;
    };
    match Pattern::new(text) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let message = format!("`{shown}`: `{text}` is no regular expression: {error}");
            decoder.complain(Problem::WrongType, node.at, shown, message, None);
            None
        }
    }
}

/// The entries of a mapping; a complaint for each that is not among `names`.
pub(crate) fn known<'a>(
    decoder: &mut Decoder,
    node: &'a Node,
    shown: &str,
    names: &[&'static str],
) -> Vec<&'a Entry> {
    let entries = decoder.entries(node, shown);
    for entry in entries.iter().filter(|entry| !names.contains(&entry.key.as_str())) {
        let suggestion = nearest(&entry.key, names.iter().copied()).map(str::to_owned);
        let path = crate::decode::join(shown, &entry.key);
        decoder.unknown_key(entry, &path, suggestion);
    }
    entries
}

fn count(decoder: &mut Decoder, node: &Node, shown: &str, key: &str) -> Option<u64> {
    let found = node.get(key)?;
    let number = match found.tree {
        Tree::Integer(number) => u64::try_from(number).ok(),
        _ => None,
    };
    if number.is_none() {
        decoder.wrong_type(found, &format!("{shown}.{key}"), "a whole number");
    }
    number
}

fn number(decoder: &mut Decoder, node: &Node, shown: &str, key: &str) -> Option<f64> {
    let found = node.get(key)?;
    match found.tree {
        #[allow(clippy::cast_precision_loss, reason = "a bound is compared as a number of JSON is")]
        Tree::Integer(number) => Some(number as f64),
        Tree::Float(number) => Some(number),
        _ => {
            decoder.wrong_type(found, &format!("{shown}.{key}"), "a number");
            None
        }
    }
}

fn texts<'a>(decoder: &mut Decoder, node: &'a Node, shown: &str) -> Vec<(String, &'a Node)> {
    let Tree::List(items) = &node.tree else {
        decoder.wrong_type(node, shown, "a list of texts");
        return Vec::new();
    };
    let mut found = Vec::new();
    for item in items {
        match &item.tree {
            Tree::Text(text) => found.push((text.clone(), item)),
            _ => decoder.wrong_type(item, shown, "a list of texts"),
        }
    }
    found
}

fn is_text(node: &Node, wanted: &str) -> bool {
    matches!(&node.tree, Tree::Text(text) if text == wanted)
}

pub(crate) fn to_json(node: &Node) -> Value {
    match &node.tree {
        Tree::Null => Value::Null,
        Tree::Bool(value) => json!(value),
        Tree::Integer(number) => match (i64::try_from(*number), u64::try_from(*number)) {
            (Ok(number), _) => json!(number),
            (_, Ok(number)) => json!(number),
            _ => Value::Null,
        },
        Tree::Float(number) => json!(number),
        Tree::Text(text) => json!(text),
        Tree::List(items) => items.iter().map(to_json).collect(),
        Tree::Map(entries) => {
            entries.iter().map(|entry| (entry.key.clone(), to_json(&entry.value))).collect()
        }
    }
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
