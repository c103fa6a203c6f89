//! gem and bundler: the sources in `.gemrc` and bundler's mirrors.

use super::node::scalar;
use super::{Look, Setup, Tool, defaults, url};
use std::path::PathBuf;

/// `BUNDLE_MIRROR__ALL`, `BUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/`
const MIRROR: &str = "BUNDLE_MIRROR__";
/// The mirrors that replace the public index.
const OF_PUBLIC_INDEX: [&str; 2] = ["ALL", "HTTPS://RUBYGEMS__ORG"];

pub(super) fn setup(look: &Look<'_>) -> Setup {
    let sources: Vec<String> =
        look.texts(gem_files(look)).iter().flat_map(|text| sources_in(text)).collect();
    let mut mirrors: Vec<(String, String)> =
        look.texts(bundler_files(look)).iter().flat_map(|text| mirrors_in(text)).collect();
    let variables = look.around.env.iter().filter_map(|(name, value)| {
        Some((name.to_str()?.strip_prefix(MIRROR)?.to_owned(), value.to_str()?.to_owned()))
    });
    mirrors.extend(variables);
    let is_replaced = mirrors.iter().any(|(of, _)| {
        OF_PUBLIC_INDEX.contains(&of.trim_end_matches('/').to_ascii_uppercase().as_str())
    });
    let urls = sources.iter().chain(mirrors.iter().map(|(_, place)| place));
    let mut hosts: Vec<_> = urls.filter_map(|place| url::entry(place, Tool::Gem)).collect();
    if sources.is_empty() && !is_replaced {
        hosts.extend(defaults::of(Tool::Gem));
    }
    Setup { hosts, ..Setup::default() }
}

fn gem_files(look: &Look<'_>) -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from("/etc/gemrc")];
    files.extend(look.user_config().map(|config| config.join("gem/gemrc")));
    files.extend(look.in_home(".gemrc"));
    files
}

fn bundler_files(look: &Look<'_>) -> Vec<PathBuf> {
    let own = look.var_path("BUNDLE_USER_CONFIG");
    own.or_else(|| look.in_home(".bundle/config")).into_iter().collect()
}

/// The list below `:sources:`.
fn sources_in(text: &str) -> Vec<String> {
    let mut lines = text.lines().map(str::trim);
    let _ = lines.by_ref().find(|line| matches!(*line, ":sources:" | "sources:"));
    let items = lines.map_while(|line| line.strip_prefix("- "));
    items.map(scalar).collect()
}

/// `BUNDLE_MIRROR__…: "URL"`. The name may contain colons.
fn mirrors_in(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix(MIRROR));
    let settings = lines.filter_map(|line| line.split_once(": "));
    settings.map(|(of, place)| (of.to_owned(), scalar(place))).collect()
}
