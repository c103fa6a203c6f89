//! `sandbox audit`: is the log what was written, and what does it say.

use crate::output::{self, Paint, Style};
use clap::Subcommand;
use palisade_record::{escape, read, verify};
use palisade_session::{Caller, Places};
use serde_json::json;
use std::io;
use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Check every record against the one before it, and the last one against the head
    Verify {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the records of one run, or of all
    Show {
        /// The run's id, as in its report
        session: Option<String>,
        /// Print the records as they are in the log, one JSON object a line
        #[arg(long)]
        json: bool,
    },
}

impl Audit {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let places = Caller::here()?.places;
        match self {
            Self::Verify { json } => check(&places, json),
            Self::Show { session, json } => show(&places, session.as_deref(), json),
        }
    }
}

fn check(places: &Places, json: bool) -> anyhow::Result<ExitCode> {
    let log = places.audit_log();
    if nothing_recorded(places) {
        if json {
            output::print_json(&json!({ "sound": true, "log": log, "records": 0 }))?;
        } else {
            output::print(&format!("nothing recorded yet: there is no {}", log.display()))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let verified = verify(&log, &places.audit_head());
    if json {
        output::print_json(&match &verified {
            Ok(sound) => json!({
                "sound": true,
                "log": log,
                "records": sound.records,
                "head": sound.head,
                "unacknowledgedBytes": sound.unacknowledged_bytes,
            }),
            Err(fault) => json!({
                "sound": false,
                "log": log,
                "line": fault.line,
                "fault": fault.what.to_string(),
            }),
        })?;
    } else {
        let paint = Paint::for_stdout();
        output::print(&match &verified {
            Ok(sound) => format!(
                "{} {}: {} records, chain complete, head {}",
                paint.with(Style::Green, "sound"),
                log.display(),
                sound.records,
                sound.head
            ),
            Err(fault) => {
                format!("{} {}: {fault}", paint.with(Style::Red, "not sound"), log.display())
            }
        })?;
    }
    Ok(if verified.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Neither a log nor its head: no run ever was. One of them without the other is a fault.
fn nothing_recorded(places: &Places) -> bool {
    let missing = |path: &Path| {
        path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    missing(&places.audit_log()) && missing(&places.audit_head())
}

fn show(places: &Places, session: Option<&str>, json: bool) -> anyhow::Result<ExitCode> {
    if session.is_none() && nothing_recorded(places) {
        output::note("no run was recorded yet");
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    let mut found = false;
    for record in read(&places.audit_log(), session)? {
        let record = record?;
        found = true;
        let written = serde_json::to_value(&record.event)?;
        if json {
            text.push_str(&serde_json::to_string(&written)?);
        } else {
            let field = |name: &str| written[name].as_str().unwrap_or("-").to_owned();
            text.push_str(&format!(
                "{}  {}  {:<5}  {:<22}  {}",
                field("timestamp"),
                field("sandboxId"),
                field("level"),
                field("event"),
                escape::text(&written["details"].to_string()),
            ));
        }
        text.push('\n');
    }
    if let (Some(session), false) = (session, found) {
        anyhow::bail!(
            "no record of a run `{}` in {}",
            escape::text(session),
            places.audit_log().display()
        );
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
