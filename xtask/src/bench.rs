//! `cargo xtask bench`: how long a sandbox takes to start and what it costs inside, beside
//! doing the same without one and with other sandboxes found on the machine.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::measure::{self, BenchContext, Contender, Times, ratio};
use crate::setup::{self, TestUser};
use crate::{
    bench_commands, bench_egress, bench_gate, bench_limits, bench_service, bench_sessions,
    bench_trees, dist, programs, stage,
};

const TRUE: &str = "/bin/true";
const BARE: &str = "bare";
pub(crate) const BWRAP: &str = "bwrap";
/// What everybody has a firm holder for: control groups, or limits of the process and a CPU mask.
const HARD_LIMITS: [[&str; 2]; 5] = [
    ["--pids", "100"],
    ["--cpus", "1"],
    ["--open-files", "1024"],
    ["--file-size", "1g"],
    ["--timeout", "1h"],
];
/// What without a control group is looked at.
const MORE_LIMITS: [&str; 5] = ["--best-effort-limits", "--memory", "1g", "--cpu-time", "1h"];

/// Arguments of `cargo xtask bench`.
#[derive(Args)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    subject: Subject,
    /// Print JSON instead of a table.
    #[arg(long, global = true)]
    json: bool,
    /// How often each command is run.
    #[arg(long, global = true)]
    rounds: Option<usize>,
}

#[derive(Subcommand)]
enum Subject {
    /// Starting `/bin/true`, and the supervisor's peak memory.
    Start,
    /// A further command in a running sandbox, beside a bare fork and exec.
    Commands,
    /// Opening files, and programs that write many: inside, bare and in bubblewrap.
    Files,
    /// What the gate costs: calls on what may be seen, whole programs, questions and decisions.
    Gate {
        /// Draw the whole programs as a chart into this SVG file.
        #[arg(long)]
        chart: Option<PathBuf>,
    },
    /// What the way out costs: transfers, connections, idle tunnels.
    Egress,
    /// Sessions and transactions: a further command, a start, whole programs, diff and apply.
    Sessions,
    /// The service: runs and commands by HTTP, prepared sandboxes, and the memory of idle sandboxes and of the server.
    Service(bench_service::ServiceArguments),
    /// How far past each limit a run gets, and how late the host's timers are meanwhile.
    Limits,
}

/// Runs the task.
pub(crate) fn bench(arguments: &BenchArguments) -> Result<()> {
    let place = stage::public_directory()?;
    let sandbox = stage::link_or_copy_into(&dist::static_binary()?, place.path())?;
    let probe = match &arguments.subject {
        Subject::Files => Some(programs::build_binary("palisade-probe", &["--release"])?),
        Subject::Start => None,
        Subject::Commands => {
            let rounds = arguments.rounds.unwrap_or(200);
            return bench_commands::commands(&sandbox, place.path(), arguments.json, rounds);
        }
        Subject::Gate { chart } => {
            let rounds = arguments.rounds.unwrap_or(10);
            let chart = chart.as_deref();
            return bench_gate::gate(&sandbox, place.path(), arguments.json, rounds, chart);
        }
        Subject::Egress => {
            let rounds = arguments.rounds.unwrap_or(5);
            return bench_egress::egress(&sandbox, place.path(), arguments.json, rounds);
        }
        Subject::Sessions => {
            let rounds = arguments.rounds.unwrap_or(5);
            return bench_sessions::sessions(&sandbox, arguments.json, rounds);
        }
        Subject::Service(service) => {
            let rounds = arguments.rounds.unwrap_or(100);
            return bench_service::service(&sandbox, service, arguments.json, rounds);
        }
        Subject::Limits => {
            return bench_limits::limits(&sandbox, arguments.json, arguments.rounds.unwrap_or(10));
        }
    };
    let mut reports = Vec::new();
    as_each_user(|by, surroundings, _| {
        let mut report = match &probe {
            None => start(&sandbox, surroundings, arguments.rounds.unwrap_or(200))?,
            Some(probe) => {
                let probe = stage::link_or_copy_into(probe, surroundings.directory)?;
                files(&sandbox, &probe, surroundings, arguments.rounds.unwrap_or(10))?
            }
        };
        report.by = by;
        if !arguments.json {
            print(&report);
        }
        reports.push(report);
        Ok(())
    })?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&reports)?);
    }
    Ok(())
}

