//! `cargo xtask compat`: tests that nobody here wrote, and everyday work, bare and inside, compared test by test.
//! A test that passes bare and fails inside fails the task, unless `tests/compat/differences.yaml` says which
//! promise means it to.

mod compare;
mod differences;
mod fetch;
mod load;
mod page;
mod parse;
mod place;
mod records;
mod report;
mod run;
mod suites;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use tempfile::TempDir;

use crate::packages::User;
use crate::setup::{self, TestUser};
use crate::stage;
use crate::testing::RunAs;
use crate::{dist, programs};
use compare::Comparison;
use differences::Differences;
use load::Load;
use place::{Needs, WorkerDirectories};
use records::Records;
use suites::{Form, Suite};

/// Arguments of `cargo xtask compat`.
#[derive(Args)]
#[command(
    after_help = "A test that passes bare and fails inside fails the task, unless tests/compat/differences.yaml
says which promise means it. It is tried again on both sides first; what fails bare is not compared.
Results are in target/palisade/compat-results.json, logs of both sides of what differs in
target/palisade/compat-logs. A new suite is an entry in tests/compat/suites.yaml, a new workload a
shell script in tests/compat/workloads.

Examples:
  cargo xtask compat                                 the short form, as in CI
  cargo xtask compat --suite git --filter t5601 --build debug --as user
  cargo xtask compat --long --suite registries       package managers, 20 rounds under load
  cargo xtask compat --suite workloads --in session  the same work in sessions
  cargo xtask compat --document                      docs/compatibility.md from the last runs
  cargo xtask compat --list --long                   what would run"
)]
pub(crate) struct CompatArguments {
    /// A few minutes: the tests that tell most, packages from local files (the default).
    #[arg(long, conflicts_with = "long")]
    short: bool,
    /// Everything, with package managers as they are set up on this machine; takes hours.
    #[arg(long)]
    long: bool,
    /// Only this suite; repeatable.
    #[arg(long, value_name = "NAME")]
    suite: Vec<String>,
    /// Run only modules, scripts and workloads whose name contains this; repeatable.
    #[arg(long)]
    filter: Vec<String>,
    /// How often each workload runs on each side [default: 1; 20 with --long].
    #[arg(long)]
    rounds: Option<NonZeroU32>,
    /// How often a difference is tried again on both sides before it counts.
    #[arg(long, default_value_t = 3)]
    retries: u32,
    /// Processes that keep a CPU busy meanwhile [default: 0; 2 with --long].
    #[arg(long)]
    load: Option<usize>,
    /// Who runs the tests; by default everyone the caller can be.
    #[arg(long = "as", value_enum)]
    run_as: Option<RunAs>,
    /// What the inside is. Anything but `run` is for a look: the page is made from runs.
    #[arg(long = "in", value_enum, default_value_t = Inside::Run)]
    inside: Inside,
    /// Which build of `sandbox` runs them.
    #[arg(long, value_enum, default_value_t = WhichBuild::Dist)]
    build: WhichBuild,
    /// Keep the directories of the tests, and say where they are.
    #[arg(long)]
    keep: bool,
    /// Print JSON: one record for each test.
    #[arg(long)]
    json: bool,
    /// Install nothing and create no user.
    #[arg(long)]
    no_setup: bool,
    /// Run nothing: say what would run.
    #[arg(long)]
    list: bool,
    /// Run nothing: write docs/compatibility.md from the last whole run.
    #[arg(long)]
    document: bool,
    /// Run nothing: fail if docs/compatibility.md is not what its data says.
    #[arg(long)]
    check: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Inside {
    /// `sandbox run`.
    Run,
    /// `sandbox run` in a transaction that is applied at the end.
    Transaction,
    /// `sandbox exec` in a session made for it.
    Session,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WhichBuild {
    /// The static binary that ships.
    Dist,
    /// Quick to make.
    Debug,
}

/// Runs the task.
pub(crate) fn compat(arguments: &CompatArguments) -> Result<()> {
    let suites = suites::load()?;
    let differences = Differences::load()?;
    if arguments.check || arguments.document {
        return page::write(&suites, &differences, arguments.check);
    }
    let form = if arguments.long { Form::Long } else { Form::Short };
    let wanted = chosen(&suites, &arguments.suite)?;
    if arguments.list {
        return list(&wanted, form, &arguments.filter);
    }
    let start = Instant::now();
    if !arguments.no_setup {
        install(form)?;
    }
    let users = users(arguments)?;
    let tools = Tools::new(arguments.build)?;
    let _load = Load::start(arguments.load.unwrap_or(form.busy_processes()))?;
    let is_whole = arguments.filter.is_empty()
        && arguments.suite.is_empty()
        && arguments.inside == Inside::Run;
    let mut records = Records::new(form, is_whole);
    for suite in wanted {
        let source = suite.source.as_ref().map(fetch::source).transpose()?;
        let units = suite.units(form, source.as_deref(), &arguments.filter)?;
        if units.is_empty() {
            continue;
        }
        for user in &users {
            let needs = Needs {
                suite,
                user: user.as_ref(),
                source: source.as_deref(),
                tools: &tools,
                inside: arguments.inside,
            };
            let comparison = Comparison {
                places: &WorkerDirectories::new(needs, arguments.keep)?,
                differences: &differences,
                rounds: rounds(arguments, form, suite),
                retries: arguments.retries,
                by: by(user.as_ref()),
            };
            records.add(comparison.run(&units)?);
        }
    }
    let verdict = differences.judge(&mut records, &suites);
    records.save()?;
    report::print(&records, &verdict, arguments.json, start)?;
    verdict.into_result()
}

/// What both sides run, where every user can read it.
#[derive(Debug)]
struct Tools {
    sandbox: PathBuf,
    toolchain: PathBuf,
    /// Packages that are not installed.
    unpacked: Vec<PathBuf>,
    /// Removes all of it in the end.
    _directory: TempDir,
}

impl Tools {
    fn new(build: WhichBuild) -> Result<Self> {
        let built = match build {
            WhichBuild::Dist => dist::static_binary()?,
            WhichBuild::Debug => programs::build_binary("sandbox", &[])?,
        };
        let directory = stage::public_directory()?;
        let unpacked = fetch::unpacked()?
            .iter()
            .map(|package| {
                let copy = directory.path().join(package.file_name().unwrap_or_default());
                place::copy_tree(package, &copy)?;
                Ok(copy)
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            sandbox: stage::link_or_copy_into(&built, directory.path())?,
            toolchain: stage::reachable_toolchain(directory.path())?,
            unpacked,
            _directory: directory,
        })
    }
}

fn chosen<'a>(suites: &'a [Suite], names: &[String]) -> Result<Vec<&'a Suite>> {
    for name in names {
        if !suites.iter().any(|suite| suite.name == *name) {
            let known: Vec<&str> = suites.iter().map(|suite| suite.name.as_str()).collect();
            bail!("there is no suite `{name}`; there are {}", known.join(", "));
        }
    }
    Ok(suites.iter().filter(|suite| names.is_empty() || names.contains(&suite.name)).collect())
}

