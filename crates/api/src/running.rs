//! A command that runs: its streams are pipes of ours, so that it is as fast as outside. Nothing is started in the background: what is
//! not asked for is not read, and the command waits then, as at any pipe.

use crate::connection::Connection;
use crate::core::Core;
use crate::error::{Error, Result};
use crate::output::{Chunk, Exit, Output, Stream, TransactionState};
use crate::usage::Usage;
use palisade_session::supervise::interface::{
    CommandId, CommandKind, CommandStreams, Environment, Event, FromSupervisor, Request, Response,
    StartCommand,
};
use palisade_session::{quarantine, transaction};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::Signal;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Read at once.
const CHUNK: usize = 64 << 10;
/// Read at most after the end of the command: other processes may go on writing.
const MAX_LEFT: usize = 1 << 20;
/// Between SIGTERM and SIGKILL when the time is over.
const KILL_AFTER: Duration = Duration::from_secs(2);
/// A supervisor that was asked to kill.
const LAST_PATIENCE: Duration = Duration::from_secs(10);

/// What is started.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) argv: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) stdin: Option<Vec<u8>>,
    pub(crate) keeps_stdin_open: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_output: usize,
    pub(crate) reports_changes: bool,
}

/// A command that runs, from [`Command::spawn`](crate::Command::spawn). Iterate over it for its output as it comes, then call
/// [`Running::wait`]. Dropped before its end, it gets SIGHUP.
///
/// ```no_run
/// let sandbox = palisade::Sandbox::create().start()?;
/// let mut build = sandbox.command("make").spawn()?;
/// for chunk in &mut build {
///     print!("{}", chunk?.text());
/// }
/// let output = build.wait()?;
/// # Ok::<(), palisade::Error>(())
/// ```
#[derive(Debug)]
pub struct Running {
    core: Arc<Core>,
    connection: Connection,
    command: CommandId,
    input: Input,
    outputs: [Pipe; 2],
    ready: VecDeque<Chunk>,
    is_started: bool,
    exit: Option<Exit>,
    began: Instant,
    ended: Option<Instant>,
    deadline: Option<Deadline>,
    used_before: Option<Usage>,
    reports_changes: bool,
}

/// What the command reads.
#[derive(Debug)]
struct Input {
    /// None: it has ended.
    pipe: Option<OwnedFd>,
    unsent: VecDeque<u8>,
    /// Whether it ends when everything was sent.
    ends: bool,
}

/// One output.
#[derive(Debug)]
struct Pipe {
    stream: Stream,
    /// None: it has ended.
    pipe: Option<OwnedFd>,
    kept: Vec<u8>,
    most: usize,
    count: u64,
}

/// When the time of the command is over, and what is done then.
#[derive(Debug)]
struct Deadline {
    at: Instant,
    acted: usize,
}

impl Running {
    pub(crate) fn start(core: Arc<Core>, wanted: Wanted) -> Result<Self> {
        // As `sandbox exec` does it.
        quarantine::check(&core.places, None, &wanted.argv)?;
        transaction::before_command(&core.directory)?;
        let used_before = core.meters().read(&core.places, core.directory.id());
        let mut connection = Connection::open(&core.directory)?;
        let failed = |error: io::Error| Error::internal(format!("cannot make a pipe: {error}"));
        let (their_input, input) = Input::open(&wanted).map_err(failed)?;
        let (their_output, output) = Pipe::open(Stream::Stdout, &wanted).map_err(failed)?;
        let (their_error, error) = Pipe::open(Stream::Stderr, &wanted).map_err(failed)?;
        let streams = [their_input.as_fd(), their_output.as_fd(), their_error.as_fd()];
        let timeout = wanted.timeout;
        let reports_changes = wanted.reports_changes;
        let start = Request::StartCommand(wanted.start());
        let Response::Starting { command } = connection.ask(&start, &streams)? else {
            return Err(connection.unexpected());
        };
        // With copies of its ends, the end of the command would not be noticed.
        drop((their_input, their_output, their_error));
        let began = Instant::now();
        let deadline = timeout.and_then(|time| began.checked_add(time));
        let mut running = Self {
            core,
            connection,
            command,
            input,
            outputs: [output, error],
            ready: VecDeque::new(),
            is_started: false,
            exit: None,
            began,
            ended: None,
            deadline: deadline.map(|at| Deadline { at, acted: 0 }),
            used_before,
            reports_changes,
        };
        while !running.is_started && running.exit.is_none() {
            running.step()?;
        }
        Ok(running)
    }

    /// Its number, counted from 1 in each sandbox.
    pub fn number(&self) -> u64 {
        self.command.0
    }

