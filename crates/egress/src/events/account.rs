//! The budget of one kind of events, and the sums of what exceeds it.
//!
//! No reached destination may be hidden by others, up to [`MAX_PLACES`]: the first attempt for each is reported
//! at once, and the rest at the end of the run at the latest.

use super::sum::{Key, among_others, join};
use crate::rate::Bucket;
use crate::wire::EgressEvent;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tokio::time::{Duration, Instant};

/// How many events are reported singly at first or after a quiet time. A build that downloads a few hundred
/// packages stays below it.
pub(super) const SINGLY_AT_ONCE: u32 = 1000;
/// How many sums are reported at a time. Hosts that were reached wait for their turn. Of all others, no more
/// are kept separate, because random names would fill memory and disk.
pub(super) const MAX_SUMS: usize = 32;
/// How many reached destinations are always reported by name. A run's report lists as many.
pub(super) const MAX_PLACES: usize = 500;
/// Time from the first event of a sum to its report.
const SUM_AFTER: Duration = Duration::from_secs(1);
/// The interval doubles up to this, as long as events come too fast.
pub(super) const SUM_AFTER_AT_MOST: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Account {
    singly: Bucket,
    sums: BTreeMap<Key, EgressEvent>,
    /// The keys of the sums, oldest first.
    request: VecDeque<Key>,
    /// Destinations that were reached and are reported by name.
    places: BTreeSet<(String, u16)>,
    /// When the next sums are reported, if there are any.
    due: Option<Instant>,
    /// The interval of the last sums, and when they were reported.
    sum_after: Duration,
    flushed: Option<Instant>,
}

impl Account {
    pub(super) fn new(singly_a_second: u32) -> Self {
        let now = Instant::now().into_std();
        Self {
            singly: Bucket::with_burst(singly_a_second, SINGLY_AT_ONCE, now),
            sums: BTreeMap::new(),
            request: VecDeque::new(),
            places: BTreeSet::new(),
            due: None,
            sum_after: SUM_AFTER,
            flushed: None,
        }
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether one more event may be reported singly.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        self.singly.take(now.into_std())
    }

    /// Whether this is the first event of a destination that is reported by name from now on.
    pub(super) fn is_new_place(&mut self, key: &Key) -> bool {
        match key {
            Key::Reached { host, port, .. } if key.is_of_way_out() => {
                self.places.len() < MAX_PLACES && self.places.insert((host.clone(), *port))
            }
            _ => false,
        }
    }

    pub(super) fn add_up(&mut self, key: Key, event: EgressEvent, now: Instant) {
        if self.due.is_none() {
            self.due = Some(self.next_due(now));
        }
        let (key, event) = if self.is_kept_apart(&key) {
            (key, event)
        } else {
            (key.among_others(), among_others(event))
        };
        match self.sums.get_mut(&key) {
            Some(sum) => join(sum, event),
            None => {
                self.request.push_back(key.clone());
                self.sums.insert(key, event);
            }
        }
    }

    fn is_kept_apart(&self, key: &Key) -> bool {
        let is_place = |(host, port): (&str, u16)| self.places.contains(&(host.to_owned(), port));
        self.sums.len() < MAX_SUMS
            || self.sums.contains_key(key)
            || key.place().is_some_and(is_place)
    }

    /// When sums that start now are reported.
    fn next_due(&mut self, now: Instant) -> Instant {
        let before = self.sum_after;
        let goes_on = self.flushed.is_some_and(|flushed| now < flushed + before);
        self.sum_after = if goes_on { (before * 2).min(SUM_AFTER_AT_MOST) } else { SUM_AFTER };
        now + self.sum_after
    }

    /// The sums that are due.
    pub(super) fn flush(&mut self, now: Instant) -> Vec<EgressEvent> {
        if self.due.is_none_or(|due| now < due) {
            return Vec::new();
        }
        let event = self.oldest(MAX_SUMS);
        self.flushed = Some(now);
        self.due = None;
        if !self.sums.is_empty() {
            self.due = Some(self.next_due(now));
        }
        event
    }

    /// All sums.
    pub(super) fn rest(&mut self) -> Vec<EgressEvent> {
        self.due = None;
        self.oldest(usize::MAX)
    }

    fn oldest(&mut self, most: usize) -> Vec<EgressEvent> {
        let count = self.request.len().min(most);
        self.request.drain(..count).filter_map(|key| self.sums.remove(&key)).collect()
    }
}
