use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};

use super::*;

fn tree() -> (tempfile::TempDir, File) {
    let place = tempfile::tempdir().unwrap();
    let root = File::open(place.path()).unwrap();
    (place, root)
}

fn path_of(fd: &OwnedFd) -> std::path::PathBuf {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap()
}

#[test]
fn a_link_anywhere_on_the_way_is_refused() {
    let (place, root) = tree();
    std::fs::create_dir(place.path().join("real")).unwrap();
    std::fs::write(place.path().join("real/file"), "").unwrap();
    symlink("real", place.path().join("link")).unwrap();
    symlink("/etc/passwd", place.path().join("real/last")).unwrap();
    let open = |path| open_beneath(&root, Path::new(path), OFlags::RDONLY);
    open("real/file").unwrap();
    for path in ["link/file", "real/last", "link"] {
        assert_eq!(open(path).unwrap_err().errno, Errno::LOOP, "{path}");
        let by_path = open_beneath(&root, Path::new(path), OFlags::PATH).unwrap_err();
        assert_eq!(by_path.errno, Errno::LOOP, "{path}");
    }
}

#[test]
fn dots_and_absolute_paths_stay_below_the_root() {
    let (place, root) = tree();
    std::fs::write(place.path().join("passwd"), "").unwrap();
    for path in ["../../passwd", "/passwd", "./passwd"] {
        let opened = open_beneath(&root, Path::new(path), OFlags::RDONLY).unwrap();
        assert_eq!(path_of(&opened), place.path().join("passwd"), "{path}");
    }
    let absent = open_beneath(&root, Path::new("/etc/passwd"), OFlags::RDONLY).unwrap_err();
    assert_eq!(absent.errno, Errno::NOENT);
}

#[test]
fn directories_are_made_where_missing_and_never_through_a_link() {
    let (place, root) = tree();
    let mode = Mode::from_raw_mode(0o700);
    std::fs::create_dir(place.path().join("a")).unwrap();
    let made = mkdir_p_beneath(&root, Path::new("/a/b/c"), mode).unwrap();
    assert_eq!(path_of(&made), place.path().join("a/b/c"));
    let permissions = std::fs::metadata(place.path().join("a/b")).unwrap().permissions();
    assert_eq!(permissions.mode() & 0o777, 0o700);
    mkdir_p_beneath(&root, Path::new("a/b/c"), mode).unwrap();

    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), place.path().join("out")).unwrap();
    let refused = mkdir_p_beneath(&root, Path::new("out/x"), mode).unwrap_err();
    assert_eq!(refused.errno, Errno::LOOP);
    assert_eq!(refused.subject, "out/x");
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    let refused = mkdir_p_beneath(&root, Path::new("a/../x"), mode).unwrap_err();
    assert_eq!(refused.errno, Errno::INVAL);
}

#[test]
fn a_file_is_made_once_and_never_through_a_link() {
    let (place, root) = tree();
    let create = |path| create_file_beneath(&root, Path::new(path), Mode::from_raw_mode(0o600));
    create("file").unwrap();
    assert_eq!(create("file").unwrap_err().errno, Errno::EXIST);
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path().join("made"), place.path().join("dangling")).unwrap();
    create("dangling").unwrap_err();
    assert!(!elsewhere.path().join("made").exists());
}

#[test]
fn links_and_whiteouts_are_made_in_place() {
    let (place, root) = tree();
    std::fs::create_dir(place.path().join("d")).unwrap();
    symlink_beneath(&root, Path::new("usr/lib"), Path::new("d/lib")).unwrap();
    assert_eq!(std::fs::read_link(place.path().join("d/lib")).unwrap(), Path::new("usr/lib"));
    mknod_whiteout(&root, OsStr::new("gone")).unwrap();
    let whiteout = std::fs::metadata(place.path().join("gone")).unwrap();
    assert!(whiteout.file_type().is_char_device());
    assert_eq!(whiteout.rdev(), 0);
    assert_eq!(mknod_whiteout(&root, OsStr::new("..")).unwrap_err().errno, Errno::INVAL);
}

/// Proves: FS-4 links
#[test]
fn links_are_followed_by_the_kernel_as_long_as_they_stay_below() {
    let (place, root) = tree();
    std::fs::create_dir_all(place.path().join("d/e")).unwrap();
    std::fs::write(place.path().join("d/file"), "").unwrap();
    symlink("../file", place.path().join("d/e/up")).unwrap();
    symlink("../../../etc", place.path().join("d/e/out")).unwrap();
    symlink(place.path().join("d"), place.path().join("absolute")).unwrap();
    let resolve = |path: &str| resolve_beneath(&root, Path::new(path));
    assert_eq!(path_of(&resolve("d/e/up").unwrap()), place.path().join("d/file"));
    assert_eq!(path_of(&resolve("d/e/../file").unwrap()), place.path().join("d/file"));
    for path in ["d/e/out", "absolute/file", "..", "/etc"] {
        assert_eq!(resolve(path).unwrap_err().errno, Errno::XDEV, "{path}");
    }
    let proc = File::open("/proc/self").unwrap();
    let magic = resolve_beneath(&proc, Path::new("root")).unwrap_err();
    assert_eq!(magic.errno, Errno::LOOP);
}

#[test]
fn an_entry_is_one_name_and_a_link_is_itself() {
    let (place, root) = tree();
    symlink("/etc", place.path().join("link")).unwrap();
    let link = open_entry(&root, OsStr::new("link")).unwrap();
    assert_eq!(path_of(&link), place.path().join("link"));
    for name in ["", ".", "..", "a/b", "/"] {
        assert_eq!(open_entry(&root, OsStr::new(name)).unwrap_err().errno, Errno::INVAL, "{name}");
    }
}

#[test]
fn on_one_mount_nothing_else_is_reached() {
    let (place, root) = tree();
    std::fs::create_dir(place.path().join("real")).unwrap();
    symlink("real", place.path().join("link")).unwrap();
    let open = |path| open_on_mount(&root, Path::new(path), OFlags::PATH);
    open("real").unwrap();
    assert_eq!(open("link").unwrap_err().errno, Errno::LOOP);
    for path in ["..", "real/../..", "/real"] {
        assert_eq!(open(path).unwrap_err().errno, Errno::XDEV, "{path}");
    }
    let top = File::open("/").unwrap();
    let elsewhere = open_on_mount(&top, Path::new("proc"), OFlags::PATH).unwrap_err();
    assert_eq!(elsewhere.errno, Errno::XDEV);
}
