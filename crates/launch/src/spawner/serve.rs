//! The spawner's main loop: forks one process for each command, reaps it, and reports its end.

use super::child::{self, Streams};
use super::config::SpawnerConfig;
use super::message::{CommandId, CommandStart, SpawnerEvent, SpawnerRequest, StartReport};
use crate::error::{LaunchError, Result};
use crate::message::ExitCause;
use palisade_sys::clone::{Forked, SingleThreaded, fork_by_clone};
use palisade_sys::fdpass::socketpair;
use palisade_sys::proc::{self, PollFd, PollFlags, Status, WaitFlags};
use palisade_sys::{Pid, SysError};
use palisade_wire::{Received, SendQueue, WireError, WireMessage as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

const STEP: &str = "starting the command";

/// Commands can create children of ours (`CLONE_PARENT`), as many as they like: requests must not wait for all
/// of them.
const REAPED_A_TURN: usize = 64;

/// Events that the supervisor has not read. It runs fewer commands at once, and each has two.
const MAX_UNREAD: usize = 1024;

/// A command that was forked and not reaped yet.
#[derive(Debug)]
struct Forkling {
    command: CommandId,
    pid: Pid,
    /// Open until its exec, or until it reports a failure.
    report: Option<OwnedFd>,
    /// Whether it has reported that its exec is next.
    is_executing: bool,
}

impl Forkling {
    fn new(command: CommandId, pid: Pid, report: OwnedFd) -> Self {
        Self { command, pid, report: Some(report), is_executing: false }
    }

    fn signal(&self, signal: i32) {
        // It is not reaped, so the pid is still its own. It may not lead a group yet.
        if proc::kill_group(self.pid, signal).is_err() {
            let _ = proc::kill(self.pid, signal);
        }
    }

    /// Whether it became its command; none if that is not known yet.
    fn hear(&mut self) -> Option<SpawnerEvent> {
        let report = self.report.as_ref()?;
        let mut buffer = [0; StartReport::MAX_BYTES];
        let mut next = || palisade_wire::try_receive::<StartReport>(report, &mut buffer);
        let mut told = next();
        if !self.is_executing
            && let Ok(Some(Received { message: StartReport::Executing, .. })) = &told
        {
            self.is_executing = true;
            told = next();
        }
        let failure = match told {
            Ok(None) => return None,
            Err(WireError::Closed) if self.is_executing => None,
            Err(WireError::Closed) => {
                Some(LaunchError::new(STEP, "its process ended before it became the command"))
            }
            Ok(Some(Received { message: StartReport::Failed(error), .. })) => Some(error),
            Ok(Some(Received { message: StartReport::Executing, .. })) => {
                Some(LaunchError::new(STEP, "its process reported a step twice"))
            }
            Err(error) => Some(LaunchError::new(STEP, error.to_string())),
        };
        self.report = None;
        let command = self.command;
        let Some(error) = failure else {
            let pid = self.pid.as_raw_nonzero().get().unsigned_abs();
            return Some(SpawnerEvent::Started { command, pid });
        };
        // Other processes inside can trace it until its exec, and make it report anything. It must not run on as a
        // command that is not known.
        let _ = proc::kill(self.pid, proc::sig::SIGKILL);
        Some(SpawnerEvent::NotStarted { command, error })
    }
}

#[derive(Debug)]
pub(super) struct Server {
    config: SpawnerConfig,
    socket: OwnedFd,
    unread: SendQueue,
    groups: Vec<OwnedFd>,
    signals: OwnedFd,
    alone: SingleThreaded,
    running: Vec<Forkling>,
    /// Whether some are left to be reaped in the next turn.
    has_more_dead: bool,
    buffer: Vec<u8>,
}

impl Server {
    pub(super) fn new(
        config: SpawnerConfig,
        socket: OwnedFd,
        groups: Vec<OwnedFd>,
        signals: OwnedFd,
        alone: SingleThreaded,
    ) -> Self {
        let buffer = vec![0; SpawnerRequest::MAX_BYTES];
        Self {
            config,
            socket,
            unread: SendQueue::new(MAX_UNREAD),
            groups,
            signals,
            alone,
            running: Vec::new(),
            has_more_dead: false,
            buffer,
        }
    }

    /// Until the supervisor is gone or sends something that cannot be decoded.
    pub(super) fn serve(mut self) -> ! {
        loop {
            match self.turn() {
                Ok(()) => {}
                Err(WireError::Closed) => proc::exit_now(0),
                // No command could be started or ended any more: the run has failed.
                Err(_) => proc::exit_now(1),
            }
        }
    }

    fn turn(&mut self) -> Result<(), WireError> {
        let room = if self.unread.wants_room() { PollFlags::OUT } else { PollFlags::empty() };
        let socket = PollFd::new(&self.socket, PollFlags::IN | room);
        let mut watched = vec![socket, PollFd::new(&self.signals, PollFlags::IN)];
        let reports = self.running.iter().filter_map(|command| command.report.as_ref());
        // Only that it is closed: whatever was reported, the exec or the end of the process follows. To be woken for the report
        // itself would delay the exec.
        watched.extend(reports.map(|report| PollFd::new(report, PollFlags::empty())));
        let retry = self.unread.next_retry();
        let retry = retry.map(|retry| retry.saturating_duration_since(Instant::now()));
        let patience = self.has_more_dead.then_some(Duration::ZERO).or(retry);
        let poll = match self.config.may_give_back_pages {
            true => proc::poll_for_work,
            false => proc::poll,
        };
        poll(&mut watched, patience).map_err(WireError::System)?;
        let is_asked = !(watched[0].revents() - PollFlags::OUT).is_empty();
        self.unread.flush(&self.socket)?;
        if is_asked {
            self.obey()?;
        }
        self.hear_commands()?;
        self.reap()
    }

    fn obey(&mut self) -> Result<(), WireError> {
        let Received { message, descriptors } =
            palisade_wire::receive_secret(&self.socket, &mut self.buffer)?;
        match message {
            SpawnerRequest::Signal { command, signal } => {
                if let Some(known) = self.running.iter().find(|known| known.command == command) {
                    known.signal(signal);
                }
                Ok(())
            }
            SpawnerRequest::SignalAll { signal } => {
                self.running.iter().for_each(|known| known.signal(signal));
                Ok(())
            }
            SpawnerRequest::Start(mut start) => {
                let command = start.id;
                let started = self.start(&start, &descriptors);
                // Later forks can be read from inside: no command's environment may be in them.
                start.wipe();
                match started {
                    Ok(forked) => {
                        self.running.push(forked);
                        Ok(())
                    }
                    Err(error) => self.tell(&SpawnerEvent::NotStarted { command, error }),
                }
            }
        }
    }

    fn start(&self, start: &CommandStart, descriptors: &[OwnedFd]) -> Result<Forkling> {
        let failed = |error: SysError| LaunchError::new(STEP, error.to_string());
        let streams: Streams<'_> = match descriptors {
            [terminal] if start.has_terminal => [terminal.as_fd(); 3],
            [stdin, stdout, stderr] if !start.has_terminal => {
                [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()]
            }
            _ => return Err(LaunchError::new(STEP, "it came without its streams")),
        };
        let (report, report_of_child) = socketpair().map_err(failed)?;
        match fork_by_clone(&self.alone).map_err(failed)? {
            Forked::Child => {
                let groups: Vec<BorrowedFd<'_>> =
                    self.groups.iter().map(|group| group.as_fd()).collect();
                child::become_command(&self.config, start, &streams, &groups, &report_of_child)
            }
            Forked::Parent { pid, .. } => Ok(Forkling::new(start.id, pid, report)),
        }
    }

    fn hear_commands(&mut self) -> Result<(), WireError> {
        let events: Vec<_> = self.running.iter_mut().filter_map(Forkling::hear).collect();
        events.iter().try_for_each(|event| self.tell(event))
    }

    /// Reaps children: until that is done, the kernel keeps the sandbox's pid 1 from ending.
    fn reap(&mut self) -> Result<(), WireError> {
        while let Ok(Some(_)) = proc::read_signalfd(&self.signals) {}
        self.has_more_dead = true;
        for _ in 0..REAPED_A_TURN {
            let Ok(Some(reaped)) = proc::wait_any(WaitFlags::NOHANG) else {
                self.has_more_dead = false;
                return Ok(());
            };
            let cause = match reaped.status {
                Status::Exited(code) => ExitCause::Code(code),
                Status::Signaled { signal, .. } => ExitCause::Signal(signal),
                Status::Stopped(_) | Status::Continued => continue,
            };
            // Its last message may have arrived together with its death.
            self.hear_commands()?;
            let Some(index) = self.running.iter().position(|known| known.pid == reaped.pid) else {
                continue;
            };
            let known = self.running.swap_remove(index);
            self.tell(&SpawnerEvent::Exited { command: known.command, cause })?;
        }
        Ok(())
    }

    fn tell(&mut self, event: &SpawnerEvent) -> Result<(), WireError> {
        self.unread.send(&self.socket, event, Vec::new())
    }
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
