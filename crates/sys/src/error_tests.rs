use std::path::Path;

use super::*;

#[test]
fn an_error_says_call_path_and_errno_by_name() {
    let failed: std::result::Result<(), Errno> = Err(Errno::ACCESS);
    let error = failed.at("open_tree", Path::new("/usr")).unwrap_err();
    assert_eq!(error.to_string(), "open_tree /usr: Permission denied (EACCES)");
    let error = SysError::new("setsid", "", Errno::PERM);
    assert_eq!(error.to_string(), "setsid: Operation not permitted (EPERM)");
}

#[test]
fn an_errno_without_a_name_shows_its_number() {
    let error = SysError::new("read", "", Errno::from_raw_os_error(4000));
    assert_eq!(error.to_string(), "read: Unknown error 4000 (errno 4000)");
}

#[test]
fn a_std_error_keeps_its_errno() {
    let opened = std::fs::File::open("/nonexistent/file");
    let error = opened.at("open", Path::new("/nonexistent/file")).unwrap_err();
    assert_eq!(error.errno, Errno::NOENT);
}
