use super::super::parse::Status;
use super::super::records::Record;
use super::super::suites::Form;
use super::{Difference, Differences, Outcome, Records};

fn record(test: &str, by: &str, outcome: Outcome) -> Record {
    Record {
        suite: "s".to_owned(),
        unit: "u".to_owned(),
        test: test.to_owned(),
        by: by.to_owned(),
        bare: Status::Passed,
        inside: Status::Failed,
        outcome,
        failed_inside: 4,
        tried_inside: 4,
    }
}

fn known(pattern: &str, by: Option<&str>) -> Differences {
    Differences(vec![Difference {
        suite: "s".to_owned(),
        tests: vec![pattern.to_owned()],
        by: by.map(str::to_owned),
        reason: "meant".to_owned(),
        clause: "FS-7 private-tmp".to_owned(),
    }])
}

fn records(tests: Vec<Record>) -> Records {
    Records { form: Form::Short, is_whole: true, tests }
}

/// Proves: COMPAT-1 compared
#[test]
fn a_difference_that_nothing_means_fails_the_task() {
    let mut found = records(vec![record("u.a", "root", Outcome::Differs)]);
    assert!(known("u.b", None).judge(&mut found, &[]).into_result().is_err());
    assert!(known("u.a", Some("user")).judge(&mut found, &[]).into_result().is_err());
}

/// Proves: COMPAT-1 intended
#[test]
fn a_difference_that_a_promise_means_does_not() {
    let mut found = records(vec![record("u.a", "root", Outcome::Differs)]);
    let verdict = known("u.*", Some("root")).judge(&mut found, &[]);
    assert_eq!(found.tests[0].outcome, Outcome::Intended);
    assert!(verdict.into_result().is_ok());
}

/// Proves: COMPAT-1 intended
#[test]
fn an_entry_whose_tests_pass_inside_is_stale() {
    let mut found = records(vec![record("u.a", "root", Outcome::Same)]);
    let stale = |pattern: &str, found: &mut Records| {
        known(pattern, None)
            .judge(found, &[])
            .stale
            .iter()
            .any(|line| line == &format!("s {pattern}"))
    };
    assert!(stale("u.a", &mut found));
    assert!(!stale("u.never-run", &mut found));
}

/// Proves: COMPAT-1 compared
#[test]
fn nothing_run_is_not_success() {
    let mut found = records(Vec::new());
    assert!(known("u.a", None).judge(&mut found, &[]).into_result().is_err());
}
