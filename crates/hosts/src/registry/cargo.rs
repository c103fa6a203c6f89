//! Cargo: the registry that replaces `crates-io` and every `registries.NAME.index`, or else the built-in
//! registry. The index says where a registry's files are: if they are on another host, that host must be
//! allowed by name.

use super::{Look, MAX_PROGRAM_BYTES, Tool, url};
use crate::{HostEntry, HostPattern};
use memchr::memmem;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Cargo's name for the built-in registry.
const BUILT_IN: &str = "crates-io";

#[derive(Default)]
struct Settings {
    sources: BTreeMap<String, Source>,
    /// Indexes by name.
    registries: BTreeMap<String, String>,
}

#[derive(Default)]
struct Source {
    replaced_by: Option<String>,
    index: Option<String>,
    /// A directory on this machine.
    is_local: bool,
}

pub(super) fn hosts(look: &Look<'_>) -> Vec<HostEntry> {
    let mut settings = Settings::default();
    for text in look.texts(settings_files(look)) {
        settings.add(&text);
    }
    settings.add_variables(look);
    let mut hosts = match settings.usual_registry() {
        Registry::BuiltIn => built_in(look),
        Registry::At(index) => url::entry(index, Tool::Cargo).into_iter().collect(),
        Registry::Local => Vec::new(),
    };
    hosts.extend(settings.registries.values().filter_map(|index| url::entry(index, Tool::Cargo)));
    hosts
}

/// In ascending precedence: nearer directories override farther ones, and `config` overrides `config.toml`.
fn settings_files(look: &Look<'_>) -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> =
        look.var_path("CARGO_HOME").or_else(|| look.in_home(".cargo")).into_iter().collect();
    let mut above: Vec<PathBuf> =
        look.around.project.ancestors().skip(1).map(|parent| parent.join(".cargo")).collect();
    above.reverse();
    directories.extend(above);
    let both = |directory: &PathBuf| ["config.toml", "config"].map(|name| directory.join(name));
    directories.iter().flat_map(both).collect()
}

enum Registry<'a> {
    BuiltIn,
    At(&'a str),
    Local,
}

impl Settings {
    fn add(&mut self, text: &str) {
        let Ok(document) = text.parse::<toml::Table>() else { return };
        for (name, table) in tables_in(&document, "source") {
            let text = |key| table.get(key).and_then(toml::Value::as_str).map(str::to_owned);
            let source = self.sources.entry(normal(name)).or_default();
            source.replaced_by = text("replace-with").or(source.replaced_by.take());
            source.index = text("registry").or_else(|| text("git")).or(source.index.take());
            source.is_local |=
                table.contains_key("directory") || table.contains_key("local-registry");
        }
        for (name, table) in tables_in(&document, "registries") {
            if let Some(index) = table.get("index").and_then(toml::Value::as_str) {
                self.registries.insert(normal(name), index.to_owned());
            }
        }
    }

    /// `CARGO_REGISTRIES_NAME_INDEX`
    fn add_variables(&mut self, look: &Look<'_>) {
        for (name, value) in look.around.env {
            let name = name.to_str().and_then(|name| name.strip_prefix("CARGO_REGISTRIES_"));
            let name = name.and_then(|name| name.strip_suffix("_INDEX"));
            if let (Some(name), Some(index)) = (name, value.to_str()) {
                self.registries.insert(normal(name), index.to_owned());
            }
        }
    }

    /// Follows `replace-with`. Cargo rejects a cycle as an error; here it yields no registry.
    fn usual_registry(&self) -> Registry<'_> {
        let mut name = BUILT_IN.to_owned();
        for _ in 0..=self.sources.len() {
            let Some(source) = self.sources.get(&name) else {
                return match self.registries.get(&name) {
                    Some(index) => Registry::At(index),
                    None if name == BUILT_IN => Registry::BuiltIn,
                    None => Registry::Local,
                };
            };
            match source {
                Source { replaced_by: Some(other), .. } => name = normal(other),
                Source { index: Some(index), .. } => return Registry::At(index),
                Source { is_local: true, .. } => return Registry::Local,
                _ if name == BUILT_IN => return Registry::BuiltIn,
                _ => return Registry::Local,
            }
        }
        Registry::Local
    }
}

/// Variable names cannot express the difference between `_` and `-`, or between upper and lower case.
fn normal(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', "-")
}

fn tables_in<'a>(
    document: &'a toml::Table,
    key: &str,
) -> impl Iterator<Item = (&'a str, &'a toml::Table)> {
    let tables = document.get(key).and_then(toml::Value::as_table).into_iter().flatten();
    tables.filter_map(|(name, value)| Some((name.as_str(), value.as_table()?)))
}

/// rustup's toolchains come first: the `cargo` in `PATH` may be rustup's proxy, which contains no registry.
fn built_in(look: &Look<'_>) -> Vec<HostEntry> {
    let rustup = look.var_path("RUSTUP_HOME").or_else(|| look.in_home(".rustup"));
    let toolchains = rustup.map(|rustup| rustup.join("toolchains/*/bin/cargo"));
    let installed = look.prefixes().into_iter().map(|prefix| prefix.join("bin/cargo"));
    let programs = toolchains.into_iter().chain(installed);
    look.first(programs, MAX_PROGRAM_BYTES, built_in_registry).unwrap_or_default()
}

/// The index URL that is embedded in a cargo binary. If its host is `index.DOMAIN` and the binary also contains
/// `https://DOMAIN/`, the whole domain belongs to the registry: index, pages and files.
fn built_in_registry(program: &[u8]) -> Option<Vec<HostEntry>> {
    const SPARSE: &[u8] = b"sparse+https://";
    let index = memmem::find_iter(program, SPARSE).find_map(|at| {
        let host = host_at(program.get(at + SPARSE.len()..)?)?;
        url::at(host, 443, Tool::Cargo)
    })?;
    let domain = index.pattern.to_string().strip_prefix("index.").and_then(|domain| {
        memmem::find(program, format!("https://{domain}/").as_bytes())?;
        let pattern = HostPattern::parse(&format!("**.{domain}")).ok()?;
        let written = format!("{pattern}:443 ({})", Tool::Cargo);
        Some(HostEntry { pattern, ports: Some(vec![443]), written })
    });
    Some([Some(index), domain].into_iter().flatten().collect())
}

/// Strings in a binary have no terminator, so only text that ends at a `/` and contains a dot is a host.
fn host_at(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().take(254).position(|byte| *byte == b'/')?;
    let host = std::str::from_utf8(&bytes[..end]).ok()?;
    host.contains('.').then_some(host)
}
