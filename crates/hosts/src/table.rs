//! A list of entries with an index, so that matching a host does not scan the whole list.

use crate::pattern::Shape;
use crate::{Host, HostEntry};
use ipnet::IpNet;
use std::collections::HashMap;
use std::net::IpAddr;

/// Entries keep their order. The maps hold indexes into `entries`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    entries: Vec<HostEntry>,
    exactly: HashMap<String, Vec<usize>>,
    below: HashMap<String, Vec<usize>>,
    ranges: Vec<(IpNet, usize)>,
    everything: Vec<usize>,
}

impl Table {
    pub(crate) fn new(entries: Vec<HostEntry>) -> Self {
        let mut table = Self::default();
        for (place, entry) in entries.iter().enumerate() {
            match entry.pattern.shape() {
                Shape::Everything => table.everything.push(place),
                Shape::Exactly(name) => push(&mut table.exactly, name.as_str(), place),
                Shape::Below(apex) => push(&mut table.below, apex.as_str(), place),
                Shape::BelowAndApex(apex) => {
                    push(&mut table.exactly, apex.as_str(), place);
                    push(&mut table.below, apex.as_str(), place);
                }
                Shape::Range(range) => table.ranges.push((*range, place)),
            }
        }
        table.entries = entries;
        table
    }

    pub(crate) fn entries(&self) -> &[HostEntry] {
        &self.entries
    }

    /// All matching entries, the most specific first.
    pub(crate) fn matching(&self, host: &Host) -> Vec<&HostEntry> {
        let mut places = Vec::new();
        match host {
            Host::Name(name) => {
                places.extend(self.exactly.get(name.as_str()).into_iter().flatten());
                let mut rest = name.as_str();
                while let Some((_, above)) = rest.split_once('.') {
                    places.extend(self.below.get(above).into_iter().flatten());
                    rest = above;
                }
            }
            Host::Address(address) => places.extend(self.holding(*address)),
        }
        places.extend(&self.everything);
        places.iter().filter_map(|place| self.entries.get(*place)).collect()
    }

    /// The first range that contains the address.
    pub(crate) fn range_of(&self, address: IpAddr) -> Option<IpNet> {
        self.ranges.iter().map(|(range, _)| *range).find(|range| range.contains(&address))
    }

    fn holding(&self, address: IpAddr) -> impl Iterator<Item = usize> {
        let address = address.to_canonical();
        self.ranges
            .iter()
            .filter(move |(range, _)| range.contains(&address))
            .map(|(_, place)| *place)
    }
}

fn push(map: &mut HashMap<String, Vec<usize>>, key: &str, place: usize) {
    map.entry(key.to_owned()).or_default().push(place);
}
