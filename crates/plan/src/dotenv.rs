//! `.env` files outside the project (FS-2): found by name, as no list can know where they are.
//!
//! Looks through what would be shown of the home directory, up to a budget. What it had no time for
//! is hidden where nobody asked for it by name.

use crate::denied::Denied;
use crate::facts::EntryKind;
use crate::grant::{Grant, Kind, Origin};
use crate::host::Host;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Entries looked at in one run: about a tenth of a second.
const BUDGET: usize = 100_000;

#[derive(Debug, Default)]
pub(crate) struct Found {
    /// To be denied as secrets.
    pub(crate) secrets: Vec<PathBuf>,
    pub(crate) notes: Vec<String>,
}

/// Looks through the read-only parts of the home directory that the grants show. Toolchains, caches
/// and the project are passed over.
pub(crate) fn look(grants: &[Grant], denied: &Denied, host: &Host<'_>) -> Found {
    let mut found = Found::default();
    let Some(home) = host.home() else { return found };
    let passed_over: Vec<&Path> = grants
        .iter()
        .filter(|grant| {
            matches!(
                grant.origin,
                Origin::System | Origin::Toolchain | Origin::Cache | Origin::Project | Origin::Git
            ) || grant.kind == Kind::ReadWrite
        })
        .map(|grant| grant.source.as_path())
        .collect();
    let mut budget = BUDGET;
    let is_shown = |grant: &&Grant| {
        matches!(grant.origin, Origin::Home | Origin::Asked)
            && grant.kind != Kind::ReadWrite
            && (grant.source.starts_with(home) || home.starts_with(&grant.source))
    };
    for grant in grants.iter().filter(is_shown) {
        let start = if grant.source.starts_with(home) { grant.source.as_path() } else { home };
        let mut walk = Walk { host, denied, passed_over: &passed_over, budget, found: &mut found };
        let unseen = walk.below(start);
        budget = walk.budget;
        report_unseen(unseen, grant.origin, &mut found);
    }
    found
}

fn report_unseen(unseen: Vec<PathBuf>, origin: Origin, found: &mut Found) {
    let Some(first) = unseen.first() else { return };
    let (count, first) = (unseen.len(), first.display());
    if origin == Origin::Asked {
        found.notes.push(format!(
            "{count} directories, {first} among them, were not searched for .env files and are shown, \
             as they were asked for"
        ));
    } else {
        found.notes.push(format!(
            "{count} directories, {first} among them, are hidden: too many files to search them for \
             .env files; name those you need with --ro"
        ));
        found.secrets.extend(unseen);
    }
}

struct Walk<'a> {
    host: &'a Host<'a>,
    denied: &'a Denied,
    passed_over: &'a [&'a Path],
    budget: usize,
    found: &'a mut Found,
}

impl Walk<'_> {
    /// Breadth first, so that a huge directory far down does not use up the budget of all others.
    /// Returns the directories there was no budget for.
    fn below(&mut self, start: &Path) -> Vec<PathBuf> {
        let mut ahead = std::collections::VecDeque::from([start.to_owned()]);
        while self.budget > 0
            && let Some(dir) = ahead.pop_front()
        {
            let children = self.host.children(&dir);
            self.budget = self.budget.saturating_sub(children.len().max(1));
            for (name, kind) in children {
                let path = dir.join(&name);
                if is_dotenv(&name) && kind != EntryKind::Dir {
                    self.found.secrets.push(path);
                } else if kind == EntryKind::Dir
                    && self.denied.at(&path).is_none()
                    && !self.passed_over.contains(&path.as_path())
                {
                    ahead.push_back(path);
                }
            }
        }
        ahead.into()
    }
}

/// `.env` and `.env.local`, not the sample that is meant to be shared.
pub fn is_dotenv(name: &OsStr) -> bool {
    const SHARED: [&str; 4] = [".env.example", ".env.sample", ".env.template", ".env.dist"];
    let bytes = name.as_encoded_bytes();
    bytes == b".env" || (bytes.starts_with(b".env.") && SHARED.iter().all(|shared| name != *shared))
}
