//! How a run ended, and of which class an error was (ERR-1): the same words in events, reports and
//! every API.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The command ended by itself; its exit code may be anything.
    Completed,
    /// The command ended by a signal that did not come through us.
    Signalled,
    /// The wall-time limit ended it.
    Timeout,
    /// The memory limit did.
    OutOfMemory,
    /// The limit on CPU time did.
    CpuTime,
    /// The command failed, and had no more processes to start.
    TooManyProcesses,
    /// There was no more room for files: the command failed by it, or was ended for it.
    DiskFull,
    /// The command ended by itself, and not all of its output was passed on.
    OutputCapped,
    /// We ended it: an escape response, or somebody asked.
    Killed,
    /// The policy did not allow it to start.
    Refused,
    /// We could not do what was asked.
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

/// An error as it is told outside the process, with its chain of causes, nearest first.
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
