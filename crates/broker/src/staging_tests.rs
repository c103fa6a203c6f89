use super::*;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::sync::Mutex;
use tempfile::TempDir;

const HARMLESS: &str = "[core]\n\tbare = false\n";
const NAMED: &str = "[user]\n\tname = Test\n";
const EVIL: &str = "[core]\n\tfsmonitor = evil-program\n";

/// A watch is set from a working directory, which threads share.
pub(crate) static WORKING_DIRECTORY: Mutex<()> = Mutex::new(());

/// A git directory with a configuration, and the staging files of a broker.
struct Fixture {
    dir: TempDir,
    proc: OwnedFd,
    staged: StagedConfigs,
}

impl Fixture {
    fn with(config: &str) -> Self {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("config"), config).unwrap();
        let proc = openat(rustix::fs::CWD, "/proc", DIRECTORY, NO_MODE).unwrap();
        Self { dir, proc, staged: StagedConfigs::default() }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("config")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }

    fn try_open(&mut self, flags: OFlags) -> Result<File, Errno> {
        let _alone = WORKING_DIRECTORY.lock().unwrap();
        let dir = openat(rustix::fs::CWD, self.dir.path(), DIRECTORY, NO_MODE).unwrap();
        let place = (dir.as_fd(), OsStr::new("config"));
        let writer = || Writer { pid: 1, executable: Vec::new() };
        self.staged.open(&self.proc, place, flags, writer).map(File::from)
    }

    fn open(&mut self, flags: OFlags) -> File {
        self.try_open(flags).unwrap()
    }

    /// As `config_calls.rs` does it; how many were refused.
    fn settle(&mut self) -> usize {
        let place = git::setting(self.dir.path(), self.dir.path());
        let mut refused = 0;
        if self.staged.hear() {
            for staged in self.staged.closed() {
                refused += usize::from(staged.commit(&place).is_err());
            }
        }
        self.staged.forget_unwritten();
        refused
    }
}

const APPEND: OFlags = OFlags::WRONLY.union(OFlags::APPEND);
const ANEW: OFlags = OFlags::WRONLY.union(OFlags::TRUNC);

/// Proves: FS-9 git-in-place
#[test]
fn what_is_written_stands_in_place_when_it_is_closed() {
    for (flags, expected) in [(APPEND, format!("{HARMLESS}{NAMED}")), (ANEW, NAMED.to_owned())] {
        let mut scene = Fixture::with(HARMLESS);
        let mut file = scene.open(flags);
        file.write_all(NAMED.as_bytes()).unwrap();
        assert_eq!((scene.settle(), scene.text().as_str()), (0, HARMLESS), "it is still open");
        drop(file);
        assert_eq!((scene.settle(), scene.text()), (0, expected));
        assert!(scene.staged.is_empty());
        assert_eq!(fs::read_dir(scene.dir.path()).unwrap().count(), 1, "nothing else is left");
    }
}

/// Proves: FS-9 git-in-place
#[test]
fn what_is_closed_after_the_last_event_was_heard_is_not_forgotten() {
    let mut scene = Fixture::with(HARMLESS);
    let mut file = scene.open(APPEND);
    file.write_all(NAMED.as_bytes()).unwrap();
    assert!(!scene.staged.hear());
    drop(file);
    scene.staged.forget_unwritten();
    assert_eq!((scene.settle(), scene.text()), (0, format!("{HARMLESS}{NAMED}")));
    // The same for what was judged before.
    let (first, mut second) = (scene.open(APPEND), scene.open(APPEND));
    drop(first);
    assert_eq!(scene.settle(), 0);
    second.write_all(NAMED.as_bytes()).unwrap();
    drop(second);
    scene.staged.forget_unwritten();
    assert_eq!((scene.settle(), scene.text()), (0, format!("{HARMLESS}{NAMED}{NAMED}")));
    assert!(scene.staged.is_empty());
}

