use super::*;
use std::fs;
use std::os::unix::fs::symlink;

struct Project {
    root: tempfile::TempDir,
    dirs: NativeDirs,
}

impl Project {
    /// With a mount of the run's own and, in a tree beside it, a directory of build output.
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        for dir in ["target/debug", "overlay/src", "overlay/inner", "src"] {
            fs::create_dir_all(path.join(dir)).unwrap();
        }
        let own = [path.join("overlay"), path.join("overlay/inner")];
        let dirs = NativeDirs::open(&own, &[path.join("target")], &[]);
        Self { root, dirs }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(below)
    }

    fn find(&self, below: &str) -> Option<Below<'_>> {
        self.dirs.find(self.path(below).as_os_str().as_bytes().to_vec())
    }

    fn holds(&self, below: &str, follows: bool) -> bool {
        self.find(below).is_some_and(|below| below.is_within(follows))
    }

    fn hold_both(&self, from: &str, to: &str) -> bool {
        match (self.find(from), self.find(to)) {
            (Some(from), Some(to)) => gets_another_name(&from, &to),
            _ => false,
        }
    }
}

/// Proves: FS-9 build-dirs
#[test]
fn names_below_a_native_directory_are_left_to_the_kernel() {
    let project = Project::new();
    for path in ["target/new", "target/debug/new", "target/missing/new", "overlay/src/new"] {
        assert!(project.holds(path, true) && project.holds(path, false), "{path}");
    }
    fs::write(project.path("target/old"), "").unwrap();
    assert!(project.holds("target/old", true));
}

/// Proves: FS-9 build-dirs
#[test]
fn what_landlock_might_refuse_is_performed() {
    let project = Project::new();
    for path in
        ["target", "target/", "target/.", "target/../src/new", "target/debug//new", "targets/new"]
    {
        assert!(!project.holds(path, true), "{path}");
    }
    symlink("../src", project.path("target/link")).unwrap();
    assert!(!project.holds("target/link/new", true));
    assert!(!project.holds("target/link", true));
    assert!(project.holds("target/link", false), "the link itself is in the build directory");
    fs::rename(project.path("target"), project.path("old")).unwrap();
    fs::create_dir(project.path("target")).unwrap();
    assert!(!project.holds("target/new", true), "it has no rights");
}

#[test]
fn only_files_of_one_mount_of_the_runs_own_are_renamed_by_the_kernel() {
    let project = Project::new();
    for file in ["overlay/src/file", "overlay/inner/file", "target/file"] {
        fs::write(project.path(file), "").unwrap();
    }
    assert!(project.hold_both("overlay/src/file", "overlay/new"));
    assert!(!project.hold_both("overlay/src", "overlay/moved"), "a directory of a lower layer");
    assert!(!project.hold_both("overlay/src/missing", "overlay/new"));
    assert!(!project.hold_both("overlay/src/file", "overlay/inner/new"), "another mount");
    assert!(!project.hold_both("target/file", "target/new"), "build output has no such right");
    assert!(!project.hold_both("target/file", "overlay/new"));
    assert!(!project.hold_both("overlay/src/file", "src/new"));
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
