//! Whether a run without a network tried to use one, by the kernel's own counters of its network namespace.
//!
//! Only what was counted is told. A name that is looked up counts by its questions to a server that is not there; nobody reads
//! them, so which name it was is not known.

use palisade_plan::model::{Confinement, Plan};
use palisade_policy::NetworkMode;
use palisade_record::OfflineAttempts;
use std::fs::File;
use std::io::Read as _;

/// The counters stay readable when everybody inside is gone: the open files hold the namespace.
#[derive(Debug)]
pub(crate) struct Counters {
    v4: File,
    v6: Option<File>,
}

impl Counters {
    /// Of the namespace that this process is in; none where there is a way out, or nothing can be read.
    pub(crate) fn open(plan: &Plan, pid: u32) -> Option<Self> {
        let is_apart = match &plan.confinement {
            Confinement::Namespaces(inside) => inside.namespaces.net,
            Confinement::NoNamespaces | Confinement::None => false,
        };
        if !is_apart || plan.network != NetworkMode::None {
            return None;
        }
        let v4 = File::open(format!("/proc/{pid}/net/snmp")).ok()?;
        Some(Self { v4, v6: File::open(format!("/proc/{pid}/net/snmp6")).ok() })
    }

    /// None where nothing was tried.
    pub(crate) fn attempts(mut self) -> Option<OfflineAttempts> {
        let mut text = String::new();
        self.v4.read_to_string(&mut text).ok()?;
        let mut other = String::new();
        if let Some(v6) = &mut self.v6 {
            // Without IPv6 the first file has all there is.
            let _ = v6.read_to_string(&mut other);
        }
        let unreachable = of_table(&text, "Ip:", "OutNoRoutes") + of_list(&other, "Ip6OutNoRoutes");
        let unanswered = of_table(&text, "Udp:", "NoPorts") + of_list(&other, "Udp6NoPorts");
        let attempts = OfflineAttempts { unreachable, unanswered };
        (unreachable + unanswered > 0).then_some(attempts)
    }
}

/// `/proc/net/snmp`: a line of names, then one of numbers.
fn of_table(text: &str, table: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.starts_with(table));
    let (Some(names), Some(numbers)) = (lines.next(), lines.next()) else { return 0 };
    let place = names.split_whitespace().position(|known| known == name);
    place.and_then(|place| numbers.split_whitespace().nth(place)?.parse().ok()).unwrap_or_default()
}

/// `/proc/net/snmp6`: a name and a number a line.
fn of_list(text: &str, name: &str) -> u64 {
    let numbers = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(name)).then(|| words.next()?.parse::<u64>().ok()).flatten()
    });
    numbers.sum()
}

#[cfg(test)]
mod tests {
    use super::{of_list, of_table};

    #[test]
    fn counters_are_found_by_their_names() {
        let text = "Ip: Forwarding OutNoRoutes OutTransmits\nIp: 2 7 1\nUdp: InDatagrams NoPorts\nUdp: 0 3\n";
        assert_eq!(of_table(text, "Ip:", "OutNoRoutes"), 7);
        assert_eq!(of_table(text, "Udp:", "NoPorts"), 3);
        assert_eq!(of_table(text, "Udp:", "Missing"), 0);
        assert_eq!(of_list("Ip6InNoRoutes \t5\nIp6OutNoRoutes   \t2\n", "Ip6OutNoRoutes"), 2);
    }
}