/// As whoever called, and if that is root as the test user too. `measure` also gets the home directory that
/// those of the surroundings are in.
pub(crate) fn as_each_user(
    mut measure: impl FnMut(&'static str, &BenchContext<'_>, &Path) -> Result<()>,
) -> Result<()> {
    let caller_home = PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?);
    let test_user = if setup::am_root() { setup::find_test_user()? } else { None };
    let mut users: Vec<(PathBuf, Option<&TestUser>)> = vec![(caller_home, None)];
    users.extend(test_user.iter().map(|user| (user.home.clone(), Some(user))));
    for (home, user) in users {
        // A home directory is nobody's project, so the two are apart.
        let directory = stage::test_directory(&home, user)?;
        let own_home = stage::test_directory(&home, user)?;
        let surroundings =
            BenchContext { user, directory: directory.path(), home: own_home.path() };
        let by = if user.is_none() && setup::am_root() { "root" } else { "user" };
        measure(by, &surroundings, &home)?;
    }
    Ok(())
}

#[derive(Serialize, Default)]
struct Report {
    by: &'static str,
    rounds: usize,
    rows: Vec<Row>,
    left_out: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    supervisor_peak_kib: Option<u64>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    median_to_bare: f64,
    p95_to_bare: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    median_to_bwrap: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p95_to_bwrap: Option<f64>,
    median_us: f64,
    p95_us: f64,
}

fn start(sandbox: &Path, surroundings: &BenchContext<'_>, rounds: usize) -> Result<Report> {
    let mut contenders = vec![
        Contender::new(BARE, [TRUE]),
        ours("ours LEVEL_1", sandbox, &["--level", "1"]),
        ours("ours LEVEL_2", sandbox, &["--level", "2"]),
        ours("ours LEVEL_2, static", sandbox, &["--level", "2", "--static"]),
        ours("ours LEVEL_2, gate notify", sandbox, &["--level", "2", "--gate", "notify"]),
        ours("ours LEVEL_2, hard limits", sandbox, HARD_LIMITS.as_flattened()),
        ours(
            "ours LEVEL_2, all limits",
            sandbox,
            &[HARD_LIMITS.as_flattened(), &MORE_LIMITS].concat(),
        ),
    ];
    let mut left_out = Vec::new();
    // Ours must work; another sandbox that does not is no reason to measure nothing.
    for contender in others(surroundings.directory, surroundings.home) {
        match measure::time_one(&contender, surroundings) {
            Ok(_) => contenders.push(contender),
            Err(reason) => left_out.push(format!("{reason:#}")),
        }
    }
    let times = measure::take_turns(&contenders, surroundings, rounds)?;
    let rows = compare(&contenders, &times);
    let supervisor_peak_kib = Some(supervisor_peak(sandbox, surroundings)?);
    Ok(Report { by: "", rounds, rows, left_out, supervisor_peak_kib })
}

fn ours(name: &'static str, sandbox: &Path, flags: &[&str]) -> Contender {
    let sandbox: OsString = sandbox.into();
    let words = [&["run", "--quiet"][..], flags, &["--", TRUE]].concat();
    Contender::new(name, std::iter::once(sandbox).chain(words.into_iter().map(OsString::from)))
}

