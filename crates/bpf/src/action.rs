//! Seccomp actions, and their encoding in the 32-bit return value of a filter.

/// The actions of `include/uapi/linux/seccomp.h` that a filter can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Allow,
    Errno(u16),
    KillProcess,
    Notify,
}

const RET_KILL_PROCESS: u32 = 0x8000_0000;
const RET_ERRNO: u32 = 0x0005_0000;
const RET_USER_NOTIF: u32 = 0x7fc0_0000;
const RET_ALLOW: u32 = 0x7fff_0000;
const RET_ACTION_FULL: u32 = 0xffff_0000;

impl Action {
    pub const fn to_raw(self) -> u32 {
        match self {
            Self::Allow => RET_ALLOW,
            Self::Errno(errno) => RET_ERRNO | errno as u32,
            Self::KillProcess => RET_KILL_PROCESS,
            Self::Notify => RET_USER_NOTIF,
        }
    }

    /// `None` for a value no filter of this crate returns.
    pub const fn from_raw(raw: u32) -> Option<Self> {
        match raw & RET_ACTION_FULL {
            RET_ALLOW => Some(Self::Allow),
            RET_ERRNO => {
                let [low, high, ..] = raw.to_le_bytes();
                Some(Self::Errno(u16::from_le_bytes([low, high])))
            }
            RET_KILL_PROCESS => Some(Self::KillProcess),
            RET_USER_NOTIF => Some(Self::Notify),
            _ => None,
        }
    }
}
