//! A policy as a document: any subset of the keys, plus the keys that only documents have (`preset`, `locks`,
//! `tools`, `maximum`).

use super::{Decoder, NamedCall, Only, SectionPosition, join};
use crate::contradictions;
use crate::diagnostic::{Diagnostic, Origin, Problem};
use crate::keys::{self, MINIMAL_VIEW_LEVELS};
use crate::nearest::nearest;
use crate::settings::{self, Setting, Settings, Value};
use crate::syntax::tree::{Node, Tree};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

/// Names at the top of a document that are not policy keys.
pub(crate) const DOCUMENT_KEYS: [&str; 6] =
    ["version", "description", "preset", "locks", "tools", "maximum"];

/// The only version of the format so far.
pub(crate) const VERSION: u8 = 1;

/// One document, decoded. An empty one changes nothing.
#[derive(Clone, Debug, Default)]
pub struct PolicyDocument {
    pub(crate) description: Option<String>,
    pub(crate) presets: Vec<Named>,
    /// Key paths or sections; only valid in the organisation layer.
    pub(crate) locks: Vec<Named>,
    pub(crate) settings: Settings,
    pub(crate) tools: BTreeMap<String, Settings>,
    /// Upper bounds for other layers; only valid in the organisation layer and in presets.
    pub(crate) maximum: Settings,
    /// Requests in other programs' files for which there is no policy key.
    pub(crate) refused: Vec<Diagnostic>,
    /// All system calls that the document names.
    pub(crate) calls: Vec<NamedCall>,
}

/// A name and where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) origin: Origin,
}

/// One value given by a flag or a variable. Diagnostics refer to it by `name`.
#[derive(Clone, Debug)]
pub struct Flag {
    /// Such as `--rw` or `SANDBOX_LEVEL`.
    pub name: String,
    /// The path of a key, such as `filesystem.readWritePaths`, or `preset`.
    pub key: String,
    pub value: Json,
}

impl Flag {
    pub fn new(name: impl Into<String>, key: impl Into<String>, value: impl Into<Json>) -> Self {
        Flag { name: name.into(), key: key.into(), value: value.into() }
    }
}

impl PolicyDocument {
    /// The paths that it makes writable, for the run or for any tool.
    pub fn read_write_paths(&self) -> impl Iterator<Item = &str> {
        let parts = std::iter::once(&self.settings).chain(self.tools.values());
        parts
            .filter_map(|part| match &part.get("filesystem.readWritePaths")?.value {
                Value::List(paths) => Some(paths),
                _ => None,
            })
            .flatten()
            .map(String::as_str)
    }

    /// A document made of flags. Lists that are given several times are joined; other values are replaced.
    pub fn from_flags(flags: Vec<Flag>) -> Result<Self, Vec<Diagnostic>> {
        let mut document = PolicyDocument::default();
        let mut problems = Vec::new();
        for flag in flags {
            let mut decoder = Decoder::new(&flag.name);
            let node = Node::from(nested(&flag.key, flag.value));
            let part = decode_document(&mut decoder, &node);
            problems.extend(decoder.problems);
            document.add(part);
        }
        problems.extend(contradictions::within_document(&document.settings));
        if problems.is_empty() { Ok(document) } else { Err(problems) }
    }

    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Requests of the file that no policy key can express. [`PolicyDocument::to_json`] omits them.
    pub fn refused(&self) -> &[Diagnostic] {
        &self.refused
    }

    /// A diagnostic for each named system call that does not exist. `look_up` searches the system call tables;
    /// for an unknown name it returns the nearest one.
    pub fn unknown_syscalls(
        &self,
        look_up: impl Fn(&str) -> Result<(), Option<&'static str>>,
    ) -> Vec<Diagnostic> {
        let complaint = |call: &NamedCall| {
            let nearest = look_up(&call.name).err()?;
            let message = format!("`{}`: `{}` is not a system call", call.key, call.name);
            let mut complaint =
                Diagnostic::new(Problem::UnknownName, &call.origin, call.key.as_str(), message);
            complaint.suggestion = nearest.map(str::to_owned);
            Some(complaint)
        };
        self.calls.iter().filter_map(complaint).collect()
    }

    /// The document as a file would contain it; `policy import` prints this.
    pub fn to_json(&self) -> Json {
        let mut top = settings::to_document(&self.settings);
        let names = |named: &[Named]| json!(named.iter().map(|n| &n.name).collect::<Vec<_>>());
        top.insert("version".into(), json!(VERSION));
        if let Some(description) = &self.description {
            top.insert("description".into(), json!(description));
        }
        for (key, named) in [("preset", &self.presets), ("locks", &self.locks)] {
            if !named.is_empty() {
                top.insert(key.into(), names(named));
            }
        }
        if !self.maximum.is_empty() {
            top.insert("maximum".into(), settings::to_document(&self.maximum).into());
        }
        if !self.tools.is_empty() {
            let tools: Map<String, Json> = self
                .tools
                .iter()
                .map(|(name, part)| (name.clone(), settings::to_document(part).into()))
                .collect();
            top.insert("tools".into(), tools.into());
        }
        Json::Object(top)
    }

