//! Checks which relaxations need a recorded approval, and whether it was given (POL-1, POL-7, NET-1, NET-8).

use super::layer::Subject;
use super::tighten::{Direction, direction};
use crate::diagnostic::{Diagnostic, Origin, Problem};
use crate::keys::{self};
use crate::model::Approval;
use crate::settings::{Settings, approvals, word};

const LEVEL: &str = "isolationLevel";
const NETWORK: &str = "network.mode";
const PRIVATE: &str = "network.allowedPrivate";

pub(crate) struct Asked<'a> {
    pub(crate) subject: &'a Subject,
    /// The settings without any other layer.
    pub(crate) built_in: &'a Settings,
    /// What the organisation itself set for this subject; `None` without an organisation layer.
    pub(crate) organisation: Option<&'a Settings>,
}

/// An approval that is implied by who set the value.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) approval: Approval,
    pub(crate) origin: Origin,
    pub(crate) by: By,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Organisation,
    /// The layer that set the key's current value.
    WriterOf(&'static str),
}

/// The implied approvals to record, or a problem for each missing approval.
pub(crate) fn check(
    asked: &Asked<'_>,
    settings: &Settings,
) -> Result<Vec<Recorded>, Vec<Diagnostic>> {
    let mut recorded = Vec::new();
    let mut problems = Vec::new();
    for outcome in [level(asked, settings), network(asked, settings), private(asked, settings)] {
        match outcome {
            Ok(found) => recorded.extend(found),
            Err(problem) => problems.push(*problem),
        }
    }
    if problems.is_empty() { Ok(recorded) } else { Err(problems) }
}

type Outcome = Result<Option<Recorded>, Box<Diagnostic>>;

fn level(asked: &Asked<'_>, settings: &Settings) -> Outcome {
    if !loosened(LEVEL, asked, settings) {
        return Ok(None);
    }
    let given = |what: &str| approvals(settings).iter().any(|approval| approval.what == what);
    let of_tool = match asked.subject {
        Subject::Tool(tool) => Some(format!("{tool}:no-sandbox")),
        Subject::Run => None,
    };
    let none_at_all = word(settings, LEVEL) == Some("LEVEL_0");
    if let Some(by_organisation) = written_by_organisation(LEVEL, asked, settings) {
        let what = of_tool.unwrap_or_else(|| "no-isolation".to_owned());
        return Ok((none_at_all || asked.subject != &Subject::Run)
            .then(|| organisation_approval(what, by_organisation)));
    }
    if none_at_all && asked.organisation.is_some() {
        let message =
            "LEVEL_0 is no isolation, and the organisation's policy does not allow it here";
        return refused(
            settings,
            LEVEL,
            message,
            "ask the organisation to allow `isolationLevel: LEVEL_0` for this tool",
        );
    }
    match of_tool {
        Some(what) if given(&what) || (none_at_all && given("no-isolation")) => Ok(None),
        Some(what) => {
            let message =
                format!("lowering this tool's isolation level needs the approval `{what}`");
            refused(settings, LEVEL, &message, "add it to `approvals`, with a reason")
        }
        None if none_at_all && !given("no-isolation") => refused(
            settings,
            LEVEL,
            "LEVEL_0 is no isolation at all and needs the approval `no-isolation`",
            "use `--approve-no-isolation REASON`",
        ),
        None => Ok(None),
    }
}

fn network(asked: &Asked<'_>, settings: &Settings) -> Outcome {
    if !loosened(NETWORK, asked, settings) {
        return Ok(None);
    }
    let mode = word(settings, NETWORK).unwrap_or_default();
    let what = match (mode, asked.subject) {
        ("host", _) => "network:host".to_owned(),
        (_, Subject::Tool(tool)) => format!("{tool}:network"),
        (mode, Subject::Run) => format!("network:{mode}"),
    };
    if let Some(by_organisation) = written_by_organisation(NETWORK, asked, settings) {
        return Ok(Some(organisation_approval(what, by_organisation)));
    }
    if approvals(settings).iter().any(|approval| approval.what == what) {
        return Ok(None);
    }
    // This mode alone reaches nothing: hosts come from a list, in a file that the user wrote or trusted.
    if mode == "proxy" && asked.subject == &Subject::Run {
        return Ok(settings.get(NETWORK).map(|setting| Recorded {
            approval: Approval { what, reason: format!("{}: {NETWORK}: proxy", setting.origin) },
            origin: setting.origin.clone(),
            by: By::WriterOf(NETWORK),
        }));
    }
    let message = format!("`network.mode: {mode}` needs the approval `{what}`");
    refused(settings, NETWORK, &message, "add it to `approvals`, with a reason")
}

/// Private addresses belong to the organisation's own machines and the services that trust its network.
fn private(asked: &Asked<'_>, settings: &Settings) -> Outcome {
    const WHAT: &str = "network:private";
    if !loosened(PRIVATE, asked, settings) {
        return Ok(None);
    }
    if let Some(by_organisation) = written_by_organisation(PRIVATE, asked, settings) {
        return Ok(Some(organisation_approval(WHAT.to_owned(), by_organisation)));
    }
    if approvals(settings).iter().any(|approval| approval.what == WHAT) {
        return Ok(None);
    }
    let message = format!("`{PRIVATE}` needs the approval `{WHAT}`");
    refused(settings, PRIVATE, &message, "add it to `approvals`, with a reason")
}

fn loosened(path: &str, asked: &Asked<'_>, settings: &Settings) -> bool {
    let value = |settings: &Settings| settings.get(path).map(|setting| setting.value.clone());
    let step = keys::find(path)
        .and_then(|key| direction(key, value(asked.built_in).as_ref(), value(settings).as_ref()));
    step == Some(Direction::Loosens)
}

/// The place where the organisation set a value at least as loose as the current one.
fn written_by_organisation(path: &str, asked: &Asked<'_>, settings: &Settings) -> Option<Origin> {
    let written = asked.organisation?.get(path)?;
    let now = settings.get(path).map(|setting| &setting.value);
    let step = direction(keys::find(path)?, Some(&written.value), now);
    matches!(step, None | Some(Direction::Tightens)).then(|| written.origin.clone())
}

fn organisation_approval(what: String, origin: Origin) -> Recorded {
    let reason = format!("the organisation's policy, {origin}");
    Recorded { approval: Approval { what, reason }, origin, by: By::Organisation }
}

fn refused(settings: &Settings, path: &str, message: &str, fix: &str) -> Outcome {
    let origin = settings.get(path).map(|setting| setting.origin.clone());
    let origin = origin.unwrap_or(Origin { file: "policy".into(), line: 0, column: 0 });
    Err(Box::new(Diagnostic::new(Problem::NeedsApproval, &origin, path, message).suggest(fix)))
}

#[cfg(test)]
#[path = "permission_tests.rs"]
mod tests;
