//! What follows a run that was ended for an attempt to break out (ESC-1), when nothing of it is left: the tool is
//! quarantined, somebody is alerted, and what is known is kept.
//!
//! The parts do not depend on each other: one that fails is told and recorded, and the others are done all the same.

mod alert;
mod bundle;

pub use bundle::{Bundle, BundleFile, read as read_bundle};

use crate::app_dirs::AppDirs;
use crate::error::Result;
use crate::journal::Journal;
use crate::quarantine::{self, Offence};
use alert::Alert;
use palisade_plan::model::Plan;
use palisade_record::{
    EscapeAction, EscapeAttempt, EscapeResponded, EventKind, Quarantined, RollBack, RunReport,
    redact,
};
use palisade_supervisor::escape::{Incident, StartedTool};
use std::ffi::OsString;
use std::path::Path;

/// The response to one incident, from the moment in which the run is over.
#[derive(Debug)]
pub(crate) struct Response<'a> {
    places: &'a AppDirs,
    incident: Incident,
    attempt: EscapeAttempt,
    action: EscapeAction,
    declared: Option<String>,
    quarantined: Vec<Quarantined>,
}

/// Whose run it was.
#[derive(Debug)]
pub(crate) struct Suspect<'a> {
    /// None in a session: its commands are known otherwise.
    pub(crate) argv: Option<&'a [OsString]>,
    /// The declared tool.
    pub(crate) declared: Option<&'a str>,
}

impl<'a> Response<'a> {
    /// Quarantines first: whatever happens to this process afterwards, the tool does not run again. None if nothing
    /// ended the run.
    pub(crate) fn begin(
        places: &'a AppDirs,
        incident: Option<Incident>,
        suspect: &Suspect<'_>,
        report: &mut RunReport,
        tell: &mut dyn FnMut(&str),
    ) -> Option<Self> {
        let mut incident = incident?;
        let attempt = incident.attempt.clone()?;
        let action = report.escape.as_ref()?.action;
        if let (true, Some(argv)) = (incident.tools.is_empty(), suspect.argv) {
            incident.tools.push(StartedTool {
                program: program_name(argv),
                hash: redact::hash(argv),
                preview: redact::preview(argv),
            });
        }
        let mut quarantined = Vec::new();
        if action == EscapeAction::Quarantine {
            let offence = Offence {
                session: &report.session_id,
                attempt: &attempt,
                declared: suspect.declared,
                tools: &incident.tools,
            };
            match quarantine::add(places, &offence) {
                Ok(added) => quarantined = added,
                Err(error) => failed(report, tell, "the tool was not quarantined", &error),
            }
        }
        if let Some(escape) = &mut report.escape {
            escape.quarantined = quarantined.iter().map(|it| it.quarantine.clone()).collect();
        }
        let declared = suspect.declared.map(str::to_owned);
        Some(Self { places, incident, attempt, action, declared, quarantined })
    }

    /// Whether the changes of a transaction are discarded.
    pub(crate) fn discards(&self) -> bool {
        self.action == EscapeAction::Quarantine
    }

    /// The rest of it.
    pub(crate) fn finish(
        self,
        (plan, journal): (&Plan, &mut Journal),
        roll_back: RollBack,
        report: &mut RunReport,
        tell: &mut dyn FnMut(&str),
    ) -> Result<()> {
        let mut bundle = match Bundle::create(self.places, &report.session_id) {
            Ok(bundle) => Some(bundle),
            Err(error) => {
                failed(report, tell, "nothing of the incident was kept", &error);
                None
            }
        };
        if roll_back == RollBack::NotRolledBack {
            report.notes.push(
                "what the command wrote was not rolled back: the project was no transaction (--transaction)"
                    .to_owned(),
            );
        }
        let policy = &plan.supervision.escape;
        let tool = self.incident.tools.first();
        let alerts = alert::send(
            policy,
            &Alert {
                session: &report.session_id,
                tool: self.declared.as_deref().or(tool.map(|it| &*it.program)).unwrap_or_default(),
                command: tool.map(|it| &*it.preview).unwrap_or_default(),
                command_hash: tool.map(|it| it.hash),
                attempt: &self.attempt,
                action: self.action,
                roll_back,
                bundle: bundle.as_ref().map(Bundle::path),
            },
        );
        for result in &alerts {
            if let Some(error) = &result.error {
                report.notes.push(format!("the {} alert failed: {error}", result.by));
            }
        }
        let response = EscapeResponded {
            action: self.action,
            indicator: self.attempt.id.clone(),
            severity: self.attempt.severity,
            roll_back,
            bundle: bundle.as_ref().map(|_| report.session_id.clone()),
            alerts,
        };
        if let Some(escape) = &mut report.escape {
            escape.response = Some(response.clone());
        }
        for quarantined in self.quarantined {
            journal.add(EventKind::Quarantined(quarantined));
        }
        journal.add(EventKind::EscapeResponse(Box::new(response)));
        journal.commit()?;
        if let Some(bundle) = &mut bundle {
            let written = bundle.write(&self.incident, plan, report, journal.trail());
            if let Err(error) = written {
                failed(report, tell, "not all of the incident was kept", &error);
            }
        }
        Ok(())
    }
}

fn failed(
    report: &mut RunReport,
    tell: &mut dyn FnMut(&str),
    what: &str,
    error: &crate::error::SessionError,
) {
    let note = format!("{what}: {error}");
    tell(&note);
    report.notes.push(note);
}

fn program_name(argv: &[OsString]) -> String {
    let name = argv.first().map(Path::new).and_then(Path::file_name);
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
