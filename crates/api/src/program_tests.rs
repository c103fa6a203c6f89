use super::{Call, Program};
use crate::error::{Error, ErrorKind};
use std::path::Path;
use std::time::{Duration, Instant};

/// `sh` in place of `sandbox`.
fn shell() -> Program {
    Program::find(Some(Path::new("/bin/sh")))
}

#[test]
fn a_value_with_a_hyphen_is_no_option() {
    let call = Call::new(["create"]).option("name", "--force").flag("json", true);
    assert_eq!(call.words(), ["create", "--name=--force", "--json"]);
}

#[test]
fn both_outputs_are_read_however_much_there_is() {
    let script = "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero; exit 3";
    let answer = shell().ask(&Call::new(["-c", script])).unwrap();
    assert_eq!(
        (answer.code, answer.stdout.len(), answer.stderr.len()),
        (Some(3), 300_000, 300_000)
    );
}

#[test]
fn a_program_that_does_not_end_is_killed() {
    let began = Instant::now();
    let call = Call::new(["-c", "exec sleep 1000"]).within(Duration::from_millis(50));
    let error = shell().ask(&call).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(began.elapsed() < Duration::from_secs(100));
}

#[test]
fn a_complaint_becomes_an_error_of_its_class() {
    let script = r#"echo '{"kind":"security","reason":"other","message":"locked"}' >&2; exit 126"#;
    let error = shell().done(&Call::new(["-c", script])).unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Security, "locked".to_owned()));
    let error = shell().done(&Call::new(["-c", "exit 4"])).unwrap_err();
    assert_eq!(error.to_string(), "`sandbox` ended with 4 and printed nothing");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let missing = Program::find(Some(Path::new("/nowhere/sandbox")));
    let error = missing.ask(&Call::new(["ps"])).unwrap_err();
    assert!(matches!(error, Error::NoProgram { .. }) && error.to_string().contains("/nowhere"));
}
