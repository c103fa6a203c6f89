//! Layers that are a single step each, in the launcher or in the supervisor.

use serde::{Deserialize, Serialize};

/// The layers that are a single step.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hardening {
    pub no_new_privs: bool,
    pub drop_capabilities: bool,
    /// Neither our pid 1 nor the supervisor can be traced, and their `/proc` entries cannot be opened
    /// (CVE-2019-5736).
    pub init_undumpable: bool,
    /// The command gets only stdin, stdout and stderr (CVE-2024-21626).
    pub close_descriptors: bool,
    /// No stream of a command is a file: that is on a mount of the host, and what the command writes to it could be executed
    /// from there (`executeWritten: false`).
    pub no_file_streams: bool,
    /// The command never has the caller's controlling terminal (CVE-2017-5226).
    pub own_session: bool,
    /// Every mount is `nosuid` and `nodev`.
    pub mount_flags: bool,
    /// Later mounts of the host do not appear in the sandbox, nor the reverse.
    pub private_mounts: bool,
    /// Names from the sandbox are escaped before they are displayed.
    pub escaped_text: bool,
    /// Each kind of event has its own budget in the audit log, and the first grant of a path is always
    /// recorded.
    pub audit_budgets: bool,
    /// What a transaction brings to the host loses its privileges, and is refused where it leads out of the project.
    pub reviewed_changes: bool,
    /// A question is drawn on a terminal in a known state, in distinct colours.
    pub known_terminal: bool,
    /// A key press answers only a question that was visible before.
    pub armed_keys: bool,
}

impl Hardening {
    pub(crate) fn all() -> Self {
        Self {
            no_new_privs: true,
            drop_capabilities: true,
            init_undumpable: true,
            close_descriptors: true,
            // Only where a policy wants it.
            no_file_streams: false,
            own_session: true,
            mount_flags: true,
            private_mounts: true,
            escaped_text: true,
            audit_budgets: true,
            reviewed_changes: true,
            known_terminal: true,
            armed_keys: true,
        }
    }
}
