//! The caller's terminal and the command's: stopping and going on, whose it is, its size.

use crate::control::interface::{Request, TerminalSize};
use crate::error::{Result, SupervisorError};
use crate::supervisor::Supervisor;
use crate::terminal::HostTerminal;
use rustix::fs::OFlags;
use rustix::process::Signal;
use std::time::Duration;

/// A command that stops so soon after it was told to stops for that.
const STOP_FOLLOWS: Duration = Duration::from_secs(1);

impl Supervisor<'_> {
    /// Stops ourselves as the command was stopped, so that the caller's shell sees a stopped job.
    /// When it goes on, SIGCONT is waiting for us and does the rest.
    pub(crate) fn suspend(&mut self) -> Result<()> {
        // A command must not be able to stop our clock: only who sits at the terminal can, and who
        // may send us signals.
        let asked =
            self.own_client.stop_asked.take().is_some_and(|asked| asked.elapsed() < STOP_FOLLOWS);
        let at_terminal = self.display.terminal.as_ref().is_some_and(HostTerminal::is_foreground);
        if !(asked || at_terminal) || !a_shell_could_continue_us() {
            return Ok(self.running.resume()?);
        }
        if let Some(terminal) = &mut self.display.terminal {
            terminal.give_back();
        }
        // The rest of the pipeline stops too, as it would have at a real Ctrl-Z. Ours is blocked, and
        // SIGCONT discards it.
        if !asked {
            palisade_sys::proc::kill_own_group(Signal::TSTP.as_raw())?;
        }
        Ok(palisade_sys::proc::kill(rustix::process::getpid(), Signal::STOP.as_raw())?)
    }

    /// Whether Ctrl-C is for the command itself and for nothing else: its own group is in the foreground of
    /// a terminal in its plain mode. A shell's job, an editor and a prompt that edits lines are not that, and
    /// to them a second Ctrl-C means something else.
    pub(crate) fn command_waits_for_lines(&self) -> bool {
        let Some(pty) = self.running.pty() else { return false };
        let plain = rustix::termios::LocalModes::ISIG | rustix::termios::LocalModes::ICANON;
        rustix::termios::tcgetattr(pty).is_ok_and(|modes| modes.local_modes.contains(plain))
            && self.running.command().is_some_and(|command| {
                palisade_sys::proc::foreground_group(pty).is_ok_and(|group| group.is(command))
            })
    }

    pub(crate) fn resize(&mut self) -> Result<()> {
        let Some(terminal) = &mut self.display.terminal else { return Ok(()) };
        self.display.relay.resize(terminal.size());
        if let (Some(recording), Some(size)) = (&mut self.display.recording, terminal.window_size())
        {
            recording.resize(size.ws_col, size.ws_row);
        }
        self.asking.resized(terminal, &mut self.display.relay);
        let Some(size) = terminal.window_size().map(TerminalSize::from) else { return Ok(()) };
        self.request_for_each(|command| Request::ResizeTerminal { command, size })
    }

    /// Nothing of ours stays in the terminal, and what the command wrote meanwhile is shown.
    pub(crate) fn uncover_terminal(&mut self) {
        if let Some(terminal) = &mut self.display.terminal {
            terminal.uncover_now();
            self.display.relay.release(terminal.output());
        }
    }

    /// A pty that is full must not hold up signals and clocks; its other holders are gone.
    pub(crate) fn accept_pty(&self) -> Result<()> {
        let Some(pty) = self.running.pty() else { return Ok(()) };
        let flags = rustix::fs::fcntl_getfl(pty).map_err(SupervisorError::Terminal)?;
        rustix::fs::fcntl_setfl(pty, flags | OFlags::NONBLOCK)
            .map_err(SupervisorError::Terminal)?;
        self.display.terminal.as_ref().map_or(Ok(()), |terminal| terminal.introduce(pty))
    }
}

/// Whether somebody with job control is there to send SIGCONT. In an orphaned process group (the
/// only program of a terminal window) the kernel ignores Ctrl-Z, and so do we.
fn a_shell_could_continue_us() -> bool {
    use palisade_sys::proc::{own_group, session_of};
    let Ok(session) = session_of(None) else { return false };
    let parent_session =
        rustix::process::getppid().and_then(|parent| session_of(Some(parent)).ok());
    own_group() != session && parent_session == Some(session)
}
