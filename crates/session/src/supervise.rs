//! Watches one running sandbox from outside: its messages, our signals, the terminal, the clock.
//!
//! One poll loop, no threads. It never runs anything of the command's and never waits on it without
//! also listening for signals.

use crate::error::SessionError;
use crate::incidents::{Incidents, Verdict};
use crate::relay::{End, Ends, Relay, Typed};
use crate::signals::{self, Signals, Wish};
use crate::terminal::HostTerminal;
use palisade_launch::{Checked, Ending, FromInit, News, Running, Usage};
use palisade_record::Kind;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::OFlags;
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// How long the command may take to end after a fatal signal.
const GRACE: Duration = Duration::from_secs(10);
/// How often to look whether the terminal is ours by now. Shells tell a stopped job that it comes to
/// the foreground, and a running one not; nor does a pager tell when it is done.
const TERMINAL_CHECK: Duration = Duration::from_millis(200);

/// A signal that came from outside and went in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Forwarded {
    pub(crate) number: i32,
    pub(crate) name: &'static str,
    pub(crate) fatal: bool,
}

/// Why the supervisor itself ended the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Killed {
    /// The wall-time limit.
    Timeout,
    /// A fatal signal, and the grace time is over or it came twice.
    Asked,
    /// Too many suspicious system calls.
    Suspicious,
}

/// How it all ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None` if pid 1 went without saying: it was killed.
    pub(crate) ending: Option<Ending>,
    pub(crate) killed: Option<Killed>,
    pub(crate) forwarded: Vec<Forwarded>,
    pub(crate) usage: Usage,
    pub(crate) incidents: Incidents,
}

/// A running sandbox and everything outside that it needs.
#[derive(Debug)]
pub(crate) struct Watch {
    running: Running,
    signals: Signals,
    terminal: Option<HostTerminal>,
    relay: Relay,
    /// When the time limit is over.
    limit: Option<Instant>,
    /// When the grace time after a fatal signal is over.
    grace: Option<Instant>,
    killed: Option<Killed>,
    forwarded: Vec<Forwarded>,
    incidents: Incidents,
    /// What of it is yet to be logged.
    unlogged: Vec<Kind>,
    /// Whether the command runs, and the terminal is its.
    started: bool,
}

/// What one turn of the loop brought.
enum Turn {
    Message(FromInit),
    /// Pid 1 is gone.
    Gone,
    Nothing,
}

impl Watch {
    pub(crate) fn new(
        running: Running,
        signals: Signals,
        terminal: Option<HostTerminal>,
        limit: Option<Instant>,
        incidents: Incidents,
    ) -> Self {
        let typed = terminal.as_ref().map_or(Typed::Keys, HostTerminal::typed);
        Self {
            running,
            signals,
            terminal,
            relay: Relay::new(typed),
            limit,
            grace: None,
            killed: None,
            forwarded: Vec::new(),
            incidents,
            unlogged: Vec::new(),
            started: false,
        }
    }

    /// Until the command's exec. After an error nothing of the command ran.
    pub(crate) fn until_started(&mut self) -> Result<Checked, SessionError> {
        let mut checked = Checked::default();
        loop {
            match self.turn()? {
                Turn::Message(FromInit::Terminal) => self.accept_pty()?,
                Turn::Message(FromInit::Checked(seen)) => checked = seen,
                Turn::Message(FromInit::Started) => {
                    self.started = true;
                    return Ok(checked);
                }
                Turn::Message(FromInit::Failed(error)) => return Err(error.into()),
                Turn::Message(FromInit::Stopped(_) | FromInit::Exited(_)) | Turn::Gone => {
                    return Err(match self.killed {
                        Some(Killed::Timeout) => SessionError::TimedOut,
                        Some(Killed::Asked | Killed::Suspicious) => SessionError::Cancelled,
                        None => SessionError::InitVanished,
                    });
                }
                Turn::Nothing => {}
            }
        }
    }

    /// Until nothing of the sandbox is left. `log` is given what belongs in the audit log as it comes.
    pub(crate) fn until_ended(
        mut self,
        log: &mut dyn FnMut(Vec<Kind>) -> Result<(), SessionError>,
    ) -> Result<Ended, SessionError> {
        let mut ending = None;
        loop {
            let turn = self.turn()?;
            if !self.unlogged.is_empty() {
                log(std::mem::take(&mut self.unlogged))?;
            }
            match turn {
                Turn::Message(FromInit::Exited(how)) => {
                    ending = Some(how);
                    self.limit = None;
                }
                Turn::Message(FromInit::Stopped(_)) => self.suspend()?,
                Turn::Message(_) | Turn::Nothing => {}
                Turn::Gone => break,
            }
        }
        self.drain()?;
        // What was told before the last of them died.
        self.hear_broker()?;
        log(std::mem::take(&mut self.unlogged))?;
        if let Some(terminal) = &mut self.terminal {
            terminal.give_back();
        }
        let usage = self.running.wait()?;
        let (killed, forwarded, incidents) = (self.killed, self.forwarded, self.incidents);
        Ok(Ended { ending, killed, forwarded, usage, incidents })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.running.pid()
    }

