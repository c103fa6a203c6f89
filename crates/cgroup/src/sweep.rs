//! Removes the groups that killed supervisors left behind. Must never remove a group that is in use, or whose name is
//! not one of ours.

use crate::directory::lock_named;
use std::ffi::OsStr;
use std::path::Path;

const PREFIX: &str = "palisade-";
/// How many are checked at once: this is part of every start.
const MAX_SWEPT: usize = 16;

/// The name of a run's group.
pub(crate) fn group_name(session: &str) -> String {
    format!("{PREFIX}{session}")
}

/// Removes groups in `parent` that no process has locked. The kernel refuses to remove one that contains processes.
pub(crate) fn sweep(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    let mut ours: Vec<_> =
        entries.flatten().map(|entry| entry.file_name()).filter(|name| is_of_a_run(name)).collect();
    if ours.is_empty() {
        return;
    }
    // If there are many, each run checks different ones.
    let start = std::process::id() as usize % ours.len();
    ours.rotate_left(start);
    for name in ours.iter().take(MAX_SWEPT) {
        let path = parent.join(name);
        if let Some(lock) = lock_named(&path) {
            let _ = rustix::fs::rmdir(&path);
            // Not earlier: a process that has just created it and waits for the lock must see that it was removed.
            drop(lock);
        }
    }
}

/// `palisade-` and a session id, a UUID; or the group that the doctor tries, named after its process id.
fn is_of_a_run(name: &OsStr) -> bool {
    let Some(id) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { return false };
    if let Some(pid) = id.strip_prefix("doctor-") {
        return pid.parse::<u32>().is_ok();
    }
    let is_right = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    id.len() == 36 && id.bytes().enumerate().all(is_right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Directory;

    const LEFT: &str = "palisade-019f0000-0000-7000-8000-000000000001";
    const TRIED: &str = "palisade-doctor-4711";
    const HELD: &str = "palisade-019f0000-0000-7000-8000-000000000002";

    #[test]
    fn only_what_nobody_holds_and_is_named_like_a_run_goes() {
        let parent = tempfile::tempdir().unwrap();
        let others = ["palisade-doctor-x", "palisade-", "docker", &format!("{LEFT}x")];
        for name in others.iter().copied().chain([LEFT, TRIED]) {
            std::fs::create_dir(parent.path().join(name)).unwrap();
        }
        let held = Directory::make(parent.path(), OsStr::new(HELD)).unwrap();
        sweep(parent.path());
        assert!(!parent.path().join(LEFT).exists() && !parent.path().join(TRIED).exists());
        assert!(held.path().exists());
        for name in others {
            assert!(parent.path().join(name).exists(), "{name}");
        }
        drop(held);
        assert!(!parent.path().join(HELD).exists());
    }
}
