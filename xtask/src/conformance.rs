//! `cargo xtask conformance`: which promises passing tests prove, and which they do not.
//! Depends on nothing but the tree and the results of the last whole run, so that it can be
//! committed and compared.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Context, Result, bail};

use crate::proves::{self, Claim};
use crate::requirements::{self, Clause, Requirement};
use crate::results::{Results, TestResult};
use crate::tree::{self, CheckArguments};

const FILE: &str = "docs/conformance.md";

/// Runs the task.
pub(crate) fn conformance(arguments: CheckArguments) -> Result<()> {
    let requirements = requirements::load()?;
    let (claims, errors) = checked_claims(&requirements)?;
    refuse(&errors)?;
    let results = Results::load()?;
    refuse(&unknown_in_proofs(&results, &requirements))?;
    let evidence = Evidence::gather(&claims, &results);
    let (text, totals) = render(&requirements, &evidence);
    tree::write_or_check(&tree::root().join(FILE), &text, arguments)?;
    println!("{totals}");
    Ok(())
}

/// What the tests claim, and every claim about something that was never promised.
fn checked_claims(requirements: &[Requirement]) -> Result<(Vec<Claim>, Vec<anyhow::Error>)> {
    let (claims, mut errors) = proves::scan()?;
    for claim in &claims {
        let place = || format!("{}: {}", claim.source.file, claim.function);
        errors.extend(claim.clauses.iter().filter_map(|clause| {
            requirements::check_known(clause, requirements).with_context(place).err()
        }));
    }
    Ok((claims, errors))
}

fn unknown_in_proofs(results: &Results, requirements: &[Requirement]) -> Vec<anyhow::Error> {
    let named = results
        .proofs
        .iter()
        .flat_map(|proof| proof.clauses.iter().map(move |clause| (&proof.id, clause)));
    named
        .filter_map(|(attack, text)| {
            text.parse()
                .and_then(|clause| requirements::check_known(&clause, requirements))
                .with_context(|| format!("attack {attack}"))
                .err()
        })
        .collect()
}

fn refuse(errors: &[anyhow::Error]) -> Result<()> {
    for error in errors {
        eprintln!("error: {error:#}");
    }
    match errors.len() {
        0 => Ok(()),
        count => bail!("{count} claims cannot be counted"),
    }
}

/// Which tests passed for each clause, and which clauses have a layers-off proof.
#[derive(Debug, Default)]
struct Evidence {
    tests: BTreeMap<Clause, Vec<String>>,
    proofs: BTreeMap<Clause, Vec<String>>,
}

impl Evidence {
    fn gather(claims: &[Claim], results: &Results) -> Self {
        let mut evidence = Self::default();
        for claim in claims {
            let runs: Vec<&TestResult> = results
                .tests
                .iter()
                .filter(|result| claim.source.owns(&claim.function, result))
                .collect();
            let Some(first) = runs.first() else {
                eprintln!("not run: {} in {}", claim.function, claim.source.file);
                continue;
            };
            if runs.iter().any(|result| !result.passed) {
                continue;
            }
            let shown = format!("{}::{}", first.target, first.name);
            for clause in &claim.clauses {
                add(&mut evidence.tests, clause, &shown);
            }
        }
        for proof in results.proofs.iter().filter(|proof| proof.is_three_way()) {
            for clause in proof.clauses.iter().filter_map(|text| text.parse().ok()) {
                add(&mut evidence.proofs, &clause, &proof.id);
            }
        }
        evidence
    }

    fn tests(&self, clause: &Clause) -> &[String] {
        self.tests.get(clause).map_or(&[], Vec::as_slice)
    }

    fn proofs(&self, clause: &Clause) -> &[String] {
        self.proofs.get(clause).map_or(&[], Vec::as_slice)
    }
}

fn add(map: &mut BTreeMap<Clause, Vec<String>>, clause: &Clause, value: &str) {
    let values = map.entry(clause.clone()).or_default();
    if let Err(place) = values.binary_search_by(|known| known.as_str().cmp(value)) {
        values.insert(place, value.to_owned());
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EvidenceKind {
    Ordinary,
    Wall,
}

fn render(requirements: &[Requirement], evidence: &Evidence) -> (String, String) {
    let mut body = String::new();
    let (mut proven_in_all, mut total_in_all) = (0, 0);
    for requirement in requirements {
        let mut lines = String::new();
        let (mut proven, mut total) = (0, 0);
        let ordinary = requirement.clauses.iter().map(|clause| (clause, EvidenceKind::Ordinary));
        let walls = requirement.walls.iter().map(|clause| (clause, EvidenceKind::Wall));
        for ((name, says), kind) in ordinary.chain(walls) {
            let clause = Clause { id: requirement.id.clone(), name: name.clone() };
            let (is_proven, because) = judge(&clause, kind, evidence);
            total += 1;
            proven += usize::from(is_proven);
            let mark = if is_proven { 'x' } else { ' ' };
            let wall = if kind == EvidenceKind::Wall { " *(wall)*" } else { "" };
            let _ = writeln!(lines, "- [{mark}] `{name}`{wall} {says}{because}");
        }
        let (id, title) = (&requirement.id, &requirement.title);
        let _ = write!(body, "\n## {id}: {title} ({proven} of {total})\n\n{lines}");
        proven_in_all += proven;
        total_in_all += total;
    }
    let totals = format!("{proven_in_all} of {total_in_all} clauses are proven");
    let text = format!(
        "# Conformance\n\n\
         Written by `cargo xtask conformance`; do not edit. A clause is proven when a passing test\n\
         names it, and a wall only when its attack also worked bare and with its layers off.\n\n\
         **{totals}.**\n{body}"
    );
    (text, totals)
}

fn judge(clause: &Clause, kind: EvidenceKind, evidence: &Evidence) -> (bool, String) {
    let tests = evidence.tests(clause);
    let proofs = evidence.proofs(clause);
    let named = |names: &[String]| {
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    match (kind, tests, proofs) {
        (EvidenceKind::Ordinary, [], _) => (false, String::new()),
        (EvidenceKind::Ordinary, tests, _) => (true, format!(": {}", named(tests))),
        (EvidenceKind::Wall, [], []) => (false, String::new()),
        (EvidenceKind::Wall, tests, []) => {
            (false, format!(": tested by {}, but not with the layers off", named(tests)))
        }
        (EvidenceKind::Wall, _, proofs) => (true, format!(": attack {}", named(proofs))),
    }
}

#[cfg(test)]
#[path = "conformance_tests.rs"]
mod tests;
