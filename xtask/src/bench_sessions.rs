//! `cargo xtask bench sessions`: what sessions and transactions cost, beside doing the same bare, on a plain overlay, or with
//! `rsync`, in turns.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::bench_trees::{self, Work};
use crate::measure::{BenchContext, Contender, Times, find_program, ratio, take_turns};
use crate::{bench, tree};

const TRUE: &str = "/bin/true";
/// Files of the project whose size must not matter.
const MANY_FILES: usize = 100_000;

#[derive(Serialize)]
struct Row {
    by: &'static str,
    what: String,
    ours_us: f64,
    /// The same without us.
    beside: String,
    beside_us: f64,
    ratio: f64,
    goal: String,
}

pub(crate) fn sessions(sandbox: &Path, json: bool, rounds: usize) -> Result<()> {
    let mut rows = Vec::new();
    bench::as_each_user(|by, surroundings, _| {
        let mut bench = Sessions { by, sandbox, surroundings, rounds, rows: Vec::new() };
        bench.exec()?;
        bench.start_and_changes()?;
        bench.checkpoints()?;
        bench.programs()?;
        if !json {
            bench.rows.iter().for_each(print);
        }
        rows.append(&mut bench.rows);
        Ok(())
    })?;
    if json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    }
    Ok(())
}

struct Sessions<'a> {
    by: &'static str,
    sandbox: &'a Path,
    surroundings: &'a BenchContext<'a>,
    rounds: usize,
    rows: Vec<Row>,
}

