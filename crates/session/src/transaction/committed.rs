//! The common version for merging a file that both the session and the host changed: the one in the commit that was checked
//! out when the transaction started.
//!
//! A later commit must never be taken for it: it has the host's changes, which would then look as if the session had
//! removed them.

use palisade_changes::BaseContents;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Far longer than a commit's name, or the line of a reference.
const MAX_NAME_BYTES: u64 = 4096;
/// Where git keeps most references of a large repository.
const MAX_PACKED_BYTES: u64 = 64 << 20;
/// Larger files are not merged either.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The commit that is checked out in a project, read from git's files: this is on the way of every start.
pub(super) fn checked_out(project: &Path) -> Option<String> {
    let git = git_directory(project)?;
    let head = text(&git.join("HEAD"), MAX_NAME_BYTES)?;
    let Some(name) = head.trim_end().strip_prefix("ref: ") else { return commit(&head) };
    if name.split('/').any(|part| part == "..") || !name.starts_with("refs/") {
        return None;
    }
    let common = text(&git.join("commondir"), MAX_NAME_BYTES);
    let common = common.map_or_else(|| git.clone(), |common| git.join(common.trim_end()));
    let loose = [&git, &common].into_iter().find_map(|at| text(&at.join(name), MAX_NAME_BYTES));
    if let Some(loose) = loose {
        return commit(&loose);
    }
    let packed = text(&common.join("packed-refs"), MAX_PACKED_BYTES)?;
    let listed = packed.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' '));
    listed.and_then(commit)
}

fn git_directory(project: &Path) -> Option<PathBuf> {
    let git = project.ancestors().map(|above| above.join(".git")).find(|git| git.exists())?;
    if git.is_dir() {
        return Some(git);
    }
    // A worktree or a submodule.
    let link = text(&git, MAX_NAME_BYTES)?;
    Some(git.parent()?.join(link.trim_end().strip_prefix("gitdir: ")?))
}

fn text(path: &Path, most: u64) -> Option<String> {
    // A FIFO would keep the start waiting.
    let flags = rustix::fs::OFlags::RDONLY
        | rustix::fs::OFlags::NONBLOCK
        | rustix::fs::OFlags::NOCTTY
        | rustix::fs::OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, rustix::fs::Mode::empty()).ok()?;
    // Nor is anything read from a device.
    let found = rustix::fs::fstat(&file).ok()?;
    if !rustix::fs::FileType::from_raw_mode(found.st_mode).is_file() {
        return None;
    }
    let mut text = String::new();
    File::from(file).take(most).read_to_string(&mut text).ok()?;
    Some(text)
}

fn commit(text: &str) -> Option<String> {
    let name = text.trim();
    let is_hex = name.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hex && matches!(name.len(), 40 | 64)).then(|| name.to_owned())
}

/// The files of that commit.
#[derive(Debug)]
pub struct CommittedContents {
    project: PathBuf,
    commit: Option<String>,
}

impl CommittedContents {
    pub(super) fn new(project: &Path, commit: Option<&str>) -> Self {
        // It came from a file.
        Self { project: project.to_owned(), commit: commit.and_then(self::commit) }
    }
}

impl BaseContents for CommittedContents {
    fn base(&self, path: &Path) -> Option<Vec<u8>> {
        let mut object = OsString::from(self.commit.as_ref()?);
        object.push(":./");
        object.push(path);
        let mut git = Command::new("git");
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"GIT_") {
                git.env_remove(name);
            }
        }
        // Nothing is fetched from anywhere, and no program of the project's settings is run.
        git.env("GIT_NO_LAZY_FETCH", "1").env("GIT_OPTIONAL_LOCKS", "0");
        // An older git does not know the first: no way to fetch is allowed.
        git.env("GIT_ALLOW_PROTOCOL", "");
        git.args(["-c", "core.fsmonitor=false", "--no-replace-objects", "cat-file", "blob"]);
        git.arg(&object).current_dir(&self.project);
        git.stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped());
        let mut child = git.spawn().ok()?;
        let mut contents = Vec::new();
        let read = child.stdout.take()?.take(MAX_FILE_BYTES + 1).read_to_end(&mut contents);
        let is_whole = read.is_ok() && contents.len() as u64 <= MAX_FILE_BYTES;
        if !is_whole {
            let _ = child.kill();
        }
        let ended = child.wait().ok()?;
        (is_whole && ended.success()).then_some(contents)
    }
}

#[cfg(test)]
#[path = "committed_tests.rs"]
mod tests;
