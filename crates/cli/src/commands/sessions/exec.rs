//! `sandbox exec`: a further command in a session, as if it ran here.

use super::create::USUAL_SIZE;
use super::{exit_code, find, find_for_command};
use crate::output;
use anyhow::bail;
use clap::Args;
use palisade_record::SpanContext;
use palisade_record::cast::{CastHeader, CastWriter};
use palisade_record::redact;
use palisade_session::AppDirs;
use palisade_session::foreground::{
    self, DetachKeys, run_in_terminal, run_with_streams, window_size,
};
use palisade_session::quarantine;
use palisade_session::sessions::{NewRecording, Recorded, SessionSummary};
use palisade_session::supervise::client::Client;
use palisade_session::supervise::interface::{
    CommandKind, CommandStreams, Environment, HeldStreams, Request, Response, StartCommand,
};
use palisade_session::transaction;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const DETAILS: &str = "\
The command has the streams of this process themselves, so it reads and writes at full speed. A terminal among them
is not passed on: what the command writes is relayed, or it gets a terminal of its own with -t. Signals are forwarded.
If this process is killed, the command gets SIGHUP; with -t it goes on, and `sandbox attach` shows it again.

Examples:
  sandbox exec work -- make test
  sandbox exec -t work -- bash               a shell; Ctrl-P Ctrl-Q leaves it running
  tar c . | sandbox exec -i work -- tar x    with our standard input
  sandbox exec -d work -- ./server           in the background; `sandbox logs work` shows what it writes

The exit code is the command's own; 125 sandbox failed, 126 not executable, 127 not found, 128+N killed by
signal N.";

#[derive(Args, Debug)]
#[cfg_attr(test, derive(PartialEq))]
#[command(after_help = DETAILS)]
pub(crate) struct Exec {
    /// Pass on our standard input; otherwise there is nothing to read
    #[arg(long, short)]
    interactive: bool,

    /// Give the command a terminal, shown in ours
    #[arg(long, short)]
    tty: bool,

    /// Do not wait for the command; print its number
    #[arg(long, short, conflicts_with = "interactive")]
    detach: bool,

    /// Set a variable, or pass yours on
    #[arg(long, short, value_name = "NAME[=VALUE]")]
    env: Vec<OsString>,

    /// Working directory of the command [default: that of the session]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// With -t: the keys that leave the command running
    #[arg(long, value_name = "KEYS", default_value = "ctrl-p,ctrl-q")]
    detach_keys: DetachKeys,

    /// Record what the command writes, for `sandbox replay`; a session that was made with --record always does
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    record: Option<OsString>,

    /// The session, by its id, a part of it or its name
    #[arg(value_name = "SESSION")]
    sid: String,

    /// The command and its arguments, after `--`
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// How a command meets this process.
#[derive(Clone, Debug)]
pub(crate) enum Meeting {
    /// It has our streams.
    Streams { reads_input: bool },
    /// It has a terminal of its own, shown in ours.
    Terminal(DetachKeys),
}

impl Exec {
    /// The line of most programs: `exec [-i] SESSION -- COMMAND`. None for any other, which the definitions of all options are
    /// for: to build them takes about as long as the rest of what this process does until its command runs.
    pub(crate) fn of_usual_line(line: &[OsString]) -> Option<Self> {
        let mut words = line.iter();
        // By that name all words are another program's.
        let is_ours = !words.next()?.as_encoded_bytes().ends_with(b"bwrap");
        if !is_ours || words.next()? != "exec" {
            return None;
        }
        let mut interactive = false;
        let mut word = words.next()?;
        if word == "-i" || word == "--interactive" {
            interactive = true;
            word = words.next()?;
        }
        let sid = word.to_str().filter(|sid| !sid.is_empty() && !sid.starts_with('-'))?;
        if words.next()? != "--" {
            return None;
        }
        let command: Vec<OsString> = words.cloned().collect();
        if command.is_empty() {
            return None;
        }
        Some(Self {
            interactive,
            tty: false,
            detach: false,
            env: Vec::new(),
            cwd: None,
            detach_keys: DetachKeys::default(),
            record: None,
            sid: sid.to_owned(),
            command,
        })
    }

    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        // The session would refuse it too, but not with this exit code.
        quarantine::check(&AppDirs::here()?, None, &self.command)?;
        let (directory, summary) = find_for_command(&self.sid)?;
        if let Some(number) = transaction::before_command(&directory)? {
            output::note(&format!("an interrupted rollback to checkpoint {number} was finished"));
        }
        let client = foreground::connect_and_greet(&directory)?;
        let mut environment = Vec::new();
        for text in &self.env {
            environment.push(variable(text)?);
        }
        add_caller_span(&mut environment);
        let start = start_command(self.command, environment, self.cwd);
        if self.detach && self.record.is_some() {
            bail!(
                "--record: nobody would write it in the background; make the session with --record instead"
            );
        }
        if self.detach {
            return in_background(client, start, self.tty);
        }
        let meeting = match self.tty {
            true => Meeting::Terminal(self.detach_keys),
            false => Meeting::Streams { reads_input: self.interactive },
        };
        let left_with_streams = matches!(meeting, Meeting::Streams { .. });
        let how = (meeting, self.record.map(PathBuf::from));
        let code = in_foreground(client, &summary, start, how)?;
        if left_with_streams {
            // Somebody waits for this end, and nothing is left to be written or put back.
            foreground::leave(code);
        }
        Ok(ExitCode::from(code))
    }
}

