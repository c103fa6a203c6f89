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

fn take(locks: &mut Locks, tree: &str, company: Company) -> Result<Turn, LockError> {
    let needed = locks.missing_for(Some(Path::new(tree)), company).unwrap();
    locks.take(needed, Company::Shared)
}

/// Proves: FS-9 no-waiting-for-others
#[test]
fn runs_that_share_no_tree_share_no_lock() {
    let (_dir, mut one, mut other) = two(&["a", "b"]);
    let _turn = take(&mut one, "/a", Company::Alone).unwrap();
    let begun = Instant::now();
    let _other = take(&mut other, "/b", Company::Alone).unwrap();
    assert!(begun.elapsed() < SHORT_TIMEOUT);
}

/// Proves: FS-9 no-waiting-for-others
#[test]
fn nobody_waits_for_a_stopped_run_without_bound() {
    let (_dir, mut one, mut other) = two(&["a"]);
    let turn = take(&mut one, "/a", Company::Alone).unwrap();
    let begun = Instant::now();
    let busy = |is_first| LockError::Busy { tree: "/a".into(), is_first };
    assert_eq!(take(&mut other, "/a", Company::Shared).unwrap_err(), busy(true));
    assert!((LOCK_TIMEOUT..2 * LOCK_TIMEOUT).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    let begun = Instant::now();
    assert_eq!(take(&mut other, "/a", Company::Shared).unwrap_err(), busy(false));
    assert!(begun.elapsed() < LOCK_TIMEOUT / 4, "the second call need not wait as long");
    one.release(turn);
    take(&mut other, "/a", Company::Shared).unwrap();
}

#[test]
fn a_call_is_told_what_more_it_needs() {
    let (_dir, mut one, _other) = two(&["a", "b"]);
    assert_eq!(one.missing_for(None, Company::Alone), None, "where nothing is judged");
    let elsewhere = Some(Path::new("/elsewhere"));
    assert_eq!(one.missing_for(elsewhere, Company::Shared), None, "no other run has it");
    let turn = Needed { files: vec![], company: Company::Alone };
    assert_eq!(one.missing_for(elsewhere, Company::Alone), Some(turn), "but other threads");
    let turn = take(&mut one, "/a", Company::Shared).unwrap();
    assert_eq!(one.missing_for(Some(Path::new("/a")), Company::Shared), None);
    let alone = one.missing_for(Some(Path::new("/a")), Company::Alone).unwrap();
    assert_eq!(alone, Needed { files: vec![0], company: Company::Alone });
    let both = one.missing_for(Some(Path::new("/b")), Company::Shared).unwrap();
    assert_eq!(both, Needed { files: vec![0, 1], company: Company::Shared });
    one.release(turn);
    let turn = one.take(both, Company::Shared).unwrap();
    assert_eq!(one.missing_for(Some(Path::new("/b")), Company::Shared), None);
    one.release(turn);
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
    let _turn = take(&mut one, "/a", Company::Shared).unwrap();
    let turn = take(&mut other, "/a", Company::Shared).unwrap();
    other.release(turn);
    other.broker.set_patience(SHORT_TIMEOUT);
    assert!(take(&mut other, "/a", Company::Alone).is_err());
}

/// Proves: FS-9 no-waiting-for-others
#[test]
fn threads_of_one_broker_go_side_by_side_and_renames_alone() {
    let (_dir, mut one, mut run) = two(&["a"]);
    let mut other = one.for_another_thread();
    let turn = take(&mut one, "/a", Company::Shared).unwrap();
    let second = take(&mut other, "/a", Company::Shared).unwrap();
    one.release(turn);
    run.broker.set_patience(SHORT_TIMEOUT);
    assert!(take(&mut run, "/a", Company::Alone).is_err(), "the second thread still holds it");
    assert!(one.broker.turns.try_write().is_err());
    other.release(second);
    let alone = take(&mut other, "/a", Company::Alone).unwrap();
    assert!(one.broker.turns.try_read().is_err(), "no other thread has a turn");
    run.broker.set_patience(SHORT_TIMEOUT);
    assert!(take(&mut run, "/a", Company::Shared).is_err());
    other.release(alone);
    take(&mut run, "/a", Company::Alone).unwrap();
}

/// Two threads that take turns hold it for as long as they like, were it not for this.
///
/// Proves: FS-9 no-waiting-for-others
#[test]
fn threads_that_take_turns_let_another_run_have_its_own() {
    let (_dir, one, mut run) = two(&["a"]);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let order = std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let mut locks = one.for_another_thread();
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(order) {
                    let turn = take(&mut locks, "/a", Company::Shared).unwrap();
                    let _ = proc::poll(&mut [], Some(Duration::from_micros(30)));
                    locks.release(turn);
                }
            });
        }
        for _ in 0..20 {
            let begun = Instant::now();
            let turn = take(&mut run, "/a", Company::Alone).unwrap();
            run.release(turn);
            assert!(begun.elapsed() < LOCK_TIMEOUT / 4, "{:?}", begun.elapsed());
        }
        is_over.store(true, order);
    });
}
