//! `cargo xtask vm-test`: the suites on a stock kernel of Debian in an emulated machine, as root
//! and as an ordinary user. Installs no kernel, and leaves no machine running.

mod groups;
mod guest;
mod image;
mod kernel;
mod machine;
mod selection;
mod userland;

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use tempfile::TempDir;

use crate::packages::User;
use crate::programs::{self, TestExecutable};
use crate::stage::{examples_in, link_or_copy_into};
use crate::{dist, setup, testing, tree};
use guest::{FAILED, MANIFEST, Manifest, PASSED};
use machine::{Machine, Parts};
use selection::Lists;

pub(crate) use guest::guest;

/// The script that mounts the disks, and the one that runs the tests.
const FIRST_SCRIPT: &str = "tests/vm/init";
const SECOND_SCRIPT: &str = "tests/vm/start";
const WORK: &str = "work";
const CONSOLE: &str = "console.log";
/// The test executables, in the directory of what is tested.
const TESTS: &str = "tests.json";
/// Only for a machine that hangs: a busy host may need several times as long as a quiet one.
const SHORT_LIMIT: Duration = Duration::from_secs(40 * 60);
const WHOLE_LIMIT: Duration = Duration::from_secs(5 * 60 * 60);
/// Room on the disks whose content is known beforehand.
const LITTLE_ROOM_MIB: u64 = 64;

/// Arguments of `cargo xtask vm-test`.
#[derive(Args)]
pub(crate) struct VmArguments {
    /// `cloud`, `generic`, a version such as `6.12`, or the name of a kernel package.
    #[arg(long, default_value = "cloud")]
    kernel: String,
    /// Run only what tells most, in a few minutes.
    #[arg(long)]
    short: bool,
    /// Run only tests whose `target::path::name` contains this.
    #[arg(long)]
    filter: Option<String>,
    /// Build nothing: run what this task built the last time.
    #[arg(long)]
    no_build: bool,
    /// Keep the kernel's messages in target/vm/console.log, also of a run that passed.
    #[arg(long)]
    keep_log: bool,
}

/// Runs the task.
pub(crate) fn vm_test(arguments: &VmArguments) -> Result<()> {
    if !cfg!(target_arch = "x86_64") {
        bail!("the emulated machine is an x86-64 one and runs this host's programs: only there");
    }
    setup::install_for(&[User::Tests, User::Machine])?;
    let directory = tree::root().join("target/vm");
    fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    let _only_one = lock(&directory)?;
    let temporary = work_directory(&directory)?;
    let work = temporary.path();
    let kernel = kernel::fetch(&arguments.kernel, &directory.join("kernels"), work)?;
    let stage = directory.join("stage");
    if !arguments.no_build {
        build(&stage, arguments.short)?;
    }
    write_manifest(&stage, arguments)?;

    let stage_image = work.join("stage.ext4");
    image::ext4(&stage, &stage_image, LITTLE_ROOM_MIB)?;
    let modules_image = work.join("modules.ext4");
    image::ext4(&kernel.modules, &modules_image, LITTLE_ROOM_MIB)?;
    let userland_image = userland::image(&directory, work)?;
    let initramfs = work.join("initramfs");
    image::initramfs(&kernel, &script(FIRST_SCRIPT)?, &initramfs, work)?;

    let console = directory.join(CONSOLE);
    let parts = Parts {
        kernel: &kernel,
        initramfs: &initramfs,
        disks: [&userland_image, &modules_image, &stage_image],
        console: &console,
    };
    println!("booting {} under emulation", kernel.release);
    let limit = if arguments.short { SHORT_LIMIT } else { WHOLE_LIMIT };
    let outcome = listen(&Machine::start(&parts, limit)?);
    if outcome.is_ok() && !arguments.keep_log {
        fs::remove_file(&console).with_context(|| console.display().to_string())?;
    }
    outcome
}

