use super::{Call, Holder, Program};
use crate::error::{Error, ErrorKind};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A shell script in place of `sandbox create --hold`.
fn make(script: &str) -> Result<(Holder, String), Error> {
    let shell = Program::find(Some(Path::new("/bin/sh")));
    Holder::make(&shell, &Call::new(["-c", script]).within(Duration::from_secs(60)))
}

#[test]
fn the_program_is_told_of_the_end_and_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let ended = directory.path().join("ended");
    let script = format!("echo '{{\"id\":\"one\"}}'; cat; sleep 0.1; echo > '{}'", ended.display());
    let (holder, id) = make(&script).unwrap();
    assert_eq!((&*id, ended.exists()), ("one", false));
    drop(holder);
    assert!(ended.exists());
    fs::remove_file(&ended).unwrap();
    // What is kept is not told anything.
    make(&script).unwrap().0.release().unwrap();
    assert!(!ended.exists());
}

#[test]
fn why_nothing_was_made_is_told() {
    let complaint = r#"{"kind":"security","reason":"other","message":"locked"}"#;
    let error = make(&format!("echo '{complaint}' >&2; exit 126")).unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Security, "locked".to_owned()));
    let error = make("echo no id; cat").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Initialisation);
}

#[test]
fn a_program_that_does_not_get_on_is_killed() {
    let shell = Program::find(Some(Path::new("/bin/sh")));
    let call = Call::new(["-c", "exec sleep 1000"]).within(Duration::from_millis(50));
    let error = Holder::make(&shell, &call).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
}
