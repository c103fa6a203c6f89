#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::time::Duration;

use palisade_sys::clone::CloneFlags;
use palisade_sys::mounts::{
    FsOption, MountAttrs, Recursion, make_private_recursive, move_mount, new_fs, open_tree,
};
use palisade_sys::test_child::{become_namespace_root, in_child};
use tempfile::TempDir;

use super::*;
use crate::stage::{MIB, as_ordinary_user};

fn tree() -> TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

fn count(paths: &[&Path]) -> DiskUse {
    let roots: Vec<Root> = paths.iter().map(|path| Root::open(path).unwrap()).collect();
    Walk::new(roots.len(), HashMap::new()).advance(&roots, None).unwrap().unwrap()
}

/// Proves: FS-6 space, FS-6 inodes
#[test]
fn every_file_counts_once_whatever_its_names() {
    let tree = tree();
    let empty = count(&[tree.path()]);
    fs::create_dir(tree.path().join("below")).unwrap();
    let file = tree.path().join("below/file");
    fs::write(&file, vec![1; 1 << 20]).unwrap();
    let once = count(&[tree.path()]);
    assert_eq!(once.inodes, empty.inodes + 2);
    assert!(once.bytes >= empty.bytes + (1 << 20));
    for name in ["another", "below/third"] {
        fs::hard_link(&file, tree.path().join(name)).unwrap();
    }
    assert_eq!(count(&[tree.path()]), once);
}

/// Proves: FS-6 space
#[test]
fn links_lead_nowhere() {
    let outside = tree();
    fs::write(outside.path().join("large"), vec![1; 4 << 20]).unwrap();
    let tree = tree();
    symlink(outside.path(), tree.path().join("directory")).unwrap();
    symlink(outside.path().join("large"), tree.path().join("file")).unwrap();
    symlink("..", tree.path().join("up")).unwrap();
    let held = count(&[tree.path()]);
    assert_eq!(held.inodes, 4);
    assert!(held.bytes < 1 << 20, "{held:?}");
    let link = tree.path().join("directory");
    assert!(Root::open(&link).is_err(), "a root is no link either");
}

/// Proves: FS-6 space
#[test]
fn space_is_what_is_allocated_not_what_is_named() {
    let tree = tree();
    let before = count(&[tree.path()]);
    fs::File::create(tree.path().join("sparse")).unwrap().set_len(1 << 30).unwrap();
    assert!(count(&[tree.path()]).bytes < before.bytes + (1 << 20));
    let file = fs::File::create(tree.path().join("allocated")).unwrap();
    let flags = rustix::fs::FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, flags, 0, 2 << 20).unwrap();
    assert!(count(&[tree.path()]).bytes >= before.bytes + (2 << 20));
    assert_eq!(file.metadata().unwrap().size(), 0);
}

/// Proves: FS-6 space
#[test]
fn a_walk_in_turns_counts_the_same() {
    let tree = tree();
    for number in 0..300 {
        let directory = tree.path().join(format!("{}", number % 7));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(number.to_string()), "x").unwrap();
    }
    let roots = [Root::open(tree.path()).unwrap()];
    let mut walk = Walk::new(1, HashMap::new());
    let mut turns = 0;
    let held = loop {
        turns += 1;
        if let Some(held) = walk.advance(&roots, Some(Instant::now())).unwrap() {
            break held;
        }
    };
    assert!(turns >= 9, "{turns} turns");
    assert_eq!(held, count(&[tree.path()]));
    assert_eq!(held.inodes, 1 + 7 + 300);
}

/// Proves: FS-6 space
#[test]
fn what_is_removed_during_the_walk_is_nothing() {
    let tree = tree();
    for number in 0..200 {
        fs::create_dir_all(tree.path().join(format!("{number}/below"))).unwrap();
    }
    let roots = [Root::open(tree.path()).unwrap()];
    let mut walk = Walk::new(1, HashMap::new());
    assert_eq!(walk.advance(&roots, Some(Instant::now())).unwrap(), None);
    for number in 0..200 {
        fs::remove_dir_all(tree.path().join(number.to_string())).unwrap();
    }
    assert!(walk.advance(&roots, None).unwrap().is_some());
    assert_eq!(count(&[tree.path()]).inodes, 1);
}

