#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use palisade_sys::clone::CloneFlags;
use palisade_sys::mounts::{FsOption, MountAttrs, make_private_recursive, move_mount, new_fs};
use palisade_sys::test_child::{become_namespace_root, in_child};
use tempfile::TempDir;

use super::*;
use crate::stage::{Actor, MIB, as_ordinary_user};

fn tree() -> TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

fn places(trees: &[&Path]) -> DiskWatch {
    let trees: Vec<PathBuf> = trees.iter().map(|tree| tree.to_path_buf()).collect();
    DiskWatch::baseline(&trees).unwrap()
}

/// The next complete round, without waiting for when it is due.
fn round(places: &mut DiskWatch, mut tree: Option<&mut Tree>) -> Result<DiskUse, UsageError> {
    places.next_round = Instant::now();
    loop {
        if let Some(held) = places.step(Duration::from_millis(2), tree.as_deref_mut())? {
            return Ok(held);
        }
    }
}

/// Proves: FS-6 space, FS-6 gives-back, FS-6 inodes
#[test]
fn growth_counts_and_deleting_gives_back() {
    let tree = tree();
    fs::write(tree.path().join("before"), vec![1; 1 << 20]).unwrap();
    let mut places = places(&[tree.path()]);
    assert_eq!(round(&mut places, None).unwrap(), DiskUse::default());
    fs::write(tree.path().join("new"), vec![1; 3 << 20]).unwrap();
    assert_eq!(round(&mut places, None).unwrap(), DiskUse { bytes: 3 * MIB, inodes: 1 });
    fs::remove_file(tree.path().join("new")).unwrap();
    assert_eq!(round(&mut places, None).unwrap(), DiskUse::default());
    fs::remove_file(tree.path().join("before")).unwrap();
    fs::write(tree.path().join("instead"), vec![1; 2 << 20]).unwrap();
    assert_eq!(round(&mut places, None).unwrap(), DiskUse { bytes: MIB, inodes: 0 });
}

/// Proves: FS-6 space
#[test]
fn a_tree_inside_another_counts_once() {
    let tree = tree();
    let inner = tree.path().join("inner");
    fs::create_dir(&inner).unwrap();
    for order in [[tree.path(), &inner], [&inner, tree.path()], [tree.path(), tree.path()]] {
        let mut places = places(&order);
        let file = inner.join("file");
        fs::write(&file, vec![1; 1 << 20]).unwrap();
        assert_eq!(round(&mut places, None).unwrap(), DiskUse { bytes: MIB, inodes: 1 });
        fs::remove_file(file).unwrap();
    }
}

/// Proves: FS-6 space, FS-6 gives-back
#[test]
fn a_deleted_file_counts_while_it_is_open_and_once_when_it_gets_a_name() {
    let directory = tree();
    let mut places = places(&[directory.path()]);
    let path = directory.path().join("named");
    let mut actor = Actor::ready(&format!(
        "
file = os.open({:?}, os.O_TMPFILE | os.O_RDWR)
os.posix_fallocate(file, 0, 4 << 20)
ready()
at = b'/proc/self/fd/%d' % file
assert ctypes.CDLL(None).linkat(-100, at, -100, {path:?}.encode(), 0x400) == 0
ready()
os.unlink({path:?})
os.close(file)
ready()
",
        directory.path()
    ));
    let mut tree = Tree::new(actor.pid()).unwrap();
    tree.sample().unwrap();
    let whole = DiskUse { bytes: 4 * MIB, inodes: 1 };
    assert_eq!(round(&mut places, Some(&mut tree)).unwrap(), whole);
    let begun = places.begin_round(Some(&mut tree)).unwrap();
    actor.go_on();
    actor.await_ready();
    places.round = Some(begun);
    assert_eq!(round(&mut places, Some(&mut tree)).unwrap(), whole);
    assert_eq!(round(&mut places, Some(&mut tree)).unwrap(), whole);
    actor.go_on();
    actor.await_ready();
    assert_eq!(round(&mut places, Some(&mut tree)).unwrap(), DiskUse::default());
}

