use crate::test_overlay::{TestOverlay, statuses};
use crate::{ChangeKind, scan};
use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn every_kind_of_change_is_found() {
    let overlay = TestOverlay::new(|project| {
        for name in ["changed", "deleted", "chmod", "same", "becomes-link", "touched"] {
            fs::write(project.join(name), name).unwrap();
        }
        fs::create_dir(project.join("becomes-file")).unwrap();
        fs::write(project.join("becomes-file/inner"), "inner").unwrap();
        symlink("old", project.join("link")).unwrap();
    });
    overlay.session(|root| {
        fs::write(root.join("changed"), "CHANGED").unwrap();
        fs::remove_file(root.join("deleted")).unwrap();
        mode(&root.join("chmod"), 0o755);
        // Copied up, and back to what it was.
        mode(&root.join("same"), 0o600);
        mode(&root.join("same"), 0o644);
        fs::remove_file(root.join("becomes-link")).unwrap();
        symlink("changed", root.join("becomes-link")).unwrap();
        fs::remove_dir_all(root.join("becomes-file")).unwrap();
        fs::write(root.join("becomes-file"), "").unwrap();
        fs::remove_file(root.join("link")).unwrap();
        symlink("new", root.join("link")).unwrap();
        fs::create_dir_all(root.join("added/empty")).unwrap();
        fs::write(root.join("added/file"), "unlike anything else").unwrap();
        let touched = fs::OpenOptions::new().append(true).open(root.join("touched")).unwrap();
        touched.set_modified(std::time::UNIX_EPOCH).unwrap();
    });
    assert_eq!(
        overlay.statuses(),
        "A added/empty/\nA added/file\nT becomes-file\nD becomes-file/inner\nT becomes-link\n\
         M changed\nM chmod\nD deleted\nM link\n"
    );
    let set = scan(&overlay.layers()).unwrap();
    assert_eq!(set.get(Path::new("touched")).unwrap().kind, ChangeKind::Touched);
    assert_eq!(set.get(Path::new("chmod")).unwrap().kind, ChangeKind::ModeChanged);
    assert!(set.get(Path::new("same")).is_none());
}

/// F17: a directory that was deleted and made again shows nothing of the old one.
#[test]
fn a_directory_made_anew_hides_what_was_in_it() {
    let overlay = TestOverlay::new(|project| {
        fs::create_dir_all(project.join("d/sub")).unwrap();
        fs::write(project.join("d/kept"), "kept").unwrap();
        fs::write(project.join("d/gone"), "a file that goes").unwrap();
        fs::write(project.join("d/sub/deep"), "a deep file").unwrap();
    });
    overlay.session(|root| {
        fs::remove_dir_all(root.join("d")).unwrap();
        fs::create_dir(root.join("d")).unwrap();
        fs::write(root.join("d/kept"), "kept").unwrap();
        fs::write(root.join("d/new"), "something new").unwrap();
    });
    let shown = overlay.statuses();
    assert_eq!(shown, "D d/gone\nA d/new\nD d/sub/deep\n", "{shown}");
    let set = scan(&overlay.layers()).unwrap();
    assert_eq!(set.get(Path::new("d/sub")).unwrap().kind, ChangeKind::Deleted);
}

#[test]
fn stacked_layers_count_as_overlayfs_merges_them() {
    let mut overlay = TestOverlay::new(|project| {
        fs::create_dir(project.join("d")).unwrap();
        for name in ["d/a", "d/b", "d/c"] {
            fs::write(project.join(name), name).unwrap();
        }
    });
    overlay.session(|root| {
        fs::remove_dir_all(root.join("d")).unwrap();
        fs::write(root.join("one"), "made in the first layer").unwrap();
        fs::write(root.join("two"), "and this").unwrap();
    });
    overlay.add_layer();
    overlay.session(|root| {
        fs::create_dir(root.join("d")).unwrap();
        fs::write(root.join("d/a"), "again").unwrap();
        fs::remove_file(root.join("one")).unwrap();
    });
    assert_eq!(overlay.statuses(), "M d/a\nD d/b\nD d/c\nA two\n");
    // From the first checkpoint to now.
    let since = scan(&overlay.layers_since(2)).unwrap();
    assert_eq!(statuses(&since), "A d/a\nD one\n");
}

