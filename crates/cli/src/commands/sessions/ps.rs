//! `sandbox ps`: this user's sessions, what they do and what they use.

use super::shown;
use crate::output::{self, Paint, Style};
use clap::Args;
use jiff::Timestamp;
use palisade_record::{State, escape};
use palisade_session::AppDirs;
use palisade_session::foreground;
use palisade_session::runs::{self, Announced, Meter};
use palisade_session::sessions::{
    self, SWEPT_BY_COMMANDS, SessionDirectory, SessionRecord, short_id,
};
use palisade_session::supervise::interface::SessionStatus;
use serde::Serialize;
use std::process::ExitCode;
use std::time::Duration;

/// A supervisor answers within microseconds, unless it was stopped.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);

const DETAILS: &str = "\
IDLE is the time since the last command ended, or - while one runs. CPU is the time that the session has used so far.
QUESTIONS wait for `sandbox approve`. STATE is Created while the sandbox is set up, then Monitoring, and at the end
Completed, Timeout (its time to live was over) or Error.

Examples:
  sandbox ps
  sandbox ps --all                      also those that are over
  sandbox ps --json | jq -r '.sessions[].id'";

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct Ps {
    /// Also show sessions that are over
    #[arg(long, short)]
    all: bool,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// One session, as it is now.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    #[serde(flatten)]
    pub(super) record: SessionRecord,
    pub(super) is_running: bool,
    pub(super) age_ms: u64,
    /// None: it is not running, or its supervisor does not answer.
    pub(super) status: Option<StatusNow>,
    pub(super) usage: Option<UsageNow>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusNow {
    pub(super) idle_ms: Option<u64>,
    pub(super) clients: u32,
    pub(super) questions: u32,
    pub(super) expires_in_ms: Option<u64>,
    pub(super) idle_expires_in_ms: Option<u64>,
    pub(super) is_ending: bool,
    pub(super) commands: Vec<CommandNow>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommandNow {
    pub(super) number: u64,
    pub(super) pid: Option<u32>,
    pub(super) command: String,
    pub(super) running_ms: u64,
    /// Whether one can attach to it.
    pub(super) is_held: bool,
    pub(super) has_terminal: bool,
    pub(super) output_bytes: Option<u64>,
    pub(super) watchers: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageNow {
    pub(super) cpu_ms: u64,
    pub(super) memory_bytes: u64,
    pub(super) processes: u64,
}

impl Ps {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let places = AppDirs::here()?;
        sessions::sweep(&places, SWEPT_BY_COMMANDS);
        let mut running = runs::list(&places).unwrap_or_default();
        let all = sessions::list(&places)?;
        let sessions: Vec<Shown> = all
            .into_iter()
            .map(|(directory, record)| look(&directory, record, &mut running))
            .filter(|shown| self.all || shown.is_running)
            .collect();
        if self.json {
            output::print_json(&serde_json::json!({ "sessions": sessions }))?;
        } else {
            output::print(&table(&sessions, Paint::for_stdout()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// One session, as it is now. `running` are the runs of this user.
pub(super) fn look(
    directory: &SessionDirectory,
    record: SessionRecord,
    running: &mut Vec<Announced>,
) -> Shown {
    let is_running = !record.is_over() && directory.is_alive();
    let status = is_running.then(|| foreground::status(directory, PATIENCE).ok()).flatten();
    let own = running.iter().position(|run| run.session == record.id);
    let own = own.filter(|_| is_running).map(|at| running.swap_remove(at));
    let reading = own.and_then(|run| Meter::of(&run).ok()??.read().ok()?);
    let until = record.ended_at.unwrap_or_else(Timestamp::now);
    let age = until.duration_since(record.created_at).as_millis();
    Shown {
        age_ms: u64::try_from(age).unwrap_or_default(),
        record,
        is_running,
        status: status.map(StatusNow::from),
        usage: reading.map(|reading| UsageNow {
            cpu_ms: u64::try_from(reading.cpu.as_millis()).unwrap_or(u64::MAX),
            memory_bytes: reading.memory_bytes,
            processes: reading.processes,
        }),
    }
}

impl From<SessionStatus> for StatusNow {
    fn from(status: SessionStatus) -> Self {
        let commands = status.commands.into_iter().map(|details| CommandNow {
            number: details.command.0,
            pid: details.pid,
            command: details.text,
            running_ms: details.running_ms,
            is_held: details.held.is_some(),
            has_terminal: details.held.is_some_and(|held| held.has_terminal),
            output_bytes: details.held.map(|held| held.output_bytes),
            watchers: details.held.map_or(0, |held| held.watchers),
        });
        Self {
            idle_ms: status.idle_ms,
            // Not counting the one that asked.
            clients: status.clients.saturating_sub(1),
            questions: status.questions,
            expires_in_ms: status.expires_in_ms,
            idle_expires_in_ms: status.idle_expires_in_ms,
            is_ending: status.is_ending,
            commands: commands.collect(),
        }
    }
}

/// The word for its state.
pub(super) fn state_of(shown: &Shown) -> String {
    match (&shown.status, shown.record.state) {
        (Some(status), _) if status.is_ending => "Ending".to_owned(),
        (None, State::Monitoring) if shown.is_running => "Unresponsive".to_owned(),
        (_, state) if shown.record.recording.is_some() => format!("{state:?}, recorded"),
        (_, state) => format!("{state:?}"),
    }
}

/// Until the first of its times is over.
pub(super) fn expires_in(status: &StatusNow) -> Option<u64> {
    [status.expires_in_ms, status.idle_expires_in_ms].into_iter().flatten().min()
}

const UNKNOWN: &str = "-";

fn table(sessions: &[Shown], paint: Paint) -> String {
    const HEADINGS: [&str; 10] = [
        "SESSION",
        "NAME",
        "STATE",
        "AGE",
        "IDLE",
        "COMMANDS",
        "QUESTIONS",
        "CPU",
        "MEMORY",
        "EXPIRES",
    ];
    let lines: Vec<[String; 10]> =
        std::iter::once(HEADINGS.map(str::to_owned)).chain(sessions.iter().map(cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let padded = match column {
                0..=2 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            };
            let style = match (number.checked_sub(1), column) {
                (Some(at), 2) => style_of(&sessions[at]),
                _ => Style::Plain,
            };
            text.push_str(&paint.with(style, &padded));
            text.push_str("  ");
        }
        let project = match number.checked_sub(1) {
            None => "PROJECT".to_owned(),
            Some(at) => escape::text(&sessions[at].record.project.to_string_lossy()).into_owned(),
        };
        text.push_str(&project);
        text.push('\n');
    }
    text
}

fn style_of(shown: &Shown) -> Style {
    match shown.record.state {
        State::Error => Style::Red,
        State::Timeout => Style::Yellow,
        _ if shown.is_running => Style::Green,
        _ => Style::Plain,
    }
}

fn cells(shown_session: &Shown) -> [String; 10] {
    let record = &shown_session.record;
    let unknown = || UNKNOWN.to_owned();
    let status = shown_session.status.as_ref();
    let usage = shown_session.usage.as_ref();
    [
        short_id(&record.id).to_owned(),
        record.name.as_deref().map_or_else(unknown, |name| escape::text(name).into_owned()),
        state_of(shown_session),
        shown(shown_session.age_ms),
        status.and_then(|status| status.idle_ms).map_or_else(unknown, shown),
        status.map_or_else(unknown, |status| status.commands.len().to_string()),
        status.map_or_else(unknown, |status| status.questions.to_string()),
        usage.map_or_else(unknown, |usage| shown(usage.cpu_ms)),
        usage.map_or_else(unknown, |usage| crate::commands::top::size(usage.memory_bytes)),
        status.and_then(expires_in).map_or_else(unknown, shown),
    ]
}
