//! `sandbox cache`: what the sandboxes of each project keep in caches of their own.

use super::sessions::shown;
use super::top::size;
use crate::closing::counted;
use crate::output::{self, Paint, Style};
use clap::Subcommand;
use jiff::Timestamp;
use palisade_record::escape;
use palisade_session::Caller;
use palisade_session::caches::{self, CacheEntry, ClearedCaches};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
What a command writes to the caches of build tools (cargo, npm, pip, Go and others) is kept for later sandboxes of the
same project. Programs outside never read it: a package planted there is built in a sandbox only. The host's own caches
are read inside, so a warm cache is warm. `filesystem.caches: host` writes to the host's instead, and `off` gives each run
empty ones.

Examples:
  sandbox cache ls
  sandbox cache clear                   this project's
  sandbox cache clear --all
  sandbox run --caches off -- npm ci    without any")]
pub(crate) enum Cache {
    /// List the caches of all projects, the least recently used first
    Ls {
        /// Also list what belongs to which directory
        #[arg(long, short)]
        verbose: bool,

        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Remove what was written to caches; runs start with the host's again
    Clear {
        /// Of this project, found from a directory in it [default: the working directory]
        #[arg(long, value_name = "PATH", conflicts_with = "all")]
        project: Option<PathBuf>,

        /// Of all projects
        #[arg(long)]
        all: bool,

        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
}

impl Cache {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let caller = Caller::here()?;
        match self {
            Self::Ls { verbose, json } => {
                let entries = caches::list(&caller.places)?;
                if json {
                    output::print_json(&json!({ "caches": entries }))?;
                } else {
                    output::print(&table(&entries, verbose, Paint::for_stdout()))?;
                }
                Ok(ExitCode::SUCCESS)
            }
            Self::Clear { project, all, json } => {
                let project = match all {
                    true => None,
                    false => Some(caches::project_of(&caller, project.as_deref())?),
                };
                let done = caches::clear(&caller.places, project.as_deref())?;
                if json {
                    output::print_json(&done)?;
                } else {
                    tell(&done);
                }
                Ok(if done.kept.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
            }
        }
    }
}

fn name(entry: &CacheEntry) -> String {
    match &entry.project {
        Some(project) => escape::text(&project.to_string_lossy()).into_owned(),
        None => "(a path that is too long)".to_owned(),
    }
}

fn tell(done: &ClearedCaches) {
    for entry in &done.kept {
        output::note(&format!("{}: a sandbox uses them; end it first", name(entry)));
    }
    let bytes = done.cleared.iter().map(|entry| entry.bytes).sum();
    let projects = counted(done.cleared.len() as u64, "project");
    output::note(&format!("cleared the caches of {projects}, {}", size(bytes)));
}

fn table(entries: &[CacheEntry], verbose: bool, paint: Paint) -> String {
    let now = Timestamp::now();
    let mut text = format!("{:>9}  {:>9}  {:<6}  {}\n", "SIZE", "LAST USED", "IN USE", "PROJECT");
    for entry in entries {
        let age = now.duration_since(entry.last_used).as_millis();
        let age = shown(u64::try_from(age).unwrap_or_default());
        let is_used = if entry.is_in_use { "yes" } else { "no" };
        let style = if entry.is_in_use { Style::Green } else { Style::Plain };
        let is_used = paint.with(style, &format!("{is_used:<6}"));
        let line = format!("{:>9}  {age:>9}  {is_used}  {}\n", size(entry.bytes), name(entry));
        text.push_str(&line);
        let parts = entry.parts.iter().filter(|_| verbose);
        for (directory, bytes) in parts {
            let directory = escape::text(&directory.to_string_lossy()).into_owned();
            text.push_str(&format!("{:>9}  {:>9}  {:<6}    {directory}\n", size(*bytes), "", ""));
        }
    }
    text
}
