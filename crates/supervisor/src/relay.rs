//! Carries bytes between the caller's terminal and the sandbox's pty, unchanged and in order.
//!
//! Buffers are bounded: a side that does not read slows the other one down, and nothing is dropped but what a
//! policy caps. A question is put between two sequences of the output. While it is shown, output is held back, up to [`HELD`]
//! bytes; then the pty is no longer read, so that a process that writes more waits. All of it is shown afterwards.

use crate::output::{Buffer, Capped, Filled, OutputQueue, Stream, Style};
use crate::poll_set::{PollSet, Ready};
use crate::recording::echoes;
use crate::screen::{Screen, Size, Surroundings};
use rustix::event::PollFlags;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Output that is held back while a question is shown; who writes more waits.
const HELD: usize = 1024 * 1024;
const CAPACITY: usize = 16 * 1024;
/// How long a question waits for the end of a sequence that the command has begun to write, and for how much of it.
const TIME_TO_FINISH: Duration = Duration::from_millis(200);
const BYTES_TO_FINISH: usize = 64 * 1024;

/// How the caller's terminal hands over what is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// Every key as it is, in raw mode.
    Keys,
    /// Line by line: the terminal keeps Ctrl-D to itself and ends a read with it.
    Lines,
}

/// Ctrl-D, by which a terminal ends input in turn (`VEOF` in termios(3)).
const END_OF_INPUT: u8 = 0x04;

/// Ctrl-C (`VINTR`).
const INTERRUPT: u8 = 0x03;
/// A shell that is between two jobs looks like a command that waits for lines.
const TIME_TO_HEED: Duration = Duration::from_millis(300);

/// Both directions and what is still open.
#[derive(Debug)]
pub(crate) struct Relay {
    typed: Typed,
    inward: Buffer,
    outward: OutputQueue,
    /// Bytes that the terminal shows at most.
    limit: Option<u64>,
    input_open: bool,
    pty_open: bool,
    /// What the inside makes of the terminal.
    screen: Screen,
    flow: Flow,
    /// What was written while a question was about to be shown, or was shown.
    held: VecDeque<u8>,
    /// When Ctrl-C was typed first, if nothing else was since.
    interrupted: Option<Instant>,
    /// Whether it was typed again, later than that.
    insists: bool,
    /// Whether the caller's terminal is gone, and nobody heard of it yet.
    hung_up: bool,
    /// For a recording: what was shown and typed since it was last asked for. None: nobody asks.
    shown: Option<Vec<u8>>,
    keys: Option<Vec<u8>>,
}

/// What becomes of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// It goes on to the terminal.
    Through,
    /// Only what ends an unfinished sequence does, until this time and for so many bytes: a question is about to be shown.
    Settling { until: Instant, bytes_left: usize },
    /// It is held back: a question is shown.
    Holding,
}

/// Whether a question can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Yes,
    /// The terminal has not taken everything yet, or it is in the middle of a sequence.
    NotYet,
}

/// The keys of the relay's descriptors in a poll set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Input,
    Output,
    Pty,
}

impl End {
    const ALL: [Self; 3] = [Self::Input, Self::Output, Self::Pty];
}

impl Relay {
    pub(crate) fn new(typed: Typed, limit: Option<u64>, size: Size) -> Self {
        Self {
            typed,
            inward: Buffer::new(CAPACITY),
            outward: OutputQueue::new(CAPACITY, limit, Style::Terminal),
            limit,
            input_open: true,
            pty_open: true,
            screen: Screen::new(size),
            flow: Flow::Through,
            held: VecDeque::new(),
            interrupted: None,
            insists: false,
            hung_up: false,
            shown: None,
            keys: None,
        }
    }

    /// From now on what is shown is kept for who records it; with `input` what is typed, too, while it is echoed.
    pub(crate) fn listen(&mut self, input: bool) {
        self.shown = Some(Vec::new());
        self.keys = input.then(Vec::new);
    }

