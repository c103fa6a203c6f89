use super::*;
use std::fs;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use tempfile::TempDir;

const HARMLESS: &str = "[core]\n\tbare = false\n[user]\n\tname = Test\n";
const EVIL: &str = "[core]\n\tfsmonitor = evil-program\n";

fn opened(dir: &Path) -> OwnedFd {
    openat(rustix::fs::CWD, dir, crate::DIRECTORY, NO_MODE).unwrap()
}

fn with(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    for (name, content) in files {
        let path = dir.path().join(name);
        match name.strip_suffix('/') {
            Some(_) => fs::create_dir_all(path).unwrap(),
            None => {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
        }
    }
    dir
}

fn commit(dir: &TempDir, from: &str, to: &str) -> Result<Result<(), Errno>, Denied> {
    let fd = opened(dir.path());
    let place = setting(dir.path(), dir.path());
    commit_config((fd.as_fd(), OsStr::new(from)), fd.as_fd(), OsStr::new(to), &place)
}

fn adopted(dir: &TempDir) -> Result<(), Denied> {
    let place = setting(dir.path(), dir.path());
    adopt(opened(dir.path()).as_fd(), &place)
}

fn rule_of(judged: Result<(), Denied>) -> String {
    judged.unwrap_err().rule
}

/// Every set of the names that matter: git's own rule, and where another one's `commondir` may point.
///
/// Proves: FS-9 git-structure
#[test]
fn a_git_directory_is_known_by_what_is_in_it() {
    let names = ["HEAD", "objects", "refs", "commondir", "config", "hooks"];
    for set in 0..1_u32 << names.len() {
        let is_in = |index: usize| set & (1 << index) != 0;
        let dir = with(&[]);
        for (index, name) in names.iter().enumerate().filter(|(index, _)| is_in(*index)) {
            let path = dir.path().join(name);
            if matches!(index, 1 | 2 | 5) {
                fs::create_dir(path).unwrap();
            } else {
                fs::write(path, "").unwrap();
            }
        }
        let expected = (is_in(1) && is_in(2)) || (is_in(0) && is_in(3));
        let fd = opened(dir.path());
        assert_eq!(is_git_directory(fd.as_fd(), None), expected, "{set:b}");
        for (index, marker) in
            [Marker::Head, Marker::Objects, Marker::Refs, Marker::CommonDirectory]
                .iter()
                .enumerate()
        {
            let has = |wanted: usize| is_in(wanted) || wanted == index;
            let soon = (has(1) && has(2)) || (has(0) && has(3));
            assert_eq!(is_git_directory(fd.as_fd(), Some(*marker)), soon, "{set:b} {marker:?}");
        }
    }
}

/// Where a name leads does not count: a dangling link becomes a directory later, by no call of ours.
///
/// Proves: FS-9 git-structure
#[test]
fn links_count_as_what_they_are_called() {
    let dir = with(&[]);
    symlink("/nowhere", dir.path().join("objects")).unwrap();
    symlink("loop", dir.path().join("refs")).unwrap();
    assert!(is_git_directory(opened(dir.path()).as_fd(), None));
}

/// Proves: FS-9 variants
#[test]
fn parts_are_known_in_other_letters() {
    for (name, part) in [
        ("config", Part::Config),
        ("CONFIG", Part::Config),
        ("con\u{fb01}g", Part::Config),
        ("Config.Worktree", Part::Config),
        ("HOOKS", Part::Hooks),
        ("h\u{200c}ooks", Part::Hooks),
        ("head", Part::Marker(Marker::Head)),
        (".GIT", Part::Itself),
        (".g\u{200b}it", Part::Itself),
    ] {
        assert_eq!(Part::of(OsStr::new(name)), Some(part), "{name:?}");
    }
    for name in ["config.lock", "hook", "HEADS", "git", ".gitignore", "configuration"] {
        assert_eq!(Part::of(OsStr::new(name)), None, "{name:?}");
    }
}

/// Proves: FS-9 git-structure
#[test]
fn samples_are_no_hooks() {
    for (name, is_one) in [
        ("pre-commit", true),
        ("pre-commit.sample", false),
        ("PRE-COMMIT.SAMPLE", false),
        ("sample", true),
        ("pre-commit.sample.sh", true),
        // On a file system that drops what follows, still no hook.
        ("pre-commit.sample.", false),
    ] {
        assert_eq!(is_hook(OsStr::new(name)), is_one, "{name}");
    }
}

/// Proves: FS-9 git-structure
#[test]
fn hooks_that_come_with_a_directory_must_be_samples() {
    for (files, expected) in [
        (&[("hooks/", "")][..], true),
        (&[("hooks/pre-commit.sample", "x"), ("hooks/more/", "")], true),
        (&[("hooks/more/pre-commit", "x")], true),
        (&[("hooks/pre-commit", "x")], false),
        (&[("hooks", "a file")], false),
    ] {
        assert_eq!(adopted(&with(files)).is_ok(), expected, "{files:?}");
    }
    let dir = with(&[("elsewhere/pre-commit", "x")]);
    symlink("elsewhere", dir.path().join("hooks")).unwrap();
    assert_eq!(rule_of(adopted(&dir)), "git hooks", "a link may lead to other hooks later");
    let dir = with(&[("hooks/", "")]);
    symlink("../somewhere", dir.path().join("hooks/post-checkout")).unwrap();
    assert_eq!(rule_of(adopted(&dir)), "git hooks");
}

/// Whoever wrote the file before it counted still holds it open.
///
/// Proves: FS-9 git-structure
#[test]
fn an_adopted_configuration_is_nobodys_but_ours() {
    for name in ["config", "config.worktree"] {
        let dir = with(&[(name, HARMLESS)]);
        let path = dir.path().join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let mut held = fs::OpenOptions::new().append(true).open(&path).unwrap();
        fs::hard_link(&path, dir.path().join("second-name")).unwrap();
        adopted(&dir).unwrap();

        held.write_all(EVIL.as_bytes()).unwrap();
        fs::write(dir.path().join("second-name"), EVIL).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), HARMLESS);
        let found = fs::metadata(&path).unwrap();
        assert_eq!((found.nlink(), found.mode() & 0o7777), (1, 0o640));
        assert!(!dir.path().join(COPY).exists());
    }
}

