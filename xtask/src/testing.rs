//! `cargo xtask test`: set-up, build, the suite as root and as an ordinary user, leak check.
//! Must never report success for a test that did not run.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::leaks::{self, Traces};
use crate::packages::User;
use crate::programs::{self, Build, TestExecutable};
use crate::results::{self, Results, TestResult};
use crate::setup::{self, TestUser};
use crate::stage::{self, StagedFiles};
use crate::suite::{self, Progress, Races, Runner};
use crate::test_packages;

/// Packages whose tests meet the kernel, and so mean something else without root.
const FOR_EVERY_USER: [&str; 8] = [
    "crates/cgroup",
    "crates/changes",
    "crates/cli",
    "crates/launch",
    "crates/session",
    "crates/supervisor",
    "crates/sys",
    "crates/usage",
];

/// Arguments of `cargo xtask test`.
#[derive(Args)]
pub(crate) struct TestArguments {
    /// Run only tests whose `target::path::name` contains this; conformance is left as it is.
    #[arg(long)]
    filter: Option<String>,
    /// Install nothing and create no user.
    #[arg(long)]
    no_setup: bool,
    /// Who runs the tests; by default everyone the caller can be.
    #[arg(long = "as", value_enum)]
    run_as: Option<RunAs>,
    /// Test the static binary that people get, in place of a debug build; conformance is left as it is.
    #[arg(long)]
    shipped: bool,
    /// What notices the use of paths in every run (`sandbox run --gate`); conformance is left as it is.
    #[arg(long)]
    gate: Option<String>,
}

/// Who runs the tests.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunAs {
    Root,
    User,
    Both,
}

/// What is to be run, by whom, and how.
pub(crate) struct Request<'a> {
    pub(crate) filter: Option<&'a str>,
    /// The tests of this target only, such as `attacks`.
    pub(crate) target: Option<&'a str>,
    pub(crate) install: bool,
    pub(crate) run_as: Option<RunAs>,
    pub(crate) races: Races,
    pub(crate) progress: Progress,
    pub(crate) build: Build,
    pub(crate) gate: Option<&'a str>,
}

/// Runs the task.
pub(crate) fn test(arguments: &TestArguments) -> Result<()> {
    let start = Instant::now();
    let found = run(&Request {
        filter: arguments.filter.as_deref(),
        target: None,
        install: !arguments.no_setup,
        run_as: arguments.run_as,
        races: Races::Short,
        progress: Progress::Output,
        build: if arguments.shipped { Build::Shipped } else { Build::Debug },
        gate: arguments.gate.as_deref(),
    })?;
    if arguments.filter.is_none() && !arguments.shipped && arguments.gate.is_none() {
        found.results.save()?;
    }
    found.verdict(start)
}

/// Sets up, builds, and runs what was asked for.
pub(crate) fn run(request: &Request<'_>) -> Result<Found> {
    let start = Instant::now();
    let am_root = setup::am_root();
    let run_as = request.run_as.unwrap_or(if am_root { RunAs::Both } else { RunAs::User });
    if !am_root && run_as != RunAs::User {
        bail!("only root can run the tests as root; leave out --as, or use sudo");
    }
    if request.install {
        setup::install_for(&[User::Tests, User::HostTests])?;
        test_packages::install()?;
    }
    let test_user = match (am_root, run_as) {
        (true, RunAs::Root) | (false, _) => None,
        (true, _) if !request.install => Some(
            setup::find_test_user()?.context("the test user is missing; leave out --no-setup")?,
        ),
        (true, _) => Some(setup::test_user()?),
    };
    let programs = programs::build_for(request.target, request.build)?;
    eprintln!("built in {:.0}s", start.elapsed().as_secs_f64());
    let stage = StagedFiles::new(&programs)?;
    leaks::adopt_orphans()?;

    let mut round = Round {
        stage: &stage,
        wanted: &|name| request.filter.is_none_or(|part| name.contains(part)),
        races: request.races,
        gate: request.gate,
        progress: request.progress,
        found: Found::default(),
    };
    let wanted: Vec<&TestExecutable> = stage
        .tests
        .iter()
        .filter(|test| request.target.is_none_or(|target| test.target == target))
        .collect();
    let home = PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?);
    if run_as != RunAs::User || test_user.is_none() {
        round.run(&wanted, &home, None)?;
    }
    if let Some(user) = &test_user {
        let mut tests = wanted;
        tests.retain(|test| meets_the_kernel(test));
        round.run(&tests, &user.home, Some(user))?;
    }
    Ok(round.found)
}

/// Whether these tests mean something else without root, or on another kernel.
pub(crate) fn meets_the_kernel(test: &TestExecutable) -> bool {
    FOR_EVERY_USER.contains(&test.package.as_str())
}

/// What a run of the suite found.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) results: Results,
    /// Tests that failed beside others and passed alone.
    pub(crate) unsteady: Vec<String>,
    /// What the tests left behind on the host.
    pub(crate) leaks: Vec<String>,
}

/// The tests of one or two users, and what they left behind.
pub(crate) struct Round<'a> {
    pub(crate) stage: &'a StagedFiles,
    /// Which tests run, by `target::path::name`.
    pub(crate) wanted: &'a dyn Fn(&str) -> bool,
    pub(crate) races: Races,
    pub(crate) gate: Option<&'a str>,
    pub(crate) progress: Progress,
    pub(crate) found: Found,
}

impl Round<'_> {
    pub(crate) fn run(
        &mut self,
        tests: &[&TestExecutable],
        home: &Path,
        user: Option<&TestUser>,
    ) -> Result<()> {
        let directory = stage::test_directory(home, user)?;
        let proofs = self.stage.proofs(user)?;
        let runner = Runner {
            stage: self.stage,
            user,
            test_directory: directory.path(),
            proofs: &proofs,
            races: self.races,
            gate: self.gate,
            progress: self.progress,
        };
        let watched = [directory.path()];
        let before = Traces::now(user, &watched)?;
        let mut found: Vec<TestResult> = runner.run(tests, self.wanted)?;
        self.found.unsteady.extend(runner.try_again(tests, &mut found)?);
        let by = runner.by();
        let orphans = leaks::orphans()?;
        let left = Traces::now(user, &watched)?.since(&before);
        let all = orphans.into_iter().chain(left).map(|leak| format!("{by}: {leak}"));
        self.found.leaks.extend(all);
        self.found.results.tests.extend(found);
        let proofs = results::parse_proofs(&suite::read_or_empty(&proofs), by)?;
        self.found.results.proofs.extend(proofs);
        Ok(())
    }
}

impl Found {
    pub(crate) fn verdict(&self, start: Instant) -> Result<()> {
        let failures = suite::failures(&self.results.tests)?;
        for failure in &failures {
            println!("failed: {failure}");
        }
        for test in &self.unsteady {
            println!("unsteady, passed only when run again: {test}");
        }
        for leak in &self.leaks {
            println!("left behind: {leak}");
        }
        println!(
            "{} things left behind, {} attacks proven three ways, {:.0}s",
            self.leaks.len(),
            self.results.proofs.iter().filter(|proof| proof.is_three_way()).count(),
            start.elapsed().as_secs_f64()
        );
        let passed = self.results.tests.len().saturating_sub(failures.len());
        println!("{passed} passed, {} failed", failures.len());
        if failures.is_empty() && self.leaks.is_empty() {
            return Ok(());
        }
        bail!("the suite did not pass");
    }
}
