//! uv and poetry. Neither reads pip's settings. pipx does, so [`Tool::Pip`] covers it.

use super::{Look, Setup, Tool, defaults, url};
use crate::HostEntry;
use std::path::PathBuf;

/// `index`, `index-url`, `extra-index-url` and `find-links` of `uv.toml`, or the variables that replace them.
pub(super) fn uv(look: &Look<'_>) -> Setup {
    let mut files = vec![PathBuf::from("/etc/uv/uv.toml")];
    files.extend(look.user_config().map(|config| config.join("uv/uv.toml")));
    files.extend(look.var_path("UV_CONFIG_FILE"));
    let mut found = Indexes::default();
    for text in look.texts(files) {
        if let Ok(document) = text.parse::<toml::Table>() {
            found.add(&document);
            if let Some(of_pip) = document.get("pip").and_then(toml::Value::as_table) {
                found.add(of_pip);
            }
        }
    }
    let by_variable = ["UV_DEFAULT_INDEX", "UV_INDEX_URL"].iter().find_map(|name| look.var(name));
    if let Some(index) = by_variable {
        found.default = Some(index.to_owned());
    }
    for name in ["UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"] {
        let urls = look.var(name).into_iter().flat_map(str::split_whitespace);
        found.more.extend(urls.map(str::to_owned));
    }
    for name in ["UV_PYTHON_INSTALL_MIRROR", "UV_PYPY_INSTALL_MIRROR"] {
        found.more.extend(look.var(name).map(str::to_owned));
    }
    let mut hosts = match &found.default {
        Some(index) => entry(index, Tool::Uv).into_iter().collect(),
        None => defaults::of(Tool::Uv),
    };
    hosts.extend(found.more.iter().filter_map(|index| entry(index, Tool::Uv)));
    Setup { hosts, ..Setup::default() }
}

#[derive(Default)]
struct Indexes {
    /// Replaces the built-in index.
    default: Option<String>,
    more: Vec<String>,
}

impl Indexes {
    fn add(&mut self, table: &toml::Table) {
        if let Some(index) = table.get("index-url").and_then(toml::Value::as_str) {
            self.default = Some(index.to_owned());
        }
        for key in ["extra-index-url", "find-links"] {
            let urls = table.get(key).and_then(toml::Value::as_array).into_iter().flatten();
            self.more.extend(urls.filter_map(toml::Value::as_str).map(str::to_owned));
        }
        for key in ["python-install-mirror", "pypy-install-mirror"] {
            self.more.extend(table.get(key).and_then(toml::Value::as_str).map(str::to_owned));
        }
        let indexes = table.get("index").and_then(toml::Value::as_array).into_iter().flatten();
        for index in indexes {
            let Some(url) = index.get("url").and_then(toml::Value::as_str) else { continue };
            let is_default = index.get("default").and_then(toml::Value::as_bool) == Some(true);
            if is_default {
                self.default = Some(url.to_owned());
            } else {
                self.more.push(url.to_owned());
            }
        }
    }
}

/// `[NAME=]URL`
fn entry(index: &str, tool: Tool) -> Option<HostEntry> {
    let (before, _) = index.split_once("://")?;
    let url = before.rsplit_once('=').map_or(index, |(name, _)| &index[name.len() + 1..]);
    url::entry(url, tool)
}

/// A project's package sources are in the project, which is not read. The user's mirror of the public index and
/// the user's repositories are.
pub(super) fn poetry(look: &Look<'_>) -> Setup {
    let mut mirror = None;
    let mut repositories = Vec::new();
    let directory = look.var_path("POETRY_CONFIG_DIR");
    let directory = directory.or_else(|| look.user_config().map(|config| config.join("pypoetry")));
    for text in look.texts(directory.map(|directory| directory.join("config.toml"))) {
        let Ok(document) = text.parse::<toml::Table>() else { continue };
        let url_in = |value: &toml::Value| value.get("url")?.as_str().map(str::to_owned);
        mirror = document.get("plugins").and_then(|all| all.get("pypi_mirror")).and_then(url_in);
        let named = document.get("repositories").and_then(toml::Value::as_table);
        repositories.extend(named.into_iter().flatten().filter_map(|(_, value)| url_in(value)));
    }
    if let Some(url) = look.var("POETRY_PYPI_MIRROR_URL") {
        mirror = Some(url.to_owned());
    }
    for (name, value) in look.around.env {
        let name = name.to_str().and_then(|name| name.strip_prefix("POETRY_REPOSITORIES_"));
        if name.is_some_and(|name| name.ends_with("_URL")) {
            repositories.extend(value.to_str().map(str::to_owned));
        }
    }
    let mut hosts = match mirror {
        Some(mirror) => url::entry(&mirror, Tool::Poetry).into_iter().collect(),
        None => defaults::of(Tool::Poetry),
    };
    hosts.extend(repositories.iter().filter_map(|url| url::entry(url, Tool::Poetry)));
    Setup { hosts, ..Setup::default() }
}