#[test]
fn renames_are_recognised_by_content_and_by_similarity() {
    let lines = |from: usize| (from..from + 50).map(|line| format!("line {line}\n")).collect();
    let (exact, similar): (String, String) = (lines(0), lines(1000));
    let overlay = TestOverlay::new(|project| {
        fs::write(project.join("exact"), &exact).unwrap();
        fs::write(project.join("similar"), &similar).unwrap();
        fs::write(project.join("unlike"), "nothing in common\n").unwrap();
        fs::create_dir(project.join("old")).unwrap();
        fs::write(project.join("old/inner"), "the content of a directory\n").unwrap();
    });
    overlay.session(|root| {
        fs::rename(root.join("exact"), root.join("moved")).unwrap();
        fs::remove_file(root.join("similar")).unwrap();
        fs::write(root.join("edited"), similar.replace("line 1007", "LINE")).unwrap();
        fs::remove_file(root.join("unlike")).unwrap();
        fs::write(root.join("other"), "completely different text\n").unwrap();
        fs::create_dir(root.join("new")).unwrap();
        fs::rename(root.join("old/inner"), root.join("new/inner")).unwrap();
        fs::remove_dir(root.join("old")).unwrap();
    });
    assert_eq!(
        overlay.statuses(),
        "R098 similar edited\nR100 exact moved\nR100 old/inner new/inner\nA other\nD unlike\n"
    );
}

#[test]
fn hard_links_of_a_session_are_known() {
    let overlay = TestOverlay::new(|project| fs::write(project.join("host"), "host").unwrap());
    overlay.session(|root| {
        fs::write(root.join("a"), "file").unwrap();
        fs::hard_link(root.join("a"), root.join("b")).unwrap();
        fs::hard_link(root.join("host"), root.join("c")).unwrap();
    });
    let set = scan(&overlay.layers()).unwrap();
    let link = |path: &str| set.get(Path::new(path)).unwrap().hard_link_of.clone();
    assert_eq!(link("a"), None);
    assert_eq!(link("b").unwrap(), Path::new("a"));
    assert_eq!(link("c").unwrap(), Path::new("host"));
    assert!(set.get(Path::new("host")).is_none());
}