/// Other sandboxes on this machine, asked for what LEVEL_2 gives.
fn others(project: &Path, home: &Path) -> Vec<Contender> {
    let bwrap = bwrap_options(project, home);
    let bwrap: Vec<&str> = bwrap.split_whitespace().chain([TRUE]).collect();
    let candidates: [(&'static str, &[&str]); 5] = [
        (BWRAP, &bwrap),
        ("sandlock", &["run", "--", TRUE]),
        ("srt", &[TRUE]),
        ("codex", &["sandbox", "linux", "--", TRUE]),
        ("firejail", &["--quiet", "--noprofile", "--net=none", TRUE]),
    ];
    let found = candidates.into_iter().filter_map(|(name, arguments)| {
        let program = OsString::from(measure::find_program(name)?);
        let words = arguments.iter().map(OsString::from);
        Some(Contender::new(name, std::iter::once(program).chain(words)))
    });
    found.collect()
}

/// Up to where the command begins.
fn bwrap_options(project: &Path, home: &Path) -> String {
    let project = project.to_string_lossy();
    let home = home.to_string_lossy();
    // A policy written by hand for what ours shows by itself: the system read-only, a home of its own,
    // the project. Sealed parts of /proc, a system call filter and the rest it has not.
    format!(
        "--unshare-all --die-with-parent --new-session --hostname sandbox --cap-drop ALL \
         --ro-bind /usr /usr --ro-bind /etc /etc --ro-bind-try /opt /opt \
         --symlink usr/bin /bin --symlink usr/sbin /sbin --symlink usr/lib /lib \
         --symlink usr/lib64 /lib64 --ro-bind-try /var/lib/dpkg /var/lib/dpkg \
         --ro-bind-try /var/cache/man /var/cache/man \
         --ro-bind-try /sys/devices/system/cpu /sys/devices/system/cpu \
         --dev /dev --mqueue /dev/mqueue --proc /proc --tmpfs /tmp --tmpfs /var/tmp --tmpfs /run \
         --tmpfs {home} --bind {project} {project} --chdir {project} --"
    )
}

fn compare(contenders: &[Contender], times: &[Times]) -> Vec<Row> {
    let of = |name: &str| {
        contenders.iter().zip(times).find(|(known, _)| known.name == name).map(|(_, times)| times)
    };
    let (bare, bwrap) = (of(BARE), of(BWRAP));
    let against = |mine: Duration, other: Option<&Times>, percent: usize| {
        other.map(|times| ratio(mine, times.percentile(percent)))
    };
    let row = |(contender, times): (&Contender, &Times)| {
        let (median, p95) = (times.median(), times.percentile(95));
        Row {
            name: contender.name.to_owned(),
            median_to_bare: against(median, bare, 50).unwrap_or(f64::NAN),
            p95_to_bare: against(p95, bare, 95).unwrap_or(f64::NAN),
            median_to_bwrap: against(median, bwrap, 50),
            p95_to_bwrap: against(p95, bwrap, 95),
            median_us: median.as_secs_f64() * 1e6,
            p95_us: p95.as_secs_f64() * 1e6,
        }
    };
    contenders.iter().zip(times).map(row).collect()
}

/// The supervisor's high-water mark while its command runs.
///
/// Read from `/proc` and not from `wait4`, whose figure includes this process before its exec.
fn supervisor_peak(sandbox: &Path, surroundings: &BenchContext<'_>) -> Result<u64> {
    let mut words = vec![OsString::from(sandbox)];
    let rest = ["run", "--quiet", "--", "sh", "-c", "echo ready; read line"];
    words.extend(rest.map(OsString::from));
    let mut command = surroundings.command(&words)?;
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().context("no standard output")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let status = fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    drop(child.stdin.take());
    child.wait()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok())
        .context("/proc told no VmHWM of the supervisor")
}

