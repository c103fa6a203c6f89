//! A person at a terminal: who reads what it shows as a person does, and types.

use std::io;
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use palisade_sys::{proc, tty};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::termios::Winsize;

use crate::surroundings::end_with;
use crate::{Failure, Probe, argument};

pub(crate) const PROBES: &[Probe] = &[
    ("with-trusting-person", "-- COMMAND…", with_trusting_person),
    ("with-typing-person", "KEY -- COMMAND…", with_typing_person),
];

const ROWS: u16 = 24;
const COLUMNS: u16 = 80;
/// Somebody who reads has read all of it when nothing has changed for so long.
const READ: Duration = Duration::from_millis(1500);
/// Of a key that is held down.
const REPEATED: Duration = Duration::from_millis(60);
/// So long a key is held down.
const HELD: Duration = Duration::from_secs(4);
const TIMEOUT: Duration = Duration::from_secs(60);
const INTERRUPT: &[u8] = b"\x03";

/// Somebody who lets the command install what it wants to, and says no to everything else: yes, letter by letter, unless there is
/// a word on the screen of something being read.
fn with_trusting_person(arguments: &[String]) -> Result<String, Failure> {
    let mut terminal = Terminal::start(arguments)?;
    let (mut answers, mut was_seen) = (0, false);
    while terminal.follow(READ)? {
        was_seen |= terminal.seen().contains("wants to");
        if was_seen || answers > 3 {
            terminal.write(INTERRUPT)?;
            continue;
        }
        answers += 1;
        for key in [b"y", b"e", b"s", b"\r"] {
            terminal.write(key)?;
            terminal.follow(READ / 2)?;
        }
    }
    println!("{}", if was_seen { "saw the question" } else { "saw no question" });
    end_with(terminal.end()?)
}

/// Somebody who holds a key down and reads nothing.
fn with_typing_person(arguments: &[String]) -> Result<String, Failure> {
    let key = argument(arguments, 0, "KEY")?;
    let mut terminal = Terminal::start(arguments)?;
    let end = Instant::now() + palisade_testkit::patiently(HELD);
    while terminal.follow(REPEATED)? {
        let keys = if Instant::now() < end { key.as_bytes() } else { INTERRUPT };
        terminal.write(keys)?;
    }
    end_with(terminal.end()?)
}

/// A terminal of 24 rows in which a command runs.
struct Terminal {
    master: OwnedFd,
    /// Held open: what is left to read stays after the command.
    _terminal: OwnedFd,
    command: std::process::Child,
    screen: vt100::Parser<Appearance>,
    started: Instant,
}

/// What the screen does not keep.
#[derive(Default)]
struct Appearance {
    /// The colours of text that names none: `OSC 10` and `11`, and back by `110` and `111`.
    text: Option<Vec<u8>>,
    background: Option<Vec<u8>>,
    /// Whether small letters are drawn as lines and corners (`SCS`: DEC special graphics), as they are until something else
    /// is chosen: what was written in them last cannot be read.
    draws_lines: bool,
}

impl vt100::Callbacks for Appearance {
    fn unhandled_escape(
        &mut self,
        _: &mut vt100::Screen,
        intermediate: Option<u8>,
        _: Option<u8>,
        end: u8,
    ) {
        if intermediate == Some(b'(') {
            self.draws_lines = end == b'0';
        }
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, parameters: &[&[u8]]) {
        match parameters {
            [b"10", colour, ..] => self.text = Some(colour.to_vec()),
            [b"11", colour, ..] => self.background = Some(colour.to_vec()),
            [b"110", ..] => self.text = None,
            [b"111", ..] => self.background = None,
            _ => {}
        }
    }
}

impl Terminal {
    fn start(arguments: &[String]) -> Result<Self, Failure> {
        let master = tty::open_ptmx_in(palisade_sys::CWD, std::path::Path::new("/dev/ptmx"))?;
        let terminal = tty::open_slave(&master)?;
        let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&terminal, size)?;
        proc::setsid()?;
        tty::set_controlling_tty(&terminal)?;
        // Ctrl-C is for whoever reads it, not for this process.
        tty::make_raw(&terminal)?;
        let words: Vec<&String> =
            arguments.iter().skip_while(|word| *word != "--").skip(1).collect();
        let Some((program, words)) = words.split_first() else {
            return Err(Failure::Usage("COMMAND is missing".to_owned()));
        };
        let stream = || terminal.try_clone().map(Stdio::from);
        let command = Command::new(program)
            .args(words)
            .env("TERM", "xterm-256color")
            .stdin(stream()?)
            .stdout(stream()?)
            .stderr(stream()?)
            .spawn()?;
        // Nor is what the command tells its process group, so that a script around it ends as well.
        proc::ignore(proc::sig::SIGINT);
        let size = |number| NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN);
        let screen =
            vt100::Parser::new_with_callbacks(size(ROWS), size(COLUMNS), 0, Appearance::default());
        Ok(Self { master, _terminal: terminal, command, screen, started: Instant::now() })
    }

    fn write(&self, keys: &[u8]) -> io::Result<()> {
        rustix::io::write(&self.master, keys)?;
        Ok(())
    }

    /// Takes what is written until nothing is for so long; false when the command has ended.
    fn follow(&mut self, quiet: Duration) -> io::Result<bool> {
        if self.started.elapsed() > palisade_testkit::patiently(TIMEOUT) {
            self.command.kill()?;
        }
        let quiet = Timespec::try_from(quiet).map_err(io::Error::other)?;
        let mut chunk = [0; 4096];
        loop {
            let mut set = [PollFd::new(&self.master, PollFlags::IN)];
            if rustix::event::poll(&mut set, Some(&quiet))? == 0 {
                return Ok(self.command.try_wait()?.is_none());
            }
            let count = rustix::io::read(&self.master, &mut chunk)?;
            self.screen.process(&chunk[..count]);
        }
    }

    /// What can be read: letters in the colour of what is behind them cannot, nor can lines in place of letters.
    fn seen(&self) -> String {
        let (screen, own) = (self.screen.screen(), self.screen.callbacks());
        if own.draws_lines {
            return String::new();
        }
        let is_black = own.text.is_some() && own.text == own.background;
        let mut seen = String::new();
        for row in 0..ROWS {
            for column in 0..COLUMNS {
                let cell = screen.cell(row, column).filter(|cell| {
                    let is_plain = cell.fgcolor() == vt100::Color::Default
                        && cell.bgcolor() == vt100::Color::Default;
                    cell.has_contents() && !(is_plain && is_black)
                });
                seen.push_str(cell.map_or(" ", vt100::Cell::contents));
            }
            seen.push('\n');
        }
        seen
    }

    /// The command's code. Leaves the terminal open: to close it would end this process, whose it is.
    /// As a shell tells it.
    fn end(&mut self) -> io::Result<i32> {
        let status = self.command.wait()?;
        Ok(status.code().unwrap_or(128 + status.signal().unwrap_or(0)))
    }
}
