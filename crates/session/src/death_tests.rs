use super::fatal;
use crate::reporting;
use palisade_record::RunReport;

fn ended(signal: Option<i32>, exit_code: i32) -> RunReport {
    let mut report = RunReport::begin("session", &["true"], reporting::versions());
    report.signal = signal;
    report.exit_code = exit_code;
    report
}

/// Proves: LIFE-3 exit-code
#[test]
fn only_a_signal_that_the_code_tells_of_is_died_of() {
    assert_eq!(fatal(&ended(Some(2), 130)), Some(2));
    assert_eq!(fatal(&ended(Some(15), 143)), Some(15));
    assert_eq!(fatal(&ended(Some(11), 139)), Some(11));
    assert_eq!(fatal(&ended(None, 130)), None, "the command dealt with it and said so");
    assert_eq!(fatal(&ended(Some(15), 124)), None, "a time limit");
    assert_eq!(fatal(&ended(Some(9), 137)), None, "nobody cleans up after SIGKILL");
    assert_eq!(fatal(&ended(Some(6), 125)), None, "our own failure");
}
