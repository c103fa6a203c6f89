//! From the words of the command line to one command.
//!
//! Only the definitions of the command that was typed are built: those of all of them take longer than reading
//! the line, and a start is measured in fractions of a millisecond. Whatever is wrong with a line, and every help
//! text, comes from the whole set, so that there is one wording for it.

use crate::commands::changes::{apply, diff, discard};
use crate::commands::checkpoints::{checkpoint, fork, list, rollback};
use crate::commands::sessions::{
    attach, copy, create, exec, extend, inspect, logs, prune, ps, remove, stop,
};
use crate::commands::{
    approve, audit, bwrap, cache, check_path, complete, doctor, explain_syscall, generate, hook,
    learn, manual, mcp, net, plan, policy, proxy, quarantine, replay, revoke, run, serve,
    supervise, tool, top, why,
};
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use palisade_record::escape;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  sandbox run -- npm test                       the project is writable; secrets are hidden
  sandbox -- npm test                           the same
  sandbox run --preset agent -- claude          a coding agent with its settings, login and API
  sandbox run --static -- make                  never ask; only secrets and other homes are hidden
  sandbox run --ro ~/data --timeout 5m -- ./train.sh
  sandbox run --allow-for cargo -- cargo fetch  only the registry that cargo is configured to use
  sandbox run --allow-host api.example -- ./client
  sandbox plan -- npm test                      show what `run` would do
  sandbox doctor                                check this host

Exit codes of `run`: the command's own; 124 time limit, 125 sandbox failed, 126 denied by policy or
not executable, 127 not found, 128+N killed by signal N.";

/// Run untrusted commands in a sandbox.
#[derive(Debug, Parser)]
#[command(name = "sandbox", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command in a sandbox
    Run(run::Run),
    /// Run a command and write the policy that it needs
    Learn(learn::Learn),
    /// Create a sandbox that stays, and print its id
    Create(create::Create),
    /// Run a command in a session
    Exec(exec::Exec),
    /// Show a command of a session in this terminal
    Attach(attach::Attach),
    /// List sessions
    Ps(ps::Ps),
    /// Show what a command of a session wrote
    Logs(logs::Logs),
    /// Show a recording of a terminal
    Replay(replay::Replay),
    /// Show everything about a session
    Inspect(inspect::Inspect),
    /// End a session: its commands are asked first
    Stop(stop::Stop),
    /// End a session at once
    Kill(stop::Kill),
    /// Remove what is left of a session
    Rm(remove::Remove),
    /// Remove what is left of all sessions that are over
    Prune(prune::Prune),
    /// Give a session more time
    Extend(extend::Extend),
    /// Copy a file into a session, or out of it
    Cp(copy::Copy),
    /// Show what a session changed in its project
    Diff(diff::Diff),
    /// Apply what a session changed to its project
    Apply(apply::Apply),
    /// Remove what a session changed, and leave the project as it is
    Discard(discard::Discard),
    /// Keep the present state of a session's project
    Checkpoint(checkpoint::Checkpoint),
    /// List the states of a session's project that were kept
    Checkpoints(list::Checkpoints),
    /// Bring a kept state of a session's project back
    Rollback(rollback::Rollback),
    /// Start a second session from the state of another one
    Fork(fork::Fork),
    /// List and clear what sandboxes keep in caches of their own
    #[command(subcommand)]
    Cache(cache::Cache),
    /// Show what `run` would do with the same options
    Plan(plan::Plan),
    /// Check what this host supports and how to fix what is missing
    Doctor(doctor::Doctor),
    /// Explain whether a system call is allowed
    ExplainSyscall(explain_syscall::ExplainSyscall),
    /// Explain why a path, host or variable is allowed, hidden or denied
    Why(why::Why),
    /// Show, check, edit and share policies
    #[command(subcommand)]
    Policy(policy::Policy),
    /// Run the filtering proxy on its own, for containers
    Proxy(proxy::Proxy),
    /// Put the commands of an agent's own shell tool into a session
    Hook(hook::Hook),
    /// Run a command line of bubblewrap
    Bwrap(bwrap::Bwrap),
    /// Serve sandboxes over HTTP
    Serve(serve::Serve),
    /// Offer tools in a sandbox to a client of the Model Context Protocol
    Mcp(mcp::Mcp),
    /// Declare tools, and run them in sandboxes of their own
    #[command(subcommand)]
    Tool(tool::Tool),
    /// Answer the questions of running sandboxes
    Approve(approve::Approve),
    /// Take back what was granted to a running sandbox
    Revoke(revoke::Revoke),
    /// Show the resource use of running sandboxes
    Top(top::Top),
    /// Show the network connections of a run
    Net(net::Net),
    /// Read, follow, verify and export the audit log
    Audit(audit::Audit),
    /// Show and release the tools that do not run after an attempt to break out
    #[command(subcommand)]
    Quarantine(quarantine::Quarantine),
    /// Check that a path stays below a directory and reaches nothing that is denied
    CheckPath(check_path::CheckPath),
    /// Print a shell completion script
    Completions(complete::Completions),
    /// Show a manual page
    Man(manual::Man),
    /// Run one sandbox for a client of the control interface
    #[command(hide = true)]
    Supervise(supervise::Supervise),
    /// The words that fit next, for the completion scripts
    #[command(hide = true)]
    Complete(complete::Complete),
    /// Write manual pages
    #[command(subcommand, hide = true)]
    Generate(generate::Generate),
}

/// What came of a line that is no command.
pub(crate) enum Rejected {
    /// With the line that was read: where `run` was left out, it is there.
    Usage { error: clap::Error, line: Vec<OsString> },
    /// A program was named where a command of ours belongs; the line that was probably meant.
    ProgramForCommand { word: String, meant: String },
}

