//! Proofs that a wall holds, one JSON object a line, for `cargo xtask conformance`.
//! A line is written only after the attack came out as it must all three ways.

use std::fs::OpenOptions;
use std::io::{self, Write};

use serde::Serialize;

/// What one attack has shown.
#[derive(Debug)]
pub(crate) struct Proof {
    pub(crate) id: &'static str,
    pub(crate) clauses: &'static [&'static str],
    pub(crate) layers: &'static [&'static str],
}

#[derive(Serialize)]
struct Line<'a> {
    test: String,
    id: &'a str,
    clauses: &'a [&'a str],
    layers: &'a [&'a str],
    bare: &'static str,
    inside: &'static str,
    off: &'static str,
}

/// Appends the proof to the file named by `PALISADE_PROOFS`, if any.
pub(crate) fn record(proof: &Proof) -> io::Result<()> {
    let Some(path) = std::env::var_os("PALISADE_PROOFS") else { return Ok(()) };
    let line = Line {
        test: test_name(),
        id: proof.id,
        clauses: proof.clauses,
        layers: proof.layers,
        bare: "succeeded",
        inside: "failed",
        off: "succeeded",
    };
    let mut text = serde_json::to_string(&line)?;
    text.push('\n');
    // One write to an O_APPEND file, so that tests running at once do not mix their lines.
    OpenOptions::new().append(true).create(true).open(path)?.write_all(text.as_bytes())
}

/// The runner names the test; without it the test's thread does.
fn test_name() -> String {
    std::env::var("PALISADE_TEST_NAME")
        .ok()
        .or_else(|| std::thread::current().name().map(str::to_owned))
        .unwrap_or_default()
}
