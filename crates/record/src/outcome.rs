//! The outcomes of a run, and the classes of errors (ERR-1): the same words in events, reports and all APIs.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The command exited by itself, with any exit code.
    Completed,
    /// A signal that we did not send or forward killed the command.
    Signalled,
    /// The wall-time limit was reached.
    Timeout,
    /// The memory limit was reached.
    OutOfMemory,
    /// The CPU time limit was reached.
    CpuTime,
    /// The command failed and could not start more processes.
    TooManyProcesses,
    /// No space was left for files: the command failed because of it, or was killed.
    DiskFull,
    /// The command exited by itself, but its output was truncated.
    OutputCapped,
    /// We killed it: in response to an escape attempt, or on request.
    Killed,
    /// The policy did not allow it to start.
    Refused,
    /// We could not do what was requested.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorKind {
    Resource,
    Security,
    Validation,
    Cancelled,
    Timeout,
    Initialisation,
}

/// An error for other processes, with its chain of causes, nearest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub kind: ErrorKind,
    pub message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
}

impl Failure {
    pub fn of(kind: ErrorKind, error: &dyn std::error::Error) -> Failure {
        let mut causes = Vec::new();
        let mut source = error.source();
        while let Some(cause) = source {
            causes.push(cause.to_string());
            source = cause.source();
        }
        Failure { kind, message: error.to_string(), causes }
    }
}

#[cfg(test)]
mod tests {
    use super::{ErrorKind, Failure, Outcome};
    use crate::error::RecordError;
    use std::io;
    use std::path::Path;

    /// Proves: ERR-1 cause
    #[test]
    fn a_failure_carries_its_class_and_every_cause() {
        let cause = RecordError::io("open", Path::new("/x"))(io::Error::from_raw_os_error(13));
        let failure = Failure::of(ErrorKind::Initialisation, &cause);
        let message = "cannot open /x: Permission denied (EACCES); allow it to this user, or name \
                       another path";
        assert_eq!(failure.message, message);
        assert_eq!(failure.causes, ["Permission denied (os error 13)"]);
        let json = serde_json::to_value(&failure).unwrap();
        assert_eq!(json["kind"], "initialisation");
    }

    /// Proves: ERR-1 kinds
    #[test]
    fn the_names_are_fixed() {
        let kinds = [
            ErrorKind::Resource,
            ErrorKind::Security,
            ErrorKind::Validation,
            ErrorKind::Cancelled,
            ErrorKind::Timeout,
            ErrorKind::Initialisation,
        ];
        assert_eq!(
            serde_json::to_string(&kinds).unwrap(),
            r#"["resource","security","validation","cancelled","timeout","initialisation"]"#
        );
        let outcomes = [
            Outcome::Completed,
            Outcome::Signalled,
            Outcome::Timeout,
            Outcome::OutOfMemory,
            Outcome::CpuTime,
            Outcome::TooManyProcesses,
            Outcome::DiskFull,
            Outcome::OutputCapped,
            Outcome::Killed,
            Outcome::Refused,
            Outcome::Failed,
        ];
        assert_eq!(
            serde_json::to_string(&outcomes).unwrap(),
            r#"["completed","signalled","timeout","out-of-memory","cpu-time","too-many-processes","disk-full","output-capped","killed","refused","failed"]"#
        );
    }
}
