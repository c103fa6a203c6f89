//! `sandbox attach`: shows a command of a session in this terminal, with what it wrote before, and types into it.

use super::{connect, exit_code};
use crate::output;
use clap::Args;
use palisade_session::foreground::{self, DetachKeys, WatchedCommand};
use palisade_session::supervise::interface::{AttachRole, CommandId, OutputStart};
use std::process::ExitCode;

const DETAILS: &str = "\
One terminal types, and any number of others watch. What the command wrote last, up to 1 MiB, is shown first. The size
of the command's terminal is that of the one that types. Ctrl-P Ctrl-Q leaves the command running.

Examples:
  sandbox attach work
  sandbox attach --watch work           only look
  sandbox attach --command 3 work       `sandbox inspect work` lists the commands

The exit code is the command's own; 0 after detaching.";

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct Attach {
    /// Only watch, even if nobody else types
    #[arg(long, short)]
    watch: bool,

    /// Show only what comes from now on
    #[arg(long)]
    no_replay: bool,

    /// The number of the command [default: the one that was started last]
    #[arg(long, value_name = "NUMBER")]
    command: Option<u64>,

    /// The keys that leave the command running
    #[arg(long, value_name = "KEYS", default_value = "ctrl-p,ctrl-q")]
    detach_keys: DetachKeys,

    /// The session, by its id, a part of it or its name
    #[arg(value_name = "SESSION")]
    sid: String,
}

impl Attach {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let (client, record) = connect(&self.sid)?;
        let watched = WatchedCommand {
            command: self.command.map(CommandId),
            from: if self.no_replay { OutputStart::Now } else { OutputStart::Kept },
            role: if self.watch { AttachRole::Watch } else { AttachRole::Type },
        };
        let mut tell = |note: &str| output::note(note);
        let left = foreground::attach(client, watched, self.detach_keys, &mut tell)?;
        Ok(ExitCode::from(exit_code(&left, record.label())))
    }
}
