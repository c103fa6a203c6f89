//! System call names and numbers of both architectures, complete up to Linux 6.18. Sorted at build time: a
//! lookup is a binary search and start-up costs nothing.

use crate::Arch;

include!(concat!(env!("OUT_DIR"), "/tables.rs"));

/// The number of a system call by its kernel name.
pub fn number(arch: Arch, name: &str) -> Option<u32> {
    let table = by_name(arch);
    let index = table.binary_search_by_key(&name, |(known, _)| known).ok()?;
    Some(table[index].1)
}

/// The kernel's name of a system call number.
pub fn name(arch: Arch, number: u32) -> Option<&'static str> {
    let table = match arch {
        Arch::X86_64 => X86_64_BY_NUMBER,
        Arch::Aarch64 => AARCH64_BY_NUMBER,
    };
    let index = table.binary_search_by_key(&number, |(known, _)| *known).ok()?;
    Some(table[index].1)
}

/// Every name and number of one architecture, by name.
pub fn entries(arch: Arch) -> impl Iterator<Item = (&'static str, u32)> {
    by_name(arch).iter().copied()
}

/// The known name closest in spelling to `wrong`, if it is close enough to be a typo.
pub(crate) fn nearest(wrong: &str) -> Option<&'static str> {
    let close_enough = (wrong.len() / 3).max(1);
    entries(Arch::X86_64)
        .chain(entries(Arch::Aarch64))
        .map(|(name, _)| (edit_distance(wrong.as_bytes(), name.as_bytes()), name))
        .min()
        .filter(|(distance, _)| *distance <= close_enough)
        .map(|(_, name)| name)
}

fn by_name(arch: Arch) -> &'static [(&'static str, u32)] {
    match arch {
        Arch::X86_64 => X86_64_BY_NAME,
        Arch::Aarch64 => AARCH64_BY_NAME,
    }
}

/// Levenshtein's distance, one row at a time.
fn edit_distance(left: &[u8], right: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
