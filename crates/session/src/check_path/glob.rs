//! Name patterns: `*` and `?` within a name, `**` for any number of directories. Matched by the gate's code, with a
//! different syntax. Must never access the tree.

use palisade_gate::GlobPart;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

/// An absolute pattern; it covers everything below what it matches.
#[derive(Clone, Debug)]
pub(super) struct Glob(palisade_gate::Glob);

impl Glob {
    /// Whether this is a pattern and not a plain path.
    pub(super) fn is_one(text: &Path) -> bool {
        text.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b'*' | b'?'))
    }

    /// `pattern` is relative to `root`, unless it is absolute. A `*` in the root's own path is an ordinary character.
    pub(super) fn new(root: &Path, pattern: &Path) -> Self {
        let mut parts: Vec<GlobPart<'_>> = match pattern.is_absolute() {
            true => Vec::new(),
            false => names(root).map(GlobPart::Literal).collect(),
        };
        for component in pattern.components() {
            match component {
                Component::Normal(name) if name == "**" => parts.push(GlobPart::AnyNumber),
                Component::Normal(name) => parts.push(GlobPart::Wildcards(name.as_bytes())),
                Component::ParentDir => {
                    parts.pop();
                }
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        // A trailing `**` covers what is in the directory, not the directory itself.
        if parts.last() == Some(&GlobPart::AnyNumber) {
            parts.push(GlobPart::Wildcards(b"*"));
        }
        parts.push(GlobPart::AnyNumber);
        Self(palisade_gate::Glob::from_parts(&parts))
    }

    /// Whether the pattern matches this absolute path or a directory above it.
    pub(super) fn covers(&self, path: &Path) -> bool {
        self.0.matches_names(&names(path).collect::<Vec<_>>())
    }
}

fn names(path: &Path) -> impl Iterator<Item = &[u8]> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.as_bytes()),
        _ => None,
    })
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
            ("secret?", "/r*t/secreté"),
            ("[a]**{b}\\*", "/r*t/[a]x{b}\\y"),
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
            ("secret??", "/r*t/secreté"),
            ("[a]*", "/r*t/a"),
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
