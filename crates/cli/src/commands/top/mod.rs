//! `sandbox top`: what this user's runs use, while they run (RES-3).
//!
//! It only looks. Command lines come from the runs' callers, and are escaped.

mod board;
mod draw;
mod interval;
mod screen;
mod text;

use crate::commands::running::{NamedRun, find};
use crate::output;
use board::{Board, Row};
use clap::Args;
use interval::Interval;
use palisade_session::Caller;
use palisade_session::runs;
use rustix::event::{PollFd, PollFlags, Timespec};
use serde::Serialize;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;
pub(crate) use text::size;

/// What a single look is taken over: CPU use and rates need two moments.
const GLANCE: Duration = Duration::from_millis(250);

const DETAILS: &str = "\
Shows your own runs, even to root: those whose supervisor has the same user and the same runtime \
directory. Name a run by the beginning or the end of its session's name. In a terminal the screen is \
refreshed until you press q; elsewhere the runs are printed once.

CPU is in percent of one processor. Memory, where the run has a control group, is what the kernel \
counts against the limit, with cached pages of files; otherwise it is the sum over its processes, \
and the peak is the highest sum since this command started. A limit that is used to 80 % or more \
is marked.

Examples:
  sandbox top
  sandbox top 1c9e0a55
  sandbox top --json | jq '.runs[] | {session, memoryBytes}'
  sandbox top --json --watch --interval 5s

Exit codes: 0 done (also if nothing runs), 125 there is no such run, or sandbox failed.";

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct Top {
    /// Show the details of one run, and its limits
    #[arg(value_name = "SESSION")]
    session: Option<String>,

    /// Print one JSON document
    #[arg(long)]
    json: bool,

    /// With --json: print one document per line at every interval, until interrupted or until the
    /// named run ends
    #[arg(long, requires = "json")]
    watch: bool,

    /// How often to look, such as 500ms, 2s or 1m
    #[arg(long, value_name = "TIME", default_value = "1s")]
    interval: Interval,
}

/// Which runs are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    All,
    /// By its whole name.
    One(String),
}

/// The document of `--json`.
#[derive(Serialize)]
struct Listing<'a> {
    runs: &'a [Row],
}

impl Top {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let places = Caller::here()?.places;
        let wanted = match &self.session {
            None => Wanted::All,
            Some(named) => {
                let running: Vec<_> =
                    runs::list(&places)?.into_iter().map(NamedRun::from).collect();
                Wanted::One(find(named, &running)?)
            }
        };
        let mut board = Board::new(places, wanted);
        let interval = self.interval.duration();
        if self.json && self.watch {
            return stream(&mut board, interval);
        }
        if !self.json && io::stdout().is_terminal() && io::stdin().is_terminal() {
            return screen::show(board, interval);
        }
        board.refresh()?;
        if !board.rows().is_empty() {
            std::thread::sleep(interval.min(GLANCE));
            board.refresh()?;
        }
        if self.json {
            output::print(&document(&board)?)?;
        } else {
            output::print(&plain(&board))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn plain(board: &Board) -> String {
    match (&board.wanted, board.rows()) {
        (Wanted::One(session), []) => format!("run {session} has ended\n"),
        (Wanted::One(_), [row, ..]) => {
            text::details(row).iter().map(|line| format!("{line}\n")).collect()
        }
        (Wanted::All, []) => "no sandbox of yours is running\n".to_owned(),
        (Wanted::All, rows) => {
            let table = text::table(rows);
            table.iter().map(|line| format!("{}\n", line.text.trim_end())).collect()
        }
    }
}

/// One line of JSON in which nothing is left that a terminal would act on.
fn document(board: &Board) -> anyhow::Result<String> {
    Ok(match (&board.wanted, board.rows()) {
        (Wanted::One(_), [row, ..]) => palisade_ask::to_line(row)?,
        (_, rows) => palisade_ask::to_line(&Listing { runs: rows })?,
    })
}

fn stream(board: &mut Board, interval: Duration) -> anyhow::Result<ExitCode> {
    loop {
        board.refresh()?;
        if board.rows().is_empty() && board.wanted != Wanted::All {
            return Ok(ExitCode::SUCCESS);
        }
        let mut stdout = io::stdout().lock();
        match stdout.write_all(document(board)?.as_bytes()).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
            written => written?,
        }
        // Nothing is asked for, so that only a reader who has gone ends the wait early.
        let mut polled = [PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::empty())];
        match rustix::event::poll(&mut polled, Timespec::try_from(interval).ok().as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(ExitCode::SUCCESS),
            Err(errno) => return Err(errno.into()),
        }
    }
}
