//! `sandbox replay`: shows a recording of a terminal again. What was recorded is not trusted: only what prints, moves and colours
//! reaches this terminal.

mod player;

use crate::commands::sessions::Lasting;
use crate::output;
use anyhow::bail;
use clap::Args;
use palisade_record::cast::{CastEvent, CastKind, CastReader};
use palisade_record::escape;
use palisade_session::run::kept_recordings;
use palisade_session::sessions::{self, SessionDirectory};
use palisade_session::{AppDirs, SessionError};
use player::{Pace, Player};
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const DETAILS: &str = "\
Runs and sessions are recorded with --record, a session's commands each in a file of its own. Space pauses, the right arrow
key goes 5 seconds ahead and the left one back, q ends it. Without a terminal everything is printed at once.

A recording holds whatever the command wrote. Sequences that ask the terminal something, set its title or the clipboard, or
change what keys send are left out.

Examples:
  sandbox replay work                       the last command of session `work`
  sandbox replay work --command 3 --speed 4
  sandbox replay demo.cast --idle-limit 2s
  sandbox replay work --markers             what was asked and decided, with times";

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct Replay {
    /// So many times as fast, such as 2 or 0.5
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = speed)]
    speed: f64,

    /// Shorten every pause to this time
    #[arg(long, value_name = "TIME")]
    idle_limit: Option<Lasting>,

    /// The number of the command [default: the one that was started last]
    #[arg(long, value_name = "NUMBER")]
    command: Option<u64>,

    /// Print the markers with their times instead
    #[arg(long)]
    markers: bool,

    /// A session or run, by its id, a part of it or its name; or an asciicast file
    #[arg(id = "sid", value_name = "SESSION|FILE")]
    source: String,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if (0.01..=1000.0).contains(&speed) => Ok(speed),
        _ => Err("not a number between 0.01 and 1000".to_owned()),
    }
}

impl Replay {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let path = self.find()?;
        let mut reader = CastReader::open(&path)?;
        if self.markers {
            print_markers(&mut reader)?;
            return Ok(ExitCode::SUCCESS);
        }
        if !io::stdout().is_terminal() {
            player::print_all(&mut reader)?;
            return Ok(ExitCode::SUCCESS);
        }
        let pace = Pace { speed: self.speed, idle_limit: self.idle_limit.map(|limit| limit.0) };
        let size = (reader.header.width, reader.header.height);
        let here = palisade_session::foreground::window_size();
        if here.is_some_and(|here| here.columns < size.0 || here.rows < size.1) {
            let (columns, rows) = size;
            output::note(&format!(
                "it was recorded in a terminal of {columns} columns and {rows} rows"
            ));
        }
        Player::new(path, reader, pace)?.play()?;
        Ok(ExitCode::SUCCESS)
    }

    fn find(&self) -> anyhow::Result<PathBuf> {
        let named = Path::new(&self.source);
        // A name of a session has no slash, and its file no such ending.
        if self.source.contains('/') || named.extension().is_some_and(|it| it == "cast") {
            return Ok(named.to_owned());
        }
        let places = AppDirs::here()?;
        match sessions::find(&places, self.source.trim()) {
            Ok((directory, _)) => {
                if let Some(path) = self.of_session(&directory)? {
                    return Ok(path);
                }
            }
            Err(error @ SessionError::SeveralSessions { .. }) => return Err(error.into()),
            Err(_) => {}
        }
        let named = self.source.trim();
        let is_meant = |id: &str| id.starts_with(named) || id.ends_with(named);
        let mut runs = kept_recordings(&places)?;
        runs.retain(|(_, id)| !named.is_empty() && is_meant(id));
        match runs.len() {
            1 => Ok(runs.swap_remove(0).0),
            0 => bail!(
                "no recording of a session or run `{}`: they are recorded with --record",
                escape::text(named)
            ),
            _ => {
                let ids: Vec<_> = runs.into_iter().map(|(_, id)| id).collect();
                bail!("`{}` could be any of {}", escape::text(named), ids.join(", "))
            }
        }
    }

    /// None if nothing of it was recorded.
    fn of_session(&self, directory: &SessionDirectory) -> anyhow::Result<Option<PathBuf>> {
        let mut recorded = directory.recorded_commands()?;
        let Some(wanted) = self.command else { return Ok(recorded.pop().map(|(_, path)| path)) };
        let numbers: Vec<String> = recorded.iter().map(|(it, _)| it.0.to_string()).collect();
        match recorded.into_iter().find(|(command, _)| command.0 == wanted) {
            Some((_, path)) => Ok(Some(path)),
            None => bail!("command {wanted} was not recorded, only {}", numbers.join(", ")),
        }
    }
}

fn print_markers(reader: &mut CastReader) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    while let Some(CastEvent { time, kind, text }) = reader.next_event()? {
        if kind == CastKind::Marker {
            lines.push(format!("{:>10.3}  {text}", time.as_secs_f64()));
        }
    }
    output::print_lines(lines)
}
