//! npm: `registry` and `@SCOPE:registry` of the npmrc files (npmrc(5)). Tokens in these files are ignored.

use super::{Look, MAX_TEXT_BYTES, Setup, Tool, url};
use crate::HostEntry;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Sets the registry of npm and of the tools that read its settings.
pub(super) const REGISTRY_VARIABLE: &str = "npm_config_registry";

pub(super) fn setup(look: &Look<'_>) -> Setup {
    let npm = Npm::read(look);
    let mut hosts = npm.hosts(Tool::Npm);
    // A registry that is set but names no host still counts as set: npm would not fall back to the default
    // either.
    if !npm.has_registry() {
        let built_in = built_in_files(look);
        hosts.extend(look.first(built_in, MAX_TEXT_BYTES, |source| {
            built_in_registry(std::str::from_utf8(source).ok()?)
        }));
    }
    Setup { hosts, variables: npm.told(), ..Setup::default() }
}

/// The registries in npm's files and variables, by key.
pub(super) struct Npm<'env> {
    by_variable: Variables<'env>,
    in_files: BTreeMap<String, String>,
}

impl<'env> Npm<'env> {
    pub(super) fn read(look: &Look<'env>) -> Self {
        let by_variable = Variables::of(look);
        let files = settings_files(look, &by_variable);
        let mut npm = Self { by_variable, in_files: BTreeMap::new() };
        npm.add_files(look, files);
        npm
    }

    /// Adds files of the same format. Their values override earlier ones.
    pub(super) fn add_files(&mut self, look: &Look<'_>, files: impl IntoIterator<Item = PathBuf>) {
        for text in look.texts(files) {
            self.in_files.extend(registries_in(&text, look));
        }
    }

    /// Whether a registry is set for packages without a scope.
    pub(super) fn has_registry(&self) -> bool {
        let key = "registry";
        self.by_variable.0.contains_key(key) || self.in_files.contains_key(key)
    }

    pub(super) fn hosts(&self, tool: Tool) -> Vec<HostEntry> {
        let mut registries: BTreeMap<&str, &str> =
            self.in_files.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let set = self.by_variable.0.iter().filter(|(key, _)| is_registry(key));
        registries.extend(set.map(|(key, value)| (key.as_str(), *value)));
        registries.values().filter_map(|registry| url::entry(registry, tool)).collect()
    }

    /// The registries in the files, as variables. Those that a variable sets already are left out.
    pub(super) fn told(&self) -> Vec<(String, String)> {
        let told = self.in_files.iter().filter(|(key, _)| !self.by_variable.0.contains_key(*key));
        told.filter_map(|(key, value)| {
            Some((format!("npm_config_{key}"), url::without_secrets(value)?))
        })
        .collect()
    }
}

/// The settings in variables, by npm's names for them.
struct Variables<'env>(BTreeMap<String, &'env str>);

impl<'env> Variables<'env> {
    /// npm accepts `npm_config_NAME` in any case, with `_` for `-`. An empty value counts as unset.
    fn of(look: &Look<'env>) -> Self {
        const PREFIX: &str = "npm_config_";
        let mut found = BTreeMap::new();
        for (name, value) in look.around.env {
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
            let Some((start, key)) = name.split_at_checked(PREFIX.len()) else { continue };
            if start.eq_ignore_ascii_case(PREFIX) && !key.is_empty() && !value.is_empty() {
                // The lower-case spelling, which people and npm itself use, sorts last and takes precedence.
                found.insert(key.to_ascii_lowercase().replace('_', "-"), value);
            }
        }
        Self(found)
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        self.0.get(key).map(PathBuf::from)
    }
}

/// In ascending precedence.
fn settings_files(look: &Look<'_>, own: &Variables<'_>) -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from("/etc/npmrc")];
    files.extend(look.prefixes().iter().rev().map(|prefix| prefix.join("etc/npmrc")));
    files.extend(own.path("globalconfig"));
    files.extend(own.path("userconfig").or_else(|| look.in_home(".npmrc")));
    files
}

fn registries_in(text: &str, look: &Look<'_>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim();
        if is_registry(key) {
            let value = value.trim().trim_matches(['"', '\'']);
            found.insert(key.to_owned(), with_variables(value, look));
        }
    }
    found
}

pub(super) fn is_registry(key: &str) -> bool {
    key == "registry" || (key.starts_with('@') && key.ends_with(":registry"))
}

/// Expands `${NAME}`. An unset variable is left as it is, so the result is not a URL.
fn with_variables(value: &str, look: &Look<'_>) -> String {
    let mut whole = String::new();
    let mut rest = value;
    while let Some((before, (name, after))) =
        rest.split_once("${").and_then(|(before, open)| Some((before, open.split_once('}')?)))
    {
        whole.push_str(before);
        match look.var(name) {
            Some(value) => whole.push_str(value),
            None => whole.push_str(&format!("${{{name}}}")),
        }
        rest = after;
    }
    whole + rest
}

/// The files that define npm's default `registry`: in npm's own tree, in Debian's, and in that of npm 7 and 8.
fn built_in_files(look: &Look<'_>) -> Vec<PathBuf> {
    const PLACES: [&str; 4] = [
        "lib/node_modules/npm/node_modules/@npmcli/config/lib/definitions/definitions.js",
        "share/nodejs/npm/node_modules/@npmcli/config/lib/definitions/definitions.js",
        "share/nodejs/@npmcli/config/lib/definitions/definitions.js",
        "lib/node_modules/npm/lib/utils/config/definitions.js",
    ];
    let prefixes = look.prefixes();
    let places = prefixes.iter().flat_map(|prefix| PLACES.map(|place| prefix.join(place)));
    places.collect()
}

/// `Definition('registry', {⏎ default: 'URL',`
fn built_in_registry(definitions: &str) -> Option<HostEntry> {
    let (_, definition) = definitions.split_once("('registry', {")?;
    let (_, default) = definition.split_once("default:")?;
    let quoted = default.trim_start();
    let quote = quoted.chars().next().filter(|quote| matches!(quote, '\'' | '"' | '`'))?;
    url::entry(quoted.split(quote).nth(1)?, Tool::Npm)
}
