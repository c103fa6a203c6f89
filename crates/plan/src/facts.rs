//! What the plan needs to know about the host, read-only.
//!
//! Collected by `launch::probe`; tests use their own values. The file tree is accessed through a trait, so that
//! this crate itself never opens a file.

use crate::limit::CgroupHome;
use palisade_hosts::registry::Tool;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The facts about the caller and the host that a plan depends on.
#[derive(Clone, Debug)]
pub struct HostFacts {
    pub uid: u32,
    pub gid: u32,
    /// The result of `gethostname(2)`.
    pub hostname: String,
    /// The caller's login name, if it has one.
    pub user_name: Option<String>,
    /// Absolute; from `$HOME`, otherwise from the password database.
    pub home: Option<PathBuf>,
    /// The users' home directories, including the caller's according to its account: `$HOME` may differ, and
    /// root may work in another user's home.
    pub homes: Vec<PathBuf>,
    /// Canonical.
    pub cwd: PathBuf,
    pub env: BTreeMap<OsString, OsString>,
    /// 0 if the kernel has no Landlock.
    pub landlock_abi: u32,
    /// Whether the caller may open `/dev/fuse`, and `/proc` shows all processes.
    pub serves_gate: bool,
    /// Ids that this user namespace can map: `(first, count)`, from `/proc/self/uid_map`.
    pub uid_ranges: Vec<(u32, u32)>,
    pub gid_ranges: Vec<(u32, u32)>,
    /// `/proc/self/mountinfo`.
    pub mounts: Vec<HostMount>,
    /// Whether stdin, stdout or stderr is a file that is open for reading only. The command gets it on a mount of the
    /// host.
    pub stream_reads_file: bool,
    /// Our own state, logs, trust and user configuration. Must never be visible in a sandbox.
    pub own_paths: Vec<PathBuf>,
    /// A file for the self-check that the caller can read and that no grant includes.
    pub canary: Option<PathBuf>,
    /// Hosts that the caller's tools are configured to use. Collected only if the policy names the tool.
    pub registries: BTreeMap<Tool, Vec<palisade_hosts::HostEntry>>,
    /// Settings of those tools that were found but not followed, as text.
    pub registry_notes: Vec<String>,
    /// Collected only for the network mode nat.
    pub nat: NatFacts,
    /// The certificate of the run's own authority, as PEM, if TLS is decrypted. Its key must never be here.
    pub authority: Option<String>,
}

/// What could forward packets for the network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NatFacts {
    pub pasta: Option<PathBuf>,
    pub slirp4netns: Option<PathBuf>,
    /// Whether the kernel forwards packets at all (`net.ipv4.ip_forward`).
    pub ip_forward: bool,
    /// The addresses of the host's interfaces: programs that listen there may trust every client.
    pub own_addresses: Vec<std::net::IpAddr>,
}

/// What limits depend on. Collected only if a limit is set.
#[derive(Clone, Debug)]
pub struct LimitFacts {
    pub cgroups: CgroupHome,
    /// The CPUs that the caller may use, in order.
    pub cpus: Vec<u32>,
    /// Differs from run to run, so that runs limited to some of the CPUs use different ones.
    pub spread: usize,
}

/// One line of mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostMount {
    /// `major:minor` of the file system.
    pub device: String,
    /// The mounted directory of the file system.
    pub root: PathBuf,
    pub mount_point: PathBuf,
    pub fs_type: String,
    /// Read-only for everybody on the host.
    pub read_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    Dir,
    File,
    Symlink,
    /// Sockets, FIFOs, devices.
    Other,
}

impl EntryKind {
    /// Whether a path can continue after it: a directory or a link.
    pub fn is_way(self) -> bool {
        matches!(self, Self::Dir | Self::Symlink)
    }

    /// Whether it can be mounted by itself.
    pub fn is_node(self) -> bool {
        matches!(self, Self::Dir | Self::File)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirEntry {
    pub kind: EntryKind,
    pub uid: u32,
    pub gid: u32,
}

/// Longer than any `.git` file or back pointer.
pub(crate) const SMALL_FILE: usize = 16 * 1024;

/// Read-only access to the host's tree. An error of any kind means that the entry does not exist.
pub trait HostTree {
    /// Does not follow a final link.
    fn entry(&self, path: &Path) -> Option<DirEntry>;
    fn read_link(&self, path: &Path) -> Option<PathBuf>;
    /// Names and kinds, unsorted.
    fn children(&self, path: &Path) -> Vec<(OsString, EntryKind)>;
    /// At most this many of them: the cost of a start must not depend on the size of a directory.
    fn first_children(&self, path: &Path, most: usize) -> Vec<(OsString, EntryKind)> {
        self.children(path).into_iter().take(most).collect()
    }
    /// A small text file, or the beginning of a longer one.
    fn read_small(&self, path: &Path) -> Option<String> {
        String::from_utf8(self.read_part(path, 0, SMALL_FILE)?).ok()
    }
    /// At most `length` bytes of a file, from `offset` on.
    fn read_part(&self, path: &Path, offset: u64, length: usize) -> Option<Vec<u8>>;
    /// Whether two names refer to the same file (hard links).
    fn is_same_file(&self, one: &Path, other: &Path) -> bool;
    /// Why the kernel takes no overlay of this directory, whatever lies above it. Costs milliseconds.
    fn overlay_obstacle(&self, _lower: &Path) -> Option<String> {
        None
    }
}
