//! Removes saved rules, named by number or by text.
//!
//! Every name is looked up in the current list before anything is removed. Must never remove part of a request: a name
//! that matches no rule, or several, stops all of it.

use super::entries::SavedRule;
use super::{FileChange, Stores};
use crate::config::DocumentFile;
use crate::error::{Result, SessionError};
use palisade_ask::Store;
use palisade_policy::without;
use palisade_record::escape;
use std::borrow::Cow;
use std::path::Path;

/// How many candidates are listed when an argument matches none or several rules.
const MAX_CANDIDATES: usize = 5;

impl Stores {
    /// Removes rules from their files; the rest of the files stays unchanged byte for byte.
    pub fn forget(&self, names: &[String]) -> Result<Vec<SavedRule>> {
        let _lock = self.lock()?;
        let all = self.rules()?;
        let home = self.home();
        let mut chosen: Vec<SavedRule> = Vec::new();
        for name in names {
            let rule = choose(name, &all, home)?;
            if !chosen.iter().any(|other| other.number == rule.number) {
                chosen.push(rule.clone());
            }
        }
        let mut changes = Vec::new();
        for layer in [Store::Organisation, Store::Project, Store::User] {
            let here: Vec<&SavedRule> = chosen.iter().filter(|rule| rule.layer == layer).collect();
            if !here.is_empty() {
                changes.push((layer, self.change_without(layer, here)?));
            }
        }
        for (layer, change) in &changes {
            self.put(change, *layer)?;
        }
        Ok(chosen)
    }

    /// The file of a layer without these entries.
    fn change_without(&self, layer: Store, mut rules: Vec<&SavedRule>) -> Result<FileChange> {
        // A user without write access gets the error before anything is tried.
        let directory = self.directory(layer)?;
        let Some(file) = self.file_of(layer)? else {
            return Err(SessionError::NoSuchPolicy { path: directory });
        };
        // Last entry first: an entry is found by its index in its list.
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.entry.index));
        let mut after = file.text.clone();
        for rule in rules {
            after = without(&after, &file.path.to_string_lossy(), &rule.entry)?;
        }
        let standing = self.standing(&file, layer)?;
        let DocumentFile { path, text: before, .. } = file;
        let change = FileChange { path, before, after, added: Vec::new(), standing };
        self.check(&change, layer)?;
        Ok(change)
    }

    pub(super) fn home(&self) -> Option<&Path> {
        self.caller.facts.home.as_deref()
    }

    /// A text that names this rule of the list and no other.
    pub fn words_for(&self, rule: &SavedRule, all: &[SavedRule]) -> String {
        let home = self.home();
        let short = below_home(&rule.entry.value, home);
        [short.as_ref(), &rule.entry.what]
            .into_iter()
            .find(|words| matches!(&fitting(words, all, home)[..], [one] if one.number == rule.number))
            .map_or_else(|| rule.number.to_string(), str::to_owned)
    }
}

/// The only rule that matches.
fn choose<'r>(name: &str, all: &'r [SavedRule], home: Option<&Path>) -> Result<&'r SavedRule> {
    if let Ok(number) = name.parse::<usize>() {
        let found = all.iter().find(|rule| rule.number == number);
        return found.ok_or(SessionError::NoSuchRule { number, last: all.len() });
    }
    match &fitting(name, all, home)[..] {
        [one] => Ok(one),
        [] => Err(SessionError::NoRuleNamed { name: name.to_owned(), rules: similar(name, all) }),
        several => Err(SessionError::SeveralRulesNamed {
            name: name.to_owned(),
            rules: listed(several.iter().copied()),
        }),
    }
}

/// Every rule with exactly this value or this description.
fn fitting<'r>(name: &str, all: &'r [SavedRule], home: Option<&Path>) -> Vec<&'r SavedRule> {
    let wanted = normal(name, home);
    let is_meant = |rule: &&SavedRule| {
        let SavedRule { entry, .. } = rule;
        // As it is printed, where it cannot be printed literally.
        let printed = escape::text(&entry.value);
        normal(&entry.value, home) == wanted
            || normal(&unescaped(&entry.value), home) == wanted
            || printed == name
            || below_home(&printed, home) == name
            || entry.what == name
            || escape::text(&entry.what) == name
    };
    all.iter().filter(is_meant).collect()
}

/// With the home directory expanded, as a shell would already have done, and one form for everything below a directory.
fn normal(words: &str, home: Option<&Path>) -> String {
    let whole = match (words.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => home.join(below).to_string_lossy().into_owned(),
        _ => words.to_owned(),
    };
    match whole.strip_suffix('/') {
        Some(directory) => format!("{directory}/**"),
        None => whole,
    }
}

/// A path without the backslashes that make a pattern's characters literal.
fn unescaped(pattern: &str) -> String {
    let mut plain = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        plain.push(if character == '\\' { characters.next().unwrap_or('\\') } else { character });
    }
    plain
}

fn below_home<'w>(words: &'w str, home: Option<&Path>) -> Cow<'w, str> {
    let below = home.and_then(|home| words.strip_prefix(home.to_str()?)?.strip_prefix('/'));
    below.map_or(Cow::Borrowed(words), |below| Cow::Owned(format!("~/{below}")))
}

/// Candidates: rules that contain the text, or else all.
fn similar(name: &str, all: &[SavedRule]) -> String {
    let name = name.trim_start_matches('~').trim_end_matches(['*', '/']);
    let has_it = |rule: &&SavedRule| !name.is_empty() && rule.entry.what.contains(name);
    let near: Vec<&SavedRule> = all.iter().filter(has_it).collect();
    if near.is_empty() { listed(all.iter()) } else { listed(near.into_iter()) }
}

/// `2 allow /srv/x (user), 5 deny /srv/x (project)`.
fn listed<'r>(rules: impl ExactSizeIterator<Item = &'r SavedRule>) -> String {
    let more = rules.len().saturating_sub(MAX_CANDIDATES);
    let word = |rule: &SavedRule| format!("{} {} ({})", rule.number, rule.entry.what, rule.layer);
    let named: Vec<String> = rules.take(MAX_CANDIDATES).map(word).collect();
    match (named.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, 0) => named.join(", "),
        (false, more) => {
            format!("{} and {more} more (`sandbox policy rules` lists them)", named.join(", "))
        }
    }
}

#[cfg(test)]
#[path = "forget_tests.rs"]
mod tests;
