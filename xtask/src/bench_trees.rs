//! Whole programs in turns, inside and bare. For `cargo xtask bench files`: what writing many files costs,
//! beside bare and beside bubblewrap with the same view.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::measure::{BenchContext, Times};

/// A program that writes a tree, and what has to be undone before the next time. What was written is moved away and not
/// removed: for a minute ext4 gives no inode of a removed file out again, and who creates files then searches past
/// all of them (`recently_deleted` in its ialloc.c), which was more than half of what a bare untar took.
pub(crate) struct Work<'a> {
    pub(crate) name: &'static str,
    pub(crate) undo: &'static str,
    pub(crate) script: &'a str,
}

/// For what was written. In a function of the shell, so that `undo` can name the directory.
const MOVE_AWAY: &str =
    "away() { mkdir -p written && mv \"$1\" \"$(mktemp -d written/XXXXXX)\"; }; ";
const WRITTEN: &str = "written";

const WORKS: [Work<'static>; 6] = [
    // What the start takes, which the other rows contain.
    Work { name: "nothing", undo: ":", script: ":" },
    Work { name: "untar", undo: "away out; mkdir out", script: "tar -xf tree.tar -C out" },
    Work {
        name: "git checkout",
        undo: "away repo; cp -a fresh repo",
        script: "git -C repo checkout -q two",
    },
    // As package managers do it: written beside, then renamed into place.
    Work {
        name: "install packages",
        undo: "away node_modules; mkdir node_modules",
        script: "cp -r packages node_modules/.staging && \
                 mv node_modules/.staging/* node_modules && mkdir node_modules/.bin && for package in node_modules/p*; do \
                 ln -s ../\"${package##*/}\"/f1.js node_modules/.bin/\"${package##*/}\"; done",
    },
    // Nothing but small writes, one process each: the worst of what a script does.
    Work {
        name: "shell redirections",
        undo: "away lines; mkdir lines",
        script: "i=0; while [ $i -lt 3000 ]; do echo $i > lines/$i; echo $i > /dev/null; \
                 i=$((i+1)); done",
    },
    Work {
        name: "redirections of four shells",
        undo: "away lines; mkdir lines",
        script: "for shell in 0 1 2 3; do mkdir lines/$shell; (i=0; while [ $i -lt 1500 ]; do \
                 echo $i > lines/$shell/$i; i=$((i+1)); done) & done; wait",
    },
];

/// Where those write, but git.
pub(crate) const BUILD_DIRS: [&str; 3] = ["out", "node_modules", "lines"];

/// 4,000 files in 200 directories, as an archive, as two branches and as packages.
const PREPARE: &str = r#"
set -e
mkdir packages
i=0
while [ $i -lt 200 ]; do
    mkdir -p packages/p$i/lib
    j=0
    while [ $j -lt 10 ]; do
        echo "module.exports = '$i.$j'; // some content for a small file" > packages/p$i/f$j.js
        echo "exports.x = $i * $j; // another small file of a package" > packages/p$i/lib/g$j.js
        j=$((j+1))
    done
    i=$((i+1))
done
tar -cf tree.tar packages
git init -q repo
cd repo
git config user.name bench
git config user.email bench@localhost
git config gc.auto 0
git checkout -q -b one
echo one > which
git add which
git commit -q -m one
git checkout -q -b two
cp -r ../packages .
git add .
git commit -q -m two
git checkout -q one
git repack -a -d -q
cd ..
cp -a repo fresh
mkdir out node_modules lines
"#;

/// One work, done by each contender in turns.
pub(crate) struct Compared {
    pub(crate) name: &'static str,
    /// By contender: bare, then the others.
    pub(crate) times: Vec<(&'static str, Times)>,
}

/// `others` wrap a command in a sandbox.
pub(crate) fn compare(
    surroundings: &BenchContext<'_>,
    others: &[(&'static str, Vec<OsString>)],
    rounds: usize,
) -> Result<Vec<Compared>> {
    run(surroundings, &[], PREPARE)?;
    let bare = ("bare", Vec::new());
    let contenders: Vec<_> = std::iter::once(bare).chain(others.iter().cloned()).collect();
    let mut compared = Vec::new();
    for work in WORKS {
        compared.push(compare_one(surroundings, &work, &contenders, rounds)?);
    }
    let left = surroundings.directory;
    for name in BUILD_DIRS.into_iter().chain(["packages", "repo", "fresh", WRITTEN]) {
        remove(&left.join(name))?;
    }
    Ok(compared)
}

/// Each contender is a name and what stands before the command.
pub(crate) fn compare_one(
    surroundings: &BenchContext<'_>,
    work: &Work<'_>,
    contenders: &[(&'static str, Vec<OsString>)],
    rounds: usize,
) -> Result<Compared> {
    let mut times = vec![Vec::new(); contenders.len()];
    for round in 0..=rounds {
        for ((_, wrapper), times) in contenders.iter().zip(&mut times) {
            run(surroundings, &[], &format!("{MOVE_AWAY}{}", work.undo))?;
            let time = run(surroundings, wrapper, work.script)?;
            // The first round warms the caches.
            if round > 0 {
                times.push(time);
            }
        }
    }
    let named = contenders.iter().map(|(name, _)| *name);
    let times = times.into_iter().map(Times::new).collect::<Result<Vec<_>>>()?;
    Ok(Compared { name: work.name, times: named.zip(times).collect() })
}

pub(crate) fn run(
    surroundings: &BenchContext<'_>,
    wrapper: &[OsString],
    script: &str,
) -> Result<Duration> {
    let words = wrapper.iter().cloned().chain(["/bin/sh", "-ec", script].map(OsString::from));
    let mut command = surroundings.command(&words.collect::<Vec<_>>())?;
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    let time = start.elapsed();
    anyhow::ensure!(status.success(), "{command:?} ended with {status}");
    Ok(time)
}

pub(crate) fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| directory.display().to_string())
        }
        _ => Ok(()),
    }
}
