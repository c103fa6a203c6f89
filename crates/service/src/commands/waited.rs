//! A command whose end a request waits for. Its outputs are pipes of ours, read to the end whether we keep them or not: a command
//! must not wait for a reader that has enough.

use super::new_command::NewCommand;
use crate::control::ControlConnection;
use crate::encoding::Written;
use crate::problem::Problem;
use palisade_session::SIGNAL_BASE;
use palisade_session::sessions::SessionDirectory;
use palisade_session::supervise::interface::{
    CommandId, CommandStreams, Event, ExitCause, Request, Response,
};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::PipeFlags;
use rustix::process::Signal;
use serde::Serialize;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep_until};
use utoipa::ToSchema;

const DEFAULT_OUTPUT: usize = 1 << 20;
const MAX_OUTPUT: usize = 4 << 20;
/// Between SIGTERM and SIGKILL when the time is over.
const KILL_AFTER: Duration = Duration::from_secs(2);
/// Beyond any time that somebody waits for.
const A_YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
/// A supervisor that was asked to kill.
const LAST_PATIENCE: Duration = Duration::from_secs(10);
const CHUNK: usize = 64 << 10;

/// How a command ended, and what it wrote.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommandResult {
    number: u64,
    /// 128 and the number of the signal, if one ended it.
    exit_code: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    /// Whether it was ended because `timeoutSeconds` were over.
    timed_out: bool,
    stdout: Written,
    stderr: Written,
    /// Everything that it wrote, with what was left out of the answer.
    stdout_bytes: u64,
    stderr_bytes: u64,
    duration_ms: u64,
}

/// One output.
struct Reading {
    pipe: pipe::Receiver,
    kept: Vec<u8>,
    most: usize,
    count: u64,
    is_over: bool,
}

impl Reading {
    fn new(pipe: OwnedFd, most: usize) -> io::Result<Self> {
        let pipe = pipe::Receiver::from_owned_fd(pipe)?;
        Ok(Self { pipe, kept: Vec::new(), most, count: 0, is_over: false })
    }

    /// Waits for more, and takes it.
    async fn step(&mut self) {
        match self.pipe.readable().await {
            Ok(()) => drop(self.take()),
            Err(_) => self.is_over = true,
        }
    }

    /// What the runtime knows to be there. False if that is nothing.
    fn take(&mut self) -> bool {
        let mut buffer = [0; CHUNK];
        let read = self.pipe.try_read(&mut buffer);
        self.keep(read, &buffer)
    }

