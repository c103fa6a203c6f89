//! The shipped names, as rules.

use crate::list;
use crate::lists::Listed;
use crate::pattern::NamePattern;

static LINES: &[Listed] = list!("../../../resources/guard/names.txt");

/// Where a name applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// At every depth of a guarded tree.
    Anywhere,
    /// At the top of a guarded tree, and in every directory of it that existed before the run.
    Top,
    /// Below a home directory.
    Home,
}

#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) scope: Scope,
    pub(crate) parts: Vec<NamePattern>,
    /// As listed.
    pub(crate) name: &'static str,
    pub(crate) why: &'static str,
}

/// The number of shipped names.
pub fn count() -> usize {
    LINES.len()
}

/// A name that applies below a home directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomeName {
    /// Relative; its last part may contain one `*`.
    pub name: &'static str,
    pub why: &'static str,
    /// Whether programs also read files in its subdirectories.
    pub is_deep: bool,
    /// Whether it is a directory that shells search for programs.
    pub on_search_path: bool,
}

impl HomeName {
    /// The directory of its last part, and that part.
    pub fn split(&self) -> (&'static str, NamePattern) {
        let (dir, last) = self.name.rsplit_once('/').unwrap_or(("", self.name));
        (dir, NamePattern::listed(last))
    }
}

pub fn home_names() -> impl Iterator<Item = HomeName> {
    LINES.iter().filter(|line| line.has("home")).map(|line| HomeName {
        name: line.name,
        why: line.why,
        is_deep: line.has("deep"),
        on_search_path: line.has("path"),
    })
}

pub(crate) fn rules() -> impl Iterator<Item = Rule> {
    LINES.iter().map(|line| Rule {
        scope: match line.tags {
            "anywhere" => Scope::Anywhere,
            "top" => Scope::Top,
            // `home`, `home,deep` or `home,path`.
            _ => Scope::Home,
        },
        parts: line.name.split('/').map(NamePattern::listed).collect(),
        name: line.name,
        why: line.why,
    })
}

#[cfg(test)]
mod tests {
    use super::LINES;
    use std::collections::HashSet;

    /// Proves: FS-9 list
    #[test]
    fn every_line_is_a_name_in_a_known_scope_with_a_reason() {
        let mut seen = HashSet::new();
        for line in LINES {
            let (name, scope) = (line.name, line.tags);
            let scopes = ["anywhere", "top", "home", "home,deep", "home,path"];
            assert!(scopes.contains(&scope), "{line:?}");
            assert!(!line.why.trim().is_empty(), "{line:?}");
            assert!(name.is_ascii(), "{line:?}");
            assert!(name.split('/').all(|part| !matches!(part, "" | "." | "..")), "{line:?}");
            assert!(!name.ends_with('.'), "{line:?}");
            let (above, last) = name.rsplit_once('/').unwrap_or(("", name));
            assert!(!above.contains('*') && last.matches('*').count() <= 1, "{line:?}");
            assert!(seen.insert((name.to_ascii_lowercase(), scope)), "listed twice: {line:?}");
        }
    }
}
