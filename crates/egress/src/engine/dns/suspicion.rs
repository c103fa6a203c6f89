//! Names that look as if they carried data (NET-6, N03).
//!
//! A name that no rule allows never leaves the machine, so this stops nothing: it warns people of the attempt.
//! The thresholds are above what installers and browsers query.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::BuildHasher;
use std::time::{Duration, Instant};

/// The longest common names, those of load balancers and buckets in clouds, have about 80 characters. A tunnel
/// uses as much as it can of the 253.
const LONG: usize = 100;
/// Service names below regions below providers have 6 to 8 labels.
const MANY_LABELS: usize = 10;
/// A run of letters and digits without a hyphen. Identifiers in CDN names have 13 or 14, and UUIDs are
/// hyphenated.
const LONG_RUN: usize = 24;
/// Bits per character. Random hex digits reach 3.5 or more in a run of 24; repeated words and consecutive
/// numbers stay below.
const RANDOM: f64 = 3.0;
/// Changes between letter and digit in one run. Encoded data has 7 or more in 24 characters (base32); words
/// with a number at the end have one.
const MIXED: usize = 4;
/// Different names below one domain within [`WINDOW`]. A web page with all its resources needs some dozens.
const MANY_NAMES: usize = 100;
const WINDOW: Duration = Duration::from_secs(60);
/// Domains that are counted separately; all others are counted as one.
const MAX_DOMAINS: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Suspicion {
    Long,
    ManyLabels,
    /// Bytes that do not occur in host names.
    OddBytes,
    Random,
    ManyNames {
        below: String,
    },
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Long => f.write_str("the name is very long"),
            Self::ManyLabels => f.write_str("the name has very many labels"),
            Self::OddBytes => f.write_str("the name holds bytes that are in no host's name"),
            Self::Random => f.write_str("a label looks like encoded data"),
            Self::ManyNames { below } if below.is_empty() => {
                f.write_str("very many different domains in a minute")
            }
            Self::ManyNames { below } => {
                write!(f, "very many different names below {below} in a minute")
            }
        }
    }
}

/// Remembers the names of the last minute, in bounded memory.
#[derive(Debug)]
pub(super) struct Watch {
    since: Instant,
    domains: HashMap<String, HashSet<u64>>,
    hasher: RandomState,
}

impl Watch {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, domains: HashMap::new(), hasher: RandomState::new() }
    }

    /// What is suspicious about this name, given as the log shows it.
    pub(super) fn look(&mut self, name: &str, now: Instant) -> Option<Suspicion> {
        let crowd = self.count(name, now);
        look_alone(name).or(crowd)
    }

    /// Whether the name was counted in the current window.
    pub(super) fn knows(&self, name: &str) -> bool {
        let names = self.domains.get(domain_of(name));
        names.is_some_and(|names| names.contains(&self.hasher.hash_one(name)))
    }

    fn count(&mut self, name: &str, now: Instant) -> Option<Suspicion> {
        if now.saturating_duration_since(self.since) >= WINDOW {
            self.since = now;
            self.domains.clear();
        }
        let domain = domain_of(name);
        let apart = self.domains.contains_key(domain) || self.domains.len() < MAX_DOMAINS;
        let domain = if apart { domain } else { "" };
        let hash = self.hasher.hash_one(name);
        let names = self.domains.entry(domain.to_owned()).or_default();
        if names.contains(&hash) {
            return None;
        }
        if names.len() < MANY_NAMES {
            names.insert(hash);
            return None;
        }
        Some(Suspicion::ManyNames { below: domain.to_owned() })
    }
}

fn look_alone(name: &str) -> Option<Suspicion> {
    if name.contains('\\') {
        return Some(Suspicion::OddBytes);
    }
    // The reverse name of an IPv6 address has 34 labels.
    if name.ends_with(".arpa") {
        return None;
    }
    if name.len() > LONG {
        return Some(Suspicion::Long);
    }
    if name.split('.').count() > MANY_LABELS {
        return Some(Suspicion::ManyLabels);
    }
    name.split(['.', '-', '_']).any(is_random).then_some(Suspicion::Random)
}

fn is_random(run: &str) -> bool {
    run.len() >= LONG_RUN && changes(run) >= MIXED && entropy(run) >= RANDOM
}

fn changes(run: &str) -> usize {
    run.as_bytes()
        .windows(2)
        .filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit())
        .count()
}

/// Shannon entropy, in bits per character.
fn entropy(run: &str) -> f64 {
    let mut counts = [0_u16; 256];
    for byte in run.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let all = run.len() as f64;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / all)
        .map(|share| -share * share.log2())
        .sum()
}

/// The registered domain, approximately: two labels, or three below `co.uk` and similar. A public suffix list
/// would be exact, but this is enough for counting.
fn domain_of(name: &str) -> &str {
    let starts = |nth: usize| name.rmatch_indices('.').nth(nth).map_or(0, |(at, _)| at + 1);
    let two = &name[starts(1)..];
    let short =
        two.split_once('.').is_some_and(|(second, top)| top.len() == 2 && second.len() <= 3);
    if short { &name[starts(2)..] } else { two }
}

#[cfg(test)]
#[path = "suspicion_tests.rs"]
mod tests;
