//! Decodes a tree with positions into settings. Reports every mistake, not only the first.

pub(crate) mod document;
mod mistake;
mod network;
pub(crate) mod parse;
mod rules;
pub(crate) mod value;

use crate::diagnostic::{Diagnostic, Origin, Problem};
use crate::keys::{self, Key, MINIMAL_VIEW_LEVELS, ValueKind};
use crate::nearest::nearest;
use crate::settings::{Setting, Settings, Value};
use crate::syntax::tree::{Entry, Node, Position, Tree};
use mistake::Mistake;
use std::sync::Arc;
use value::decode_value;

/// Collects the problems while a file is decoded.
pub(crate) struct Decoder {
    pub(crate) file: Arc<str>,
    pub(crate) problems: Vec<Diagnostic>,
    pub(crate) calls: Vec<NamedCall>,
}

/// A system call's name and where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedCall {
    pub(crate) name: String,
    /// Such as `tools.bash.syscalls.syscalls`.
    pub(crate) key: String,
    pub(crate) origin: Origin,
}

/// Which keys a section may contain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Only {
    Any,
    /// For `maximum`: only keys that are limits.
    Limits,
}

impl Decoder {
    pub(crate) fn new(file: &str) -> Self {
        Decoder { file: file.into(), problems: Vec::new(), calls: Vec::new() }
    }

    pub(crate) fn origin(&self, at: Position) -> Origin {
        Origin::new(&self.file, at)
    }

    pub(crate) fn complain(
        &mut self,
        problem: Problem,
        at: Position,
        key: &str,
        message: String,
        suggestion: Option<String>,
    ) {
        let mut diagnostic = Diagnostic::new(problem, &self.origin(at), key, message);
        diagnostic.suggestion = suggestion;
        self.problems.push(diagnostic);
    }

    pub(crate) fn unknown_key(&mut self, entry: &Entry, shown: &str, suggestion: Option<String>) {
        let message = format!("unknown key `{shown}`");
        self.complain(Problem::UnknownKey, entry.at, shown, message, suggestion);
    }

    pub(crate) fn wrong_type(&mut self, node: &Node, shown: &str, expected: &str) {
        let found = match &node.tree {
            Tree::Text(text) => format!("`{text}`"),
            Tree::Integer(number) => format!("`{number}`"),
            Tree::Float(number) => format!("`{number}`"),
            Tree::Bool(value) => format!("`{value}`"),
            _ => node.kind().to_owned(),
        };
        let message = format!("`{shown}` must be {expected}, not {found}");
        self.complain(Problem::WrongType, node.at, shown, message, None);
    }

