//! `cargo xtask bench gate`: what the gate costs on what may be seen, with each of its triggers, what a
//! question costs besides the time a person takes to answer, and what a decision costs. A goal that is missed
//! is shown, and is no failure: on a machine with other work no time is a promise.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::bench::{self, one_loop};
use crate::bench_question::{self, Question};
use crate::bench_trees::{self, Work};
use crate::chart::{self, Group};
use crate::measure::{self, BenchContext, Times, ratio};
use crate::packages::User;
use crate::{programs, setup, stage, tree};

/// What may be seen, beside bare: calls and programs that only read.
const GOAL_OF_READING: f64 = 1.05;
const GOAL_OF_CARGO_BUILD: f64 = 1.15;
/// In µs.
const GOAL_OF_A_QUESTION: f64 = 1000.0;
const GOAL_FROM_THE_CACHE: f64 = 1.0;
const GOAL_WITHOUT_THE_CACHE: f64 = 20.0;

/// The gate, by trigger.
const GATES: [&str; 2] = ["gate, fuse", "gate, notify"];
const NOTIFY_ALONE: &str = "notify alone";

/// Calls of one micro test, in all its threads.
const CALLS: &str = "20000";

/// 20,000 files in a repository, and a crate with dependencies that lie beside it.
///
/// Git compares owners, too, unless it is told not to. Each way that shows others than the one before would read and write
/// everything again.
const PREPARE: &str = r#"
set -e
mkdir tree
i=0
while [ $i -lt 400 ]; do
    mkdir -p tree/d$((i / 20))/e$i
    j=0
    while [ $j -lt 50 ]; do
        echo "line $i of a small file, number $j, with a needle$i$j in it" > tree/d$((i / 20))/e$i/f$j.txt
        j=$((j+1))
    done
    i=$((i+1))
done
cd tree
git init -q
git config user.name bench
git config user.email bench@localhost
git config gc.auto 0
git config core.checkStat minimal
git add .
git commit -q -m all
git status --porcelain
cd ..
mkdir -p crate/src
printf '[package]\nname = "whole"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n' > crate/Cargo.toml
echo 'fn main() { let mut sum = 0u64;' > crate/src/main.rs
for d in alpha beta gamma delta epsilon; do
    mkdir -p crate/vendor/$d/src
    printf '[package]\nname = "%s"\nversion = "0.1.0"\nedition = "2021"\n' $d > crate/vendor/$d/Cargo.toml
    echo "$d = { path = \"vendor/$d\" }" >> crate/Cargo.toml
    : > crate/vendor/$d/src/lib.rs
    for m in 1 2 3 4 5 6 7 8; do
        echo "pub mod m$m;" >> crate/vendor/$d/src/lib.rs
        for n in 1 2 3 4 5 6 7 8 9 10; do
            printf '#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]\npub struct S%s { pub a: u64, pub b: String, pub c: Vec<Option<u32>> }\nimpl S%s { pub fn run(&self) -> u64 { let text = format!("{:?}", self); self.c.iter().flatten().map(|x| u64::from(*x)).sum::<u64>() + text.len() as u64 + self.a } }\n' $n $n
            echo "sum += $d::m$m::S$n::default().run();" >> crate/src/main.rs
        done > crate/vendor/$d/src/m$m.rs
    done
done
echo 'println!("{sum}"); }' >> crate/src/main.rs
"#;

const PYTHON: &str = "python3 -c 'import argparse, asyncio, concurrent.futures, csv, ctypes, \
    dataclasses, decimal, difflib, email.message, fractions, http.client, http.server, inspect, \
    json, logging.config, multiprocessing, pathlib, pickle, pprint, queue, random, sqlite3, ssl, \
    statistics, subprocess, tarfile, tempfile, tokenize, typing, unittest.mock, urllib.request, \
    uuid, xml.dom.minidom, xml.etree.ElementTree, zipfile'";

