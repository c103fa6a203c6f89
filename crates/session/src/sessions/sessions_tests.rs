use super::*;
use crate::app_dirs::AppDirs;
use crate::error::SessionError;
use crate::session_id::new_session_id;
use jiff::Timestamp;
use palisade_record::State;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

fn places(directory: &Path) -> AppDirs {
    AppDirs {
        organisation: directory.join("organisation"),
        user: directory.join("user"),
        state: directory.join("state"),
        runtime: directory.join("state/run"),
    }
}

fn record(name: Option<&str>) -> SessionRecord {
    SessionRecord {
        id: new_session_id(),
        name: name.map(str::to_owned),
        created_at: Timestamp::now(),
        project: "/project".into(),
        command: None,
        presets: Vec::new(),
        level: None,
        has_own_network: false,
        time_to_live: TimeToLive::default(),
        checkpoint_each_command: false,
        transaction: None,
        recording: None,
        state: State::Created,
        is_prepared: false,
        supervisor: None,
        exit_code: None,
        ended_at: None,
        end_reason: None,
    }
}

/// Proves: LIFE-4 directory
#[test]
fn a_session_has_a_private_directory_and_is_found_by_id_part_and_name() {
    let directory = tempfile::tempdir().unwrap();
    let places = places(directory.path());
    let record = SessionRecord {
        project: OsStr::from_bytes(b"/not \xff utf-8").into(),
        ..record(Some("build"))
    };
    let (made, _lock) = create(&places, &record).unwrap();
    assert_eq!(fs::metadata(made.path()).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(made.is_alive());
    for named in [record.id.as_str(), &record.id[..20], short_id(&record.id), "build"] {
        assert_eq!(find(&places, named).unwrap().1, record, "{named}");
    }
    for named in ["", "..", "buil", "nothing"] {
        let missing = find(&places, named);
        assert!(matches!(missing, Err(SessionError::NoSuchSession { .. })), "{named}");
    }
}

/// Proves: LIFE-4 directory
#[test]
fn a_word_for_several_sessions_lists_them_and_a_living_one_keeps_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let places = places(directory.path());
    let (first, second) = (record(Some("build")), record(Some("build")));
    let (made, lock) = create(&places, &first).unwrap();
    let taken = create(&places, &second).unwrap_err();
    assert!(matches!(taken, SessionError::NameTaken { .. }), "{taken}");
    drop(lock);
    let over = SessionRecord { state: State::Completed, ..first.clone() };
    made.write_record(&over).unwrap();
    let (_second, _lock) = create(&places, &second).unwrap();
    assert_eq!(find(&places, "build").unwrap().1.id, second.id, "the one that is not over");
    let several = find(&places, &first.id[..2]).unwrap_err().to_string();
    assert!(several.contains(&first.id) && several.contains(&second.id), "{several}");
    for name in ["", "-x", "a b", "a/b", &"x".repeat(65)] {
        let refused = create(&places, &record(Some(name)));
        assert!(matches!(refused, Err(SessionError::InvalidName { .. })), "{name}");
    }
}

/// Proves: LIFE-4 crash
#[test]
fn a_session_whose_supervisor_was_killed_is_marked_once() {
    let directory = tempfile::tempdir().unwrap();
    let places = places(directory.path());
    let (killed, lock) = create(&places, &record(None)).unwrap();
    let (_alive, _lock) = create(&places, &record(None)).unwrap();
    let _socket = killed.listen().unwrap();
    assert_eq!(sweep(&places, SWEPT_BY_COMMANDS), Swept::default(), "both live");
    drop(lock);
    assert_eq!(sweep(&places, SWEPT_BY_COMMANDS), Swept { marked: 1, ..Swept::default() });
    let marked = killed.record().unwrap();
    assert!(marked.state == State::Error && marked.ended_at.is_some(), "{marked:?}");
    assert!(!killed.path().join("control").exists());
    assert_eq!(sweep(&places, SWEPT_BY_COMMANDS), Swept::default());
    killed.remove().unwrap();
    assert_eq!(list(&places).unwrap().len(), 1);
}