    pub(crate) fn take_shown(&mut self) -> Vec<u8> {
        self.shown.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(crate) fn take_typed(&mut self) -> Vec<u8> {
        self.keys.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether the caller's terminal went away. Says it once: who leads the session may keep the signal to
    /// itself.
    pub(crate) fn lost_terminal(&mut self) -> bool {
        std::mem::take(&mut self.hung_up)
    }

    /// The caller's terminal went away, as somebody else noticed.
    pub(crate) fn lose_terminal(&mut self) {
        self.hung_up = true;
    }

    /// Whether Ctrl-C was typed twice with nothing between, and the first was not heeded. Says it once.
    pub(crate) fn insists_on_interrupting(&mut self) -> bool {
        std::mem::take(&mut self.insists)
    }

    /// True once everything the inside wrote has reached the terminal.
    pub(crate) fn is_finished(&self) -> bool {
        !self.pty_open && !self.owes_output()
    }

    /// Whether the terminal has not yet taken all that was read.
    pub(crate) fn owes_output(&self) -> bool {
        !self.outward.is_empty() || !self.held.is_empty()
    }

    /// The terminal has another size.
    pub(crate) fn resize(&mut self, size: Size) {
        self.screen.resize(size);
    }

    /// Lets the terminal take what it was given, and no more than the end of an unfinished sequence. A flood of output
    /// does not delay a question, nor does a sequence that never ends.
    pub(crate) fn settle(&mut self, output: BorrowedFd<'_>, now: Instant) -> Settled {
        let (until, mut bytes_left) = match self.flow {
            Flow::Holding => return Settled::Yes,
            Flow::Settling { until, bytes_left } => (until, bytes_left),
            Flow::Through => (now + TIME_TO_FINISH, BYTES_TO_FINISH),
        };
        self.outward.drain_to(|shown| rustix::io::write(output, shown));
        while !self.screen.is_between_sequences()
            && self.outward.is_empty()
            && !self.held.is_empty()
            && bytes_left > 0
        {
            let next = &self.held.make_contiguous()[..];
            let most = next.len().min(bytes_left).min(CAPACITY);
            let length = self.screen.length_to_finish(&next[..most]);
            bytes_left -= length;
            self.show_some_held(length);
            self.outward.drain_to(|shown| rustix::io::write(output, shown));
        }
        self.flow = Flow::Settling { until, bytes_left };
        let is_cut = now >= until || bytes_left == 0 || !self.pty_open;
        let is_settled = self.outward.is_empty() && (is_cut || self.screen.is_between_sequences());
        if is_settled { Settled::Yes } else { Settled::NotYet }
    }

    /// How long until a sequence that does not end is no longer waited for.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match self.flow {
            Flow::Settling { until, .. } if self.outward.is_empty() => Some(until),
            _ => None,
        }
    }

    /// Whether words of ours would stand between two sequences now.
    pub(crate) fn is_between_sequences(&self) -> bool {
        self.outward.is_empty() && self.screen.is_between_sequences()
    }

    /// From now on the terminal is used for something else; it has [settled](Self::settle). Says what to write before and
    /// after that.
    pub(crate) fn hold(&mut self) -> Surroundings {
        self.flow = Flow::Holding;
        self.screen.surroundings()
    }

    /// What to write around it by now, after the terminal's size has changed.
    pub(crate) fn surroundings(&mut self) -> Surroundings {
        self.screen.surroundings()
    }

    /// The terminal shows what the inside writes again.
    pub(crate) fn release(&mut self, output: BorrowedFd<'_>) {
        if std::mem::replace(&mut self.flow, Flow::Through) != Flow::Through {
            self.show_held(output);
        }
    }

    /// Shows as much as the terminal takes of what was held back.
    fn show_held(&mut self, output: BorrowedFd<'_>) {
        loop {
            self.outward.drain_to(|shown| rustix::io::write(output, shown));
            if self.held.is_empty() || !self.outward.has_room() {
                break;
            }
            self.show_some_held(usize::MAX);
        }
        if self.held.is_empty() && !self.pty_open {
            self.outward.conclude();
        }
    }

    fn show_some_held(&mut self, most: usize) {
        let (held, screen, kept) = (&mut self.held, &mut self.screen, &mut self.shown);
        self.outward.fill_with(
            |into| take_from(held, into, most),
            |shown| {
                screen.watch(shown);
                keep(kept, shown);
            },
        );
    }

    /// Takes keys that were read by somebody else; what finds no room is lost, as it is in a terminal.
    pub(crate) fn type_in(&mut self, keys: &[u8], pty: BorrowedFd<'_>) {
        for key in keys {
            self.inward.push(*key);
        }
        self.inward.drain_to(|keys| rustix::io::write(pty, keys));
    }

    /// Nothing more comes from inside.
    pub(crate) fn conclude(&mut self) {
        self.pty_open = false;
        if self.held.is_empty() {
            self.outward.conclude();
        }
    }

    /// What the terminal was not shown, if it was too much.
    pub(crate) fn capped(&self) -> Option<Capped> {
        let (limit, cut) = self.limit.zip(self.outward.cut())?;
        Some(Capped::new(Stream::Terminal, limit, cut))
    }

