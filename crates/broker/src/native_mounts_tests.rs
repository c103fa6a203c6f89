//! Calls on mounts of the run's own and in guarded trees, on real mounts and with a real caller: this process.

use super::*;
use crate::call::TimesArg;
use crate::call::{AttributeArg, TimesFormat};
use crate::test_sandbox::mount_tmpfs;
use palisade_sys::clone::CloneFlags;
use palisade_sys::mounts::{self, MountAttrs, Recursion};
use palisade_sys::notify::{Listener, Notification};
use palisade_sys::test_child::{become_namespace_root, in_child};
use rustix::fs::openat;
use std::ffi::CString;
use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::symlink;

const NEW: u32 = OFlags::WRONLY.bits() | OFlags::CREATE.bits() | OFlags::EXCL.bits();
const SHELL: u32 = OFlags::WRONLY.bits() | OFlags::CREATE.bits() | OFlags::TRUNC.bits();
const CURRENT: i32 = crate::call::CWD;

/// `own` and `tree` are mounts, `outside` is what is around them.
struct Mounted {
    root: tempfile::TempDir,
    dirs: NativeDirs,
    proc: &'static OwnedFd,
    listener: &'static Listener,
}

impl Mounted {
    /// Only in a child of the test's own.
    fn new() -> Self {
        become_namespace_root(CloneFlags::NEWNS);
        mounts::make_private_recursive(Path::new("/")).unwrap();
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().canonicalize().unwrap().join(name);
        for name in ["own", "tree"] {
            fs::create_dir(path(name)).unwrap();
            mount_tmpfs(&path(name), MountAttrs::NONE);
        }
        for name in ["own/dir", "own/covered", "tree/dir", "tree/inner", "outside"] {
            fs::create_dir(path(name)).unwrap();
        }
        for name in ["own/file", "own/masked", "tree/file", "tree/dir/file", "outside/file"] {
            fs::write(path(name), "").unwrap();
        }
        mount_tmpfs(&path("own/covered"), MountAttrs::NONE);
        mount_tmpfs(&path("tree/inner"), MountAttrs::NONE);
        fs::write(path("tree/inner/file"), "").unwrap();
        let mask = mounts::open_tree(CWD, &path("outside/file"), Recursion::Single).unwrap();
        mounts::move_mount(mask, CWD, &path("own/masked")).unwrap();
        let dirs = NativeDirs::open(&[path("own")], &[], &[path("tree")]);
        let open = |path: &str| {
            let opened = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, NO_MODE);
            opened.unwrap()
        };
        let proc = Box::leak(Box::new(open("/proc")));
        // Nobody asks it.
        let listener = Box::leak(Box::new(Listener::new(open("/dev/null"))));
        Self { root, dirs, proc, listener }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(below)
    }

    /// Whether this call of ours would be left to the kernel, by a path as it is written.
    fn is_left(&self, dir: i32, path: impl AsRef<Path>, call: impl Fn(PathArg) -> Call) -> bool {
        let path = CString::new(path.as_ref().as_os_str().as_bytes()).unwrap();
        let at = PathArg { dir, address: path.as_ptr() as u64 };
        let notification = Notification {
            id: 1,
            thread: Some(rustix::process::getpid()),
            number: 0,
            args: [0; 6],
        };
        let caller = Caller::of(&notification, self.proc, self.listener).unwrap();
        self.dirs.is_left_to_kernel(&caller, call(at), Extent::Trees)
    }

    fn leaves(&self, path: &str, call: impl Fn(PathArg) -> Call) -> bool {
        self.is_left(CURRENT, self.path(path), call)
    }

    /// The same of a call with two paths.
    fn leaves_both(&self, from: &str, to: &str, call: impl Fn(PathArg, PathArg) -> Call) -> bool {
        let to = CString::new(self.path(to).as_os_str().as_bytes()).unwrap();
        let to = PathArg { dir: CURRENT, address: to.as_ptr() as u64 };
        self.leaves(from, |from| call(from, to))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        for name in ["own/masked", "own/covered", "own", "tree/inner", "tree"] {
            let _ = mounts::detach(&self.path(name));
        }
    }
}

fn create(path: PathArg) -> Call {
    Call::Open { path, flags: NEW, mode: 0o644 }
}

fn write(path: PathArg) -> Call {
    Call::Open { path, flags: SHELL, mode: 0o644 }
}

fn make(path: PathArg) -> Call {
    Call::MakeDirectory { path, mode: 0o755 }
}

fn unlink(path: PathArg) -> Call {
    Call::Remove { path, flags: 0 }
}

fn chmod(path: PathArg) -> Call {
    Call::ChangeMode { path, mode: 0o600, flags: 0 }
}

