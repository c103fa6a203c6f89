use super::{CommittedContents, checked_out};
use palisade_changes::BaseContents as _;
use std::fs;
use std::path::Path;
use std::process::Command;

fn git(directory: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=n", "-c", "user.email=e@example.org"]).args(words);
    let output =
        command.current_dir(directory).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn repository() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    git(directory.path(), &["init", "-q"]);
    fs::create_dir(directory.path().join("sub")).unwrap();
    fs::write(directory.path().join("sub/file"), "first\n").unwrap();
    git(directory.path(), &["add", "."]);
    git(directory.path(), &["commit", "-qm", "first"]);
    directory
}

#[test]
fn the_commit_is_found_loose_packed_detached_and_in_a_worktree() {
    let directory = repository();
    let path = directory.path();
    let commit = git(path, &["rev-parse", "HEAD"]);
    assert_eq!(checked_out(path), Some(commit.clone()));
    assert_eq!(checked_out(&path.join("sub")), Some(commit.clone()));
    git(path, &["pack-refs", "--all"]);
    assert_eq!(checked_out(path), Some(commit.clone()));
    let tree = tempfile::tempdir().unwrap();
    git(path, &["worktree", "add", "-q", "-b", "other", tree.path().join("t").to_str().unwrap()]);
    assert_eq!(checked_out(&tree.path().join("t")), Some(commit.clone()));
    git(path, &["checkout", "-q", "--detach"]);
    assert_eq!(checked_out(path), Some(commit));
}

#[test]
fn what_is_no_commit_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let git = directory.path().join(".git");
    fs::create_dir(&git).unwrap();
    assert_eq!(checked_out(directory.path()), None);
    for head in ["", "ref: ../../outside", "ref: refs/heads/none", "-upload-pack=evil", "12345"] {
        fs::write(git.join("HEAD"), head).unwrap();
        assert_eq!(checked_out(directory.path()), None, "{head}");
    }
}

/// A device that never ends, or a FIFO with a writer, is no file of git's.
#[test]
fn only_regular_files_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let commit = "0123456789012345678901234567890123456789";
    let fifo = directory.path().join("fifo");
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, mode, 0).unwrap();
    let mut writer = fs::File::options().read(true).write(true).open(&fifo).unwrap();
    std::io::Write::write_all(&mut writer, commit.as_bytes()).unwrap();
    let git = directory.path().join(".git");
    fs::create_dir(&git).unwrap();
    fs::write(git.join("HEAD"), commit).unwrap();
    assert_eq!(checked_out(directory.path()).as_deref(), Some(commit));
    for other in [fifo.as_path(), Path::new("/dev/zero")] {
        fs::remove_file(git.join("HEAD")).unwrap();
        std::os::unix::fs::symlink(other, git.join("HEAD")).unwrap();
        assert_eq!(super::text(&git.join("HEAD"), 10), None, "{}", other.display());
        assert_eq!(checked_out(directory.path()), None);
    }
}

#[test]
fn the_contents_are_those_of_the_commit_whatever_came_later() {
    let directory = repository();
    let path = directory.path();
    let commit = checked_out(path).unwrap();
    fs::write(path.join("sub/file"), "second\n").unwrap();
    git(path, &["commit", "-qam", "second"]);
    let committed = CommittedContents::new(path, Some(&commit));
    assert_eq!(committed.base(Path::new("sub/file")), Some(b"first\n".to_vec()));
    let below = CommittedContents::new(&path.join("sub"), Some(&commit));
    assert_eq!(below.base(Path::new("file")), Some(b"first\n".to_vec()));
    assert_eq!(committed.base(Path::new("missing")), None);
    assert_eq!(CommittedContents::new(path, Some("HEAD")).base(Path::new("sub/file")), None);
    assert_eq!(CommittedContents::new(path, None).base(Path::new("sub/file")), None);
}
