//! The probes of the self-check.

use crate::layer::Layer;
use serde::Serialize;
use std::path::PathBuf;

/// Something that the child tries, and the only outcome with which the run continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "probe")]
pub enum Probe {
    /// Open a file that the same user can read outside. Must not exist (`ENOENT`), or be refused (`EACCES`) if
    /// only Landlock restricts files.
    ReadCanary {
        #[serde(serialize_with = "crate::text::path")]
        path: PathBuf,
        layer: Layer,
    },
    /// Create a file where the view is read-only: `EROFS`, or `EACCES` if only Landlock restricts files.
    WriteOutside {
        #[serde(serialize_with = "crate::text::path")]
        path: PathBuf,
        layer: Layer,
    },
    /// Create a file in a writable tree of the host, where only the broker may do so (FS-9): `EACCES`. Tried
    /// before the filter passes the call to the broker.
    WriteGuarded {
        #[serde(serialize_with = "crate::text::path")]
        path: PathBuf,
        layer: Layer,
    },
    /// Connect to a loopback port on which the supervisor listens: refused.
    ReachNetwork { layer: Layer },
    /// Send a signal to the supervisor's pid: no such process.
    SeeSupervisor { layer: Layer },
    /// Try to gain `CAP_SYS_ADMIN`: `EPERM`.
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

    /// The layer that it tests.
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
