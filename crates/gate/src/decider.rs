//! Decides by the rules in their order, and caches the verdicts.
//!
//! The first store with a rule for the path decides. Within one store, a denial takes precedence over a
//! permission. If no rule applies, the decision is to ask, never *allowed*.

use crate::cache::{Cache, Verdict};
use crate::index::Index;
use crate::pattern::Pattern;
use crate::rule::{Access, Effect, Rule};
use jiff::Timestamp;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub struct Decider {
    rules: Vec<Rule>,
    index: Index,
    cache: Cache,
    /// Where nothing counts that was allowed before: the path, and how many rules there were.
    revoked: Vec<(PathBuf, usize)>,
    /// When the next rule expires; cached verdicts are invalid from then on.
    next_end: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<'a> {
    Allowed(&'a Rule),
    Denied(&'a Rule),
    /// No rule applies.
    Ask,
}

impl Decider {
    /// `cache_capacity` is the maximum number of cached paths.
    pub fn new(rules: Vec<Rule>, cache_capacity: usize) -> Self {
        let mut index = Index::default();
        for (place, rule) in rules.iter().enumerate() {
            index.insert(place, rule);
        }
        let next_end = rules.iter().filter_map(|rule| rule.until).min();
        Decider { rules, index, cache: Cache::new(cache_capacity), revoked: Vec::new(), next_end }
    }

    /// Decides about a real path of the host, with symlinks resolved.
    pub fn decide(&mut self, path: &Path, access: Access, now: Timestamp) -> Decision<'_> {
        if self.next_end.is_some_and(|end| now >= end) {
            self.cache.clear();
            self.next_end =
                self.rules.iter().filter_map(|rule| rule.until).filter(|end| *end > now).min();
        }
        let bytes = path.as_os_str().as_bytes();
        let verdict = match self.cache.get(bytes, access) {
            Some(verdict) => verdict,
            None => {
                let verdict = self.search(bytes, access, now);
                self.cache.remember(bytes, access, verdict);
                verdict
            }
        };
        match verdict.map(|place| &self.rules[place]) {
            None => Decision::Ask,
            Some(rule) if rule.effect == Effect::Allow => Decision::Allowed(rule),
            Some(rule) => Decision::Denied(rule),
        }
    }

    /// Adds a rule, such as an answer for the session.
    pub fn add(&mut self, rule: Rule) {
        self.index.insert(self.rules.len(), &rule);
        self.next_end = self.next_end.into_iter().chain(rule.until).min();
        self.rules.push(rule);
        self.cache.clear();
    }

    /// Takes back what is allowed at this path and below it, whatever rule says so: from now on only rules that
    /// are added later allow something there. Denials stay.
    pub fn revoke(&mut self, path: &Path) {
        self.revoked.retain(|(known, _)| !known.starts_with(path));
        self.revoked.push((path.to_owned(), self.rules.len()));
        self.cache.clear();
    }

    pub fn is_revoked(&self, path: &Path) -> bool {
        self.revoked.iter().any(|(revoked, _)| path.starts_with(revoked))
    }

    /// Whether a denial may apply to something in this tree, or something in it was taken back. If so, the tree
    /// cannot be granted as a whole. May return true without need: it does not compare stores, and counts a glob from
    /// the directory it begins in.
    pub fn denies_within(&self, tree: &Path, now: Timestamp) -> bool {
        let is_denied = self.rules.iter().any(|rule| {
            rule.effect == Effect::Deny && rule.holds_at(now) && rule.pattern.may_be_within(tree)
        });
        is_denied || self.revoked.iter().any(|revoked| self.keeps_out(revoked, tree))
    }

    /// Whether a tree may not be granted around what was taken back in it, and was not allowed again since. The tree itself
    /// may.
    fn keeps_out(&self, (path, rules): &(PathBuf, usize), tree: &Path) -> bool {
        let allows = |rule: &Rule| {
            rule.effect == Effect::Allow
                && matches!(&rule.pattern, Pattern::Tree(top) if path.starts_with(top))
        };
        path != tree && path.starts_with(tree) && !self.rules[*rules..].iter().any(allows)
    }

    fn search(&self, path: &[u8], access: Access, now: Timestamp) -> Verdict {
        let mut best: Verdict = None;
        let whole = Path::new(OsStr::from_bytes(path));
        let revoked = self.revoked.iter().filter(|(revoked, _)| whole.starts_with(revoked));
        let last_revoked = revoked.map(|(_, rules)| *rules).max().unwrap_or(0);
        let rank = |place: usize| (self.rules[place].store, self.rules[place].effect, place);
        self.index.each(path, &self.rules, |place| {
            let rule = &self.rules[place];
            let is_revoked = rule.effect == Effect::Allow && place < last_revoked;
            let speaks = rule.covers(access) && rule.holds_at(now) && !is_revoked;
            if speaks && best.is_none_or(|best| rank(place) < rank(best)) {
                best = Some(place);
            }
        });
        best
    }
}

#[cfg(test)]
#[path = "decider_tests.rs"]
mod tests;
