//! The lines of the table, from what the tests declared and what came of it, and what is wrong with
//! them. Must never let a line pass that no caller has tried and nobody has given a reason for.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::corpus::Corpus;
use crate::results::{Bare, Inside, Off, Proof, Results};

/// The target whose tests are attacks.
pub(super) const TARGET: &str = "attacks";

/// Everything the table says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Table {
    pub(super) attacks: Vec<Row>,
    /// Each layer and the ids of the attacks it is needed against.
    pub(super) layers: Vec<LayerUse>,
    pub(super) corpus: Vec<Coverage>,
    /// Everything that must not be: failed lines, layers that hold nothing, ids without an attack.
    pub(super) wrong: Vec<String>,
}

/// One attack.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) as_root: Option<Vec<String>>,
    pub(super) as_user: Option<Vec<String>>,
    pub(super) one_caller: Option<String>,
    pub(super) by_design: Option<String>,
    pub(super) no_bare_run: Option<String>,
    pub(super) needs: Option<String>,
    /// How it came out for each caller who ran the tests.
    pub(super) outcomes: BTreeMap<String, Outcome>,
}

/// How it came out for one caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is", content = "why")]
pub(super) enum Outcome {
    Held,
    NotTried,
    Red(String),
}

#[derive(Debug, Serialize)]
pub(super) struct LayerUse {
    pub(super) name: String,
    pub(super) what: String,
    pub(super) attacks: Vec<String>,
}

/// What became of one id of the corpus.
#[derive(Debug, Serialize)]
pub(super) struct Coverage {
    pub(super) id: String,
    pub(super) what: String,
    pub(super) safe: String,
    pub(super) attacks: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) later: Option<super::corpus::Later>,
}

impl Table {
    /// Of a whole run: what is missing is wrong as well.
    pub(super) fn whole(corpus: &Corpus, results: &Results) -> Self {
        let mut table = Self::part(corpus, results);
        for layer in table.layers.iter().filter(|layer| layer.attacks.is_empty()) {
            table.wrong.push(format!("no attack needs the layer {} to be held", layer.name));
        }
        for entry in &table.corpus {
            if entry.attacks == 0 && entry.later.is_none() {
                table.wrong.push(format!("{}: no test tries it, and no reason is given", entry.id));
            }
        }
        table
    }

    /// Of a run of some tests.
    pub(super) fn part(corpus: &Corpus, results: &Results) -> Self {
        let (attacks, mut wrong) = rows(&results.proofs);
        for row in &attacks {
            for (by, outcome) in &row.outcomes {
                if let Outcome::Red(why) = outcome {
                    wrong.push(format!("{} ({}) as {by}: {why}", row.id, row.name));
                }
            }
            if !corpus.attacks.iter().any(|entry| entry.id == row.id) {
                wrong.push(format!("{} ({}): the corpus has no such id", row.id, row.name));
            }
            for layer in row.layers() {
                if !corpus.layers.iter().any(|known| known.name == layer) {
                    wrong.push(format!("{} ({}): no layer is called {layer}", row.id, row.name));
                }
            }
        }
        let failed = results.tests.iter().filter(|test| test.target == TARGET && !test.passed);
        wrong.extend(failed.map(|test| format!("failed as {}: {}", test.by, test.name)));
        let layers = corpus
            .layers
            .iter()
            .map(|layer| LayerUse {
                name: layer.name.clone(),
                what: layer.what.clone(),
                attacks: ids_held_by(&attacks, &layer.name),
            })
            .collect();
        let corpus = corpus
            .attacks
            .iter()
            .map(|entry| Coverage {
                id: entry.id.clone(),
                what: entry.what.clone(),
                safe: entry.safe.clone(),
                attacks: attacks.iter().filter(|row| row.id == entry.id).count(),
                later: entry.later.clone(),
            })
            .collect();
        Self { attacks, layers, corpus, wrong }
    }
}

impl Row {
    /// The layers that are in its set for some caller.
    pub(super) fn layers(&self) -> BTreeSet<&str> {
        self.as_root.iter().chain(&self.as_user).flatten().map(String::as_str).collect()
    }

    pub(super) fn is_red(&self) -> bool {
        self.outcomes.values().any(|outcome| matches!(outcome, Outcome::Red(_)))
    }

    fn declares_the_same(&self, proof: &Proof) -> bool {
        self.as_root == proof.as_root
            && self.as_user == proof.as_user
            && self.one_caller == proof.one_caller
            && self.by_design == proof.by_design
            && self.no_bare_run == proof.no_bare_run
            && self.needs == proof.needs
    }
}

fn ids_held_by(attacks: &[Row], layer: &str) -> Vec<String> {
    let mut ids: Vec<String> = attacks
        .iter()
        .filter(|row| row.layers().contains(layer))
        .map(|row| row.id.clone())
        .collect();
    ids.sort();
    ids.dedup();
    ids
}

/// One line an attack, in order, and what the tests contradict each other in.
fn rows(proofs: &[Proof]) -> (Vec<Row>, Vec<String>) {
    let mut rows: BTreeMap<(String, String), Row> = BTreeMap::new();
    let mut wrong = Vec::new();
    for proof in proofs {
        let key = (proof.id.clone(), proof.name.clone());
        let row = rows.entry(key).or_insert_with(|| Row {
            id: proof.id.clone(),
            name: proof.name.clone(),
            as_root: proof.as_root.clone(),
            as_user: proof.as_user.clone(),
            one_caller: proof.one_caller.clone(),
            by_design: proof.by_design.clone(),
            no_bare_run: proof.no_bare_run.clone(),
            needs: proof.needs.clone(),
            outcomes: BTreeMap::new(),
        });
        if !row.declares_the_same(proof) {
            wrong.push(format!("{} ({}) is declared in two ways", proof.id, proof.name));
        }
        let known = row.outcomes.entry(proof.by.clone()).or_insert(Outcome::NotTried);
        *known = worse(known.clone(), outcome(proof));
    }
    wrong.sort();
    wrong.dedup();
    (rows.into_values().collect(), wrong)
}

/// Of two tries of the same attack the one that counts.
fn worse(one: Outcome, other: Outcome) -> Outcome {
    match (one, other) {
        (Outcome::Red(why), _) | (_, Outcome::Red(why)) => Outcome::Red(why),
        (Outcome::Held, _) | (_, Outcome::Held) => Outcome::Held,
        (Outcome::NotTried, Outcome::NotTried) => Outcome::NotTried,
    }
}

fn outcome(proof: &Proof) -> Outcome {
    let red = |why: &str| Outcome::Red(why.to_owned());
    match (proof.bare, proof.inside, proof.off) {
        (Bare::Fails, _, _) => red("it does not work bare, so it proves nothing"),
        (_, Inside::NotTried, _) => Outcome::NotTried,
        (_, Inside::LetThrough, _) => red("it gets through"),
        (_, Inside::Unclear, _) => red("the run inside came out in no way it should"),
        (Bare::NotTried, Inside::Held, _) => red("it was never seen to work bare"),
        (_, Inside::Held, Off::StillHeld) => red("something else than its layers holds it"),
        (_, Inside::Held, Off::SmallerSetSuffices) => red("it gets through with fewer layers off"),
        (_, Inside::Held, Off::NotTried) => red("it was not tried with its layers off"),
        (_, Inside::Held, Off::Works | Off::NoLayer) => Outcome::Held,
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
