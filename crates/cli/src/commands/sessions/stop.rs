//! `sandbox stop` and `sandbox kill`: end a session, with everything in it.

use super::{Lasting, find};
use crate::output;
use anyhow::bail;
use clap::Args;
use palisade_session::foreground;
use palisade_session::sessions::SessionDirectory;
use palisade_session::supervise::interface::Grace;
use rustix::process::Signal;
use std::process::ExitCode;
use std::time::Duration;

/// What a supervisor may take beyond the grace time, to write its records.
const LAST_STEPS: Duration = Duration::from_secs(10);
/// Longer than any grace time of a policy that somebody would wait for.
const GRACE_OF_POLICY: Duration = Duration::from_secs(3600);

#[derive(Args, Debug)]
#[command(after_help = "\
Every command gets the signal, and SIGKILL if it has not ended when the grace time is over. Returns when nothing of
the session is left. Its record, its output and its logs stay until `sandbox rm`.

Examples:
  sandbox stop work
  sandbox stop --grace 1s --signal INT work")]
pub(crate) struct Stop {
    /// How long commands may take to end [default: the session's own, see `sandbox run --grace`]
    #[arg(long, value_name = "TIME")]
    grace: Option<Lasting>,

    /// What the commands are asked with, by name or number
    #[arg(long, short, value_name = "SIGNAL", default_value = "TERM")]
    signal: String,

    /// The sessions, by id, a part of it or name
    #[arg(value_name = "SESSION", required = true)]
    sid: Vec<String>,
}

impl Stop {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let signal = number_of(&self.signal)?;
        let (grace, patience) = match self.grace {
            Some(grace) => (Grace::Milliseconds(grace.milliseconds()), grace.0),
            None => (Grace::OfSandbox, GRACE_OF_POLICY),
        };
        each(&self.sid, |directory| {
            match foreground::end(directory, signal, grace, patience + LAST_STEPS)? {
                true => Ok(()),
                false => bail!(
                    "session {} has not ended; `sandbox kill {}` ends it",
                    directory.id(),
                    directory.id()
                ),
            }
        })
    }
}

#[derive(Args, Debug)]
#[command(after_help = "\
Nothing in the session is asked first. If its supervisor does not answer, it is killed, too, and the kernel ends the
rest.

Examples:
  sandbox kill work")]
pub(crate) struct Kill {
    /// The sessions, by id, a part of it or name
    #[arg(value_name = "SESSION", required = true)]
    sid: Vec<String>,
}

impl Kill {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        each(&self.sid, kill)
    }
}

/// Ends it without asking anybody in it.
pub(super) fn kill(directory: &SessionDirectory) -> anyhow::Result<()> {
    match foreground::kill(directory)? {
        true => Ok(()),
        false => bail!("session {} could not be killed", directory.id()),
    }
}

/// Does it to each, says what went wrong with which, and goes on with the others.
pub(super) fn each(
    named: &[String],
    mut act: impl FnMut(&SessionDirectory) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for named in named {
        let done = find(named).map_err(anyhow::Error::from).and_then(|(directory, record)| {
            if record.is_over() || !directory.is_alive() {
                bail!("session {} is not running", directory.id());
            }
            act(&directory)
        });
        if let Err(error) = done {
            output::complain(&error);
            code = ExitCode::from(crate::OWN_FAILURE);
        }
    }
    Ok(code)
}

/// `TERM`, `SIGTERM` and `15` are the same.
fn number_of(text: &str) -> anyhow::Result<i32> {
    let name = text.to_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let signal = match name {
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        "QUIT" => Signal::QUIT,
        "KILL" => Signal::KILL,
        "USR1" => Signal::USR1,
        "USR2" => Signal::USR2,
        "TERM" => Signal::TERM,
        other => match other.parse() {
            Ok(number) if (1..=64).contains(&number) => return Ok(number),
            _ => bail!(
                "--signal {text}: no such signal; write TERM, INT, HUP, QUIT, KILL, USR1, USR2 or a number"
            ),
        },
    };
    Ok(signal.as_raw())
}