/// Proves: FS-9 git-structure
#[test]
fn a_configuration_that_cannot_be_judged_is_not_adopted() {
    let too_long = format!("{HARMLESS}#{}\n", "x".repeat(MAX_CONFIG_BYTES));
    for content in [EVIL, "[core", "\0", too_long.as_str()] {
        assert!(
            adopted(&with(&[("config", content)])).is_err(),
            "{}",
            &content[..5.min(content.len())]
        );
        assert!(adopted(&with(&[("config.worktree", content)])).is_err());
    }
    assert!(adopted(&with(&[("config/inner", "a directory")])).is_err());
    let dir = with(&[("harmless", HARMLESS)]);
    symlink("harmless", dir.path().join("config")).unwrap();
    assert!(adopted(&dir).is_err(), "a link may lead to another one later");
    let dir = with(&[]);
    rustix::fs::mknodat(rustix::fs::CWD, dir.path().join("config"), FileType::Fifo, Mode::RUSR, 0)
        .unwrap();
    assert!(adopted(&dir).is_err(), "and nobody waits for a pipe's writer");
    let dir = with(&[("config", HARMLESS)]);
    fs::set_permissions(dir.path().join("config"), fs::Permissions::from_mode(0o000)).unwrap();
    if !rustix::process::geteuid().is_root() {
        assert!(adopted(&dir).is_err(), "what cannot be read is not judged");
    }
}

