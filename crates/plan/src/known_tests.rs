use super::KnownTree;
use crate::facts::{DirEntry, EntryKind, HostTree};
use crate::fake::FakeTree;
use std::cell::Cell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Counts what is read.
struct Counting {
    tree: FakeTree,
    reads: Cell<usize>,
}

impl Counting {
    fn count<T>(&self, value: T) -> T {
        self.reads.set(self.reads.get() + 1);
        value
    }
}

impl HostTree for Counting {
    fn entry(&self, path: &Path) -> Option<DirEntry> {
        self.count(self.tree.entry(path))
    }

    fn read_link(&self, path: &Path) -> Option<PathBuf> {
        self.count(self.tree.read_link(path))
    }

    fn children(&self, path: &Path) -> Vec<(OsString, EntryKind)> {
        self.count(self.tree.children(path))
    }

    fn read_part(&self, path: &Path, offset: u64, length: usize) -> Option<Vec<u8>> {
        self.count(self.tree.read_part(path, offset, length))
    }

    fn is_same_file(&self, one: &Path, other: &Path) -> bool {
        self.count(self.tree.is_same_file(one, other))
    }
}

fn counting() -> Counting {
    let mut tree = FakeTree::new();
    tree.file("/srv/text", "0123456789");
    Counting { tree, reads: Cell::new(0) }
}

#[test]
fn nothing_is_read_twice() {
    let tree = counting();
    let known = KnownTree::new(&tree);
    for _ in 0..2 {
        assert_eq!(
            known.entry(Path::new("/bin")).map(|entry| entry.kind),
            Some(EntryKind::Symlink)
        );
        assert_eq!(known.entry(Path::new("/absent")).map(|entry| entry.kind), None);
        assert_eq!(known.read_link(Path::new("/bin")), Some("usr/bin".into()));
        assert_eq!(known.names(Path::new("/srv")).len(), 2);
    }
    assert_eq!(tree.reads.get(), 4);
}

#[test]
fn more_of_a_file_is_read_only_if_there_may_be_more() {
    let tree = counting();
    let known = KnownTree::new(&tree);
    let start = |length| known.read_start(Path::new("/srv/text"), length);
    let text = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!((start(4), tree.reads.get()), (text("0123"), 1));
    assert_eq!((start(3), tree.reads.get()), (text("012"), 1));
    assert_eq!((start(10), tree.reads.get()), (text("0123456789"), 2));
    assert_eq!((start(64), tree.reads.get()), (text("0123456789"), 3));
    assert_eq!((start(100), tree.reads.get()), (text("0123456789"), 3));
    assert_eq!((start(5), tree.reads.get()), (text("01234"), 3));
}
