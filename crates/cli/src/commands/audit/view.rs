//! The records of one run, or of all, that a person asked for: once, or as they are written.

use super::since::Since;
use super::{not_begun, nothing_recorded, tell_that_nothing_is_recorded, told};
use crate::output::Paint;
use anyhow::bail;
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use palisade_record::{EventKind, LogLevel, Record, Records, escape, read, sandboxes};
use palisade_session::sessions;
use palisade_session::{AppDirs, SessionError};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::time::Duration;

/// How often a log that is followed is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// This many runs are named where several are meant.
const MAX_NAMED: usize = 8;

#[derive(Args, Debug)]
pub(super) struct View {
    /// The run or session, by its id, the beginning or end of it, or its name [default: all]
    #[arg(id = "sid", value_name = "SESSION")]
    session: Option<String>,

    /// Go on with what is recorded, until the session has ended
    #[arg(long, short)]
    follow: bool,

    #[command(flatten)]
    filter: Filter,

    /// Print the records as in the log, one JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Args, Clone, Debug)]
pub(super) struct Filter {
    /// Only from then on: a time, how long ago (10m), or after the record with this number (`seq`)
    #[arg(long, value_name = "TIME|DURATION|CURSOR")]
    since: Option<Since>,

    /// Only events with this name, such as access-decided or SYSCALL_BLOCKED (repeatable)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    event: Vec<EventName>,

    /// Only events of this level and above
    #[arg(long, value_name = "LEVEL")]
    level: Option<Level>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Level {
    Info,
    Warn,
    Error,
    Critical,
}

impl From<Level> for LogLevel {
    fn from(level: Level) -> Self {
        match level {
            Level::Info => Self::Info,
            Level::Warn => Self::Warn,
            Level::Error => Self::Error,
            Level::Critical => Self::Critical,
        }
    }
}

/// As it is written in the log.
#[derive(Clone, Debug)]
struct EventName(String);

impl std::str::FromStr for EventName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let written = name.trim().to_ascii_uppercase().replace('-', "_");
        match EventKind::names().contains(&written.as_str()) {
            true => Ok(Self(written)),
            false => Err(format!("no event has this name; there are {}", told_names())),
        }
    }
}

fn told_names() -> String {
    let names = EventKind::names().iter().map(|name| name.to_ascii_lowercase().replace('_', "-"));
    names.collect::<Vec<_>>().join(", ")
}

impl Filter {
    pub(super) fn includes(&self, record: &Record) -> bool {
        self.since.is_none_or(|since| since.includes(record))
            && self.level.is_none_or(|level| record.event.level >= LogLevel::from(level))
            && (self.event.is_empty()
                || self.event.iter().any(|name| name.0 == record.event.kind.name()))
    }
}

impl View {
    pub(super) fn execute(self, places: &AppDirs) -> anyhow::Result<ExitCode> {
        if self.session.is_none() && self.follow {
            // The first run makes it.
            while not_begun(places) {
                if !wait()? {
                    return Ok(ExitCode::SUCCESS);
                }
            }
        }
        if self.session.is_none() && nothing_recorded(places) {
            return Ok(tell_that_nothing_is_recorded());
        }
        let meant = self.session.as_deref().map(|named| meant(places, named)).transpose()?;
        let mut records = read(&places.audit_log(), meant.as_deref())?;
        let is_over = || {
            let session = meant.as_deref().and_then(|id| sessions::find(places, id).ok());
            session.is_none_or(|(directory, _)| !directory.is_alive())
        };
        let mut printer = Printer { view: &self, zone: TimeZone::system(), has_ended: false };
        loop {
            // Looked at before the log is read: what was recorded until then is printed.
            let was_over = meant.is_some() && is_over();
            if !printer.print_all(&mut records)? || !self.follow {
                return Ok(ExitCode::SUCCESS);
            }
            // A run that has no directory is over when its last record says so.
            let has_ended = meant.is_some() && printer.has_ended;
            if has_ended && was_over || !wait()? {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

struct Printer<'a> {
    view: &'a View,
    zone: TimeZone,
    /// Whether a run is gone, as its records say.
    has_ended: bool,
}

impl Printer<'_> {
    /// What there is so far. False if nobody reads it.
    fn print_all(&mut self, records: &mut Records) -> anyhow::Result<bool> {
        let mut stdout = io::BufWriter::new(io::stdout().lock());
        let paint = Paint::for_stdout();
        for record in records {
            let record = record?;
            self.has_ended |= is_last(&record.event.kind);
            if !self.view.filter.includes(&record) {
                continue;
            }
            let line = match self.view.json {
                true => escape::json(serde_json::to_string(&record)?),
                false => told::line(&record.event, &self.zone, paint),
            };
            match writeln!(stdout, "{line}") {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(false),
                written => written?,
            }
        }
        match stdout.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            flushed => Ok(flushed.map(|()| true)?),
        }
    }
}

/// Nothing more happens in its sandbox. A run that was never created has only a failure.
fn is_last(kind: &EventKind) -> bool {
    matches!(kind, EventKind::SandboxDestroyed(_) | EventKind::SandboxFailed(_))
}

/// False if the reader of our output is gone.
fn wait() -> anyhow::Result<bool> {
    let stdout = io::stdout();
    // Nothing is asked for, so that only a reader who has gone ends the wait early.
    let mut polled = [PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::empty())];
    match rustix::event::poll(&mut polled, Timespec::try_from(LOOK).ok().as_ref()) {
        Ok(0) | Err(rustix::io::Errno::INTR) => Ok(true),
        Ok(_) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// The id of the one run that is meant: a session as for its other commands, or a run that is in the log.
pub(super) fn meant(places: &AppDirs, named: &str) -> anyhow::Result<String> {
    let named = named.trim();
    match sessions::find(places, named) {
        Ok((_, record)) => return Ok(record.id),
        Err(error @ SessionError::SeveralSessions { .. }) => return Err(error.into()),
        // One that is gone may still be in the log.
        Err(_) => {}
    }
    let log = places.audit_log();
    let known = if nothing_recorded(places) { Default::default() } else { sandboxes(&log)? };
    let is_part = |id: &&String| id.starts_with(named) || id.ends_with(named);
    let found: Vec<&String> = match known.get(named) {
        Some(id) => vec![id],
        None => known.iter().filter(|id| !named.is_empty() && is_part(id)).collect(),
    };
    match found.as_slice() {
        [] => bail!("no record of a run `{}` in {}", escape::text(named), log.display()),
        [one] => Ok((*one).clone()),
        several => {
            let mut words: Vec<String> =
                several.iter().take(MAX_NAMED).map(|id| escape::text(id).into_owned()).collect();
            if several.len() > MAX_NAMED {
                words.push(format!("{} more", several.len() - MAX_NAMED));
            }
            bail!("`{}` could be any of {}", escape::text(named), words.join(", "))
        }
    }
}
