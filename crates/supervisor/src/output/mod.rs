//! The supervisor between the command's outputs and their readers, where a policy caps them (RES-2).
//!
//! Everything is bounded and nothing waits. The command sees what it would see without us: a slow reader,
//! until the cap is reached, and a reader that is gone, at its next write.

mod head_tail;
mod queue;
mod sink;

pub(crate) use head_tail::Cut;
pub(crate) use queue::{Buffer, Drained, Filled, OutputQueue, Style};

use crate::error::Result;
use crate::poll_set::{PollSet, Ready};
use palisade_launch::{OutputPipe, StreamOutput};
use palisade_sys::errno_name;
use palisade_sys::proc::{block_signals, sig};
use rustix::event::PollFlags;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use sink::Sink;

/// As much as a pipe holds.
const CAPACITY: usize = 64 * 1024;

/// Which output was capped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
    /// Both of them, which went to one place.
    Both,
    Terminal,
}

impl Stream {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stdout => "standard output",
            Self::Stderr => "standard error",
            Self::Both => "standard output and error",
            Self::Terminal => "the terminal",
        }
    }
}

impl From<StreamOutput> for Stream {
    fn from(output: StreamOutput) -> Self {
        match output {
            StreamOutput::Stdout => Self::Stdout,
            StreamOutput::Stderr => Self::Stderr,
            StreamOutput::Both => Self::Both,
        }
    }
}

/// An output that was larger than its cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capped {
    pub(crate) stream: Stream,
    pub(crate) limit: u64,
    pub(crate) seen_bytes: u64,
    pub(crate) cut_bytes: u64,
}

impl Capped {
    pub(crate) fn new(stream: Stream, limit: u64, cut: Cut) -> Self {
        Self { stream, limit, seen_bytes: cut.seen, cut_bytes: cut.bytes }
    }
}

/// What became of the outputs.
#[derive(Debug, Default)]
pub struct Delivered {
    pub(crate) capped: Vec<Capped>,
    /// What could not be written to its reader.
    pub(crate) lost: Vec<Lost>,
    /// What a reader did not get for other reasons.
    pub(crate) notes: Vec<String>,
}

/// Output that the command wrote and its reader did not get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) stream: Stream,
    pub(crate) errno: Errno,
}

impl Lost {
    /// A reader that went away, as the end of a pipeline does.
    pub(crate) fn reader_is_gone(&self) -> bool {
        matches!(self.errno, Errno::PIPE | Errno::CONNRESET)
    }
}

impl Delivered {
    /// For the report, a sentence each.
    pub fn told(&self) -> impl Iterator<Item = String> {
        let capped = self.capped.iter().map(|capped| {
            let Capped { stream, limit, seen_bytes, cut_bytes } = capped;
            let name = stream.name();
            format!("{cut_bytes} of {seen_bytes} bytes of {name} were cut: its limit is {limit}")
        });
        capped.chain(self.losses()).chain(self.notes.iter().cloned())
    }

    /// For people: a reader that has gone is nothing to tell of.
    pub fn losses(&self) -> impl Iterator<Item = String> {
        let lost = self.lost.iter().filter(|lost| !lost.reader_is_gone());
        lost.map(|Lost { stream, errno }| {
            let name = stream.name();
            let errno = errno_name(*errno);
            format!("{name} could not be written ({errno}); the output of the command is lost")
        })
    }
}

/// The outputs of one run that go through us.
#[derive(Debug, Default)]
pub struct Outputs {
    pipes: Vec<Pipe>,
    limit: Option<u64>,
    /// For a recording: what went through since it was last asked for. None: nobody asks.
    passed: Option<Vec<u8>>,
}

#[derive(Debug)]
struct Pipe {
    stream: Stream,
    /// From the command, while it may write.
    source: Option<OwnedFd>,
    /// To the reader, while it is there and there is something to come.
    sink: Option<Sink>,
    queue: OutputQueue,
    /// What was in the pipe when its last writer of ours died.
    last_words: Option<u64>,
    /// Why the reader did not get all of it.
    lost: Option<Errno>,
}

/// Whether bytes were on their way to a reader when it took no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owed {
    Something,
    Nothing,
}

/// One end of one pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PipeEnd {
    Source(usize),
    Sink(usize),
}

impl PipeEnd {
    /// In a poll set.
    fn key(self) -> usize {
        match self {
            Self::Source(index) => 2 * index,
            Self::Sink(index) => 2 * index + 1,
        }
    }

    fn of_key(key: usize) -> Self {
        if key.is_multiple_of(2) { Self::Source(key / 2) } else { Self::Sink(key / 2) }
    }
}

impl Outputs {
    /// To be called while the caller's streams are still where they were.
    pub fn of(pipes: Vec<OutputPipe>, limit: Option<u64>, is_recorded: bool) -> Result<Self> {
        // A reader that is gone is told by EPIPE. Rust's runtime ignores the signal, a caller of the
        // API may not.
        if !pipes.is_empty() {
            block_signals(&[sig::SIGPIPE])?;
        }
        let pipes = pipes.into_iter().map(|OutputPipe { output, read }| {
            let sink = match output {
                StreamOutput::Stdout | StreamOutput::Both => Sink::of(rustix::stdio::stdout()),
                StreamOutput::Stderr => Sink::of(rustix::stdio::stderr()),
            };
            Ok(Pipe::new(output.into(), read, sink?, limit))
        });
        let passed = is_recorded.then(Vec::new);
        Ok(Self { pipes: pipes.collect::<Result<_>>()?, limit, passed })
    }

