use super::{ChangesError, MAX_OPEN, copy_layer};
use crate::test_overlay::{TestOverlay, directory};
use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

fn copy(overlay: &TestOverlay) -> Result<super::CopiedLayer, ChangesError> {
    let (upper, beside) = (directory(&overlay.upper()), directory(&overlay.beside("")));
    copy_layer(upper.as_fd(), beside.as_fd(), OsStr::new("copy"))
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