fn touch(path: PathArg) -> Call {
    let times = TimesArg { address: 0, format: TimesFormat::Nanoseconds };
    Call::ChangeTimes { path, times, flags: 0 }
}

fn rename(from: PathArg, to: PathArg) -> Call {
    Call::Rename { from, to, flags: 0 }
}

fn link(from: PathArg, to: PathArg) -> Call {
    Call::Link { from, to, flags: 0 }
}

/// Proves: FS-9 undisturbed
#[test]
fn the_kernel_answers_what_is_on_a_mount_of_the_runs_own() {
    in_child(|| {
        let mounted = Mounted::new();
        for name in ["own/new", "own/dir/new"] {
            assert!(mounted.leaves(name, create) && mounted.leaves(name, write), "{name}");
            assert!(mounted.leaves(name, make) && mounted.leaves(name, unlink), "{name}");
            assert!(!mounted.leaves(name, chmod), "{name}");
        }
        for name in ["own/file", "own/dir"] {
            assert!(mounted.leaves(name, unlink) && mounted.leaves(name, chmod), "{name}");
            assert!(mounted.leaves(name, touch), "{name}");
        }
        assert!(mounted.leaves("own/file", write));
        assert!(mounted.leaves_both("own/file", "own/dir/new", rename));
        assert!(mounted.leaves_both("own/file", "own/dir/new", link));
        assert!(
            !mounted.leaves_both("own/dir", "own/other", rename),
            "a directory of a lower layer"
        );
    });
}

/// Proves: FS-9 undisturbed
#[test]
fn in_a_guarded_tree_only_what_plants_nothing_is_left_to_the_kernel() {
    in_child(|| {
        let mounted = Mounted::new();
        for name in ["tree/file", "tree/dir", "tree/dir/file", "tree/dir/../file"] {
            for call in [unlink, chmod, touch] {
                assert!(mounted.leaves(name, call), "{name}");
            }
        }
        let attribute = AttributeArg::Remove { name: 0 };
        assert!(
            mounted.leaves("tree/file", |path| {
                Call::ChangeAttribute { path, attribute, flags: 0 }
            })
        );
        for name in ["tree/new", "tree/file", "tree/dir/new"] {
            for call in [create, write, make] {
                assert!(!mounted.leaves(name, call), "{name}");
            }
        }
        assert!(!mounted.leaves_both("tree/file", "tree/other", rename));
        assert!(!mounted.leaves_both("tree/file", "tree/other", link));
        assert!(
            !mounted
                .leaves("tree/file", |path| { Call::ChangeMode { path, mode: 0o2600, flags: 0 } })
        );
        assert!(!mounted.leaves("tree/file", |path| Call::Truncate { path, length: 0 }));
    });
}

/// What Landlock might refuse, or somebody might be asked about.
///
/// Proves: FS-9 undisturbed
#[test]
fn another_mount_a_missing_name_and_what_is_outside_are_the_brokers() {
    in_child(|| {
        let mounted = Mounted::new();
        for name in ["outside/file", "own/../outside/file", "tree/inner/file", "outside/missing"] {
            for call in [unlink, chmod, touch] {
                assert!(!mounted.leaves(name, call), "{name}");
            }
        }
        assert!(mounted.leaves("tree/missing", unlink) && !mounted.leaves("tree/missing", touch));
        assert!(!mounted.leaves("tree/no/missing", unlink));
        for name in ["outside/new", "own/../outside/new", "own/missing/new", "own/covered/new"] {
            assert!(!mounted.leaves(name, create) && !mounted.leaves(name, write), "{name}");
        }
        for name in ["own", "tree", "tree/inner", "own/covered", "own/masked", "tree/dir/.."] {
            assert!(!mounted.leaves(name, unlink), "{name} is the root of a mount");
        }
        // A file that is covered by one of another mount.
        assert!(!mounted.leaves("own/masked", write) && !mounted.leaves("own/masked", chmod));
        assert!(!mounted.leaves_both("own/file", "own/masked", rename));
        assert!(!mounted.leaves_both("own/masked", "own/other", rename));
        assert!(!mounted.leaves_both("own/file", "tree/file", rename));
        assert!(!mounted.leaves_both("tree/file", "own/new", link));
        assert!(!mounted.is_left(CURRENT, "", unlink) && !mounted.is_left(CURRENT, "", create));
    });
}

