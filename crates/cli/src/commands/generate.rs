//! `sandbox generate`: manual pages from the one definition of every option, and the description of the service.

use anyhow::Context;
use clap::{Command, Subcommand};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// A page for `sandbox` and one for each of its commands
    Man { directory: PathBuf },
    /// The description of the service (OpenAPI)
    Openapi { file: PathBuf },
}

impl Generate {
    pub(crate) fn execute(self, root: Command) -> anyhow::Result<ExitCode> {
        match self {
            Self::Man { directory } => manual(root, &directory)?,
            Self::Openapi { file } => fs::write(&file, palisade_service::document())
                .with_context(|| format!("cannot write {}", file.display()))?,
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
