//! Runs one unit on one side, up to its deadline. What differs between the sides is the sandbox and nothing else.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::Inside;
use super::parse::{Found, Output};
use super::place::{Needs, Side, WorkerDirectories, WorkerDirectory};
use super::suites::{Home, Suite, Unit};
use crate::suite::{self, Ended};

const PATHS: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// Changes into the directory to work in; the project around it is where `sandbox run` starts.
const IN_WORK: &str = "cd w && exec \"$@\"";

/// How much longer than bare a unit may take inside before it is said to hang.
const SLOWER: u32 = 5;
const AT_LEAST: Duration = Duration::from_secs(60);

/// One run of a unit on one side.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) found: Found,
    pub(crate) log: String,
    pub(crate) took: Duration,
}

/// The time inside for a unit that took so long bare: what hangs there must not hold up the rest.
pub(crate) fn deadline_inside(suite: &Suite, bare: Duration) -> Duration {
    Duration::from_secs(suite.deadline).min(AT_LEAST + bare * SLOWER)
}

/// Runs the unit once and reads what came of its tests.
pub(crate) fn run(
    places: &WorkerDirectories<'_>,
    place: &WorkerDirectory,
    unit: &Unit,
    (side, deadline): (Side, Duration),
) -> Result<Ran> {
    let suite = places.needs.suite;
    places.clear(place)?;
    let log = tempfile::tempfile().context("cannot make a log file")?;
    let is_in_session = side == Side::Inside && places.needs.inside == Inside::Session;
    let session = is_in_session.then(|| Session::create(places, place, unit)).transpose()?;
    let mut command = match (side, &session) {
        (Side::Bare, _) => command(places, place, unit, Vec::new()),
        (Side::Inside, None) => command(places, place, unit, run_words(places, unit)),
        (Side::Inside, Some(session)) => command(places, place, unit, session.exec_words()),
    };
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?).process_group(0);
    let start = Instant::now();
    let mut child =
        command.spawn().with_context(|| format!("cannot start {}", crate::tree::show(&command)))?;
    let ended = suite::wait_until(&mut child, deadline)?;
    session.map_or(Ok(()), Session::end)?;
    let log = suite::read_back(log)?;
    let records = fs::read_to_string(&place.records).unwrap_or_default();
    let status = match ended {
        Ended::With(status) => Some(status),
        Ended::Killed => None,
    };
    let output = Output { unit: &unit.name, log: &log, records: &records, status };
    let found = suite.parser.parse(&output, &suite.skipped);
    Ok(Ran { found, took: start.elapsed(), log })
}

/// A session that a unit runs in, by `sandbox exec`.
struct Session<'a> {
    places: &'a WorkerDirectories<'a>,
    place: &'a WorkerDirectory,
    id: String,
}

impl<'a> Session<'a> {
    fn create(
        places: &'a WorkerDirectories<'a>,
        place: &'a WorkerDirectory,
        unit: &Unit,
    ) -> Result<Self> {
        let mut words = vec![sandbox(places), "create".to_owned()];
        words.extend(options(places, unit));
        let id = output_of(as_caller(&words, places, place))?;
        Ok(Self { places, place, id })
    }

    fn exec_words(&self) -> Vec<String> {
        [&sandbox(self.places), "exec", &self.id, "--"].map(str::to_owned).into()
    }

    fn end(self) -> Result<()> {
        for verb in ["kill", "rm"] {
            let words = [&sandbox(self.places), verb, &self.id].map(str::to_owned);
            output_of(as_caller(&words, self.places, self.place))?;
        }
        Ok(())
    }
}

