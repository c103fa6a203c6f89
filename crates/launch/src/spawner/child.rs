//! From the spawner's fork to the exec of a command. All restrictions are in force already; what is left is per
//! command: streams, session, limits, umask, working directory.
//!
//! From its fifth step on, other processes inside can inspect this one. By then it must hold nothing but what
//! belongs to the command, and its streams must be no more than streams.

use super::config::SpawnerConfig;
use super::message::{CommandKind, CommandStart, StartReport};
use crate::command::set_limit;
use crate::error::{During, Result};
use crate::exec;
use crate::init::close_all_but;
use crate::streams::check_stream;
use palisade_plan::model::Command;
use palisade_sys::proc::{self, Resource, ResourceLimit, sig};
use palisade_sys::{At as _, Mode, creds, tty};
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;

/// Its standard input, output and error.
pub(super) type Streams<'fd> = [BorrowedFd<'fd>; 3];

/// Ends in exec, or in a report to the spawner.
pub(super) fn become_command(
    config: &SpawnerConfig,
    start: &CommandStart,
    streams: &Streams<'_>,
    groups: &[BorrowedFd<'_>],
    report: &OwnedFd,
) -> ! {
    let Err(error) = attempt(config, start, streams, groups, report);
    // If it did not fit, the spawner would get a message it cannot decode, never silence, which after the first
    // report it takes for an exec.
    tell(report, &StartReport::Failed(error));
    proc::exit_now(125)
}

fn tell(to: &OwnedFd, report: &StartReport) {
    let packet = palisade_wire::encode(report).unwrap_or(vec![u8::MAX]);
    let _ = rustix::io::write(to, &packet);
}

fn attempt(
    config: &SpawnerConfig,
    start: &CommandStart,
    streams: &Streams<'_>,
    groups: &[BorrowedFd<'_>],
    report: &OwnedFd,
) -> Result<Infallible> {
    // 1. Into the control group, before anything is used that a limit counts, and by descriptors that go next.
    for group in groups {
        rustix::io::write(group, b"0").call("write").during("entering the control group")?;
    }
    // The client's, on whatever file system they are: if that does not answer, nobody else waits for it. A terminal
    // is our own.
    if !start.has_terminal {
        let no_files = config.hardening.no_file_streams;
        streams.iter().try_for_each(|stream| check_stream(*stream, no_files))?;
    }
    connect(streams)?;
    if config.hardening.close_descriptors {
        close_all_but(vec![report.as_raw_fd()])?;
    }
    // 2. A session, and a terminal if it was given one.
    if config.hardening.own_session {
        proc::setsid().during("making the command's session")?;
        if start.has_terminal {
            tty::set_controlling_tty(rustix::stdio::stdin()).during("taking the terminal")?;
        }
    }
    // 3. Signals as a program expects them. Rust's runtime ignores SIGPIPE, and exec(2) would leave it so.
    proc::reset_action(sig::SIGPIPE);
    if !config.ignores_file_size {
        proc::reset_action(sig::SIGXFSZ);
    }
    proc::unblock_all().during("unblocking signals")?;
    // 4. Limits: the caller's, the sandbox's, the request's.
    limit(config, start)?;
    // 5. The broker has to inspect its callers, so this process becomes dumpable, for all processes inside. One
    // that traces it from here on controls a process in the command's own session and under its limits: no more
    // than the command it becomes.
    creds::set_dumpable(true).during("opening the command's process to the broker")?;
    // 6. With the command's own rights: a directory it may not enter cannot be its working directory. The
    // filter notifies the broker of the call, so it is skipped if nothing changes.
    if start.umask != config.umask {
        rustix::process::umask(Mode::from_raw_mode(start.umask & 0o777));
    }
    rustix::process::chdir(&start.cwd)
        .at("chdir", &start.cwd)
        .during("entering the working directory")?;
    match start.kind {
        CommandKind::Program => {
            let command = command_of(start);
            let (argv, env) = exec::c_strings(&command)?;
            tell(report, &StartReport::Executing);
            Err(exec::exec(&command, None, &argv, &env))
        }
        CommandKind::FileServer => {
            tell(report, &StartReport::Executing);
            // As an exec does.
            close_all_but(Vec::new())?;
            serve_files()
        }
    }
}

/// Instead of a program: what it does is done with the rights of a command, and what it holds in memory is what the spawner's forks
/// may hold.
fn serve_files() -> ! {
    // For people only.
    let _ = proc::set_name(c"sandbox-files");
    // A limit on sizes is an error for the client.
    proc::ignore(sig::SIGXFSZ);
    let served = palisade_files::serve(rustix::stdio::stdin());
    proc::exit_now(i32::from(served.is_err()))
}

fn connect(streams: &Streams<'_>) -> Result<()> {
    let [stdin, stdout, stderr] = streams;
    rustix::stdio::dup2_stdin(stdin)
        .and_then(|()| rustix::stdio::dup2_stdout(stdout))
        .and_then(|()| rustix::stdio::dup2_stderr(stderr))
        .call("dup2")
        .during("connecting the command's streams")
}

fn limit(config: &SpawnerConfig, start: &CommandStart) -> Result<()> {
    let (soft, hard) = config.open_files;
    let open_files = ResourceLimit { soft, hard };
    proc::set_rlimit(Resource::Nofile, open_files).during("setting a limit")?;
    let mut limits = config.rlimits.iter().chain(&start.rlimits);
    limits.try_for_each(|(resource, value)| set_limit(*resource, *value))
}

fn command_of(start: &CommandStart) -> Command {
    let text = |bytes: &Vec<u8>| OsString::from_vec(bytes.clone());
    Command {
        argv: start.argv.iter().map(text).collect(),
        cwd: start.cwd.clone(),
        env: start.env.iter().map(|(name, value)| (text(name), text(value))).collect(),
    }
}