    fn turn(&mut self) -> Result<Turn, SessionError> {
        self.enforce_clock()?;
        if self.started {
            self.take_terminal()?;
        }
        let control = self.running.control();
        let mut set = vec![
            PollFd::from_borrowed_fd(control, PollFlags::IN),
            PollFd::from_borrowed_fd(self.signals.waiting(), PollFlags::IN),
        ];
        set.extend(self.running.broker().map(|news| PollFd::from_borrowed_fd(news, PollFlags::IN)));
        let fixed = set.len();
        let mut order = Vec::with_capacity(3);
        // Not before the terminal is raw: a cooked one would end every line with a second CR.
        let ends = ends(&self.running, self.terminal.as_ref()).filter(|_| self.started);
        if let Some(ends) = &ends {
            self.relay.interests(ends, &mut set, &mut order);
        }
        palisade_sys::proc::poll(&mut set, self.patience())?;
        let ready: Vec<PollFlags> = set.iter().map(PollFd::revents).collect();
        if let Some(ends) = ends {
            // The keys may have become somebody else's while we waited.
            let input =
                ends.input.filter(|_| self.terminal.as_ref().is_some_and(HostTerminal::may_read));
            serve(&mut self.relay, &order, &ready[fixed..], &Ends { input, ..ends });
        }
        if !ready[1].is_empty() {
            while let Some(wish) = self.signals.next()? {
                self.obey(wish)?;
            }
        }
        if ready[2..fixed].iter().any(|news| !news.is_empty()) {
            self.hear_broker()?;
        }
        if ready[0].is_empty() {
            return Ok(Turn::Nothing);
        }
        Ok(self.running.receive()?.map_or(Turn::Gone, Turn::Message))
    }

    /// Everything the broker has said so far.
    fn hear_broker(&mut self) -> Result<(), SessionError> {
        loop {
            let message = match self.running.news()? {
                News::Message(message) => message,
                News::None => return Ok(()),
                // Without it the command could write nothing more, and nobody would know why.
                News::Gone => return Err(SessionError::BrokerVanished),
            };
            match self.incidents.hear(message, &mut |kind| self.unlogged.push(kind)) {
                Verdict::GoOn => {}
                Verdict::TooMany => self.kill(Killed::Suspicious)?,
                Verdict::Failed(why) => return Err(SessionError::BrokerFailed(why)),
            }
        }
    }

