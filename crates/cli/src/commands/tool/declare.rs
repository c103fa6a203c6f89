//! `sandbox tool declare` and `remove`: declarations of the user's own.

use crate::output;
use anyhow::Context as _;
use clap::Args;
use palisade_session::Caller;
use palisade_session::{config, tools};
use serde_json::json;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// As of any document of ours.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Args, Debug)]
pub(crate) struct Declare {
    /// Replace an older declaration of the same name
    #[arg(long)]
    replace: bool,
    /// Print where it is kept as JSON
    #[arg(long)]
    json: bool,
    /// The declaration; - reads it from standard input, in JSON or YAML
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Declare {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        let (text, is_json) = if self.file == Path::new("-") {
            let mut text = String::new();
            let read = io::stdin().lock().take(MAX_BYTES + 1).read_to_string(&mut text);
            read.context("cannot read standard input")?;
            anyhow::ensure!(text.len() as u64 <= MAX_BYTES, "a declaration has at most 1 MiB");
            let is_json = text.trim_start().starts_with('{');
            (text, is_json)
        } else {
            let file = config::read(&self.file)?;
            let is_json = self.file.extension().is_some_and(|ending| ending == "json");
            (file.text, is_json)
        };
        let path = tools::declare(&Caller::here()?, &text, is_json, self.replace)?;
        match self.json {
            true => output::print_json(&json!({ "file": path }))?,
            false => output::note(&format!("kept as {}", path.display())),
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Args, Debug)]
pub(crate) struct Remove {
    /// The tool
    name: String,
}

impl Remove {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        for path in tools::remove(&Caller::here()?, &self.name)? {
            output::note(&format!("removed {}", path.display()));
        }
        Ok(ExitCode::SUCCESS)
    }
}
