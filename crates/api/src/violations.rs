//! What a sandbox denied, read from the audit log as it grows. The log is only read.

use palisade_record::{Decision, EventKind, Records, read_on};
use palisade_session::AppDirs;

/// Different ones that are told at once: a command can be denied as often as it likes.
const MAX_TOLD: usize = 1000;

/// Something that was denied. The subject may have been chosen by the command: escape it where you show it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Violation {
    /// What it was about.
    pub kind: ViolationKind,
    /// The path, the host with its port, the system call or the limit.
    pub subject: String,
    /// What was tried, such as `read` or `exec`, where that is known.
    pub operation: Option<String>,
    /// The rule, the key of the policy or the person that decided.
    pub reason: String,
}

/// What was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ViolationKind {
    /// A path that is not granted.
    Path,
    /// A connection.
    Host,
    /// Something that a key of the policy forbids, such as a program or a protected name.
    Policy,
    /// A system call.
    SystemCall,
    /// A limit was reached.
    Limit,
    /// An attempt to break out.
    Escape,
}

/// The log, from the moment on at which this was opened.
#[derive(Debug)]
pub(crate) struct AuditTrail(Option<Records>);

impl AuditTrail {
    pub(crate) fn open(places: &AppDirs, sandbox: &str) -> Self {
        Self(read_on(&places.audit_log(), Some(sandbox)).ok())
    }

    /// Those since the last time, each once. None: the log cannot be read.
    pub(crate) fn violations(&mut self) -> Option<Vec<Violation>> {
        let records = self.0.as_mut()?;
        let mut found: Vec<Violation> = Vec::new();
        for record in records {
            let violation = Violation::of(&record.ok()?.event.kind);
            if let Some(violation) = violation.filter(|new| !found.contains(new))
                && found.len() < MAX_TOLD
            {
                found.push(violation);
            }
        }
        Some(found)
    }
}

impl Violation {
    fn of(event: &EventKind) -> Option<Self> {
        let (kind, subject, operation, reason) = match event {
            EventKind::AccessDecided(it) if it.decision == Decision::Denied => {
                let reason = it.rule.as_ref().unwrap_or(&it.source);
                (ViolationKind::Path, it.path.clone(), Some(it.access.clone()), reason.clone())
            }
            EventKind::HostDecided(it) if it.decision == Decision::Denied => {
                let subject = format!("{}:{}", it.host, it.port);
                (ViolationKind::Host, subject, None, it.source.clone())
            }
            EventKind::NetworkAttempt(it) if !it.action.is_allowed() => {
                let reason = it.reason.as_ref().or(it.rule.as_ref());
                let reason = reason.map_or("network.allowedHosts", String::as_str);
                let subject = format!("{}:{}", it.host, it.port);
                (ViolationKind::Host, subject, None, reason.to_owned())
            }
            EventKind::PolicyViolation(it) if it.decision == Decision::Denied => {
                let subject = it.path.clone().unwrap_or_default();
                (ViolationKind::Policy, subject, Some(it.op.clone()), it.rule.clone())
            }
            EventKind::SyscallBlocked(it) => {
                (ViolationKind::SystemCall, it.name.clone(), None, it.errno.clone())
            }
            EventKind::ResourceLimitExceeded(it) => {
                (ViolationKind::Limit, it.resource.clone(), None, it.holder.clone())
            }
            EventKind::EscapeAttempt(it) => {
                (ViolationKind::Escape, it.id.clone(), None, it.description.clone())
            }
            _ => return None,
        };
        Some(Self { kind, subject, operation, reason })
    }
}
