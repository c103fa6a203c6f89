//! `sandbox inspect`: everything that is known of one session.

use super::ps::{Shown, expires_in, look, state_of};
use super::{find, shown};
use crate::output;
use clap::Args;
use palisade_session::AppDirs;
use palisade_session::runs;
use palisade_session::transaction::TransactionMethod;
use std::process::ExitCode;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sandbox inspect work
  sandbox inspect --json work | jq '.status.commands'")]
pub(crate) struct Inspect {
    /// Print one JSON document
    #[arg(long)]
    json: bool,

    /// The session, by its id, a part of it or its name
    #[arg(value_name = "SESSION")]
    sid: String,
}

impl Inspect {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let (directory, record) = find(&self.sid)?;
        let mut running = runs::list(&AppDirs::here()?).unwrap_or_default();
        let session = look(&directory, record, &mut running);
        match self.json {
            true => output::print_json(&session)?,
            false => output::print_lines(lines(&session))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn lines(session: &Shown) -> Vec<String> {
    let field = |name: &str, value: &str| format!("{name:<10} {value}");
    let record = &session.record;
    let mut lines = vec![field("session", &record.id)];
    let mut add = |name: &str, value: Option<String>| {
        lines.extend(value.map(|value| field(name, &value)));
    };
    add("name", record.name.clone());
    add("state", Some(state_of(session)));
    add(
        "created",
        Some(format!("{:.0}, {} ago", record.created_at, shown(session.age_ms)))
            .filter(|_| session.is_running),
    );
    add("created", Some(format!("{:.0}", record.created_at)).filter(|_| !session.is_running));
    add("project", Some(record.project.display().to_string()));
    add("command", record.command.as_ref().map(|command| command.join(" ")));
    add("presets", Some(record.presets.join(", ")).filter(|presets| !presets.is_empty()));
    add("level", record.level.clone());
    add("supervisor", record.supervisor.map(|pid| format!("pid {pid}")));
    let seconds = |time: Option<u64>| time.map(|time| shown(time.saturating_mul(1000)));
    add("ttl", seconds(record.time_to_live.seconds));
    add("idle ttl", seconds(record.time_to_live.idle_seconds));
    add(
        "changes",
        record.transaction.map(|method| match method {
            TransactionMethod::Overlay => "kept apart in an overlay".to_owned(),
            TransactionMethod::Copy => "made in a copy of the project".to_owned(),
        }),
    );
    add(
        "recorded",
        record.recording.map(|recording| match recording.input {
            true => "output and what is typed".to_owned(),
            false => "output".to_owned(),
        }),
    );
    add("ended", record.ended_at.map(|ended| format!("{ended:.0}")));
    add("exit code", record.exit_code.map(|code| code.to_string()));
    add("because", record.end_reason.clone());
    if let Some(status) = &session.status {
        add("expires", expires_in(status).map(|time| format!("in {}", shown(time))));
        add("idle", status.idle_ms.map(shown));
        add("clients", Some(status.clients.to_string()));
        add("questions", Some(status.questions.to_string()));
        for command in &status.commands {
            let how = match (command.is_held, command.has_terminal) {
                (false, _) => "with its client's streams".to_owned(),
                (true, has_terminal) => format!(
                    "{}, {} bytes, watched by {}",
                    if has_terminal { "in a terminal" } else { "in the background" },
                    command.output_bytes.unwrap_or(0),
                    command.watchers
                ),
            };
            let time = shown(command.running_ms);
            let text = format!("{} `{}` for {time}, {how}", command.number, command.command);
            add("running", Some(text));
        }
    }
    lines
}
