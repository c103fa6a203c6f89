//! Summarizes what the filter decides, group by group, for the printed plan.

use super::SeccompGroup;
use palisade_bpf::{CallVerdict, Explanation, Profile};
use serde::Serializer;

pub(crate) fn by_groups<S: Serializer>(rules: &Profile, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(summary(rules))
}

pub(crate) fn summary(rules: &Profile) -> Vec<SeccompGroup> {
    let explained: Vec<Explanation> =
        rules.explanations().filter(|explanation| explanation.number.is_some()).collect();
    explained
        .chunk_by(|one, next| one.group == next.group)
        .map(|calls| SeccompGroup {
            name: calls[0].group,
            decision: decision(calls),
            reason: calls[0].reason,
            syscalls: calls.len(),
        })
        .collect()
}

fn decision(calls: &[Explanation]) -> &'static str {
    let first = calls[0].verdict;
    if calls.iter().any(|call| call.verdict != first) {
        return "partly";
    }
    match first {
        CallVerdict::Allowed => "allow",
        CallVerdict::Refused => "refuse",
        CallVerdict::Brokered => "broker",
        CallVerdict::ByArgument => "by argument",
    }
}