impl Sessions<'_> {
    fn words(&self, words: &[&str]) -> Vec<OsString> {
        std::iter::once(self.sandbox.into()).chain(words.iter().map(OsString::from)).collect()
    }

    fn sandbox(&self, words: &[&str]) -> Result<String> {
        tree::output_of(
            self.surroundings
                .command(&self.words(words))?
                .stdin(Stdio::null())
                .stderr(Stdio::null()),
        )
    }

    fn script(&self, script: &str) -> Result<()> {
        bench_trees::run(self.surroundings, &[], script).map(drop)
    }

    fn add(&mut self, what: impl Into<String>, ours: &Times, beside: (&str, &Times), goal: &str) {
        let (beside, other) = beside;
        self.rows.push(Row {
            by: self.by,
            what: what.into(),
            ours_us: ours.median().as_secs_f64() * 1e6,
            beside: beside.to_owned(),
            beside_us: other.median().as_secs_f64() * 1e6,
            ratio: ratio(ours.median(), other.median()),
            goal: goal.to_owned(),
        });
    }

    /// A command in a session that lives, by the program that a person would type.
    fn exec(&mut self) -> Result<()> {
        self.sandbox(&["create", "--name", "bench"])?;
        let contenders = [
            Contender::new("bare", [TRUE]),
            Contender::new("exec", self.words(&["exec", "bench", "--", TRUE])),
        ];
        let times = take_turns(&contenders, self.surroundings, self.rounds * 10);
        let idle = self.idle_memory();
        self.sandbox(&["kill", "bench"])?;
        self.sandbox(&["rm", "bench"])?;
        let times = times?;
        self.add("exec in a session", &times[1], ("bare fork and exec", &times[0]), "at most 2");
        if let Some(kib) = idle? {
            println!(
                "as {}, an idle session holds {kib} KiB (PSS) with all its processes; goal below 3072",
                self.by
            );
        }
        Ok(())
    }

    /// Of the supervisor and everything below it. Only where we may look.
    fn idle_memory(&self) -> Result<Option<u64>> {
        let told = self.sandbox(&["inspect", "--json", "bench"])?;
        let told: serde_json::Value = serde_json::from_str(&told)?;
        let Some(supervisor) = told["supervisor"].as_u64() else { return Ok(None) };
        let script = format!(
            "pids={supervisor}; new=$pids; while [ -n \"$new\" ]; do new=$(ps -o pid= --ppid $(echo $new | tr ' ' ,) || true); \
             pids=\"$pids $new\"; done; for pid in $pids; do sed -n 's/^Pss: *//p' /proc/$pid/smaps_rollup; done 2>/dev/null | \
             awk '{{ sum += $1 }} END {{ print sum }}'"
        );
        // As who started us: a supervisor keeps its memory to itself.
        let output = std::process::Command::new("sh").args(["-c", &script]).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().parse().ok())
    }

    /// A start with a transaction in a small and in a large project; then what was changed there, shown and applied.
    fn start_and_changes(&mut self) -> Result<()> {
        let start =
            |words: &[&str]| self.words(&[&["run", "--quiet"], words, &["--", TRUE]].concat());
        let contenders = || {
            [Contender::new("plain", start(&[])), Contender::new("ours", start(&["--transaction"]))]
        };
        let times = take_turns(&contenders(), self.surroundings, self.rounds * 10)?;
        self.script(&format!(
            "mkdir many && cd many && i=0; while [ $i -lt 500 ]; do mkdir d$i; i=$((i+1)); done; \
             seq {MANY_FILES} | awk '{{ print \"file \" $1 > (\"d\" ($1 % 500) \"/f\" $1); close(\"d\" ($1 % 500) \"/f\" $1) }}'"
        ))?;
        let large = take_turns(&contenders(), self.surroundings, self.rounds * 10)?;
        self.add(
            "start with a transaction",
            &times[1],
            ("start", &times[0]),
            "less than 1 ms more",
        );
        self.add(
            format!("the same, {MANY_FILES} files"),
            &large[1],
            ("start", &large[0]),
            "less than 1 ms more",
        );

        let change = "cd many && for d in 0 1 2 3 4 5 6 7 8 9; do for f in d$d/*; do echo changed >> $f; done; done; true";
        let (mut diffs, mut applies, mut copies) = (Vec::new(), Vec::new(), Vec::new());
        let rsync = find_program("rsync");
        for _ in 0..self.rounds {
            self.sandbox(&["run", "--quiet", "--transaction", "--", "sh", "-c", change])?;
            let begin = Instant::now();
            let names = self.sandbox(&["diff"])?;
            diffs.push(begin.elapsed());
            anyhow::ensure!(names.lines().filter(|line| *line == "+changed").count() >= 1000);
            if rsync.is_some() {
                self.script("rm -rf copy && mkdir copy && for d in 0 1 2 3 4 5 6 7 8 9; do cp -r many/d$d copy; done")?;
                copies.push(bench_trees::run(self.surroundings, &[], "rsync -a many/d? copied/")?);
                self.script("rm -rf copied")?;
            }
            let begin = Instant::now();
            self.sandbox(&["apply"])?;
            applies.push(begin.elapsed());
        }
        let (diffs, applies) = (Times::new(diffs)?, Times::new(applies)?);
        let nothing = Times::new(vec![std::time::Duration::from_millis(300)])?;
        self.add("diff of 2,000 changes", &diffs, ("the goal", &nothing), "at most 1");
        if !copies.is_empty() {
            let copies = Times::new(copies)?;
            self.add("durable apply of 2,000 files", &applies, ("rsync -a", &copies), "at most 1");
        }

        let tree = "mkdir new && cd new && i=0; while [ $i -lt 200 ]; do mkdir d$i; i=$((i+1)); done; \
                    seq 20000 | awk '{ print $1 > (\"d\" ($1 % 200) \"/f\" $1); close(\"d\" ($1 % 200) \"/f\" $1) }'";
        let (mut applies, mut copies) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            self.sandbox(&["run", "--quiet", "--transaction", "--", "sh", "-c", tree])?;
            let begin = Instant::now();
            self.sandbox(&["apply"])?;
            applies.push(begin.elapsed());
            if rsync.is_some() {
                copies.push(bench_trees::run(self.surroundings, &[], "rsync -a new copied")?);
            }
            self.script("rm -rf new copied")?;
        }
        if !copies.is_empty() {
            let (applies, copies) = (Times::new(applies)?, Times::new(copies)?);
            self.add(
                "apply of a new tree, 20,000 files",
                &applies,
                ("rsync -a", &copies),
                "at most 0.1",
            );
        }
        self.script("rm -rf many copy")
    }

    /// A checkpoint and a rollback in a session that lives, beside copying the same files.
    fn checkpoints(&mut self) -> Result<()> {
        for count in [100, 1000] {
            self.script(&format!(
                "mkdir -p same && cd same && for i in $(seq {count}); do echo \"content $i\" > f$i; done"
            ))?;
            self.sandbox(&["create", "--quiet", "--name", "bench", "--transaction"])?;
            let change = format!(
                "mkdir made && cd made && for i in $(seq {count}); do echo \"content $i\" > f$i; done"
            );
            self.sandbox(&["exec", "bench", "--", "sh", "-c", &change])?;
            let (mut kept, mut copied, mut back) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..self.rounds {
                let begin = Instant::now();
                let number = self.sandbox(&["checkpoint", "bench"])?;
                kept.push(begin.elapsed());
                copied.push(bench_trees::run(self.surroundings, &[], "cp -a same copied")?);
                self.script("rm -rf copied")?;
                self.sandbox(&["exec", "bench", "--", "rm", "-r", "made"])?;
                let begin = Instant::now();
                self.sandbox(&["rollback", "bench", number.trim()])?;
                back.push(begin.elapsed());
            }
            self.sandbox(&["rm", "--force", "bench"])?;
            self.script("rm -rf same")?;
            let (kept, copied) = (Times::new(kept)?, Times::new(copied)?);
            let beside = ("cp -a of the same files", &copied);
            self.add(format!("checkpoint of {count} changes"), &kept, beside, "below 20 ms");
            self.add(format!("rollback of {count} changes"), &Times::new(back)?, beside, "");
        }
        Ok(())
    }

    /// Whole programs in a transaction beside a plain overlay, both without their start.
    fn programs(&mut self) -> Result<()> {
        let overlay = "layer=$PWD/$(mktemp -d layer.XXXXXX) && mkdir $layer/u $layer/w && mount -t overlay -o \
             userxattr,lowerdir=$PWD,upperdir=$layer/u,workdir=$layer/w none $PWD && cd $PWD && exec \"$@\"";
        let mut plain: Vec<OsString> = vec![find_program("unshare").context("unshare")?.into()];
        plain.extend(
            [
                "--user",
                "--map-current-user",
                "--keep-caps",
                "--mount",
                "sh",
                "-ec",
                overlay,
                "overlay",
            ]
            .map(OsString::from),
        );
        let ours = self.words(&["run", "--quiet", "--transaction", "--"]);
        let ways = [("bare", Vec::new()), ("overlay", plain), ("ours", ours)];
        self.script(
            "mkdir tree && cd tree && i=0; while [ $i -lt 200 ]; do mkdir d$i; j=0; while [ $j -lt 50 ]; do \
             echo \"file $i $j\" > d$i/f$j; j=$((j+1)); done; i=$((i+1)); done; tar -cf ../tree.tar . && git init -q . && \
             git config core.checkStat minimal && git config gc.auto 0 && git config maintenance.auto false && git add . && git -c user.name=b -c user.email=b@localhost commit -qm all",
        )?;
        let forget = "if [ -e out ]; then away out; fi";
        let works = [
            Work { name: "git status", undo: forget, script: "git -C tree status --short" },
            Work { name: "find", undo: forget, script: "find tree -size +1k" },
            Work {
                name: "untar, 10,000 files",
                undo: forget,
                script: "mkdir out && tar -xf tree.tar -C out",
            },
            Work { name: "cp -r, 10,000 files", undo: forget, script: "cp -r tree out" },
            Work { name: "rm -r, 10,000 files", undo: forget, script: "rm -r tree" },
        ];
        let nothing = Work { name: "nothing", undo: forget, script: ":" };
        let starts =
            bench_trees::compare_one(self.surroundings, &nothing, &ways, self.rounds)?.times;
        for work in works {
            // Bare, the last one would really remove it.
            let ways = if work.name.starts_with("rm") { &ways[1..] } else { &ways[..] };
            let times =
                bench_trees::compare_one(self.surroundings, &work, ways, self.rounds)?.times;
            let net = |wanted: &str| {
                let of = |all: &[(&'static str, Times)]| {
                    all.iter().find(|(name, _)| *name == wanted).map(|(_, times)| times.median())
                };
                Times::new(vec![of(&times)?.saturating_sub(of(&starts)?)]).ok()
            };
            let (overlay, ours) =
                net("overlay").zip(net("ours")).context("nothing was measured")?;
            self.add(
                format!("{}, without the start", work.name),
                &ours,
                ("plain overlay", &overlay),
                "at most 1.05",
            );
            if let Some(bare) = net("bare") {
                self.add(format!("{}, without the start", work.name), &ours, ("bare", &bare), "");
            }
        }
        self.script(
            "chmod -R u+rwx layer.* 2>/dev/null || true; rm -rf written layer.* out tree tree.tar",
        )
    }
}

fn print(row: &Row) {
    let Row { by, what, ours_us, beside, beside_us, ratio, goal } = row;
    println!(
        "as {by}, {what}: {ours_us:.0} us, {beside} {beside_us:.0} us, ratio {ratio:.2}  {goal}"
    );
}
