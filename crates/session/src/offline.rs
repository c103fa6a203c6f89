//! Detects whether a run without a network tried to use one, by the kernel's counters of its network namespace.
//!
//! Reports only what was counted. A name lookup counts through its queries to a server that does not exist; nothing
//! reads them, so the name is unknown.

use palisade_record::OfflineAttempts;
use palisade_sys::proc::read_kernel_file;
use std::fs::File;
use std::os::fd::OwnedFd;

/// Reads the counters after all processes inside have ended: the open files keep the namespace alive. `None` if nothing
/// was tried.
pub(crate) fn attempts(counters: Vec<OwnedFd>) -> Option<OfflineAttempts> {
    let mut files = counters.into_iter();
    let text = read(files.next()?)?;
    // Without IPv6 there is no second file.
    let other = files.next().and_then(read).unwrap_or_default();
    let unreachable = of_table(&text, "Ip:", "OutNoRoutes") + of_list(&other, "Ip6OutNoRoutes");
    let unanswered = of_table(&text, "Udp:", "NoPorts") + of_list(&other, "Udp6NoPorts");
    let attempts = OfflineAttempts { unreachable, unanswered };
    (unreachable + unanswered > 0).then_some(attempts)
}

fn read(counters: OwnedFd) -> Option<String> {
    String::from_utf8(read_kernel_file(File::from(counters)).ok()?).ok()
}

/// `/proc/net/snmp`: a line of names, followed by a line of numbers.
fn of_table(text: &str, table: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.starts_with(table));
    let (Some(names), Some(numbers)) = (lines.next(), lines.next()) else { return 0 };
    let place = names.split_whitespace().position(|known| known == name);
    place.and_then(|place| numbers.split_whitespace().nth(place)?.parse().ok()).unwrap_or_default()
}

/// `/proc/net/snmp6`: one name and number per line.
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
