use std::os::unix::fs::{MetadataExt, symlink};

use rustix::fs::{CWD, Mode, OFlags};

use super::*;
use crate::clone::{CloneFlags, Forked, clone3};
use crate::creds::{IdKind, MapLine, write_map};
use crate::error::errno_of;
use crate::proc::sig;
use crate::test_child::{become_namespace_root, in_child, park};

const TMPFS_MAGIC: i64 = 0x0102_1994;

fn tmpfs() -> OwnedFd {
    let options = [FsOption::Text("size", "64k"), FsOption::Text("mode", "755")];
    new_fs("tmpfs", &options, MountAttrs::NOSUID | MountAttrs::NODEV).unwrap()
}

fn mountinfo() -> String {
    std::fs::read_to_string("/proc/self/mountinfo").unwrap()
}

fn mountinfo_line(path: &Path) -> String {
    let table = mountinfo();
    let wanted = path.to_str().unwrap();
    let line = table.lines().find(|line| line.split(' ').nth(4) == Some(wanted));
    line.unwrap_or_else(|| panic!("{wanted} is not a mount in:\n{table}")).to_owned()
}

#[test]
fn a_new_tmpfs_keeps_its_size_and_attributes() {
    let place = tempfile::tempdir().unwrap();
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNS);
        make_private_recursive(Path::new("/")).unwrap();
        let before = mountinfo();
        move_mount(tmpfs(), CWD, place.path()).unwrap();
        let root = rustix::fs::open(place.path(), OFlags::PATH, Mode::empty()).unwrap();
        assert_eq!(fstatfs_magic(&root).unwrap(), TMPFS_MAGIC);
        let line = mountinfo_line(place.path());
        assert!(line.contains("nosuid,nodev"), "{line}");
        let full = std::fs::write(place.path().join("big"), vec![1; 128 * 1024]).unwrap_err();
        assert_eq!(errno_of(&full), Errno::NOSPC);
        detach(place.path()).unwrap();
        assert_eq!(mountinfo(), before);
    });
}

#[test]
fn a_refused_option_comes_with_the_kernels_own_words() {
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNS);
        let error =
            new_fs("tmpfs", &[FsOption::Text("size", "much")], MountAttrs::NONE).unwrap_err();
        assert_eq!((error.call, error.errno), ("fsconfig", Errno::INVAL));
        assert!(error.subject.starts_with("tmpfs size=much (kernel: "), "{error}");
    });
}

#[test]
fn a_read_only_copy_of_a_tree_refuses_writes_also_below() {
    let source = tempfile::tempdir().unwrap();
    let target = tempfile::tempdir().unwrap();
    std::fs::create_dir(source.path().join("below")).unwrap();
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNS);
        make_private_recursive(Path::new("/")).unwrap();
        move_mount(tmpfs(), CWD, &source.path().join("below")).unwrap();
        let tree = open_tree(CWD, source.path(), Recursion::Recursive).unwrap();
        let attr = MountAttr {
            set: MountAttrs::RDONLY | MountAttrs::NOSUID | MountAttrs::NODEV,
            private: true,
            ..MountAttr::default()
        };
        mount_setattr(&tree, Recursion::Recursive, &attr).unwrap();
        move_mount(&tree, CWD, target.path()).unwrap();
        for name in ["file", "below/file"] {
            std::fs::write(source.path().join(name), "original").unwrap();
            let refused = std::fs::write(target.path().join(name), "changed").unwrap_err();
            assert_eq!(errno_of(&refused), Errno::ROFS, "{name}");
        }
    });
}

#[test]
fn attributes_are_set_and_cleared() {
    let place = tempfile::tempdir().unwrap();
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNS);
        make_private_recursive(Path::new("/")).unwrap();
        let mount = tmpfs();
        let attr =
            MountAttr { set: MountAttrs::NOEXEC, clear: MountAttrs::NODEV, ..MountAttr::default() };
        mount_setattr(&mount, Recursion::Single, &attr).unwrap();
        move_mount(&mount, CWD, place.path()).unwrap();
        let line = mountinfo_line(place.path());
        assert!(line.contains("noexec") && !line.contains("nodev"), "{line}");
    });
}

