//! The shipped lists of `resources/view`, one entry a line: `NAME FLAGS # reason`.
//!
//! Read at every start, so the format is as plain as it can be. Nothing is decided here: what a list
//! means is said where it is used.

pub(crate) const SYSTEM: &str = include_str!("../../../resources/view/system.txt");
pub(crate) const TOOLCHAINS: &str = include_str!("../../../resources/view/toolchains.txt");
pub(crate) const CACHES: &str = include_str!("../../../resources/view/caches.txt");
pub(crate) const SECRETS: &str = include_str!("../../../resources/view/secrets.txt");
pub(crate) const SECRET_ENV: &str = include_str!("../../../resources/view/secret-env.txt");

/// A line of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) name: &'static str,
    flags: &'static str,
}

impl Listed {
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.flags.split(',').any(|word| word == flag)
    }
}

/// The entries of a list, in the file's order.
pub(crate) fn entries(list: &'static str) -> impl Iterator<Item = Listed> {
    list.lines().filter_map(|line| {
        let (entry, _reason) = line.split_once('#')?;
        let mut words = entry.split_ascii_whitespace();
        Some(Listed { name: words.next()?, flags: words.next()? })
    })
}

#[cfg(test)]
#[path = "lists_tests.rs"]
mod tests;
