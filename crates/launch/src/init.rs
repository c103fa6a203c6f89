//! Pid 1 of a sandbox that ends with its command: reaps children, forwards signals, and ends everything with
//! the command.
//!
//! It holds no capability, reads nothing from the command, and runs under its own filter of a few calls.

use crate::error::{During, LaunchError, Result};
use crate::filter;
use crate::message::{ExitCause, FromCommand, FromInit, ToInit};
use crate::streams;
use palisade_bpf::{Arch, Listening, init_spec};
use palisade_plan::model::{Confinement, Plan};
use palisade_sys::proc::{self, PollFd, PollFlags, Status, WaitFlags, sig};
use palisade_sys::seccomp::SeccompFlags;
use palisade_sys::{Pid, creds, tty};
use palisade_wire::{WireError, WireMessage as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

const STEP: &str = "settling pid 1";

/// Pid 1 after setup.
#[derive(Debug)]
pub(crate) struct Init {
    command: Pid,
    /// From the command process until its exec.
    report: Option<OwnedFd>,
    /// Whether the self-check's outcome came through it.
    checked: bool,
    /// To give the foreground back after a stop.
    terminal: Option<OwnedFd>,
    signals: OwnedFd,
    household: Household,
}

/// Which processes end with the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Household {
    /// All processes in our pid namespace.
    Namespace,
    /// Our descendants, which share the host's pids.
    Descendants,
}

impl Household {
    fn of(plan: &Plan) -> Self {
        match &plan.sandbox.confinement {
            Confinement::Namespaces(inside) if inside.namespaces.pid => Self::Namespace,
            _ => Self::Descendants,
        }
    }

    /// Kills and reaps all other processes, so that their usage is counted and none is left.
    pub(crate) fn end(self) {
        loop {
            match self {
                Self::Namespace => {
                    if proc::kill_all(sig::SIGKILL).is_err() {
                        return;
                    }
                }
                Self::Descendants => {
                    for pid in children() {
                        let _ = proc::kill(pid, sig::SIGKILL);
                    }
                }
            }
            // Each death may hand us an orphan to kill in the next round.
            if proc::wait_any(WaitFlags::NONE).is_err() {
                return;
            }
        }
    }
}