/// F18
#[test]
fn names_of_any_bytes_are_literal() {
    let names: [&[u8]; 8] =
        [b"a:b", b"a,b", b"a\\b", b"a\"b", b"a\nb", b"\xff\xfe", b"-rf", b"\x1b[2J"];
    let overlay = TestOverlay::new(|project| {
        for name in names {
            fs::write(project.join(OsStr::from_bytes(name)), "old").unwrap();
        }
    });
    overlay.session(|root| {
        for name in names {
            fs::write(root.join(OsStr::from_bytes(name)), "new!").unwrap();
        }
    });
    let set = scan(&overlay.layers()).unwrap();
    let mut found: Vec<&[u8]> =
        set.changes().iter().map(|change| change.path.as_os_str().as_bytes()).collect();
    found.sort_unstable();
    let mut expected = names.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert!(overlay.statuses().bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)));
    let json = serde_json::to_string(&set).unwrap();
    assert!(json.contains(r#""pathHex":"fffe""#), "{json}");
}

#[test]
fn an_error_about_a_name_does_not_control_the_terminal() {
    let error = palisade_sys::SysError::new("open", "\x1b[2J", palisade_sys::Errno::ACCESS);
    let text = crate::ChangesError::from(error).to_string();
    assert_eq!(text, "open \"\\033[2J\": Permission denied (EACCES)");
}

/// A session may close its files to their owner; the permissions are the same afterwards.
#[test]
fn what_a_session_made_unreadable_is_read_all_the_same() {
    let overlay = TestOverlay::new(|project| fs::write(project.join("f"), "f").unwrap());
    overlay.session(|root| {
        fs::create_dir(root.join("closed")).unwrap();
        fs::create_dir(root.join("closed/inner")).unwrap();
        fs::write(root.join("closed/inner/file"), "hidden\n").unwrap();
        mode(&root.join("closed/inner/file"), 0);
        mode(&root.join("closed/inner"), 0o100);
        mode(&root.join("closed"), 0);
        mode(&root.join("f"), 0o000);
    });
    let upper_mode =
        || fs::symlink_metadata(overlay.upper().join("closed")).unwrap().permissions().mode();
    {
        let layers = overlay.layers();
        let set = scan(&layers).unwrap();
        let found = set.get(Path::new("closed/inner/file")).unwrap();
        assert_eq!(found.new.as_ref().unwrap().mode, 0);
        assert_eq!(set.get(Path::new("closed")).unwrap().new.as_ref().unwrap().mode, 0);
        assert_eq!(set.get(Path::new("f")).unwrap().kind, ChangeKind::ModeChanged);
        let mut out = Vec::new();
        crate::write_unified(&layers, &set, crate::RenderOptions::default(), &mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().contains("+hidden\n"));
    }
    assert_eq!(upper_mode() & 0o777, 0);
    mode(&overlay.upper().join("closed"), 0o700);
    mode(&overlay.upper().join("closed/inner"), 0o700);
}

#[test]
fn a_path_longer_than_the_kernel_takes_is_reported_and_not_entered() {
    let overlay = TestOverlay::new(|_| {});
    overlay.session(|root| {
        let name = "d".repeat(200);
        let mut dir = crate::test_overlay::directory(root);
        for _ in 0..25 {
            rustix::fs::mkdirat(&dir, &name, rustix::fs::Mode::RWXU).unwrap();
            let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::RDONLY;
            dir = rustix::fs::openat(&dir, &name, flags, rustix::fs::Mode::empty()).unwrap();
        }
    });
    let set = scan(&overlay.layers()).unwrap();
    assert_eq!(set.too_deep().len(), 1);
    assert_eq!(set.changes().len(), 20);
    crate::discard(crate::test_overlay::directory(&overlay.layer()).as_fd(), OsStr::new("upper"))
        .unwrap();
    assert!(!overlay.upper().exists());
}

/// A session works while somebody looks at its changes.
#[test]
fn changes_can_be_read_while_a_session_makes_them() {
    let overlay = TestOverlay::within(Path::new("/dev/shm"), |project| {
        fs::write(project.join("kept"), "kept").unwrap();
        fs::write(project.join("d"), "a file of the host").unwrap();
    });
    let upper = overlay.upper();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Ends by itself if the other thread fails.
            let start = std::time::Instant::now();
            while !is_over.load(Ordering::Relaxed) && start.elapsed().as_secs() < 60 {
                fs::create_dir(upper.join("new")).unwrap();
                for name in ["new/a", "new/b", "kept"] {
                    fs::write(upper.join(name), "something").unwrap();
                }
                symlink("a", upper.join("new/link")).unwrap();
                fs::remove_file(upper.join("kept")).unwrap();
                fs::remove_dir_all(upper.join("new")).unwrap();
            }
        });
        let (mut seen, mut scans) = (0, 0);
        let begin = std::time::Instant::now();
        // The other thread may not have run yet.
        while scans < 300 || (seen == 0 && begin.elapsed().as_secs() < 30) {
            scans += 1;
            let set = scan(&overlay.layers()).unwrap();
            seen += set.changes().len();
            let deleted = set.changes().iter().find(|change| change.kind == ChangeKind::Deleted);
            assert!(deleted.is_none(), "{deleted:?}");
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(seen > 0);
    });
}
