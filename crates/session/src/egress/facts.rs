//! Facts about the host that only a network connection needs. Collected only if the policy requests one, so that other
//! runs do not pay for it.

use crate::caller::Caller;
use crate::error::Result;
use palisade_egress::certificates;
use palisade_egress::config::Authority;
use palisade_hosts::HostPattern;
use palisade_hosts::registry::Tool;
use palisade_launch::probe::{self, RealTree};
use palisade_plan::facts::HostFacts;
use palisade_policy::model::{NetworkMode, Policy};
use std::borrow::Cow;

/// The caller's facts including these, and the authority whose certificate they contain.
pub(crate) fn facts<'c>(
    caller: &'c Caller,
    policy: &Policy,
) -> Result<(Cow<'c, HostFacts>, Option<Authority>)> {
    let network = &policy.network;
    let mut facts = Cow::Borrowed(&caller.facts);
    let mut authority = None;
    match network.mode {
        NetworkMode::Proxy => {
            let tools: Vec<Tool> =
                network.allowed_for.iter().filter_map(|word| Tool::from_word(word)).collect();
            if !tools.is_empty() {
                let project = palisade_plan::project_root(&caller.facts, &RealTree);
                let writable =
                    palisade_plan::writable_places(&policy.filesystem, &caller.facts, &RealTree);
                let registries = probe::registries(&tools, &caller.facts, &project, &writable);
                let facts = facts.to_mut();
                facts.registries = registries.hosts;
                facts.registry_notes = registries.notes;
                // Settings that may contain passwords are not in the view. Variables that the caller set take
                // precedence.
                for (name, value) in registries.variables {
                    facts.env.entry(name).or_insert(value);
                }
            }
            if network.intercept {
                let credentials = network.credentials.iter();
                let entries = credentials.flat_map(|credential| &credential.hosts);
                let hosts: Vec<HostPattern> = entries.map(|entry| entry.pattern.clone()).collect();
                let made = certificates::authority(&hosts)?;
                facts.to_mut().authority = Some(made.certificate.clone());
                authority = Some(made);
            }
        }
        NetworkMode::Nat => facts.to_mut().nat = probe::nat_facts(&caller.facts),
        NetworkMode::None | NetworkMode::Host => {}
    }
    Ok((facts, authority))
}
