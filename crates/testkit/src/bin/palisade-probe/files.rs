//! Attempts at files, links and mounts.
//! Must never look for another way once one is refused.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::time::Instant;

use crate::{Failure, Probe, argument, number};

pub(crate) const PROBES: &[Probe] = &[
    ("read", "PATH", read),
    ("write", "PATH", write),
    ("open-loop", "PATH COUNT", open_loop),
];

fn read(arguments: &[String]) -> Result<String, Failure> {
    let mut content = String::new();
    File::open(argument(arguments, 0, "PATH")?)?.read_to_string(&mut content)?;
    Ok(content)
}

fn write(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    file.write_all(b"written by the probe\n")?;
    Ok(path.to_owned())
}

/// Opens one file over and over and prints the nanoseconds one opening took.
fn open_loop(arguments: &[String]) -> Result<String, Failure> {
    let path = argument(arguments, 0, "PATH")?;
    let count: u32 = number(arguments, 1, "COUNT")?;
    fs::metadata(path)?;
    let start = Instant::now();
    for _ in 0..count {
        File::open(path)?;
    }
    Ok((start.elapsed().as_nanos() / u128::from(count.max(1))).to_string())
}
