//! How our own program reports an error to a program that started it with [`ERRORS_AS_JSON`]: a line of JSON on standard error.
//!
//! Both ends use this type, so that neither can know a field that the other one does not. It must never hold a secret:
//! callers log it.
//!
//! [`ERRORS_AS_JSON`]: crate::ERRORS_AS_JSON

use crate::error::ErrorReason;
use palisade_record::ErrorKind;
use serde::{Deserialize, Serialize};

/// An error with its class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Complaint {
    pub kind: ErrorKind,
    #[serde(default)]
    pub reason: Option<ErrorReason>,
    pub message: String,
}

impl Complaint {
    /// The last one in what the program wrote to standard error. Other lines are notes.
    pub fn last_of(stderr: &[u8]) -> Option<Self> {
        let mut lines = stderr.split(|byte| *byte == b'\n').rev();
        lines.find_map(|line| serde_json::from_slice(line).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::{Complaint, ErrorKind, ErrorReason};

    #[test]
    fn the_last_complaint_is_found_among_notes() {
        let stderr = b"{\"kind\":\"timeout\",\"reason\":null,\"message\":\"first\"}\n\
            {\"kind\":\"validation\",\"reason\":\"nameTaken\",\"message\":\"last\"}\nsandbox: a note\n";
        let found = Complaint::last_of(stderr).unwrap();
        let reason = Some(ErrorReason::NameTaken);
        let (kind, message) = (ErrorKind::Validation, "last".to_owned());
        assert_eq!(found, Complaint { kind, reason, message });
        assert_eq!(Complaint::last_of(b"sandbox: a note\n"), None);
    }
}
