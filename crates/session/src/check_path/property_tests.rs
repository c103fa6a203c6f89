//! Generated trees and paths, against a resolver that works on a plain map and so can be read at
//! once, and against what the C library's realpath says of the real tree.

use super::{PathCheck, Refusal, walk};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Component, Path, PathBuf};

#[derive(Clone, Debug)]
enum Node {
    Directory,
    File,
    /// Relative as it stands, or with the root's name in front.
    Link {
        target: PathBuf,
        absolute: bool,
    },
    /// Another name of the first file made.
    HardLink,
}

/// Few names, so that paths meet what is there; all made in the given order, if they can be.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "d"]).prop_map(str::to_owned)
}

fn wild_path() -> impl Strategy<Value = PathBuf> {
    let part = prop_oneof![5 => name(), 2 => Just("..".to_owned()), 1 => Just(".".to_owned())];
    prop::collection::vec(part, 1..6).prop_map(|parts| parts.iter().collect())
}

fn node() -> impl Strategy<Value = Node> {
    prop_oneof![
        3 => Just(Node::Directory),
        2 => Just(Node::File),
        3 => (wild_path(), any::<bool>()).prop_map(|(target, absolute)| Node::Link { target, absolute }),
        1 => Just(Node::HardLink),
    ]
}

fn tree() -> impl Strategy<Value = Vec<(PathBuf, Node)>> {
    let place =
        prop::collection::vec(name(), 1..4).prop_map(|parts| parts.iter().collect::<PathBuf>());
    prop::collection::vec((place, node()), 0..14)
}

/// The tree on disk and as a map. Keys are relative to the root, whose own key is empty.
struct Made {
    directory: tempfile::TempDir,
    nodes: BTreeMap<PathBuf, Node>,
}

impl Made {
    fn new(wanted: &[(PathBuf, Node)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut made = Self { directory, nodes: BTreeMap::new() };
        let root = made.root();
        for place in [root.clone(), root.with_file_name("a"), root.with_file_name("b")] {
            fs::create_dir(place).unwrap();
        }
        made.nodes.insert(PathBuf::new(), Node::Directory);
        let mut first_file = None;
        for (path, node) in wanted {
            for parent in path.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
                if !made.nodes.contains_key(parent) && made.is_directory(parent.parent()) {
                    fs::create_dir(root.join(parent)).unwrap();
                    made.nodes.insert(parent.to_owned(), Node::Directory);
                }
            }
            if made.nodes.contains_key(path) || !made.is_directory(path.parent()) {
                continue;
            }
            let place = root.join(path);
            match (node, &first_file) {
                (Node::Directory, _) => fs::create_dir(&place).unwrap(),
                (Node::HardLink, Some(first)) => fs::hard_link(first, &place).unwrap(),
                (Node::File | Node::HardLink, _) => fs::write(&place, "").unwrap(),
                (Node::Link { target, absolute: true }, _) => {
                    symlink(root.join(target), &place).unwrap();
                }
                (Node::Link { target, .. }, _) => symlink(target, &place).unwrap(),
            }
            if matches!(node, Node::File | Node::HardLink) {
                first_file.get_or_insert(place);
            }
            made.nodes.insert(path.clone(), node.clone());
        }
        made
    }

    fn root(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join("root")
    }

    fn is_directory(&self, path: Option<&Path>) -> bool {
        path.is_some_and(|path| matches!(self.nodes.get(path), Some(Node::Directory)))
    }

    /// Where the path leads: a key of the map, or what a missing thing would be called.
    /// `None` if it leads out, through a file, or round and round.
    fn resolve(&self, at: PathBuf, path: &Path, links_left: u32) -> Option<PathBuf> {
        let mut at = at;
        let mut missing = false;
        for component in path.components() {
            if !missing && !self.is_directory(Some(&at)) {
                return None;
            }
            match component {
                Component::CurDir => {}
                Component::ParentDir if missing || at.as_os_str().is_empty() => return None,
                Component::ParentDir => {
                    at.pop();
                }
                Component::Normal(name) => {
                    let next = at.join(name);
                    match self.nodes.get(&next) {
                        Some(Node::Link { target, absolute }) if !missing => {
                            let from = if *absolute { PathBuf::new() } else { at };
                            at = self.resolve(from, target, links_left.checked_sub(1)?)?;
                            missing = !self.nodes.contains_key(&at);
                        }
                        Some(_) if !missing => at = next,
                        _ => {
                            missing = true;
                            at = next;
                        }
                    }
                }
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(at)
    }

    /// Everything there is, with its inode.
    fn listing(&self) -> BTreeSet<(PathBuf, u64)> {
        let mut found = BTreeSet::new();
        let mut ahead = vec![self.directory.path().to_owned()];
        while let Some(directory) = ahead.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let metadata = path.symlink_metadata().unwrap();
                if metadata.is_dir() {
                    ahead.push(path.clone());
                }
                found.insert((path, metadata.ino()));
            }
        }
        found
    }
}

