//! What a run found, for who reads the terminal or, as JSON, for a program.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;

use super::differences::Verdict;
use super::records::{Outcome, Record, Records};

/// Prints the differences, what was flaky, and a line for each suite.
pub(crate) fn print(
    records: &Records,
    verdict: &Verdict,
    json: bool,
    start: Instant,
) -> Result<()> {
    if json {
        println!("{}", serde_json::to_string_pretty(records)?);
        return Ok(());
    }
    let with =
        |outcome: Outcome| records.tests.iter().filter(move |record| record.outcome == outcome);
    for record in with(Outcome::FlakyBare) {
        println!("flaky bare, not compared: {}", shown(record));
    }
    for record in with(Outcome::FlakyInside) {
        println!("flaky inside, failed once in {}: {}", record.tried_inside, shown(record));
    }
    for line in &verdict.stale {
        println!("stale in differences.yaml, nothing differs any more: {line}");
    }
    for record in with(Outcome::Differs) {
        println!(
            "differs: {}: {:?} inside, {} of {} times",
            shown(record),
            record.inside,
            record.failed_inside,
            record.tried_inside
        );
    }
    for ((suite, by), line) in summary(records) {
        println!("{suite} as {by}: {line}");
    }
    println!("{} differences, {:.0}s", verdict.unexplained, start.elapsed().as_secs_f64());
    Ok(())
}

fn shown(record: &Record) -> String {
    format!("{} as {}: {}", record.suite, record.by, record.test)
}

fn summary(records: &Records) -> BTreeMap<(&str, &str), String> {
    let mut counts: BTreeMap<(&str, &str), BTreeMap<Outcome, usize>> = BTreeMap::new();
    for record in &records.tests {
        let count = counts.entry((&record.suite, &record.by)).or_default();
        *count.entry(record.outcome).or_default() += 1;
    }
    let line = |count: &BTreeMap<Outcome, usize>| {
        let of = |outcome| count.get(&outcome).copied().unwrap_or(0);
        format!(
            "{} same, {} intended, {} differ, {} flaky, {} not compared",
            of(Outcome::Same),
            of(Outcome::Intended),
            of(Outcome::Differs),
            of(Outcome::FlakyBare) + of(Outcome::FlakyInside),
            of(Outcome::NotCompared)
        )
    };
    counts.iter().map(|(key, count)| (*key, line(count))).collect()
}
