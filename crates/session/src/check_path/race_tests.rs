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
/// How long the naive check may take to be fooled.
const LONGEST: Duration = Duration::from_secs(60);

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
    let (mut allowed, mut refused) = (0_usize, 0_usize);
    battlefield.fight(
        || battlefield.swap(),
        || {
            for _ in 0..CHECKS {
                match check.check(Path::new("here/file")) {
                    Ok(checked) => {
                        let stat = rustix::fs::fstat(&checked.descriptor).unwrap();
                        assert_ne!((stat.st_dev, stat.st_ino), secret, "{checked:?}");
                        allowed += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
        },
    );
    assert!(allowed > 0 && refused > 0, "no race: {allowed} allowed, {refused} refused");

    let deadline = Instant::now() + LONGEST;
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
    let mut answers = std::collections::BTreeSet::new();
    battlefield.fight(
        || exchange(&root.join("here/deeper"), &outside.join("deeper")),
        || {
            for _ in 0..CHECKS {
                match check.check(Path::new("here/deeper/../file")) {
                    Ok(checked) => {
                        let stat = rustix::fs::fstat(&checked.descriptor).unwrap();
                        assert_ne!((stat.st_dev, stat.st_ino), secret, "{checked:?}");
                        answers.insert("allowed");
                    }
                    Err(refusal) => {
                        answers.insert(refusal.reason());
                    }
                }
            }
        },
    );
    assert!(answers.contains("allowed"), "{answers:?}");
}

/// Proves: FS-4 race, FS-4 denied-paths
#[test]
fn what_is_denied_can_not_be_reached_by_changing_places() {
    let battlefield = Battlefield::new();
    let root = battlefield.root();
    fs::create_dir(root.join("secrets")).unwrap();
    fs::write(root.join("secrets/file"), "secret").unwrap();
    let denied = fs::metadata(root.join("secrets/file")).unwrap().ino();
    let check = PathCheck::new(&root, ["secrets"]).unwrap();
    let (mut allowed, mut refused) = (0_usize, 0_usize);
    battlefield.fight(
        || exchange(&root.join("here"), &root.join("secrets")),
        || {
            for _ in 0..CHECKS / 5 {
                match check.check(Path::new("here/file")) {
                    Ok(checked) => {
                        let stat = rustix::fs::fstat(&checked.descriptor).unwrap();
                        assert_ne!(stat.st_ino, denied, "{checked:?}");
                        allowed += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
        },
    );
    assert!(allowed > 0 && refused > 0, "no race: {allowed} allowed, {refused} refused");
}
