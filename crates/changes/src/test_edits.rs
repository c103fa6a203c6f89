//! Random edits of a tree, for property tests.

use proptest::prelude::*;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

const FILES: [&[u8]; 8] = [
    b"plain",
    b"a:b,c",
    b"back\\slash",
    b"quo\"te",
    b"new\nline",
    b"\xff\xfe",
    b"-rf",
    b"with blank",
];
const DIRECTORIES: [&[u8]; 4] = [b"", b"d", b"d/e", b"other"];

/// Where something is done: a name in one of the directories. A directory can have the name of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At(usize, usize);

impl At {
    fn path(self, root: &Path) -> PathBuf {
        root.join(OsStr::from_bytes(DIRECTORIES[self.0])).join(OsStr::from_bytes(FILES[self.1]))
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Edit {
    Write(At, u8, u16),
    Append(At, u8),
    RemoveAny(At),
    RemoveDirectory(usize),
    MakeDirectory(At),
    MakeDirectoryAnew(usize),
    RenameFile(At, At),
    HardLink(At, At),
    SymbolicLink(At),
    ModeOfFile(At, usize),
    ModeOfDirectory(usize, usize),
    Touch(At, u16),
    Attribute(At, u8),
}

pub(crate) fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let at = || (0..DIRECTORIES.len(), 0..FILES.len()).prop_map(|(dir, name)| At(dir, name));
    let dir = || 1..DIRECTORIES.len();
    let edit = prop_oneof![
        4 => (at(), any::<u8>(), 0..2000_u16).prop_map(|(at, byte, length)| Edit::Write(at, byte, length)),
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Edit::Append(at, byte)),
        3 => at().prop_map(Edit::RemoveAny),
        1 => dir().prop_map(Edit::RemoveDirectory),
        2 => at().prop_map(Edit::MakeDirectory),
        1 => dir().prop_map(Edit::MakeDirectoryAnew),
        2 => (at(), at()).prop_map(|(from, to)| Edit::RenameFile(from, to)),
        2 => (at(), at()).prop_map(|(from, to)| Edit::HardLink(from, to)),
        1 => at().prop_map(Edit::SymbolicLink),
        2 => (at(), 0..3_usize).prop_map(|(at, mode)| Edit::ModeOfFile(at, mode)),
        1 => (dir(), 0..3_usize).prop_map(|(dir, mode)| Edit::ModeOfDirectory(dir, mode)),
        1 => (at(), any::<u16>()).prop_map(|(at, time)| Edit::Touch(at, time)),
        1 => (at(), any::<u8>()).prop_map(|(at, byte)| Edit::Attribute(at, byte)),
    ];
    prop::collection::vec(edit, 0..40)
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

/// The time is set: the two runs are not at the same moment.
fn write(path: &Path, content: &[u8], time: u64) {
    if fs::write(path, content).is_ok() {
        touch(path, time);
    }
}

fn touch(path: &Path, time: u64) {
    if is_file(path) {
        let file = fs::OpenOptions::new().append(true).open(path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::new(1_000_000 + time, 123_456_789)).unwrap();
    }
}

/// Where an edit is not possible it does nothing, in both trees.
pub(crate) fn perform(root: &Path, edits: &[Edit], first_time: u64) {
    for (number, edit) in edits.iter().enumerate() {
        let time = first_time + number as u64;
        match edit {
            Edit::Write(at, byte, length) => {
                let path = at.path(root);
                if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
                    write(&path, &vec![*byte; usize::from(*length)], time);
                }
            }
            Edit::Append(at, byte) if is_file(&at.path(root)) => {
                let mut content = fs::read(at.path(root)).unwrap();
                content.push(*byte);
                write(&at.path(root), &content, time);
            }
            Edit::RemoveAny(at) => {
                let path = at.path(root);
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            }
            Edit::RemoveDirectory(dir) => {
                let _ = fs::remove_dir_all(root.join(OsStr::from_bytes(DIRECTORIES[*dir])));
            }
            Edit::MakeDirectory(at) => {
                if fs::create_dir(at.path(root)).is_ok() {
                    write(&at.path(root).join("inner"), b"inner", time);
                }
            }
            Edit::MakeDirectoryAnew(dir) => {
                let dir = root.join(OsStr::from_bytes(DIRECTORIES[*dir]));
                let _ = fs::remove_dir_all(&dir);
                if fs::create_dir(&dir).is_ok() {
                    write(&dir.join("plain"), b"anew", time);
                }
            }
            Edit::RenameFile(from, to) if is_file(&from.path(root)) => {
                let _ = fs::rename(from.path(root), to.path(root));
            }
            Edit::HardLink(from, to) if is_file(&from.path(root)) => {
                let _ = fs::hard_link(from.path(root), to.path(root));
            }
            Edit::SymbolicLink(at) => {
                let _ = symlink("plain", at.path(root));
            }
            Edit::ModeOfFile(at, mode) if is_file(&at.path(root)) => {
                let mode = [0o600, 0o755, 0o444][*mode];
                fs::set_permissions(at.path(root), fs::Permissions::from_mode(mode)).unwrap();
            }
            Edit::ModeOfDirectory(dir, mode) => {
                let mode = [0o755, 0o700, 0o555][*mode];
                let dir = root.join(OsStr::from_bytes(DIRECTORIES[*dir]));
                let _ = fs::set_permissions(dir, fs::Permissions::from_mode(mode));
            }
            Edit::Touch(at, time) => touch(&at.path(root), u64::from(*time)),
            Edit::Attribute(at, byte) if is_file(&at.path(root)) => {
                let flags = rustix::fs::XattrFlags::empty();
                rustix::fs::setxattr(at.path(root), "user.test", &[*byte], flags).unwrap();
            }
            Edit::Append(..)
            | Edit::RenameFile(..)
            | Edit::HardLink(..)
            | Edit::ModeOfFile(..)
            | Edit::Attribute(..) => {}
        }
    }
}

pub(crate) fn prepare(project: &Path) {
    for dir in DIRECTORIES {
        let dir = project.join(OsStr::from_bytes(dir));
        fs::create_dir_all(&dir).unwrap();
        for (number, name) in FILES.iter().enumerate().take(5) {
            let path = dir.join(OsStr::from_bytes(name));
            write(&path, &vec![b'x'; number * 100], number as u64);
        }
        symlink("plain", dir.join("link")).unwrap();
    }
}