    fn keep(&mut self, read: io::Result<usize>, buffer: &[u8]) -> bool {
        match read {
            Ok(0) => self.is_over = true,
            Ok(count) => {
                self.count += count as u64;
                let room = self.most.saturating_sub(self.kept.len());
                self.kept.extend_from_slice(&buffer[..count.min(room)]);
                return true;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.is_over = true,
        }
        false
    }

    /// What it wrote before its end is in the pipe; whoever else has it open is not waited for, and writes no longer than this. The runtime may
    /// not have heard of it yet, so the pipe itself is asked.
    fn finish(&mut self) {
        let most = (1 << 20) / CHUNK + 1;
        let mut buffer = [0; CHUNK];
        for _ in 0..most {
            if self.is_over {
                return;
            }
            let read = rustix::io::read(&self.pipe, &mut buffer).map_err(io::Error::from);
            if !self.keep(read, &buffer) {
                return;
            }
        }
    }
}

/// The command's ends of its streams, and ours.
struct Pipes {
    theirs: [OwnedFd; 3],
    input: Option<pipe::Sender>,
    output: Reading,
    error: Reading,
}

fn open_pipes(wanted: &NewCommand, most: usize) -> io::Result<Pipes> {
    let (their_input, input) = match &wanted.stdin {
        Some(_) => {
            let (theirs, ours) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
            (theirs, Some(pipe::Sender::from_owned_fd(ours)?))
        }
        None => {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            (rustix::fs::open("/dev/null", flags, Mode::empty())?, None)
        }
    };
    let (output, their_output) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let (error, their_error) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    Ok(Pipes {
        theirs: [their_input, their_output, their_error],
        input,
        output: Reading::new(output, most)?,
        error: Reading::new(error, most)?,
    })
}

/// In a session that runs.
pub(super) async fn run(
    directory: &Arc<SessionDirectory>,
    wanted: &NewCommand,
) -> Result<CommandResult, Problem> {
    run_waited(ControlConnection::open(directory).await?, wanted).await
}

/// Starts it and waits for its end. Dropped, it takes the command with it: the supervisor hangs up what a client that has gone
/// had started.
pub(crate) async fn run_waited(
    mut connection: ControlConnection,
    wanted: &NewCommand,
) -> Result<CommandResult, Problem> {
    let most = wanted.max_output_bytes.unwrap_or(DEFAULT_OUTPUT);
    if most > MAX_OUTPUT {
        return Err(Problem::invalid(format!("maxOutputBytes: at most {MAX_OUTPUT}")));
    }
    let failed = |error: io::Error| Problem::internal(format!("cannot make a pipe: {error}"));
    let Pipes { theirs, mut input, mut output, mut error } =
        open_pipes(wanted, most).map_err(failed)?;
    let start = Request::StartCommand(wanted.start(CommandStreams::Descriptors));
    let descriptors = theirs.each_ref().map(|stream| stream.as_fd());
    let Response::Starting { command } = connection.ask(&start, &descriptors).await? else {
        return Err(Problem::internal("the supervisor gave an answer to something else"));
    };
    // A reader must see when the command closes its own.
    drop(theirs);
    let began = Instant::now();
    let mut deadline = Deadline::new(began, wanted.timeout_seconds);
    let text = wanted.stdin.as_deref().unwrap_or_default().as_bytes();
    let mut sent = 0;
    let cause = loop {
        tokio::select! {
            event = connection.next_event() => {
                if let Some(cause) = ending(event?, command)? {
                    break cause;
                }
            }
            () = output.step(), if !output.is_over => {}
            () = error.step(), if !error.is_over => {}
            written = write_some(input.as_mut(), &text[sent..]), if input.is_some() => {
                match written {
                    Ok(count) if count > 0 => sent += count,
                    // Everything is there, or nobody reads it.
                    _ => input = None,
                }
            }
            () = sleep_until(deadline.at) => deadline.act(&mut connection, command)?,
        }
    };
    output.finish();
    error.finish();
    let (exit_code, signal) = match cause {
        ExitCause::Code(code) => (code, None),
        ExitCause::Signal(signal) => (SIGNAL_BASE + signal, Some(signal)),
    };
    Ok(CommandResult {
        number: command.0,
        exit_code,
        signal,
        timed_out: deadline.has_acted(),
        stdout: Written::of(&output.kept),
        stderr: Written::of(&error.kept),
        stdout_bytes: output.count,
        stderr_bytes: error.count,
        duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

async fn write_some(to: Option<&mut pipe::Sender>, bytes: &[u8]) -> io::Result<usize> {
    match to {
        Some(to) if !bytes.is_empty() => to.write(bytes).await,
        _ => Ok(0),
    }
}

/// Whether this event is the end of the command.
fn ending(event: Event, of: CommandId) -> Result<Option<ExitCause>, Problem> {
    match event {
        Event::CommandExited { command, cause } if command == of => Ok(Some(cause)),
        Event::CommandFailed { command, exit_code, message } if command == of => {
            Err(Problem::invalid(message).with_exit_code(exit_code))
        }
        Event::Ended { .. } => {
            Err(Problem::conflict("the sandbox has ended, and the command with it"))
        }
        _ => Ok(None),
    }
}

/// When the time of a command is over, and what is done then.
struct Deadline {
    at: Instant,
    acted: usize,
}

impl Deadline {
    fn new(began: Instant, seconds: Option<u64>) -> Self {
        let time = seconds.map_or(A_YEAR, |seconds| Duration::from_secs(seconds).min(A_YEAR));
        Self { at: began + time, acted: 0 }
    }

    fn has_acted(&self) -> bool {
        self.acted > 0
    }

    fn act(
        &mut self,
        connection: &mut ControlConnection,
        command: CommandId,
    ) -> Result<(), Problem> {
        self.acted += 1;
        let (signal, patience) = match self.acted {
            1 => (Signal::TERM, KILL_AFTER),
            2 => (Signal::KILL, LAST_PATIENCE),
            _ => return Err(Problem::timed_out("the command was killed, and has not ended")),
        };
        self.at = Instant::now() + patience;
        connection.send(&Request::Signal { command, signal: signal.as_raw() }, &[])
    }
}
