//! The names of events, as they are in the log.

use crate::event::EventKind;

/// One row an event: a missing one does not compile, and a test compares them with what is written.
macro_rules! names {
    ($($kind:ident => $name:literal,)*) => {
        impl EventKind {
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $name,)*
                }
            }

            /// Those of all events.
            pub fn names() -> &'static [&'static str] {
                &[$($name,)*]
            }
        }
    };
}

names! {
    SandboxCreated => "SANDBOX_CREATED",
    SandboxEntered => "SANDBOX_ENTERED",
    SandboxValidated => "SANDBOX_VALIDATED",
    SandboxExecuted => "SANDBOX_EXECUTED",
    SandboxExited => "SANDBOX_EXITED",
    SandboxDestroyed => "SANDBOX_DESTROYED",
    SandboxFailed => "SANDBOX_FAILED",
    PolicyViolation => "POLICY_VIOLATION",
    EscapeAttempt => "ESCAPE_ATTEMPT",
    ResourceLimitExceeded => "RESOURCE_LIMIT_EXCEEDED",
    SyscallBlocked => "SYSCALL_BLOCKED",
    SignalForwarded => "SIGNAL_FORWARDED",
    ApprovalRecorded => "APPROVAL_RECORDED",
    AccessDecided => "ACCESS_DECIDED",
    AccessRevoked => "ACCESS_REVOKED",
    EventsSummed => "EVENTS_SUMMED",
    NetworkAttempt => "NETWORK_ATTEMPT",
    ConnectionClosed => "CONNECTION_CLOSED",
    NameQueried => "NAME_QUERIED",
    HostDecided => "HOST_DECIDED",
    CheckpointMade => "CHECKPOINT_MADE",
    RolledBack => "ROLLED_BACK",
    SessionForked => "SESSION_FORKED",
    CacheWritesLost => "CACHE_WRITES_LOST",
    EscapeResponse => "ESCAPE_RESPONSE",
    Quarantined => "QUARANTINED",
    Released => "RELEASED",
    SessionExec => "SESSION_EXEC",
    SessionExecEnded => "SESSION_EXEC_ENDED",
    SessionExtended => "SESSION_EXTENDED",
    SessionClaimed => "SESSION_CLAIMED",
    SessionEnding => "SESSION_ENDING",
    ChangesApplied => "CHANGES_APPLIED",
    ChangesHeld => "CHANGES_HELD",
    ChangesDiscarded => "CHANGES_DISCARDED",
    FileOperation => "FILE_OPERATION",
}

#[cfg(test)]
mod tests {
    use super::EventKind;
    use crate::{EndingCause, SessionEnding, SignalForwarded};

    #[test]
    fn a_name_is_what_the_log_says() {
        let signal = SignalForwarded { signal: 15, name: "SIGTERM".to_owned(), fatal: true };
        let ending = SessionEnding { cause: EndingCause::Idle };
        for kind in [EventKind::SignalForwarded(signal), EventKind::SessionEnding(ending)] {
            let written = serde_json::to_value(&kind).unwrap();
            assert_eq!(written["event"], kind.name());
        }
    }
}
