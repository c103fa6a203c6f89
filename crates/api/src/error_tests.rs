use super::{Complaint, Error, ErrorKind, ErrorReason, SessionError};
use std::io;

#[test]
fn each_error_has_the_class_that_reports_have() {
    let complaint = |kind, reason| {
        let message = "m".to_owned();
        Error::from(Complaint { kind, reason, message })
    };
    let refused = complaint(palisade_record::ErrorKind::Security, None);
    assert!(matches!(refused, Error::Failed { kind: ErrorKind::Security, .. }), "{refused:?}");
    let taken = complaint(palisade_record::ErrorKind::Validation, Some(ErrorReason::NameTaken));
    assert!(matches!(taken, Error::NameTaken { .. }), "{taken:?}");
    let missing: Error =
        SessionError::NoSuchSession { named: "w".to_owned(), sessions: String::new() }.into();
    assert_eq!(missing.to_string(), "there is no sandbox `w`");
    assert_eq!(missing.kind(), ErrorKind::Validation);
    let ended: Error = SessionError::SessionNotRunning { session: "w".to_owned() }.into();
    assert_eq!(ended.kind(), ErrorKind::Cancelled);
}

#[test]
fn what_the_sandbox_forbids_is_told_from_what_is_not_there() {
    let file = |errno: i32| {
        let source = io::Error::from_raw_os_error(errno);
        Error::File { call: "open".to_owned(), path: "/p".into(), source }.kind()
    };
    assert_eq!(
        [2, 13, 28, 30].map(file),
        [ErrorKind::Validation, ErrorKind::Security, ErrorKind::Resource, ErrorKind::Security]
    );
}
