use super::*;
use std::fs;
use std::os::unix::fs::symlink;

fn held(prepare: impl FnOnce(&Path), path: &str, follows: bool) -> bool {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let top = root.join("target");
    fs::create_dir_all(top.join("debug")).unwrap();
    fs::create_dir(root.join("src")).unwrap();
    let dirs = BuildDirs::open(std::slice::from_ref(&top));
    prepare(&root);
    dirs.hold_path(root.join(path).as_os_str().as_bytes(), follows)
}

/// Proves: FS-9 build-dirs
#[test]
fn names_below_a_build_directory_are_left_to_the_kernel() {
    for path in ["target/new", "target/debug/new", "target/missing/new"] {
        assert!(held(|_| (), path, true) && held(|_| (), path, false), "{path}");
    }
    let old = |root: &Path| fs::write(root.join("target/old"), "").unwrap();
    assert!(held(old, "target/old", true));
}

/// Proves: FS-9 build-dirs
#[test]
fn what_landlock_might_refuse_is_performed() {
    for path in
        ["target", "target/", "target/.", "target/../src/new", "target/debug//new", "targets/new"]
    {
        assert!(!held(|_| (), path, true), "{path}");
    }
    let link = |root: &Path| symlink("../src", root.join("target/link")).unwrap();
    assert!(!held(link, "target/link/new", true));
    assert!(!held(link, "target/link", true));
    assert!(held(link, "target/link", false), "the link itself is in the build directory");
    let anew = |root: &Path| {
        fs::rename(root.join("target"), root.join("old")).unwrap();
        fs::create_dir(root.join("target")).unwrap();
    };
    assert!(!held(anew, "target/new", true), "it has no rights");
}

#[test]
fn only_what_writes_by_name_is_left_to_the_kernel() {
    let new = OFlags::CREATE | OFlags::WRONLY;
    for flags in [new, new | OFlags::TRUNC, OFlags::RDWR, OFlags::CREATE] {
        assert!(opens_by_name(flags), "{flags:?}");
    }
    for flags in [
        OFlags::TRUNC,
        OFlags::CREATE | OFlags::TRUNC,
        OFlags::TMPFILE | OFlags::RDWR,
        OFlags::RDWR | OFlags::DIRECTORY,
        OFlags::PATH | OFlags::CREATE,
    ] {
        assert!(!opens_by_name(flags), "{flags:?}");
    }
}
