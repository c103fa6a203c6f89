//! Compares paths by their text. Every answer is that of `std::path`, which reads the components of both paths and
//! takes ten times as long; a plan compares thousands of paths.
//!
//! Wherever the spelling leaves a doubt (`.`, `..`, repeated or trailing slashes), `std::path` is asked.

use std::cmp::Ordering;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

pub(crate) trait PathText {
    /// As [`Path::starts_with`].
    fn is_in(&self, dir: impl AsRef<Path>) -> bool;
    /// As `==`.
    fn is_same(&self, other: impl AsRef<Path>) -> bool;
}

impl PathText for Path {
    fn is_in(&self, dir: impl AsRef<Path>) -> bool {
        starts_with(self, dir.as_ref())
    }

    fn is_same(&self, other: impl AsRef<Path>) -> bool {
        compare(self, other.as_ref()) == Ordering::Equal
    }
}

/// As `Path::cmp`.
pub(crate) fn compare(one: &Path, other: &Path) -> Ordering {
    let split = Split::of(one, other);
    let (a, b) = (split.ahead(split.one), split.ahead(split.other));
    match (a, b) {
        ([], []) => Ordering::Equal,
        _ if !split.is_clear() => one.cmp(other),
        // A name ends before any byte that could continue it.
        ([], _) => Ordering::Less,
        (_, []) => Ordering::Greater,
        ([b'/', ..], _) => Ordering::Less,
        (_, [b'/', ..]) => Ordering::Greater,
        ([a, ..], [b, ..]) => a.cmp(b),
    }
}

fn starts_with(path: &Path, dir: &Path) -> bool {
    let split = Split::of(path, dir);
    match (split.ahead(split.one), split.ahead(split.other)) {
        // The path has all of the directory's text, up to the end of a name.
        ([] | [b'/', ..], []) => true,
        (_, []) if matches!(split.other, [] | [.., b'/']) => true,
        _ if split.is_clear() => false,
        _ => path.starts_with(dir),
    }
}

/// Two paths, and where they part.
struct Split<'p> {
    one: &'p [u8],
    other: &'p [u8],
    /// The length of what they have in common.
    at: usize,
}

impl<'p> Split<'p> {
    fn of(one: &'p Path, other: &'p Path) -> Self {
        let (one, other) = (one.as_os_str().as_bytes(), other.as_os_str().as_bytes());
        Self { one, other, at: common(one, other) }
    }

    fn ahead(&self, path: &'p [u8]) -> &'p [u8] {
        path.get(self.at..).unwrap_or_default()
    }

    /// Whether both paths part within or directly after a name, and go on with a name.
    fn is_clear(&self) -> bool {
        let shared = self.one.get(..self.at).unwrap_or_default();
        let name = shared.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        [self.one, self.other].into_iter().all(|path| {
            let is_name = match path.get(name..) {
                // Nothing, or the root.
                None | Some([]) => name <= 1,
                Some(name) => !is_odd(name),
            };
            let goes_on = match self.ahead(path) {
                [b'/', next @ ..] => !next.is_empty() && !is_odd(next),
                _ => true,
            };
            is_name && goes_on
        })
    }
}

/// Whether a path begins with something other than a name: a slash, `.` or `..`.
fn is_odd(path: &[u8]) -> bool {
    matches!(path, [b'/', ..] | [b'.'] | [b'.', b'/', ..] | [b'.', b'.'] | [b'.', b'.', b'/', ..])
}

/// How many bytes are the same at the beginning.
fn common(one: &[u8], other: &[u8]) -> usize {
    let (words, _) = one.as_chunks::<8>();
    let (others, _) = other.as_chunks::<8>();
    let mut at = 0;
    for (word, other) in words.iter().zip(others) {
        let differing = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*other);
        if differing != 0 {
            return at + differing.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = one[at..].iter().zip(&other[at..]);
    at + rest.take_while(|(byte, other)| byte == other).count()
}

#[cfg(test)]
#[path = "path_text_tests.rs"]
mod tests;
