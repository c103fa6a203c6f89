use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use super::{Found, Output, Parser, Status};

fn parse(parser: Parser, log: &str, records: &str, code: Option<i32>) -> Found {
    let status = code.map(|code| ExitStatus::from_raw(code << 8));
    parser.parse(&Output { unit: "u", log, records, status }, &[77])
}

fn pairs(found: &Found) -> Vec<(&str, Status)> {
    found.tests.iter().map(|(name, status)| (name.as_str(), *status)).collect()
}

#[test]
fn tap_tells_passed_failed_skipped_and_known_breakage() {
    let log = "expecting success\nok 1 - one\nnot ok 2 - two\nok 3 # skip three (missing X)\n\
               not ok 4 - four # TODO known breakage\n# failed 1\n1..4\nok is not a result\n";
    let found = parse(Parser::Tap, log, "", Some(1));
    assert_eq!(
        pairs(&found),
        [
            ("u.four", Status::Skipped),
            ("u.one", Status::Passed),
            ("u.three (missing X)", Status::Skipped),
            ("u.two", Status::Failed)
        ]
    );
    assert_eq!(found.status("u.five"), Status::Missing);
}

#[test]
fn a_test_with_one_failed_part_failed() {
    let found = parse(Parser::Records, "", "failed A.x\npassed A.x\npassed A.y\n", Some(0));
    assert_eq!(pairs(&found), [("u.A.x", Status::Failed), ("u.A.y", Status::Passed)]);
}

#[test]
fn a_unit_that_was_killed_timed_out_where_it_said_nothing() {
    let found = parse(Parser::Records, "", "passed A.x\n", None);
    assert_eq!(found.status("u.A.x"), Status::Passed);
    assert_eq!(found.status("u.A.y"), Status::TimedOut);
}

#[test]
fn automake_lines_are_read() {
    let found = parse(Parser::Automake, "PASS: cp a\nFAIL: cp b\nSKIPPED: cp c\n", "", Some(1));
    assert_eq!(
        pairs(&found),
        [("u.cp a", Status::Passed), ("u.cp b", Status::Failed), ("u.cp c", Status::Skipped)]
    );
}

#[test]
fn an_exit_status_is_one_test() {
    let status = |log: &str, code| parse(Parser::ExitStatus, log, "", code).status("u");
    assert_eq!(status("", Some(0)), Status::Passed);
    assert_eq!(status("", Some(1)), Status::Failed);
    assert_eq!(status("", Some(77)), Status::Skipped);
    assert_eq!(status("1..0 # Skipped: no IPv6\n", Some(0)), Status::Skipped);
    assert_eq!(status("", None), Status::TimedOut);
}
