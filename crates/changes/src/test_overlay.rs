//! Real overlays for tests: a project, upper layers on it, and commands that run in a user namespace where the overlay is
//! mounted, as a session would.

use crate::{ChangeSet, Layers, Timestamp, scan};
use palisade_sys::clone::CloneFlags;
use palisade_sys::test_child::{become_namespace_root, in_child};
use rustix::mount::{MountFlags, mount};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

pub(crate) struct TestOverlay {
    dir: tempfile::TempDir,
    /// Where the journal is, if it is on another file system.
    state_elsewhere: Option<tempfile::TempDir>,
    layers: usize,
}

impl TestOverlay {
    /// With a project that `prepare` fills.
    pub(crate) fn new(prepare: impl FnOnce(&Path)) -> Self {
        Self::within(&std::env::temp_dir(), prepare)
    }

    pub(crate) fn within(directory: &Path, prepare: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir_in(directory).unwrap();
        for name in ["project", "merged", "state"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        fs::set_permissions(dir.path().join("state"), fs::Permissions::from_mode(0o700)).unwrap();
        prepare(&dir.path().join("project"));
        let mut overlay = Self { dir, state_elsewhere: None, layers: 0 };
        overlay.add_layer();
        overlay
    }

    /// A checkpoint: later changes go to a layer of their own.
    pub(crate) fn add_layer(&mut self) {
        self.layers += 1;
        for part in ["upper", "work"] {
            fs::create_dir_all(self.layer().join(part)).unwrap();
        }
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub(crate) fn state(&self) -> PathBuf {
        match &self.state_elsewhere {
            Some(elsewhere) => elsewhere.path().to_owned(),
            None => self.dir.path().join("state"),
        }
    }

    /// With the journal on another file system than the project, which is in memory.
    pub(crate) fn with_state_elsewhere(mut self) -> Self {
        let elsewhere = tempfile::tempdir_in("/tmp").unwrap();
        let device = |path: &Path| fs::metadata(path).unwrap().dev();
        assert_ne!(device(elsewhere.path()), device(&self.project()));
        self.state_elsewhere = Some(elsewhere);
        self
    }

    /// A place beside the layers.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The newest.
    pub(crate) fn layer(&self) -> PathBuf {
        self.layer_number(self.layers)
    }

    fn layer_number(&self, number: usize) -> PathBuf {
        self.dir.path().join(format!("layer{number}"))
    }

    pub(crate) fn upper(&self) -> PathBuf {
        self.layer().join("upper")
    }

    /// Runs `body` as root of a user namespace, with the path where the overlay is mounted.
    pub(crate) fn session(&self, body: impl FnOnce(&Path)) {
        let merged = self.dir.path().join("merged");
        let mut lower = Vec::new();
        for number in (1..self.layers).rev() {
            lower.push(self.layer_number(number).join("upper"));
        }
        lower.push(self.project());
        let lower: Vec<String> = lower.iter().map(|path| path.display().to_string()).collect();
        let data = format!(
            "lowerdir={},upperdir={},workdir={},userxattr",
            lower.join(":"),
            self.upper().display(),
            self.layer().join("work").display()
        );
        in_child(|| {
            become_namespace_root(CloneFlags::NEWNS);
            let data = CString::new(data).unwrap();
            mount("overlay", &merged, "overlay", MountFlags::empty(), data.as_c_str()).unwrap();
            body(&merged);
        });
    }

    /// What a session sees, as text.
    pub(crate) fn shown(&self) -> String {
        let place = self.dir.path().join("shown");
        self.session(|root| fs::write(&place, format!("{:#?}", snapshot(root))).unwrap());
        fs::read_to_string(place).unwrap()
    }

    /// Makes one layer of two.
    pub(crate) fn fold_newest(&mut self) {
        let newest = self.layer();
        let upper = directory(&newest.join("upper"));
        self.layers -= 1;
        assert_eq!(self.layers, 1);
        let (older, below) = (directory(&self.upper()), directory(&self.project()));
        let below = crate::Below::Directory(below.as_fd());
        crate::fold(upper.as_fd(), older.as_fd(), below).unwrap();
        assert_eq!(fs::read_dir(newest.join("upper")).unwrap().count(), 0);
        crate::discard(directory(self.dir.path()).as_fd(), newest.file_name().unwrap()).unwrap();
    }

    pub(crate) fn layers(&self) -> Layers {
        let uppers: Vec<PathBuf> =
            (1..=self.layers).rev().map(|number| self.layer_number(number).join("upper")).collect();
        let uppers: Vec<&Path> = uppers.iter().map(PathBuf::as_path).collect();
        Layers::open(&self.project(), &uppers).unwrap()
    }

    /// From the layer of this number on, counted from 1.
    pub(crate) fn layers_since(&self, first: usize) -> Layers {
        let opened = |number| directory(&self.layer_number(number).join("upper"));
        let base = (1..first).rev().map(opened).collect();
        let fresh = (first..=self.layers).rev().map(opened).collect();
        Layers::between(directory(&self.project()), base, fresh)
    }

    /// As `git diff --name-status` would list them.
    pub(crate) fn statuses(&self) -> String {
        statuses(&scan(&self.layers()).unwrap())
    }

    /// A time after everything in the project so far and not after anything that follows.
    ///
    /// The clock of files stands still between two ticks, on a busy virtual machine for longer than one would sleep,
    /// and may be set back: whoever needs a later time asks until there is one.
    pub(crate) fn now(&self) -> Timestamp {
        let now = self.later_than(Some(newest_change(&self.project())));
        self.later_than(Some(now));
        now
    }

    /// Waits for a time after this one, and returns it.
    pub(crate) fn later_than(&self, time: Option<Timestamp>) -> Timestamp {
        let mark = self.dir.path().join("mark");
        loop {
            fs::write(&mark, "").unwrap();
            let now = last_change(&mark);
            if Some(now) > time {
                return now;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

fn last_change(path: &Path) -> Timestamp {
    let found = fs::symlink_metadata(path).unwrap();
    let nanoseconds = u32::try_from(found.ctime_nsec()).unwrap();
    Timestamp { seconds: found.ctime(), nanoseconds }
}

/// Of a tree. A directory that its owner cannot read counts by itself.
fn newest_change(path: &Path) -> Timestamp {
    let entries = fs::read_dir(path).into_iter().flatten();
    let inner = entries.map(|entry| entry.unwrap().path()).map(|path| {
        let is_directory = fs::symlink_metadata(&path).unwrap().is_dir();
        if is_directory { newest_change(&path) } else { last_change(&path) }
    });
    inner.fold(last_change(path), Timestamp::max)
}

/// As a session may leave directories that their owner cannot enter.
impl Drop for TestOverlay {
    fn drop(&mut self) {
        for entry in fs::read_dir(self.dir.path()).unwrap() {
            let name = entry.unwrap().file_name();
            crate::discard(directory(self.dir.path()).as_fd(), &name).unwrap();
        }
    }
}

pub(crate) fn statuses(set: &ChangeSet) -> String {
    let mut out = Vec::new();
    crate::write_name_status(set, &mut out).unwrap();
    String::from_utf8(out).unwrap().replace('\t', " ")
}

pub(crate) fn directory(path: &Path) -> OwnedFd {
    fs::File::open(path).unwrap().into()
}

/// Everything that must be the same in two equal trees.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Node {
    mode: u32,
    /// Of files.
    modified: (i64, i64),
    content: Vec<u8>,
    attributes: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The first name of the same file.
    first_name: PathBuf,
}

/// Short, since all of a tree is printed when a test fails.
impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { mode, modified, content, attributes, first_name } = self;
        let content = (content.len(), content.first());
        write!(f, "{mode:o} {modified:?} {content:?} {attributes:?} {first_name:?}")
    }
}

pub(crate) type Snapshot = BTreeMap<PathBuf, Node>;

/// Names, types, permissions, contents, targets, times of files, attributes and hard links.
pub(crate) fn snapshot(root: &Path) -> Snapshot {
    let mut nodes = Snapshot::new();
    let mut first_names = BTreeMap::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(below) = waiting.pop() {
        let mut names: Vec<_> = fs::read_dir(root.join(&below))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        for name in names {
            let path = below.join(name);
            let full = root.join(&path);
            let found = fs::symlink_metadata(&full).unwrap();
            let mut node = Node {
                mode: found.mode(),
                modified: (0, 0),
                content: Vec::new(),
                attributes: BTreeMap::new(),
                first_name: PathBuf::new(),
            };
            if found.is_dir() {
                waiting.push(path.clone());
            } else if found.is_symlink() {
                node.content = fs::read_link(&full).unwrap().as_os_str().as_bytes().to_vec();
            } else if found.is_file() {
                node.content = fs::read(&full).unwrap();
                node.modified = (found.mtime(), found.mtime_nsec());
                let file = fs::File::open(&full).unwrap();
                node.attributes = crate::attributes::user_attributes(&file, &full).unwrap();
            }
            nodes.insert(path.clone(), node);
            if found.is_file() {
                first_names.entry((found.dev(), found.ino())).or_insert_with(Vec::new).push(path);
            }
        }
    }
    for mut names in first_names.into_values() {
        names.sort();
        for name in &names {
            nodes.get_mut(name).unwrap().first_name = names[0].clone();
        }
    }
    nodes
}

/// What is not the same in two trees.
pub(crate) fn differences(one: &Snapshot, other: &Snapshot) -> Vec<String> {
    let paths: std::collections::BTreeSet<&PathBuf> = one.keys().chain(other.keys()).collect();
    let differ = |path: &&&PathBuf| one.get(**path) != other.get(**path);
    let text = |path: &PathBuf| format!("{path:?}: {:?} / {:?}", one.get(path), other.get(path));
    paths.iter().filter(differ).map(|path| text(path)).collect()
}

/// For trees that were made at different moments.
pub(crate) fn without_times(nodes: &Snapshot) -> Snapshot {
    let timeless = |node: &Node| Node { modified: (0, 0), ..node.clone() };
    nodes.iter().map(|(path, node)| (path.clone(), timeless(node))).collect()
}

/// For trees in an overlay: it shows other inodes for the names of a file that it copied up while it is mounted.
pub(crate) fn without_links(nodes: &Snapshot) -> Snapshot {
    let alone = |node: &Node| Node { first_name: PathBuf::new(), ..node.clone() };
    nodes.iter().map(|(path, node)| (path.clone(), alone(node))).collect()
}
