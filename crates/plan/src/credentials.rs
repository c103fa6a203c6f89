//! Finds configuration files that contain a credential: a token in `.gitconfig`, an exported key in `.bashrc`.
//! Such a file is treated as a secret, and hidden until the user allows it.
//!
//! Credentials are recognized by name, as in the environment: one with a harmless name is not found.

use crate::denied::listed_paths;
use crate::environment;
use crate::host::Host;
use crate::lists::{Listed, TOOLCHAINS};
use crate::paths::Scope;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Parts of configuration keys that indicate a credential.
const KEYS: [&str; 7] =
    ["token", "password", "passwd", "secret", "apikey", "api_key", "extraheader"];

/// Files marked `scanned` or `certificates` in the list that contain a credential. Files for which
/// `is_shown_anyway` holds are skipped: a certificate bundle below `/etc` has thousands of lines, and five
/// variables may name it.
pub(crate) fn look(
    scope: &Scope<'_>,
    host: &Host<'_>,
    is_shown_anyway: impl Fn(&Path) -> bool,
) -> BTreeSet<PathBuf> {
    let searched = TOOLCHAINS.iter().filter_map(|listed| Some((listed, Search::of(listed)?)));
    let there = searched.filter(|(listed, _)| {
        let below_home = listed.name.strip_prefix("~/");
        below_home.is_none_or(|name| host.missing_in(name).is_none())
    });
    there
        .flat_map(|(listed, search)| {
            listed_paths(listed, scope, host).into_iter().map(move |path| (path, search))
        })
        .filter(|(path, search)| !is_shown_anyway(path) && search.finds(path, host))
        .map(|(path, _)| path)
        .collect()
}

/// What to search a file for.
#[derive(Debug, Clone, Copy)]
enum Search {
    Settings,
    PrivateKey,
}

impl Search {
    fn of(listed: &Listed) -> Option<Self> {
        match listed {
            _ if listed.has("scanned") => Some(Self::Settings),
            _ if listed.has("certificates") => Some(Self::PrivateKey),
            _ => None,
        }
    }

    fn finds(self, path: &Path, host: &Host<'_>) -> bool {
        let Ok(found) = host.resolve(path) else { return false };
        host.read_small(&found.path).is_some_and(|text| match self {
            Self::Settings => holds_credential(&text),
            Self::PrivateKey => text.contains("PRIVATE KEY"),
        })
    }
}

fn holds_credential(text: &str) -> bool {
    text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])).any(|line| {
        has_password_in_address(line) || is_secret_setting(line) || exports_secret(line)
    })
}

/// `https://user:password@host`
fn has_password_in_address(line: &str) -> bool {
    line.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '"', '\'', ' ']).next().unwrap_or_default();
        authority.split_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

/// `token = "…"`, `extraHeader = Authorization: …`
fn is_secret_setting(line: &str) -> bool {
    let Some((key, value)) = line.split_once('=') else { return false };
    let key = key.trim().trim_matches('"').to_ascii_lowercase().replace('-', "_");
    let is_key =
        !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c));
    is_key && !is_empty(value) && KEYS.iter().any(|part| key.contains(part))
}

/// `export NAME=value`, if the name would be removed from the environment as well.
fn exports_secret(line: &str) -> bool {
    let words = line.split([' ', '\t', ';', '&']).filter(|word| !word.is_empty());
    let assigned = words.filter_map(|word| word.split_once('='));
    let is_fish = line.strip_prefix("set -").and_then(|rest| rest.split_once(' '));
    let fish = is_fish.and_then(|(_, rest)| rest.trim().split_once(' '));
    assigned.chain(fish).any(|(name, value)| {
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name && !is_empty(value) && environment::is_secret(OsStr::new(name))
    })
}

/// Empty, or only a reference to another value.
fn is_empty(value: &str) -> bool {
    let value = value.trim().trim_matches(['"', '\'']);
    value.is_empty() || value.starts_with('$')
}

#[cfg(test)]
mod tests {
    use super::holds_credential;

    /// Proves: FS-2 secret-list
    #[test]
    fn a_credential_in_a_configuration_file_is_seen() {
        for text in [
            "export OPENAI_API_KEY=sk-1",
            "alias x=y; export GITHUB_TOKEN='ghp_1'",
            "set -gx NPM_TOKEN abc",
            "[http]\n\textraHeader = Authorization: Basic xyz",
            "[registry]\ntoken = \"abc\"",
            "[url \"https://me:pass@example.org/\"]\n\tinsteadOf = x",
            "proxy = http://u:p@proxy:3128",
        ] {
            assert!(holds_credential(text), "{text}");
        }
    }

    #[test]
    fn ordinary_configuration_is_not() {
        for text in [
            "# export OPENAI_API_KEY=sk-1",
            "export PATH=$HOME/bin:$PATH",
            "export GITHUB_TOKEN=$(pass github)",
            "export GITHUB_TOKEN=",
            "[user]\n\tname = Token Ring\n\temail = me@example.org",
            "[credential]\n\thelper = store",
            "[remote \"origin\"]\n\turl = https://example.org/a@b:c",
            "[net]\ngit-fetch-with-cli = true",
        ] {
            assert!(!holds_credential(text), "{text}");
        }
    }
}
