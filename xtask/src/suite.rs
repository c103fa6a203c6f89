//! Runs tests one process each, with a deadline each, as a chosen user.
//! libtest's own runner can do none of the three, and a hung sandbox must not hang the suite.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::IsTerminal as _;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::programs::TestExecutable;
use crate::results::TestResult;
use crate::setup::TestUser;
use crate::stage::StagedFiles;
use crate::tree;

const DEADLINE: Duration = Duration::from_secs(300);
/// What a long run needs more, and a factor for slow machines by the tests' own knob.
const LONG_FACTOR: u32 = 40;
/// More failures than this are no accident.
const MAX_SECOND_TRIES: usize = 5;
const ATTACKS: &str = "attacks";
const LONG_RACES: &str = "PALISADE_LONG_RACES";
const GATE_VARIABLE: &str = "PALISADE_TEST_GATE";
const PATIENCE_VARIABLE: &str = "PALISADE_TEST_PATIENCE";

/// How often the tests try a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Races {
    Short,
    /// A million times.
    Long,
}

/// Where the lines about finished tests go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Output,
    /// Standard output is kept for the result; a terminal shows one line that changes.
    Errors,
}

/// Who runs the tests, and where their files go.
#[derive(Debug)]
pub(crate) struct Runner<'a> {
    pub(crate) stage: &'a StagedFiles,
    /// Another user than the caller; only root can have one.
    pub(crate) user: Option<&'a TestUser>,
    pub(crate) test_directory: &'a Path,
    pub(crate) proofs: &'a Path,
    pub(crate) races: Races,
    /// What notices the use of paths, where that is not left to the sandbox.
    pub(crate) gate: Option<&'a str>,
    pub(crate) progress: Progress,
}

#[derive(Debug)]
struct Case<'a> {
    executable: &'a TestExecutable,
    name: String,
}

impl Runner<'_> {
    /// The word for this runner in results.
    pub(crate) fn by(&self) -> &'static str {
        if self.user.is_none() && crate::setup::am_root() { "root" } else { "user" }
    }

    /// Runs every test of these executables that is wanted by its `target::path::name`.
    pub(crate) fn run(
        &self,
        executables: &[&TestExecutable],
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<TestResult>> {
        let mut cases = Vec::new();
        for executable in executables {
            cases.extend(
                self.list(executable)?
                    .into_iter()
                    .filter(|case| wanted(&format!("{}::{}", case.executable.target, case.name))),
            );
        }
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::new());
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            let work = || -> Result<()> {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (result, text) = self.run_case(case)?;
                    let mut results =
                        results.lock().map_err(|_| anyhow::anyhow!("a worker died"))?;
                    results.push(result);
                    self.tell(&text, results.len(), cases.len());
                }
                Ok(())
            };
            let handles: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            handles.into_iter().try_for_each(|handle| {
                handle.join().map_err(|_| anyhow::anyhow!("a worker died"))?
            })
        })?;
        let mut results = results.into_inner().map_err(|_| anyhow::anyhow!("a worker died"))?;
        results.sort_by(|a, b| {
            (&a.package, &a.target, &a.name).cmp(&(&b.package, &b.target, &b.name))
        });
        Ok(results)
    }

    /// Runs what failed once more, one at a time, now that no other test keeps the machine busy. What passes then is
    /// returned by name, to be reported. An attack that got through once has got through, and so has a race that was won, so these
    /// have no second try; nor has anything where more failed than a busy machine explains.
    pub(crate) fn try_again(
        &self,
        executables: &[&TestExecutable],
        results: &mut [TestResult],
    ) -> Result<Vec<String>> {
        let mut failed: Vec<&mut TestResult> =
            results.iter_mut().filter(|result| !result.passed).collect();
        if failed.len() > MAX_SECOND_TRIES {
            return Ok(Vec::new());
        }
        let mut unsteady = Vec::new();
        let is_race = |name: &str| name.split(['_', ':']).any(|word| word == "race");
        let is_final = |result: &TestResult| result.target == ATTACKS || is_race(&result.name);
        for result in failed.iter_mut().filter(|result| !is_final(result)) {
            let executable = executables.iter().find(|executable| {
                executable.package == result.package && executable.target == result.target
            });
            let Some(executable) = executable else { continue };
            let (again, text) = self.run_case(&Case { executable, name: result.name.clone() })?;
            self.tell(&format!("again, alone: {text}"), 1, 1);
            if again.passed {
                result.passed = true;
                unsteady.push(format!("{} as {}: {}", result.target, result.by, result.name));
            }
        }
        Ok(unsteady)
    }

    /// Says how one test went.
    fn tell(&self, text: &str, done: usize, of: usize) {
        let is_one_line = !text.contains('\n');
        match self.progress {
            Progress::Output => println!("{text}"),
            Progress::Errors if std::io::stderr().is_terminal() => {
                let end = if is_one_line && done < of { "" } else { "\n" };
                eprint!("\r\x1b[K[{done}/{of}] {text}{end}");
            }
            Progress::Errors => eprintln!("[{done}/{of}] {text}"),
        }
    }

    fn list<'a>(&self, executable: &'a TestExecutable) -> Result<Vec<Case<'a>>> {
        let ignored = listed(self.command(executable).arg("--ignored"))?;
        let all = listed(&mut self.command(executable))?;
        let wanted = all.into_iter().filter(|name| !ignored.contains(name));
        Ok(wanted.map(|name| Case { executable, name }).collect())
    }

    fn run_case(&self, case: &Case<'_>) -> Result<(TestResult, String)> {
        let log = tempfile::tempfile().context("cannot make a log file")?;
        let mut command = self.command(case.executable);
        command
            .args(["--exact", &case.name, "--nocapture", "--test-threads=1"])
            .env("PALISADE_TEST_NAME", &case.name)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?)
            .process_group(0);
        let start = Instant::now();
        let mut child =
            command.spawn().with_context(|| format!("cannot start {}", tree::show(&command)))?;
        let ended = wait_until(&mut child, self.deadline())?;
        let passed = matches!(ended, Ended::With(status) if status.success());
        let word = match ended {
            Ended::With(_) if passed => "ok",
            Ended::With(_) => "FAILED",
            Ended::Killed => "FAILED (no end in time)",
        };
        let seconds = start.elapsed().as_secs_f64();
        let by = self.by();
        let text =
            format!("{by:4} {}::{} … {word} {seconds:.2}s", case.executable.target, case.name);
        let text = if passed { text } else { format!("{text}\n{}", indented(&read_back(log)?)) };
        let result = TestResult {
            by: by.to_owned(),
            package: case.executable.package.clone(),
            target: case.executable.target.clone(),
            name: case.name.clone(),
            passed,
        };
        Ok((result, text))
    }

    fn deadline(&self) -> Duration {
        let patience =
            std::env::var(PATIENCE_VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(1);
        let races = if self.races == Races::Long { LONG_FACTOR } else { 1 };
        DEADLINE.saturating_mul(patience).saturating_mul(races)
    }

    /// The executable as this user, in surroundings that name every program under test.
    fn command(&self, executable: &TestExecutable) -> Command {
        let mut command = Command::new(&executable.path);
        if let Some(user) = self.user {
            command
                .env_clear()
                .env("HOME", &user.home)
                .env("USER", &user.name)
                .env("LOGNAME", &user.name)
                .env("LANG", "C.UTF-8")
                .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
                .current_dir(self.test_directory)
                .uid(user.uid)
                .gid(user.gid);
        } else {
            let package = tree::root().join(&executable.package);
            // An emulated machine has the tests and not the sources.
            if package.is_dir() {
                command.env("CARGO_MANIFEST_DIR", &package).current_dir(package);
            } else {
                command.current_dir(self.test_directory);
            }
        }
        command
            .env("TMPDIR", self.test_directory)
            .env("PALISADE_TEST_DIR", self.test_directory)
            .env("PALISADE_PROOFS", self.proofs)
            .env("PALISADE_BIN", &self.stage.sandbox)
            .env("PALISADE_BIN_LAYERS_OFF", &self.stage.sandbox_layers_off)
            .env("PALISADE_PROBE", &self.stage.probe)
            .env("PALISADE_NETLAB", &self.stage.netlab)
            .env("PALISADE_CLIENT", &self.stage.client)
            .env("PALISADE_EXAMPLES", &self.stage.examples)
            .env("PALISADE_TOOLCHAIN", &self.stage.toolchain)
            .env("PALISADE_SDK_SOURCES", &self.stage.sdk)
            // A changed snapshot is a failed test here, never a new file.
            .env("INSTA_UPDATE", "no");
        if let Some(patience) = std::env::var_os(PATIENCE_VARIABLE) {
            command.env(PATIENCE_VARIABLE, patience);
        }
        if let Some(gate) = self.gate {
            command.env(GATE_VARIABLE, gate);
        }
        if self.races == Races::Long {
            command.env(LONG_RACES, "1");
        }
        command
    }
}

