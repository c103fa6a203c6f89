//! The caller's terminal: raw while the command owns it, and always given back as it was found.
//!
//! The terminal itself never goes inside; bytes are relayed between it and the sandbox's own pty.
//! File status flags of the caller's descriptors are left alone, since the shell shares them.

use crate::error::{Result, SupervisorError};
use crate::relay::Typed;
use crate::screen::Size;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, Termios, Winsize};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Who else may be using the terminal at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    /// The command has the terminal to itself.
    Alone,
    /// Standard output is a pipe: its reader (a pager) may set up the terminal and read keys from
    /// it. The terminal then stays as it is, and input is only taken line by line.
    WithPipeline,
    /// Standard input is something else: the terminal only shows what the command writes. It stays as
    /// it is, and what is typed there is never the command's.
    ShowsOnly,
}

#[derive(Debug)]
pub(crate) struct HostTerminal {
    input: OwnedFd,
    output: OwnedFd,
    /// As found, while raw mode is on.
    saved: Option<Termios>,
    sharing: Sharing,
    /// Without cursor movement (`TERM=dumb`): nothing drawn on it could be taken away again.
    is_dumb: bool,
    cover: Cover,
}

/// Something of ours over what the command shows.
#[derive(Debug, Default)]
struct Cover {
    /// Takes it away; none while nothing of ours is there.
    after: Option<Vec<u8>>,
    /// What the terminal has not taken yet.
    unwritten: Vec<u8>,
}

