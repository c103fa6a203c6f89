//! `cargo xtask bench commands`: a further command in a running sandbox beside a bare fork and exec of the same program,
//! in turns. The goal is at most twice as long.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::{bench, programs, stage, tree};

/// Modes that differ in what a start has to ask the broker about.
const MODES: [(&str, &[&str]); 2] = [("dynamic", &[]), ("static", &["--static"])];

#[derive(Serialize)]
struct Row {
    by: &'static str,
    mode: &'static str,
    inside_us: f64,
    bare_us: f64,
    to_bare: f64,
}

pub(crate) fn commands(sandbox: &Path, place: &Path, json: bool, rounds: usize) -> Result<()> {
    let client = programs::build_binary("palisade-client", &["--release"])?;
    let client = stage::link_or_copy_into(&client, place)?;
    let mut rows = Vec::new();
    bench::as_each_user(|by, surroundings, _| {
        for (mode, flags) in MODES {
            let mut words: Vec<OsString> =
                vec![client.clone().into(), sandbox.into(), "bench".into()];
            words.push(rounds.to_string().into());
            words.push("--quiet".into());
            words.extend(flags.iter().map(OsString::from));
            words.extend(["--", "/bin/true"].map(OsString::from));
            let said = tree::output_of(surroundings.command(&words)?.stdin(Stdio::null()))?;
            let (inside, bare) =
                said.trim().split_once(' ').context("the client did not say how long")?;
            let (inside_us, bare_us): (f64, f64) = (inside.parse()?, bare.parse()?);
            let row = Row { by, mode, inside_us, bare_us, to_bare: inside_us / bare_us };
            if !json {
                println!(
                    "as {}, {:8} further command {:6.0} us, bare {:6.0} us, ratio {:.2}",
                    row.by, row.mode, row.inside_us, row.bare_us, row.to_bare
                );
            }
            rows.push(row);
        }
        Ok(())
    })?;
    if json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    }
    Ok(())
}
