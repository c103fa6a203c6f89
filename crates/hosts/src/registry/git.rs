//! git: the public forges, and the hosts that `url.BASE.insteadOf` puts in their place (git-config(1)).

use super::{Look, Tool, url};
use crate::Entry;
use std::path::PathBuf;

/// With a reason beside each.
const FORGES: &str = include_str!("../../../../resources/egress/forges.txt");

pub(super) fn hosts(look: &Look<'_>) -> Vec<Entry> {
    let mut hosts: Vec<Entry> = forges().collect();
    for text in look.texts(settings_files(look)) {
        hosts.extend(bases_in(&text).filter_map(base_entry));
    }
    hosts
}

fn forges() -> impl Iterator<Item = Entry> {
    let lines = FORGES.lines().filter_map(|line| line.split('#').next()?.split_whitespace().next());
    lines.filter_map(|place| {
        let entry = Entry::parse(place).ok()?;
        Some(Entry { written: format!("{place} ({})", Tool::Git), ..entry })
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

/// The bases of sections that rewrite something.
fn bases_in(text: &str) -> impl Iterator<Item = &str> {
    let mut base = None;
    text.lines().filter_map(move |line| {
        let line = line.trim();
        if line.starts_with('[') {
            base = url_section(line);
            return None;
        }
        let key = line.split('=').next()?.trim();
        let rewrites =
            ["insteadof", "pushinsteadof"].iter().any(|name| key.eq_ignore_ascii_case(name));
        if rewrites { base } else { None }
    })
}

/// `[url "BASE"]`
fn url_section(line: &str) -> Option<&str> {
    let (section, quoted) = line.strip_prefix('[')?.split_once('"')?;
    let is_url = section.trim().eq_ignore_ascii_case("url");
    quoted.split('"').next().filter(|_| is_url)
}

/// A URL, or what ssh takes: `[USER@]HOST:PATH`.
fn base_entry(base: &str) -> Option<Entry> {
    if base.contains("://") {
        return url::entry(base, Tool::Git);
    }
    let (place, _) = base.split_once(':')?;
    url::at(place.rsplit('@').next()?, 22, Tool::Git)
}
