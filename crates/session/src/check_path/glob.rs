//! Patterns of names: `*` and `?` within a name, `**` for any number of directories.
//! Never looks at the tree.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// A component of the root's own name, in which `*` is a letter like any other.
    Literal(Vec<u8>),
    Name(Vec<u8>),
    AnyDepth,
}

/// An absolute pattern.
#[derive(Clone, Debug)]
pub(super) struct Glob {
    parts: Vec<Part>,
}

impl Glob {
    /// Whether this is a pattern at all, and not a path.
    pub(super) fn is_one(text: &Path) -> bool {
        text.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b'*' | b'?'))
    }

    /// `pattern` is relative to `root`, unless it is absolute.
    pub(super) fn new(root: &Path, pattern: &Path) -> Self {
        let literal = |name: &OsStr| Part::Literal(name.as_bytes().to_vec());
        let mut parts: Vec<Part> = match pattern.is_absolute() {
            true => Vec::new(),
            false => names(root).map(literal).collect(),
        };
        for component in pattern.components() {
            match component {
                Component::Normal(name) if name == "**" => parts.push(Part::AnyDepth),
                Component::Normal(name) => parts.push(Part::Name(name.as_bytes().to_vec())),
                Component::ParentDir => {
                    parts.pop();
                }
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        // All that is below: what is in it, and below that is included anyway.
        if parts.last() == Some(&Part::AnyDepth) {
            parts.push(Part::Name(b"*".to_vec()));
        }
        Self { parts }
    }

    /// Whether the pattern fits this absolute path or a directory above it.
    pub(super) fn covers(&self, path: &Path) -> bool {
        // All places in the pattern where the path read so far may stand, at once: a path is read
        // once, however many `**` there are.
        let mut places = self.from(vec![0]);
        for name in names(path) {
            if places.contains(&self.parts.len()) {
                return true;
            }
            let next = places.iter().filter_map(|place| match self.parts.get(*place)? {
                Part::AnyDepth => Some(*place),
                Part::Literal(text) => (text == name.as_bytes()).then_some(place + 1),
                Part::Name(pattern) => fits(pattern, name.as_bytes()).then_some(place + 1),
            });
            places = self.from(next.collect());
        }
        places.contains(&self.parts.len())
    }

    /// Adds the places that can be reached without a name: behind each `**`.
    fn from(&self, mut places: Vec<usize>) -> Vec<usize> {
        let mut index = 0;
        while let Some(place) = places.get(index).copied() {
            if self.parts.get(place) == Some(&Part::AnyDepth) && !places.contains(&(place + 1)) {
                places.push(place + 1);
            }
            index += 1;
        }
        places.sort_unstable();
        places.dedup();
        places
    }
}

fn names(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name),
        _ => None,
    })
}

/// `*` and `?` in one name. On a mismatch only the last `*` takes one byte more: no earlier one
/// needs to, so the time is bounded by the product of the lengths.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while read < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[read] => {
                at += 1;
                read += 1;
            }
            _ => match star {
                Some((star_at, taken_to)) => {
                    star = Some((star_at, taken_to + 1));
                    at = star_at + 1;
                    read = taken_to + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(pattern: &str, path: &str) -> bool {
        Glob::new(Path::new("/r*t"), Path::new(pattern)).covers(Path::new(path))
    }

    /// Proves: FS-4 denied-paths
    #[test]
    fn a_glob_covers_what_it_fits_and_all_below() {
        for (pattern, path) in [
            ("*.pem", "/r*t/key.pem"),
            ("*.pem", "/r*t/dir.pem/inside"),
            ("**/*.pem", "/r*t/key.pem"),
            ("**/*.pem", "/r*t/a/b/key.pem"),
            ("a/**/z", "/r*t/a/z"),
            ("a/**/z", "/r*t/a/b/c/z/y"),
            ("a/**", "/r*t/a/b"),
            ("/etc/*shadow*", "/etc/gshadow-"),
            ("secret?", "/r*t/secret1"),
            ("*a*b*", "/r*t/xxaxxabx"),
            ("../?", "/x"),
            ("**", "/r*t/x"),
        ] {
            assert!(covers(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("*.pem", "/r*t/a/key.pem"),
            ("*.pem", "/root/key.pem"),
            ("*.pem", "/r*t/key.PEM"),
            ("a/**", "/r*t/a"),
            ("a/**/z", "/r*t/a/b"),
            ("secret?", "/r*t/secret"),
            ("**", "/r*t"),
            ("*", "/etc"),
        ] {
            assert!(!covers(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn many_stars_take_no_longer() {
        let pattern = "**/*a*a*a*a*a*b/".repeat(40);
        let path = format!("/r*t{}", "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".repeat(100));
        assert!(!covers(&pattern, &path));
    }
}
