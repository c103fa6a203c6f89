//! The `sandbox` command: reads the command line and hands over to one file a command.
//!
//! No thread is ever started here: the launcher forks, and needs to be alone in its process.

mod args;
mod closing;
mod commands;
mod early;
mod environment;
mod flags;
mod output;
mod patience;
mod request;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use commands::{
    approve, audit, check_path, doctor, explain_syscall, generate, learn, net, plan, policy, proxy,
    run, top, why,
};
use palisade_session::SessionError;
use std::ffi::OsString;
use std::process::ExitCode;

// Otherwise the crate keeps /dev/urandom open, and reads its random numbers, in a forked process that
// closed everything, from whatever has that number there.
#[cfg(all(
    target_env = "gnu",
    target_feature = "crt-static",
    not(getrandom_backend = "linux_getrandom")
))]
compile_error!(
    "a static binary needs RUSTFLAGS='--cfg getrandom_backend=\"linux_getrandom\"'; `cargo xtask dist` builds one"
);

/// Our own failure, as `env(1)` and `timeout(1)` have it: never a code a command is likely to use.
const OWN_FAILURE: u8 = 125;

const EXAMPLES: &str = "\
Examples:
  sandbox run -- npm test                    the project is writable, secrets are not there
  sandbox run --static -- make               nobody is asked; all but homes and secrets readable
  sandbox run --ro ~/data --timeout 5m -- ./train.sh
  sandbox run --allow-for cargo -- cargo fetch   only the registry that cargo is set up to use
  sandbox run --allow-host api.example -- ./client
  sandbox plan -- npm test                   what would be done, and what holds each promise
  sandbox doctor                             what this host can do, and how to mend what it can not

Exit codes of `run`: the command's own; 124 time limit, 125 sandbox failed, 126 refused by policy or
not executable, 127 not found, 128+N ended by signal N.";

const RUN: &str = "Run a command in a sandbox";

/// Runs untrusted commands where they can do no harm.
#[derive(Debug, Parser)]
#[command(name = "sandbox", version, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(about = RUN)]
    Run(run::Run),
    /// Run a command with what it touches granted, and write the policy it would have needed
    Learn(learn::Learn),
    /// Show what `run` would do with the same options, without doing it
    Plan(plan::Plan),
    /// Try what this host can do, and say how to mend what it can not
    Doctor(doctor::Doctor),
    /// Say what a system call is answered inside, by which rule and why
    ExplainSyscall(explain_syscall::ExplainSyscall),
    /// Say what decides about a path inside, and where that was said
    Why(why::Why),
    /// Show, check, trust, import and export policies, and save answers to them
    #[command(subcommand)]
    Policy(policy::Policy),
    /// Serve the egress proxy alone, for containers that have no other way out
    Proxy(proxy::Proxy),
    /// Answer what running sessions ask
    Approve(approve::Approve),
    /// Show what running sandboxes use
    Top(top::Top),
    /// Show what a run tries to reach, and what becomes of it
    Net(net::Net),
    /// Check and read the audit log
    #[command(subcommand)]
    Audit(audit::Audit),
    /// Say whether a path stays below a directory and reaches nothing that is denied
    CheckPath(check_path::CheckPath),
    /// Write shell completions and manual pages
    #[command(subcommand, hide = true)]
    Generate(generate::Generate),
}

// `sandbox run` by itself: building the definitions of every other command takes longer than reading
// the line, and a start is measured in fractions of a millisecond.
#[derive(Debug, Parser)]
#[command(name = "sandbox run", bin_name = "sandbox run", about = RUN, max_term_width = 100)]
struct RunAlone {
    #[command(flatten)]
    run: run::Run,
}

fn parse(line: &[OsString]) -> Result<Command, clap::Error> {
    if line.get(1).is_some_and(|command| command == "run") {
        return RunAlone::try_parse_from(&line[1..]).map(|alone| Command::Run(alone.run));
    }
    Cli::try_parse_from(line).map(|cli| cli.command)
}

fn main() -> ExitCode {
    let command = match parse(&std::env::args_os().collect::<Vec<_>>()) {
        Ok(command) => command,
        Err(error) => return usage(&error),
    };
    let done = match command {
        Command::Run(run) => run.execute(),
        Command::Learn(learn) => learn.execute(),
        Command::Plan(plan) => plan.execute(),
        Command::Doctor(doctor) => doctor.execute(),
        Command::ExplainSyscall(explain) => explain.execute(),
        Command::Why(why) => why.execute(),
        Command::Policy(policy) => policy.execute(),
        Command::Proxy(proxy) => proxy.execute(),
        Command::Approve(approve) => approve.execute(),
        Command::Top(top) => top.execute(),
        Command::Net(net) => net.execute(),
        Command::Audit(audit) => audit.execute(),
        Command::CheckPath(check_path) => check_path.execute(),
        Command::Generate(generate) => generate.execute(),
    };
    done.unwrap_or_else(|error| {
        output::complain(&error);
        exit_code(&error)
    })
}

/// Clap's own code for a wrong option is 2, which could be the command's.
fn usage(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // Nothing can be said if the terminal is gone.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    output::usage(error);
    ExitCode::from(OWN_FAILURE)
}

fn exit_code(error: &anyhow::Error) -> ExitCode {
    let code = error.downcast_ref().map_or(OWN_FAILURE, SessionError::exit_code);
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::{Cli, Command, RunAlone, parse};
    use clap::CommandFactory;
    use std::ffi::OsString;

    fn command_of(line: &[&str]) -> Vec<OsString> {
        let line: Vec<OsString> = line.iter().map(OsString::from).collect();
        match parse(&line) {
            Ok(Command::Run(run)) => run.command.command,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
        RunAlone::command().debug_assert();
    }

    /// Proves: LIFE-3 run
    #[test]
    fn a_command_that_looks_like_an_option_is_taken_literally() {
        assert_eq!(command_of(&["sandbox", "run", "--", "--bind", "/"]), ["--bind", "/"]);
        assert_eq!(command_of(&["sandbox", "run", "--", "x", "--", "--rw"]), ["x", "--", "--rw"]);
        assert_eq!(command_of(&["sandbox", "run", "ls", "-l", "--rw"]), ["ls", "-l", "--rw"]);
        assert_eq!(
            command_of(&["sandbox", "run", "--level", "1", "ls", "--level"]),
            ["ls", "--level"]
        );
    }

    #[test]
    fn a_mistyped_option_is_no_command() {
        let line = ["sandbox", "run", "--levle", "1", "ls"].map(OsString::from);
        assert!(parse(&line).is_err());
        assert!(parse(&["sandbox", "run"].map(OsString::from)).is_err());
    }
}
