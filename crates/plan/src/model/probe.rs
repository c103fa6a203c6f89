//! The attempts of the self-check.

use crate::layer::Layer;
use serde::Serialize;
use std::path::PathBuf;

/// Something the child tries, and the only outcome that lets the run go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "probe")]
pub enum Probe {
    /// Open a file that the same user can read outside: must be absent (`ENOENT`), or refused
    /// (`EACCES`) where Landlock alone holds.
    ReadCanary {
        #[serde(serialize_with = "crate::text::path")]
        path: PathBuf,
        layer: Layer,
    },
    /// Create a file where the view is read-only: `EROFS`, or `EACCES` where Landlock alone holds.
    WriteOutside {
        #[serde(serialize_with = "crate::text::path")]
        path: PathBuf,
        layer: Layer,
    },
    /// Create a file in a writable tree of the host, where only the broker may (FS-9): `EACCES`. Tried before
    /// the filter hands the call to the broker.
    WriteGuarded {
        #[serde(serialize_with = "crate::text::path")]
        path: PathBuf,
        layer: Layer,
    },
    /// Connect to a loopback port the supervisor listens on: refused.
    ReachNetwork { layer: Layer },
    /// Signal the supervisor's pid: no such process.
    SeeSupervisor { layer: Layer },
    /// Ask for `CAP_SYS_ADMIN`: `EPERM`.
    RegainCapability { layer: Layer },
    /// A system call that the filter must refuse.
    ForbiddenSyscall { layer: Layer },
}

impl Probe {
    /// The name that reports, errors and tests use.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ReadCanary { .. } => "read-canary",
            Self::WriteOutside { .. } => "write-outside",
            Self::WriteGuarded { .. } => "write-guarded",
            Self::ReachNetwork { .. } => "reach-network",
            Self::SeeSupervisor { .. } => "see-supervisor",
            Self::RegainCapability { .. } => "regain-capability",
            Self::ForbiddenSyscall { .. } => "forbidden-syscall",
        }
    }

    /// The layer it aims at.
    pub fn layer(&self) -> Layer {
        match self {
            Self::ReadCanary { layer, .. }
            | Self::WriteOutside { layer, .. }
            | Self::WriteGuarded { layer, .. }
            | Self::ReachNetwork { layer }
            | Self::SeeSupervisor { layer }
            | Self::RegainCapability { layer }
            | Self::ForbiddenSyscall { layer } => *layer,
        }
    }
}
