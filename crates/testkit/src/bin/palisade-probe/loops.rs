//! Calls by the thousand, timed, for `cargo xtask bench`. What starting the program costs is no part of it.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::thread;
use std::time::Instant;

use crate::{Failure, Probe, argument, number};

pub(crate) const PROBES: &[Probe] = &[
    ("open-loop", "PATH COUNT THREADS", open_loop),
    ("stat-loop", "PATH COUNT THREADS", stat_loop),
    ("open-each", "DIRECTORY COUNT", open_each),
    ("stat-each", "DIRECTORY COUNT", stat_each),
];

type Call = fn(&Path) -> io::Result<()>;

fn open(path: &Path) -> io::Result<()> {
    File::open(path).map(drop)
}

fn stat(path: &Path) -> io::Result<()> {
    fs::metadata(path).map(drop)
}

fn open_loop(arguments: &[String]) -> Result<String, Failure> {
    repeat(arguments, open)
}

fn stat_loop(arguments: &[String]) -> Result<String, Failure> {
    repeat(arguments, stat)
}

fn open_each(arguments: &[String]) -> Result<String, Failure> {
    one_after_another(arguments, open)
}

fn stat_each(arguments: &[String]) -> Result<String, Failure> {
    one_after_another(arguments, stat)
}

/// Nanoseconds a call, where the threads share COUNT of them.
fn repeat(arguments: &[String], call: Call) -> Result<String, Failure> {
    let path = Path::new(argument(arguments, 0, "PATH")?);
    let count: u32 = number(arguments, 1, "COUNT")?;
    let threads: u32 = number(arguments, 2, "THREADS")?;
    let each = count / threads.max(1);
    let calls = || (0..each).try_for_each(|_| call(path));
    call(path)?;
    let start = Instant::now();
    // The first thread is this one: a process with a second thread pays for it at every call.
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(calls)).collect();
        calls()?;
        others.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
        })
    })?;
    Ok((start.elapsed().as_nanos() / u128::from((each * threads).max(1))).to_string())
}

/// Nanoseconds of each call on `DIRECTORY/0`, `DIRECTORY/1` and so on.
fn one_after_another(arguments: &[String], call: Call) -> Result<String, Failure> {
    let directory = Path::new(argument(arguments, 0, "DIRECTORY")?);
    let count: u32 = number(arguments, 1, "COUNT")?;
    let mut times = Vec::new();
    for name in 0..count {
        let path = directory.join(name.to_string());
        let start = Instant::now();
        call(&path)?;
        times.push(start.elapsed().as_nanos().to_string());
    }
    Ok(times.join(" "))
}
