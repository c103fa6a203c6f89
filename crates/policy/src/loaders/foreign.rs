//! Shared by the loaders: reads another program's keys with positions and diagnostics.

use super::{LoadedDocument, SourceKind};
use crate::contradictions;
use crate::decode::document::{PolicyDocument, put};
use crate::decode::value::decode_value;
use crate::decode::{Decoder, join};
use crate::diagnostic::{Diagnostic, Origin, Problem};
use crate::keys;
use crate::nearest::nearest;
use crate::settings::{Settings, Value};
use crate::syntax::tree::{Entry, Node, Position, Tree};
use palisade_hosts::{Host, HostPattern, always_blocked};
use std::net::{IpAddr, SocketAddr};

pub(super) struct Foreign {
    decoder: Decoder,
    pub(super) warnings: Vec<Diagnostic>,
    pub(super) refused: Vec<Diagnostic>,
}

/// One key of the file, and its full path.
pub(super) struct Field<'a> {
    pub(super) path: String,
    entry: &'a Entry,
}

impl<'a> Field<'a> {
    pub(super) fn name(&self) -> &'a str {
        &self.entry.key
    }

    pub(super) fn node(&self) -> &'a Node {
        &self.entry.value
    }
}

impl Foreign {
    pub(super) fn new(file: &str) -> Self {
        Foreign { decoder: Decoder::new(file), warnings: Vec::new(), refused: Vec::new() }
    }

    pub(super) fn origin(&self, at: Position) -> Origin {
        self.decoder.origin(at)
    }

    pub(super) fn finish(
        mut self,
        kind: SourceKind,
        mut document: PolicyDocument,
    ) -> Result<LoadedDocument, Vec<Diagnostic>> {
        for part in std::iter::once(&document.settings).chain(document.tools.values()) {
            self.decoder.problems.extend(contradictions::within_document(part));
        }
        if !self.decoder.problems.is_empty() {
            self.decoder.problems.sort_by_key(|problem| (problem.line, problem.column));
            return Err(self.decoder.problems);
        }
        document.refused = self.refused;
        Ok(LoadedDocument { kind, document, warnings: self.warnings, listen: None })
    }

    /// The fields of a mapping that are in `known`. Reports the others.
    pub(super) fn fields<'a>(
        &mut self,
        node: &'a Node,
        path: &str,
        known: &[&str],
    ) -> Vec<Field<'a>> {
        let mut fields = Vec::new();
        for entry in self.decoder.entries(node, path) {
            let full = join(path, &entry.key);
            if known.contains(&entry.key.as_str()) {
                fields.push(Field { path: full, entry });
            } else {
                let near = nearest(&entry.key, known.iter().copied()).map(str::to_owned);
                self.decoder.unknown_key(entry, &full, near);
            }
        }
        fields
    }

    /// Every field of a mapping, whatever its name.
    pub(super) fn any_fields<'a>(&mut self, node: &'a Node, path: &str) -> Vec<Field<'a>> {
        let entries = self.decoder.entries(node, path);
        entries.into_iter().map(|entry| Field { path: join(path, &entry.key), entry }).collect()
    }

    /// Decodes the field as a value of our key `path`, and sets that key.
    pub(super) fn copy(&mut self, field: &Field<'_>, path: &'static str, out: &mut Settings) {
        self.copy_scaled(field, path, 1, out);
    }

    /// Like [`Foreign::copy`], for numbers in another unit: `factor` of our units are one of theirs.
    pub(super) fn copy_scaled(
        &mut self,
        field: &Field<'_>,
        path: &'static str,
        factor: u64,
        out: &mut Settings,
    ) {
        let Some(key) = keys::find(path) else { return };
        match decode_value(key.kind, field.node(), &self.decoder.file) {
            Ok(Value::Number(number)) => match number.checked_mul(factor) {
                Some(scaled) => self.set(field, path, Value::Number(scaled), out),
                None => self.decoder.wrong_type(field.node(), &field.path, "a smaller number"),
            },
            Ok(value) => self.set(field, path, value, out),
            Err(mistakes) => {
                for mistake in mistakes {
                    self.decoder.wrong_type(&mistake.found, &field.path, &mistake.expected);
                }
            }
        }
    }

    pub(super) fn set(
        &self,
        field: &Field<'_>,
        path: &'static str,
        value: Value,
        out: &mut Settings,
    ) {
        put(out, path, value, self.decoder.origin(field.entry.at));
    }

    /// An address and port to listen on.
    pub(super) fn socket(&mut self, field: &Field<'_>) -> Option<SocketAddr> {
        let address = match &field.node().tree {
            // `:3128` means every address, as in Go programs.
            Tree::Text(text) if text.starts_with(':') => format!("[::]{text}").parse().ok(),
            Tree::Text(text) => text.parse().ok(),
            _ => None,
        };
        if address.is_none() {
            let expected = "an address and port such as 0.0.0.0:3128";
            self.decoder.wrong_type(field.node(), &field.path, expected);
        }
        address
    }

    pub(super) fn boolean(&mut self, field: &Field<'_>) -> Option<bool> {
        match field.node().tree {
            Tree::Bool(value) => Some(value),
            _ => {
                self.decoder.wrong_type(field.node(), &field.path, "true or false");
                None
            }
        }
    }

    pub(super) fn text(&mut self, field: &Field<'_>) -> Option<String> {
        match &field.node().tree {
            Tree::Text(text) => Some(text.clone()),
            _ => {
                self.decoder.wrong_type(field.node(), &field.path, "text");
                None
            }
        }
    }

    pub(super) fn texts(&mut self, field: &Field<'_>) -> Vec<String> {
        let Tree::List(items) = &field.node().tree else {
            self.decoder.wrong_type(field.node(), &field.path, "a list of text");
            return Vec::new();
        };
        let mut texts = Vec::new();
        for item in items {
            match &item.tree {
                Tree::Text(text) => texts.push(text.clone()),
                _ => self.decoder.wrong_type(item, &field.path, "a list of text"),
            }
        }
        texts
    }

    /// The file can be loaded, but this part of it does not do what it seems to do.
    pub(super) fn warn(&mut self, field: &Field<'_>, message: impl Into<String>) {
        let origin = self.decoder.origin(field.entry.at);
        let warning = Diagnostic::new(Problem::Questionable, &origin, &field.path, message);
        self.warnings.push(warning);
    }

    /// What the field says cannot be what is meant: the file does not load.
    pub(super) fn reject(&mut self, field: &Field<'_>, message: impl Into<String>, fix: &str) {
        let origin = self.decoder.origin(field.entry.at);
        let problem = Diagnostic::new(Problem::Contradiction, &origin, &field.path, message);
        self.decoder.problems.push(problem.suggest(fix));
    }

    /// The file asks for something that cannot be enforced. Runs are refused until it is removed.
    pub(super) fn refuse(&mut self, field: &Field<'_>, why: &str) {
        let origin = self.decoder.origin(field.entry.at);
        let message = format!("`{}` is not enforced in this version: {why}", field.path);
        let refusal = Diagnostic::new(Problem::NotEnforced, &origin, &field.path, message);
        self.refused.push(refusal.suggest("remove it to run without it"));
    }
}

