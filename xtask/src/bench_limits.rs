//! `cargo xtask bench limits`: how far past a limit a run gets that does its worst, and how late a timer of the
//! host is meanwhile. The loads are bounded: none of them harms a machine on which nothing is held.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;
use serde_json::Value;

use crate::bench;
use crate::measure::BenchContext;

const PYTHON: &str = "/usr/bin/python3";
const TICK: Duration = Duration::from_millis(10);
/// So long the host is watched.
const WATCHED: Duration = Duration::from_secs(3);

/// A load that goes past a limit as fast as it can, on every CPU.
///
/// It writes a byte for each unit that it has used: what it wrote is what it had, whatever ended it.
struct Load {
    name: &'static str,
    limit: &'static str,
    flags: &'static [&'static str],
    /// In units of the load.
    value: u64,
    unit: &'static str,
    work: &'static str,
}

/// Each worker does `work` once a unit, at most as often as `MOST` says, and then waits to be ended.
const FRAME: &str = "import mmap, os, signal, time\n\
    workers = os.cpu_count()\n\
    number = 0\n\
    while number < workers - 1 and os.fork() == 0: number += 1\n\
    WORK\n\
    while True: signal.pause()";

const FILL: &str = "block = b'x' * (1 << 20)\n\
    held = mmap.mmap(-1, 1 << 30)\n\
    for _ in range(1024): held.write(block); os.write(1, b'.')";

const LOADS: [Load; 7] = [
    Load {
        name: "memory, at once",
        limit: "memory",
        flags: &["--memory", "64m"],
        value: 64,
        unit: "MiB",
        work: FILL,
    },
    Load {
        name: "memory, after a rest",
        limit: "memory",
        flags: &["--memory", "64m"],
        value: 64,
        unit: "MiB",
        work: "time.sleep(1)\nFILL",
    },
    Load {
        name: "memory in files",
        limit: "memory",
        flags: &["--memory", "64m"],
        value: 64,
        unit: "MiB",
        work: "block = b'x' * (1 << 20)\n\
            held = os.memfd_create('held')\n\
            for _ in range(1024): os.write(held, block); os.write(1, b'.')",
    },
    Load {
        name: "space in the project",
        limit: "disk",
        flags: &["--disk", "64m"],
        value: 64,
        unit: "MiB",
        work: "block = b'x' * (1 << 20)\n\
            held = os.open(f'held{number}', os.O_CREAT | os.O_TRUNC | os.O_WRONLY)\n\
            for _ in range(1024): os.write(held, block); os.write(1, b'.')",
    },
    Load {
        name: "files in the project",
        limit: "inodes",
        flags: &["--inodes", "1000"],
        value: 1000,
        unit: "files",
        work: "for file in range(100000): os.close(os.open(f'held{number}-{file}', os.O_CREAT)); \
            os.write(1, b'.')",
    },
    Load {
        name: "CPU time",
        limit: "cpu-time",
        flags: &["--cpu-time", "500ms"],
        value: 500,
        unit: "ms",
        work: "told = 0\n\
            while told < 10000:\n \
             used = int(time.process_time() * 1000)\n \
             if used > told: os.write(1, b'.' * (used - told)); told = used",
    },
    Load {
        name: "processes",
        limit: "pids",
        flags: &["--pids", "64"],
        value: 64,
        unit: "processes",
        work: "for _ in range(300):\n \
             try:\n  \
              if os.fork() == 0: signal.pause()\n \
             except OSError: break\n \
             os.write(1, b'.')",
    },
];

impl Load {
    fn script(&self) -> String {
        FRAME.replace("WORK", &self.work.replace("FILL", FILL))
    }
}

#[derive(Serialize)]
struct Report {
    by: &'static str,
    rounds: usize,
    overshoots: Vec<Overshoot>,
    drifts: Vec<Drift>,
}

#[derive(Serialize)]
struct Overshoot {
    name: &'static str,
    holder: String,
    grip: String,
    limit: u64,
    unit: &'static str,
    /// Past the limit, at worst and in the middle; 0 where it was not passed.
    worst: u64,
    median: u64,
}

#[derive(Serialize)]
struct Drift {
    name: &'static str,
    worst_ms: f64,
}

/// Measures and prints.
pub(crate) fn limits(sandbox: &Path, json: bool, rounds: usize) -> Result<()> {
    let mut reports = Vec::new();
    bench::as_each_user(|by, surroundings, _| {
        let overshoots = LOADS
            .iter()
            .map(|load| overshoot(load, sandbox, surroundings, rounds))
            .collect::<Result<Vec<_>>>()?;
        let report = Report { by, rounds, overshoots, drifts: drifts(sandbox, surroundings)? };
        if !json {
            print(&report);
        }
        reports.push(report);
        Ok(())
    })?;
    if json {
        println!("{}", serde_json::to_string_pretty(&reports)?);
    }
    Ok(())
}

fn inside(sandbox: &Path, flags: &[&str], script: &str) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![sandbox.into()];
    words.extend(["run", "--quiet", "--best-effort-limits"].map(OsString::from));
    words.extend(flags.iter().map(OsString::from));
    words.extend(["--", PYTHON, "-c", script].map(OsString::from));
    words
}

