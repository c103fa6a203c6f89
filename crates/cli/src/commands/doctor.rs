//! `sandbox doctor`: what this host can do, tried and not guessed.

use clap::Args;
use std::process::ExitCode;

#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}