/// Makes pid 1 inaccessible before the command can run: no process inside may inspect or trace it, and it holds
/// no descriptor of the caller, only `keep`.
pub(crate) fn close_off(plan: &Plan, keep: &[BorrowedFd<'_>]) -> Result<()> {
    if plan.sandbox.hardening.init_undumpable {
        creds::set_dumpable(false).during("closing pid 1 to inspection")?;
    }
    streams::release()?;
    close_all_but(keep.iter().map(AsRawFd::as_raw_fd).collect())
}

/// Drops capabilities and most system calls while the command takes its own last steps: pid 1 does no work for
/// others meanwhile and cannot be reached from inside.
pub(crate) fn settle(plan: &Plan) -> Result<()> {
    let inside = matches!(plan.sandbox.confinement, Confinement::Namespaces(_));
    if plan.sandbox.hardening.drop_capabilities && inside {
        creds::lock_securebits().during(STEP)?;
        creds::drop_all_capabilities().during(STEP)?;
    }
    if plan.sandbox.hardening.no_new_privs {
        creds::set_no_new_privs().during(STEP)?;
    }
    // Ending descendants one by one needs /proc, which the filter does not allow.
    if plan.sandbox.seccomp.is_some() && Household::of(plan) == Household::Namespace {
        let program = filter::compile(&init_spec(Arch::native()), Listening::No)?;
        filter::install(program.instructions(), SeccompFlags::NONE).during(filter::STEP)?;
    }
    Ok(())
}

/// Tells the supervisor. If it is gone, this process soon ends too.
pub(crate) fn tell(init_socket: impl AsFd, message: &FromInit) {
    let _ = palisade_wire::send(init_socket, message, &[]);
}

impl Init {
    pub(crate) fn new(
        plan: &Plan,
        command: Pid,
        report: OwnedFd,
        terminal: Option<OwnedFd>,
        signals: OwnedFd,
    ) -> Self {
        let household = Household::of(plan);
        Self { command, report: Some(report), checked: false, terminal, signals, household }
    }

    /// Until the command, or the supervisor, is gone.
    pub(crate) fn run(mut self, init_socket: &OwnedFd) -> ! {
        loop {
            if self.wait_for_news(init_socket).is_err() {
                self.household.end();
                proc::exit_now(125);
            }
            self.hear_command(init_socket);
            if let Some(ending) = self.reap(init_socket) {
                // Its last message may have arrived together with its death.
                self.hear_command(init_socket);
                self.household.end();
                tell(init_socket, &FromInit::Exited(ending));
                proc::exit_now(0);
            }
        }
    }

    /// Blocks until something happens, and carries out the supervisor's requests.
    fn wait_for_news(&self, init_socket: &OwnedFd) -> Result<(), WireError> {
        let mut watched = vec![
            PollFd::new(init_socket, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        if let Some(report) = &self.report {
            watched.push(PollFd::new(report, PollFlags::IN));
        }
        proc::poll(&mut watched, None).map_err(WireError::System)?;
        if watched[0].revents().is_empty() {
            return Ok(());
        }
        // If the supervisor is gone or sends something that cannot be decoded, no process may outlive it.
        let order = palisade_wire::receive(init_socket, &mut [0; ToInit::MAX_BYTES])?;
        match order.message {
            ToInit::Signal(signal) => self.signal(signal),
            ToInit::Resume => {
                if let Some(terminal) = &self.terminal {
                    let _ = tty::tcsetpgrp(terminal, self.command);
                }
                self.signal(sig::SIGCONT);
            }
            ToInit::Mapped | ToInit::Connected => {}
            // Handled as if it were gone.
            ToInit::End => return Err(WireError::Closed),
        }
        Ok(())
    }

    /// To the command's process group; an empty group is no error.
    fn signal(&self, signal: i32) {
        let _ = proc::kill_group(self.command, signal);
    }

    /// Forwards what the command's process reported before its exec; a closed socket means that exec succeeded.
    fn hear_command(&mut self, init_socket: &OwnedFd) {
        while let Some(report) = &self.report {
            let mut watched = [PollFd::new(report, PollFlags::IN)];
            let ready = proc::poll(&mut watched, Some(std::time::Duration::ZERO));
            if !matches!(ready, Ok(1)) {
                return;
            }
            let received = palisade_wire::receive(report, &mut [0; FromCommand::MAX_BYTES]);
            let message = match received.map(|received| received.message) {
                Ok(FromCommand::PassOn(message)) => message,
                Err(WireError::Closed) if self.checked => FromInit::Started,
                Err(WireError::Closed) => FromInit::Failed(unchecked()),
                Ok(FromCommand::NetworkReady | FromCommand::OldRootGone) => {
                    self.distrust("a step was reported twice")
                }
                Err(error) => self.distrust(&error.to_string()),
            };
            self.checked |= matches!(message, FromInit::Checked(_));
            tell(init_socket, &message);
            if matches!(message, FromInit::Started | FromInit::Failed(_)) {
                self.report = None;
            }
        }
    }

    /// Whether it would go on to exec is unknown, so it must not: a launch that failed runs nothing.
    fn distrust(&self, detail: &str) -> FromInit {
        let _ = proc::kill(self.command, sig::SIGKILL);
        FromInit::Failed(LaunchError::new("listening to the command's process", detail))
    }

    /// Reaps children, reports a stop, and returns how the command ended once it has.
    fn reap(&self, init_socket: &OwnedFd) -> Option<ExitCause> {
        while let Ok(Some(_)) = proc::read_signalfd(&self.signals) {}
        let flags = WaitFlags::NOHANG | WaitFlags::UNTRACED;
        while let Ok(Some(reaped)) = proc::wait_any(flags) {
            if reaped.pid != self.command {
                continue;
            }
            match reaped.status {
                Status::Exited(code) => return Some(ExitCause::Code(code)),
                Status::Signaled { signal, .. } => return Some(ExitCause::Signal(signal)),
                Status::Stopped(signal) => tell(init_socket, &FromInit::Stopped(signal)),
                Status::Continued => {}
            }
        }
        None
    }
}

/// Exec comes after the check, so a socket that closes before the check's report means that the process died.
fn unchecked() -> LaunchError {
    LaunchError::new("starting the command", "its process died before the walls were checked")
}

/// Our children now; orphans of theirs become ours, where we are their subreaper.
pub(crate) fn children() -> Vec<Pid> {
    let own = rustix::process::getpid().as_raw_nonzero();
    let list = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children"));
    list.unwrap_or_default()
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok().and_then(Pid::from_raw))
        .collect()
}

pub(crate) fn close_all_but(mut keep: Vec<RawFd>) -> Result<()> {
    keep.sort_unstable();
    let mut first = 3;
    for fd in keep {
        if fd > first {
            proc::close_range(first, fd - 1).during(STEP)?;
        }
        first = first.max(fd + 1);
    }
    proc::close_range(first, RawFd::MAX).during(STEP)
}

#[cfg(test)]
#[path = "init_tests.rs"]
mod tests;
