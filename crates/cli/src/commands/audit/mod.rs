//! `sandbox audit`: is the log what was written, and what does it say.

mod told;

use crate::output::{self, Paint, Style};
use clap::Subcommand;
use jiff::tz::TimeZone;
use palisade_record::{escape, read, verify};
use palisade_session::{AppDirs, Caller};
use serde_json::json;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Of a session's name.
const WHOLE_NAME: usize = 36;

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Verify the chain of records, up to the stored head
    Verify {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the records of one run, or of all, one per line, in local time
    Show {
        /// The run's id, or its beginning or end [default: all runs]
        #[arg(value_name = "SESSION")]
        session: Option<String>,
        /// Print the records as in the log, one JSON object per line
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

fn check(places: &AppDirs, json: bool) -> anyhow::Result<ExitCode> {
    let log = places.audit_log();
    if nothing_recorded(places) {
        if json {
            output::print_json(&json!({ "sound": true, "log": log, "records": 0 }))?;
        } else {
            output::print_lines([format!("nothing recorded yet: there is no {}", log.display())])?;
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
        let path = log.to_string_lossy();
        let shown = escape::text(&path);
        output::print(&match &verified {
            Ok(sound) => format!(
                "{} {}: {} records, chain complete, head {}",
                paint.with(Style::Green, "sound"),
                shown,
                sound.records,
                sound.head
            ),
            Err(fault) => {
                format!("{} {shown}: {fault}", paint.with(Style::Red, "not sound"))
            }
        })?;
    }
    Ok(if verified.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Neither a log nor its head: no run ever was. One of them without the other is a fault.
fn nothing_recorded(places: &AppDirs) -> bool {
    let missing = |path: &Path| {
        path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    missing(&places.audit_log()) && missing(&places.audit_head())
}

fn show(places: &AppDirs, session: Option<&str>, json: bool) -> anyhow::Result<ExitCode> {
    if session.is_none() && nothing_recorded(places) {
        output::note("no run has been recorded yet");
        return Ok(ExitCode::SUCCESS);
    }
    let (zone, paint) = (TimeZone::system(), Paint::for_stdout());
    let mut text = String::new();
    let mut found = false;
    // A part of a name is compared here; a whole one is looked for where the log is read.
    let whole = session.filter(|session| session.len() >= WHOLE_NAME);
    let is_meant = |id: &str| session.is_none_or(|part| id.starts_with(part) || id.ends_with(part));
    for record in read(&places.audit_log(), whole)? {
        let record = record?;
        if !is_meant(&record.event.sandbox_id) {
            continue;
        }
        found = true;
        text.push_str(&if json {
            escape::json(serde_json::to_string(&serde_json::to_value(&record.event)?)?)
        } else {
            told::line(&record.event, &zone, paint)
        });
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