/// Proves: FS-9 git-in-place
#[test]
fn a_staging_file_reads_and_writes_like_the_file_it_stands_for() {
    let mut scene = Fixture::with(HARMLESS);
    let mut file = scene.open(OFlags::RDWR);
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, HARMLESS);
    // Another one that has it open sees what is written, and a part can be overwritten.
    let mut other = scene.open(OFlags::RDWR);
    file.rewind().unwrap();
    file.write_all(b"[CORE]").unwrap();
    text.clear();
    other.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("[CORE]"), "{text}");
    other.set_len(7).unwrap();
    drop(file);
    assert_eq!((scene.settle(), scene.text().as_str()), (0, "[CORE]\n"));
    other.rewind().unwrap();
    other.write_all(NAMED.as_bytes()).unwrap();
    drop(other);
    assert_eq!((scene.settle(), scene.text().as_str()), (0, NAMED));
}

/// Proves: FS-9 git-in-place, FS-9 git-keys
#[test]
fn what_is_refused_is_not_put_in_place_and_told_once() {
    let mut scene = Fixture::with(HARMLESS);
    let mut file = scene.open(APPEND);
    file.write_all(EVIL.as_bytes()).unwrap();
    drop(file);
    assert_eq!((scene.settle(), scene.text().as_str()), (1, HARMLESS));
    scene.staged.close_all();
    assert_eq!(scene.settle(), 0);
    assert!(scene.staged.is_empty());
    // What comes next starts from what is in place.
    scene.open(APPEND).write_all(NAMED.as_bytes()).unwrap();
    assert_eq!((scene.settle(), scene.text()), (0, format!("{HARMLESS}{NAMED}")));
}

/// A duplicate, or the descriptor of a child, keeps the file open; another open file does not.
///
/// Proves: FS-9 git-in-place
#[test]
fn nothing_is_judged_before_the_last_duplicate_is_closed() {
    let mut scene = Fixture::with(HARMLESS);
    let mut file = scene.open(ANEW);
    let mut kept = file.try_clone().unwrap();
    file.write_all(NAMED.as_bytes()).unwrap();
    drop(file);
    assert_eq!((scene.settle(), scene.text().as_str()), (0, HARMLESS));
    kept.write_all(EVIL.as_bytes()).unwrap();
    drop(kept);
    assert_eq!((scene.settle(), scene.text().as_str()), (1, HARMLESS));
}

/// Proves: FS-9 git-in-place
#[test]
fn a_descriptor_that_is_kept_leads_to_nothing_that_counts() {
    let mut scene = Fixture::with(HARMLESS);
    let mut kept = scene.open(APPEND);
    scene.open(APPEND).write_all(NAMED.as_bytes()).unwrap();
    assert_eq!((scene.settle(), scene.text()), (0, format!("{HARMLESS}{NAMED}")));
    kept.write_all(EVIL.as_bytes()).unwrap();
    assert_eq!((scene.settle(), scene.text()), (0, format!("{HARMLESS}{NAMED}")));
    drop(kept);
    assert_eq!((scene.settle(), scene.text()), (1, format!("{HARMLESS}{NAMED}")));
}

/// As with any file that is removed or replaced while it is open.
///
/// Proves: FS-9 git-in-place
#[test]
fn what_lost_its_name_is_not_put_in_place() {
    let mut scene = Fixture::with(HARMLESS);
    let mut file = scene.open(APPEND);
    fs::write(scene.dir.path().join("other"), NAMED).unwrap();
    fs::rename(scene.dir.path().join("other"), scene.path()).unwrap();
    file.write_all(b"[user]\n\temail = a\n").unwrap();
    drop(file);
    assert_eq!((scene.settle(), scene.text().as_str()), (0, NAMED));
    let mut file = scene.open(APPEND);
    fs::remove_file(scene.path()).unwrap();
    file.write_all(HARMLESS.as_bytes()).unwrap();
    drop(file);
    assert_eq!(scene.settle(), 0);
    assert!(!scene.path().exists());
    assert!(scene.staged.is_empty());
}

