//! Compares which of two values is tighter.
//!
//! Locks, trust and `diff` depend on this. If two values cannot be compared, the result is
//! [`Direction::Neutral`], and a layer that may only tighten is refused.

use crate::keys::{Key, Order, USUAL_PORTS};
use crate::model::rule::{Saying, StoredRule};
use crate::settings::Value;
use palisade_gate::Effect;
use serde::Serialize;
use std::collections::{BTreeSet, HashSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Tightens,
    Loosens,
    /// Neither, as far as the policy alone shows.
    Neutral,
}

/// The direction of a change from one value to another; `None` if they mean the same.
///
/// Not for the two keys of `syscalls`, which have a meaning only together: see [`syscalls`].
pub(crate) fn direction(key: &Key, from: Option<&Value>, to: Option<&Value>) -> Option<Direction> {
    let lists = (from, to);
    match key.order {
        Order::Ranked(words) => {
            let rank = |value: Option<&Value>| match value {
                Some(Value::Word(word)) => words.iter().position(|known| known == word),
                _ => None,
            };
            compared(rank(from)?.cmp(&rank(to)?))
        }
        Order::Towards(tightest) => {
            let tightest = Value::Word(tightest);
            match (from, to) {
                (from, to) if from == to => None,
                (_, Some(to)) if *to == tightest => Some(Direction::Tightens),
                (Some(from), _) if *from == tightest => Some(Direction::Loosens),
                _ => Some(Direction::Neutral),
            }
        }
        Order::TrueIsTighter | Order::FalseIsTighter => {
            let tight = key.order == Order::TrueIsTighter;
            let is_tight = |value: Option<&Value>| value == Some(&Value::Bool(tight));
            compared(is_tight(from).cmp(&is_tight(to)))
        }
        Order::Limit => {
            let limit = |value: Option<&Value>| match value {
                Some(Value::Number(number)) => *number,
                _ => u64::MAX,
            };
            compared(limit(to).cmp(&limit(from)))
        }
        Order::Allowance => {
            let allowed = |value: Option<&Value>| match value {
                Some(Value::Number(number)) => *number,
                _ => 0,
            };
            compared(allowed(to).cmp(&allowed(from)))
        }
        Order::Subset => cpus(cpus_of(from), cpus_of(to)),
        Order::Step => step(from, to),
        Order::AllowList => sets(lists, Direction::Tightens),
        Order::Ports => {
            let usual = Value::Ports(USUAL_PORTS.to_vec());
            sets((from.or(Some(&usual)), to.or(Some(&usual))), Direction::Tightens)
        }
        Order::DenyList => sets(lists, Direction::Loosens),
        Order::Restriction => match (unrestricted(from), unrestricted(to)) {
            (true, true) => None,
            (true, false) => Some(Direction::Tightens),
            (false, true) => Some(Direction::Loosens),
            (false, false) => sets(lists, Direction::Tightens),
        },
        Order::Rules => rules(rules_of(from), rules_of(to)),
        Order::Syscalls | Order::Fixed => (from != to).then_some(Direction::Neutral),
    }
}

fn cpus_of(value: Option<&Value>) -> Option<&BTreeSet<u32>> {
    match value {
        Some(Value::Cpus(cpus)) => Some(cpus),
        _ => None,
    }
}

fn cpus(from: Option<&BTreeSet<u32>>, to: Option<&BTreeSet<u32>>) -> Option<Direction> {
    match (from, to) {
        (from, to) if from == to => None,
        (None, _) => Some(Direction::Tightens),
        (_, None) => Some(Direction::Loosens),
        (Some(from), Some(to)) if to.is_subset(from) => Some(Direction::Tightens),
        (Some(from), Some(to)) if from.is_subset(to) => Some(Direction::Loosens),
        _ => Some(Direction::Neutral),
    }
}