    /// The entries of a mapping, without duplicate keys. An empty value is an empty mapping.
    pub(crate) fn entries<'a>(&mut self, node: &'a Node, shown: &str) -> Vec<&'a Entry> {
        let entries = match &node.tree {
            Tree::Map(entries) => entries,
            Tree::Null => return Vec::new(),
            _ => {
                let name = if shown.is_empty() { "the document" } else { shown };
                self.wrong_type(node, name, "a mapping");
                return Vec::new();
            }
        };
        let mut seen: Vec<&Entry> = Vec::new();
        for entry in entries {
            if let Some(first) = seen.iter().find(|other| other.key == entry.key) {
                let path = join(shown, &entry.key);
                let message = format!("`{path}` is given twice, first in line {}", first.at.line);
                self.complain(Problem::DuplicateKey, entry.at, &path, message, None);
            } else {
                seen.push(entry);
            }
        }
        seen
    }

    /// Decodes the keys of one section and its subsections.
    pub(crate) fn section(
        &mut self,
        entries: &[&Entry],
        place: SectionPosition<'_>,
        settings: &mut Settings,
    ) {
        let is_switch = |entry: &Entry| {
            place.section == "network" && entry.key == "allowNetwork" && place.only == Only::Any
        };
        // `allowNetwork` comes last, so that it can be compared with `network.mode` whatever their order in the
        // file.
        let (switches, others): (Vec<&Entry>, Vec<&Entry>) =
            entries.iter().copied().partition(|entry| is_switch(entry));
        for entry in others {
            let path = join(place.section, &entry.key);
            let shown = join(place.shown, &entry.key);
            if let Some(key) = keys::find(&path).filter(|key| place.admits(key)) {
                self.setting(entry, key, &shown, settings);
            } else if keys::is_section(&path) && place.admits_any_of(&path) {
                let inner = self.entries(&entry.value, &shown);
                let place = SectionPosition {
                    section: &path,
                    shown: &shown,
                    beside: &[],
                    only: place.only,
                };
                self.section(&inner, place, settings);
            } else {
                let suggestion = place.suggestion(&entry.key);
                self.unknown_key(entry, &shown, suggestion);
            }
        }
        for entry in switches {
            self.allow_network(entry, &join(place.shown, &entry.key), settings);
        }
    }

    fn setting(&mut self, entry: &Entry, key: &'static Key, shown: &str, out: &mut Settings) {
        match decode_value(key.kind, &entry.value, &self.file) {
            Ok(value) => {
                self.imply_view(key, entry, out);
                self.remember_calls(key, entry, shown);
                out.insert(key.path, Setting { value, origin: self.origin(entry.at) });
            }
            Err(mistakes) => {
                for Mistake { found, expected } in mistakes {
                    self.wrong_type(&found, shown, &expected);
                }
            }
        }
    }

    /// This crate has no table of system calls. Callers that have one need the positions for their diagnostics.
    fn remember_calls(&mut self, key: &Key, entry: &Entry, shown: &str) {
        let (ValueKind::SyscallNames, Tree::List(items)) = (key.kind, &entry.value.tree) else {
            return;
        };
        for item in items {
            if let Tree::Text(name) = &item.tree {
                let (name, key) = (name.clone(), shown.to_owned());
                self.calls.push(NamedCall { name, key, origin: self.origin(item.at) });
            }
        }
    }

    /// `container` and similar aliases select both a level and a view.
    fn imply_view(&mut self, key: &Key, entry: &Entry, out: &mut Settings) {
        let Tree::Text(text) = &entry.value.tree else { return };
        if key.path == "isolationLevel" && MINIMAL_VIEW_LEVELS.contains(&text.as_str()) {
            let origin = self.origin(entry.at);
            // `contradictions` compares it with a view that the document sets itself.
            out.entry("view").or_insert(Setting { value: Value::Word("minimal"), origin });
        }
    }

    /// `allowNetwork`: the RFC's switch, an older spelling of `network.mode`.
    fn allow_network(&mut self, entry: &Entry, shown: &str, out: &mut Settings) {
        let Tree::Bool(allowed) = entry.value.tree else {
            self.wrong_type(&entry.value, shown, "true or false");
            return;
        };
        let stated = crate::settings::word(out, "network.mode");
        let mode = if allowed { "proxy" } else { "none" };
        match stated {
            None => {
                let setting = Setting { value: Value::Word(mode), origin: self.origin(entry.at) };
                out.insert("network.mode", setting);
            }
            Some(stated) if (stated == "none") == allowed => {
                let message = format!("`{shown}: {allowed}` contradicts `network.mode: {stated}`");
                let fix = "keep one of the two".to_owned();
                self.complain(Problem::Contradiction, entry.at, shown, message, Some(fix));
            }
            Some(_) => {}
        }
    }
}

/// The position of a section in the key table and in the file. `beside` are other names that are valid here but
/// decoded elsewhere.
#[derive(Clone, Copy)]
pub(crate) struct SectionPosition<'a> {
    pub(crate) section: &'a str,
    pub(crate) shown: &'a str,
    pub(crate) beside: &'a [&'static str],
    pub(crate) only: Only,
}

impl SectionPosition<'_> {
    fn admits(&self, key: &Key) -> bool {
        self.only == Only::Any || key.order.has_maximum()
    }

    fn admits_any_of(&self, section: &str) -> bool {
        keys::KEYS.iter().any(|key| keys::is_within(key.path, section) && self.admits(key))
    }

    /// The nearest name in this section; otherwise the full path of a similar key in another section.
    fn suggestion(&self, typed: &str) -> Option<String> {
        let mut names = keys::children(self.section);
        names.extend(self.beside);
        if self.section == "network" {
            names.push("allowNetwork");
        }
        names.retain(|name| {
            let path = join(self.section, name);
            self.only == Only::Any || self.admits_any_of(&path)
        });
        let here = nearest(typed, names).map(str::to_owned);
        here.or_else(|| {
            let elsewhere = keys::KEYS.iter().filter(|key| self.admits(key));
            let name = nearest(typed, elsewhere.clone().map(Key::name))?;
            elsewhere.clone().find(|key| key.name() == name).map(|key| key.path.to_owned())
        })
    }
}

pub(crate) fn join(section: &str, name: &str) -> String {
    if section.is_empty() { name.to_owned() } else { [section, name].join(".") }
}