#[test]
fn a_link_in_the_last_place_is_not_followed() {
    let place = tempfile::tempdir().unwrap();
    let link = place.path().join("link");
    symlink("/etc", &link).unwrap();
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNS);
        make_private_recursive(Path::new("/")).unwrap();
        let before = mountinfo();
        let attached = move_mount(tmpfs(), CWD, &link);
        assert!(attached.is_err(), "a directory was attached on a link");
        assert_eq!(mountinfo(), before);
    });
}

#[test]
fn after_pivot_root_only_the_new_root_is_there() {
    let place = tempfile::tempdir().unwrap();
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNS);
        make_private_recursive(Path::new("/")).unwrap();
        move_mount(tmpfs(), CWD, place.path()).unwrap();
        std::env::set_current_dir(place.path()).unwrap();
        pivot_root(Path::new("."), Path::new(".")).unwrap();
        detach(Path::new(".")).unwrap();
        std::env::set_current_dir("/").unwrap();
        assert_eq!(std::fs::read_dir("/").unwrap().count(), 0);
        let gone = std::fs::metadata(place.path()).unwrap_err();
        assert_eq!(errno_of(&gone), Errno::NOENT);
    });
}

/// An id-mapped mount shows another owner than the file system stores (tmpfs: since 6.3).
#[test]
fn an_id_mapped_mount_changes_owners() {
    let place = tempfile::tempdir().unwrap();
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNS);
        make_private_recursive(Path::new("/")).unwrap();
        let plain = tmpfs();
        move_mount(&plain, CWD, place.path()).unwrap();
        std::fs::write(place.path().join("file"), "").unwrap();
        let mapped = open_tree(&plain, Path::new(""), Recursion::Single).unwrap();
        let Forked::Parent { pid, pidfd } = clone3(CloneFlags::NEWUSER).unwrap() else { park() };
        // Root of the file system stands for an id that nobody here has a name for.
        let lines = [MapLine { inside: 5, outside: 0, count: 1 }];
        write_map(Some(pid), IdKind::Uid, &lines).unwrap();
        write_map(Some(pid), IdKind::Gid, &lines).unwrap();
        let namespace = std::fs::File::open(format!("/proc/{}/ns/user", pid.as_raw_pid())).unwrap();
        let attr = MountAttr { userns_fd: Some(namespace.as_fd()), ..MountAttr::default() };
        mount_setattr(&mapped, Recursion::Single, &attr).unwrap();
        crate::proc::pidfd_send_signal(&pidfd, sig::SIGKILL).unwrap();
        assert_eq!(std::fs::metadata(place.path().join("file")).unwrap().uid(), 0);
        move_mount(&mapped, CWD, place.path()).unwrap();
        assert_ne!(std::fs::metadata(place.path().join("file")).unwrap().uid(), 0);
    });
}

#[test]
fn a_held_mount_is_detached_wherever_it_is() {
    let place = tempfile::tempdir().unwrap();
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNS);
        make_private_recursive(Path::new("/")).unwrap();
        let before = mountinfo();
        let own_files = rustix::fs::open("/proc/self/fd", OFlags::PATH, Mode::empty()).unwrap();
        let (above, moved) = (place.path().join("above"), place.path().join("moved"));
        std::fs::create_dir_all(above.join("point")).unwrap();
        let mount = tmpfs();
        move_mount(&mount, CWD, &above.join("point")).unwrap();
        // Its path is another one by now.
        std::fs::rename(&above, &moved).unwrap();
        let there = rustix::fs::open(moved.join("point"), OFlags::PATH, Mode::empty()).unwrap();
        assert_eq!(mount_id(&there).unwrap(), mount_id(&mount).unwrap());
        assert_ne!(mount_id(&there).unwrap(), mount_id(CWD).unwrap());
        detach_held(&own_files, &mount).unwrap();
        assert_eq!(mountinfo(), before);
        let again = detach_held(&own_files, &mount).unwrap_err();
        assert_eq!(again.errno, Errno::INVAL, "it is no longer attached");
    });
}
