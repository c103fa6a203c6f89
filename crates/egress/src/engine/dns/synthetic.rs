//! Synthetic addresses: each represents a name inside, so that a connection to it shows which name was meant.
//!
//! They are not routable and never dialled. An address must not be reused for another name while a program
//! inside may still remember the first one.

use palisade_hosts::Name;
use palisade_hosts::{INSIDE_V4, INSIDE_V6};
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

/// 198.18.0.0 and fd53:616e:6442::, the starts of the two ranges. A name has the same offset in both.
const BASE_V4: u32 = INSIDE_V4.to_bits() & !1;
const BASE_V6: u128 = INSIDE_V6.to_bits() & !1;
/// The addresses below this offset are those that we listen on.
const FIRST: u32 = 256;
/// Limit for names at a time: half of 198.18.0.0/15, and about 20 MiB if every name has the maximum length.
const MAX_NAMES: u32 = 65_536;
/// How long an unused address is not assigned to another name. Programs keep addresses far longer than the TTL
/// (a JVM with a security manager by default for as long as it runs), but rarely without using them.
const REST: Duration = Duration::from_secs(3600);

/// The addresses of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StandIn {
    pub(super) v4: Ipv4Addr,
    pub(super) v6: Ipv6Addr,
}

impl StandIn {
    fn of(slot: u32) -> Self {
        let offset = FIRST + slot;
        Self {
            v4: Ipv4Addr::from_bits(BASE_V4 + offset),
            v6: Ipv6Addr::from_bits(BASE_V6 + u128::from(offset)),
        }
    }
}

fn slot_of(address: IpAddr) -> Option<u32> {
    let offset = match address {
        IpAddr::V4(v4) => v4.to_bits().checked_sub(BASE_V4)?,
        IpAddr::V6(v6) => u32::try_from(v6.to_bits().checked_sub(BASE_V6)?).ok()?,
    };
    offset.checked_sub(FIRST).filter(|slot| *slot < MAX_NAMES)
}

#[derive(Debug, Default)]
pub(super) struct Synthetic {
    table: RefCell<Table>,
}

#[derive(Debug, Default)]
struct Table {
    slots: Vec<Slot>,
    by_name: HashMap<Name, u32>,
    /// No address is free before this time: avoids the search during a flood of names.
    full_until: Option<Instant>,
}

#[derive(Debug)]
struct Slot {
    name: Name,
    used: Instant,
}

impl Synthetic {
    /// The addresses of the name, the same ones every time. `None` if all are taken.
    pub(super) fn stand_in(&self, name: &Name) -> Option<StandIn> {
        self.table.borrow_mut().stand_in(name, Instant::now())
    }

    /// Whether the name has addresses already.
    pub(super) fn knows(&self, name: &Name) -> bool {
        self.table.borrow().by_name.contains_key(name)
    }

    /// The name that a synthetic address represents.
    pub(super) fn name_of(&self, address: IpAddr) -> Option<Name> {
        self.table.borrow_mut().name_of(address, Instant::now())
    }
}

impl Table {
    fn stand_in(&mut self, name: &Name, now: Instant) -> Option<StandIn> {
        if let Some(&index) = self.by_name.get(name) {
            self.slots.get_mut(index as usize)?.used = now;
            return Some(StandIn::of(index));
        }
        let fresh = Slot { name: name.clone(), used: now };
        let next = u32::try_from(self.slots.len()).ok()?;
        let index = if next < MAX_NAMES {
            self.slots.push(fresh);
            next
        } else {
            let index = self.longest_unused(now)?;
            let slot = self.slots.get_mut(index as usize)?;
            self.by_name.remove(&slot.name);
            *slot = fresh;
            index
        };
        self.by_name.insert(name.clone(), index);
        Some(StandIn::of(index))
    }

    fn name_of(&mut self, address: IpAddr, now: Instant) -> Option<Name> {
        let slot = self.slots.get_mut(slot_of(address)? as usize)?;
        slot.used = now;
        Some(slot.name.clone())
    }

    fn longest_unused(&mut self, now: Instant) -> Option<u32> {
        if self.full_until.is_some_and(|until| now < until) {
            return None;
        }
        let (index, used) =
            (0..).zip(&self.slots).map(|(index, slot)| (index, slot.used)).min_by_key(|it| it.1)?;
        let free_at = used + REST;
        if free_at <= now {
            return Some(index);
        }
        self.full_until = Some(free_at);
        None
    }
}

#[cfg(test)]
#[path = "synthetic_tests.rs"]
mod tests;