fn output_of(mut command: Command) -> Result<String> {
    let shown = crate::tree::show(&command);
    let output = command.output().with_context(|| format!("cannot start {shown}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{shown}: {}: {said}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn sandbox(places: &WorkerDirectories<'_>) -> String {
    places.needs.tools.sandbox.display().to_string()
}

/// What the sandbox of a unit is told, whichever command makes it.
fn options(places: &WorkerDirectories<'_>, unit: &Unit) -> Vec<String> {
    let Needs { suite, tools, .. } = &places.needs;
    let readable = std::iter::once(&tools.toolchain).chain(&tools.unpacked);
    let readable = readable.flat_map(|path| ["--ro".to_owned(), path.display().to_string()]);
    readable.chain(suite.options.iter().chain(&unit.options).cloned()).collect()
}

/// Everything before a command that is run inside.
fn run_words(places: &WorkerDirectories<'_>, unit: &Unit) -> Vec<String> {
    let mut words = vec![sandbox(places), "run".to_owned()];
    if places.needs.inside == Inside::Transaction {
        words.push("--transaction=auto".to_owned());
    }
    words.extend(options(places, unit));
    words.push("--".to_owned());
    words
}

fn command(
    places: &WorkerDirectories<'_>,
    place: &WorkerDirectory,
    unit: &Unit,
    before: Vec<String>,
) -> Command {
    let suite = places.needs.suite;
    let mut words = before;
    words.extend(["/usr/bin/env".to_owned()]);
    words.extend(environment(places, place, suite));
    words.extend(["sh", "-c", IN_WORK, "sh"].map(str::to_owned));
    words.extend(suite.command.iter().map(|word| expand(word, place, unit)));
    as_caller(&words, places, place)
}

/// In the project, with the user's own variables.
fn as_caller(words: &[String], places: &WorkerDirectories<'_>, place: &WorkerDirectory) -> Command {
    let suite = places.needs.suite;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(&place.project);
    if let Some(user) = places.needs.user {
        command.env_clear().uid(user.uid).gid(user.gid);
        command.env("USER", &user.name).env("LOGNAME", &user.name).env("SHELL", "/bin/bash");
    }
    if suite.home == Home::Own {
        command.env_clear();
    }
    for name in set_by_cargo() {
        command.env_remove(name);
    }
    command.env("HOME", &place.home).env("PATH", path(places, place)).env("LANG", "C.UTF-8");
    command.env_remove("TMPDIR").env_remove("XDG_RUNTIME_DIR");
    command
}

/// What `cargo xtask` adds to the caller's variables: it would be the settings of this task and not of the machine.
fn set_by_cargo() -> impl Iterator<Item = std::ffi::OsString> {
    std::env::vars_os().map(|(name, _)| name).filter(|name| {
        let text = name.to_string_lossy();
        let names =
            ["CARGO", "LD_LIBRARY_PATH", "OUT_DIR", "RUST_RECURSION_COUNT", "RUSTUP_TOOLCHAIN"];
        names.contains(&&*text)
            || text.starts_with("CARGO_PKG_")
            || text.starts_with("CARGO_MANIFEST_")
    })
}

/// Set by env(1), so that both sides have it whatever a sandbox makes of its caller's variables.
fn environment(
    places: &WorkerDirectories<'_>,
    place: &WorkerDirectory,
    suite: &Suite,
) -> Vec<String> {
    let mut variables = vec![
        format!("PATH={}", path(places, place)),
        format!("TMPDIR={}", place.work.join("t").display()),
        format!("RECORDS={}", place.records.display()),
        format!("DATA={}", place.data.display()),
        // For runners of ours: a unit may hold tests that are not run.
        format!("LEFT_OUT={}", suite.left_out.keys().cloned().collect::<Vec<_>>().join(":")),
    ];
    let more = suite.environment.iter();
    let unit = Unit { name: String::new(), options: Vec::new(), needs: Vec::new() };
    variables.extend(more.map(|(name, value)| format!("{name}={}", expand(value, place, &unit))));
    variables
}

fn path(places: &WorkerDirectories<'_>, place: &WorkerDirectory) -> String {
    let caller = std::env::var("PATH").unwrap_or_default();
    let rest = match (places.needs.suite.home, places.needs.user) {
        (Home::Machine, None) => caller.as_str(),
        _ => PATHS,
    };
    let postgres: String = std::iter::once(Path::new("/"))
        .chain(places.needs.tools.unpacked.iter().map(AsRef::as_ref))
        .flat_map(|root| {
            fs::read_dir(root.join("usr/lib/postgresql")).into_iter().flatten().flatten()
        })
        .map(|version| format!("{}:", version.path().join("bin").display()))
        .collect();
    let own = place.project.join("bin");
    let toolchain = places.needs.tools.toolchain.join("bin");
    format!("{}:{}:{postgres}{rest}", own.display(), toolchain.display())
}

fn expand(word: &str, place: &WorkerDirectory, unit: &Unit) -> String {
    word.replace("{test}", &unit.name)
        .replace("{source}", &place.source.display().to_string())
        .replace("{data}", &place.data.display().to_string())
        .replace("{work}", &place.work.display().to_string())
        .replace("{worker}", &place.worker.to_string())
}

/// Keeps a log for who looks for the cause.
pub(crate) fn keep_log(name: &str, text: &str) -> Result<()> {
    let path = log_directory()?.join(name.replace('/', "_"));
    fs::write(&path, text).with_context(|| path.display().to_string())
}

/// Removes the logs of an earlier run of these units.
pub(crate) fn forget_logs(suite: &str, units: &[Unit], by: &str) -> Result<()> {
    let directory = log_directory()?;
    for unit in units {
        for side in ["bare", "inside"] {
            let name = log_name(suite, unit, by, side).replace('/', "_");
            let _ = fs::remove_file(directory.join(name));
        }
    }
    Ok(())
}

pub(crate) fn log_name(suite: &str, unit: &Unit, by: &str, side: &str) -> String {
    format!("{suite}-{}-{by}-{side}", unit.name)
}

fn log_directory() -> Result<std::path::PathBuf> {
    let directory = crate::tree::result_file("compat-logs")?;
    fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    Ok(directory)
}
