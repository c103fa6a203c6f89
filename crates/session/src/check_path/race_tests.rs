//! An attacker changes the tree as fast as it can while paths are checked. Whatever the answer, a
//! descriptor that is handed out must be of something inside. The same loop with the check people
//! usually write, resolve first and open later, shows that the attacker is fast enough to win.

use super::PathCheck;
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, renameat_with};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const CHECKS: usize = 50_000;
/// How long the attacker, who has no CPU for a while on a busy machine, is given to make it a race.
const TIMEOUT: Duration = Duration::from_secs(60);

/// `root/here` is a directory with `file` in it, and `root/there` a link to `outside`, which has one
/// too.
struct Battlefield {
    directory: tempfile::TempDir,
}

impl Battlefield {
    fn new() -> Self {
        let battlefield = Self { directory: tempfile::tempdir().unwrap() };
        let (root, outside) = (battlefield.root(), battlefield.outside());
        fs::create_dir_all(root.join("here/deeper")).unwrap();
        fs::create_dir_all(outside.join("deeper")).unwrap();
        fs::write(root.join("here/file"), "inside").unwrap();
        fs::write(outside.join("file"), "secret").unwrap();
        symlink(&outside, root.join("there")).unwrap();
        battlefield
    }

    fn root(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join("root")
    }

    fn outside(&self) -> PathBuf {
        self.root().with_file_name("outside")
    }

    fn secret(&self) -> (u64, u64) {
        let secret = fs::metadata(self.outside().join("file")).unwrap();
        (secret.dev(), secret.ino())
    }

    /// Runs `defend` while another thread repeats `attack`.
    fn fight(&self, attack: impl Fn() + Send + Sync, defend: impl FnOnce()) {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let attacker = scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    attack();
                }
            });
            // The attacker must be told to stop even if the defence fails the test.
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(defend));
            over.store(true, Ordering::Relaxed);
            attacker.join().unwrap();
            if let Err(failure) = outcome {
                std::panic::resume_unwind(failure);
            }
        });
    }

    fn swap(&self) {
        let root = self.root();
        exchange(&root.join("here"), &root.join("there"));
    }
}

/// How the checks of a fight came out.
#[derive(Debug, Default)]
struct Outcomes {
    allowed: usize,
    refused: usize,
}

impl Outcomes {
    /// Checks as often as said, and on until both answers were given: before that it was no race.
    fn of(checks: usize, mut is_allowed: impl FnMut() -> bool) -> Self {
        let deadline = Instant::now() + TIMEOUT;
        let mut outcomes = Self::default();
        while outcomes.allowed + outcomes.refused < checks
            || !outcomes.are_of_a_race() && Instant::now() < deadline
        {
            let count = if is_allowed() { &mut outcomes.allowed } else { &mut outcomes.refused };
            *count += 1;
        }
        outcomes
    }

    fn are_of_a_race(&self) -> bool {
        self.allowed > 0 && self.refused > 0
    }
}

fn exchange(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

/// What people write: where does it lead, is that inside, then open it by name.
fn naive(root: &Path, path: &Path) -> Option<(u64, u64)> {
    let real = root.join(path).canonicalize().ok()?;
    if !real.starts_with(root) {
        return None;
    }
    let opened = rustix::fs::open(root.join(path), OFlags::PATH, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(opened).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

/// Proves: FS-4 race
#[test]
fn a_directory_and_a_link_that_change_places_never_lead_out() {
    let battlefield = Battlefield::new();
    let (root, secret) = (battlefield.root(), battlefield.secret());
    let check = PathCheck::new(&root, [""; 0]).unwrap();
    let never_leads_out = || {
        let Ok(checked) = check.check(Path::new("here/file")) else { return false };
        let stat = rustix::fs::fstat(&checked.descriptor).unwrap();
        assert_ne!((stat.st_dev, stat.st_ino), secret, "{checked:?}");
        true
    };
    let mut outcomes = Outcomes::default();
    battlefield.fight(|| battlefield.swap(), || outcomes = Outcomes::of(CHECKS, never_leads_out));
    assert!(outcomes.are_of_a_race(), "{outcomes:?}");

    let deadline = Instant::now() + TIMEOUT;
    let mut fooled = false;
    battlefield.fight(
        || battlefield.swap(),
        || {
            while !fooled && Instant::now() < deadline {
                fooled = naive(&root, Path::new("here/file")) == Some(secret);
            }
        },
    );
    assert!(fooled, "the attacker is too slow to prove anything");
}

/// F09: `..` from a directory that is carried out of the root while the path is walked.
/// Proves: FS-4 race, FS-4 traversal
#[test]
fn a_directory_carried_out_takes_no_path_with_it() {
    let battlefield = Battlefield::new();
    let (root, outside, secret) = (battlefield.root(), battlefield.outside(), battlefield.secret());
    let check = PathCheck::new(&root, [""; 0]).unwrap();
    let mut allowed = 0_usize;
    battlefield.fight(
        || exchange(&root.join("here/deeper"), &outside.join("deeper")),
        || {
            for _ in 0..CHECKS {
                let Ok(checked) = check.check(Path::new("here/deeper/../file")) else { continue };
                let stat = rustix::fs::fstat(&checked.descriptor).unwrap();
                assert_ne!((stat.st_dev, stat.st_ino), secret, "{checked:?}");
                allowed += 1;
            }
        },
    );
    assert!(allowed > 0, "nothing was allowed");
}

/// Proves: FS-4 race, FS-4 denied-paths
#[test]
fn what_is_denied_cannot_be_reached_by_changing_places() {
    let battlefield = Battlefield::new();
    let root = battlefield.root();
    fs::create_dir(root.join("secrets")).unwrap();
    fs::write(root.join("secrets/file"), "secret").unwrap();
    let denied = fs::metadata(root.join("secrets/file")).unwrap().ino();
    let check = PathCheck::new(&root, ["secrets"]).unwrap();
    let is_never_denied = || {
        let Ok(checked) = check.check(Path::new("here/file")) else { return false };
        let stat = rustix::fs::fstat(&checked.descriptor).unwrap();
        assert_ne!(stat.st_ino, denied, "{checked:?}");
        true
    };
    let mut outcomes = Outcomes::default();
    battlefield.fight(
        || exchange(&root.join("here"), &root.join("secrets")),
        || outcomes = Outcomes::of(CHECKS / 5, is_never_denied),
    );
    assert!(outcomes.are_of_a_race(), "{outcomes:?}");
}
