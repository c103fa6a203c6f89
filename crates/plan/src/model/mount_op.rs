//! The steps that build the mount view.

use super::{Owner, Scratch};
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MountAccess {
    ReadOnly,
    ReadWrite,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    Dir,
    File,
}

/// The mode of our own files that must not change.
pub(crate) const READ_ONLY: u32 = 0o444;

/// One step in building the view. Targets are absolute paths in the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "op")]
pub enum MountOp {
    /// A directory on the sandbox's own root.
    Dir {
        #[serde(serialize_with = "crate::text::path")]
        target: PathBuf,
        mode: u32,
    },
    /// A link on the sandbox's own root, as on the host (`/bin -> usr/bin`).
    Symlink {
        #[serde(serialize_with = "crate::text::path")]
        target: PathBuf,
        #[serde(serialize_with = "crate::text::path")]
        points_to: PathBuf,
    },
    /// A file with this content: on the sandbox's own root, or read-only over an existing file.
    File {
        #[serde(serialize_with = "crate::text::path")]
        target: PathBuf,
        content: String,
        mode: u32,
    },
    /// A copy of one of the caller's files, on the sandbox's own root. The command may change it; changes are
    /// discarded.
    Copy {
        #[serde(serialize_with = "crate::text::path")]
        source: PathBuf,
        #[serde(serialize_with = "crate::text::path")]
        target: PathBuf,
        #[serde(skip)]
        content: String,
        /// Whether credentials were removed from it.
        is_filtered: bool,
        why: &'static str,
    },
    /// A part of the host's tree, with everything mounted below it. Always nosuid and nodev.
    Bind {
        #[serde(serialize_with = "crate::text::path")]
        source: PathBuf,
        #[serde(serialize_with = "crate::text::path")]
        target: PathBuf,
        access: MountAccess,
        exec: bool,
        kind: NodeKind,
        /// Only if root starts the run.
        #[serde(skip_serializing_if = "Option::is_none")]
        idmap: Option<Owner>,
        /// Nobody named it: it was in a directory that is shown without something else. If it is gone when the run starts, it is left out.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        may_vanish: bool,
        /// Why it is in the view, for display: `system`, `toolchain`, `cache`, `project`, `--rw` …
        why: &'static str,
    },
    /// Mounts what is already at this path over itself, read-only.
    Seal {
        #[serde(serialize_with = "crate::text::path")]
        target: PathBuf,
        optional: bool,
    },
    /// Mounts the sandbox's own `/dev/null` over a file that reveals too much.
    Blank {
        #[serde(serialize_with = "crate::text::path")]
        target: PathBuf,
        optional: bool,
    },
    /// A tree of the host with another layer on top. Either it looks writable, and changes are discarded at the
    /// end or kept in `layer`; or it is read-only, and the layer only hides the `hidden` names (relative paths).
    Overlay {
        #[serde(serialize_with = "crate::text::path")]
        lower: PathBuf,
        #[serde(serialize_with = "crate::text::path")]
        target: PathBuf,
        #[serde(serialize_with = "crate::text::paths")]
        hidden: Vec<PathBuf>,
        access: MountAccess,
        /// The directory of ours on the host that keeps the changes of a transaction (LIFE-2).
        #[serde(
            skip_serializing_if = "Option::is_none",
            serialize_with = "crate::text::maybe_path"
        )]
        layer: Option<PathBuf>,
        /// There is no overlay: the layer has a copy of the tree, without what is hidden, which is mounted by itself.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_copied: bool,
        /// A part of a [`super::CacheStack`], by the directory that it stands on.
        #[serde(
            skip_serializing_if = "Option::is_none",
            serialize_with = "crate::text::maybe_path"
        )]
        stack: Option<PathBuf>,
        exec: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        idmap: Option<Owner>,
        /// For display.
        why: &'static str,
    },
    /// A directory on a writable tmpfs that must not be writable itself: a small separate tmpfs, which becomes
    /// read-only when the view is complete.
    Frame {
        #[serde(serialize_with = "crate::text::path")]
        target: PathBuf,
        mode: u32,
    },
    Tmpfs {
        #[serde(serialize_with = "crate::text::path")]
        target: PathBuf,
        mode: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
        exec: bool,
    },
    Proc {
        #[serde(serialize_with = "crate::text::path")]
        target: PathBuf,
    },
    DevPts {
        #[serde(serialize_with = "crate::text::path")]
        target: PathBuf,
    },
    Mqueue {
        #[serde(serialize_with = "crate::text::path")]
        target: PathBuf,
    },
    /// A device node of the host, checked by number after it is opened (CVE-2025-31133).
    Device {
        #[serde(serialize_with = "crate::text::path")]
        source: PathBuf,
        #[serde(serialize_with = "crate::text::path")]
        target: PathBuf,
        major: u32,
        minor: u32,
    },
}

impl MountOp {
    /// Whether it is a tmpfs that the command can write to. Other tmpfs mounts contain only what was put there
    /// before the command started.
    pub fn is_writable_tmpfs(&self) -> bool {
        matches!(self, Self::Tmpfs { mode, .. } if mode & 0o200 != 0)
    }

    /// Whether what the command writes there is held by a file system of the run's own. With common room an overlay is
    /// counted with the others.
    pub fn holds_own_files(&self, scratch: Option<&Scratch>) -> bool {
        match self {
            Self::Overlay { .. } => self.discards_changes() && scratch.is_none(),
            _ => self.is_writable_tmpfs(),
        }
    }

    /// Whether the command can write below its target.
    pub(crate) fn is_writable(&self) -> bool {
        match self {
            Self::Bind { access, .. } | Self::Overlay { access, .. } => {
                *access == MountAccess::ReadWrite
            }
            _ => self.is_writable_tmpfs(),
        }
    }

    /// Whether its files are in the common file system ([`Scratch`]). Mounts with their own size are not.
    pub fn is_part_of_scratch(&self) -> bool {
        match self {
            Self::Tmpfs { size, .. } => size.is_none() && self.is_writable_tmpfs(),
            Self::Overlay { .. } => self.discards_changes(),
            _ => false,
        }
    }

    /// Whether it is an overlay whose changes are gone with the run.
    pub(crate) fn discards_changes(&self) -> bool {
        let rw = MountAccess::ReadWrite;
        matches!(self, Self::Overlay { access, layer: None, stack: None, .. } if *access == rw)
    }

    /// Whether it is an overlay whose changes are kept.
    pub fn is_transaction(&self) -> bool {
        matches!(self, Self::Overlay { layer: Some(_), .. })
    }

    /// Whether it is a copy from which credentials were removed.
    pub fn is_filtered_copy(&self) -> bool {
        matches!(self, Self::Copy { is_filtered: true, .. })
    }

    /// The path at which the step creates something.
    pub fn target(&self) -> &Path {
        match self {
            Self::Dir { target, .. }
            | Self::Symlink { target, .. }
            | Self::File { target, .. }
            | Self::Copy { target, .. }
            | Self::Bind { target, .. }
            | Self::Seal { target, .. }
            | Self::Blank { target, .. }
            | Self::Overlay { target, .. }
            | Self::Frame { target, .. }
            | Self::Tmpfs { target, .. }
            | Self::Proc { target }
            | Self::DevPts { target }
            | Self::Mqueue { target }
            | Self::Device { target, .. } => target,
        }
    }
}
