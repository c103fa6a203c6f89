//! The process's own client of the control interface: its signals, and the size of its terminal, become requests as any
//! client could make them. What is a shell's business and no client's, stopping and being killed, is done here.

use crate::control::interface::{Grace, Request};
use crate::error::Result;
use crate::signals::{self, Signals, Wish};
use crate::supervisor::{Killed, Supervisor};
use palisade_launch::CommandId;
use palisade_record::{EventKind, SignalForwarded};
use rustix::process::Signal;
use std::time::Instant;

/// How many signals are recorded one by one; more are only counted.
const MAX_RECORDED: usize = 200;

#[derive(Debug)]
pub(crate) struct OwnClient {
    pub(crate) signals: Signals,
    /// Signals that came from outside and went in.
    pub(crate) forwarded: Vec<SignalForwarded>,
    /// Signals beyond those in the list.
    pub(crate) forwarded_beyond: u64,
    /// When the command was told to stop, last.
    pub(crate) stop_asked: Option<Instant>,
}

impl OwnClient {
    pub(crate) fn new(signals: Signals) -> Self {
        Self { signals, forwarded: Vec::new(), forwarded_beyond: 0, stop_asked: None }
    }
}

impl Supervisor<'_> {
    pub(crate) fn obey(&mut self, wish: Wish) -> Result<()> {
        match wish {
            Wish::Forward(signal) => {
                self.note(signal, false);
                self.signal_commands(signal)
            }
            Wish::End(signal) => {
                self.note(signal, true);
                self.request(Request::End { signal: signal.as_raw(), grace: Grace::OfSandbox })
            }
            Wish::EndAtOnce(signal) => {
                self.note(signal, true);
                self.kill(Killed::Asked)
            }
            Wish::Resize => self.resize(),
            Wish::Continue => {
                self.note(Signal::CONT, false);
                if let Some(terminal) = &mut self.display.terminal {
                    terminal.take_again()?;
                }
                self.resize()?;
                self.signal_commands(Signal::CONT)
            }
        }
    }

    fn signal_commands(&mut self, signal: Signal) -> Result<()> {
        let signal = signal.as_raw();
        self.request_for_each(|command| Request::Signal { command, signal })
    }

    pub(crate) fn request_for_each(
        &mut self,
        request: impl Fn(CommandId) -> Request,
    ) -> Result<()> {
        let commands = self.control.commands.ids();
        commands.into_iter().try_for_each(|command| self.request(request(command)))
    }

    /// A request of our own. One that is refused has become pointless: its command has no terminal, or has ended.
    pub(crate) fn request(&mut self, request: Request) -> Result<()> {
        self.handle(request, Vec::new()).map(drop)
    }

    fn note(&mut self, signal: Signal, fatal: bool) {
        let own = &mut self.own_client;
        if own.forwarded.len() >= MAX_RECORDED {
            own.forwarded_beyond += 1;
            return;
        }
        let name = signals::name(signal).to_owned();
        let noted = SignalForwarded { signal: signal.as_raw(), name, fatal };
        own.forwarded.push(noted.clone());
        self.unlogged.push(EventKind::SignalForwarded(noted));
    }
}