#[test]
fn a_living_session_cannot_be_removed_and_half_a_removal_is_finished() {
    let directory = tempfile::tempdir().unwrap();
    let places = places(directory.path());
    let (made, lock) = create(&places, &record(None)).unwrap();
    let path = made.path().to_owned();
    let refused = SessionDirectory::open(&places, made.id()).unwrap().unwrap().remove();
    assert!(matches!(refused, Err(SessionError::SessionRunning { .. })));
    drop(lock);
    fs::rename(&path, path.with_file_name(format!("{}.removed", made.id()))).unwrap();
    assert!(list(&places).unwrap().is_empty());
    assert_eq!(sweep(&places, SWEPT_BY_COMMANDS), Swept { removed: 1, ..Swept::default() });
    assert_eq!(names_in(path.parent().unwrap()), ["names.lock"]);
}

/// Proves: LIFE-4 crash
#[test]
fn a_session_whose_creator_was_killed_before_it_had_a_record_is_removed_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let places = places(directory.path());
    let (made, lock) = create(&places, &record(None)).unwrap();
    fs::remove_file(made.path().join("session.json")).unwrap();
    fs::write(made.path().join("session.json.tmp"), "{").unwrap();
    drop(lock);
    let all = made.path().parent().unwrap();
    let names = fs::File::open(all.join("names.lock")).unwrap();
    names.lock().unwrap();
    assert_eq!(sweep(&places, SWEPT_BY_COMMANDS), Swept::default(), "somebody is making one");
    drop(names);
    assert_eq!(sweep(&places, SWEPT_BY_COMMANDS), Swept { removed: 1, ..Swept::default() });
    assert_eq!(names_in(all), ["names.lock"]);
}

/// There may be changes in it that somebody wants.
///
/// Proves: LIFE-4 crash
#[test]
fn a_session_whose_record_cannot_be_read_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let places = places(directory.path());
    let (made, lock) = create(&places, &record(None)).unwrap();
    fs::write(made.path().join("session.json"), "").unwrap();
    drop(lock);
    assert_eq!(sweep(&places, SWEPT_BY_COMMANDS), Swept { failed: 1, ..Swept::default() });
    assert!(made.path().join("session.json").exists());
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Proves: LIFE-4 private-files
#[test]
fn nothing_follows_a_link_and_a_directory_that_others_write_to_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let places = places(directory.path());
    let (made, _lock) = create(&places, &record(None)).unwrap();
    let other = new_session_id();
    symlink(made.path(), made.path().with_file_name(&other)).unwrap();
    assert!(SessionDirectory::open(&places, &other).is_err(), "a link");
    fs::set_permissions(made.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let open = SessionDirectory::open(&places, made.id());
    assert!(matches!(open, Err(SessionError::ForeignDirectory { .. })));
    fs::set_permissions(made.path(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::remove_file(made.path().join("session.json")).unwrap();
    fs::write(directory.path().join("elsewhere"), "{}").unwrap();
    symlink(directory.path().join("elsewhere"), made.path().join("session.json")).unwrap();
    assert!(made.record().is_err(), "a link");
    made.write_record(&record(None)).unwrap();
    assert_eq!(fs::read_to_string(directory.path().join("elsewhere")).unwrap(), "{}");
}

#[test]
fn a_socket_is_reached_below_a_path_of_any_length() {
    let directory = tempfile::tempdir().unwrap();
    let deep = directory.path().join("x".repeat(120));
    fs::create_dir(&deep).unwrap();
    let places = places(&deep);
    let (made, _lock) = create(&places, &record(None)).unwrap();
    assert!(matches!(made.connect(), Err(SessionError::SessionNotRunning { .. })));
    let _listener = made.listen().unwrap();
    made.connect().unwrap();
}