/// A duration rounded up to 4 s can be computed from one rounded up to 2 s, so it reveals less. Steps of 2 s
/// and 3 s cannot be compared: each distinguishes durations that the other does not.
fn step(from: Option<&Value>, to: Option<&Value>) -> Option<Direction> {
    let (Some(Value::Number(from)), Some(Value::Number(to))) = (from, to) else {
        return compared(from.is_some().cmp(&to.is_some()));
    };
    match (from, to) {
        (from, to) if from == to => None,
        (from, to) if to.is_multiple_of(*from) => Some(Direction::Tightens),
        (from, to) if from.is_multiple_of(*to) => Some(Direction::Loosens),
        _ => Some(Direction::Neutral),
    }
}

fn rules_of(value: Option<&Value>) -> &[StoredRule] {
    match value {
        Some(Value::Rules(rules)) => rules,
        _ => &[],
    }
}

/// More permissions are looser, more denials are tighter. The order of the stores is ignored: a permission that
/// another store overrides counts as well.
fn rules(from: &[StoredRule], to: &[StoredRule]) -> Option<Direction> {
    let from: HashSet<Saying<'_>> = from.iter().map(StoredRule::saying).collect();
    let to: HashSet<Saying<'_>> = to.iter().map(StoredRule::saying).collect();
    let beyond = |some: &HashSet<Saying<'_>>, others: &HashSet<Saying<'_>>, effect| {
        some.difference(others).any(|saying| saying.0 == effect)
    };
    let loosens = beyond(&to, &from, Effect::Allow) || beyond(&from, &to, Effect::Deny);
    let tightens = beyond(&to, &from, Effect::Deny) || beyond(&from, &to, Effect::Allow);
    match (loosens, tightens) {
        (false, false) => None,
        (true, false) => Some(Direction::Loosens),
        (false, true) => Some(Direction::Tightens),
        (true, true) => Some(Direction::Neutral),
    }
}

/// The two keys of `syscalls` together.
#[derive(Clone, Copy)]
pub(crate) struct SyscallRule<'a> {
    pub(crate) mode: &'a str,
    pub(crate) list: &'a Value,
}

pub(crate) fn syscalls(from: SyscallRule<'_>, to: SyscallRule<'_>) -> Option<Direction> {
    let lists = (Some(from.list), Some(to.list));
    let both_empty = from.list.is_empty() && to.list.is_empty();
    match (from.mode, to.mode) {
        ("BLACKLIST", "BLACKLIST") => sets(lists, Direction::Loosens),
        ("WHITELIST", "WHITELIST") => match (from.list.is_empty(), to.list.is_empty()) {
            (false, false) => sets(lists, Direction::Tightens),
            (true, true) => None,
            // An empty list means the built-in baseline, which this crate does not know.
            _ => Some(Direction::Neutral),
        },
        ("BLACKLIST", "WHITELIST") if both_empty => Some(Direction::Tightens),
        ("WHITELIST", "BLACKLIST") if both_empty => Some(Direction::Loosens),
        _ => Some(Direction::Neutral),
    }
}

fn unrestricted(value: Option<&Value>) -> bool {
    value.is_none_or(Value::is_empty)
}

/// Converts a comparison on a scale that rises towards the tighter value.
fn compared(from_to: std::cmp::Ordering) -> Option<Direction> {
    match from_to {
        std::cmp::Ordering::Less => Some(Direction::Tightens),
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some(Direction::Loosens),
    }
}

/// Compares lists as sets. `losing` is the direction if entries are removed. Entries are compared as text: a
/// path below an allowed one may be a link that leads elsewhere, so it does not count as included.
fn sets((from, to): (Option<&Value>, Option<&Value>), losing: Direction) -> Option<Direction> {
    let gaining =
        if losing == Direction::Tightens { Direction::Loosens } else { Direction::Tightens };
    match (from, to) {
        (None, None) => None,
        (None, Some(to)) => (!to.is_empty()).then_some(gaining),
        (Some(from), None) => (!from.is_empty()).then_some(losing),
        (Some(from), Some(to)) => match (to.is_subset(from), from.is_subset(to)) {
            (true, true) => None,
            (true, false) => Some(losing),
            (false, true) => Some(gaining),
            (false, false) => Some(Direction::Neutral),
        },
    }
}

#[cfg(test)]
#[path = "tighten_tests.rs"]
mod tests;