/// The texts of a list, read in advance. Problems are reported when the field itself is decoded.
pub(super) fn texts_under(node: &Node, key: &str) -> Vec<String> {
    let Some(Tree::List(items)) = node.get(key).map(|node| &node.tree) else { return Vec::new() };
    let text = |item: &Node| match &item.tree {
        Tree::Text(text) => Some(text.clone()),
        _ => None,
    };
    items.iter().filter_map(text).collect()
}

/// Names that the source programs always block, whatever their lists say. Our own lists may allow such a host,
/// so it must be denied explicitly.
const ALWAYS_BLOCKED: [&str; 3] = ["localhost", "*.local", "*.internal"];

impl Foreign {
    /// Warns of allowed hosts that stay blocked, and denies them explicitly where our own rules would not.
    pub(super) fn warn_of_blocked(
        &mut self,
        field: &Field<'_>,
        blocked: &[String],
        settings: &mut Settings,
    ) {
        for host in self.texts(field) {
            if let Some(pattern) = blocked_by(&host, blocked) {
                let denied = Value::List(vec![pattern.to_owned()]);
                self.set(field, "network.deniedHosts", denied, settings);
                let message = format!("`{host}` stays blocked by `{pattern}`, which always wins");
                self.warn(field, message);
            } else if let Some(blocked) = address_of(&host).and_then(always_blocked) {
                let message =
                    format!("`{host}` stays blocked: {} addresses always are", blocked.what);
                self.warn(field, message);
            }
        }
    }
}

/// The blocklist entry that an allowed host matches, if any.
fn blocked_by<'a>(host: &str, blocked: &'a [String]) -> Option<&'a str> {
    let host_alone = HostPattern::parse(host).map_or(host, |_| host.trim_start_matches("*."));
    let parsed = Host::parse(host_alone).ok();
    let always = ALWAYS_BLOCKED.iter().copied();
    always.chain(blocked.iter().map(String::as_str)).find(|pattern| {
        let covers = HostPattern::parse(pattern).ok().zip(parsed.as_ref());
        *pattern == host || covers.is_some_and(|(pattern, host)| pattern.matches(host))
    })
}

fn address_of(host: &str) -> Option<IpAddr> {
    HostPattern::parse(host).ok()?.range().map(|range| range.addr())
}