    fn add(&mut self, other: PolicyDocument) {
        self.presets.extend(other.presets);
        self.locks.extend(other.locks);
        self.tools.extend(other.tools);
        self.maximum.extend(other.maximum);
        self.calls.extend(other.calls);
        for (path, setting) in other.settings {
            self.put(path, setting.value, setting.origin);
        }
    }

    /// Sets a value, or extends it if it is a list.
    pub(crate) fn put(&mut self, path: &'static str, value: Value, origin: Origin) {
        put(&mut self.settings, path, value, origin);
    }
}

pub(crate) fn put(settings: &mut Settings, path: &'static str, value: Value, origin: Origin) {
    let value = match settings.get(path) {
        Some(old) => old.value.union(&value),
        None => value,
    };
    settings.insert(path, Setting { value, origin });
}

fn nested(path: &str, value: Json) -> Json {
    path.rsplit('.').fold(value, |inner, name| {
        let mut map = Map::new();
        map.insert(name.to_owned(), inner);
        Json::Object(map)
    })
}

/// Decodes a whole document; the decoder collects the problems.
pub(crate) fn decode_document(decoder: &mut Decoder, node: &Node) -> PolicyDocument {
    let mut document = PolicyDocument::default();
    let entries = decoder.entries(node, "");
    let (own, keys): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|entry| DOCUMENT_KEYS.contains(&entry.key.as_str()));
    let place = SectionPosition { section: "", shown: "", beside: &DOCUMENT_KEYS, only: Only::Any };
    decoder.section(&keys, place, &mut document.settings);
    check_level_alias(decoder, node, &document.settings);
    for entry in own {
        match entry.key.as_str() {
            "version" => decode_version(decoder, &entry.value),
            "description" => match &entry.value.tree {
                Tree::Text(text) => document.description = Some(text.clone()),
                _ => decoder.wrong_type(&entry.value, "description", "text"),
            },
            "preset" => document.presets = decode_names(decoder, &entry.value, "preset"),
            "locks" => document.locks = decode_locks(decoder, &entry.value),
            "tools" => document.tools = decode_tools(decoder, &entry.value),
            _ => {
                let inner = decoder.entries(&entry.value, "maximum");
                let place = SectionPosition {
                    section: "",
                    shown: "maximum",
                    beside: &[],
                    only: Only::Limits,
                };
                decoder.section(&inner, place, &mut document.maximum);
            }
        }
    }
    document.calls = std::mem::take(&mut decoder.calls);
    document
}

fn decode_version(decoder: &mut Decoder, node: &Node) {
    if !matches!(node.tree, Tree::Integer(number) if number == i128::from(VERSION)) {
        decoder.wrong_type(node, "version", "1, the only version of this format");
    }
}

fn decode_names(decoder: &mut Decoder, node: &Node, shown: &str) -> Vec<Named> {
    let items = match &node.tree {
        Tree::List(items) => items.iter().collect(),
        _ => vec![node],
    };
    let mut names = Vec::new();
    for item in items {
        match &item.tree {
            Tree::Text(name) => {
                names.push(Named { name: name.clone(), origin: decoder.origin(item.at) });
            }
            _ => decoder.wrong_type(item, shown, "a name or a list of names"),
        }
    }
    names
}

fn decode_locks(decoder: &mut Decoder, node: &Node) -> Vec<Named> {
    let locks = decode_names(decoder, node, "locks");
    for lock in &locks {
        if keys::find(&lock.name).is_some() || keys::is_section(&lock.name) {
            continue;
        }
        let message = format!("`locks` names `{}`, which is not a key", lock.name);
        let mut problem = Diagnostic::new(Problem::UnknownName, &lock.origin, "locks", message);
        problem.suggestion =
            nearest(&lock.name, keys::KEYS.iter().map(|key| key.path)).map(str::to_owned);
        decoder.problems.push(problem);
    }
    locks
}

fn decode_tools(decoder: &mut Decoder, node: &Node) -> BTreeMap<String, Settings> {
    let mut tools = BTreeMap::new();
    for entry in decoder.entries(node, "tools") {
        let shown = join("tools", &entry.key);
        let inner = decoder.entries(&entry.value, &shown);
        let mut part = Settings::new();
        let place = SectionPosition { section: "", shown: &shown, beside: &[], only: Only::Any };
        decoder.section(&inner, place, &mut part);
        check_level_alias(decoder, &entry.value, &part);
        decoder.problems.extend(contradictions::within_document(&part));
        tools.insert(entry.key.clone(), part);
    }
    tools
}

fn check_level_alias(decoder: &mut Decoder, node: &Node, part: &Settings) {
    if let Some(Tree::Text(level)) = node.get("isolationLevel").map(|node| &node.tree)
        && MINIMAL_VIEW_LEVELS.contains(&level.as_str())
    {
        decoder.problems.extend(contradictions::alias_against_view(level, part));
    }
}
