//! Decides by the rules in their order, and caches the verdicts.
//!
//! The first store with a rule for the path decides. Within one store, a denial takes precedence over a
//! permission. If no rule applies, the decision is to ask, never *allowed*.

use crate::cache::{Cache, Verdict};
use crate::index::Index;
use crate::rule::{Access, Effect, Rule};
use jiff::Timestamp;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[derive(Clone, Debug)]
pub struct Decider {
    rules: Vec<Rule>,
    index: Index,
    cache: Cache,
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
        Decider { rules, index, cache: Cache::new(cache_capacity), next_end }
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

    /// Whether a denial may apply to something in this tree. If so, the tree cannot be granted as a whole. May
    /// return true without need: it does not compare stores, and counts a glob from the directory it begins in.
    pub fn denies_within(&self, tree: &Path, now: Timestamp) -> bool {
        self.rules.iter().any(|rule| {
            rule.effect == Effect::Deny && rule.holds_at(now) && rule.pattern.may_be_within(tree)
        })
    }

    fn search(&self, path: &[u8], access: Access, now: Timestamp) -> Verdict {
        let mut best: Verdict = None;
        let rank = |place: usize| (self.rules[place].store, self.rules[place].effect, place);
        self.index.each(path, &self.rules, |place| {
            let rule = &self.rules[place];
            let speaks = rule.covers(access) && rule.holds_at(now);
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