    /// Adds what is worth waiting for now; an end with nothing to do is left out, so that a
    /// hung-up descriptor cannot keep the loop spinning.
    pub(crate) fn register<'fd>(&self, ends: &Ends<'fd>, set: &mut PollSet<'fd>) {
        let mut add = |end: End, descriptor, events: PollFlags| {
            if !events.is_empty() {
                set.add(end as usize, descriptor, events);
            }
        };
        if let Some(input) = ends.input.filter(|_| self.input_open && self.inward.has_room()) {
            add(End::Input, input, PollFlags::IN);
        }
        let is_owed = match self.flow {
            Flow::Through => self.owes_output(),
            Flow::Settling { .. } => !self.outward.is_empty(),
            Flow::Holding => false,
        };
        if is_owed {
            add(End::Output, ends.output, PollFlags::OUT);
        }
        if self.pty_open {
            let mut events = PollFlags::empty();
            events.set(PollFlags::IN, self.has_room());
            events.set(PollFlags::OUT, !self.inward.is_empty());
            add(End::Pty, ends.pty, events);
        }
    }

    /// Moves what can be moved at the ends that are ready.
    pub(crate) fn handle(&mut self, ready: &Ready, ends: &Ends<'_>) {
        for end in End::ALL {
            let events = ready.at(end as usize);
            if !events.is_empty() {
                self.serve(end, events, ends);
            }
        }
    }

    fn serve(&mut self, end: End, ready: PollFlags, ends: &Ends<'_>) {
        const READABLE: PollFlags = PollFlags::IN.union(PollFlags::HUP).union(PollFlags::ERR);
        match end {
            End::Input => {
                let Some(input) = ends.input else { return };
                let filled = self.inward.fill_from(input);
                let typed = match filled {
                    Filled::Bytes(count) => count,
                    Filled::NothingNow | Filled::Closed => 0,
                };
                self.heed(typed);
                if self.keys.is_some() && typed > 0 && echoes(ends.pty) {
                    keep(&mut self.keys, self.inward.newest(typed));
                }
                match (self.typed, filled) {
                    (Typed::Lines, Filled::Closed) if !ready.contains(PollFlags::HUP) => {
                        self.inward.push(END_OF_INPUT);
                    }
                    (Typed::Lines, Filled::Bytes(_)) if self.inward.ends_within_a_line() => {
                        self.inward.push(END_OF_INPUT);
                    }
                    (_, filled) => {
                        self.input_open = filled != Filled::Closed;
                        self.hung_up = !self.input_open && ready.contains(PollFlags::HUP);
                    }
                }
                self.inward.drain_to(|keys| rustix::io::write(ends.pty, keys));
            }
            End::Output if self.flow == Flow::Through => self.show_held(ends.output),
            End::Output => {
                self.outward.drain_to(|shown| rustix::io::write(ends.output, shown));
            }
            End::Pty => {
                if ready.contains(PollFlags::OUT) {
                    self.inward.drain_to(|keys| rustix::io::write(ends.pty, keys));
                }
                if ready.intersects(READABLE) && self.keeps_back() {
                    self.hold_back(ends.pty);
                } else if ready.intersects(READABLE) && self.outward.has_room() {
                    let (screen, kept) = (&mut self.screen, &mut self.shown);
                    let filled = self.outward.fill_from(ends.pty, |shown| {
                        screen.watch(shown);
                        keep(kept, shown);
                    });
                    if filled == Filled::Closed {
                        self.conclude();
                    }
                    self.outward.drain_to(|shown| rustix::io::write(ends.output, shown));
                }
            }
        }
    }

    /// Whether what comes from inside must wait behind something.
    fn keeps_back(&self) -> bool {
        self.flow != Flow::Through || !self.held.is_empty()
    }

    fn has_room(&self) -> bool {
        match self.keeps_back() {
            true => self.held.len() < HELD,
            false => self.outward.has_room(),
        }
    }

    fn hold_back(&mut self, pty: BorrowedFd<'_>) {
        let mut read = [0; CAPACITY];
        match rustix::io::read(pty, &mut read) {
            Ok(count) if count > 0 => self.held.extend(&read[..count]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            // End of file, or `EIO` of a pty whose other side is closed.
            Ok(_) | Err(_) => self.conclude(),
        }
    }

    /// Looks for Ctrl-C in what was typed last.
    fn heed(&mut self, typed: usize) {
        let now = Instant::now();
        for byte in self.inward.newest(typed) {
            match (*byte == INTERRUPT, self.interrupted) {
                (false, _) => self.interrupted = None,
                (true, None) => self.interrupted = Some(now),
                (true, Some(first)) => self.insists |= now - first >= TIME_TO_HEED,
            }
        }
    }
}

fn keep(kept: &mut Option<Vec<u8>>, bytes: &[u8]) {
    if let Some(kept) = kept {
        kept.extend_from_slice(bytes);
    }
}

fn take_from(held: &mut VecDeque<u8>, into: &mut [u8], most: usize) -> Filled {
    let count = held.len().min(into.len()).min(most);
    for (to, byte) in into.iter_mut().zip(held.drain(..count)) {
        *to = byte;
    }
    Filled::Bytes(count)
}

/// The descriptors of one turn of the loop. `input` is absent while keys are not the command's.
#[derive(Debug)]
pub(crate) struct Ends<'fd> {
    pub(crate) input: Option<BorrowedFd<'fd>>,
    pub(crate) output: BorrowedFd<'fd>,
    pub(crate) pty: BorrowedFd<'fd>,
}

#[cfg(test)]
#[path = "relay_tests.rs"]
mod tests;
