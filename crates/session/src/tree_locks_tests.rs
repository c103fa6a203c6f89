use super::*;
use std::fs;
use std::time::Instant;

struct Host(tempfile::TempDir);

impl Host {
    fn new(dirs: &[&str]) -> Self {
        let host = Self(tempfile::tempdir().unwrap());
        for dir in dirs {
            fs::create_dir_all(host.0.path().join(dir)).unwrap();
        }
        host
    }

    fn run(&self, trees: &[&str]) -> TreeLocks {
        let at = |tree: &&str| (Path::new("/inside").join(tree), self.0.path().join(tree));
        register_trees(&self.0.path().join("state"), trees.iter().map(at).collect()).unwrap()
    }

    fn files(&self) -> usize {
        fs::read_dir(self.0.path().join("state")).unwrap().count() - 1
    }
}

/// Whether a call of one run in a tree and a rename of the other in one of its trees exclude each other.
fn exclude(one: &TreeLocks, tree: &str, other: &TreeLocks, other_tree: &str) -> bool {
    const CALLS: i64 = 1;
    let files = |locks: &TreeLocks, tree: &str| {
        let tree = Path::new("/inside").join(tree);
        locks.trees.iter().find(|lock| lock.tree == tree).unwrap().files.clone()
    };
    let mut excluded = false;
    for file in files(one, tree) {
        assert_eq!(try_lock_byte(&one.files[file], CALLS, ByteLock::Shared), Ok(true));
    }
    for file in files(other, other_tree) {
        excluded |= try_lock_byte(&other.files[file], CALLS, ByteLock::Exclusive) == Ok(false);
    }
    for file in one.files.iter().chain(&other.files) {
        palisade_sys::lock::unlock_byte(file, CALLS).unwrap();
    }
    excluded
}

/// Proves: FS-9 no-waiting-for-others
#[test]
fn runs_in_different_projects_share_no_lock() {
    let host = Host::new(&["a", "b", "cache"]);
    let (one, other) = (host.run(&["a", "cache"]), host.run(&["b", "cache"]));
    assert!(!exclude(&one, "a", &other, "b"));
    assert!(!exclude(&one, "a", &other, "cache"));
    assert!(exclude(&one, "cache", &other, "cache"), "what they share they lock");
}

/// Proves: FS-9 no-waiting-for-others
#[test]
fn a_tree_in_another_excludes_it_whichever_run_came_first() {
    for [first, second] in [["a", "a/b"], ["a/b", "a"], ["a", "a"]] {
        let host = Host::new(&["a/b"]);
        let (one, other) = (host.run(&[first]), host.run(&[second]));
        assert!(exclude(&one, first, &other, second), "{first} {second}");
        assert!(exclude(&other, second, &one, first), "{second} {first}");
    }
}

#[test]
fn a_name_that_only_begins_alike_is_another_tree() {
    let host = Host::new(&["a", "ab"]);
    let (one, other) = (host.run(&["a"]), host.run(&["ab"]));
    assert!(!exclude(&one, "a", &other, "ab"));
}

#[test]
fn the_files_of_runs_that_are_over_go_once_there_are_many() {
    let many: Vec<String> = (0..MAX_KEPT_FILES).map(|number| number.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let host = Host::new(&[&many[..], &["a", "b"]].concat());
    let _one = host.run(&["a"]);
    drop(host.run(&["b"]));
    assert_eq!(host.files(), 2);
    drop(host.run(&["a"]));
    assert_eq!(host.files(), 2, "kept for the next run");
    drop(host.run(&many));
    drop(host.run(&["b"]));
    assert_eq!(host.files(), 2, "the tree that has a run, and the last one's");
}

#[test]
fn a_file_that_says_the_right_thing_is_not_written_again() {
    let host = Host::new(&["a", "b"]);
    drop(host.run(&["a"]));
    let written = || {
        let files = fs::read_dir(host.0.path().join("state")).unwrap().map(Result::unwrap);
        let lock = files.into_iter().find(|file| file.file_name() != REGISTRY).unwrap();
        let found = lock.metadata().unwrap();
        (found.mtime(), found.mtime_nsec(), fs::read(lock.path()).unwrap())
    };
    let before = written();
    drop(host.run(&["a"]));
    assert_eq!(written(), before);
    fs::rename(host.0.path().join("a"), host.0.path().join("c")).unwrap();
    drop(host.run(&["c"]));
    let moved = [host.0.path().join("c").as_os_str().as_bytes(), b"\0"].concat();
    assert_eq!(written().2, moved, "the same directory under another name");
}

#[test]
fn a_run_with_nested_trees_of_its_own_takes_each_lock_once() {
    let host = Host::new(&["a/b"]);
    let run = host.run(&["a", "a/b"]);
    assert_eq!(run.files.len(), 2);
    for lock in &run.trees {
        assert_eq!(lock.files, [0, 1], "{lock:?}");
    }
}

/// Proves: FS-9 no-waiting-for-others
#[test]
fn a_run_that_is_stopped_while_it_registers_stops_no_other_for_good() {
    let host = Host::new(&["a", "state"]);
    let registry = host.0.path().join("state").join(REGISTRY);
    let stopped = open(&registry).unwrap();
    assert_eq!(try_lock_byte(&stopped, 0, ByteLock::Exclusive), Ok(true));
    let begun = Instant::now();
    let refused = register_trees(&host.0.path().join("state"), Vec::new()).unwrap_err();
    assert!(refused.to_string().contains("EBUSY"), "{refused}");
    assert!(begun.elapsed() < 2 * REGISTRY_TIMEOUT);
}
