//! `sandbox net`: what a run tries to reach, and what becomes of it (NET-7).
//!
//! It only reads the audit log, which is written before anything is told to anybody else; so it shows runs that are
//! over as well as those that run.

mod text;
mod view;

use crate::output::{self, Paint};
use anyhow::bail;
use clap::Args;
use palisade_record::{Records, escape, read, sandboxes};
use palisade_session::runs;
use palisade_session::{AppDirs, Caller};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;
use view::View;

const LOOK_AGAIN: Duration = Duration::from_millis(150);
/// A run that is not registered and silent for this many seconds was killed.
const SILENT: i64 = 3;

const DETAILS: &str = "\
Shows each host that was reached or denied, with open connections, bytes and the option that \
allows it; the names that were resolved; and the latest events. Name a run by the beginning or the \
end of its session's name; the default is the newest run. With --follow every attempt is printed as \
it happens, until the run ends, and then the totals.

Bytes are counted when a connection ends. Events that come too fast are printed as totals. In \
network mode host nothing is recorded, so nothing is shown.

Examples:
  sandbox net
  sandbox net 1c9e0a55 --follow
  sandbox net --json | jq '.hosts[] | select(.denied > 0) | .allow'

Exit codes: 0 done, 125 there is no such run, or sandbox failed.";

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct Net {
    /// The run [default: the newest]
    #[arg(value_name = "SESSION")]
    session: Option<String>,

    /// Print every attempt as it happens, until the run ends
    #[arg(long, short)]
    follow: bool,

    /// Print one JSON document; with --follow, one record of the audit log per line
    #[arg(long)]
    json: bool,
}

/// What was printed, and whether anybody still reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    Reads,
    Gone,
}

impl Net {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let places = Caller::here()?.places;
        let session = find(self.session.as_deref(), &places)?;
        let mut records = read(&places.audit_log(), Some(&session))?;
        let mut view = View::of(&session);
        let running = runs::list(&places)?.into_iter().find(|run| run.session == session);
        view.command = running.map(|run| run.command).unwrap_or_default();
        if self.follow {
            return self.follow(&mut view, &mut records, &places);
        }
        for record in &mut records {
            view.hear(&record?.event);
        }
        view.is_over |= is_gone(&view, &places)?;
        if self.json {
            output::print(&palisade_ask::to_line(&view)?)?;
        } else {
            output::print(&text::page(&view, Paint::for_stdout()))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn follow(
        &self,
        view: &mut View,
        records: &mut Records,
        places: &AppDirs,
    ) -> anyhow::Result<ExitCode> {
        let paint = Paint::for_stdout();
        loop {
            let mut said = String::new();
            for record in &mut *records {
                let event = record?.event;
                let Some(happened) = view.hear(&event) else { continue };
                said += &match self.json {
                    true => palisade_ask::to_line(&event)?,
                    false => text::line(&happened, paint),
                };
            }
            if say(&said)? == Reader::Gone {
                return Ok(ExitCode::SUCCESS);
            }
            if view.is_over || is_gone(view, places)? {
                break;
            }
            if wait()? == Reader::Gone {
                return Ok(ExitCode::SUCCESS);
            }
        }
        view.is_over = true;
        if !self.json {
            output::print(&format!("\n{}", text::sums(view, paint)))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Whether its supervisor went without a word.
fn is_gone(view: &View, places: &AppDirs) -> anyhow::Result<bool> {
    let is_silent = view
        .last_record
        .is_none_or(|last| jiff::Timestamp::now().duration_since(last).as_secs() >= SILENT);
    Ok(is_silent && !runs::list(places)?.iter().any(|run| run.session == view.session))
}

/// The whole name of the run that is meant: one that runs, or one that the log tells of.
fn find(named: Option<&str>, places: &AppDirs) -> anyhow::Result<String> {
    let running: Vec<String> = runs::list(places)?.into_iter().map(|run| run.session).collect();
    let log = places.audit_log();
    let Some(named) = named.map(str::trim) else {
        if let Some(newest) = running.last() {
            return Ok(newest.clone());
        }
        return match recorded(&log)?.into_iter().next_back() {
            Some(newest) => Ok(newest),
            None => bail!("no run has been recorded yet"),
        };
    };
    match &choose(named, running.iter())[..] {
        [one] => return Ok((*one).clone()),
        [] => {}
        several => bail!("`{}` is ambiguous: {}", escape::text(named), listed(several)),
    }
    let known = recorded(&log)?;
    match &choose(named, known.iter())[..] {
        [one] => Ok((*one).clone()),
        [] => bail!("no record of a run `{}` in {}", escape::text(named), log.display()),
        several => bail!("`{}` is ambiguous: {}", escape::text(named), listed(several)),
    }
}

/// By its beginning or its end.
fn choose<'n>(named: &str, names: impl Iterator<Item = &'n String>) -> Vec<&'n String> {
    names
        .filter(|name| !named.is_empty() && (name.starts_with(named) || name.ends_with(named)))
        .collect()
}

fn listed(names: &[&String]) -> String {
    const MAX_SHOWN: usize = 5;
    let more = if names.len() > MAX_SHOWN { " and others" } else { "" };
    let named: Vec<&str> = names.iter().take(MAX_SHOWN).map(|name| name.as_str()).collect();
    format!("{}{more}", named.join(", "))
}

/// The runs that the log tells of; their names sort by time.
fn recorded(log: &std::path::Path) -> anyhow::Result<BTreeSet<String>> {
    if !log.exists() {
        return Ok(BTreeSet::new());
    }
    Ok(sandboxes(log)?)
}

fn say(text: &str) -> anyhow::Result<Reader> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(error.into()),
        Ok(()) => Ok(Reader::Reads),
    }
}

/// For a moment; nothing is asked for, so that only a reader who has gone ends it early.
fn wait() -> anyhow::Result<Reader> {
    let stdout = io::stdout();
    let mut polled = [PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::empty())];
    match rustix::event::poll(&mut polled, Timespec::try_from(LOOK_AGAIN).ok().as_ref()) {
        Ok(0) | Err(rustix::io::Errno::INTR) => Ok(Reader::Reads),
        Ok(_) => Ok(Reader::Gone),
        Err(errno) => Err(errno.into()),
    }
}
