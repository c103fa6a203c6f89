//! What makes a line red, and that nothing can be missing in silence.

use super::super::{corpus, page};
use super::{Outcome, Table};
use crate::results::{Bare, Inside, Off, Proof, Results};

const CORPUS: &str = "
layers:
  - {name: seccomp, what: a filter}
attacks:
  - {id: K01, what: a ring, safe: refused}
  - {id: N03, what: names, safe: none, later: {part: egress, why: no resolver}}
";

fn proof(by: &str) -> Proof {
    Proof {
        by: by.to_owned(),
        test: "kernel::k01".to_owned(),
        id: "K01".to_owned(),
        name: "set up a ring".to_owned(),
        clauses: Vec::new(),
        as_root: Some(vec!["seccomp".to_owned()]),
        as_user: Some(vec!["seccomp".to_owned()]),
        one_caller: None,
        by_design: None,
        no_bare_run: None,
        needs: None,
        bare: Bare::Works,
        inside: Inside::Held,
        off: Off::Works,
    }
}

fn whole(proofs: Vec<Proof>) -> Table {
    let corpus = corpus::parse(CORPUS).unwrap();
    Table::whole(&corpus, &Results { tests: Vec::new(), proofs })
}

#[test]
fn a_table_without_fault_has_no_red_line() {
    let table = whole(vec![proof("root"), proof("user")]);
    assert_eq!(table.wrong, [""; 0]);
    assert_eq!(table.attacks.len(), 1);
    assert_eq!(table.layers[0].attacks, ["K01"]);
}

#[test]
fn every_way_to_come_out_wrong_is_red() {
    let wrong = [
        Proof { bare: Bare::Fails, inside: Inside::NotTried, ..proof("root") },
        Proof { bare: Bare::NotTried, ..proof("root") },
        Proof { inside: Inside::LetThrough, ..proof("root") },
        Proof { inside: Inside::Unclear, off: Off::NotTried, ..proof("root") },
        Proof { off: Off::StillHeld, ..proof("root") },
        Proof { off: Off::SmallerSetSuffices, ..proof("root") },
        Proof { off: Off::NotTried, ..proof("root") },
    ];
    for proof in wrong {
        let shown = format!("{proof:?}");
        assert!(matches!(super::outcome(&proof), Outcome::Red(_)), "{shown}");
        assert_eq!(whole(vec![proof]).wrong.len(), 1, "{shown}");
    }
}

#[test]
fn one_red_try_makes_the_line_red() {
    let red = Proof { inside: Inside::LetThrough, ..proof("root") };
    assert!(whole(vec![proof("root"), red.clone()]).attacks[0].is_red());
    assert!(whole(vec![red, proof("root")]).attacks[0].is_red());
}

#[test]
fn an_id_without_an_attack_or_a_reason_is_wrong() {
    let table = whole(Vec::new());
    assert!(table.wrong.iter().any(|wrong| wrong.starts_with("K01")), "{:?}", table.wrong);
    assert!(!table.wrong.iter().any(|wrong| wrong.starts_with("N03")), "{:?}", table.wrong);
}

#[test]
fn a_layer_that_holds_nothing_is_wrong() {
    let without = Proof { as_root: None, as_user: None, ..proof("root") };
    let table = whole(vec![without]);
    assert!(table.wrong.iter().any(|wrong| wrong.contains("seccomp")), "{:?}", table.wrong);
}

#[test]
fn an_attack_that_two_tests_declare_differently_is_wrong() {
    let other = Proof { as_user: None, ..proof("root") };
    let table = whole(vec![proof("root"), other]);
    assert_eq!(table.wrong, ["K01 (set up a ring) is declared in two ways"]);
}

#[test]
fn an_attack_outside_the_corpus_or_by_an_unknown_layer_is_wrong() {
    let mut unknown = proof("root");
    unknown.id = "Z99".to_owned();
    unknown.as_user = Some(vec!["magic".to_owned()]);
    let table = whole(vec![proof("root"), unknown]);
    assert_eq!(table.wrong.len(), 2, "{:?}", table.wrong);
}

#[test]
fn the_page_does_not_tell_who_ran_the_tests_or_what_the_host_lacked() {
    let needy = |by: &str| Proof { needs: Some("a ring".to_owned()), ..proof(by) };
    let untried = |by: &str| Proof {
        bare: Bare::NotTried,
        inside: Inside::NotTried,
        off: Off::NotTried,
        ..needy(by)
    };
    let tried = page::render(&whole(vec![needy("root"), needy("user")]));
    assert_eq!(tried, page::render(&whole(vec![untried("user")])));
    assert!(tried.contains("| K01 | set up a ring *(needs a ring)* | works | held | seccomp |"));
}

#[test]
fn layers_of_roots_own_are_told_apart() {
    let mut mixed = proof("root");
    mixed.as_root = Some(vec!["seccomp".to_owned(), "identity".to_owned()]);
    let table = whole(vec![mixed]);
    assert_eq!(page::without(&table.attacks[0]), "seccomp (as root + identity)");
}
