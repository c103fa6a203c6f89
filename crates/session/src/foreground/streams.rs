//! A command with the streams of this process: they are passed on, and nothing goes through us. A terminal, a directory or a
//! file that is only read is not: through each of them the command could do more than read or write a stream, so it gets a
//! pipe, which is relayed.

use super::messages::{Heard, hear};
use super::{ForegroundSignals, Left, ask, unexpected};
use crate::error::{Result, SessionError};
use crate::sessions::NewRecording;
use palisade_launch::CommandId;
use palisade_record::cast::CastWriter;
use palisade_record::escape;
use palisade_supervisor::SupervisorError;
use palisade_supervisor::control::client::Client;
use palisade_supervisor::control::interface::{Request, Response, StartCommand};
use palisade_sys::proc::{self, PollFd, PollFlags};
use palisade_sys::stream::only_reads_file;
use palisade_sys::tty;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::Signal;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// Moved at a time.
const CHUNK: usize = 64 * 1024;

/// Between a stream of ours and the command's end of a pipe.
#[derive(Debug)]
struct Relayed {
    from: OwnedFd,
    to: OwnedFd,
    waiting: Vec<u8>,
    is_over: bool,
    is_output: bool,
}

/// What cannot be recorded is no reason to end a command.
fn tell_failure(recording: &mut CastWriter) {
    if let Some(why) = recording.take_failure() {
        let line = format!("sandbox: {}\n", escape::text(&why));
        let _ = rustix::io::write(rustix::stdio::stderr(), line.as_bytes());
    }
}

/// Starts a command and waits for its end. Our signals are forwarded to it.
pub fn run_with_streams(
    mut client: Client,
    start: StartCommand,
    reads_input: bool,
    recording: Option<NewRecording>,
) -> Result<Left> {
    let signals = ForegroundSignals::take()?;
    let failed = |errno: Errno| SessionError::io("open", Path::new("a pipe"), errno.into());
    let mut relayed = Vec::new();
    let input = match reads_input {
        true => input(&mut relayed).map_err(failed)?,
        false => null().map_err(failed)?,
    };
    // What is recorded goes through us.
    let is_recorded = recording.is_some();
    let output = output(rustix::stdio::stdout(), is_recorded, &mut relayed).map_err(failed)?;
    let error = output_of_errors(is_recorded, &mut relayed).map_err(failed)?;
    let streams = [input.as_fd(), output.as_fd(), error.as_fd()];
    let command = match ask(&mut client, &Request::StartCommand(start), &streams)? {
        Response::Starting { command } => command,
        other => return Err(unexpected(&other)),
    };
    // The command's ends: a reader must see when the command closes its own.
    drop((input, output, error));
    let recording = recording.map(|recording| recording.of_command(command));
    wait_for(client, command, &signals, (relayed, recording))
}

fn output_of_errors(is_recorded: bool, relayed: &mut Vec<Relayed>) -> Result<OwnedFd, Errno> {
    output(rustix::stdio::stderr(), is_recorded, relayed)
}

/// Whether a command may have it as it is.
fn is_plain(stream: BorrowedFd<'_>) -> bool {
    let is_directory = rustix::fs::fstat(stream)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory);
    !is_directory && !tty::isatty(stream) && !only_reads_file(stream)
}

fn duplicate(stream: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(stream, 3)
}

fn null() -> Result<OwnedFd, Errno> {
    rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
}

fn input(relayed: &mut Vec<Relayed>) -> Result<OwnedFd, Errno> {
    let stream = rustix::stdio::stdin();
    if is_plain(stream) {
        return duplicate(stream);
    }
    let (theirs, to) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&to, true)?;
    relayed.push(Relayed::new(duplicate(stream)?, to));
    Ok(theirs)
}

