//! `cargo xtask fuzz`: builds the targets in `fuzz/` with coverage counters and lets libFuzzer try
//! them. Stable Rust is enough: the compiler's LLVM has the pass, and libFuzzer comes as a crate.
//! Must never report success for a target that crashed or did not run.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::tree;

/// What `-Zsanitizer` or cargo-fuzz would pass, without either.
const RUSTFLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
];
/// Between two lines about a target that is running.
const PROGRESS: Duration = Duration::from_secs(30);
/// Lines of a crash that are shown.
const LAST_WORDS: usize = 40;

/// Arguments of `cargo xtask fuzz`.
#[derive(Args)]
pub(crate) struct FuzzArguments {
    /// Files in fuzz/targets, without `.rs`; all by default.
    targets: Vec<String>,
    /// How long each target runs.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// How many targets run at a time.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Run one target once, with this file: to see a crash again.
    #[arg(long, value_name = "FILE", conflicts_with = "seconds")]
    input: Option<PathBuf>,
}

/// Runs the task.
pub(crate) fn fuzz(arguments: &FuzzArguments) -> Result<()> {
    let targets = chosen(&arguments.targets)?;
    let binaries = build()?;
    let binary = |target: &String| -> Result<PathBuf> {
        let found = binaries.join(target);
        if !found.is_file() {
            bail!("fuzz/Cargo.toml has no binary `{target}`; give it one");
        }
        Ok(found)
    };
    // What targets make on disk is gone when this is dropped, crash or not.
    let scratch = tempfile::tempdir().context("cannot make a directory")?;
    if let Some(input) = &arguments.input {
        let [target] = &targets[..] else { bail!("--input needs exactly one target") };
        return tree::succeed(
            Command::new(binary(target)?).arg(input).env("TMPDIR", scratch.path()),
        );
    }
    let mut waiting = Vec::new();
    for target in &targets {
        waiting.push(Campaign::new(target, binary(target)?, arguments.seconds, scratch.path())?);
    }
    waiting.reverse();
    let (waiting, done) = (Mutex::new(waiting), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            loop {
                let next = waiting.lock().map_err(died)?.pop();
                let Some(mut campaign) = next else { return Ok(()) };
                let outcome = campaign.run()?;
                done.lock().map_err(died)?.insert(campaign.target, outcome);
            }
        };
        let workers: Vec<_> = (0..arguments.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(died)?)
    })?;
    report(&done.into_inner().map_err(died)?)
}

fn died<T>(_: T) -> anyhow::Error {
    anyhow::anyhow!("a worker died")
}

fn chosen(wanted: &[String]) -> Result<Vec<String>> {
    let directory = tree::root().join("fuzz/targets");
    let mut known = Vec::new();
    for entry in fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        known.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    known.sort();
    for target in wanted {
        if !known.contains(target) {
            bail!("there is no target `{target}`; there are {}", known.join(", "));
        }
    }
    Ok(if wanted.is_empty() { known } else { wanted.to_vec() })
}

/// Builds every target and returns the directory they are in.
fn build() -> Result<PathBuf> {
    let start = Instant::now();
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    if Command::new(&compiler).arg("--version").stdout(Stdio::null()).status().is_err() {
        bail!("libFuzzer needs a C++ compiler; on Debian and Ubuntu: apt-get install g++");
    }
    // With a target named, the flags apply to our code but not to build scripts and macros.
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let directory = tree::root().join("target/fuzz");
    let mut cargo = tree::cargo();
    // Not `--locked`: a dependency added to one of our crates is new to the lock file of this
    // workspace too, and nothing built here ships.
    cargo
        .env("RUSTFLAGS", RUSTFLAGS.join(" "))
        .args(["build", "--release", "--manifest-path", "fuzz/Cargo.toml"])
        .args(["--target", &triple, "--target-dir"])
        .arg(&directory);
    tree::succeed(&mut cargo)?;
    println!("built in {:.0}s", start.elapsed().as_secs_f64());
    Ok(directory.join(triple).join("release"))
}

/// One target for some time.
struct Campaign {
    target: String,
    command: Command,
    seconds: u64,
    corpus: PathBuf,
    crashes: PathBuf,
}

/// What came of it.
struct Outcome {
    runs: u64,
    /// Edges of the program that were reached.
    coverage: u64,
    /// Inputs that reached something new.
    new_inputs: u64,
    corpus: usize,
    crash: Option<Crash>,
}

struct Crash {
    input: Option<PathBuf>,
    last_words: Vec<String>,
}

