//! `sandbox generate`: manual pages from the one definition of every option.

use anyhow::Context;
use clap::{Command, Subcommand};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// A page for `sandbox` and one for each of its commands
    Man { directory: PathBuf },
}

impl Generate {
    pub(crate) fn execute(self, root: Command) -> anyhow::Result<ExitCode> {
        match self {
            Self::Man { directory } => manual(root, &directory)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn manual(root: Command, directory: &Path) -> anyhow::Result<()> {
    make(directory)?;
    clap_mangen::generate_to(root, directory)
        .with_context(|| format!("cannot write manual pages to {}", directory.display()))
}

fn make(directory: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))
}