fn output(
    stream: BorrowedFd<'_>,
    is_recorded: bool,
    relayed: &mut Vec<Relayed>,
) -> Result<OwnedFd, Errno> {
    if is_plain(stream) && !is_recorded {
        return duplicate(stream);
    }
    let (from, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    relayed.push(Relayed { is_output: true, ..Relayed::new(from, duplicate(stream)?) });
    Ok(theirs)
}

fn wait_for(
    mut client: Client,
    command: CommandId,
    signals: &ForegroundSignals,
    (mut relayed, mut recording): (Vec<Relayed>, Option<CastWriter>),
) -> Result<Left> {
    loop {
        let mut watched =
            vec![PollFd::new(&client, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        watched.extend(relayed.iter().filter_map(Relayed::watched));
        let now = Instant::now();
        let due = recording.as_ref().and_then(CastWriter::next_flush);
        proc::poll(&mut watched, due.map(|due| due.saturating_duration_since(now)))?;
        let has_signal = !watched[1].revents().is_empty();
        for stream in &mut relayed {
            stream.move_bytes(&mut recording);
        }
        if let Some(recording) = &mut recording {
            recording.flush_if_due(Instant::now());
            tell_failure(recording);
        }
        loop {
            match hear(&mut client, command)? {
                Heard::Left(left) => {
                    // What it wrote is in the pipes by now.
                    relayed.iter_mut().for_each(|stream| stream.finish(&mut recording));
                    if let Some(recording) = &mut recording {
                        recording.flush();
                        tell_failure(recording);
                    }
                    return Ok(left);
                }
                Heard::Nothing => break,
                Heard::Marker(text) => {
                    // It comes after what the command wrote before it.
                    relayed.iter_mut().for_each(|stream| stream.move_bytes(&mut recording));
                    if let Some(recording) = &mut recording {
                        recording.marker(&text);
                    }
                }
                Heard::Output(..) | Heard::Answer => {}
            }
        }
        while has_signal && let Some(signal) = signals.next()? {
            if signal != Signal::WINCH.as_raw() {
                let request = Request::Signal { command, signal };
                client.send(&request, &[]).map_err(SupervisorError::from)?;
            }
        }
    }
}

impl Relayed {
    fn new(from: OwnedFd, to: OwnedFd) -> Self {
        Self { from, to, waiting: Vec::new(), is_over: false, is_output: false }
    }

    fn watched(&self) -> Option<PollFd<'_>> {
        match (self.is_over, self.waiting.is_empty()) {
            (true, _) => None,
            (false, true) => Some(PollFd::new(&self.from, PollFlags::IN)),
            (false, false) => Some(PollFd::new(&self.to, PollFlags::OUT)),
        }
    }

    /// As much as goes without waiting.
    fn move_bytes(&mut self, recording: &mut Option<CastWriter>) {
        if self.is_over {
            return;
        }
        if self.waiting.is_empty() && is_ready(&self.from, PollFlags::IN) {
            let mut buffer = vec![0; CHUNK];
            match rustix::io::read(&self.from, &mut buffer) {
                Ok(0) => return self.close(),
                Ok(count) => {
                    buffer.truncate(count);
                    if let Some(recording) = recording.as_mut().filter(|_| self.is_output) {
                        recording.output(&buffer);
                    }
                    self.waiting = buffer;
                }
                Err(Errno::INTR | Errno::AGAIN) => return,
                Err(_) => return self.close(),
            }
        }
        if !self.waiting.is_empty() && is_ready(&self.to, PollFlags::OUT) {
            match rustix::io::write(&self.to, &self.waiting) {
                Ok(count) => drop(self.waiting.drain(..count)),
                Err(Errno::INTR | Errno::AGAIN) => {}
                // Nobody reads it any more.
                Err(_) => self.close(),
            }
        }
    }

    /// Everything that is there. Who reads it may be waited for: the command has ended.
    fn finish(&mut self, recording: &mut Option<CastWriter>) {
        // Nobody is left to read what comes in, or only what goes on in the background.
        if !self.is_output {
            return;
        }
        while !self.is_over && (!self.waiting.is_empty() || is_ready(&self.from, PollFlags::IN)) {
            if !self.waiting.is_empty() {
                let mut room = [PollFd::new(&self.to, PollFlags::OUT)];
                if proc::poll(&mut room, None).is_err() {
                    return;
                }
            }
            self.move_bytes(recording);
        }
    }

    /// The other side sees the end.
    fn close(&mut self) {
        self.is_over = true;
        self.waiting = Vec::new();
        if let Ok(null) = null() {
            self.to = null;
        }
    }
}

fn is_ready(stream: &OwnedFd, events: PollFlags) -> bool {
    let mut watched = [PollFd::new(stream, events)];
    proc::poll(&mut watched, Some(Duration::ZERO)).is_ok() && !watched[0].revents().is_empty()
}