/// Proves: FS-9 undisturbed
#[test]
fn a_link_counts_by_where_it_leads() {
    in_child(|| {
        let mounted = Mounted::new();
        let lead = |name: &str, to: &str| symlink(mounted.path(to), mounted.path(name)).unwrap();
        lead("own/to-tree", "tree");
        lead("own/to-new", "tree/new");
        lead("own/to-own", "own/file");
        lead("own/dangling", "own/not-yet");
        lead("tree/to-outside", "outside");
        assert!(!mounted.leaves("own/to-tree/new", create) && !mounted.leaves("own/to-new", write));
        assert!(!mounted.leaves("own/dangling", write), "it could be made to lead out");
        assert!(mounted.leaves("own/to-own", write) && mounted.leaves("own/to-new", unlink));
        assert!(mounted.leaves("own/to-tree/file", unlink), "it is in the tree");
        assert!(!mounted.leaves("tree/to-outside/file", unlink));
        assert!(!mounted.leaves("tree/to-outside", chmod), "it is followed");
        assert!(mounted.leaves("tree/to-outside", unlink), "it is not");
        // Swapped between two calls.
        fs::remove_file(mounted.path("own/to-own")).unwrap();
        lead("own/to-own", "outside/file");
        assert!(!mounted.leaves("own/to-own", write));
    });
}

/// Proves: FS-9 undisturbed
#[test]
fn a_relative_path_starts_where_the_caller_is_by_now() {
    in_child(|| {
        let mounted = Mounted::new();
        let go = |name: &str| std::env::set_current_dir(mounted.path(name)).unwrap();
        let is_left = |path: &str, call: fn(PathArg) -> Call| mounted.is_left(CURRENT, path, call);
        go("tree/dir");
        assert!(is_left("file", unlink) && is_left("../file", unlink) && !is_left("new", create));
        fs::rename(mounted.path("tree/dir"), mounted.path("tree/moved")).unwrap();
        assert!(is_left("file", unlink) && !is_left("../../outside/file", unlink));
        go("own/dir");
        assert!(is_left("new", create) && is_left("../new", make) && !is_left("..", unlink));
        fs::rename(mounted.path("own/dir"), mounted.path("own/moved")).unwrap();
        assert!(is_left("new", create));
        fs::remove_dir(mounted.path("own/moved")).unwrap();
        assert!(is_left("new", create), "the kernel says that it is gone");
        go("outside");
        assert!(!is_left("file", unlink) && !is_left("new", create));
        let dir = fs::File::open(mounted.path("tree")).unwrap();
        assert!(mounted.is_left(dir.as_raw_fd(), "file", unlink));
        let file = fs::File::open(mounted.path("tree/file")).unwrap();
        assert!(!mounted.is_left(file.as_raw_fd(), "file", unlink));
        assert!(!mounted.is_left(1_000_000, "file", unlink));
    });
}

/// Otherwise the kernel gives it to the next one.
///
/// Proves: FS-9 undisturbed
#[test]
fn no_other_mount_gets_the_number_of_a_known_one() {
    in_child(|| {
        let mounted = Mounted::new();
        let number = |path: &Path| {
            let root = openat(CWD, path, DIRECTORY, NO_MODE).unwrap();
            LookedUp::of(&root).unwrap().mount
        };
        let known = [number(&mounted.path("own")), number(&mounted.path("tree"))];
        for name in ["own/masked", "own/covered", "own", "tree/inner", "tree"] {
            mounts::detach(&mounted.path(name)).unwrap();
        }
        let others: Vec<PathBuf> =
            (0..8).map(|it| mounted.path(&format!("outside/{it}"))).collect();
        for other in &others {
            fs::create_dir(other).unwrap();
            mount_tmpfs(other, MountAttrs::NONE);
            fs::write(other.join("file"), "").unwrap();
        }
        for other in &others {
            assert!(!known.contains(&number(other)));
            for call in [write, unlink, chmod] {
                assert!(!mounted.is_left(CURRENT, other.join("file"), call));
            }
            mounts::detach(other).unwrap();
        }
    });
}

/// What is read of the caller is read once: another thread of it may change it meanwhile.
///
/// Proves: FS-9 created-names
#[test]
fn a_path_is_read_once() {
    in_child(|| {
        let mounted = Mounted::new();
        let mut path = *b"first\0";
        let notification = Notification {
            id: 1,
            thread: Some(rustix::process::getpid()),
            number: 0,
            args: [0; 6],
        };
        let caller = Caller::of(&notification, mounted.proc, mounted.listener).unwrap();
        let address = path.as_mut_ptr() as u64;
        assert_eq!(caller.path(address).unwrap(), b"first");
        path.copy_from_slice(b"other\0");
        assert_eq!(std::hint::black_box(&path), b"other\0");
        assert_eq!(caller.path(address).unwrap(), b"first");
        assert_eq!(caller.for_later().path(address).unwrap(), b"other");
        let again = Caller::of(&notification, mounted.proc, mounted.listener).unwrap();
        assert_eq!(again.path(address).unwrap(), b"other");
    });
}