/// Proves: FS-6 space
#[test]
fn a_tree_that_vanished_is_an_error() {
    let tree = tree();
    let roots = [Root::open(tree.path()).unwrap()];
    fs::remove_dir(tree.path()).unwrap();
    let walked = Walk::new(1, HashMap::new()).advance(&roots, None);
    assert!(matches!(walked, Err(UsageError::Vanished(path)) if path == tree.path()));
}

/// Longer than any path may be, made step by step.
/// Proves: FS-6 space
#[test]
fn what_is_too_deep_to_count_is_an_error() {
    let tree = tree();
    let name = "d".repeat(250);
    let mut directory = fs::File::open(tree.path()).unwrap();
    for _ in 0..20 {
        rustix::fs::mkdirat(&directory, &name, rustix::fs::Mode::RWXU).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let next = rustix::fs::openat(&directory, &name, flags, rustix::fs::Mode::empty()).unwrap();
        directory = fs::File::from(next);
    }
    let roots = [Root::open(tree.path()).unwrap()];
    let walked = Walk::new(1, HashMap::new()).advance(&roots, None);
    assert!(matches!(walked, Err(UsageError::TooLarge(_))), "{walked:?}");
}

impl Walk {
    /// The directory it is at.
    pub(crate) fn is_listing(&self) -> Option<PathBuf> {
        let listing = self.listing.as_ref()?;
        Some(PathBuf::from(OsStr::from_bytes(&listing.place.path)))
    }
}

/// A path may have 4 KiB, and there may be many.
/// Proves: FS-6 space
#[test]
fn what_waits_to_be_listed_has_bounds() {
    let tree = tree();
    let name = "d".repeat(250);
    let mut directory = fs::File::open(tree.path()).unwrap();
    for _ in 0..15 {
        rustix::fs::mkdirat(&directory, &name, rustix::fs::Mode::RWXU).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let next = rustix::fs::openat(&directory, &name, flags, rustix::fs::Mode::empty()).unwrap();
        directory = fs::File::from(next);
    }
    let roots = [Root::open(tree.path()).unwrap()];
    let fill = |from: usize, to: usize| {
        for number in from..to {
            let name = format!("{number:0200}");
            rustix::fs::mkdirat(&directory, name, rustix::fs::Mode::RWXU).unwrap();
        }
    };
    let fits = MAX_PENDING_BYTES / (15 * 251 + 200 + size_of::<PendingDirectory>());
    fill(0, fits);
    assert!(Walk::new(1, HashMap::new()).advance(&roots, None).unwrap().is_some());
    fill(fits, fits + 1);
    let walked = Walk::new(1, HashMap::new()).advance(&roots, None);
    assert!(matches!(walked, Err(UsageError::TooLarge(_))), "{walked:?}");
}

/// Proves: FS-6 space
#[test]
fn another_mount_is_another_tree() {
    let tree = tree();
    for name in ["directory", "below"] {
        fs::create_dir(tree.path().join(name)).unwrap();
    }
    fs::write(tree.path().join("file"), "x").unwrap();
    let outside = self::tree();
    fs::write(outside.path().join("large"), vec![1; 4 << 20]).unwrap();
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNS);
        make_private_recursive(Path::new("/")).unwrap();
        assert_eq!(count(&[tree.path()]).inodes, 4);
        let options = [FsOption::Text("size", "64m")];
        let mount = new_fs("tmpfs", &options, MountAttrs::NONE).unwrap();
        let at = tree.path().join("directory");
        move_mount(&mount, rustix::fs::CWD, &at).unwrap();
        fs::write(at.join("large"), vec![1; 4 << 20]).unwrap();
        assert_eq!(count(&[tree.path()]).inodes, 3);
        let mount =
            open_tree(rustix::fs::CWD, &outside.path().join("large"), Recursion::Single).unwrap();
        move_mount(&mount, rustix::fs::CWD, &tree.path().join("file")).unwrap();
        let held = count(&[tree.path()]);
        assert_eq!(held.inodes, 2);
        assert!(held.bytes < MIB, "{held:?}");
        assert_eq!(count(&[&at]).inodes, 2, "where a walk begins may be a mount");
    });
}