    /// Shows what the inside wrote before it ended. Once pid 1 is dead nothing more is written, so
    /// the first time nothing is ready is the end.
    fn drain(&mut self) -> Result<(), SessionError> {
        loop {
            let Some(ends) = ends(&self.running, self.terminal.as_ref()) else { return Ok(()) };
            let pidfd = self.running.pidfd();
            let dead = {
                let mut set = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
                palisade_sys::proc::poll(&mut set, Some(Duration::ZERO))? > 0
            };
            let mut set = vec![PollFd::from_borrowed_fd(self.signals.waiting(), PollFlags::IN)];
            if !dead {
                set.push(PollFd::from_borrowed_fd(pidfd, PollFlags::IN));
            }
            let fixed = set.len();
            let mut order = Vec::with_capacity(3);
            let ends = Ends { input: None, ..ends };
            self.relay.interests(&ends, &mut set, &mut order);
            let waits = !dead || self.relay.owes_output();
            let ready = palisade_sys::proc::poll(&mut set, (!waits).then_some(Duration::ZERO))?;
            let flags: Vec<PollFlags> = set.iter().map(PollFd::revents).collect();
            serve(&mut self.relay, &order, &flags[fixed..], &ends);
            if self.relay.is_finished() || (dead && ready == 0) {
                return Ok(());
            }
            if !flags[0].is_empty() {
                while let Some(wish) = self.signals.next()? {
                    // A terminal that is stopped (Ctrl-S) must not keep us from ending.
                    if matches!(wish, Wish::End(_) | Wish::EndAtOnce(_)) {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn obey(&mut self, wish: Wish) -> Result<(), SessionError> {
        match wish {
            Wish::Forward(signal) => self.forward(signal, false),
            Wish::End(signal) => {
                self.grace.get_or_insert_with(|| Instant::now() + GRACE);
                self.forward(signal, true)
            }
            Wish::EndAtOnce(signal) => {
                self.note(signal, true);
                self.kill(Killed::Asked)
            }
            Wish::Resize => self.resize(),
            Wish::Continue => {
                self.resize()?;
                Ok(self.running.resume()?)
            }
        }
    }

    fn forward(&mut self, signal: Signal, fatal: bool) -> Result<(), SessionError> {
        self.note(signal, fatal);
        Ok(self.running.signal(signal.as_raw())?)
    }

    fn note(&mut self, signal: Signal, fatal: bool) {
        let (number, name) = (signal.as_raw(), signals::name(signal));
        self.forwarded.push(Forwarded { number, name, fatal });
    }

    /// Stops ourselves as the command was stopped, so that the caller's shell sees a stopped job.
    /// When it goes on, SIGCONT is waiting for us and does the rest.
    fn suspend(&mut self) -> Result<(), SessionError> {
        // A command must not be able to stop our clock: only who sits at the terminal can.
        let at_terminal = self.terminal.as_ref().is_some_and(HostTerminal::is_foreground);
        if !at_terminal || !a_shell_could_continue_us() {
            return Ok(self.running.resume()?);
        }
        if let Some(terminal) = &mut self.terminal {
            terminal.give_back();
        }
        // The rest of the pipeline stops too, as it would have at a real Ctrl-Z. Ours is blocked, and
        // SIGCONT discards it.
        let group = rustix::process::getpgrp();
        palisade_sys::proc::kill_group(group, Signal::TSTP.as_raw())?;
        Ok(palisade_sys::proc::kill(rustix::process::getpid(), Signal::STOP.as_raw())?)
    }

    fn take_terminal(&mut self) -> Result<(), SessionError> {
        match (&mut self.terminal, self.running.pty()) {
            (Some(terminal), Some(_)) => terminal.take(),
            _ => Ok(()),
        }
    }

    fn resize(&self) -> Result<(), SessionError> {
        match (&self.terminal, self.running.pty()) {
            (Some(terminal), Some(pty)) => terminal.pass_size_to(pty),
            _ => Ok(()),
        }
    }

    /// A pty that is full must not hold up signals and clocks; its other holders are gone.
    fn accept_pty(&self) -> Result<(), SessionError> {
        let Some(pty) = self.running.pty() else { return Ok(()) };
        let flags = rustix::fs::fcntl_getfl(pty).map_err(SessionError::Terminal)?;
        rustix::fs::fcntl_setfl(pty, flags | OFlags::NONBLOCK).map_err(SessionError::Terminal)?;
        self.terminal.as_ref().map_or(Ok(()), |terminal| terminal.introduce(pty))
    }

    fn kill(&mut self, why: Killed) -> Result<(), SessionError> {
        self.killed.get_or_insert(why);
        self.limit = None;
        self.grace = None;
        Ok(self.running.kill()?)
    }

    fn enforce_clock(&mut self) -> Result<(), SessionError> {
        let now = Instant::now();
        let over = |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        if over(self.limit) {
            self.kill(Killed::Timeout)?;
        } else if over(self.grace) {
            self.kill(Killed::Asked)?;
        }
        Ok(())
    }

    fn patience(&self) -> Option<Duration> {
        let deadline = [self.limit, self.grace].into_iter().flatten().min();
        let until_deadline =
            deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let until_look = self
            .terminal
            .as_ref()
            .filter(|terminal| self.running.pty().is_some() && terminal.awaits_keys())
            .map(|_| TERMINAL_CHECK);
        [until_deadline, until_look].into_iter().flatten().min()
    }
}

fn ends<'fd>(running: &'fd Running, terminal: Option<&'fd HostTerminal>) -> Option<Ends<'fd>> {
    let terminal = terminal?;
    let pty = running.pty()?;
    let input = terminal.may_read().then(|| terminal.input());
    Some(Ends { input, output: terminal.output(), pty })
}

fn serve(relay: &mut Relay, order: &[End], ready: &[PollFlags], ends: &Ends<'_>) {
    for (end, ready) in order.iter().zip(ready) {
        if !ready.is_empty() {
            relay.serve(*end, *ready, ends);
        }
    }
}

/// Whether somebody with job control is there to send SIGCONT. In an orphaned process group (the
/// only program of a terminal window) the kernel ignores Ctrl-Z, and so do we.
fn a_shell_could_continue_us() -> bool {
    let Ok(session) = rustix::process::getsid(None) else { return false };
    let parent_session =
        rustix::process::getppid().and_then(|parent| rustix::process::getsid(Some(parent)).ok());
    rustix::process::getpgrp() != session && parent_session == Some(session)
}
