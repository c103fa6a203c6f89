//! Plays a recording in this terminal, at its own pace. The terminal must be as it was when it is done.

use palisade_record::cast::{CastError, CastEvent, CastKind, CastReader, SafeOutput};
use palisade_session::EndSignals;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How far an arrow key goes.
const JUMP: Duration = Duration::from_secs(5);
const CTRL_C: u8 = 3;

#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) speed: f64,
    pub(super) idle_limit: Option<Duration>,
}

impl Pace {
    /// How long to wait for an event that came so long after the one before it.
    fn pause(self, recorded: Duration) -> Duration {
        let pause = self.idle_limit.map_or(recorded, |limit| recorded.min(limit));
        Duration::try_from_secs_f64(pause.as_secs_f64() / self.speed).unwrap_or(pause)
    }
}

/// What a person pressed, or that the time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pressed {
    Nothing,
    Pause,
    Ahead,
    Back,
    Quit,
}

pub(super) struct Player {
    path: PathBuf,
    reader: CastReader,
    pace: Pace,
    safe: SafeOutput,
    /// How far the recording was shown.
    at: Duration,
    /// None if nobody can press a key.
    keys: Option<Termios>,
    signals: EndSignals,
}

/// Everything, without a pause. A reader that has gone away is not an error.
pub(super) fn print_all(reader: &mut CastReader) -> anyhow::Result<()> {
    let mut safe = SafeOutput::default();
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let mut write = |text: &str| match stdout.write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    };
    while let Some(CastEvent { kind, text, .. }) = reader.next_event()? {
        if kind == CastKind::Output && !write(&safe.filter(&text))? {
            return Ok(());
        }
    }
    match stdout.flush() {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        flushed => Ok(flushed?),
    }
}

impl Player {
    pub(super) fn new(path: PathBuf, reader: CastReader, pace: Pace) -> anyhow::Result<Self> {
        let signals = EndSignals::take()?;
        let keys = match io::stdin().is_terminal() {
            true => Some(make_raw()?),
            false => None,
        };
        let (safe, at) = (SafeOutput::default(), Duration::ZERO);
        Ok(Self { path, reader, pace, safe, at, keys, signals })
    }

    pub(super) fn play(mut self) -> anyhow::Result<()> {
        let mut ahead_to = Duration::ZERO;
        while let Some(event) = self.reader.next_event()? {
            let recorded = event.time.saturating_sub(self.at.max(ahead_to));
            self.at = self.at.max(event.time.min(ahead_to));
            match self.wait(self.pace.pause(recorded))? {
                Pressed::Quit => return Ok(()),
                Pressed::Ahead => ahead_to = event.time + JUMP,
                Pressed::Back => {
                    self.show_until(self.at.saturating_sub(JUMP))?;
                    ahead_to = Duration::ZERO;
                    continue;
                }
                Pressed::Nothing | Pressed::Pause => {}
            }
            self.at = event.time;
            self.show(&event)?;
        }
        Ok(())
    }

    fn show(&mut self, event: &CastEvent) -> anyhow::Result<()> {
        if event.kind == CastKind::Output {
            self.write(event)?;
        }
        Ok(())
    }

    fn write(&mut self, event: &CastEvent) -> anyhow::Result<()> {
        let mut text = self.safe.filter(&event.text);
        if self.keys.is_some() {
            // Nobody else ends lines of a command that had no terminal.
            text = with_returns(&text);
        }
        let mut stdout = io::stdout().lock();
        Ok(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())?)
    }

    /// From the beginning, at once, on an empty screen.
    fn show_until(&mut self, time: Duration) -> anyhow::Result<()> {
        let mut clear = self.safe.end();
        clear.push_str("\x1b[H\x1b[2J");
        io::stdout().lock().write_all(clear.as_bytes())?;
        self.reader = CastReader::open(&self.path)?;
        self.safe = SafeOutput::default();
        self.at = Duration::ZERO;
        while let Some(event) = self.next_until(time)? {
            self.at = event.time;
            self.show(&event)?;
        }
        self.at = time;
        Ok(())
    }

    /// The event after the last one until then is shown with it: it cannot be put back.
    fn next_until(&mut self, time: Duration) -> Result<Option<CastEvent>, CastError> {
        match self.at >= time {
            true => Ok(None),
            false => self.reader.next_event(),
        }
    }

    /// Waits for the time to pass, and for as long as it is paused.
    fn wait(&self, time: Duration) -> anyhow::Result<Pressed> {
        let (mut end, mut paused) = (Some(Instant::now() + time), None);
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            match (self.pressed(left)?, paused) {
                (Pressed::Pause, None) => {
                    paused = Some(left.unwrap_or_default());
                    end = None;
                }
                (Pressed::Pause, Some(left)) => {
                    end = Some(Instant::now() + left);
                    paused = None;
                }
                (Pressed::Nothing, _) if end.is_some_and(|end| end <= Instant::now()) => {
                    return Ok(Pressed::Nothing);
                }
                (Pressed::Nothing, _) => {}
                (pressed, _) => return Ok(pressed),
            }
        }
    }

    fn pressed(&self, patience: Option<Duration>) -> anyhow::Result<Pressed> {
        let stdin = io::stdin();
        let mut watched = vec![PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        if self.keys.is_some() {
            watched.push(PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN));
        }
        let patience = patience.and_then(|time| Timespec::try_from(time).ok());
        match rustix::event::poll(&mut watched, patience.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return Ok(Pressed::Nothing),
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        if !watched[0].revents().is_empty() {
            return Ok(Pressed::Quit);
        }
        let mut typed = [0; 64];
        let count = match rustix::io::read(&stdin, &mut typed) {
            Ok(0) | Err(Errno::IO) => return Ok(Pressed::Quit),
            Ok(count) => count,
            Err(_) => return Ok(Pressed::Nothing),
        };
        Ok(match &typed[..count] {
            [b' ', ..] => Pressed::Pause,
            [b'q' | b'Q' | CTRL_C, ..] => Pressed::Quit,
            b"\x1b[C" | b"\x1bOC" => Pressed::Ahead,
            b"\x1b[D" | b"\x1bOD" => Pressed::Back,
            _ => Pressed::Nothing,
        })
    }
}

/// Returns what was set before.
fn make_raw() -> Result<Termios, Errno> {
    let saved = tcgetattr(io::stdin())?;
    let mut raw = saved.clone();
    raw.make_raw();
    tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
    Ok(saved)
}

/// A terminal in raw mode does not go to the beginning of a line by itself.
fn with_returns(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut last = '\0';
    for character in text.chars() {
        if character == '\n' && last != '\r' {
            whole.push('\r');
        }
        whole.push(character);
        last = character;
    }
    whole
}

impl Drop for Player {
    fn drop(&mut self) {
        // A terminal that is gone needs none of it.
        let mut stdout = io::stdout().lock();
        let _ = stdout.write_all(self.safe.end().as_bytes()).and_then(|()| stdout.flush());
        if let Some(saved) = &self.keys {
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, saved);
        }
    }
}