fn overshoot(
    load: &Load,
    sandbox: &Path,
    surroundings: &BenchContext<'_>,
    rounds: usize,
) -> Result<Overshoot> {
    let report = surroundings.home.join("report.json");
    let report_flag = report.to_string_lossy().into_owned();
    // What only refuses ends nobody.
    let flags = [load.flags, &["--report", &report_flag, "--timeout", "5s", "--grace", "1ms"]];
    let words = inside(sandbox, &flags.concat(), &load.script());
    let mut passed = Vec::new();
    let mut holder = Value::Null;
    for _ in 0..rounds {
        let output = surroundings.command(&words)?.stdin(Stdio::null()).output()?;
        let text = fs::read(&report).with_context(|| {
            format!("{} did not run: {}", load.name, String::from_utf8_lossy(&output.stderr))
        })?;
        let told: Value = serde_json::from_slice(&text)?;
        fs::remove_file(&report)?;
        clear(surroundings.directory)?;
        let limits = told["limits"].as_array().context("no limits in the report")?;
        let limit = limits.iter().find(|limit| limit["name"] == load.limit);
        holder = limit.context("the limit is not in the report")?.clone();
        if holder["grip"] == "sampled" && holder["reached"]["endedTheRun"] != true {
            bail!("{} was not ended: {told:#}", load.name);
        }
        passed.push(u64::try_from(output.stdout.len())?.saturating_sub(load.value));
    }
    passed.sort_unstable();
    let word = |key: &str| holder[key].as_str().unwrap_or_default().to_owned();
    Ok(Overshoot {
        name: load.name,
        holder: word("holder"),
        grip: word("grip"),
        limit: load.value,
        unit: load.unit,
        worst: passed.last().copied().context("no rounds")?,
        median: passed[passed.len() / 2],
    })
}

/// What a load left in the project.
fn clear(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        fs::remove_file(entry?.path())?;
    }
    Ok(())
}

/// How late a timer is while others do their worst, beside doing nothing and beside plain work.
fn drifts(sandbox: &Path, surroundings: &BenchContext<'_>) -> Result<Vec<Drift>> {
    let fork_bomb = "import os\nwhile True:\n try: os.fork()\n except OSError: pass";
    let memory_bomb = "held = []\nwhile True: held.append(b'x' * (8 << 20))";
    let work = "import os\nfor _ in range(os.cpu_count()): os.fork()\nwhile True: pass";
    let bare = ["timeout", "3", PYTHON, "-c", work].map(OsString::from).to_vec();
    let ended = ["--timeout", "3s", "--grace", "1ms"];
    let forks = inside(sandbox, &[&["--pids", "64"][..], &ended].concat(), fork_bomb);
    let memory = inside(sandbox, &["--memory", "64m"], memory_bomb);
    [
        ("nothing", None),
        ("plain work, bare", Some(bare)),
        ("a fork bomb inside", Some(forks)),
        ("memory bombs inside", Some(memory)),
    ]
    .into_iter()
    .map(|(name, words)| {
        let worst = drift(|| keep_running(words.as_deref(), surroundings))?;
        Ok(Drift { name, worst_ms: worst.as_secs_f64() * 1e3 })
    })
    .collect()
}

/// Starts it again until the time is over: a bomb may be gone at once.
fn keep_running(words: Option<&[OsString]>, surroundings: &BenchContext<'_>) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < WATCHED {
        match words {
            Some(words) => {
                let mut command = surroundings.command(words)?;
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                command.status()?;
            }
            None => std::thread::sleep(WATCHED),
        }
    }
    Ok(())
}

/// The most by which a timer of 10 ms on the first CPU was late.
fn drift(meanwhile: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let timer = scope.spawn(|| -> Result<Duration> {
            pin_to_first()?;
            let mut worst = Duration::ZERO;
            while !is_over.load(Ordering::Relaxed) {
                let due = Instant::now() + TICK;
                std::thread::sleep(TICK);
                worst = worst.max(due.elapsed());
            }
            Ok(worst)
        });
        let outcome = meanwhile();
        is_over.store(true, Ordering::Relaxed);
        let worst = timer.join().map_err(|_| anyhow::anyhow!("the timer died"))?;
        outcome.and(worst)
    })
}

fn pin_to_first() -> Result<()> {
    let usable = sched_getaffinity(None)?;
    let first = (0..CpuSet::MAX_CPU).find(|cpu| usable.is_set(*cpu)).context("no CPU")?;
    let mut one = CpuSet::new();
    one.set(first);
    Ok(sched_setaffinity(None, &one)?)
}

fn print(report: &Report) {
    println!("\nas {}, {} rounds each: past the limit", report.by, report.rounds);
    println!(
        "{:22} {:>10} {:>8} {:>14} {:>8} {:>8}",
        "", "holder", "grip", "limit", "worst", "median"
    );
    for row in &report.overshoots {
        println!(
            "{:22} {:>10} {:>8} {:>14} {:>8} {:>8}",
            row.name,
            row.holder,
            row.grip,
            format!("{} {}", row.limit, row.unit),
            row.worst,
            row.median
        );
    }
    println!("a timer of 10 ms outside, late at worst");
    for drift in &report.drifts {
        println!("{:22} {:>10.1} ms", drift.name, drift.worst_ms);
    }
}
