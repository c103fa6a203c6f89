//! `sandbox logs`: what a command of a session wrote, also when it is over.

use super::find;
use crate::output;
use anyhow::{Context as _, bail};
use clap::Args;
use palisade_session::foreground::{self, WatchedCommand};
use palisade_session::sessions::{OutputReader, SessionDirectory, logged_commands};
use palisade_session::supervise::interface::{AttachRole, CommandId, OutputStart, OutputStream};
use std::io::{self, Write as _};
use std::process::ExitCode;

const DETAILS: &str = "\
Output of commands that run in the background or in a terminal is kept: 4 MiB of each, for the last 64 commands of a
session. Bytes are counted from the first that the command wrote. Where its two outputs were kept apart, what it wrote to standard
error comes on standard error. What was dropped is said there, too.

Examples:
  sandbox logs work
  sandbox logs --follow work
  sandbox logs --since 1048576 work     from this byte on
  sandbox logs --supervisor work        what the supervisor had to say";

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct Logs {
    /// Go on with what the command writes, until it ends
    #[arg(long, short)]
    follow: bool,

    /// Begin with this byte
    #[arg(long, value_name = "CURSOR", default_value_t = 0)]
    since: u64,

    /// The number of the command [default: the one that was started last]
    #[arg(long, value_name = "NUMBER")]
    command: Option<u64>,

    /// Print the notes of the session's supervisor instead
    #[arg(long, conflicts_with_all = ["follow", "since", "command"])]
    supervisor: bool,

    /// The session, by its id, a part of it or its name
    #[arg(value_name = "SESSION")]
    sid: String,
}

impl Logs {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let (directory, _) = find(&self.sid)?;
        if self.supervisor {
            let path = directory.path().join("supervisor.log");
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            output::print_lines(text.lines())?;
            return Ok(ExitCode::SUCCESS);
        }
        let Some(command) = self.wanted(&directory)? else {
            bail!("session {} has no command whose output is kept", directory.id());
        };
        let mut reader = OutputReader::new(&directory, command, self.since);
        loop {
            let expected = reader.cursor();
            let Some(chunk) = reader.read()? else { break };
            if chunk.cursor > expected {
                output::note(&format!("{} bytes were dropped", chunk.cursor - expected));
            }
            for (_, stream, part) in chunk.parts() {
                match write(stream, part) {
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                        return Ok(ExitCode::SUCCESS);
                    }
                    written => written?,
                }
            }
        }
        if self.follow && directory.is_alive() {
            follow(&directory, command, reader.cursor())?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn wanted(&self, directory: &SessionDirectory) -> anyhow::Result<Option<CommandId>> {
        let logged = logged_commands(directory)?;
        match self.command.map(CommandId) {
            Some(command) if !logged.contains(&command) => {
                let known: Vec<_> = logged.iter().map(|it| it.0.to_string()).collect();
                bail!("no output of command {} is kept, only of {}", command.0, known.join(", "))
            }
            Some(command) => Ok(Some(command)),
            None => Ok(logged.last().copied()),
        }
    }
}

fn write(stream: OutputStream, bytes: &[u8]) -> io::Result<()> {
    match stream {
        OutputStream::Stdout => {
            let mut stdout = io::stdout().lock();
            stdout.write_all(bytes)?;
            stdout.flush()
        }
        OutputStream::Stderr => io::stderr().lock().write_all(bytes),
    }
}

/// What comes after the log, from the supervisor itself.
fn follow(directory: &SessionDirectory, command: CommandId, from: u64) -> anyhow::Result<()> {
    let Ok(client) = foreground::connect(directory) else { return Ok(()) };
    let watched = WatchedCommand {
        command: Some(command),
        from: OutputStart::Byte(from),
        role: AttachRole::Watch,
    };
    // A command that has ended cannot be watched, and has said everything.
    match foreground::follow(client, watched) {
        Ok(_) | Err(palisade_session::SessionError::SessionRefused { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
