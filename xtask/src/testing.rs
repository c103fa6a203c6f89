//! `cargo xtask test`: set-up, build, the suite as root and as an ordinary user, leak check.
//! Must never report success for a test that did not run.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::leaks::{self, Traces};
use crate::programs::{self, TestExecutable};
use crate::results::{self, Results, TestResult};
use crate::setup::{self, TestUser};
use crate::stage::{self, Stage};
use crate::suite::{self, Runner};

/// Packages whose tests meet the kernel, and so mean something else without root.
const FOR_EVERY_USER: [&str; 4] = ["crates/cli", "crates/launch", "crates/session", "crates/sys"];

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
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RunAs {
    Root,
    User,
    Both,
}

/// Runs the task.
pub(crate) fn test(arguments: &TestArguments) -> Result<()> {
    let start = Instant::now();
    let am_root = setup::am_root();
    let run_as = arguments.run_as.unwrap_or(if am_root { RunAs::Both } else { RunAs::User });
    if !am_root && run_as != RunAs::User {
        bail!("only root can run the tests as root; leave out --as, or use sudo");
    }
    if !arguments.no_setup {
        setup::install_packages()?;
    }
    let test_user = match (am_root, run_as) {
        (true, RunAs::Root) | (false, _) => None,
        (true, _) if arguments.no_setup => Some(
            setup::find_test_user()?.context("the test user is missing; leave out --no-setup")?,
        ),
        (true, _) => Some(setup::test_user()?),
    };
    let programs = programs::build()?;
    println!("built in {:.0}s", start.elapsed().as_secs_f64());
    let stage = Stage::new(&programs)?;
    leaks::adopt_orphans()?;

    let mut round = Round::new(&stage, arguments.filter.as_deref());
    let home = PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?);
    if run_as != RunAs::User || test_user.is_none() {
        round.run(&stage.tests.iter().collect::<Vec<_>>(), &home, None)?;
    }
    if let Some(user) = &test_user {
        let tests: Vec<_> = stage
            .tests
            .iter()
            .filter(|test| FOR_EVERY_USER.contains(&test.package.as_str()))
            .collect();
        round.run(&tests, &user.home, Some(user))?;
    }
    if arguments.filter.is_none() {
        round.results.save()?;
    }
    round.verdict(start)
}

/// The tests of one or two users, and what they left behind.
struct Round<'a> {
    stage: &'a Stage,
    filter: Option<&'a str>,
    results: Results,
    leaks: Vec<String>,
}

impl<'a> Round<'a> {
    fn new(stage: &'a Stage, filter: Option<&'a str>) -> Self {
        Self { stage, filter, results: Results::default(), leaks: Vec::new() }
    }

    fn run(
        &mut self,
        tests: &[&TestExecutable],
        home: &Path,
        user: Option<&TestUser>,
    ) -> Result<()> {
        let directory = stage::test_directory(home, user)?;
        let proofs = self.stage.proofs(user)?;
        let runner =
            Runner { stage: self.stage, user, test_directory: directory.path(), proofs: &proofs };
        let watched = [directory.path()];
        let before = Traces::now(user, &watched)?;
        let found: Vec<TestResult> = runner.run(tests, self.filter)?;
        let by = runner.by();
        self.leaks.extend(leaks::orphans()?.into_iter().map(|leak| format!("{by}: {leak}")));
        let after = Traces::now(user, &watched)?;
        self.leaks.extend(after.since(&before).into_iter().map(|leak| format!("{by}: {leak}")));
        self.results.tests.extend(found);
        self.results.proofs.extend(results::parse_proofs(&suite::read_or_empty(&proofs))?);
        Ok(())
    }

    fn verdict(&self, start: Instant) -> Result<()> {
        let failures = suite::failures(&self.results.tests)?;
        for failure in &failures {
            println!("failed: {failure}");
        }
        for leak in &self.leaks {
            println!("left behind: {leak}");
        }
        println!(
            "{} things left behind, {} attacks proven three ways, {:.0}s",
            self.leaks.len(),
            self.results.proofs.len(),
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