/// Keeps a second run out, which would replace the files of this one. Ends with this process.
fn lock(directory: &Path) -> Result<File> {
    let path = directory.join("lock");
    let file = File::create(&path).with_context(|| path.display().to_string())?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!("another vm-test of this checkout is running"),
        Err(TryLockError::Error(error)) => Err(error).with_context(|| path.display().to_string()),
    }
}

/// Where everything is made that this run alone needs. It has the same name every time, so that
/// what a killed run could not remove goes with the next one.
fn work_directory(directory: &Path) -> Result<TempDir> {
    let path = directory.join(WORK);
    if path.is_dir() {
        fs::remove_dir_all(&path).with_context(|| path.display().to_string())?;
    }
    tempfile::Builder::new()
        .prefix(WORK)
        .rand_bytes(0)
        .tempdir_in(directory)
        .with_context(|| path.display().to_string())
}

/// Passes on what the machine says, up to its verdict.
fn listen(machine: &Machine<'_>) -> Result<()> {
    let start = Instant::now();
    let mut is_silent = true;
    while let Some(line) = machine.line()? {
        if std::mem::take(&mut is_silent) {
            println!("booted in {:.0}s", start.elapsed().as_secs_f64());
        }
        if line == PASSED {
            return Ok(());
        }
        if let Some(why) = line.strip_prefix(FAILED) {
            bail!("in the machine: {why}");
        }
        println!("{line}");
    }
    bail!("the machine stopped without a verdict; its last words:\n{}", machine.last_words());
}

/// Builds everything of this project that the machine runs, and puts it into a directory of its own.
fn build(stage: &Path, is_short: bool) -> Result<()> {
    let programs = programs::build()?;
    if stage.is_dir() {
        fs::remove_dir_all(stage).with_context(|| stage.display().to_string())?;
    }
    fs::create_dir(stage).with_context(|| stage.display().to_string())?;
    let mut tests = Vec::new();
    for test in programs.tests.iter().filter(|test| testing::meets_the_kernel(test)) {
        let placed = link_or_copy_into(&test.path, stage)?;
        let name = placed.file_name().context("a test without a name")?;
        tests.push(TestExecutable { path: name.into(), ..test.clone() });
    }
    link_or_copy_into(&programs.probe, stage)?;
    link_or_copy_into(&programs.netlab, stage)?;
    link_or_copy_into(&programs.client, stage)?;
    examples_in(stage, &programs)?;
    // Optimised, because everything takes many times longer under emulation; and as it ships.
    println!("building the static binaries");
    let sandbox = |built: &Path, name: &str| {
        fs::copy(built, stage.join(name)).with_context(|| built.display().to_string())
    };
    // For a few attacks the other one is built faster than it would save time.
    let layers_off =
        if is_short { programs.sandbox_layers_off } else { dist::build_static(&["layers-off"])? };
    sandbox(&layers_off, "sandbox-layers-off")?;
    sandbox(&dist::build_static(&[])?, "sandbox")?;
    fs::write(stage.join(TESTS), serde_json::to_vec(&tests)?)?;
    Ok(())
}

/// Adds what the machine is told, and this program, which runs there too.
fn write_manifest(stage: &Path, arguments: &VmArguments) -> Result<()> {
    let tests = stage.join(TESTS);
    let tests = fs::read(&tests).with_context(|| {
        format!("{} is not there: run once without --no-build", tests.display())
    })?;
    let manifest = Manifest {
        tests: serde_json::from_slice(&tests)?,
        lists: Lists::load()?,
        is_short: arguments.short,
        filter: arguments.filter.clone(),
    };
    fs::write(stage.join(MANIFEST), serde_json::to_vec(&manifest)?)?;
    fs::write(stage.join("start"), script(SECOND_SCRIPT)?)?;
    // By this name, because building the tests may have replaced the file this program came from.
    fs::copy("/proc/self/exe", stage.join("xtask")).context("/proc/self/exe")?;
    Ok(())
}

fn script(file: &str) -> Result<String> {
    let path = tree::root().join(file);
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}