fn files(
    sandbox: &Path,
    probe: &Path,
    surroundings: &BenchContext<'_>,
    rounds: usize,
) -> Result<Report> {
    let own = surroundings.directory.join("file");
    fs::write(&own, "content").with_context(|| own.display().to_string())?;
    let mut report = Report { rounds, ..Report::default() };
    for (bare_name, inside_name, file) in [
        ("project file, bare", "project file, inside", own.as_path()),
        ("system file, bare", "system file, inside", Path::new("/usr/bin/env")),
    ] {
        let loop_words: Vec<OsString> =
            vec![probe.into(), "open-loop".into(), file.into(), "100000".into(), "1".into()];
        let mut inside_words: Vec<OsString> = vec![sandbox.into()];
        inside_words.extend(["run", "--quiet", "--"].map(OsString::from));
        inside_words.extend(loop_words.clone());
        let (mut bare, mut inside) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            bare.push(one_loop(&loop_words, surroundings)?);
            inside.push(one_loop(&inside_words, surroundings)?);
        }
        let (bare, inside) = (Times::new(bare)?, Times::new(inside)?);
        for (name, times) in [(bare_name, &bare), (inside_name, &inside)] {
            report.rows.push(Row {
                name: name.to_owned(),
                median_to_bare: ratio(times.median(), bare.median()),
                p95_to_bare: ratio(times.percentile(95), bare.percentile(95)),
                median_to_bwrap: None,
                p95_to_bwrap: None,
                median_us: times.median().as_secs_f64() * 1e6,
                p95_us: times.percentile(95).as_secs_f64() * 1e6,
            });
        }
    }
    let ours = |flags: &[&str]| -> Vec<OsString> {
        let words = ["run", "--quiet"].into_iter().chain(flags.iter().copied()).chain(["--"]);
        std::iter::once(sandbox.into()).chain(words.map(OsString::from)).collect()
    };
    let build_dirs: Vec<&str> =
        bench_trees::BUILD_DIRS.iter().flat_map(|dir| ["--build-dir", *dir]).collect();
    let mut wrappers = vec![("ours", ours(&[])), ("ours, in build directories", ours(&build_dirs))];
    if let Some(bwrap) = measure::find_program(BWRAP) {
        let options = bwrap_options(surroundings.directory, surroundings.home);
        let words = options.split_whitespace().map(OsString::from);
        wrappers.push((BWRAP, std::iter::once(bwrap.into()).chain(words).collect()));
    }
    for compared in bench_trees::compare(surroundings, &wrappers, rounds)? {
        let of = |wanted: &str| {
            compared.times.iter().find(|(name, _)| *name == wanted).map(|(_, times)| times)
        };
        for (contender, times) in &compared.times {
            let against = |other: Option<&Times>, percent| {
                other.map(|other| ratio(times.percentile(percent), other.percentile(percent)))
            };
            report.rows.push(Row {
                name: format!("{}, {contender}", compared.name),
                median_to_bare: against(of(BARE), 50).unwrap_or(f64::NAN),
                p95_to_bare: against(of(BARE), 95).unwrap_or(f64::NAN),
                median_to_bwrap: against(of(BWRAP), 50),
                p95_to_bwrap: against(of(BWRAP), 95),
                median_us: times.median().as_secs_f64() * 1e6,
                p95_us: times.percentile(95).as_secs_f64() * 1e6,
            });
        }
    }
    Ok(report)
}

/// What one of the probe's loops said a call took.
pub(crate) fn one_loop(words: &[OsString], surroundings: &BenchContext<'_>) -> Result<Duration> {
    let said = crate::tree::output_of(surroundings.command(words)?.stdin(Stdio::null()))?;
    let nanoseconds =
        said.trim().strip_prefix("done ").context("the probe did not say how long")?;
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

fn print(report: &Report) {
    println!("\nas {}, {} rounds each, in turns", report.by, report.rounds);
    println!(
        "{:26} {:>10} {:>10} {:>10} {:>10}   {:>10} {:>10}",
        "", "× bare", "p95", "× bwrap", "p95", "median µs", "p95 µs"
    );
    for row in &report.rows {
        let optional = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.2}"));
        println!(
            "{:26} {:>10.2} {:>10.2} {:>10} {:>10}   {:>10.1} {:>10.1}",
            row.name,
            row.median_to_bare,
            row.p95_to_bare,
            optional(row.median_to_bwrap),
            optional(row.p95_to_bwrap),
            row.median_us,
            row.p95_us
        );
    }
    for reason in &report.left_out {
        println!("left out: {reason}");
    }
    if let Some(peak) = report.supervisor_peak_kib {
        println!("peak memory of the supervisor: {peak} KiB");
    }
}
