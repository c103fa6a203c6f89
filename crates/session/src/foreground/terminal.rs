//! A command that has a terminal of its own, shown in ours: what it writes, what is typed here, and the size of the window.

use super::detach_keys::DetachKeys;
use super::left_modes::LeftModes;
use super::messages::{Heard, hear};
use super::{ForegroundSignals, Left, ask, unexpected};
use crate::error::{Result, SessionError};
use crate::sessions::NewRecording;
use palisade_launch::CommandId;
use palisade_record::cast::CastWriter;
use palisade_supervisor::SupervisorError;
use palisade_supervisor::control::client::Client;
use palisade_supervisor::control::interface::{
    AttachRole, Attached, OutputStart, OutputStream, Request, Response, StartCommand, TerminalSize,
};
use palisade_sys::proc::{self, PollFd, PollFlags};
use palisade_sys::tty::{self, SavedTermios};
use rustix::io::Errno;
use rustix::process::Signal;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;

/// Of what is typed, at a time.
const TYPED: usize = 4096;
/// Sent, and not taken by the command.
const MAX_UNTAKEN: usize = 8;
const INTERRUPT: u8 = 3;

/// What to attach to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedCommand {
    /// None: the one that was started last.
    pub command: Option<CommandId>,
    pub from: OutputStart,
    pub role: AttachRole,
}

/// The size of the window that this process is in, if it is in one.
pub fn window_size() -> Option<TerminalSize> {
    let streams = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    let sizes = streams.into_iter().filter(|stream| tty::isatty(stream));
    sizes.filter_map(|stream| tty::window_size(stream).ok()).map(TerminalSize::from).next()
}

/// Starts a command whose terminal the supervisor holds, and stays until it ends or the keys are pressed.
pub fn run_in_terminal(
    mut client: Client,
    start: StartCommand,
    keys: DetachKeys,
    recording: Option<NewRecording>,
) -> Result<Left> {
    let signals = ForegroundSignals::take()?;
    match ask(&mut client, &Request::StartCommand(start), &[])? {
        Response::Starting { command } => {
            let attached = Attached { command, cursor: 0, is_typist: true, has_terminal: true };
            let mut shown = Shown::new(client, attached, keys, signals)?;
            shown.recording = recording.map(|recording| recording.of_command(command));
            shown.run()
        }
        other => Err(unexpected(&other)),
    }
}

/// Shows a running command. `tell` gets what a person should know first.
pub fn attach(
    mut client: Client,
    watched: WatchedCommand,
    keys: DetachKeys,
    tell: &mut dyn FnMut(&str),
) -> Result<Left> {
    let signals = ForegroundSignals::take()?;
    let WatchedCommand { command, from, role } = watched;
    match ask(&mut client, &Request::Attach { command, from, role }, &[])? {
        Response::Attached(attached) => {
            if !attached.is_typist && role == AttachRole::Type && attached.has_terminal {
                tell("another terminal types there; this one only watches (Ctrl-C ends it)");
            }
            let mut shown = Shown::new(client, attached, keys, signals)?;
            if attached.is_typist {
                shown.resize()?;
            }
            shown.run()
        }
        other => Err(unexpected(&other)),
    }
}

/// Writes what a running command writes to our standard output, and to standard error what is told apart, until it ends. Nothing is typed, and our signals are ours.
pub fn follow(mut client: Client, watched: WatchedCommand) -> Result<Left> {
    let WatchedCommand { command, from, role } = watched;
    let Response::Attached(attached) =
        ask(&mut client, &Request::Attach { command, from, role }, &[])?
    else {
        return Ok(Left::Detached);
    };
    loop {
        proc::poll(&mut [PollFd::new(&client, PollFlags::IN)], None)?;
        match hear(&mut client, attached.command)? {
            Heard::Output(stream, bytes) => {
                if write_all(own(stream), &bytes).is_err() {
                    return Ok(Left::Detached);
                }
            }
            Heard::Left(left) => return Ok(left),
            Heard::Answer | Heard::Marker(_) | Heard::Nothing => {}
        }
    }
}

/// Our own stream for what a command wrote to this one.
fn own(stream: OutputStream) -> BorrowedFd<'static> {
    match stream {
        OutputStream::Stdout => rustix::stdio::stdout(),
        OutputStream::Stderr => rustix::stdio::stderr(),
    }
}

struct Shown {
    client: Client,
    attached: Attached,
    keys: DetachKeys,
    signals: ForegroundSignals,
    /// Before it became raw; None if our standard input is no terminal.
    saved: Option<SavedTermios>,
    reads_input: bool,
    untaken: usize,
    modes: LeftModes,
    /// Where the supervisor does not record it.
    recording: Option<CastWriter>,
}