    /// What went through since the last time, of all streams in the order in which it came.
    pub(crate) fn take_passed(&mut self) -> Vec<u8> {
        self.passed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// True once everything is where it should go.
    pub(crate) fn is_finished(&self) -> bool {
        self.pipes.iter().all(|pipe| pipe.source.is_none() && pipe.sink.is_none())
    }

    /// Whether a reader has not yet taken all that was read.
    pub(crate) fn owes_output(&self) -> bool {
        self.pipes.iter().any(|pipe| pipe.sink.is_some() && !pipe.queue.is_empty())
    }

    /// Adds what is worth waiting for now. A reader's end is always watched: that it is gone shows without
    /// being asked for.
    pub(crate) fn register<'fd>(&'fd self, set: &mut PollSet<'fd>) {
        for (index, pipe) in self.pipes.iter().enumerate() {
            if let Some(source) = pipe.source.as_ref().filter(|_| pipe.queue.has_room()) {
                set.add(PipeEnd::Source(index).key(), source.as_fd(), PollFlags::IN);
            }
            if let Some(sink) = &pipe.sink {
                let mut events = PollFlags::empty();
                events.set(PollFlags::OUT, !pipe.queue.is_empty());
                set.add(PipeEnd::Sink(index).key(), sink.as_fd(), events);
            }
        }
    }

    /// Moves what can be moved at the ends that are ready.
    pub(crate) fn handle(&mut self, ready: &Ready) {
        for (key, events) in ready.iter() {
            match PipeEnd::of_key(key) {
                PipeEnd::Source(index) => self.pipes[index].read(&mut self.passed),
                PipeEnd::Sink(index) => self.pipes[index].write(events),
            }
        }
    }

    /// Nobody inside is left. What is in the pipes by now is the last of it, though somebody whom the
    /// command gave its end to may hold them open.
    pub(crate) fn nobody_writes(&mut self) {
        for pipe in &mut self.pipes {
            pipe.expect_last_words();
        }
    }

    /// Nothing more comes, whoever may hold the pipes.
    pub(crate) fn conclude(&mut self) {
        for pipe in self.pipes.iter_mut().filter(|pipe| pipe.source.is_some()) {
            pipe.conclude();
            pipe.drain();
        }
    }

    /// What became of them, after the last turn.
    pub(crate) fn end(self) -> Delivered {
        let mut delivered = Delivered::default();
        for pipe in self.pipes {
            let name = pipe.stream.name();
            let stream = pipe.stream;
            delivered.lost.extend(pipe.lost.map(|errno| Lost { stream, errno }));
            if pipe.sink.is_some() && !pipe.queue.is_empty() {
                let owed = pipe.queue.owed();
                let note = format!("the reader did not take {owed} bytes of {name}");
                delivered.notes.push(note);
            }
            let cut = pipe.queue.cut();
            let capped = self.limit.zip(cut);
            delivered
                .capped
                .extend(capped.map(|(limit, cut)| Capped::new(pipe.stream, limit, cut)));
        }
        delivered
    }
}

impl Pipe {
    fn new(stream: Stream, source: OwnedFd, sink: Sink, limit: Option<u64>) -> Self {
        Self {
            stream,
            source: Some(source),
            sink: Some(sink),
            queue: OutputQueue::new(CAPACITY, limit, Style::Plain),
            last_words: None,
            lost: None,
        }
    }

    fn read(&mut self, kept: &mut Option<Vec<u8>>) {
        let Some(source) = &self.source else { return };
        let keep = |bytes: &[u8]| {
            if let Some(kept) = kept {
                kept.extend_from_slice(bytes);
            }
        };
        let has_ended = match (self.queue.fill_from(source, keep), &mut self.last_words) {
            (Filled::Bytes(count), Some(left)) => {
                *left = left.saturating_sub(u64::try_from(count).unwrap_or(u64::MAX));
                *left == 0
            }
            (Filled::Bytes(_) | Filled::NothingNow, _) => false,
            (Filled::Closed, _) => true,
        };
        if has_ended {
            self.conclude();
        }
        self.drain();
    }

    fn write(&mut self, ready: PollFlags) {
        if ready.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL) {
            let owed = if self.queue.is_empty() { Owed::Nothing } else { Owed::Something };
            self.lose_reader(Errno::PIPE, owed);
        } else {
            self.drain();
        }
    }

    fn drain(&mut self) {
        let Some(sink) = &self.sink else { return };
        match self.queue.drain_to(|bytes| sink.write(bytes)) {
            // Its reader sees the end when the command closes its output, though it goes on running.
            Drained::Empty if self.source.is_none() => self.sink = None,
            Drained::Empty | Drained::Waits => {}
            Drained::Refused(errno) => self.lose_reader(errno, Owed::Something),
        }
    }

    /// The command's next write fails as if it had written to the reader itself. Nothing was cut for a reader
    /// that did not want it.
    fn lose_reader(&mut self, errno: Errno, owed: Owed) {
        let unread =
            self.source.as_ref().and_then(|source| rustix::io::ioctl_fionread(source).ok());
        if owed == Owed::Something || unread.is_some_and(|unread| unread > 0) {
            self.lost = Some(errno);
        }
        self.source = None;
        self.sink = None;
    }

    fn conclude(&mut self) {
        self.source = None;
        self.queue.conclude();
    }

    fn expect_last_words(&mut self) {
        let Some(source) = self.source.as_ref().filter(|_| self.last_words.is_none()) else {
            return;
        };
        match rustix::io::ioctl_fionread(source) {
            Ok(0) | Err(_) => {
                self.conclude();
                self.drain();
            }
            left => self.last_words = left.ok(),
        }
    }
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