fn list(suites: &[&Suite], form: Form, filters: &[String]) -> Result<()> {
    for suite in suites {
        let source = suite.source.as_ref().map(fetch::source).transpose()?;
        for unit in suite.units(form, source.as_deref(), filters)? {
            println!("{} {}", suite.name, unit.name);
        }
    }
    Ok(())
}

fn install(form: Form) -> Result<()> {
    let mut needed = vec![User::Tests, User::HostTests, User::Compat];
    if form == Form::Long {
        needed.push(User::CompatLong);
    }
    setup::install_for(&needed)
}

/// Who runs the tests: the caller (`None`), the test user, or both.
fn users(arguments: &CompatArguments) -> Result<Vec<Option<TestUser>>> {
    let am_root = setup::am_root();
    let run_as = arguments.run_as.unwrap_or(if am_root { RunAs::Both } else { RunAs::User });
    if !am_root {
        return match run_as {
            RunAs::User => Ok(vec![None]),
            _ => bail!("only root can run the tests as root; leave out --as, or use sudo"),
        };
    }
    let test_user = || {
        let found =
            if arguments.no_setup { setup::find_test_user()? } else { Some(setup::test_user()?) };
        found.context("the test user is missing; leave out --no-setup").map(Some)
    };
    match run_as {
        RunAs::Root => Ok(vec![None]),
        RunAs::User => Ok(vec![test_user()?]),
        RunAs::Both => Ok(vec![None, test_user()?]),
    }
}

fn by(user: Option<&TestUser>) -> &'static str {
    if user.is_none() && setup::am_root() { "root" } else { "user" }
}

fn rounds(arguments: &CompatArguments, form: Form, suite: &Suite) -> u32 {
    match (arguments.rounds, form) {
        (Some(rounds), _) => rounds.get(),
        (None, Form::Long) => suite.long_rounds,
        (None, Form::Short) => 1,
    }
}

/// The data of this task.
fn data_directory() -> PathBuf {
    crate::tree::root().join("tests/compat")
}
