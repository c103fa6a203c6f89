//! git: the public forges, and the hosts that `url.BASE.insteadOf` replaces them with (git-config(1)).

use super::{Look, MAX_TEXT_BYTES, Setup, Tool, url};
use crate::HostEntry;
use palisade_gitconfig::{Parts, beginning_of};
use std::path::{Component, Path, PathBuf};

/// The file gives a reason for each host.
const FORGES: &str = include_str!("../../../../resources/egress/forges.txt");
/// git has the same limit on nested includes.
const MAX_INCLUDE_DEPTH: usize = 10;
/// More than anyone sets by variables.
const MAX_VARIABLES: usize = 1000;

pub(super) fn setup(look: &Look<'_>) -> Setup {
    let mut setup = Setup { hosts: forges().collect(), ..Setup::default() };
    for file in settings_files(look) {
        read_file(look, &file, 0, &mut setup);
    }
    add(look, of_variables(look), &SettingsSource { file: None, depth: 0 }, &mut setup);
    setup
}

fn forges() -> impl Iterator<Item = HostEntry> {
    let lines = FORGES.lines().filter_map(|line| line.split('#').next()?.split_whitespace().next());
    lines.filter_map(|place| {
        let entry = HostEntry::parse(place).ok()?;
        Some(HostEntry { written: format!("{place} ({})", Tool::Git), ..entry })
    })
}

fn settings_files(look: &Look<'_>) -> Vec<PathBuf> {
    let system = PathBuf::from("/etc/gitconfig");
    if let Some(global) = look.var_path("GIT_CONFIG_GLOBAL") {
        return vec![system, global];
    }
    let mut files = vec![system];
    files.extend(look.user_config().map(|config| config.join("git/config")));
    files.extend(look.in_home(".gitconfig"));
    files
}

/// `GIT_CONFIG_COUNT`, `GIT_CONFIG_KEY_0`, `GIT_CONFIG_VALUE_0` …
fn of_variables(look: &Look<'_>) -> Vec<Setting> {
    let count = look.var("GIT_CONFIG_COUNT").and_then(|count| count.parse::<usize>().ok());
    let settings = (0..count.unwrap_or(0).min(MAX_VARIABLES)).filter_map(|number| {
        let key = look.var(&format!("GIT_CONFIG_KEY_{number}"))?;
        let value = look.var(&format!("GIT_CONFIG_VALUE_{number}"))?;
        Setting::of(key.as_bytes(), value.as_bytes())
    });
    settings.collect()
}

/// A setting with a value. Section and key are case-insensitive.
struct Setting {
    section: String,
    subsection: Option<String>,
    key: String,
    value: String,
}

impl Setting {
    /// Text that is not UTF-8 cannot name a host.
    fn of(key: &[u8], value: &[u8]) -> Option<Self> {
        let Parts { section, subsection, name } = Parts::of(key)?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec());
        Some(Self {
            section: text(section).ok()?.to_ascii_lowercase(),
            subsection: subsection.map(text).transpose().ok()?,
            key: text(name).ok()?.to_ascii_lowercase(),
            value: text(value).ok()?,
        })
    }
}

/// Where settings come from.
struct SettingsSource<'p> {
    file: Option<&'p Path>,
    /// How many includes led here.
    depth: usize,
}

/// `look.read` decides whether the file is trusted, whatever includes it.
fn read_file(look: &Look<'_>, file: &Path, depth: usize, setup: &mut Setup) {
    let Some(content) = look.read(file, MAX_TEXT_BYTES) else { return };
    let entries = beginning_of(&content).into_iter();
    // To git, a key without a value means true, so it names no host.
    let settings = entries.filter_map(|entry| Setting::of(&entry.key, entry.value.as_deref()?));
    add(look, settings.collect(), &SettingsSource { file: Some(file), depth }, setup);
}

fn add(look: &Look<'_>, settings: Vec<Setting>, place: &SettingsSource<'_>, setup: &mut Setup) {
    for Setting { section, subsection, key, value } in settings {
        match (section.as_str(), subsection, key.as_str()) {
            ("url", Some(base), "insteadof" | "pushinsteadof") => {
                setup.hosts.extend(base_entry(&base));
            }
            ("include", None, "path") => {
                if let Some(file) = included(look, &value, place) {
                    read_file(look, &file, place.depth + 1, setup);
                }
            }
            ("includeif", Some(_), "path") => {
                if let Some(file) = included(look, &value, place) {
                    let mut conditional = Setup::default();
                    read_file(look, &file, place.depth + 1, &mut conditional);
                    conditional.hosts.retain(|host| !setup.hosts.contains(host));
                    setup.notes.extend(not_followed(&file, &conditional.hosts));
                }
            }
            _ => {}
        }
    }
}

/// A path that contains `..` is not followed: every component would have to be checked for symlinks.
fn included(look: &Look<'_>, value: &str, place: &SettingsSource<'_>) -> Option<PathBuf> {
    let file = match value.strip_prefix("~/") {
        Some(below) => look.in_home(below)?,
        None if value.starts_with(['~', '%']) || value.is_empty() => return None,
        None if Path::new(value).is_absolute() => PathBuf::from(value),
        None => place.file?.parent()?.join(value),
    };
    let goes_up = file.components().any(|part| part == Component::ParentDir);
    (!goes_up && place.depth < MAX_INCLUDE_DEPTH).then_some(file)
}

/// Whether a condition of `includeIf` is true depends on the repository, which the user does not control.
fn not_followed(file: &Path, hosts: &[HostEntry]) -> Option<String> {
    hosts.first()?;
    let flags = hosts.iter().map(|host| {
        let ports = host.ports.iter().flatten().map(u16::to_string).collect::<Vec<_>>().join(",");
        format!("--allow-host {}:{ports}", host.pattern)
    });
    Some(format!(
        "git includes {} under a condition only, so the hosts it names are not allowed; allow them with {}",
        file.display(),
        flags.collect::<Vec<_>>().join(" ")
    ))
}

/// A URL, or the form that ssh accepts: `[USER@]HOST:PATH`.
fn base_entry(base: &str) -> Option<HostEntry> {
    if base.contains("://") {
        return url::entry(base, Tool::Git);
    }
    let (place, _) = base.split_once(':')?;
    url::at(place.rsplit('@').next()?, 22, Tool::Git)
}
