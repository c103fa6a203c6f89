//! The saved rules one by one: where each is, whether it is in effect, and how to remove it.

use super::{Kept, StoreStatus, Stores};
use crate::config::{self, DocumentFile, PROJECT_DIRECTORY, PolicyRequest};
use crate::error::Result;
use palisade_ask::Store;
use palisade_policy::{ListEntry, NetworkMode, SaveError, entries};
use palisade_record::SavedAnswer;
use serde::Serialize;
use std::path::PathBuf;

const HOSTS: &str = "network.allowedHosts";
/// Allows the hosts that the policy lists.
pub(crate) const NETWORK_PROXY: &str = "--network proxy";

/// An entry of a policy file, with its number in the current list.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedRule {
    pub number: usize,
    #[serde(serialize_with = "layer_word")]
    pub layer: Store,
    pub file: PathBuf,
    #[serde(flatten)]
    pub entry: ListEntry,
    /// False for a permission in an untrusted file.
    pub counts: bool,
}

fn layer_word<S: serde::Serializer>(layer: &Store, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(layer)
}

impl Stores {
    /// All entries, the organisation's first, in the order of their lines.
    pub fn rules(&self) -> Result<Vec<SavedRule>> {
        let mut all = Vec::new();
        for layer in [Store::Organisation, Store::Project, Store::User] {
            let Some(file) = self.file_of(layer)? else { continue };
            let counts = self.standing(&file, layer)? != StoreStatus::NotTrusted;
            let found = match entries(&file.text, &file.path.to_string_lossy()) {
                // A file of another program's format: answers are never saved there.
                Err(SaveError::Foreign { .. }) => continue,
                found => found?,
            };
            for entry in found {
                let counts = counts || entry.tightens;
                let (number, file) = (all.len() + 1, file.path.clone());
                all.push(SavedRule { number, layer, file, entry, counts });
            }
        }
        Ok(all)
    }

    /// The answers saved since these stores were created, with their present locations.
    pub(crate) fn take_kept(&self) -> Vec<SavedAnswer> {
        let kept = std::mem::take(&mut *self.kept.borrow_mut());
        if kept.is_empty() {
            return Vec::new();
        }
        let rules = self.rules().unwrap_or_default();
        let hosts_count_with = self.hosts_count_with();
        let told = |kept| self.told(kept, &rules, hosts_count_with.clone());
        kept.into_iter().map(told).collect()
    }

    /// A list of hosts does not turn the network on (NET-8). Returns the option that the next run needs, unless a
    /// policy says `mode: proxy`.
    fn hosts_count_with(&self) -> Option<String> {
        let next = config::load(&self.caller, &PolicyRequest::default()).ok()?;
        let is_off = next.merged.policy.network.mode == NetworkMode::None;
        is_off.then(|| NETWORK_PROXY.to_owned())
    }

    pub(super) fn file_of(&self, layer: Store) -> Result<Option<DocumentFile>> {
        let places = &self.caller.places;
        match layer {
            Store::Organisation => config::find(&places.organisation),
            Store::User => config::find(&places.user),
            Store::Project => {
                config::find(&config::project_root(&self.caller, None)?.join(PROJECT_DIRECTORY))
            }
        }
    }

    fn told(
        &self,
        Kept { path, outcome }: Kept,
        rules: &[SavedRule],
        hosts_count_with: Option<String>,
    ) -> SavedAnswer {
        let what = match outcome {
            Ok(what) => what,
            Err(error) => return SavedAnswer { error: Some(error), ..SavedAnswer::default() },
        };
        // A host is saved without the word for its effect.
        let is_it = |rule: &&SavedRule| {
            rule.file == path && (rule.entry.what == what || rule.entry.value == what)
        };
        let rule = rules.iter().rev().find(is_it);
        SavedAnswer {
            what: rule.map_or(what, |rule| rule.entry.what.clone()),
            file: path.to_string_lossy().into_owned(),
            line: rule.map(|rule| rule.entry.line),
            words: rule.map(|rule| self.words_for(rule, rules)),
            counts_with: rule.filter(|rule| rule.entry.key == HOSTS).and(hosts_count_with),
            error: None,
        }
    }
}
