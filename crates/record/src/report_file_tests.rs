use super::ReportFile;
use crate::error::RecordError;
use crate::report::{RunReport, Versions};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

fn report() -> RunReport {
    let versions = Versions { palisade: "0.1.0".to_owned(), kernel: "6.18.0".to_owned() };
    RunReport::begin("s-1", &["true"], versions)
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_report_is_written_whole_and_private() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.json");
    let report = report();
    fs::write(&path, "old and longer than nothing").unwrap();
    ReportFile::prepare(&path).unwrap().write(&report).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), report.to_json().unwrap());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(names(directory.path()), ["report.json"]);
}

/// Attack F20.
#[test]
fn a_link_in_the_place_of_the_report_is_refused_before_and_after() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.json");
    let victim = directory.path().join("victim");
    fs::write(&victim, "precious").unwrap();

    let prepared = ReportFile::prepare(&path).unwrap();
    symlink(&victim, &path).unwrap();
    assert!(matches!(prepared.write(&report()), Err(RecordError::SymbolicLink(_))));
    assert!(matches!(ReportFile::prepare(&path), Err(RecordError::SymbolicLink(_))));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(names(directory.path()), ["report.json", "victim"]);
}

/// Attack F20.
#[test]
fn a_directory_swapped_for_a_link_leads_nowhere() {
    let directory = tempfile::tempdir().unwrap();
    let [inner, moved, elsewhere] =
        ["inner", "moved", "elsewhere"].map(|name| directory.path().join(name));
    fs::create_dir(&inner).unwrap();
    fs::create_dir(&elsewhere).unwrap();

    let prepared = ReportFile::prepare(&inner.join("report.json")).unwrap();
    fs::rename(&inner, &moved).unwrap();
    symlink(&elsewhere, &inner).unwrap();
    prepared.write(&report()).unwrap();
    assert_eq!(names(&elsewhere), [""; 0]);
    assert_eq!(names(&moved), ["report.json"]);
}

#[test]
fn what_is_no_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |path: &Path| ReportFile::prepare(path).unwrap_err().to_string();
    assert!(refused(directory.path()).contains("is not a regular file"));
    assert!(refused(Path::new("/dev/null")).contains("is not a regular file"));
    assert!(refused(Path::new("/")).contains("names no file"));
    let missing = refused(&directory.path().join("missing/report.json"));
    assert!(missing.contains("missing") && missing.contains("(ENOENT); create it"), "{missing}");
}
