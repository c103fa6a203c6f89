//! The scanner, on small texts. Their lines are joined here, for the scanner reads this file too.

use std::path::Path;

use super::{Claim, Source, scan_file};
use crate::results::TestResult;

fn scan_text(lines: &[&str]) -> (Vec<Claim>, Vec<String>) {
    let source = Source::of(Path::new("crates/plan/src/mounts_tests.rs"));
    let (mut claims, mut errors) = (Vec::new(), Vec::new());
    scan_file(&source, &lines.join("\n"), &mut claims, &mut errors);
    (claims, errors.iter().map(|error| format!("{error:#}")).collect())
}

fn result(package: &str, target: &str, name: &str) -> TestResult {
    TestResult {
        by: "root".to_owned(),
        package: package.to_owned(),
        target: target.to_owned(),
        name: name.to_owned(),
        passed: true,
    }
}

#[test]
fn a_line_above_a_test_is_a_claim() {
    let (claims, errors) = scan_text(&[
        "/// What it is about.",
        "/// Proves: FS-1 read-only, FS-7 private-proc",
        "#[test]",
        "fn mounts_are_read_only() {",
    ]);
    assert_eq!(errors, [""; 0]);
    let [claim] = claims.as_slice() else { panic!("{claims:?}") };
    assert_eq!(claim.function, "mounts_are_read_only");
    let clauses: Vec<String> = claim.clauses.iter().map(ToString::to_string).collect();
    assert_eq!(clauses, ["FS-1 read-only", "FS-7 private-proc"]);
}

#[test]
fn a_line_above_anything_else_is_an_error() {
    let (claims, errors) = scan_text(&["// Proves: FS-1 read-only", "fn helper() {"]);
    assert_eq!(claims, []);
    assert_eq!(
        errors,
        ["crates/plan/src/mounts_tests.rs:2: the `Proves:` line above belongs to no test"]
    );
}

#[test]
fn a_line_without_a_clause_is_an_error() {
    let (_, errors) = scan_text(&["// Proves: FS-1", "#[test]", "fn vague() {"]);
    assert!(errors[0].contains("is not an id and a clause"), "{errors:?}");
}

#[test]
fn unit_tests_are_found_by_package_and_module() {
    let source = Source::of(Path::new("crates/plan/src/mounts_tests.rs"));
    let function = "order";
    assert!(source.owns(function, &result("crates/plan", "palisade_plan", "mounts::tests::order")));
    assert!(
        !source.owns(function, &result("crates/plan", "palisade_plan", "limits::tests::order"))
    );
    assert!(!source.owns(function, &result("crates/bpf", "palisade_bpf", "mounts::tests::order")));
    assert!(
        !source.owns(function, &result("crates/plan", "palisade_plan", "mounts::tests::border"))
    );
}

#[test]
fn tests_at_the_root_belong_to_the_binary() {
    let source = Source::of(Path::new("tests/attacks/files.rs"));
    assert!(source.owns("f01", &result("crates/cli", "attacks", "files::f01")));
    assert!(!source.owns("f01", &result("crates/cli", "functional", "files::f01")));
}

#[test]
fn an_integration_test_of_one_file_has_no_module() {
    let source = Source::of(Path::new("xtask/tests/house.rs"));
    assert!(source.owns("direction", &result("xtask", "house", "direction")));
}