/// Proves: FS-9 git-structure, FS-9 git-works
#[test]
fn a_configuration_is_committed_as_a_copy() {
    let dir = with(&[("config", HARMLESS), ("config.lock", "[user]\n\tname = Other\n")]);
    let lock = dir.path().join("config.lock");
    let mut held = fs::OpenOptions::new().read(true).append(true).open(&lock).unwrap();
    commit(&dir, "config.lock", "config").unwrap().unwrap();
    assert!(!lock.exists());

    held.write_all(EVIL.as_bytes()).unwrap();
    let mut text = String::new();
    held.rewind().unwrap();
    held.read_to_string(&mut text).unwrap();
    assert!(text.contains("evil-program"), "what was held could be written");
    let now = fs::read_to_string(dir.path().join("config")).unwrap();
    assert_eq!(now, "[user]\n\tname = Other\n");
}

/// Proves: FS-9 git-structure, FS-9 git-keys
#[test]
fn a_refused_configuration_changes_nothing() {
    let dir = with(&[("config", HARMLESS), ("config.lock", EVIL)]);
    assert!(commit(&dir, "config.lock", "config").is_err());
    assert_eq!(fs::read_to_string(dir.path().join("config")).unwrap(), HARMLESS);
    assert_eq!(fs::read_to_string(dir.path().join("config.lock")).unwrap(), EVIL);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

/// Proves: FS-9 git-keys
#[test]
fn what_was_configured_before_stays() {
    let both = format!("{EVIL}{HARMLESS}");
    let dir = with(&[("config", EVIL), ("config.lock", &both)]);
    commit(&dir, "config.lock", "config").unwrap().unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("config")).unwrap(), both);
}

#[test]
fn a_source_that_is_not_there_is_the_kernels_answer() {
    let dir = with(&[("config", HARMLESS)]);
    assert_eq!(commit(&dir, "config.lock", "config"), Ok(Err(Errno::NOENT)));
}

/// Proves: FS-9 git-structure
#[test]
fn what_is_no_plain_file_is_not_committed() {
    let dir = with(&[("config", HARMLESS), ("harmless", HARMLESS), ("directory/", "")]);
    symlink("harmless", dir.path().join("link")).unwrap();
    for source in ["link", "directory"] {
        assert!(commit(&dir, source, "config").is_err(), "{source}");
    }
    // Nor is a link followed where the configuration is to stand.
    let dir = with(&[("harmless", HARMLESS), ("config.lock", HARMLESS)]);
    symlink("harmless", dir.path().join("config")).unwrap();
    assert!(commit(&dir, "config.lock", "config").is_err());
}

/// A broker that was killed while it wrote left its copy behind.
///
/// Proves: FS-9 no-placeholder
#[test]
fn a_copy_left_behind_is_in_nobodys_way() {
    let dir = with(&[("config.lock", HARMLESS), (COPY, "half")]);
    commit(&dir, "config.lock", "config").unwrap().unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("config")).unwrap(), HARMLESS);
    assert!(!dir.path().join(COPY).exists());
}

/// What git says of a worktree in two files must agree, or it says nothing.
///
/// Proves: FS-9 git-structure
#[test]
fn the_files_of_a_worktree_are_where_both_sides_say() {
    let dir = with(&[("main/worktrees/wt/", ""), ("files/", ""), ("other/", "")]);
    let top = dir.path().canonicalize().unwrap();
    let tree = top.join("main/worktrees/wt");
    assert_eq!(worktree_of(&tree), None);
    let pointer = tree.join("gitdir");
    fs::write(&pointer, format!("{}\n", top.join("files/.git").display())).unwrap();
    assert_eq!(worktree_of(&tree), None, "nothing points back");
    fs::write(top.join("files/.git"), format!("gitdir: {}\n", tree.display())).unwrap();
    assert_eq!(worktree_of(&tree), Some(top.join("files")));
    fs::write(&pointer, "../../../files/.git\n").unwrap();
    assert_eq!(worktree_of(&tree), Some(top.join("files")), "from where it stands");
    fs::write(&pointer, "../../../other/.git\n").unwrap();
    fs::write(top.join("other/.git"), "gitdir: ../main/worktrees/another\n").unwrap();
    assert_eq!(worktree_of(&tree), None, "it points at another one");
    fs::write(&pointer, "../../../files\n").unwrap();
    assert_eq!(worktree_of(&tree), None);
    assert_eq!(worktree_of(&top.join("main")), None);
}