/// Who may write into a directory and took away the right to list it hides something there.
/// Proves: FS-6 space
#[test]
fn a_closed_directory_is_noticed_if_it_is_ours() {
    let tree = tree();
    let path = tree.path().to_owned();
    as_ordinary_user(&tree, move || {
        let closed = path.join("closed");
        fs::create_dir(&closed).unwrap();
        let roots = [Root::open(&path).unwrap()];
        for (mode, is_noticed) in [(0o000, true), (0o300, true), (0o700, false)] {
            fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).unwrap();
            let mut walk = Walk::new(1, HashMap::new());
            walk.advance(&roots, None).unwrap().unwrap();
            assert_eq!(walk.closed.is_some(), is_noticed, "{mode:o}");
        }
        fs::write(closed.join("file"), "x").unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o400)).unwrap();
        let mut walk = Walk::new(1, HashMap::new());
        walk.advance(&roots, None).unwrap().unwrap();
        assert_eq!(walk.closed, Some(closed.clone()));
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    });
}

fn change_time(path: &Path) -> SystemTime {
    let stat = fs::metadata(path).unwrap();
    let time =
        Duration::new(stat.ctime().unsigned_abs(), u32::try_from(stat.ctime_nsec()).unwrap());
    SystemTime::UNIX_EPOCH + time
}

/// Proves: FS-6 flat-start, FS-6 space
#[test]
fn what_changed_since_a_moment_is_told_from_what_was_there() {
    let tree = tree();
    let (old, grown, new) =
        (tree.path().join("old"), tree.path().join("grown"), tree.path().join("new"));
    fs::write(&old, vec![1; 1 << 20]).unwrap();
    fs::write(&grown, vec![1; 1 << 20]).unwrap();
    let since = change_time(&grown).max(change_time(tree.path())) + Duration::from_nanos(1);
    // The clock that files have their times from ticks slowly.
    while !fs::metadata(&new).is_ok_and(|new| new.created().unwrap() >= since) {
        let _ = fs::remove_file(&new);
        fs::write(&new, vec![1; 2 << 20]).unwrap();
    }
    while change_time(&grown) < since {
        fs::write(&grown, vec![1; 3 << 20]).unwrap();
    }
    let roots = [Root::open(tree.path()).unwrap()];
    let mut walk = Walk::since(1, since);
    let walked = walk.advance(&roots, None).unwrap().unwrap();
    assert_eq!(walked, count(&[tree.path()]));
    // The whole of both files, and the directory that the new one was made in.
    let directory = fs::metadata(tree.path()).unwrap().blocks() * BLOCK;
    assert_eq!(walk.changed(), DiskUse { bytes: 5 * MIB + directory, inodes: 1 });
}

/// Otherwise a command could have what was there counted twice, and fill as much in its place.
/// Proves: FS-6 flat-start, FS-6 space
#[test]
fn what_is_moved_ahead_of_the_first_walk_counts_once() {
    let cases = ["directory", "directory/file"].into_iter().flat_map(|moved| {
        ["a/x", "b/x", "c/x"]
            .into_iter()
            .flat_map(move |to| (0..14).map(move |entries| (moved, to, entries)))
    });
    for (moved, to, entries) in cases {
        let tree = tree();
        for name in ["directory", "a", "b", "c"] {
            fs::create_dir(tree.path().join(name)).unwrap();
            fs::write(tree.path().join(name).join("file"), vec![1; 64 << 10]).unwrap();
        }
        let whole = count(&[tree.path()]);
        let roots = [Root::open(tree.path()).unwrap()];
        let mut walk = Walk::since(1, SystemTime::UNIX_EPOCH);
        assert_eq!(walk.advance_entries(&roots, entries).unwrap(), None);
        fs::rename(tree.path().join(moved), tree.path().join(to)).unwrap();
        let walked = walk.advance(&roots, None).unwrap().unwrap();
        let is_once = walked.bytes <= whole.bytes && walked.inodes <= whole.inodes;
        assert!(is_once, "{moved} to {to} after {entries} entries: {walked:?} of {whole:?}");
    }
}
