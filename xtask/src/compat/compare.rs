//! Runs the units of a suite on both sides and compares their tests. A difference counts only after both sides were
//! tried again: what fails bare too says nothing, and what failed inside once and never again is reported as flaky.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::differences::Differences;
use super::parse::{Found, Status};
use super::place::{Side, WorkerDirectories, WorkerDirectory};
use super::records::{Outcome, Record};
use super::run;
use super::suites::{Suite, Unit};

/// One suite, run by one user.
#[derive(Debug)]
pub(crate) struct Comparison<'a> {
    pub(crate) places: &'a WorkerDirectories<'a>,
    pub(crate) rounds: u32,
    /// How often a difference is tried again on both sides.
    pub(crate) retries: u32,
    pub(crate) by: &'static str,
    /// What is known to differ is not tried again.
    pub(crate) differences: &'a Differences,
}

/// What became of one test in all its tries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) bare: Tries,
    pub(crate) inside: Tries,
}

/// One side of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tries {
    pub(crate) passed: u32,
    pub(crate) tried: u32,
    /// The last one that did not pass.
    pub(crate) otherwise: Option<Status>,
}

impl Comparison<'_> {
    fn suite(&self) -> &Suite {
        self.places.needs.suite
    }

    /// Compares these units, as many at once as there are CPUs.
    pub(crate) fn run(&self, units: &[Unit]) -> Result<Vec<Record>> {
        let (able, unable): (Vec<&Unit>, Vec<&Unit>) =
            units.iter().partition(|unit| unit.needs.iter().all(|program| is_there(program)));
        for unit in unable {
            let missing: Vec<&str> = unit
                .needs
                .iter()
                .filter(|program| !is_there(program))
                .map(String::as_str)
                .collect();
            eprintln!(
                "{} {} not run: {} missing",
                self.suite().name,
                unit.name,
                missing.join(", ")
            );
        }
        run::forget_logs(&self.suite().name, units, self.by)?;
        let next = AtomicUsize::new(0);
        let records = Mutex::new(Vec::new());
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(able.len());
        std::thread::scope(|scope| {
            let handles: Vec<_> = (0..workers)
                .map(|worker| {
                    let (next, records, able) = (&next, &records, &able);
                    scope.spawn(move || -> Result<()> {
                        let pair = self.pair(worker)?;
                        while let Some(unit) = able.get(next.fetch_add(1, Ordering::Relaxed)) {
                            let found = self.unit(unit, &pair)?;
                            records.lock().map_err(|_| anyhow!("a worker died"))?.extend(found);
                        }
                        Ok(())
                    })
                })
                .collect();
            handles
                .into_iter()
                .try_for_each(|handle| handle.join().map_err(|_| anyhow!("a worker died"))?)
        })?;
        records.into_inner().map_err(|_| anyhow!("a worker died"))
    }

    fn pair(&self, worker: usize) -> Result<[WorkerDirectory; 2]> {
        Ok([self.places.place(Side::Bare, worker)?, self.places.place(Side::Inside, worker)?])
    }

    fn unit(&self, unit: &Unit, pair: &[WorkerDirectory; 2]) -> Result<Vec<Record>> {
        let start = Instant::now();
        let mut tallies = BTreeMap::new();
        for _ in 0..self.rounds {
            self.round(unit, pair, &mut tallies)?;
        }
        let is_new = |(test, tally): (&String, &Tally)| {
            tally.may_differ() && !self.differences.mean(&self.suite().name, test, self.by)
        };
        if tallies.iter().any(is_new) {
            for _ in 0..self.retries {
                self.round(unit, pair, &mut tallies)?;
            }
        }
        let records: Vec<Record> =
            tallies.iter().map(|(test, tally)| self.record(unit, test, tally)).collect();
        let count =
            |outcome: Outcome| records.iter().filter(|record| record.outcome == outcome).count();
        eprintln!(
            "{:4} {} {} … {} same, {} differ, {} not compared, {:.1}s",
            self.by,
            self.suite().name,
            unit.name,
            count(Outcome::Same),
            count(Outcome::Differs),
            count(Outcome::NotCompared),
            start.elapsed().as_secs_f64()
        );
        Ok(records)
    }

    /// Both sides once more.
    fn round(
        &self,
        unit: &Unit,
        [bare_place, inside_place]: &[WorkerDirectory; 2],
        tallies: &mut BTreeMap<String, Tally>,
    ) -> Result<()> {
        let whole = Duration::from_secs(self.suite().deadline);
        let bare = run::run(self.places, bare_place, unit, (Side::Bare, whole))?;
        let deadline = run::deadline_inside(self.suite(), bare.took);
        let inside = run::run(self.places, inside_place, unit, (Side::Inside, deadline))?;
        let (bare_log, inside_log) = (bare.log, inside.log);
        let (bare, inside) = (bare.found, inside.found);
        let differs = |test: &String| {
            bare.status(test) == Status::Passed && inside.status(test) != Status::Passed
        };
        let keep = |side: &str, log: &str| {
            run::keep_log(&run::log_name(&self.suite().name, unit, self.by, side), log)
        };
        if bare.tests.keys().any(differs) {
            keep("bare", &bare_log)?;
            keep("inside", &inside_log)?;
        }
        if bare.tests.is_empty() {
            keep("bare", &bare_log)?;
            eprintln!("{} {} reports no test, bare", self.suite().name, unit.name);
            // A record all the same: what does not run is seen in the figures.
            tallies.entry(unit.name.clone()).or_default();
        }
        tally(tallies, &bare, &inside);
        Ok(())
    }

    fn record(&self, unit: &Unit, test: &str, tally: &Tally) -> Record {
        Record {
            suite: self.suite().name.clone(),
            unit: unit.name.clone(),
            test: test.to_owned(),
            by: self.by.to_owned(),
            bare: tally.bare.status(),
            inside: tally.inside.status(),
            outcome: tally.outcome(self.rounds),
            failed_inside: tally.inside.tried - tally.inside.passed,
            tried_inside: tally.inside.tried,
        }
    }
}