/// The tests an executable has.
fn listed(executable: &mut Command) -> Result<Vec<String>> {
    Ok(tree::output_of(executable.args(["--list", "--format", "terse"]))?
        .lines()
        .filter_map(|line| line.strip_suffix(": test").map(str::to_owned))
        .collect())
}

/// Every test of these executables, as `target::path::name`.
pub(crate) fn names(executables: &[TestExecutable]) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for executable in executables {
        let found = listed(&mut Command::new(&executable.path))?;
        names.extend(found.iter().map(|name| format!("{}::{name}", executable.target)));
    }
    Ok(names)
}

/// How a process came to its end.
pub(crate) enum Ended {
    With(std::process::ExitStatus),
    Killed,
}

/// Waits up to the deadline, and then kills the process group.
pub(crate) fn wait_until(child: &mut Child, deadline: Duration) -> Result<Ended> {
    let pid = Pid::from_child(child);
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).context("pidfd_open")?;
    let timeout = Timespec { tv_sec: i64::try_from(deadline.as_secs())?, tv_nsec: 0 };
    if poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&timeout)).context("poll")? > 0 {
        return Ok(Ended::With(child.wait()?));
    }
    kill_process_group(pid, Signal::KILL).context("killing a test")?;
    child.wait()?;
    Ok(Ended::Killed)
}

/// What a log says, as text.
pub(crate) fn read_back(log: File) -> Result<String> {
    use std::io::{Read, Seek};
    let mut log = log;
    log.rewind()?;
    let mut bytes = Vec::new();
    log.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

/// The tests of these executables that failed, or an error that says there were none to run.
pub(crate) fn failures(results: &[TestResult]) -> Result<Vec<String>> {
    if results.is_empty() {
        bail!("no test matches");
    }
    Ok(results
        .iter()
        .filter(|result| !result.passed)
        .map(|result| format!("{} as {}: {}", result.target, result.by, result.name))
        .collect())
}

/// Reads a file that a test run wrote, empty if it wrote none.
pub(crate) fn read_or_empty(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