pub(crate) fn parse(line: &[OsString]) -> Result<Command, Rejected> {
    let with_run = |rest: &[OsString]| {
        let mut line: Vec<OsString> = vec!["sandbox".into(), "run".into()];
        line.extend_from_slice(rest);
        line
    };
    // By a link of that name, for programs that call bubblewrap.
    let name = line.first().and_then(|program| Path::new(program).file_name());
    if name == Some(OsStr::new("bwrap")) {
        let words = line.get(1..).unwrap_or_default().to_vec();
        return Ok(Command::Bwrap(bwrap::Bwrap { words }));
    }
    let first = line.get(1).map(OsString::as_os_str);
    if first == Some(OsStr::new("--")) {
        return parse(&with_run(&line[1..]));
    }
    if let Some(command) = first.and_then(OsStr::to_str).and_then(|word| alone(word, &line[1..])) {
        return Ok(command);
    }
    Cli::try_parse_from(line).map(|cli| cli.command).map_err(|error| {
        let rest = line.get(1..).unwrap_or_default();
        let is_option = |word: &OsStr| word.as_encoded_bytes().starts_with(b"-");
        match (error.kind(), first) {
            (ErrorKind::InvalidSubcommand, Some(word)) if is_program(word) => {
                let mut after_hyphens: Vec<OsString> = vec!["--".into()];
                after_hyphens.extend_from_slice(rest);
                program_for_command(word, &with_run(&after_hyphens))
            }
            // Options of `run`, without the word.
            (ErrorKind::UnknownArgument, Some(word)) if is_option(word) => {
                let line = with_run(rest);
                match Cli::try_parse_from(&line) {
                    Ok(_) => program_for_command(word, &line),
                    Err(error) => Rejected::Usage { error, line },
                }
            }
            _ => Rejected::Usage { error, line: line.to_vec() },
        }
    })
}

fn program_for_command(word: &OsStr, meant: &[OsString]) -> Rejected {
    let shown: Vec<String> =
        meant.iter().map(|word| escape::quoted(&word.to_string_lossy())).collect();
    let word = escape::text(&word.to_string_lossy()).into_owned();
    Rejected::ProgramForCommand { word, meant: shown.join(" ") }
}

/// The command with this name, if the line is right for it. `line` begins with the name.
fn alone(name: &str, line: &[OsString]) -> Option<Command> {
    Some(match name {
        "run" => Command::Run(arguments(line)?),
        "learn" => Command::Learn(arguments(line)?),
        "create" => Command::Create(arguments(line)?),
        "exec" => Command::Exec(arguments(line)?),
        "attach" => Command::Attach(arguments(line)?),
        "ps" => Command::Ps(arguments(line)?),
        "logs" => Command::Logs(arguments(line)?),
        "replay" => Command::Replay(arguments(line)?),
        "inspect" => Command::Inspect(arguments(line)?),
        "stop" => Command::Stop(arguments(line)?),
        "kill" => Command::Kill(arguments(line)?),
        "rm" => Command::Rm(arguments(line)?),
        "prune" => Command::Prune(arguments(line)?),
        "extend" => Command::Extend(arguments(line)?),
        "cp" => Command::Cp(arguments(line)?),
        "diff" => Command::Diff(arguments(line)?),
        "apply" => Command::Apply(arguments(line)?),
        "discard" => Command::Discard(arguments(line)?),
        "checkpoint" => Command::Checkpoint(arguments(line)?),
        "checkpoints" => Command::Checkpoints(arguments(line)?),
        "rollback" => Command::Rollback(arguments(line)?),
        "fork" => Command::Fork(arguments(line)?),
        "cache" => Command::Cache(subcommand(line)?),
        "plan" => Command::Plan(arguments(line)?),
        "doctor" => Command::Doctor(arguments(line)?),
        "explain-syscall" => Command::ExplainSyscall(arguments(line)?),
        "why" => Command::Why(arguments(line)?),
        "proxy" => Command::Proxy(arguments(line)?),
        "hook" => Command::Hook(arguments(line)?),
        "bwrap" => Command::Bwrap(arguments(line)?),
        "serve" => Command::Serve(arguments(line)?),
        "mcp" => Command::Mcp(arguments(line)?),
        "approve" => Command::Approve(arguments(line)?),
        "revoke" => Command::Revoke(arguments(line)?),
        "top" => Command::Top(arguments(line)?),
        "net" => Command::Net(arguments(line)?),
        "supervise" => Command::Supervise(arguments(line)?),
        "check-path" => Command::CheckPath(arguments(line)?),
        "policy" => Command::Policy(subcommand(line)?),
        "audit" => Command::Audit(arguments(line)?),
        "tool" => Command::Tool(subcommand(line)?),
        "quarantine" => Command::Quarantine(subcommand(line)?),
        _ => return None,
    })
}

fn arguments<A: Args>(line: &[OsString]) -> Option<A> {
    let definitions = A::augment_args(clap::Command::new("sandbox"));
    let mut matches = definitions.try_get_matches_from(line).ok()?;
    A::from_arg_matches_mut(&mut matches).ok()
}

fn subcommand<S: Subcommand>(line: &[OsString]) -> Option<S> {
    let definitions = S::augment_subcommands(clap::Command::new("sandbox"));
    let mut matches = definitions.try_get_matches_from(line).ok()?;
    S::from_arg_matches_mut(&mut matches).ok()
}

/// Whether a shell would run something for this word.
fn is_program(word: &OsStr) -> bool {
    let is_executable = |path: &Path| {
        path.metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if word.as_encoded_bytes().contains(&b'/') {
        return is_executable(Path::new(word));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| is_executable(&directory.join(word)))
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