/// Adds a round to what is known of each test that said something bare.
fn tally(tallies: &mut BTreeMap<String, Tally>, bare: &Found, inside: &Found) {
    for test in bare.tests.keys() {
        tallies.entry(test.clone()).or_default();
    }
    for (test, tally) in tallies {
        tally.bare.add(bare.status(test));
        tally.inside.add(inside.status(test));
    }
}

impl Tries {
    fn add(&mut self, status: Status) {
        self.tried += 1;
        if status == Status::Passed {
            self.passed += 1;
        } else {
            self.otherwise = Some(status);
        }
    }

    fn status(&self) -> Status {
        self.otherwise.unwrap_or(Status::Passed)
    }

    fn failed(&self) -> u32 {
        self.tried - self.passed
    }
}

impl Tally {
    fn may_differ(&self) -> bool {
        self.bare.failed() == 0 && self.inside.failed() > 0
    }

    /// In a run of one round, a failure that does not come back is reported and not counted. Who asks for more rounds
    /// looks for the failure that comes once in twenty: there each counts.
    pub(crate) fn outcome(&self, rounds: u32) -> Outcome {
        match (self.bare, self.inside.failed()) {
            (bare, _) if bare.passed == 0 => Outcome::NotCompared,
            (bare, _) if bare.failed() > 0 => Outcome::FlakyBare,
            (_, 0) => Outcome::Same,
            (_, 1) if rounds == 1 && self.inside.tried > 1 => Outcome::FlakyInside,
            _ => Outcome::Differs,
        }
    }
}

fn is_there(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|paths| std::env::split_paths(&paths).any(|path| path.join(program).exists()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Found, Outcome, Status, Tally, Tries, tally};

    fn outcome(rounds: &[(Status, Status)]) -> Outcome {
        let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
        for (bare, inside) in rounds {
            let found =
                |status| Found { tests: BTreeMap::from([("t".to_owned(), status)]), rest: None };
            tally(&mut tallies, &found(*bare), &found(*inside));
        }
        tallies["t"].outcome(1)
    }

    /// Proves: COMPAT-1 compared
    #[test]
    fn a_difference_counts_when_it_comes_back() {
        use Status::{Failed, Passed, Skipped, TimedOut};
        assert_eq!(outcome(&[(Passed, Passed)]), Outcome::Same);
        assert_eq!(outcome(&[(Failed, Passed)]), Outcome::NotCompared);
        assert_eq!(outcome(&[(Passed, Failed), (Passed, Failed)]), Outcome::Differs);
        assert_eq!(outcome(&[(Passed, Skipped), (Passed, TimedOut)]), Outcome::Differs);
        assert_eq!(outcome(&[(Passed, Failed), (Passed, Passed)]), Outcome::FlakyInside);
        assert_eq!(outcome(&[(Passed, Failed), (Failed, Failed)]), Outcome::FlakyBare);
    }

    #[test]
    fn one_failure_in_many_rounds_counts() {
        let status = |passed, tried, otherwise| Tries { passed, tried, otherwise };
        let bare = status(20, 20, None);
        let tally = Tally { bare, inside: status(19, 20, Some(Status::Failed)) };
        assert_eq!(tally.outcome(20), Outcome::Differs);
        assert_eq!(tally.outcome(1), Outcome::FlakyInside);
    }

    /// Proves: COMPAT-1 compared
    #[test]
    fn a_test_that_says_nothing_inside_differs() {
        let mut tallies = BTreeMap::new();
        let bare = Found { tests: BTreeMap::from([("t".to_owned(), Status::Passed)]), rest: None };
        for _ in 0..2 {
            tally(&mut tallies, &bare, &Found::default());
        }
        assert_eq!(tallies["t"].outcome(1), Outcome::Differs);
    }
}
