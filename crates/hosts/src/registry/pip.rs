//! pip: `index-url`, `extra-index-url` and `find-links` of its configuration files and variables.

use super::{Look, MAX_TEXT_BYTES, Setup, Tool, url};
use crate::HostEntry;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// By section and key. A section is the name of a command, or `global`.
type Settings = BTreeMap<(String, String), String>;

const INDEX: &str = "index-url";
const MORE_INDEXES: &str = "extra-index-url";
const LINKS: &str = "find-links";

pub(super) fn setup(look: &Look<'_>) -> Setup {
    let mut settings = Settings::new();
    for text in look.texts(settings_files(look)) {
        settings.extend(settings_in(&text));
    }
    let mut hosts = Vec::new();
    if !is_without_index(look, &settings) {
        let index = values(look, &settings, INDEX);
        if index.is_empty() {
            hosts.extend(built_in(look));
        }
        hosts.extend(entries(&index));
        hosts.extend(entries(&values(look, &settings, MORE_INDEXES)));
    }
    hosts.extend(entries(&values(look, &settings, LINKS)));
    let variables = [INDEX, MORE_INDEXES, LINKS].into_iter().filter_map(|key| told(&settings, key));
    Setup { hosts, variables: variables.collect(), ..Setup::default() }
}

/// The value in the `global` section, or else in the first section that has one: variables have no sections.
fn told(settings: &Settings, key: &str) -> Option<(String, String)> {
    let everywhere = settings.get(&("global".to_owned(), key.to_owned()));
    let value = everywhere.or_else(|| of_all_sections(settings, key).next())?;
    let urls: Option<Vec<String>> = value.split_whitespace().map(url::without_secrets).collect();
    urls.map(|urls| (variable(key), urls.join(" ")))
}

fn is_without_index(look: &Look<'_>, settings: &Settings) -> bool {
    let is_yes = |value: &str| ["1", "true", "yes", "on", "y", "t"].contains(&value);
    values(look, settings, "no-index").iter().any(|value| is_yes(&value.to_ascii_lowercase()))
}

/// A value may be a list separated by whitespace.
fn entries(values: &[&str]) -> Vec<HostEntry> {
    let urls = values.iter().flat_map(|value| value.split_whitespace());
    urls.filter_map(|value| url::entry(value, Tool::Pip)).collect()
}

/// The variable's value, or else the values of all sections.
fn values<'a>(look: &'a Look<'_>, settings: &'a Settings, key: &str) -> Vec<&'a str> {
    match look.var(&variable(key)) {
        Some(value) => vec![value],
        None => of_all_sections(settings, key).map(String::as_str).collect(),
    }
}

fn variable(key: &str) -> String {
    format!("PIP_{}", key.replace('-', "_").to_ascii_uppercase())
}

fn of_all_sections<'a>(settings: &'a Settings, key: &str) -> impl Iterator<Item = &'a String> {
    settings.iter().filter(move |((_, name), _)| name == key).map(|(_, value)| value)
}

/// In ascending precedence.
fn settings_files(look: &Look<'_>) -> Vec<PathBuf> {
    let own = look.var("PIP_CONFIG_FILE");
    // pip's documentation: this value disables all configuration files.
    if own == Some("/dev/null") {
        return Vec::new();
    }
    let mut files = vec![PathBuf::from("/etc/xdg/pip/pip.conf"), PathBuf::from("/etc/pip.conf")];
    files.extend(look.in_home(".pip/pip.conf"));
    files.extend(look.user_config().map(|config| config.join("pip/pip.conf")));
    files.extend(own.map(PathBuf::from));
    files
}

/// Parsed as by Python's `configparser`: indented lines continue the previous value.
fn settings_in(text: &str) -> Settings {
    let mut settings = Settings::new();
    let mut section = String::new();
    let mut key: Option<(String, String)> = None;
    for line in text.lines() {
        let content = line.trim();
        if content.is_empty() || content.starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with([' ', '\t'])
            && let Some(value) = key.as_ref().and_then(|key| settings.get_mut(key))
        {
            value.push('\n');
            value.push_str(content);
        } else if let Some(name) = content.strip_prefix('[').and_then(|open| open.strip_suffix(']'))
        {
            section = name.to_owned();
            key = None;
        } else if let Some((name, value)) = content.split_once(['=', ':']) {
            // pip accepts `index_url` for `index-url`.
            let name = name.trim().to_ascii_lowercase().replace('_', "-");
            let place = (section.clone(), name);
            settings.insert(place.clone(), value.trim().to_owned());
            key = Some(place);
        }
    }
    settings
}

fn built_in(look: &Look<'_>) -> Vec<HostEntry> {
    let read = |source: &[u8]| built_in_index(std::str::from_utf8(source).ok()?);
    look.first(built_in_files(look), MAX_TEXT_BYTES, read).unwrap_or_default()
}

/// The files that define pip's default index: in the Pythons of `PATH`, the user's own, and pyenv's.
fn built_in_files(look: &Look<'_>) -> Vec<PathBuf> {
    let mut libraries: Vec<PathBuf> =
        look.prefixes().iter().map(|prefix| prefix.join("lib")).collect();
    libraries.extend(look.in_home(".local/lib"));
    let pyenv = look.var_path("PYENV_ROOT").or_else(|| look.in_home(".pyenv"));
    libraries.extend(pyenv.map(|pyenv| pyenv.join("versions/*/lib")));
    let packages = ["python3*/site-packages", "python3*/dist-packages"];
    let places =
        libraries.iter().flat_map(|library| packages.map(|packages| library.join(packages)));
    places.map(|packages| packages.join("pip/_internal/models/index.py")).collect()
}

/// `PackageIndex("URL", file_storage_domain="HOST")`. The first one is the default.
fn built_in_index(source: &str) -> Option<Vec<HostEntry>> {
    let (_, call) = source.split_once("= PackageIndex(")?;
    let (arguments, _) = call.split_once(')')?;
    let mut texts = arguments.split('"').skip(1).step_by(2);
    let index = url::entry(texts.next()?, Tool::Pip)?;
    let files = texts.next().and_then(|host| url::at(host, 443, Tool::Pip));
    Some([Some(index), files].into_iter().flatten().collect())
}
