//! Mounts served by another machine or program. A look-up there may never return, and would block whoever makes it.
//! A path is recognised by its text.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The type of the gate's own file system, which is ours and answers.
pub const OWN_FILESYSTEM: &str = "fuse.palisade";

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
pub struct RemoteMounts(Vec<Mount>);

#[derive(Debug, PartialEq, Eq)]
struct Mount {
    top: PathBuf,
    is_remote: bool,
}

impl RemoteMounts {
    /// From the text of `/proc/self/mountinfo`.
    pub fn of(mountinfo: &[u8]) -> Self {
        let mounts: Vec<Mount> =
            mountinfo.split(|byte| *byte == b'\n').filter_map(Mount::of).collect();
        if mounts.iter().any(|mount| mount.is_remote) { Self(mounts) } else { Self::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an absolute path is on a remote mount.
    pub fn has(&self, path: &[u8]) -> bool {
        let path = Path::new(OsStr::from_bytes(path));
        let above = self.0.iter().filter(|mount| path.starts_with(&mount.top));
        // Of two mounts at one path the later one counts, and comes last.
        above.max_by_key(|mount| mount.top.as_os_str().len()).is_some_and(|mount| mount.is_remote)
    }
}

impl Mount {
    fn of(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let top = unescaped(fields.nth(4)?);
        let top = PathBuf::from(OsStr::from_bytes(&top));
        let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
        let is_remote = KINDS.contains(&kind)
            || (kind.starts_with(b"fuse") && kind != OWN_FILESYSTEM.as_bytes());
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
    use super::{Mount, RemoteMounts, unescaped};

    const MOUNTS: &str = "\
22 1 0:20 / / rw - tmpfs tmpfs rw
23 22 8:1 /usr /usr ro,nosuid master:1 - ext4 /dev/sda1 rw
24 22 0:45 / /net/my\\040files ro shared:3 master:1 - nfs4 server:/export rw,vers=4.2
25 24 0:46 / /net/my\\040files/mine rw - tmpfs tmpfs rw
29 22 0:50 / /gate rw - fuse.palisade gate rw
26 22 0:47 / /sshfs rw - fuse.sshfs host: rw
27 22 0:48 / /over rw - cifs //host/share rw
28 22 0:49 / /over rw - ext4 /dev/sda2 rw
";

    /// Proves: GATE-5 undisturbed
    #[test]
    fn the_nearest_mount_tells_whether_it_is_looked_at() {
        let remote = RemoteMounts::of(MOUNTS.as_bytes());
        for path in ["/net/my files", "/net/my files/a/b", "/sshfs/x", "/net/my files//x"] {
            assert!(remote.has(path.as_bytes()), "{path}");
        }
        for path in [
            "/",
            "/usr/bin",
            "/net",
            "/net/my filesystem",
            "/net/my files/mine/x",
            "/over/x",
            "/gate/x",
        ] {
            assert!(!remote.has(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn without_such_a_mount_nothing_is_remembered() {
        let local: String = MOUNTS.lines().take(2).map(|line| format!("{line}\n")).collect();
        assert!(RemoteMounts::of(local.as_bytes()).0.is_empty());
        assert_eq!(Mount::of(b"22 1 0:20 /"), None);
    }

    #[test]
    fn a_backslash_that_is_no_escape_stays() {
        assert_eq!(unescaped(b"a\\134b\\04\\9"), b"a\\b\\04\\9");
    }
}
