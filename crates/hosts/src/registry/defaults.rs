//! Default hosts of tools whose default cannot be read from the installed program.

use super::{Tool, url};
use crate::HostEntry;

/// The file gives a reason for each host.
const HOSTS: &str = include_str!("../../../../resources/egress/registries.txt");

pub(super) fn of(tool: Tool) -> Vec<HostEntry> {
    let lines = HOSTS.lines().filter_map(|line| {
        let mut words = line.split('#').next()?.split_whitespace();
        Some((words.next()?, words.next()?))
    });
    lines
        .filter(|(word, _)| *word == tool.word())
        .filter_map(|(_, host)| url::at(host, 443, tool))
        .collect()
}