impl Shown {
    fn new(
        client: Client,
        attached: Attached,
        keys: DetachKeys,
        signals: ForegroundSignals,
    ) -> Result<Self> {
        let input = rustix::stdio::stdin();
        let saved = match tty::isatty(input) && attached.has_terminal {
            true => Some(tty::make_raw(input)?),
            false => None,
        };
        // What somebody only watches needs no input, and a job in the background must not read.
        let reads_input = attached.is_typist || saved.is_some();
        let modes = LeftModes::default();
        let (untaken, recording) = (0, None);
        Ok(Self { client, attached, keys, signals, saved, reads_input, untaken, modes, recording })
    }

    fn run(mut self) -> Result<Left> {
        let left = self.run_until_left()?;
        let is_left_running = matches!(left, Left::Detached | Left::DetachedBy(_));
        if (is_left_running || left == Left::SessionEnded) && self.saved.is_some() {
            // A terminal that is gone needs none of it.
            let _ = write_all(rustix::stdio::stdout(), &self.modes.leave());
        }
        Ok(left)
    }

    fn run_until_left(&mut self) -> Result<Left> {
        loop {
            let mut watched = vec![
                PollFd::new(&self.client, PollFlags::IN),
                PollFd::new(&self.signals, PollFlags::IN),
            ];
            if self.reads_input && self.untaken < MAX_UNTAKEN {
                let input = rustix::stdio::stdin();
                watched.push(PollFd::from_borrowed_fd(input, PollFlags::IN));
            }
            proc::poll(&mut watched, None)?;
            let has_signal = !watched[1].revents().is_empty();
            let has_input = watched.get(2).is_some_and(|input| !input.revents().is_empty());
            if let Some(left) = self.show()? {
                return Ok(left);
            }
            if has_signal && let Some(left) = self.obey_signals()? {
                return Ok(left);
            }
            if has_input && let Some(left) = self.pass_input()? {
                return Ok(left);
            }
        }
    }

    fn show(&mut self) -> Result<Option<Left>> {
        loop {
            match hear(&mut self.client, self.attached.command)? {
                Heard::Output(stream, bytes) => {
                    self.modes.written(&bytes);
                    if let Some(recording) = &mut self.recording {
                        recording.output(&bytes);
                    }
                    write_all(own(stream), &bytes).map_err(|errno| {
                        SessionError::io("write to", Path::new("standard output"), errno.into())
                    })?;
                }
                Heard::Marker(text) => {
                    if let Some(recording) = &mut self.recording {
                        recording.marker(&text);
                    }
                }
                Heard::Answer => self.untaken = self.untaken.saturating_sub(1),
                Heard::Left(left) => return Ok(Some(left)),
                Heard::Nothing => return Ok(None),
            }
        }
    }

    fn obey_signals(&mut self) -> Result<Option<Left>> {
        while let Some(signal) = self.signals.next()? {
            if signal == Signal::WINCH.as_raw() {
                if self.attached.is_typist {
                    self.resize()?;
                }
                continue;
            }
            return Ok(Some(Left::DetachedBy(signal)));
        }
        Ok(None)
    }

    fn resize(&mut self) -> Result<()> {
        let Some(size) = window_size() else { return Ok(()) };
        if let Some(recording) = &mut self.recording {
            recording.resize(size.columns, size.rows);
        }
        self.send(&Request::ResizeTerminal { command: self.attached.command, size })
    }

    fn pass_input(&mut self) -> Result<Option<Left>> {
        let mut typed = [0; TYPED];
        let count = match rustix::io::read(rustix::stdio::stdin(), &mut typed) {
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(None),
            // Our terminal hung up.
            Err(_) => 0,
        };
        if count == 0 {
            self.reads_input = false;
            return Ok(self.saved.is_some().then_some(Left::Detached));
        }
        let typed = &typed[..count];
        if self.saved.is_none() {
            return self.type_in(typed.to_vec());
        }
        let Some(bytes) = self.keys.filter(typed) else { return Ok(Some(Left::Detached)) };
        if !self.attached.is_typist {
            return Ok(bytes.contains(&INTERRUPT).then_some(Left::Detached));
        }
        self.type_in(bytes)
    }

    fn type_in(&mut self, bytes: Vec<u8>) -> Result<Option<Left>> {
        if !bytes.is_empty() {
            self.send(&Request::Input { command: self.attached.command, bytes })?;
        }
        Ok(None)
    }

    fn send(&mut self, request: &Request) -> Result<()> {
        self.untaken += 1;
        Ok(self.client.send(request, &[]).map_err(SupervisorError::from)?)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some(saved) = &self.saved {
            // If the terminal is gone, there is nothing to restore.
            let _ = tty::restore(rustix::stdio::stdin(), saved);
        }
    }
}

fn write_all(output: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(output, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut room = [PollFd::from_borrowed_fd(output.as_fd(), PollFlags::OUT)];
                proc::poll(&mut room, None).map_err(|error| error.errno)?;
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
