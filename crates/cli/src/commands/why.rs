//! `sandbox why`: what decides about a path in a run with the same options.

use crate::args::PolicyArgs;
use crate::output;
use crate::request::policy_request;
use clap::Args;
use palisade_gate::{Access, Effect};
use palisade_policy::{OnAsk, Provenance};
use palisade_session::Caller;
use palisade_session::why::{self, Outcome, Reason};
use std::path::PathBuf;
use std::process::ExitCode;

const DETAILS: &str = "\
Says whether a command would find the path, and what decides that: a grant of the view, a rule and the \
file and line it stands in, the list of secrets, or the answer to a question. Nothing is started and nobody \
is asked.

Exit codes: 0 it is there, 1 it is not, 2 somebody would be asked, 125 sandbox failed.";

const ASKED: u8 = 2;

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct Why {
    #[command(flatten)]
    policy: PolicyArgs,

    /// Ask for executing, not only for reading
    #[arg(long)]
    execute: bool,

    /// Print it as JSON
    #[arg(long)]
    json: bool,

    /// A path of the host
    path: PathBuf,
}

impl Why {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let caller = Caller::here()?;
        let request = policy_request(&caller, &self.policy)?;
        let access = if self.execute { Access::Execute } else { Access::Read };
        let answer = why::why(&caller, &request, &self.path, access)?;
        for note in &answer.notes {
            output::note(note);
        }
        if self.json {
            output::print_json(&answer)?;
        } else {
            output::print_untrusted(&text(&answer))?;
        }
        Ok(match answer.reason.outcome() {
            Outcome::Given => ExitCode::SUCCESS,
            Outcome::Withheld => ExitCode::FAILURE,
            Outcome::Asked => ExitCode::from(ASKED),
        })
    }
}

fn text(answer: &why::Why) -> String {
    let mut text = format!("{}: {}\n", answer.path.display(), in_words(&answer.reason));
    if let Some(real) = answer.real_path.as_ref().filter(|real| **real != answer.path) {
        text += &format!("  it is {} on the host\n", real.display());
    }
    let (Reason::Visible { set_by, .. } | Reason::Hidden { set_by, .. }) = &answer.reason else {
        return text;
    };
    let sources: Vec<String> = set_by.iter().map(Provenance::to_string).collect();
    if !sources.is_empty() {
        text += &format!("  set by {}\n", sources.join("; "));
    }
    text
}

fn in_words(reason: &Reason) -> String {
    match reason {
        Reason::Visible { grant, writable, executable, .. } => {
            let writing = if *writable { "writable" } else { "read-only" };
            let executing = if *executable { "" } else { ", not executable" };
            format!("visible, {writing}{executing}: {grant}")
        }
        Reason::Own { place } => format!("the run's own: it has its own {}", place.display()),
        Reason::Absent => "not there: neither inside nor on the host; nobody is asked".to_owned(),
        Reason::Hidden { because, .. } => format!("hidden, and nobody is asked: {because}"),
        Reason::Rule { effect, rule, store, place, by } => {
            let by = by.as_ref().map(|by| format!(", by {by}")).unwrap_or_default();
            let word = match effect {
                Effect::Allow => "allowed",
                Effect::Deny => "denied",
            };
            format!("{word} by the rule `{effect}: {rule}` of the {store}, {place}{by}")
        }
        Reason::Asked { secret, on_ask, timeout_ms, directory } => {
            let secret = if *secret { "a secret; " } else { "" };
            format!("{secret}{}", asked(*on_ask, !secret.is_empty(), *timeout_ms))
                + &directory
                    .as_ref()
                    .map(|directory| format!("; {}/** would be offered too", directory.display()))
                    .unwrap_or_default()
        }
    }
}

fn asked(on_ask: OnAsk, is_secret: bool, timeout_ms: u64) -> String {
    match on_ask {
        OnAsk::Ask => format!(
            "hidden until somebody says yes: asked at the first touch, denied after {} s or if nobody is there",
            timeout_ms / 1000
        ),
        OnAsk::Wait => format!(
            "hidden until somebody says yes: asked at the first touch, denied after {} s",
            timeout_ms / 1000
        ),
        OnAsk::Allow if !is_secret => {
            "no rule speaks, and onAsk allows it at the first touch".to_owned()
        }
        OnAsk::Allow => "no rule names it, and onAsk does not allow secrets".to_owned(),
        OnAsk::Deny => "no rule speaks, and onAsk denies it".to_owned(),
    }
}
