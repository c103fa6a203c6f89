//! Who still uses what was taken back. A descriptor and a working directory outlast the mount they were opened on (umount2(2),
//! `MNT_DETACH`). For people to look at, never to decide by: processes come and go while they are counted.

use crate::process::{descendants, name_of};
use palisade_ask::message::StillOpen;
use palisade_sys::mounts::mount_id;
use rustix::fs::{Mode, OFlags};
use std::collections::HashSet;
use std::fs::read_dir;

/// So many processes are named.
const MAX_NAMED: usize = 64;
/// So many processes and descriptors are looked at in all: everything else waits meanwhile, and the command decides how many
/// there are.
const MAX_PROCESSES: usize = 2048;
const MAX_DESCRIPTORS: usize = 16 * 1024;

/// The mounts that a process sees, by the numbers that `/proc/PID/fdinfo` knows them by.
pub(super) fn mounts_of(pid: u32) -> HashSet<u64> {
    let table = std::fs::read(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
    let lines = table.split(|byte| *byte == b'\n');
    lines.filter_map(|line| number(line.split(|byte| *byte == b' ').next()?)).collect()
}

/// The processes below `roots` that use one of these mounts, and whether there may be more than are named.
pub(super) fn users_of(gone: &HashSet<u64>, roots: &[u32]) -> (Vec<StillOpen>, bool) {
    let mut left = MAX_DESCRIPTORS;
    let shown: HashSet<u64> = roots.iter().flat_map(|root| mounts_of(*root)).collect();
    let mut users = Vec::new();
    for (number, pid) in descendants(roots).into_iter().enumerate() {
        if users.len() == MAX_NAMED || number == MAX_PROCESSES || left == 0 {
            return (users, true);
        }
        let found = StillOpen {
            pid,
            name: String::new(),
            descriptors: descriptors_on(pid, gone, &mut left),
            is_cwd: is_in(pid, gone),
            has_own_mounts: is_elsewhere(&mounts_of(pid), &shown),
        };
        if found.is_cwd || found.has_own_mounts || !found.descriptors.is_empty() {
            users.push(StillOpen { name: name_of(pid), ..found });
        }
    }
    (users, false)
}

/// Whether these are the mounts of another namespace, which has copies of those that were there when it was made. The
/// kernel does not name the namespace of pid 1, which is undumpable.
fn is_elsewhere(mounts: &HashSet<u64>, shown: &HashSet<u64>) -> bool {
    !mounts.is_empty() && mounts.is_disjoint(shown)
}

/// Looks at no more than are `left` to be looked at.
fn descriptors_on(pid: u32, gone: &HashSet<u64>, left: &mut usize) -> Vec<u32> {
    let Ok(entries) = read_dir(format!("/proc/{pid}/fdinfo")) else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut open: Vec<u32> = numbers
        .take(*left)
        .inspect(|_| *left -= 1)
        .filter(|descriptor: &u32| {
            let told = std::fs::read(format!("/proc/{pid}/fdinfo/{descriptor}"));
            told.is_ok_and(|told| mount_in(&told).is_some_and(|mount| gone.contains(&mount)))
        })
        .collect();
    open.sort_unstable();
    open
}

/// proc_pid_fdinfo(5)
fn mount_in(told: &[u8]) -> Option<u64> {
    told.split(|byte| *byte == b'\n').find_map(|line| number(line.strip_prefix(b"mnt_id:")?))
}

fn is_in(pid: u32, gone: &HashSet<u64>) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let cwd = rustix::fs::open(format!("/proc/{pid}/cwd"), flags, Mode::empty());
    cwd.is_ok_and(|cwd| mount_id(&cwd).is_ok_and(|mount| gone.contains(&mount)))
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd as _;
    use std::process::{Command, Stdio};

    #[test]
    fn who_has_something_open_on_a_mount_is_found() {
        let own = std::process::id();
        let file = File::open("/proc/self/status").unwrap();
        let proc = mount_id(&file).unwrap();
        assert!(mounts_of(own).contains(&proc));
        let descriptor = u32::try_from(file.as_raw_fd()).unwrap();
        let on =
            |pid: u32, gone: &HashSet<u64>, mut left: usize| descriptors_on(pid, gone, &mut left);
        assert!(on(own, &HashSet::from([proc]), 100).contains(&descriptor));
        assert!(on(own, &HashSet::from([proc]), 0).is_empty());
        assert!(on(own, &HashSet::new(), 100).is_empty());
        assert!(mounts_of(u32::MAX).is_empty() && on(u32::MAX, &mounts_of(own), 100).is_empty());
    }

    #[test]
    fn who_is_in_a_directory_of_it_is_found_with_its_name() {
        let mut child =
            Command::new("cat").current_dir("/proc").stdin(Stdio::piped()).spawn().unwrap();
        let proc = mount_id(File::open("/proc").unwrap()).unwrap();
        let (users, has_more) = users_of(&HashSet::from([proc]), &[std::process::id()]);
        let found = users.iter().find(|user| user.pid == child.id()).unwrap();
        assert!(found.is_cwd && !found.has_own_mounts && !has_more, "{users:?}");
        assert_eq!(found.name, "cat");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
