use super::{AppDirs, read_document, replace_file};
use crate::error::SessionError;
use std::fs::File;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

#[test]
fn directories_follow_the_xdg_rules() {
    let home = Path::new("/home/u");
    let plain = AppDirs::of_caller(|_| None, Some(home)).unwrap();
    assert_eq!(plain.user, PathBuf::from("/home/u/.config/palisade"));
    assert_eq!(plain.state, PathBuf::from("/home/u/.local/state/palisade"));

    let moved = |name: &str| (name == "XDG_STATE_HOME").then(|| "/var/s".into());
    assert_eq!(
        AppDirs::of_caller(moved, Some(home)).unwrap().state,
        PathBuf::from("/var/s/palisade")
    );

    let relative = |_: &str| Some("not/absolute".into());
    assert_eq!(AppDirs::of_caller(relative, Some(home)).unwrap(), plain);
}

/// Proves: POL-4 lock
#[test]
fn no_variable_moves_the_organisation_layer() {
    let everything = |_: &str| Some("/tmp/mine".into());
    let places = AppDirs::of_caller(everything, None).unwrap();
    assert_eq!(places.organisation, PathBuf::from("/etc/palisade"));
}

#[test]
fn without_a_home_the_error_names_the_variable() {
    let error = AppDirs::of_caller(|_| None, None).unwrap_err();
    assert!(error.to_string().contains("XDG_CONFIG_HOME"), "{error}");
}

#[test]
fn the_canary_is_private_and_never_written_through_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let places = AppDirs {
        organisation: directory.path().join("etc"),
        user: directory.path().join("config"),
        state: directory.path().join("state"),
        runtime: directory.path().join("run"),
    };
    let canary = places.make_canary().unwrap();
    assert_eq!(canary.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    std::fs::remove_file(&canary).unwrap();
    let elsewhere = directory.path().join("elsewhere");
    std::fs::write(&elsewhere, "kept").unwrap();
    symlink(&elsewhere, &canary).unwrap();
    assert!(matches!(places.make_canary(), Err(SessionError::Io { .. })));
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "kept");
}

#[test]
fn only_small_regular_files_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("policy.yaml");
    assert!(read_document(&path).unwrap().is_none());

    replace_file(&path, b"version: 1\n").unwrap();
    assert_eq!(read_document(&path).unwrap().as_deref(), Some("version: 1\n"));

    std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert!(matches!(read_document(&path), Err(SessionError::TooLarge { .. })));

    std::fs::remove_file(&path).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
    assert!(matches!(read_document(&path), Err(SessionError::NotRegular { .. })));
}

/// Proves: LIFE-4 crash
#[test]
fn what_a_killed_writer_left_goes_with_the_next_write() {
    let directory = tempfile::tempdir().unwrap();
    let id = uuid::Uuid::now_v7().simple().to_string();
    let [old, young, other] =
        [format!("a.json.{id}.tmp"), format!("b.json.{id}.tmp"), "notes.tmp".to_owned()]
            .map(|name| directory.path().join(name));
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    for path in [&old, &young, &other] {
        let file = File::create(path).unwrap();
        if path != &young {
            file.set_modified(long_ago).unwrap();
        }
    }
    replace_file(&directory.path().join("c.json"), b"{}").unwrap();
    assert!(!old.exists());
    assert!(young.exists() && other.exists());
}