/// Proves: FS-6 space, FS-6 inodes, FS-6 gives-back
#[test]
fn a_tmpfs_answers_after_its_last_process_has_gone() {
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNS);
        make_private_recursive(Path::new("/")).unwrap();
        let options = [FsOption::Text("size", "64m"), FsOption::Text("nr_inodes", "1000")];
        let mount = new_fs("tmpfs", &options, MountAttrs::NONE).unwrap();
        move_mount(&mount, rustix::fs::CWD, Path::new("/mnt")).unwrap();
        let actor = Actor::ready("ready()");
        let mut places = DiskWatch::baseline(&[]).unwrap();
        places.add_tmpfs(actor.pid(), Path::new("/mnt")).unwrap();
        places.add_tmpfs(actor.pid(), Path::new("mnt")).unwrap();
        assert_eq!(round(&mut places, None).unwrap(), DiskUse { bytes: 0, inodes: 1 });
        fs::write("/mnt/file", vec![1; 5 << 20]).unwrap();
        assert_eq!(round(&mut places, None).unwrap(), DiskUse { bytes: 5 * MIB, inodes: 2 });
        drop(actor);
        palisade_sys::mounts::detach(Path::new("/mnt")).unwrap();
        assert_eq!(places.own_bytes().unwrap(), 5 * MIB);
        drop(mount);
        assert_eq!(places.own_bytes().unwrap(), 5 * MIB);
    });
}

/// Proves: FS-6 space
#[test]
fn rounds_leave_time_for_others() {
    assert_eq!(pause_after(Duration::from_millis(1)), Duration::from_millis(250));
    assert_eq!(pause_after(Duration::from_millis(30)), Duration::from_millis(600));
    assert_eq!(pause_after(Duration::from_millis(400)), Duration::from_secs(1));
    // Half a core for what takes longer to walk than the longest pause.
    assert_eq!(pause_after(Duration::from_secs(100)), Duration::from_secs(200));
    assert_eq!(early_pause_after(Duration::from_millis(1)), Duration::from_millis(100));
    assert_eq!(early_pause_after(Duration::from_millis(600)), Duration::from_millis(600));
    assert_eq!(early_pause_after(Duration::from_secs(100)), Duration::from_secs(1));
    let tree = tree();
    let mut places = places(&[tree.path()]);
    assert!(places.due_in(Instant::now()) > Duration::from_millis(100));
    assert_eq!(places.step(Duration::from_secs(1), None).unwrap(), None);
    assert!(places.round.is_none(), "a round began before it was due");
}

/// Proves: FS-6 space
#[test]
fn a_tree_that_vanished_is_told() {
    let tree = tree();
    let mut places = places(&[tree.path()]);
    drop(tree);
    assert!(matches!(round(&mut places, None), Err(UsageError::Vanished(_))));
    assert!(DiskWatch::baseline(&[PathBuf::from("/nonexistent/tree")]).is_err());
}

