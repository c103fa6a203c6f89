//! `sandbox revoke`: takes back what was granted to a running sandbox.
//!
//! It only asks the session, which does it. What processes call themselves is escaped when it is printed.

use super::running::{self, NamedRun};
use crate::output;
use anyhow::{anyhow, bail};
use clap::Args;
use palisade_ask::client::{Client, ClientError};
use palisade_ask::message::{
    ClientCommand, PROTOCOL, Revoke as Command, Revoked, ServerEvent, StillOpen,
};
use palisade_ask::sessions::{Sessions, socket_path};
use palisade_session::{AppDirs, Caller, runs};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Longer than a keeper may take that looks at a dead network mount.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a session may take to introduce itself.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The name that is recorded with it.
const NAME: &str = "sandbox revoke";
/// So many descriptors of a process are printed.
const MAX_DESCRIPTORS: usize = 8;

const DETAILS: &str = "\
Takes back what was granted to a running sandbox at this path and below it, by an answer or by a rule. \
From then on nothing of it is found in that sandbox, and its next use is a question again, whatever rule \
allowed it. A call that is being granted it fails; open questions stay open.

What a process opened before stays open in that process, and what it mapped stays mapped. Processes that \
have something open there, or are in it, are listed; end them if they must not go on. A private copy \
stays the command's own. What was granted when the sandbox was started (--ro, --rw, \
the policy) stays until it ends. A permanent answer stays saved for later runs; `sandbox policy forget` \
removes it.

Name the sandbox by the beginning or the end of its session's name, as `sandbox top` shows it.

Examples:
  sandbox revoke 1c9e0a55 ~/data
  sandbox revoke 1c9e0a55 ~/data --json | jq '.stillOpen[].pid'

Exit codes: 0 done, 1 nothing was taken back, 125 there is no such run, or sandbox failed.";

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct Revoke {
    /// The running sandbox
    #[arg(value_name = "SESSION")]
    session: String,

    /// What was granted: a file, or a directory with everything below it
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// Print what was taken back as one JSON document
    #[arg(long)]
    json: bool,
}

impl Revoke {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let places = Caller::here()?.places;
        let session = running::find(&self.session, &all_runs(&places)?)?;
        let path = real_path(&self.path)?;
        let revoked = match ask(&socket_path(&places.runtime, &session), &path)? {
            Ok(revoked) => revoked,
            Err(why) => {
                output::note(&why);
                return Ok(ExitCode::FAILURE);
            }
        };
        match self.json {
            true => output::print(&palisade_ask::to_line(&revoked)?)?,
            false => output::print_lines(told(&path, &revoked))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Runs of a moment are known by their sockets alone, and those that were granted nothing have none.
fn all_runs(places: &AppDirs) -> anyhow::Result<Vec<NamedRun>> {
    let mut runs: Vec<NamedRun> = runs::list(places)?.into_iter().map(NamedRun::from).collect();
    let mut sessions = Sessions::new(&places.runtime, NAME);
    sessions.refresh_fully(CONNECT_TIMEOUT)?;
    for (session, known) in sessions.iter() {
        if !runs.iter().any(|run| run.session == session) {
            let (session, command) = (session.to_owned(), known.command().to_owned());
            runs.push(NamedRun { session, command });
        }
    }
    Ok(runs)
}

/// Grants are by real path. What is gone from the host has none below the directory it was in.
fn real_path(path: &Path) -> anyhow::Result<PathBuf> {
    let real =
        |path: &Path| path.canonicalize().map_err(|error| anyhow!("{}: {error}", path.display()));
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if !path.exists() => {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            Ok(real(parent)?.join(name))
        }
        _ => real(path),
    }
}

/// What was taken back, or why not.
fn ask(socket: &Path, path: &Path) -> anyhow::Result<Result<Revoked, String>> {
    let mut client = match Client::connect(socket) {
        Err(ClientError::Connect { source, .. }) if source.kind() == ErrorKind::NotFound => {
            let why =
                format!("{}: nothing was granted to this run since it started", path.display());
            return Ok(Err(why));
        }
        client => client?,
    };
    client.send(&ClientCommand::Hello { protocol: PROTOCOL, name: NAME.to_owned() })?;
    client.send(&ClientCommand::Revoke(Command::of(path)))?;
    let deadline = Instant::now() + PATIENCE;
    while let Some(event) = client.wait(deadline)? {
        match event {
            ServerEvent::Hello(hello) if hello.protocol != PROTOCOL => {
                return Err(ClientError::Protocol(hello.protocol).into());
            }
            ServerEvent::Revoked(revoked) => return Ok(Ok(*revoked)),
            ServerEvent::Error(refused) => return Ok(Err(refused.message)),
            _ => {}
        }
    }
    bail!("the session does not answer; whether {} is still granted is not known", path.display())
}

fn told(path: &Path, revoked: &Revoked) -> Vec<String> {
    let mut lines: Vec<String> =
        revoked.paths.iter().map(|path| format!("revoked: {path}")).collect();
    if lines.is_empty() {
        lines.push(format!("revoked: {}", path.display()));
    }
    if let Some(above) = &revoked.part_of {
        lines.push(format!("still visible as part of {above}, which is granted"));
    }
    lines.extend(revoked.still_open.iter().map(still_open));
    if revoked.has_more {
        lines.push("not all processes were looked at; there may be more".to_owned());
    }
    lines
}

fn still_open(process: &StillOpen) -> String {
    let mut uses = Vec::new();
    if !process.descriptors.is_empty() {
        let shown = process.descriptors.iter().take(MAX_DESCRIPTORS).map(u32::to_string);
        let shown = shown.collect::<Vec<_>>().join(", ");
        let rest = process.descriptors.len().saturating_sub(MAX_DESCRIPTORS);
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        uses.push(format!("descriptor {shown}{more}"));
    }
    if process.is_cwd {
        uses.push("working directory".to_owned());
    }
    if process.has_own_mounts {
        uses.push("has mounts of its own, which keep what they showed".to_owned());
    }
    format!("still open in {} ({}): {}", process.name, process.pid, uses.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_open_is_told() {
        let process = StillOpen {
            pid: 7,
            name: "cat".to_owned(),
            descriptors: (3..13).collect(),
            is_cwd: true,
            has_own_mounts: false,
        };
        let revoked = Revoked {
            paths: vec!["/x".to_owned()],
            part_of: Some("/".to_owned()),
            still_open: vec![process],
            has_more: true,
            ..Revoked::default()
        };
        let expected = [
            "revoked: /x",
            "still visible as part of /, which is granted",
            "still open in cat (7): descriptor 3, 4, 5, 6, 7, 8, 9, 10 and 2 more; working directory",
            "not all processes were looked at; there may be more",
        ];
        assert_eq!(told(Path::new("/x"), &revoked), expected);
    }

    #[test]
    fn a_path_is_the_real_one_also_of_what_is_gone() {
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        assert_eq!(real_path(Path::new("gone")).unwrap(), here.join("gone"));
        assert_eq!(real_path(Path::new("/proc/self/../gone")).unwrap(), Path::new("/proc/gone"));
        let error = real_path(Path::new("/no/such/place")).unwrap_err().to_string();
        assert!(error.contains("/no/such: No such file"), "{error}");
    }
}
