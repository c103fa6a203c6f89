//! `cargo xtask bench gate`: what it costs that every call which names a path passes the broker, what a
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
use crate::measure::{BenchContext, Times, ratio};
use crate::packages::User;
use crate::{programs, setup, stage, tree};

/// Calls on what may be seen, beside bare.
const GOAL_OF_A_CALL: f64 = 8.0;
const GOAL_OF_CARGO_BUILD: f64 = 1.15;
/// In µs.
const GOAL_OF_A_QUESTION: f64 = 1000.0;
const GOAL_FROM_THE_CACHE: f64 = 1.0;
const GOAL_WITHOUT_THE_CACHE: f64 = 20.0;

/// Calls of one micro test, in all its threads.
const CALLS: &str = "20000";

/// 20,000 files in a repository, and a crate with dependencies that lie beside it.
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
    static_to_bare: f64,
    /// A listener that does nothing but let the kernel go on: less no notified call can cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    notify_alone_to_bare: Option<f64>,
    gate_to_bare: f64,
    /// The fastest run against the fastest: what other work on the machine costs is left out of it.
    gate_to_bare_fastest: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    goal: Option<f64>,
}

impl Row {
    fn new(name: String, [bare, fixed, gate]: &[Times; 3], goal: Option<f64>) -> Self {
        Self {
            name,
            bare_us: bare.median().as_secs_f64() * 1e6,
            static_to_bare: ratio(fixed.median(), bare.median()),
            notify_alone_to_bare: None,
            gate_to_bare: ratio(gate.median(), bare.median()),
            gate_to_bare_fastest: ratio(gate.percentile(0), bare.percentile(0)),
            goal,
        }
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
pub(crate) fn gate(sandbox: &Path, place: &Path, json: bool, rounds: usize) -> Result<()> {
    setup::install_for(&[User::Tests, User::HostTests, User::Benches])?;
    let probe = programs::build_binary("palisade-probe", &["--release"])?;
    let toolchain = stage::reachable_toolchain(place)?;
    let decisions = decisions()?;
    let mut reports = Vec::new();
    bench::as_each_user(|by, surroundings, home| {
        let probe = stage::link_or_copy_into(&probe, surroundings.directory)?;
        let ways = Ways::new(sandbox, &toolchain);
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
    Ok(())
}

/// What stands before a command: nothing, a sandbox that asks nobody, and one with the gate.
struct Ways([(&'static str, Vec<OsString>); 3]);

impl Ways {
    fn new(sandbox: &Path, toolchain: &Path) -> Self {
        let with = |mode: &str| {
            let options = ["run", "--quiet", "--mode", mode, "--ro"].map(OsString::from);
            let rest = [toolchain.into(), "--".into()];
            std::iter::once(sandbox.into()).chain(options).chain(rest).collect()
        };
        Self([("bare", Vec::new()), ("static", with("static")), ("gate", with("dynamic"))])
    }
}

fn calls(
    ways: &Ways,
    probe: &Path,
    surroundings: &BenchContext<'_>,
    rounds: usize,
) -> Result<Vec<Row>> {
    let file = surroundings.directory.join("file");
    fs::write(&file, "content").with_context(|| file.display().to_string())?;
    let mut rows = Vec::new();
    for (call, probe_name) in [("open+close", "open-loop"), ("stat", "stat-loop")] {
        for (kind, path) in [("absolute", "/usr/bin/env"), ("relative", "file")] {
            for threads in ["1", "4"] {
                let looping = [probe_name, path, CALLS, threads].map(OsString::from);
                let run = |before: &[OsString]| {
                    let words: Vec<_> = before.iter().chain(&looping).cloned().collect();
                    one_loop(&words, surroundings)
                };
                let mut times = [const { Vec::new() }; 3];
                let mut notify_alone = Vec::new();
                for _ in 0..rounds {
                    for ((_, wrapper), times) in ways.0.iter().zip(&mut times) {
                        times.push(run(&[wrapper.as_slice(), &[probe.into()]].concat())?);
                    }
                    notify_alone.push(run(&[probe.into(), "notified".into()])?);
                }
                let name = format!("{call}, {kind}, {threads} thread(s)");
                let times = sorted(times)?;
                let notify_alone = Times::new(notify_alone)?;
                let notify_alone_to_bare = Some(ratio(notify_alone.median(), times[0].median()));
                let row = Row::new(name, &times, Some(GOAL_OF_A_CALL));
                rows.push(Row { notify_alone_to_bare, ..row });
            }
        }
    }
    Ok(rows)
}

fn works(
    ways: &Ways,
    toolchain: &Path,
    surroundings: &BenchContext<'_>,
    rounds: usize,
) -> Result<Vec<Row>> {
    bench_trees::run(surroundings, &[], PREPARE)?;
    let build = format!(
        "cd crate && PATH={}/bin:$PATH CARGO_HOME=$PWD/cargo cargo build -q --offline",
        toolchain.display()
    );
    let works = [
        (Work { name: "git status, 20,000 files", undo: ":", script: "git -C tree status" }, None),
        (Work { name: "rg, 20,000 files", undo: ":", script: "rg -c needle39949 tree" }, None),
        (Work { name: "python3 imports", undo: ":", script: PYTHON }, None),
        (
            Work { name: "cargo build", undo: "rm -rf crate/target", script: &build },
            Some(GOAL_OF_CARGO_BUILD),
        ),
    ];
    let mut rows = Vec::new();
    for (work, goal) in works {
        let compared = bench_trees::compare_one(surroundings, &work, &ways.0, rounds)?;
        let times: Vec<Times> = compared.times.into_iter().map(|(_, times)| times).collect();
        let times = times.try_into().ok().context("not measured in three ways")?;
        rows.push(Row::new(work.name.to_owned(), &times, goal));
    }
    for name in ["tree", "crate"] {
        bench_trees::remove(&surroundings.directory.join(name))?;
    }
    Ok(rows)
}

fn sorted(times: [Vec<std::time::Duration>; 3]) -> Result<[Times; 3]> {
    let [bare, fixed, gate] = times.map(Times::new);
    Ok([bare?, fixed?, gate?])
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
    println!("\nas {}, {} rounds each, in turns", report.by, report.rounds);
    println!(
        "{:36} {:>10} {:>12} {:>10} {:>10} {:>10}   {:>7}",
        "× bare", "static", "notify alone", "gate", "fastest", "bare, µs", "goal"
    );
    for row in &report.beside_bare {
        println!(
            "{:36} {:>10.2} {:>12} {:>10.2} {:>10.2} {:>10.2}   {}",
            row.name,
            row.static_to_bare,
            row.notify_alone_to_bare.map_or(String::new(), |ratio| format!("{ratio:.2}")),
            row.gate_to_bare,
            row.gate_to_bare_fastest,
            row.bare_us,
            row.goal.map_or(String::new(), |goal| verdict(row.gate_to_bare, goal))
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
