//! What each attack showed, one JSON object a line, for `cargo xtask attacks` and `conformance`.
//! A line is written however the attack came out: one that is missing would look like one nobody
//! thought of.

use std::fs::OpenOptions;
use std::io::{self, Write};

use serde::Serialize;

/// How the attack went on the bare host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Bare {
    NotTried,
    Works,
    Fails,
    /// There is no sane way to let it work here; [`Line::no_bare_run`] says why.
    Impossible,
}

/// How it went inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Inside {
    NotTried,
    /// Tried, and not judged to the end.
    Unclear,
    Held,
    LetThrough,
}

/// How it went with its layers off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Off {
    NotTried,
    /// With all of them off it works, and with none of them left on by any smaller set.
    Works,
    StillHeld,
    SmallerSetSuffices,
    /// No layer decides; [`Line::by_design`] says what does.
    NoLayer,
}

/// One attack, as declared and as it came out. Written when dropped, so also by a failing test.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line {
    pub(crate) test: String,
    pub(crate) id: &'static str,
    pub(crate) name: String,
    pub(crate) clauses: &'static [&'static str],
    /// The smallest set of layers whose absence lets it through, where root starts the sandbox and
    /// the kernel has them all; none if root does not try it.
    pub(crate) as_root: Option<Vec<&'static str>>,
    /// The same where an ordinary user does.
    pub(crate) as_user: Option<Vec<&'static str>>,
    /// Why one of the two does not try it.
    pub(crate) one_caller: Option<&'static str>,
    pub(crate) by_design: Option<&'static str>,
    pub(crate) no_bare_run: Option<&'static str>,
    /// What a host must have for it to be tried.
    pub(crate) needs: Option<&'static str>,
    pub(crate) bare: Bare,
    pub(crate) inside: Inside,
    pub(crate) off: Off,
}

impl Line {
    fn write(&self) -> io::Result<()> {
        let Some(path) = std::env::var_os("PALISADE_PROOFS") else { return Ok(()) };
        let mut text = serde_json::to_string(self)?;
        text.push('\n');
        // One write to an O_APPEND file, so that tests running at once do not mix their lines.
        OpenOptions::new().append(true).create(true).open(path)?.write_all(text.as_bytes())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Err(error) = self.write() {
            eprintln!("cannot record attack {}: {error}", self.id);
        }
    }
}

/// The runner names the test; without it the test's thread does.
pub(crate) fn test_name() -> String {
    std::env::var("PALISADE_TEST_NAME")
        .ok()
        .or_else(|| std::thread::current().name().map(str::to_owned))
        .unwrap_or_default()
}