/// Proves: FS-9 git-in-place
#[test]
fn modes_and_times_are_taken_over() {
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let mut scene = Fixture::with(HARMLESS);
    let mut file = scene.open(ANEW);
    file.write_all(NAMED.as_bytes()).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o640)).unwrap();
    file.set_modified(long_ago).unwrap();
    drop(file);
    assert_eq!(scene.settle(), 0);
    let found = fs::metadata(scene.path()).unwrap();
    assert_eq!((found.mode() & 0o7777, found.mtime()), (0o640, 1_000_000_000));
    // By the name, after the descriptor was closed and before that was seen.
    let mut file = scene.open(ANEW);
    file.write_all(HARMLESS.as_bytes()).unwrap();
    drop(file);
    fs::set_permissions(scene.path(), fs::Permissions::from_mode(0o600)).unwrap();
    File::open(scene.path())
        .unwrap()
        .set_modified(long_ago + std::time::Duration::from_secs(7))
        .unwrap();
    assert_eq!((scene.settle(), scene.text().as_str()), (0, HARMLESS));
    let found = fs::metadata(scene.path()).unwrap();
    assert_eq!((found.mode() & 0o7777, found.mtime()), (0o600, 1_000_000_007));
    // Without another content, as `touch` has it.
    let file = scene.open(OFlags::WRONLY);
    file.set_modified(long_ago).unwrap();
    drop(file);
    assert_eq!((scene.settle(), scene.text().as_str()), (0, HARMLESS));
    let touched = fs::metadata(scene.path()).unwrap();
    assert_eq!((touched.ino(), touched.mtime()), (found.ino(), 1_000_000_000));
}

/// Proves: FS-9 git-in-place
#[test]
fn a_staging_file_can_get_no_name() {
    let mut scene = Fixture::with(HARMLESS);
    let file = scene.open(APPEND);
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    let named = rustix::fs::linkat(
        rustix::fs::CWD,
        own,
        rustix::fs::CWD,
        scene.dir.path().join("named"),
        AtFlags::SYMLINK_FOLLOW,
    );
    assert_eq!(named, Err(Errno::NOENT));
}

/// Proves: FS-9 git-in-place
#[test]
fn as_many_as_are_open_at_a_time_are_staged_and_no_more() {
    let mut scene = Fixture::with(HARMLESS);
    let mut kept = Vec::new();
    for _ in 0..MAX_STAGED {
        kept.push(scene.open(APPEND));
        // Another file of the same name each time.
        fs::remove_file(scene.path()).unwrap();
        fs::write(scene.path(), HARMLESS).unwrap();
    }
    assert_eq!(scene.try_open(APPEND).map(drop), Err(Errno::NFILE));
    drop(kept);
    assert_eq!(scene.settle(), 0);
    scene.open(APPEND).write_all(NAMED.as_bytes()).unwrap();
    assert_eq!((scene.settle(), scene.text()), (0, format!("{HARMLESS}{NAMED}")));
}

/// Proves: FS-9 git-in-place
#[test]
fn what_is_too_long_is_refused() {
    let mut scene = Fixture::with(HARMLESS);
    scene.open(APPEND).set_len(1 << 32).unwrap();
    assert_eq!((scene.settle(), scene.text().as_str()), (1, HARMLESS));
}

/// Proves: FS-9 git-in-place
#[test]
fn what_is_still_open_at_the_end_is_put_in_place() {
    let mut scene = Fixture::with(HARMLESS);
    let mut file = scene.open(APPEND);
    file.write_all(NAMED.as_bytes()).unwrap();
    scene.staged.close_all();
    assert_eq!((scene.settle(), scene.text()), (0, format!("{HARMLESS}{NAMED}")));
    drop(file);
}

/// What was set through the name between judging and replacing went to the file that is replaced.
///
/// Proves: FS-9 git-in-place
#[test]
fn times_set_while_the_content_is_put_in_place_are_kept() {
    let mut fixture = Fixture::with(HARMLESS);
    let mut file = fixture.open(OFlags::WRONLY | OFlags::TRUNC);
    file.write_all(NAMED.as_bytes()).unwrap();
    drop(file);
    assert!(fixture.staged.hear());
    let path = fixture.path();
    let staged = fixture.staged.closed().next().unwrap();
    let seen = Attributes::of(&fstat(&staged.present).unwrap());
    let old = git::read(staged.dir.as_fd(), &staged.name).unwrap();
    let new = git::read_open(&staged.file).unwrap();
    let named = File::options().write(true).open(&path).unwrap();
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(981_158_400);
    named.set_modified(long_ago).unwrap();
    named.set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
    staged.put(&old, &new, &seen).unwrap();
    let found = fs::metadata(path).unwrap();
    assert_eq!((found.modified().unwrap(), found.mode() & 0o777), (long_ago, 0o600));
    assert_eq!(fixture.text(), NAMED);
}