    /// Waits for the next part of its output. None at the end of the command, after the last of its output.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(Some(chunk));
            }
            if self.exit.is_some() {
                return Ok(None);
            }
            self.step()?;
        }
    }

    /// One of its outputs, for what reads from an [`io::Read`]. The other one is kept for the result meanwhile, and no part of it is
    /// given to the iterator.
    pub fn reader(&mut self, stream: Stream) -> Reader<'_> {
        Reader { running: self, stream, rest: VecDeque::new() }
    }

    /// Sends more of what it reads, in its turn while output is waited for. Only with
    /// [`Command::keep_stdin_open`](crate::Command::keep_stdin_open), or it is lost.
    pub fn write_stdin(&mut self, bytes: &[u8]) -> Result<()> {
        self.input.unsent.extend(bytes);
        self.input.send();
        Ok(())
    }

    /// Its input ends when all of it was sent.
    pub fn close_stdin(&mut self) {
        self.input.ends = true;
        self.input.send();
    }

    /// Sends its process group a signal, by its number.
    pub fn signal(&mut self, signal: i32) -> Result<()> {
        if self.exit.is_some() {
            return Ok(());
        }
        self.connection.send(&Request::Signal { command: self.command, signal })
    }

    /// Ends its process group at once (SIGKILL). [`Running::wait`] gives the result.
    pub fn kill(&mut self) -> Result<()> {
        self.signal(Signal::KILL.as_raw())
    }

    /// Waits for its end. Output that was not asked for is read, and kept as far as there is room.
    pub fn wait(mut self) -> Result<Output> {
        // Nothing more can be written once this value is gone.
        self.close_stdin();
        loop {
            self.ready.clear();
            if let Some(exit) = self.exit {
                return self.conclude(exit);
            }
            self.step()?;
        }
    }

    fn conclude(self, exit: Exit) -> Result<Output> {
        let core = &self.core;
        let usage = core.meters().read(&core.places, core.directory.id());
        let changes = match (core.record.transaction, self.reports_changes) {
            (Some(_), true) => Some(core.changes()?),
            _ => None,
        };
        let sandbox = core.directory.id().to_owned();
        let [output, error] = self.outputs;
        Ok(Output {
            number: self.command.0,
            exit,
            timed_out: self.deadline.is_some_and(|deadline| deadline.acted > 0),
            stdout: output.kept,
            stderr: error.kept,
            stdout_bytes: output.count,
            stderr_bytes: error.count,
            duration: self.ended.unwrap_or_else(Instant::now).duration_since(self.began),
            usage: usage.map(|usage| usage.since(self.used_before)),
            violations: core.trail().violations(),
            transaction: core.record.transaction.map(|_| TransactionState { sandbox, changes }),
        })
    }

    /// Waits until something happens, and takes it.
    fn step(&mut self) -> Result<()> {
        self.wait_for_anything()?;
        for output in &mut self.outputs {
            self.ready.extend(output.read());
        }
        self.input.send();
        while let Some(message) = self.next_message()? {
            self.hear(message)?;
        }
        match &mut self.deadline {
            Some(deadline) if self.exit.is_none() && deadline.at <= Instant::now() => {
                deadline.act(&self.connection, self.command)
            }
            _ => Ok(()),
        }
    }

    fn wait_for_anything(&self) -> Result<()> {
        let mut watched = vec![PollFd::new(&self.connection.client, PollFlags::IN)];
        for output in &self.outputs {
            watched.extend(output.pipe.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        }
        if let Some(pipe) = self.input.pipe.as_ref().filter(|_| !self.input.unsent.is_empty()) {
            watched.push(PollFd::new(pipe, PollFlags::OUT));
        }
        let left = self.deadline.as_ref().map(|it| it.at.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match rustix::event::poll(&mut watched, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(Error::internal(format!("poll: {errno}"))),
        }
    }

    fn next_message(&mut self) -> Result<Option<FromSupervisor>> {
        if self.exit.is_some() {
            return Ok(None);
        }
        self.connection.client.try_next().map_err(|error| self.connection.failed(&error))
    }

    fn hear(&mut self, message: FromSupervisor) -> Result<()> {
        let of = self.command;
        match message {
            FromSupervisor::Event(Event::CommandStarted { command, .. }) if command == of => {
                self.is_started = true;
            }
            FromSupervisor::Event(Event::CommandFailed { command, exit_code, message })
                if command == of =>
            {
                return Err(Error::NotStarted { exit_code, message });
            }
            FromSupervisor::Event(Event::CommandExited { command, cause }) if command == of => {
                self.exit = Some(cause.into());
                self.ended = Some(Instant::now());
                for output in &mut self.outputs {
                    self.ready.extend(output.finish());
                }
                self.input.pipe = None;
            }
            FromSupervisor::Event(Event::Ended { .. }) => {
                return Err(Error::Ended { sandbox: self.core.directory.id().to_owned() });
            }
            // Events of others, and answers to signals: a command that has ended cannot get one.
            _ => {}
        }
        Ok(())
    }
}

impl Iterator for Running {
    type Item = Result<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_chunk().transpose()
    }
}

