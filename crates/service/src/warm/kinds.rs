//! Which kinds of sandboxes are prepared, and how many of each: those that requests ask for. At first all places belong to a request that
//! says nothing; a request that finds none prepared takes a place from the kind that was not asked for the longest time.
//!
//! Only counts; makes nothing.

use crate::own_program::Invocation;
use std::collections::VecDeque;

/// Kinds that are remembered without a place.
const MAX_STRANGERS: usize = 16;
/// What a kind has to be asked for before it gets a place: one that is asked for once, as with a directory of its own for each sandbox,
/// gets none.
const FIRST_MISSES: u32 = 2;
/// A kind that cannot be prepared needs twice as many each time, up to this.
const MAX_MISSES: u32 = 1 << 16;

/// What a sandbox is like: the same text for all that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind(pub(crate) String);

#[derive(Debug)]
struct Share {
    kind: Kind,
    create: Invocation,
    places: usize,
}

#[derive(Debug)]
struct Stranger {
    kind: Kind,
    misses: u32,
    /// How many give it a place.
    needed: u32,
}

/// How the places are shared.
#[derive(Debug)]
pub(super) struct Kinds {
    /// Asked for last comes last.
    shares: Vec<Share>,
    strangers: VecDeque<Stranger>,
    /// That belong to no kind, because the one that had them cannot be prepared.
    free: usize,
}

impl Kinds {
    pub(super) fn new(places: usize) -> Self {
        Self { shares: Vec::new(), strangers: VecDeque::new(), free: places }
    }

    /// All places that belong to no kind are for this one.
    pub(super) fn begin_with(&mut self, kind: Kind, create: Invocation) {
        let places = std::mem::take(&mut self.free);
        self.shares.push(Share { kind, create, places });
    }

    /// What is to be prepared, and how many.
    pub(super) fn shares(&self) -> impl Iterator<Item = (&Kind, &Invocation, usize)> {
        self.shares.iter().rev().map(|share| (&share.kind, &share.create, share.places))
    }

    /// How many of this kind are to be prepared.
    pub(super) fn places(&self, kind: &Kind) -> usize {
        self.shares.iter().find(|share| share.kind == *kind).map_or(0, |share| share.places)
    }

    /// One of this kind was there.
    pub(super) fn hit(&mut self, kind: &Kind) {
        if let Some(at) = self.shares.iter().position(|share| share.kind == *kind) {
            self.shares[at..].rotate_left(1);
        }
    }

    /// None of this kind was there.
    pub(super) fn missed(&mut self, kind: &Kind, create: &Invocation) {
        if self.places(kind) == 0 {
            if !self.is_known(kind) {
                return;
            }
            let create = create.clone();
            self.shares.push(Share { kind: kind.clone(), create, places: 0 });
        }
        self.hit(kind);
        if self.take_place(kind)
            && let Some(share) = self.shares.iter_mut().find(|share| share.kind == *kind)
        {
            share.places += 1;
        }
        self.shares.retain(|share| share.places > 0);
    }

    /// Whether it was asked for often enough. Counts this time.
    fn is_known(&mut self, kind: &Kind) -> bool {
        let Some(at) = self.strangers.iter().position(|known| known.kind == *kind) else {
            let stranger = Stranger { kind: kind.clone(), misses: 1, needed: FIRST_MISSES };
            self.remember(stranger);
            return false;
        };
        let stranger = &mut self.strangers[at];
        stranger.misses += 1;
        stranger.misses >= stranger.needed
    }

    fn remember(&mut self, stranger: Stranger) {
        if self.strangers.len() >= MAX_STRANGERS {
            self.strangers.pop_front();
        }
        self.strangers.push_back(stranger);
    }

    /// A place of the others.
    fn take_place(&mut self, of: &Kind) -> bool {
        if self.free > 0 {
            self.free -= 1;
            return true;
        }
        match self.shares.iter_mut().find(|share| share.kind != *of && share.places > 0) {
            Some(share) => {
                share.places -= 1;
                true
            }
            None => false,
        }
    }

    /// It cannot be prepared: it has no places until it was asked for often.
    pub(super) fn failed(&mut self, kind: &Kind) {
        let Some(at) = self.shares.iter().position(|share| share.kind == *kind) else { return };
        self.free += self.shares.remove(at).places;
        match self.strangers.iter_mut().find(|known| known.kind == *kind) {
            Some(known) => {
                known.misses = 0;
                known.needed = known.needed.saturating_mul(2).min(MAX_MISSES);
            }
            None => {
                let needed = 2 * FIRST_MISSES;
                self.remember(Stranger { kind: kind.clone(), misses: 0, needed });
            }
        }
    }
}

#[cfg(test)]
#[path = "kinds_tests.rs"]
mod tests;