/// `..` by letters would climb out, which is refused before the tree is looked at.
fn climbs(path: &Path) -> bool {
    let mut depth = 0;
    path.components().any(|component| {
        depth += match component {
            Component::ParentDir => -1,
            Component::Normal(_) => 1,
            _ => 0,
        };
        depth < 0
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves: FS-4 links, FS-4 traversal
    #[test]
    fn the_answer_is_that_of_the_plain_map(wanted in tree(), paths in prop::collection::vec(wild_path(), 1..12)) {
        let made = Made::new(&wanted);
        let root = made.root();
        let before = made.listing();
        let check = PathCheck::new(&root, [""; 0]).unwrap();
        for path in paths {
            let expected = made.resolve(PathBuf::new(), &path, 40).filter(|_| !climbs(&path));
            for typed in [path.clone(), root.join(&path)] {
                let by_kernel = check.check(&typed);
                let by_hand = check.check_with(&typed, walk::by_hand);
                for answer in [&by_kernel, &by_hand] {
                    match (answer, &expected) {
                        (Ok(checked), Some(expected)) => {
                            prop_assert_eq!(&checked.real_path, &joined(&root, expected));
                            let real = walk::real_path(&checked.descriptor).unwrap();
                            prop_assert!(real.starts_with(&root), "{:?}", real);
                            prop_assert_eq!(joined(&real, &checked.missing), joined(&root, expected));
                            let exists = made.nodes.contains_key(expected);
                            prop_assert_eq!(checked.missing.as_os_str().is_empty(), exists);
                            // Realpath takes no `.` behind a file; here it is normalised away.
                            if let Ok(real) = root.join(&path).canonicalize() {
                                prop_assert_eq!(&real, &checked.real_path);
                            }
                        }
                        (Err(_), None) => {}
                        (answer, expected) => {
                            prop_assert!(false, "{path:?}: {answer:?}, expected {expected:?}");
                        }
                    }
                }
            }
        }
        prop_assert_eq!(made.listing(), before);
    }

    /// Proves: FS-4 denied-paths
    #[test]
    fn nothing_denied_is_reached_and_nothing_else_is_denied(
        wanted in tree(),
        denied in wild_path(),
        paths in prop::collection::vec(wild_path(), 1..12),
    ) {
        let made = Made::new(&wanted);
        let root = made.root();
        let plain = PathCheck::new(&root, [""; 0]).unwrap();
        let check = PathCheck::new(&root, [&denied]).unwrap();
        let named = without_dots(&root, &denied);
        let real_denied = named.canonicalize().ok();
        let below = named.strip_prefix(&root).ok();
        let missing_denied = below
            .and_then(|below| made.resolve(PathBuf::new(), below, 40))
            .map(|below| joined(&root, &below));
        let inodes: BTreeSet<u64> = made
            .listing()
            .into_iter()
            .filter(|(path, _)| real_denied.as_ref().is_some_and(|denied| path.starts_with(denied)))
            .map(|(_, inode)| inode)
            .collect();
        for path in paths {
            let Ok(without) = plain.check(&path) else { continue };
            let real = &without.real_path;
            let name = without_dots(&root, &path);
            let by_name = [Some(&named), real_denied.as_ref(), missing_denied.as_ref()]
                .into_iter()
                .flatten()
                .any(|denied| real.starts_with(denied) || name.starts_with(denied));
            let by_inode = fs::metadata(real).is_ok_and(|found| inodes.contains(&found.ino()));
            match check.check(&path) {
                Ok(checked) => {
                    prop_assert!(!by_name && !by_inode, "{checked:?} is denied by {denied:?}");
                }
                Err(Refusal::Denied { .. }) => {
                    prop_assert!(by_name || by_inode, "{path:?} is not denied by {denied:?}");
                }
                Err(other) => prop_assert!(false, "{path:?}: {other}"),
            }
        }
    }
}

fn joined(one: &Path, other: &Path) -> PathBuf {
    if other.as_os_str().is_empty() { one.to_owned() } else { one.join(other) }
}

fn without_dots(root: &Path, path: &Path) -> PathBuf {
    let mut result = root.to_owned();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                result.pop();
            }
            Component::Normal(name) => result.push(name),
            _ => {}
        }
    }
    result
}
