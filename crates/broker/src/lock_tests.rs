use super::*;
use rustix::fs::{Mode, OFlags};

/// Two brokers, each with its own open files of the same trees.
fn two(trees: &[&str]) -> (tempfile::TempDir, Locks, Locks) {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let files = trees.iter().map(|tree| {
            let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
            rustix::fs::open(dir.path().join(tree), flags, Mode::RWXU).unwrap()
        });
        let locks = trees.iter().enumerate();
        let locks = locks.map(|(number, tree)| TreeLock {
            tree: Path::new("/").join(tree),
            files: vec![number],
        });
        Locks::new(TreeLocks { files: files.collect(), trees: locks.collect() })
    };
    let (one, other) = (open(), open());
    (dir, one, other)
}

fn take(locks: &mut Locks, tree: &str, company: Company) -> Result<(), LockError> {
    match locks.missing_for(Some(Path::new(tree)), company) {
        Some(needed) => locks.take(needed),
        None => Ok(()),
    }
}

/// Proves: FS-9 no-waiting-for-others
#[test]
fn runs_that_share_no_tree_share_no_lock() {
    let (_dir, mut one, mut other) = two(&["a", "b"]);
    take(&mut one, "/a", Company::Alone).unwrap();
    let begun = Instant::now();
    take(&mut other, "/b", Company::Alone).unwrap();
    assert!(begun.elapsed() < SHORT_TIMEOUT);
}

/// Proves: FS-9 no-waiting-for-others
#[test]
fn nobody_waits_for_a_stopped_run_without_bound() {
    let (_dir, mut one, mut other) = two(&["a"]);
    take(&mut one, "/a", Company::Alone).unwrap();
    let begun = Instant::now();
    let busy = |is_first| Err(LockError::Busy { tree: "/a".into(), is_first });
    assert_eq!(take(&mut other, "/a", Company::Shared), busy(true));
    assert!((LOCK_TIMEOUT..2 * LOCK_TIMEOUT).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    let begun = Instant::now();
    assert_eq!(take(&mut other, "/a", Company::Shared), busy(false));
    assert!(begun.elapsed() < LOCK_TIMEOUT / 4, "the second call need not wait as long");
    one.release();
    take(&mut other, "/a", Company::Shared).unwrap();
}

#[test]
fn a_call_is_told_what_more_it_needs() {
    let (_dir, mut one, _other) = two(&["a", "b"]);
    assert_eq!(one.missing_for(None, Company::Alone), None, "where nothing is judged");
    assert_eq!(one.missing_for(Some(Path::new("/elsewhere")), Company::Alone), None);
    take(&mut one, "/a", Company::Shared).unwrap();
    assert_eq!(one.missing_for(Some(Path::new("/a")), Company::Shared), None);
    let alone = one.missing_for(Some(Path::new("/a")), Company::Alone).unwrap();
    assert_eq!(alone, Needed { files: vec![0], company: Company::Alone });
    let both = one.missing_for(Some(Path::new("/b")), Company::Shared).unwrap();
    assert_eq!(both, Needed { files: vec![0, 1], company: Company::Shared });
    one.take(both.clone()).unwrap();
    assert_eq!(one.missing_for(Some(Path::new("/b")), Company::Shared), None);
    one.release();
    let guess = Needed { files: vec![1], company: Company::Shared };
    assert_eq!(
        one.guess(Company::Shared),
        guess,
        "what the last call did not need is not taken again"
    );
}

/// Proves: FS-9 no-waiting-for-others
#[test]
fn calls_in_one_tree_go_side_by_side_and_renames_alone() {
    let (_dir, mut one, mut other) = two(&["a"]);
    take(&mut one, "/a", Company::Shared).unwrap();
    take(&mut other, "/a", Company::Shared).unwrap();
    other.release();
    other.patience = SHORT_TIMEOUT;
    assert!(take(&mut other, "/a", Company::Alone).is_err());
}
