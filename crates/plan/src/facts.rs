//! What the plan needs to know about the host, read-only.
//!
//! Collected by `launch::probe`; tests pass in their own. The file tree is accessed through a trait, so that
//! this crate itself never opens a file.

use crate::limit::CgroupHome;
use palisade_hosts::registry::Tool;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The caller and the host, as far as a plan depends on them.
#[derive(Clone, Debug)]
pub struct HostFacts {
    pub uid: u32,
    pub gid: u32,
    /// As `gethostname(2)` gives it.
    pub hostname: String,
    /// The caller's login name, if it has one.
    pub user_name: Option<String>,
    /// Absolute; from `$HOME`, else from the password database.
    pub home: Option<PathBuf>,
    /// Home directories of people, the caller's own by its account included: `$HOME` may say
    /// something else, and root may stand in somebody's.
    pub homes: Vec<PathBuf>,
    /// Canonical.
    pub cwd: PathBuf,
    pub env: BTreeMap<OsString, OsString>,
    /// 0 where the kernel has no Landlock.
    pub landlock_abi: u32,
    /// Ids that this user namespace can map: `(first, count)`, from `/proc/self/uid_map`.
    pub uid_ranges: Vec<(u32, u32)>,
    pub gid_ranges: Vec<(u32, u32)>,
    /// `/proc/self/mountinfo`.
    pub mounts: Vec<HostMount>,
    /// Whether stdin, stdout or stderr is a file: the command gets it, on a mount of the host's.
    pub file_among_streams: bool,
    /// Where the product keeps state, logs, trust and user configuration: never in a view.
    pub own_paths: Vec<PathBuf>,
    /// A file outside every grant that the caller can read, made for the self-check.
    pub canary: Option<PathBuf>,
    /// Hosts that the caller's tools are set up to use; looked at only where a policy names the tool.
    pub registries: BTreeMap<Tool, Vec<palisade_hosts::HostEntry>>,
    /// Settings of those tools that were seen and not followed, in words.
    pub registry_notes: Vec<String>,
    /// Looked at only for the network mode nat.
    pub nat: NatFacts,
    /// The certificate of the run's own authority, as PEM, where TLS is to be opened. Its key never comes here.
    pub authority: Option<String>,
}

/// Who could forward for the namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NatFacts {
    pub pasta: Option<PathBuf>,
    pub slirp4netns: Option<PathBuf>,
    /// Whether the kernel forwards at all (`net.ipv4.ip_forward`).
    pub ip_forward: bool,
    /// Of the host's links: programs that listen there may trust every client.
    pub own_addresses: Vec<std::net::IpAddr>,
}

/// What limits depend on, looked at only where one is asked for.
#[derive(Clone, Debug)]
pub struct LimitFacts {
    pub cgroups: CgroupHome,
    /// That the caller may run on, in order.
    pub cpus: Vec<u32>,
    /// Differs from run to run, so that runs which get some of the CPUs get different ones.
    pub spread: usize,
}

/// One line of mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostMount {
    /// `major:minor` of the file system.
    pub device: String,
    /// The directory of the file system that is mounted.
    pub root: PathBuf,
    pub mount_point: PathBuf,
    pub fs_type: String,
    /// Already for everybody on the host.
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
    /// What leads further: into itself or elsewhere.
    pub fn is_way(self) -> bool {
        matches!(self, Self::Dir | Self::Symlink)
    }

    /// What can be mounted by itself.
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

/// Read-only look at the host's tree. Errors of any kind read as "not there".
pub trait HostTree {
    /// Does not follow a final link.
    fn entry(&self, path: &Path) -> Option<DirEntry>;
    fn read_link(&self, path: &Path) -> Option<PathBuf>;
    /// Names and kinds, unsorted.
    fn children(&self, path: &Path) -> Vec<(OsString, EntryKind)>;
    /// At most this many of them: what a start costs must not grow with a directory.
    fn first_children(&self, path: &Path, most: usize) -> Vec<(OsString, EntryKind)> {
        self.children(path).into_iter().take(most).collect()
    }
    /// The first few KiB of a small text file (a `.git` file, a `gitdir` back pointer).
    fn read_small(&self, path: &Path) -> Option<String>;
    /// This many bytes of a file from `offset` on, fewer at its end.
    fn read_part(&self, path: &Path, offset: u64, length: usize) -> Option<Vec<u8>>;
    /// Whether two names are one file's (hard links).
    fn is_same_file(&self, one: &Path, other: &Path) -> bool;
}