/// A command with the environment of the session, and this on top.
pub(crate) fn start_command(
    command: Vec<OsString>,
    environment: Vec<(Vec<u8>, Vec<u8>)>,
    cwd: Option<PathBuf>,
) -> StartCommand {
    StartCommand {
        kind: CommandKind::Program,
        argv: command.into_iter().map(OsString::into_vec).collect(),
        environment: Environment::Extended(environment),
        cwd,
        umask: None,
        rlimits: Vec::new(),
        streams: CommandStreams::Descriptors,
    }
}

/// Runs it here, and says how it ended.
pub(crate) fn in_foreground(
    client: Client,
    session: &SessionSummary,
    mut start: StartCommand,
    (meeting, wanted): (Meeting, Option<PathBuf>),
) -> anyhow::Result<u8> {
    let recording = new_recording(session, &start, &meeting, wanted.as_deref())?;
    let left = match meeting {
        Meeting::Streams { reads_input } => {
            run_with_streams(client, start, reads_input, recording)?
        }
        Meeting::Terminal(keys) => {
            let terminal = Some(window_size().unwrap_or(USUAL_SIZE));
            start.streams = CommandStreams::Held(HeldStreams {
                terminal,
                has_input: false,
                has_stderr_apart: false,
                is_attached: true,
            });
            add_terminal_type(&mut start);
            run_in_terminal(client, start, keys, recording)?
        }
    };
    Ok(exit_code(&left, session.label()))
}

/// What this process records itself: the streams that are its own, and what somebody asked for who did not make the session.
fn new_recording(
    session: &SessionSummary,
    start: &StartCommand,
    meeting: &Meeting,
    wanted: Option<&Path>,
) -> anyhow::Result<Option<NewRecording>> {
    let is_of_session = session.recording.is_some();
    let by_supervisor = is_of_session && matches!(meeting, Meeting::Terminal(_));
    let file = wanted.filter(|file| !file.as_os_str().is_empty());
    if file.is_none() && (by_supervisor || !is_of_session && wanted.is_none()) {
        return Ok(None);
    }
    let words: Vec<&OsStr> = start.argv.iter().map(|word| OsStr::from_bytes(word)).collect();
    let size = window_size().map(|size| (size.columns, size.rows));
    let header = CastHeader::new(size, &redact::preview(&words));
    let limit = session.recording.map_or(Recorded::MAX_BYTES, |recording| recording.max_bytes);
    Ok(Some(match file {
        Some(file) => NewRecording::in_file(CastWriter::create(file, &header, limit)?),
        None => find(&session.id)?.0.begin_recording(&header, limit)?,
    }))
}

fn in_background(
    mut client: Client,
    mut start: StartCommand,
    has_terminal: bool,
) -> anyhow::Result<ExitCode> {
    let terminal = has_terminal.then(|| window_size().unwrap_or(USUAL_SIZE));
    start.streams = CommandStreams::Held(HeldStreams {
        terminal,
        has_input: false,
        has_stderr_apart: false,
        is_attached: false,
    });
    if has_terminal {
        add_terminal_type(&mut start);
    }
    match foreground::ask(&mut client, &Request::StartCommand(start), &[])? {
        Response::Starting { command } => {
            foreground::wait_for_start(&mut client, command)?;
            output::print(&command.0.to_string())?;
            Ok(ExitCode::SUCCESS)
        }
        other => bail!("the session answered something else: {other:?}"),
    }
}

/// The terminal inside is shown in ours, so it is one of the same type.
fn add_terminal_type(start: &mut StartCommand) {
    let Environment::Extended(environment) = &mut start.environment else { return };
    if let Some(kind) = std::env::var_os("TERM")
        && environment.iter().all(|(name, _)| name != b"TERM")
    {
        environment.push((b"TERM".to_vec(), kind.into_vec()));
    }
}

/// The span of our caller, so that the command is part of its trace. Where the session sends spans, the command gets its own below it.
fn add_caller_span(environment: &mut Vec<(Vec<u8>, Vec<u8>)>) {
    let own = |name: &str| std::env::var(name).ok();
    let Some(span) = own(SpanContext::VARIABLE).filter(|it| SpanContext::parse(it).is_some())
    else {
        return;
    };
    let state = own(SpanContext::STATE_VARIABLE).filter(|state| SpanContext::is_state(state));
    let pairs = [(SpanContext::VARIABLE, Some(span)), (SpanContext::STATE_VARIABLE, state)];
    for (name, value) in pairs {
        let is_set = environment.iter().any(|(known, _)| known == name.as_bytes());
        if let Some(value) = value.filter(|_| !is_set) {
            environment.push((name.as_bytes().to_vec(), value.into_bytes()));
        }
    }
}

fn variable(text: &OsStr) -> anyhow::Result<(Vec<u8>, Vec<u8>)> {
    let bytes = text.as_bytes();
    let (name, value) = match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => (&bytes[..at], bytes[at + 1..].to_vec()),
        None => match std::env::var_os(text) {
            Some(value) => (bytes, value.into_vec()),
            None => bail!("--env {}: there is no such variable", text.display()),
        },
    };
    if name.is_empty() {
        bail!("--env {}: a variable needs a name", text.display());
    }
    Ok((name.to_vec(), value))
}
