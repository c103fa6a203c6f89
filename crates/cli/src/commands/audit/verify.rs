//! `sandbox audit verify`: is the log, or an exported part of it, what was written.

use super::nothing_recorded;
use crate::output::{self, Paint, Style};
use anyhow::bail;
use clap::Args;
use palisade_record::{escape, verify, verify_export};
use palisade_session::AppDirs;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args, Debug)]
pub(super) struct Verify {
    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Verify this file, which `sandbox audit export` wrote, instead of the log
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// The hash that the file must end with, as `sandbox audit export` printed it
    #[arg(long, value_name = "HASH", requires = "file")]
    head: Option<String>,
}

impl Verify {
    pub(super) fn execute(self, places: &AppDirs) -> anyhow::Result<ExitCode> {
        match &self.file {
            Some(file) => self.check_file(file),
            None => check_log(places, self.json),
        }
    }

    fn check_file(&self, file: &Path) -> anyhow::Result<ExitCode> {
        let verified = verify_export(file);
        if let (Ok(header), Some(expected)) = (&verified, &self.head)
            && header.head.to_string() != expected.trim().to_ascii_lowercase()
        {
            bail!(
                "{}: the chain is complete, but it ends with {} and not with the hash that was given: this is another export",
                file.display(),
                header.head
            );
        }
        if self.json {
            output::print_json(&match &verified {
                Ok(header) => json!({
                    "sound": true,
                    "file": file,
                    "records": header.records(),
                    "first": header.first,
                    "last": header.last,
                    "head": header.head,
                    "exportedAt": header.exported_at,
                }),
                Err(fault) => json!({
                    "sound": false,
                    "file": file,
                    "line": fault.line,
                    "fault": fault.what.to_string(),
                }),
            })?;
        } else {
            let sound = verified.as_ref().map(|header| {
                let (first, last, head) = (header.first, header.last, header.head);
                format!("records {first} to {last}, chain complete, head {head}")
            });
            tell(file, sound.as_ref().map_err(|fault| *fault))?;
        }
        Ok(if verified.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn check_log(places: &AppDirs, json: bool) -> anyhow::Result<ExitCode> {
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
        let sound = verified
            .as_ref()
            .map(|sound| format!("{} records, chain complete, head {}", sound.records, sound.head));
        tell(&log, sound.as_ref().map_err(|fault| *fault))?;
    }
    Ok(if verified.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tell<E: std::fmt::Display>(path: &Path, verdict: Result<&String, E>) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    let path = path.to_string_lossy();
    let shown = escape::text(&path);
    output::print(&match verdict {
        Ok(sound) => format!("{} {shown}: {sound}", paint.with(Style::Green, "sound")),
        Err(fault) => format!("{} {shown}: {fault}", paint.with(Style::Red, "not sound")),
    })
}