#[derive(Serialize)]
struct Report {
    by: &'static str,
    rounds: usize,
    beside_bare: Vec<Row>,
    questions: Vec<Question>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    bare_us: f64,
    to_bare: Vec<ToBare>,
    goal: f64,
}

#[derive(Serialize)]
struct ToBare {
    way: &'static str,
    median: f64,
    /// The fastest run against the fastest: what other work on the machine costs is left out of it.
    fastest: f64,
    /// Of whole programs: the medians without what an empty script takes there, which is another goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    without_start: Option<f64>,
}

impl Row {
    /// The first of the times are those of bare. `starts` are those of an empty script, in the same order.
    fn new(
        name: String,
        times: &[(&'static str, Times)],
        starts: Option<&[(&'static str, Times)]>,
        goal: f64,
    ) -> Result<Self> {
        let (_, bare) = times.first().context("nothing was measured")?;
        let without_start = |at: usize| {
            let start = starts?.get(at)?.1.median();
            Some(times[at].1.median().saturating_sub(start))
        };
        let to_bare = times.iter().enumerate().skip(1).map(|(at, (way, times))| ToBare {
            way,
            median: ratio(times.median(), bare.median()),
            fastest: ratio(times.percentile(0), bare.percentile(0)),
            without_start: without_start(at)
                .zip(without_start(0))
                .map(|(time, bare)| ratio(time, bare)),
        });
        let bare_us = bare.median().as_secs_f64() * 1e6;
        Ok(Self { name, bare_us, to_bare: to_bare.collect(), goal })
    }

    /// By the gate's faster trigger.
    fn reached(&self) -> Option<f64> {
        let gates = self.to_bare.iter().filter(|to_bare| GATES.contains(&to_bare.way));
        let reached = gates.map(|to_bare| to_bare.without_start.unwrap_or(to_bare.median));
        reached.min_by(f64::total_cmp)
    }
}

/// In µs.
#[derive(Serialize)]
struct Decisions {
    map: f64,
    from_the_cache: f64,
    without_the_cache: f64,
}

/// Runs the task.
pub(crate) fn gate(
    sandbox: &Path,
    place: &Path,
    json: bool,
    rounds: usize,
    chart: Option<&Path>,
) -> Result<()> {
    setup::install_for(&[User::Tests, User::HostTests, User::Benches])?;
    let probe = programs::build_binary("palisade-probe", &["--release"])?;
    let toolchain = stage::reachable_toolchain(place)?;
    let decisions = decisions()?;
    let mut reports = Vec::new();
    bench::as_each_user(|by, surroundings, home| {
        let probe = stage::link_or_copy_into(&probe, surroundings.directory)?;
        let ways = ways(sandbox, &toolchain, surroundings);
        let mut beside_bare = calls(&ways, &probe, surroundings, rounds)?;
        beside_bare.extend(works(&ways, &toolchain, surroundings, rounds)?);
        let outside = stage::test_directory(home, surroundings.user)?;
        let questions = bench_question::ask(sandbox, &probe, surroundings, outside.path())?;
        let report = Report { by, rounds, beside_bare, questions };
        if !json {
            print(&report);
        }
        reports.push(report);
        Ok(())
    })?;
    if json {
        let all = serde_json::json!({ "reports": reports, "decisions_us": decisions });
        println!("{}", serde_json::to_string_pretty(&all)?);
    } else {
        print_decisions(&decisions);
    }
    // As an ordinary user where there is one: that is who runs it.
    if let (Some(file), Some(report)) = (chart, reports.last()) {
        let drawn =
            chart::svg("Time of whole programs, as a multiple of bare", &groups(report), 6.0);
        fs::write(file, drawn).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

/// A name, and what stands before a command.
type Way = (&'static str, Vec<OsString>);

/// Nothing, bubblewrap, a sandbox that asks nobody, and one with the gate, by each trigger that works here.
fn ways(sandbox: &Path, toolchain: &Path, surroundings: &BenchContext<'_>) -> Vec<Way> {
    let ours = |options: &[&str]| -> Vec<OsString> {
        let options = ["run", "--quiet"].iter().chain(options).map(OsString::from);
        let rest = ["--ro".into(), toolchain.into(), "--".into()];
        std::iter::once(sandbox.into()).chain(options).chain(rest).collect()
    };
    let mut ways = vec![("bare", Vec::new()), ("static", ours(&["--static"]))];
    for (name, trigger) in GATES.into_iter().zip(["fuse", "notify"]) {
        let words = ours(&["--gate", trigger]);
        match bench_trees::run(surroundings, &words, ":") {
            Ok(_) => ways.push((name, words)),
            Err(error) => eprintln!("left out: {name}: {error:#}"),
        }
    }
    if let Some(bwrap) = measure::find_program(bench::BWRAP) {
        // What a person types who wants everything to be readable.
        let words = format!(
            "--ro-bind / / --dev /dev --proc /proc --unshare-all --bind {0} {0} --",
            surroundings.directory.display()
        );
        let words = words.split_whitespace().map(OsString::from);
        ways.push((bench::BWRAP, std::iter::once(bwrap.into()).chain(words).collect()));
    }
    ways
}

fn calls(
    ways: &[Way],
    probe: &Path,
    surroundings: &BenchContext<'_>,
    rounds: usize,
) -> Result<Vec<Row>> {
    let file = surroundings.directory.join("file");
    fs::write(&file, "content").with_context(|| file.display().to_string())?;
    // A listener that does nothing but let the kernel go on: less no notified call can cost.
    let notified = (NOTIFY_ALONE, vec![probe.into(), "notified".into()]);
    let mut all: Vec<Way> = ways
        .iter()
        .map(|(name, before)| (*name, [before.as_slice(), &[probe.into()]].concat()))
        .collect();
    all.push(notified);
    let mut rows = Vec::new();
    for (call, probe_name) in [("open+close", "open-loop"), ("stat", "stat-loop")] {
        for (kind, path) in [("absolute", "/usr/bin/env"), ("relative", "file")] {
            for threads in ["1", "4"] {
                let looping = [probe_name, path, CALLS, threads].map(OsString::from);
                let mut times = vec![Vec::new(); all.len()];
                for _ in 0..rounds {
                    for ((_, before), times) in all.iter().zip(&mut times) {
                        let words: Vec<_> = before.iter().chain(&looping).cloned().collect();
                        times.push(one_loop(&words, surroundings)?);
                    }
                }
                let names = all.iter().map(|(name, _)| *name);
                let times = times.into_iter().map(Times::new).collect::<Result<Vec<_>>>()?;
                let times: Vec<_> = names.zip(times).collect();
                let name = format!("{call}, {kind}, {threads} thread(s)");
                rows.push(Row::new(name, &times, None, GOAL_OF_READING)?);
            }
        }
    }
    Ok(rows)
}

fn works(
    ways: &[Way],
    toolchain: &Path,
    surroundings: &BenchContext<'_>,
    rounds: usize,
) -> Result<Vec<Row>> {
    bench_trees::run(surroundings, &[], PREPARE)?;
    let build = format!(
        "cd crate && PATH={}/bin:$PATH CARGO_HOME=$PWD/cargo cargo build -q --offline",
        toolchain.display()
    );
    let reading = |name, script| (Work { name, undo: ":", script }, GOAL_OF_READING);
    let works = [
        reading("git status, 20,000 files", "git -C tree status"),
        reading("git diff, 20,000 files", "git -C tree diff"),
        reading("find, 20,000 files", "find tree -size +1k"),
        reading("rg, 20,000 files", "rg -c needle39949 tree"),
        reading("python3 imports", PYTHON),
        (
            Work { name: "cargo build", undo: "rm -rf crate/target", script: &build },
            GOAL_OF_CARGO_BUILD,
        ),
    ];
    let nothing = Work { name: "nothing", undo: ":", script: ":" };
    let starts = bench_trees::compare_one(surroundings, &nothing, ways, rounds)?.times;
    let mut rows = Vec::new();
    for (work, goal) in works {
        let compared = bench_trees::compare_one(surroundings, &work, ways, rounds)?;
        rows.push(Row::new(work.name.to_owned(), &compared.times, Some(&starts), goal)?);
    }
    for name in ["tree", "crate"] {
        bench_trees::remove(&surroundings.directory.join(name))?;
    }
    Ok(rows)
}

/// The chart's bars: whole programs.
fn groups(report: &Report) -> Vec<Group> {
    let programs = report.beside_bare.iter().filter(|row| !row.name.contains("thread(s)"));
    let group = |row: &Row| Group {
        name: row.name.clone(),
        bars: row.to_bare.iter().map(|to_bare| (to_bare.way.to_owned(), to_bare.median)).collect(),
    };
    programs.map(group).collect()
}

/// Built with optimisation, which this program is not.
fn decisions() -> Result<Decisions> {
    let mut bench = tree::cargo();
    let said =
        tree::output_of(bench.args(["bench", "--package", "palisade-gate", "--bench", "decide"]))?;
    let of = |name: &str| -> Result<f64> {
        let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let nanoseconds: f64 =
            line.with_context(|| format!("the bench said no `{name}`"))?.parse()?;
        Ok(nanoseconds / 1e3)
    };
    Ok(Decisions {
        map: of("map")?,
        from_the_cache: of("cached")?,
        without_the_cache: of("without")?,
    })
}

fn print(report: &Report) {
    println!(
        "\nas {}, {} rounds each, in turns; × bare: median (calls: fastest; programs: median without the start)",
        report.by, report.rounds
    );
    let ways = report.beside_bare.first().map_or(&[][..], |row| &row.to_bare);
    print!("{:30}", "");
    for to_bare in ways {
        print!(" {:>14}", to_bare.way);
    }
    println!(" {:>10} {:>7}", "bare, µs", "goal");
    for row in &report.beside_bare {
        print!("{:30}", row.name);
        for to_bare in &row.to_bare {
            let other = to_bare.without_start.unwrap_or(to_bare.fastest);
            print!(" {:>14}", format!("{:.2} ({other:.2})", to_bare.median));
        }
        // Whole programs have no listener of their own.
        let missing = ways.len().saturating_sub(row.to_bare.len());
        print!("{:width$} {:>10.2}", "", row.bare_us, width = missing * 15);
        println!(
            " {}",
            row.reached().map_or_else(String::new, |reached| verdict(reached, row.goal))
        );
    }
    println!("{:36} {:>10} {:>10} {:>10}", "a question, µs", "median", "p95", "client");
    for question in &report.questions {
        println!(
            "{:36} {:>10.0} {:>10.0} {:>10.0} {:>23}   {}",
            question.name,
            question.median_us,
            question.p95_us,
            question.client_us,
            "",
            verdict(question.median_us, GOAL_OF_A_QUESTION)
        );
    }
}

fn print_decisions(decisions: &Decisions) {
    println!("\n{:36} {:>10} {:>10}", "a decision, 10,000 rules", "µs", "× map");
    for (name, taken, goal) in [
        ("a look into a map", decisions.map, None),
        ("from the cache", decisions.from_the_cache, Some(GOAL_FROM_THE_CACHE)),
        ("without the cache", decisions.without_the_cache, Some(GOAL_WITHOUT_THE_CACHE)),
    ] {
        let goal = goal.map_or(String::new(), |goal| verdict(taken, goal));
        println!("{name:36} {taken:>10.3} {:>10.1} {:>34}   {goal}", taken / decisions.map, "");
    }
}

fn verdict(reached: f64, goal: f64) -> String {
    format!("{goal:>7} {}", if reached <= goal { "reached" } else { "MISSED" })
}