/// How long a terminal that takes nothing is waited for, to restore it.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl HostTerminal {
    /// `None` if no standard stream is a terminal: then there is nothing to relay.
    pub(crate) fn of_caller() -> Result<Option<Self>> {
        let stdin = Some(rustix::stdio::stdin()).filter(|fd| rustix::termios::isatty(fd));
        let stdout = rustix::stdio::stdout();
        let stderr = rustix::stdio::stderr();
        let shown_on = [stdout, stderr].into_iter().find(|fd| rustix::termios::isatty(fd));
        let (Some(input), Some(output)) = (stdin.or(shown_on), shown_on.or(stdin)) else {
            return Ok(None);
        };
        let into_pipe = rustix::fs::fstat(stdout)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
        let sharing = match stdin {
            None => Sharing::ShowsOnly,
            Some(_) if into_pipe => Sharing::WithPipeline,
            Some(_) => Sharing::Alone,
        };
        Ok(Some(Self {
            input: own_description(input, OFlags::RDONLY)?,
            output: own_description(output, OFlags::WRONLY)?,
            saved: None,
            sharing,
            is_dumb: std::env::var_os("TERM").is_some_and(|term| term == "dumb"),
            cover: Cover::default(),
        }))
    }

    /// A terminal that does not tell its size is taken for a classic one.
    pub(crate) fn size_for_pty(&self) -> Winsize {
        const CLASSIC: Winsize = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        self.window_size().unwrap_or(CLASSIC)
    }

    pub(crate) fn size(&self) -> Size {
        let size = self.size_for_pty();
        (size.ws_row, size.ws_col)
    }

    pub(crate) fn window_size(&self) -> Option<Winsize> {
        rustix::termios::tcgetwinsize(&self.input).ok()
    }

    /// To be called once, before the command reads anything.
    pub(crate) fn introduce(&self, pty: BorrowedFd<'_>) -> Result<()> {
        match self.sharing {
            Sharing::Alone => Ok(()),
            Sharing::WithPipeline => silence_echo(pty),
            // The caller's terminal is cooked and does what is to be done with a line's end.
            Sharing::ShowsOnly => Ok(palisade_sys::tty::make_raw(pty).map(drop)?),
        }
    }

    /// Raw mode, if this process is in the foreground: a background job must not touch the terminal.
    pub(crate) fn take(&mut self) -> Result<()> {
        match self.sharing {
            Sharing::Alone if self.saved.is_none() => self.make_raw(),
            _ => Ok(()),
        }
    }

    fn make_raw(&mut self) -> Result<()> {
        if !self.is_foreground() {
            return Ok(());
        }
        let found = rustix::termios::tcgetattr(&self.input).map_err(SupervisorError::Terminal)?;
        let mut raw = found.clone();
        raw.make_raw();
        rustix::termios::tcsetattr(&self.input, OptionalActions::Drain, &raw)
            .map_err(SupervisorError::Terminal)?;
        self.saved = Some(found);
        Ok(())
    }

    /// Raw mode again where somebody else has changed it: a shell sets its own when a job was stopped with SIGSTOP, of
    /// which we hear only afterwards.
    pub(crate) fn take_again(&mut self) -> Result<()> {
        if self.saved.is_some() && self.is_in_line_mode() {
            self.saved = None;
        }
        self.take()
    }

    /// Raw mode while a question is shown on a terminal that only shows what the command writes. Not while another
    /// program of the pipeline reads keys from it.
    pub(crate) fn borrow_for_question(&mut self) -> Result<()> {
        match self.sharing {
            Sharing::ShowsOnly if self.saved.is_none() && self.is_in_line_mode() => self.make_raw(),
            _ => self.take(),
        }
    }

    /// No question is shown any more.
    pub(crate) fn return_borrowed(&mut self) {
        if self.sharing == Sharing::ShowsOnly && !self.is_covered() {
            self.give_back();
        }
    }

    /// Whether keys typed now come to us one by one.
    pub(crate) fn is_raw(&self) -> bool {
        self.saved.is_some()
    }

    /// Leaves the terminal as it was found.
    pub(crate) fn give_back(&mut self) {
        self.uncover_now();
        if let Some(found) = self.saved.take() {
            // Nothing better can be done if the terminal is gone.
            let _ = rustix::termios::tcsetattr(&self.input, OptionalActions::Drain, &found);
        }
    }

    /// Whether keys may become the command's without a signal telling so.
    pub(crate) fn awaits_keys(&self) -> bool {
        self.sharing != Sharing::ShowsOnly && !self.may_read()
    }

    pub(crate) fn input(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    pub(crate) fn output(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }

    /// Whether a question can be drawn over what it shows, and answered there.
    pub(crate) fn can_show_panel(&self) -> bool {
        match self.sharing {
            _ if self.is_dumb => false,
            Sharing::Alone => true,
            Sharing::ShowsOnly => self.is_raw() || self.is_in_line_mode(),
            Sharing::WithPipeline => false,
        }
    }

    /// Whether a line of ours can stand among what it shows.
    pub(crate) fn takes_lines(&self) -> bool {
        match self.sharing {
            _ if self.is_dumb => true,
            Sharing::Alone => false,
            Sharing::ShowsOnly => true,
            // The rest of the pipeline leaves it in its plain mode: nobody draws on it.
            Sharing::WithPipeline => self.is_in_line_mode(),
        }
    }

    fn is_in_line_mode(&self) -> bool {
        rustix::termios::tcgetattr(&self.input)
            .is_ok_and(|now| now.local_modes.contains(LocalModes::ICANON))
    }

    /// Whether it only shows what is written.
    pub(crate) fn only_shows(&self) -> bool {
        self.sharing == Sharing::ShowsOnly
    }

    /// Writes words of our own, and says how much of them was taken: nothing waits for a terminal that is
    /// stopped (Ctrl-S).
    pub(crate) fn write(&self, words: &[u8]) -> usize {
        let mut taken = 0;
        while taken < words.len() {
            match rustix::io::write(&self.output, &words[taken..]) {
                Ok(count) => taken += count,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        taken
    }

    /// Whether something of ours is there, or on its way there or away.
    pub(crate) fn is_covered(&self) -> bool {
        self.cover.after.is_some() || !self.cover.unwritten.is_empty()
    }

    /// Whether all of ours that is to be there is.
    pub(crate) fn is_up_to_date(&self) -> bool {
        self.cover.after.is_some() && self.cover.unwritten.is_empty()
    }

    /// Whether it has yet to take words of ours.
    pub(crate) fn owes_cover(&self) -> bool {
        !self.cover.unwritten.is_empty()
    }

    /// Shows this over what the command shows; `after` takes it away again.
    pub(crate) fn cover(&mut self, picture: &[u8], after: Vec<u8>) {
        self.cover.after = Some(after);
        self.draw(picture);
    }

    /// Something else takes it away by now.
    pub(crate) fn cover_again(&mut self, after: Vec<u8>) {
        if self.cover.after.is_some() {
            self.cover.after = Some(after);
        }
    }

    pub(crate) fn draw(&mut self, picture: &[u8]) {
        self.cover.unwritten.extend_from_slice(picture);
        self.flush();
    }

    pub(crate) fn uncover(&mut self) {
        if let Some(after) = self.cover.after.take() {
            self.draw(&after);
        }
        self.flush();
    }

    /// Writes what the terminal takes now.
    pub(crate) fn flush(&mut self) {
        if !self.cover.unwritten.is_empty() {
            let count = self.write(&self.cover.unwritten);
            self.cover.unwritten.drain(..count);
        }
    }

    /// The same as [`Self::uncover`], where there is no later.
    pub(crate) fn uncover_now(&mut self) {
        self.uncover();
        let end = Instant::now() + LAST_WORDS;
        while self.owes_cover() && Instant::now() < end {
            let mut set = [PollFd::new(&self.output, PollFlags::OUT)];
            let left = end.saturating_duration_since(Instant::now());
            if palisade_sys::proc::poll(&mut set, Some(left)).is_err() {
                break;
            }
            let is_gone = set[0].revents().intersects(PollFlags::ERR | PollFlags::HUP);
            self.flush();
            if is_gone {
                break;
            }
        }
        self.cover.unwritten.clear();
    }

    /// Whether nothing that was written still waits for a line to carry it. Of a pseudo-terminal the kernel
    /// does not tell.
    pub(crate) fn has_sent_all(&self) -> bool {
        palisade_sys::tty::unsent(&self.output).map_or(true, |count| count == 0)
    }

    /// Whether keys typed now are the command's.
    pub(crate) fn may_read(&self) -> bool {
        match self.sharing {
            Sharing::Alone => self.saved.is_some(),
            Sharing::ShowsOnly => false,
            Sharing::WithPipeline => self.is_foreground() && self.is_in_line_mode(),
        }
    }

    pub(crate) fn typed(&self) -> Typed {
        match self.sharing {
            Sharing::Alone | Sharing::ShowsOnly => Typed::Keys,
            Sharing::WithPipeline => Typed::Lines,
        }
    }

    pub(crate) fn is_foreground(&self) -> bool {
        palisade_sys::proc::foreground_group(&self.input)
            .is_ok_and(|foreground| foreground == palisade_sys::proc::own_group())
    }
}

impl Drop for HostTerminal {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Opens the terminal again, so that non-blocking mode is not shared with the caller's shell. Where
/// that is refused (a terminal that belongs to another user, after `su`), a plain duplicate serves.
fn own_description(fd: BorrowedFd<'_>, access: OFlags) -> Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
        .or_else(|_| rustix::io::fcntl_dupfd_cloexec(fd, 3))
        .map_err(SupervisorError::Terminal)
}

/// The caller's terminal echoes already; twice would be once too often.
fn silence_echo(pty: BorrowedFd<'_>) -> Result<()> {
    let mut inside = rustix::termios::tcgetattr(pty).map_err(SupervisorError::Terminal)?;
    inside.local_modes.remove(LocalModes::ECHO);
    rustix::termios::tcsetattr(pty, OptionalActions::Now, &inside)
        .map_err(SupervisorError::Terminal)
}
