//! What counts as proven, and that the page does not depend on the order of results.

use super::{Evidence, EvidenceKind, checked_claims, judge, render};
use crate::requirements::{self, Clause, Requirement};

fn clause(text: &str) -> Clause {
    text.parse().unwrap()
}

fn evidence(tests: &[(&str, &str)], proofs: &[(&str, &str)]) -> Evidence {
    let mut evidence = Evidence::default();
    for (name, test) in tests {
        super::add(&mut evidence.tests, &clause(name), test);
    }
    for (name, attack) in proofs {
        super::add(&mut evidence.proofs, &clause(name), attack);
    }
    evidence
}

#[test]
fn a_wall_needs_its_layers_off_run() {
    let tested = evidence(&[("FS-3 own-root", "attacks::files::f01")], &[]);
    assert!(!judge(&clause("FS-3 own-root"), EvidenceKind::Wall, &tested).0);
    let proven = evidence(&[("FS-3 own-root", "attacks::files::f01")], &[("FS-3 own-root", "F01")]);
    assert!(judge(&clause("FS-3 own-root"), EvidenceKind::Wall, &proven).0);
}

#[test]
fn an_ordinary_clause_needs_a_test() {
    let nothing = evidence(&[], &[]);
    assert!(!judge(&clause("POL-2 json"), EvidenceKind::Ordinary, &nothing).0);
    let tested = evidence(&[("POL-2 json", "policy::loads")], &[]);
    assert!(judge(&clause("POL-2 json"), EvidenceKind::Ordinary, &tested).0);
}

#[test]
fn the_page_is_the_same_whatever_the_order() {
    let requirements = [Requirement {
        id: "A-1".to_owned(),
        title: "one".to_owned(),
        clauses: [("x".to_owned(), "ex".to_owned())].into(),
        walls: [("y".to_owned(), "why".to_owned())].into(),
    }];
    let one = evidence(&[("A-1 x", "a"), ("A-1 x", "b")], &[]);
    let other = evidence(&[("A-1 x", "b"), ("A-1 x", "a"), ("A-1 x", "b")], &[]);
    let (text, totals) = render(&requirements, &one);
    assert_eq!(text, render(&requirements, &other).0);
    assert_eq!(totals, "1 of 2 clauses are proven");
    assert!(
        text.contains("## A-1: one (1 of 2)\n\n- [x] `x` ex: `a`, `b`\n- [ ] `y` *(wall)* why\n")
    );
}

#[test]
fn every_test_names_promises_that_were_made() {
    let (claims, errors) = checked_claims(&requirements::load().unwrap()).unwrap();
    let errors: Vec<String> = errors.iter().map(|error| format!("{error:#}")).collect();
    assert_eq!(errors, [""; 0]);
    assert!(!claims.is_empty());
}