/// Proves: FS-6 space
#[test]
fn closing_a_directory_for_a_moment_gives_nothing_back() {
    let tree = tree();
    let path = tree.path().to_owned();
    as_ordinary_user(&tree, move || {
        let hidden = path.join("hidden");
        let mut places = places(&[&path]);
        fs::create_dir(&hidden).unwrap();
        fs::write(hidden.join("file"), vec![1; 1 << 20]).unwrap();
        let open = round(&mut places, None).unwrap();
        fs::set_permissions(&hidden, fs::Permissions::from_mode(0o000)).unwrap();
        assert_eq!(round(&mut places, None).unwrap(), open);
        let error = round(&mut places, None).unwrap_err();
        fs::set_permissions(&hidden, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(matches!(error, UsageError::Unreadable(path) if path == hidden));
    });
}

impl DiskWatch {
    pub(crate) fn postpone_rounds(&mut self) {
        self.next_round = Instant::now() + Duration::from_secs(3600);
    }

    /// Anew if one is under way.
    pub(crate) fn begin_next_round(&mut self, tree: &mut Tree) {
        self.round = Some(self.begin_round(Some(tree)).unwrap());
    }

    /// The directory that a round is at; `None` between rounds.
    pub(crate) fn is_listing(&self) -> Option<PathBuf> {
        self.round.as_ref().map(|round| round.walk.is_listing().unwrap_or_default())
    }

    /// In which order a walk comes to these.
    pub(crate) fn order_of_walk(&self, names: &[&str]) -> Vec<PathBuf> {
        let mut walk = Walk::new(self.roots.len(), HashMap::new());
        let mut order = Vec::new();
        while walk.advance(&self.roots, Some(Instant::now())).unwrap().is_none() {
            let at = walk.is_listing().unwrap_or_default();
            if !order.contains(&at) && names.iter().any(|name| Path::new(name) == at) {
                order.push(at);
            }
        }
        order
    }
}

/// Neither the start nor the end of a run waits for a tree without end.
/// Proves: FS-6 space
#[test]
fn the_first_and_the_last_walk_have_an_end() {
    let tree = tree();
    for number in 0..100 {
        fs::write(tree.path().join(number.to_string()), "x").unwrap();
    }
    let error = first_walk(
        &[Root::open(tree.path()).unwrap()],
        &Space::of_a_slow_kind(),
        0,
        Instant::now(),
    )
    .unwrap_err();
    assert!(matches!(&error, UsageError::TooLarge(path) if path == tree.path()), "{error}");
    let mut places = places(&[tree.path()]);
    fs::write(tree.path().join("new"), vec![1; 1 << 20]).unwrap();
    let known = round(&mut places, None).unwrap();
    assert_eq!(known, DiskUse { bytes: MIB, inodes: 1 });
    fs::remove_file(tree.path().join("new")).unwrap();
    assert_eq!(places.finish_within(Duration::ZERO).unwrap(), known);
    assert_eq!(places.finish().unwrap(), DiskUse::default());
}

/// Proves: FS-6 space
#[test]
fn who_cannot_be_looked_at_is_told() {
    let directory = tree();
    let path = directory.path().to_owned();
    as_ordinary_user(&directory, move || {
        let actor = Actor::ready(
            "
child(lambda: ctypes.CDLL(None).prctl(4, 0))
await_children(1)
ready()
",
        );
        let mut tree = Tree::new(actor.pid()).unwrap();
        tree.sample().unwrap();
        let mut places = places(&[&path]);
        assert_eq!(places.unseen(), Unseen::default());
        round(&mut places, Some(&mut tree)).unwrap();
        assert_eq!(places.unseen(), Unseen { processes: 1, files: 0 });
    });
}

/// A tree with more entries than are counted before a start, and whether it is on a file system that tells
/// of its free space at once.
fn large_tree() -> (TempDir, bool) {
    let tree = tree();
    for directory in 0..20 {
        let directory = tree.path().join(directory.to_string());
        fs::create_dir(&directory).unwrap();
        for file in 0..100 {
            fs::write(directory.join(file.to_string()), "x").unwrap();
        }
    }
    let roots = [Root::open(tree.path()).unwrap()];
    let is_prompt = Space::baseline(&roots).unwrap().is_prompt();
    (tree, is_prompt)
}

fn is_known(places: &DiskWatch) -> bool {
    matches!(places.baseline, Baseline::Known(_))
}

/// Proves: FS-6 flat-start
#[test]
fn a_start_waits_for_a_few_entries_only() {
    let (large, is_prompt) = large_tree();
    let small = tree();
    assert!(is_known(&places(&[small.path()])));
    assert_eq!(is_known(&places(&[large.path()])), !is_prompt);
}

/// Proves: FS-6 flat-start, FS-6 space, FS-6 gives-back
#[test]
fn growth_counts_the_same_when_the_first_walk_ends_after_the_start() {
    let (tree, _) = large_tree();
    let mut places = places(&[tree.path()]);
    while !is_known(&places) {
        places.step(Duration::from_micros(50), None).unwrap();
    }
    let before = round(&mut places, None).unwrap();
    fs::write(tree.path().join("new"), vec![1; 3 << 20]).unwrap();
    let after = round(&mut places, None).unwrap();
    assert_eq!(after.minus(before), DiskUse { bytes: 3 * MIB, inodes: 1 });
    fs::remove_file(tree.path().join("new")).unwrap();
    assert_eq!(round(&mut places, None).unwrap(), before);
}

/// Nobody waits at the end for what nobody waited for at the start.
#[test]
fn the_end_of_a_short_run_does_not_wait_for_the_first_walk() {
    let (tree, is_prompt) = large_tree();
    let mut places = places(&[tree.path()]);
    assert_eq!(places.finish().unwrap(), DiskUse::default());
    assert_eq!(is_known(&places), !is_prompt);
}
