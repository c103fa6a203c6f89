//! Directories of the private home in which the command has files of its own. They are the command's: a grant of one of them,
//! or of a directory above it, would hide its files behind those of the host, and a process that is in the directory would
//! still find them.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// So many are told apart.
const MAX_DIRECTORIES: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct PrivateDirectories {
    known: BTreeSet<PathBuf>,
    /// What holds all those that found no room. Nothing in it is known to be free of files of the command's.
    beyond: Option<PathBuf>,
}

impl PrivateDirectories {
    /// Gives the directory in which all count as private from now on, if there is no room for another.
    pub(super) fn insert(&mut self, directory: &Path) -> Option<&Path> {
        if self.known.contains(directory) {
            return None;
        }
        if self.known.len() < MAX_DIRECTORIES {
            self.known.insert(directory.to_owned());
            return None;
        }
        let beyond = self.beyond.get_or_insert_with(|| directory.to_owned());
        while !directory.starts_with(&*beyond) && beyond.pop() {}
        self.beyond.as_deref()
    }

    /// Whether a grant of this directory would hide files of the command's.
    pub(super) fn are_within(&self, directory: &Path) -> bool {
        // In the order of a set, what is below a directory follows it.
        let from_it = (Bound::Included(directory), Bound::Unbounded);
        let first = self.known.range::<Path, _>(from_it).next();
        let is_beyond =
            |beyond: &PathBuf| beyond.starts_with(directory) || directory.starts_with(beyond);
        first.is_some_and(|first| first.starts_with(directory))
            || self.beyond.as_ref().is_some_and(is_beyond)
    }

    /// Nothing is there any more.
    pub(super) fn remove_below(&mut self, path: &Path) {
        if self.are_within(path) {
            self.known.retain(|directory| !directory.starts_with(path));
            self.beyond.take_if(|beyond| beyond.starts_with(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_private_with_all_that_hold_it_until_it_is_removed() {
        let mut private = PrivateDirectories::default();
        for directory in ["/h/work-2", "/h/work/deep", "/h/work.old"] {
            assert_eq!(private.insert(Path::new(directory)), None);
        }
        let are_within =
            |private: &PrivateDirectories, path: &str| private.are_within(Path::new(path));
        for path in ["/h", "/h/work", "/h/work/deep", "/h/work-2"] {
            assert!(are_within(&private, path), "{path}");
        }
        for path in ["/h/wor", "/h/work/deep/er", "/h/work/dee", "/h/work/other", "/i"] {
            assert!(!are_within(&private, path), "{path}");
        }
        private.remove_below(Path::new("/h/work"));
        assert!(!are_within(&private, "/h/work"));
        assert!(are_within(&private, "/h/work-2") && are_within(&private, "/h/work.old"));
    }

    #[test]
    fn beyond_the_bound_everything_around_counts_as_private() {
        let mut private = PrivateDirectories::default();
        for number in 0..MAX_DIRECTORIES {
            assert_eq!(private.insert(&Path::new("/h/many").join(number.to_string())), None);
        }
        assert_eq!(private.insert(Path::new("/h/many/1")), None, "it is known");
        assert_eq!(private.insert(Path::new("/h/a/b/c")), Some(Path::new("/h/a/b/c")));
        assert_eq!(private.insert(Path::new("/h/a/d")), Some(Path::new("/h/a")));
        for path in ["/h", "/h/a", "/h/a/b", "/h/a/e/f"] {
            assert!(private.are_within(Path::new(path)), "{path}");
        }
        assert!(!private.are_within(Path::new("/h/other")));
        private.remove_below(Path::new("/h/a"));
        assert!(!private.are_within(Path::new("/h/a/b")));
    }
}
