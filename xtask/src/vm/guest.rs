//! What runs inside the machine: says what kernel this is, makes sure that it is the one to be
//! tested, and runs the suite. Its last line is the verdict; without one the machine died.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::groups::{self, Delegated};
use super::selection::{Lists, Setting};
use crate::programs::TestExecutable;
use crate::setup::{self, TestUser};
use crate::stage::StagedFiles;
use crate::suite::{self, Progress, Races};
use crate::testing::{Found, Round};
use crate::{leaks, tree};

/// Where the machine finds what is tested: a name like those of stages on a host.
pub(crate) const STAGE: &str = "/var/tmp/palisade-stage-vm";
pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const PASSED: &str = "palisade-vm: passed";
pub(crate) const FAILED: &str = "palisade-vm: failed: ";

/// What the host tells the machine.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) tests: Vec<TestExecutable>,
    pub(crate) lists: Lists,
    pub(crate) is_short: bool,
    pub(crate) filter: Option<String>,
}

/// Runs the task.
pub(crate) fn guest() -> Result<()> {
    match run() {
        Ok(()) => println!("{PASSED}"),
        // An outcome of the tests, and not of this program.
        Err(error) => println!("{FAILED}{error:#}"),
    }
    Ok(())
}

fn run() -> Result<()> {
    let start = Instant::now();
    let directory = PathBuf::from(STAGE);
    let manifest: Manifest = serde_json::from_slice(&fs::read(directory.join(MANIFEST))?)?;
    let lists = &manifest.lists;
    let stage = StagedFiles::existing(directory, &manifest.tests);
    show_and_check_kernel(lists, &stage.sandbox)?;
    let user = setup::find_test_user()?.context("the machine has no test user")?;
    leaks::adopt_orphans()?;

    lists.check_names(&suite::names(&stage.tests)?)?;
    let is_asked_for =
        |name: &str| manifest.filter.as_deref().is_none_or(|part| name.contains(part));
    let is_wanted = |by: &str, name: &str| {
        is_asked_for(name)
            && !lists.is_absent(by, name)
            && (!manifest.is_short || lists.is_short(by, name))
    };
    let mut found = Found::default();
    let everything = Selection { gate: None, is_wanted: &is_wanted };
    run_as(None, Path::new("/root"), &stage, &everything, &mut found)?;
    let delegated = Delegated::to(&user)?;
    delegated.inside(|| run_as(Some(&user), &user.home, &stage, &everything, &mut found))?;
    let is_notified = |by: &str, name: &str| is_asked_for(name) && lists.notified.holds(by, name);
    if lists.notified.tests.iter().any(|name| is_notified("user", name)) {
        println!("calls are notified now: {}", lists.notified.why);
        let notified = Selection { gate: Some("notify"), is_wanted: &is_notified };
        run_as(None, Path::new("/root"), &stage, &notified, &mut found)?;
        delegated.inside(|| run_as(Some(&user), &user.home, &stage, &notified, &mut found))?;
    }
    for setting in &lists.settings {
        let is_set = |_: &str, name: &str| {
            is_asked_for(name) && setting.tests.iter().any(|test| test == name)
        };
        if !setting.tests.iter().any(|name| is_set("user", name)) {
            continue;
        }
        let set = Selection { gate: None, is_wanted: &is_set };
        let run = || run_as(Some(&user), &user.home, &stage, &set, &mut found);
        with_setting(setting, || delegated.inside(run))?;
    }
    let is_managed = |_: &str, name: &str| is_asked_for(name) && lists.managed.holds("user", name);
    if lists.managed.tests.iter().any(|name| is_managed("user", name)) {
        println!("the user has a service manager now: {}", lists.managed.why);
        let managed = groups::start_manager(&user)?;
        let selected = Selection { gate: None, is_wanted: &is_managed };
        managed.inside(|| run_as(Some(&user), &user.home, &stage, &selected, &mut found))?;
    }
    if !manifest.is_short && manifest.filter.is_none() {
        for group in &lists.absent {
            println!("not run here: {} ({})", group.tests.join(", "), group.why);
        }
    }
    found.verdict(start)
}

/// What is run, and what notices the use of paths meanwhile.
struct Selection<'a> {
    gate: Option<&'a str>,
    is_wanted: &'a dyn Fn(&str, &str) -> bool,
}

fn run_as(
    user: Option<&TestUser>,
    home: &Path,
    stage: &StagedFiles,
    selection: &Selection<'_>,
    found: &mut Found,
) -> Result<()> {
    let by = if user.is_some() { "user" } else { "root" };
    let mut round = Round {
        stage,
        wanted: &|name| (selection.is_wanted)(by, name),
        races: Races::Short,
        gate: selection.gate,
        progress: Progress::Output,
        found: std::mem::take(found),
    };
    round.run(&stage.tests.iter().collect::<Vec<_>>(), home, user)?;
    *found = round.found;
    Ok(())
}

/// Does it while the kernel has another setting than usual.
fn with_setting(setting: &Setting, act: impl FnOnce() -> Result<()>) -> Result<()> {
    let usual = fs::read_to_string(&setting.file).with_context(|| setting.file.clone())?;
    println!("{} is {} now: {}", setting.file, setting.value, setting.why);
    fs::write(&setting.file, &setting.value).with_context(|| setting.file.clone())?;
    let outcome = act();
    fs::write(&setting.file, usual).with_context(|| setting.file.clone())?;
    outcome
}

/// Says what this kernel has, and fails if a promised part of it is missing.
fn show_and_check_kernel(lists: &Lists, sandbox: &Path) -> Result<()> {
    let release = read("/proc/sys/kernel/osrelease")?;
    let modules = read("/sys/kernel/security/lsm")?;
    let controllers = read("/sys/fs/cgroup/cgroup.controllers")?;
    println!("kernel {release}");
    println!("security modules {modules}");
    println!("cgroup v2 with {controllers}");
    fs::File::options().read(true).write(true).open("/dev/fuse").context("/dev/fuse")?;
    for needed in ["yama", "apparmor", "landlock"] {
        if !modules.split(',').any(|module| module == needed) {
            bail!("this kernel runs without {needed}");
        }
    }
    println!("Yama's ptrace_scope is {}", read("/proc/sys/kernel/yama/ptrace_scope")?);
    if read("/sys/module/apparmor/parameters/enabled")? != "Y" {
        bail!("AppArmor is in this kernel, and off");
    }
    let landlock = landlock_finding(sandbox)?;
    println!("Landlock: {landlock}");
    if let Some(expected) = lists.expected(&release) {
        let abi = format!("ABI {}", expected.landlock);
        if !landlock.split(',').any(|part| part == abi) {
            bail!("Landlock should be of {abi} here");
        }
    }
    Ok(())
}

/// What `sandbox doctor` found out about Landlock.
fn landlock_finding(sandbox: &Path) -> Result<String> {
    #[derive(Deserialize)]
    struct Doctor {
        findings: Vec<Finding>,
    }
    #[derive(Deserialize)]
    struct Finding {
        id: String,
        detail: String,
    }
    let text = tree::output_of(Command::new(sandbox).args(["doctor", "--json"]))?;
    let doctor: Doctor = serde_json::from_str(&text)?;
    let landlock = doctor.findings.into_iter().find(|finding| finding.id == "landlock");
    Ok(landlock.context("doctor says nothing about Landlock")?.detail)
}

fn read(file: &str) -> Result<String> {
    Ok(fs::read_to_string(file).with_context(|| file.to_owned())?.trim().to_owned())
}