impl Campaign {
    fn new(target: &str, binary: PathBuf, seconds: u64, scratch: &Path) -> Result<Self> {
        let corpus = tree::root().join("target/fuzz-corpus").join(target);
        let crashes = tree::root().join("target/fuzz-crashes").join(target);
        for directory in [&corpus, &crashes] {
            fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        }
        let mut command = Command::new(binary);
        // The first directory is the one libFuzzer adds to; the others it only reads.
        command.arg(&corpus);
        let seeds = tree::root().join("fuzz/seeds").join(target);
        if seeds.is_dir() {
            command.arg(seeds);
        }
        command
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}/", crashes.display()))
            .args(["-print_final_stats=1", "-timeout=20", "-rss_limit_mb=2048"])
            .env("TMPDIR", scratch)
            // The message says where; a backtrace would push it out of what is shown.
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        Ok(Self { target: target.to_owned(), command, seconds, corpus, crashes })
    }

    fn run(&mut self) -> Result<Outcome> {
        println!("{}: {} s", self.target, self.seconds);
        let mut child = self
            .command
            .spawn()
            .with_context(|| format!("cannot start {}", tree::show(&self.command)))?;
        let output = child.stderr.take().context("no pipe")?;
        let mut words = Words::default();
        let mut told = Instant::now();
        for line in BufReader::new(output).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            if line.starts_with('#') && told.elapsed() >= PROGRESS {
                println!("{}: {}", self.target, line.trim());
                told = Instant::now();
            }
            words.hear(line);
        }
        let status = child.wait()?;
        let number = |name: &str| words.numbers.get(name).copied();
        let crash = (!status.success()).then(|| Crash {
            input: words.artifact(&self.crashes),
            last_words: words.last.clone(),
        });
        let runs = number("number_of_executed_units").unwrap_or(0);
        if crash.is_none() && runs == 0 {
            bail!("{} did not run:\n{}", self.target, words.last.join("\n"));
        }
        Ok(Outcome {
            runs,
            coverage: words.coverage,
            new_inputs: number("new_units_added").unwrap_or(0),
            corpus: fs::read_dir(&self.corpus)?.count(),
            crash,
        })
    }
}

/// What libFuzzer says on its way; see its manual, "Output".
#[derive(Default)]
struct Words {
    coverage: u64,
    numbers: BTreeMap<String, u64>,
    last: Vec<String>,
    written: Option<String>,
}

impl Words {
    fn hear(&mut self, line: String) {
        if let Some((_, rest)) = line.split_once(" cov: ") {
            let number = rest.split_whitespace().next().and_then(|text| text.parse().ok());
            self.coverage = number.unwrap_or(self.coverage);
        }
        if let Some((name, number)) =
            line.strip_prefix("stat::").and_then(|rest| rest.split_once(':'))
            && let Ok(number) = number.trim().parse()
        {
            self.numbers.insert(name.to_owned(), number);
        }
        if let Some((_, path)) = line.split_once("Test unit written to ") {
            self.written = Some(path.trim().to_owned());
        }
        if !line.starts_with('#') {
            if self.last.len() == LAST_WORDS {
                self.last.remove(0);
            }
            self.last.push(line);
        }
    }

    fn artifact(&self, crashes: &Path) -> Option<PathBuf> {
        let path = PathBuf::from(self.written.as_ref()?);
        path.starts_with(crashes).then_some(path)
    }
}

fn report(outcomes: &BTreeMap<String, Outcome>) -> Result<()> {
    let mut crashed = Vec::new();
    println!(
        "\n{:<16} {:>12} {:>9} {:>7} {:>7}  crash",
        "target", "runs", "coverage", "new", "corpus"
    );
    for (target, outcome) in outcomes {
        let crash = match &outcome.crash {
            None => "none".to_owned(),
            Some(Crash { input: Some(input), .. }) => input.display().to_string(),
            Some(_) => "yes, without an input".to_owned(),
        };
        println!(
            "{target:<16} {:>12} {:>9} {:>7} {:>7}  {crash}",
            outcome.runs, outcome.coverage, outcome.new_inputs, outcome.corpus
        );
        crashed.extend(outcome.crash.as_ref().map(|crash| (target, crash)));
    }
    for (target, crash) in &crashed {
        println!("\n{target} crashed:");
        for line in &crash.last_words {
            println!("    {line}");
        }
        if let Some(input) = &crash.input {
            println!("again: cargo xtask fuzz {target} --input {}", input.display());
        }
    }
    if !crashed.is_empty() {
        bail!("{} of {} targets crashed", crashed.len(), outcomes.len());
    }
    Ok(())
}
