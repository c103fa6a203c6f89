//! Carries bytes between the caller's terminal and the sandbox's pty, unchanged and in order.
//!
//! Buffers are bounded: a side that does not read slows the other one down, and nothing is dropped.

use crate::screen::Screen;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::time::{Duration, Instant};

const CAPACITY: usize = 16 * 1024;

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filled {
    Some,
    NothingNow,
    /// End of file, or (a pty whose other side is closed) `EIO`.
    Closed,
}

/// Bytes read from one side and not yet written to the other.
#[derive(Debug)]
struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    fn new() -> Self {
        Self { bytes: vec![0; CAPACITY], start: 0, end: 0 }
    }

    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    fn has_room(&self) -> bool {
        self.end < CAPACITY
    }

    fn fill_from(&mut self, source: impl AsFd) -> Filled {
        match rustix::io::read(source, &mut self.bytes[self.end..]) {
            Ok(0) => Filled::Closed,
            Ok(count) => {
                self.end += count;
                Filled::Some
            }
            Err(Errno::AGAIN | Errno::INTR) => Filled::NothingNow,
            Err(_) => Filled::Closed,
        }
    }

    /// One byte more, if there is room; [`Self::has_room`] was asked before.
    fn push(&mut self, byte: u8) {
        if let Some(free) = self.bytes.get_mut(self.end) {
            *free = byte;
            self.end += 1;
        }
    }

    /// Whether a line was handed over before its end although the whole of it would have fitted.
    fn ends_within_a_line(&self) -> bool {
        self.has_room() && self.bytes[..self.end].last() != Some(&b'\n')
    }

    /// Whether the other side still takes bytes. What a closed side did not take is forgotten.
    fn drain_to(&mut self, sink: impl AsFd) -> bool {
        while !self.is_empty() {
            match rustix::io::write(&sink, &self.bytes[self.start..self.end]) {
                Ok(count) => self.start += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                Err(_) => {
                    self.start = self.end;
                    break;
                }
            }
        }
        let written = self.is_empty();
        self.start = 0;
        self.end = 0;
        written
    }
}

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
    outward: Buffer,
    input_open: bool,
    pty_open: bool,
    /// What the inside makes of the terminal.
    screen: Screen,
    /// When Ctrl-C was typed first, if nothing else was since.
    interrupted: Option<Instant>,
    /// Whether it was typed again, later than that.
    insists: bool,
    /// Whether the caller's terminal is gone, and nobody heard of it yet.
    hung_up: bool,
}

/// Which descriptor of a poll set stands for which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Input,
    Output,
    Pty,
}

impl Relay {
    pub(crate) fn new(typed: Typed) -> Self {
        Self {
            typed,
            inward: Buffer::new(),
            outward: Buffer::new(),
            input_open: true,
            pty_open: true,
            screen: Screen::default(),
            interrupted: None,
            insists: false,
            hung_up: false,
        }
    }

    /// Whether the caller's terminal went away. Says it once: who leads the session may keep the signal to
    /// itself.
    pub(crate) fn lost_terminal(&mut self) -> bool {
        std::mem::take(&mut self.hung_up)
    }

    /// Whether Ctrl-C was typed twice with nothing between, and the first was not heeded. Says it once.
    pub(crate) fn insists_on_interrupting(&mut self) -> bool {
        std::mem::take(&mut self.insists)
    }

    /// True once everything the inside wrote has reached the terminal.
    pub(crate) fn is_finished(&self) -> bool {
        !self.pty_open && self.outward.is_empty()
    }

    /// Whether the terminal has not yet taken all that was read.
    pub(crate) fn owes_output(&self) -> bool {
        !self.outward.is_empty()
    }

    /// Whether a full-screen program has the terminal.
    pub(crate) fn is_full_screen(&self) -> bool {
        self.screen.is_full()
    }

    /// Takes keys that were read by somebody else; what finds no room is lost, as it is in a terminal.
    pub(crate) fn type_in(&mut self, keys: &[u8], pty: BorrowedFd<'_>) {
        for key in keys {
            self.inward.push(*key);
        }
        self.inward.drain_to(pty);
    }

    /// Adds what is worth waiting for now; an end with nothing to do is left out, so that a
    /// hung-up descriptor can not keep the loop spinning.
    pub(crate) fn interests<'fd>(
        &self,
        ends: &Ends<'fd>,
        set: &mut Vec<PollFd<'fd>>,
        order: &mut Vec<End>,
    ) {
        let mut add = |end, fd, events: PollFlags| {
            if !events.is_empty() {
                set.push(PollFd::from_borrowed_fd(fd, events));
                order.push(end);
            }
        };
        if let Some(input) = ends.input.filter(|_| self.input_open && self.inward.has_room()) {
            add(End::Input, input, PollFlags::IN);
        }
        if !self.outward.is_empty() {
            add(End::Output, ends.output, PollFlags::OUT);
        }
        if self.pty_open {
            let mut events = PollFlags::empty();
            events.set(PollFlags::IN, self.outward.has_room());
            events.set(PollFlags::OUT, !self.inward.is_empty());
            add(End::Pty, ends.pty, events);
        }
    }

    /// Moves what can be moved at an end that `poll` found ready.
    pub(crate) fn serve(&mut self, end: End, ready: PollFlags, ends: &Ends<'_>) {
        const READABLE: PollFlags = PollFlags::IN.union(PollFlags::HUP).union(PollFlags::ERR);
        match end {
            End::Input => {
                let Some(input) = ends.input else { return };
                let before = self.inward.end;
                match (self.typed, self.inward.fill_from(input)) {
                    (Typed::Lines, Filled::Closed) if !ready.contains(PollFlags::HUP) => {
                        self.inward.push(END_OF_INPUT);
                    }
                    (Typed::Lines, Filled::Some) if self.inward.ends_within_a_line() => {
                        self.inward.push(END_OF_INPUT);
                    }
                    (_, filled) => {
                        self.input_open = filled != Filled::Closed;
                        self.hung_up = !self.input_open && ready.contains(PollFlags::HUP);
                    }
                }
                let now = Instant::now();
                for byte in &self.inward.bytes[before..self.inward.end] {
                    match (*byte == INTERRUPT, self.interrupted) {
                        (false, _) => self.interrupted = None,
                        (true, None) => self.interrupted = Some(now),
                        (true, Some(first)) => self.insists |= now - first >= TIME_TO_HEED,
                    }
                }
                self.inward.drain_to(ends.pty);
            }
            End::Output => {
                self.outward.drain_to(ends.output);
            }
            End::Pty => {
                if ready.contains(PollFlags::OUT) {
                    self.inward.drain_to(ends.pty);
                }
                if ready.intersects(READABLE) && self.outward.has_room() {
                    let before = self.outward.end;
                    self.pty_open = self.outward.fill_from(ends.pty) != Filled::Closed;
                    self.screen.watch(&self.outward.bytes[before..self.outward.end]);
                    self.outward.drain_to(ends.output);
                }
            }
        }
    }
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
