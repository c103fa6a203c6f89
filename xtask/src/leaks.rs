//! What a test run may leave behind: nothing. Compares the host before and after, and looks for
//! orphans among the tasks' own children. Only ever reads; cleaning up would hide the defect.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::setup::TestUser;

/// How long processes that are already dying may take to be gone.
const GRACE: Duration = Duration::from_secs(3);
/// Words in the names of what is ours.
const OURS: [&str; 2] = ["palisade", "sandbox"];
/// Directories that every user can write and tests share with the rest of the host.
const SHARED: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/run"];
/// Where state would go, below a home.
const STATE: [&str; 4] =
    [".config/palisade", ".cache/palisade", ".local/share/palisade", ".local/state/palisade"];

/// The traces on the host at one moment.
#[derive(Debug)]
pub(crate) struct Traces(BTreeSet<String>);

/// Makes this process the parent of every orphan below it, so that a test's stray process can be
/// told from any other process of the host.
pub(crate) fn adopt_orphans() -> Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .context("PR_SET_CHILD_SUBREAPER")
}

impl Traces {
    /// Looks at the host.
    pub(crate) fn now(user: Option<&TestUser>, watched: &[&Path]) -> Result<Self> {
        let mut found = BTreeSet::new();
        mounts(&mut found)?;
        let mut cgroups = Vec::new();
        directories_named_ours(Path::new("/sys/fs/cgroup"), 4, &mut cgroups);
        found.extend(cgroups.iter().map(|path| format!("cgroup {}", path.display())));
        for directory in SHARED {
            shared_files(Path::new(directory), user, &mut found);
        }
        for home in home_directory().iter().chain(user.map(|user| &user.home)) {
            for state in STATE {
                files_below(&home.join(state), &mut found);
            }
        }
        for directory in watched {
            files_below(directory, &mut found);
        }
        Ok(Self(found))
    }

    /// What is there now and was not before.
    pub(crate) fn since(&self, before: &Self) -> Vec<String> {
        self.0.difference(&before.0).cloned().collect()
    }
}

/// Processes a test started and nobody ended; call when no test runs any more.
pub(crate) fn orphans() -> Result<Vec<String>> {
    let start = Instant::now();
    loop {
        let left = living_children()?;
        if left.is_empty() || start.elapsed() > GRACE {
            return Ok(left);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn living_children() -> Result<Vec<String>> {
    let me = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("/proc")? {
        let process = entry?.path();
        let Ok(stat) = fs::read_to_string(process.join("stat")) else { continue };
        // `pid (name) state parent …`; the name may hold blanks and brackets.
        let Some((_, after_name)) = stat.rsplit_once(") ") else { continue };
        let mut fields = after_name.split(' ');
        let (state, parent) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
        if parent == me && state != "Z" {
            found.push(describe_process(&process));
        }
    }
    Ok(found)
}

fn describe_process(process: &Path) -> String {
    let pid = process.file_name().unwrap_or_default().to_string_lossy();
    let words = |file: &str| {
        let bytes = fs::read(process.join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let environment = words("environ");
    let test = environment
        .split('\0')
        .find_map(|variable| variable.strip_prefix("PALISADE_TEST_NAME="))
        .unwrap_or("unknown");
    format!("process {pid} `{}` (test {test})", words("cmdline").replace('\0', " ").trim_end())
}

fn mounts(found: &mut BTreeSet<String>) -> Result<()> {
    let table = fs::read_to_string("/proc/self/mountinfo").context("/proc/self/mountinfo")?;
    found.extend(table.lines().map(|line| format!("mount {line}")));
    Ok(())
}

fn directories_named_ours(directory: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
    {
        let path = entry.path();
        if is_ours(&path) {
            found.push(path);
        } else if depth > 0 {
            directories_named_ours(&path, depth - 1, found);
        }
    }
}

fn shared_files(directory: &Path, user: Option<&TestUser>, found: &mut BTreeSet<String>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let belongs_to_test_user = user.is_some_and(|user| {
            fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.uid() == user.uid)
        });
        if is_ours(&path) || belongs_to_test_user {
            found.insert(format!("file {}", path.display()));
        }
    }
}

fn files_below(path: &Path, found: &mut BTreeSet<String>) {
    let Ok(metadata) = fs::symlink_metadata(path) else { return };
    found.insert(format!("file {}", path.display()));
    if metadata.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            files_below(&entry.path(), found);
        }
    }
}

fn is_ours(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    OURS.iter().any(|word| name.contains(word))
}

fn home_directory() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from)
}