/// One output of a command, from [`Running::reader`].
#[derive(Debug)]
pub struct Reader<'a> {
    running: &'a mut Running,
    stream: Stream,
    rest: VecDeque<u8>,
}

impl io::Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() && !buffer.is_empty() {
            match self.running.next_chunk().map_err(io::Error::other)? {
                Some(chunk) if chunk.stream == self.stream => self.rest = chunk.bytes.into(),
                Some(_) => {}
                None => return Ok(0),
            }
        }
        self.rest.read(buffer)
    }
}

impl Wanted {
    fn start(self) -> StartCommand {
        let bytes = |word: OsString| word.into_vec();
        let environment = self.environment.into_iter();
        StartCommand {
            kind: CommandKind::Program,
            argv: self.argv.into_iter().map(bytes).collect(),
            environment: Environment::Extended(
                environment.map(|(name, value)| (bytes(name), bytes(value))).collect(),
            ),
            cwd: self.cwd,
            umask: None,
            rlimits: Vec::new(),
            streams: CommandStreams::Descriptors,
        }
    }
}

impl Input {
    /// The command's end, and ours.
    fn open(wanted: &Wanted) -> io::Result<(OwnedFd, Self)> {
        let unsent = VecDeque::from(wanted.stdin.clone().unwrap_or_default());
        if wanted.stdin.is_none() && !wanted.keeps_stdin_open {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let null = rustix::fs::open("/dev/null", flags, Mode::empty())?;
            return Ok((null, Self { pipe: None, unsent, ends: true }));
        }
        let (theirs, ours) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        Ok((theirs, Self { pipe: Some(ours), unsent, ends: !wanted.keeps_stdin_open }))
    }

    /// As much as there is room for.
    fn send(&mut self) {
        while let Some(pipe) = &self.pipe
            && !self.unsent.is_empty()
        {
            match rustix::io::write(pipe, self.unsent.as_slices().0) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // Nobody reads it.
                Err(_) => self.pipe = None,
            }
        }
        if self.ends {
            self.pipe = None;
        }
        if self.pipe.is_none() {
            self.unsent.clear();
        }
    }
}

impl Pipe {
    /// The command's end, and ours.
    fn open(stream: Stream, wanted: &Wanted) -> io::Result<(OwnedFd, Self)> {
        let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let most = wanted.max_output;
        Ok((theirs, Self { stream, pipe: Some(ours), kept: Vec::new(), most, count: 0 }))
    }

    /// What is there.
    fn read(&mut self) -> Option<Chunk> {
        let mut bytes = vec![0; CHUNK];
        match rustix::io::read(self.pipe.as_ref()?, &mut bytes) {
            Ok(count) if count > 0 => bytes.truncate(count),
            Err(Errno::AGAIN | Errno::INTR) => return None,
            Ok(_) | Err(_) => {
                self.pipe = None;
                return None;
            }
        }
        self.count += bytes.len() as u64;
        let room = self.most.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Some(Chunk { stream: self.stream, bytes })
    }

    /// What the command wrote before its end is in the pipe. Other processes that have it open are not waited for.
    fn finish(&mut self) -> Vec<Chunk> {
        let mut left = Vec::new();
        let mut length = 0;
        while length < MAX_LEFT
            && let Some(chunk) = self.read()
        {
            length += chunk.bytes.len();
            left.push(chunk);
        }
        self.pipe = None;
        left
    }
}

impl Deadline {
    fn act(&mut self, connection: &Connection, command: CommandId) -> Result<()> {
        self.acted += 1;
        let (signal, patience) = match self.acted {
            1 => (Signal::TERM, KILL_AFTER),
            2 => (Signal::KILL, LAST_PATIENCE),
            _ => return Err(Error::timed_out("the command was killed, and has not ended")),
        };
        self.at = Instant::now() + patience;
        connection.send(&Request::Signal { command, signal: signal.as_raw() })
    }
}

#[cfg(test)]
#[path = "running_tests.rs"]
mod tests;
