//! Mounts served by another machine or program. A lookup there may never return, and would block all other
//! calls.
//!
//! It is not needed either: what is missing in a mount of the host is missing on the host, and there is nothing
//! to ask. A path is recognised by its text; one that leads there through a link elsewhere is looked up all the
//! same.

use crate::below::is_below;
use crate::caller::Caller;
use crate::{NO_MODE, call::CWD};
use palisade_sys::OFlags;
use rustix::fs::{openat, readlinkat};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;

/// As mountinfo names them (proc_pid_mountinfo(5)); all that start with `fuse` as well.
const KINDS: [&[u8]; 18] = [
    b"9p",
    b"afs",
    b"autofs",
    b"beegfs",
    b"ceph",
    b"cifs",
    b"coda",
    b"glusterfs",
    b"gpfs",
    b"lustre",
    b"ncpfs",
    b"nfs",
    b"nfs4",
    b"orangefs",
    b"pvfs2",
    b"smb3",
    b"smbfs",
    b"virtiofs",
];

/// Every mount in the order of creation; empty if none is remote.
#[derive(Debug, Default)]
pub(crate) struct Remote(Vec<Mount>);

#[derive(Debug, PartialEq, Eq)]
struct Mount {
    top: Vec<u8>,
    is_remote: bool,
}

impl Remote {
    /// Of a process that sees what the command sees.
    pub(crate) fn look_up(proc: &OwnedFd) -> Self {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mut text = Vec::new();
        // If unknown, everything is looked up.
        let opened = openat(proc, "self/mountinfo", flags, NO_MODE);
        let read = opened.map(|file| File::from(file).read_to_end(&mut text));
        if matches!(read, Ok(Ok(_))) { Self::of(&text) } else { Self::default() }
    }

    fn of(mountinfo: &[u8]) -> Self {
        let mounts: Vec<Mount> =
            mountinfo.split(|byte| *byte == b'\n').filter_map(Mount::of).collect();
        if mounts.iter().any(|mount| mount.is_remote) { Self(mounts) } else { Self::default() }
    }

    /// Whether a path of the caller is on a remote mount, as far as its text shows.
    pub(crate) fn has(&self, caller: &Caller, dir: i32, path: &[u8]) -> bool {
        if self.0.is_empty() {
            return false;
        }
        if path.starts_with(b"/") {
            return self.is_below(path);
        }
        let base = match dir {
            CWD => format!("{}/cwd", caller.thread.as_raw_pid()),
            number => caller.file_path(number),
        };
        readlinkat(caller.proc, base, Vec::new()).is_ok_and(|base| self.is_below(base.as_bytes()))
    }

    fn is_below(&self, path: &[u8]) -> bool {
        let above = self.0.iter().filter(|mount| mount.top == b"/" || is_below(path, &mount.top));
        // Of two mounts at one path the later one counts, and comes last.
        above.max_by_key(|mount| mount.top.len()).is_some_and(|mount| mount.is_remote)
    }
}

impl Mount {
    fn of(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let top = unescaped(fields.nth(4)?);
        let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
        let is_remote = KINDS.contains(&kind) || kind.starts_with(b"fuse");
        Some(Self { top, is_remote })
    }
}

/// Blanks and the like are written as three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, after @ ..] = rest {
        rest = after;
        let code = (*first == b'\\').then(|| after.get(..3)).flatten();
        let code = code.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => bytes.push(*first),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::{Mount, Remote, unescaped};

    const MOUNTS: &str = "\
22 1 0:20 / / rw - tmpfs tmpfs rw
23 22 8:1 /usr /usr ro,nosuid master:1 - ext4 /dev/sda1 rw
24 22 0:45 / /net/my\\040files ro shared:3 master:1 - nfs4 server:/export rw,vers=4.2
25 24 0:46 / /net/my\\040files/mine rw - tmpfs tmpfs rw
26 22 0:47 / /sshfs rw - fuse.sshfs host: rw
27 22 0:48 / /over rw - cifs //host/share rw
28 22 0:49 / /over rw - ext4 /dev/sda2 rw
";

    /// Proves: GATE-5 undisturbed
    #[test]
    fn the_nearest_mount_tells_whether_it_is_looked_at() {
        let remote = Remote::of(MOUNTS.as_bytes());
        for path in ["/net/my files", "/net/my files/a/b", "/sshfs/x", "/net/my files//x"] {
            assert!(remote.is_below(path.as_bytes()), "{path}");
        }
        for path in
            ["/", "/usr/bin", "/net", "/net/my filesystem", "/net/my files/mine/x", "/over/x"]
        {
            assert!(!remote.is_below(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn without_such_a_mount_nothing_is_remembered() {
        let local: String = MOUNTS.lines().take(2).map(|line| format!("{line}\n")).collect();
        assert!(Remote::of(local.as_bytes()).0.is_empty());
        assert_eq!(Mount::of(b"22 1 0:20 /"), None);
    }

    #[test]
    fn a_backslash_that_is_no_escape_stays() {
        assert_eq!(unescaped(b"a\\134b\\04\\9"), b"a\\b\\04\\9");
    }
}
