//! The processor architectures that filters are compiled for. Both are available on every host, so that a filter for
//! one can be tested on the other.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arch {
    #[serde(rename = "x86_64")]
    X86_64,
    Aarch64,
}

impl Arch {
    /// The architecture this program was compiled for.
    #[cfg(target_arch = "x86_64")]
    pub const fn native() -> Self {
        Self::X86_64
    }

    /// The architecture this program was compiled for.
    #[cfg(target_arch = "aarch64")]
    pub const fn native() -> Self {
        Self::Aarch64
    }

    /// `AUDIT_ARCH_*` of `include/uapi/linux/audit.h`: what the kernel puts into `seccomp_data.arch`.
    pub const fn audit_value(self) -> u32 {
        match self {
            Self::X86_64 => 0xc000_003e,
            Self::Aarch64 => 0xc000_00b7,
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("palisade has system call tables for x86_64 and aarch64 only");
