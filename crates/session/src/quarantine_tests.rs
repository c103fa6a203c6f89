use super::*;
use palisade_record::indicators::BLOCKED_CALL;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

fn places() -> (tempfile::TempDir, AppDirs) {
    let directory = tempfile::tempdir().unwrap();
    let below = |name: &str| directory.path().join(name);
    let places = AppDirs {
        organisation: below("etc"),
        user: below("config"),
        state: below("state"),
        runtime: below("run"),
    };
    (directory, places)
}

fn tool(argv: &[&str]) -> StartedTool {
    let program = argv[0].to_owned();
    StartedTool { program, hash: redact::hash(argv), preview: redact::preview(argv) }
}

fn quarantine(places: &AppDirs, declared: Option<&str>, argv: &[&str]) -> Vec<Quarantined> {
    let attempt = BLOCKED_CALL.attempt("x", None);
    let tools = [tool(argv)];
    add(places, &Offence { session: "s", attempt: &attempt, declared, tools: &tools }).unwrap()
}

/// Proves: ESC-1 quarantine
#[test]
fn the_same_command_is_refused_until_it_is_released_and_others_are_not() {
    let (_directory, places) = places();
    assert!(check(&places, None, &["evil", "x"]).is_ok());
    assert_eq!(quarantine(&places, None, &["evil", "x"]).len(), 1);
    assert_eq!(quarantine(&places, None, &["evil", "x"]).len(), 0, "it is there already");
    let refused = check(&places, None, &["evil", "x"]).unwrap_err();
    assert_eq!(refused.exit_code(), 126);
    assert!(refused.to_string().contains("sandbox quarantine release"), "{refused}");
    assert!(check(&places, None, &["evil", "y"]).is_ok());
    let mode = fs::metadata(places.quarantine_store()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let found = find(&places, "evil").unwrap();
    release(&places, &found, 7).unwrap();
    assert!(check(&places, None, &["evil", "x"]).is_ok());
    assert!(find(&places, "evil").is_err());
}

/// Proves: ESC-1 quarantine
#[test]
fn no_command_of_a_declared_tool_runs() {
    let (_directory, places) = places();
    quarantine(&places, Some("bash"), &["sh", "-c", "x"]);
    assert!(check(&places, Some("bash"), &["sh", "-c", "y"]).is_err());
    assert!(check(&places, Some("read"), &["sh", "-c", "y"]).is_ok());
    assert!(check(&places, None, &["sh", "-c", "x"]).is_err(), "by its hash");
}

/// Proves: ESC-1 quarantine
#[test]
fn a_damaged_store_refuses_everything_and_says_what_to_do() {
    let (_directory, places) = places();
    quarantine(&places, None, &["evil"]);
    let store = places.quarantine_store();
    for damaged in ["{", "", "{\"version\":9,\"entries\":[]}", "[]"] {
        fs::write(&store, damaged).unwrap();
        let error = check(&places, None, &["harmless"]).unwrap_err().to_string();
        assert!(
            error.contains(store.to_str().unwrap()) && error.contains("move it away"),
            "{error}"
        );
    }
    fs::write(&store, vec![b'x'; 2 << 20]).unwrap();
    assert!(check(&places, None, &["harmless"]).is_err());
}
