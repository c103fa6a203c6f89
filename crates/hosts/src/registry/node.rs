//! yarn, pnpm and bun: their own settings, and those of npm, which all three read too.

use super::npm::{self, Npm};
use super::{Look, Setup, Tool, defaults, url};
use crate::HostEntry;
use std::path::PathBuf;

const YARN_SERVER: &str = "YARN_NPM_REGISTRY_SERVER";
const BUN_REGISTRY: &str = "BUN_CONFIG_REGISTRY";

/// The project determines the version of yarn, so the settings of all versions count: `registry` of yarn 1, in
/// `.yarnrc` or `YARN_REGISTRY`; `npmRegistryServer` of later versions, in `~/.yarnrc.yml`.
pub(super) fn yarn(look: &Look<'_>) -> Setup {
    let npm = Npm::read(look);
    let mut variables = npm.told();
    let classic: Vec<(String, String)> =
        look.texts(classic_files(look)).iter().flat_map(|text| classic_registries(text)).collect();
    // Later versions reject an unknown `YARN_…` variable, so yarn 1 gets its registry through npm's variable.
    if !npm.has_registry() {
        let unscoped = classic.iter().rev().find(|(key, _)| key == "registry");
        let told = unscoped.and_then(|(_, registry)| url::without_secrets(registry));
        variables.extend(told.map(|registry| (npm::REGISTRY_VARIABLE.to_owned(), registry)));
    }
    let files = look.in_home(".yarnrc.yml").into_iter().chain(look.above_project(".yarnrc.yml"));
    let files = look.texts(files);
    let servers = |text: &String| yaml_values(text, "npmRegistryServer");
    let modern: Vec<YamlValue> = files.iter().flat_map(servers).collect();
    let by_variable = look.var(YARN_SERVER);
    if by_variable.is_none() {
        let unscoped = modern.iter().rev().find(|server| server.is_of_the_top);
        let told =
            unscoped.and_then(|server| url::without_secrets(&with_fallbacks(&server.value, look)));
        variables.extend(told.map(|registry| (YARN_SERVER.to_owned(), registry)));
    }
    let mut own: Vec<String> = classic.into_iter().map(|(_, registry)| registry).collect();
    own.extend(modern.iter().map(|server| with_fallbacks(&server.value, look)));
    let set = look.var_in_any_case("yarn_registry").into_iter().chain(by_variable);
    own.extend(set.map(str::to_owned));
    let mut hosts = entries(&own, Tool::Yarn);
    if own.is_empty() {
        hosts.extend(defaults::of(Tool::Yarn));
    }
    hosts.extend(npm.hosts(Tool::Yarn));
    Setup { hosts, variables, ..Setup::default() }
}

/// npm's settings, and the same keys in pnpm's own file.
pub(super) fn pnpm(look: &Look<'_>) -> Setup {
    let mut npm = Npm::read(look);
    npm.add_files(look, look.user_config().map(|config| config.join("pnpm/rc")));
    let mut hosts = npm.hosts(Tool::Pnpm);
    if !npm.has_registry() {
        hosts.extend(defaults::of(Tool::Pnpm));
    }
    Setup { hosts, variables: npm.told(), ..Setup::default() }
}

/// `[install] registry` and `[install.scopes]` of `.bunfig.toml`.
pub(super) fn bun(look: &Look<'_>) -> Setup {
    let npm = Npm::read(look);
    let mut variables = npm.told();
    let files = look.user_config().into_iter().chain(look.around.home.map(PathBuf::from));
    let mut registry: Option<String> = None;
    let mut scopes = Vec::new();
    for text in look.texts(files.map(|directory| directory.join(".bunfig.toml"))) {
        let Ok(document) = text.parse::<toml::Table>() else { continue };
        let Some(install) = document.get("install").and_then(toml::Value::as_table) else {
            continue;
        };
        registry = install.get("registry").and_then(registry_in).or(registry);
        let named = install.get("scopes").and_then(toml::Value::as_table).into_iter().flatten();
        scopes.extend(named.filter_map(|(_, scope)| registry_in(scope)));
    }
    let by_variable = look.var(BUN_REGISTRY).map(str::to_owned);
    if by_variable.is_none() {
        let told = registry.as_deref().and_then(url::without_secrets);
        variables.extend(told.map(|registry| (BUN_REGISTRY.to_owned(), registry)));
    }
    let registry = by_variable.or(registry);
    let mut hosts = npm.hosts(Tool::Bun);
    if registry.is_none() && !npm.has_registry() {
        hosts.extend(defaults::of(Tool::Bun));
    }
    scopes.extend(registry);
    hosts.extend(entries(&scopes, Tool::Bun));
    Setup { hosts, variables, ..Setup::default() }
}

fn entries(urls: &[String], tool: Tool) -> Vec<HostEntry> {
    urls.iter().filter_map(|registry| url::entry(registry, tool)).collect()
}

/// A URL, or a table that contains one.
fn registry_in(value: &toml::Value) -> Option<String> {
    value.as_str().or_else(|| value.get("url")?.as_str()).map(str::to_owned)
}

/// In ascending precedence.
fn classic_files(look: &Look<'_>) -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from("/etc/yarnrc")];
    files.extend(look.prefixes().iter().rev().map(|prefix| prefix.join("etc/yarnrc")));
    files.extend(look.user_config().map(|config| config.join("yarn/config")));
    files.extend(look.in_home(".yarnrc"));
    files.extend(look.above_project(".yarnrc"));
    files
}

/// `KEY VALUE`, each with or without quotes.
fn classic_registries(text: &str) -> Vec<(String, String)> {
    let bare = |word: &str| word.trim().trim_matches('"').to_owned();
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let settings = lines.filter_map(|line| line.split_once(char::is_whitespace));
    settings
        .map(|(key, value)| (bare(key), bare(value)))
        .filter(|(key, _)| npm::is_registry(key))
        .collect()
}

struct YamlValue {
    value: String,
    is_of_the_top: bool,
}

/// Every value of a key, at any depth. This parses only as much YAML as settings files use.
fn yaml_values(text: &str, key: &str) -> Vec<YamlValue> {
    let values = text.lines().filter_map(|line| {
        let (name, value) = line.trim_start().split_once(':')?;
        let is_of_the_top = !line.starts_with(char::is_whitespace);
        let found = name.trim_matches(['"', '\'']) == key;
        found.then(|| YamlValue { value: scalar(value), is_of_the_top })
    });
    values.filter(|found| !found.value.is_empty()).collect()
}

/// A value without its quotes and without a trailing comment.
pub(super) fn scalar(value: &str) -> String {
    let value = value.trim();
    match value.chars().next() {
        Some(quote @ ('"' | '\'')) => value.split(quote).nth(1).unwrap_or_default().to_owned(),
        _ => value.split(" #").next().unwrap_or_default().trim().to_owned(),
    }
}

/// `${NAME}`, `${NAME-FALLBACK}`, `${NAME:-FALLBACK}`.
fn with_fallbacks(value: &str, look: &Look<'_>) -> String {
    let Some((before, open)) = value.split_once("${") else { return value.to_owned() };
    let Some((inner, after)) = open.split_once('}') else { return value.to_owned() };
    let (name, fallback) = match inner.split_once('-') {
        Some((name, fallback)) => (name.trim_end_matches(':'), fallback),
        None => (inner, ""),
    };
    let found = look.var(name).unwrap_or(fallback);
    format!("{before}{found}{}", with_fallbacks(after, look))
}
