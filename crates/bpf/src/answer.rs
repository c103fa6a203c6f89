//! What a rule means for a call, and the action it becomes in the kernel. The two differ: a refusal that is
//! logged and a call that the broker performs both become a notification.

use serde::{Deserialize, Serialize};

use crate::Action;

include!(concat!(env!("OUT_DIR"), "/errnos.rs"));

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CallAnswer {
    Allow,
    Refuse(Refusal),
    /// The broker, outside the sandbox, performs the call on the caller's behalf or refuses it.
    Broker,
    KillProcess,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    pub errno: u16,
    pub notice: Notice,
}

/// Whether a refusal is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Notice {
    /// Not reported: ordinary programs often try the call and work without it.
    Quiet,
    Logged,
    /// Logged, and counted towards the limit that stops the run.
    Suspicious,
}

/// Whether the filter gets a listener (`SECCOMP_FILTER_FLAG_NEW_LISTENER`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listening {
    Yes,
    No,
}

impl Refusal {
    /// The errno's symbol, as in man pages; `None` for one that no rule file uses.
    pub fn errno_name(self) -> Option<&'static str> {
        ERRNO_NAMES.iter().find_map(|(name, errno)| (*errno == self.errno).then_some(*name))
    }
}

impl CallAnswer {
    /// `None`: only a listener could give this answer, and the filter has none.
    pub(crate) fn action(self, listening: Listening) -> Option<Action> {
        match (self, listening) {
            (Self::Allow, _) => Some(Action::Allow),
            (Self::KillProcess, _) => Some(Action::KillProcess),
            (Self::Refuse(Refusal { notice: Notice::Quiet, errno }), _)
            | (Self::Refuse(Refusal { errno, .. }), Listening::No) => Some(Action::Errno(errno)),
            (Self::Refuse(_) | Self::Broker, Listening::Yes) => Some(Action::Notify),
            (Self::Broker, Listening::No) => None,
        }
    }
}
