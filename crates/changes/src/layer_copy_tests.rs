use super::{ChangesError, CopyThreads, MAX_OPEN, MAX_WAITING, copy_layer};
use crate::entry::Found;
use crate::file_copy::{FileToCopy, copy_side_by_side};
use crate::test_overlay::{TestOverlay, directory};
use rustix::fs::{AtFlags, statat};
use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

fn copy(overlay: &TestOverlay) -> Result<super::CopiedLayer, ChangesError> {
    let (upper, beside) = (directory(&overlay.upper()), directory(&overlay.beside("")));
    copy_layer(upper.as_fd(), beside.as_fd(), OsStr::new("copy"), CopyThreads::One)
}

/// Path, type with permissions, length, time and content of everything below.
fn entries(top: &Path) -> Vec<(PathBuf, u32, u64, SystemTime, Vec<u8>)> {
    let mut found = Vec::new();
    let mut directories = vec![top.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let known = fs::symlink_metadata(&path).unwrap();
            let content = if known.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            if known.is_dir() {
                directories.push(path.clone());
            }
            let name = path.strip_prefix(top).unwrap().to_owned();
            let time = known.modified().unwrap();
            found.push((name, known.permissions().mode(), known.nlink(), time, content));
        }
    }
    found.sort();
    found
}

/// Directories with more files than one batch has and with fewer, files with two names, and directories between files.
#[test]
fn two_threads_make_the_copy_that_one_makes() {
    let overlay = TestOverlay::new(|_| {});
    overlay.session(|root| {
        for (directory, files) in [("many", MAX_WAITING + 100), ("many/few", 3), ("other", 200)] {
            fs::create_dir(root.join(directory)).unwrap();
            for number in 0..files {
                let path = root.join(directory).join(format!("f{number}"));
                fs::write(&path, format!("{directory} {number}")).unwrap();
                if number % 50 == 0 {
                    fs::hard_link(&path, path.with_extension("again")).unwrap();
                    let mode = fs::Permissions::from_mode(0o751);
                    fs::set_permissions(&path, mode).unwrap();
                    fs::create_dir(path.with_extension("d")).unwrap();
                }
            }
        }
        symlink("nowhere", root.join("other/link")).unwrap();
    });
    let (upper, beside) = (directory(&overlay.upper()), directory(&overlay.beside("")));
    let copied = [(CopyThreads::One, "one"), (CopyThreads::Two, "two")].map(|(threads, name)| {
        copy_layer(upper.as_fd(), beside.as_fd(), OsStr::new(name), threads).unwrap()
    });
    assert_eq!(copied[0], copied[1]);
    let (one, two) = (entries(&overlay.beside("one")), entries(&overlay.beside("two")));
    assert_eq!(one.len() as u64, copied[0].entries);
    assert!(one == two && one == entries(&overlay.upper()));
}

/// An error of either thread is that of the copy.
#[test]
fn a_file_that_cannot_be_copied_ends_the_copy_by_two_threads() {
    let overlay = TestOverlay::new(|_| {});
    overlay.session(|root| {
        for number in 0..100 {
            fs::write(root.join(format!("f{number}")), "x").unwrap();
        }
    });
    let from = directory(&overlay.upper());
    // A name that is taken: no copy begins like that, so it stands for any error but the file's own absence.
    let taken = overlay.beside("taken");
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("f37"), "").unwrap();
    let found = |name: &str| Found::of(&statat(&from, name, AtFlags::empty()).unwrap());
    let files: Vec<_> = (0..100)
        .map(|number| format!("f{number}"))
        .map(|name| FileToCopy { found: found(&name), path: (&name).into(), name: name.into() })
        .collect();
    let copied = copy_side_by_side((from.as_fd(), directory(&taken).as_fd()), &files);
    let error = copied.unwrap_err().to_string();
    assert!(error.contains("f37"), "{error}");
}

/// What a command leaves must neither lead the copy elsewhere nor keep it waiting.
#[test]
fn links_lead_nowhere_and_nobody_waits() {
    let overlay = TestOverlay::new(|_| {});
    let outside = overlay.beside("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    overlay.session(|root| {
        symlink(&outside, root.join("link")).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, root.join("fifo"), fifo, mode, 0).unwrap();
        fs::write(root.join("bell\u{7}\n\u{1b}[31m"), "x").unwrap();
    });
    let copied = copy(&overlay).unwrap();
    assert_eq!((copied.entries, copied.bytes), (3, 1));
    assert_eq!(fs::read_link(overlay.beside("copy/link")).unwrap(), outside);
    assert!(overlay.beside("copy/bell\u{7}\n\u{1b}[31m").is_file());
}

/// Its owner cannot read it, and it stays so.
#[test]
fn what_nobody_can_read_is_copied_all_the_same() {
    let overlay = TestOverlay::new(|_| {});
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    overlay.session(|root| {
        fs::create_dir(root.join("d")).unwrap();
        fs::write(root.join("d/file"), "content").unwrap();
        for path in ["d/file", "d"] {
            fs::set_permissions(root.join(path), fs::Permissions::from_mode(0o000)).unwrap();
        }
    });
    copy(&overlay).unwrap();
    for directory in [overlay.upper().join("d"), overlay.beside("copy/d")] {
        assert_eq!(mode(&directory), 0);
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(mode(&directory.join("file")), 0);
    }
}

/// A command decides how deep its tree is, and must not be able to keep anybody from copying it.
#[test]
fn a_tree_of_any_depth_is_copied_with_few_descriptors() {
    const DEPTH: usize = 1500;
    let overlay = TestOverlay::new(|_| {});
    let at = |top: &Path, depth: usize| top.join("d/".repeat(depth));
    overlay.session(|root| {
        fs::create_dir_all(at(root, DEPTH)).unwrap();
        for depth in (0..=DEPTH).step_by(100) {
            fs::write(at(root, depth).join("file"), depth.to_string()).unwrap();
            fs::create_dir(at(root, depth).join("beside")).unwrap();
        }
        for depth in (1..DEPTH).rev().filter(|depth| depth % 7 == 0) {
            let mode = if depth % 2 == 0 { 0o000 } else { 0o400 };
            fs::set_permissions(at(root, depth), fs::Permissions::from_mode(mode)).unwrap();
        }
    });
    let before = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    assert!(before.current.is_none_or(|limit| limit > 2 * MAX_OPEN as u64));
    let copied = copy(&overlay).unwrap();
    assert_eq!(copied.entries, (DEPTH + 2 * (DEPTH / 100 + 1)) as u64);
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    for top in [overlay.upper(), overlay.beside("copy")] {
        for depth in 1..DEPTH {
            let expected = match (depth % 7, depth % 2) {
                (0, 0) => 0o000,
                (0, _) => 0o400,
                _ => 0o755,
            };
            let directory = at(&top, depth);
            assert_eq!(mode(&directory) & 0o700, expected & 0o700, "{depth}");
            fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        }
        for depth in (0..=DEPTH).step_by(100) {
            assert_eq!(
                fs::read(at(&top, depth).join("file")).unwrap(),
                depth.to_string().as_bytes()
            );
            assert!(at(&top, depth).join("beside").is_dir());
        }
    }
}
