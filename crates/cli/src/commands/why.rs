//! `sandbox why`: what decides about a path, a host or a variable in a run with the same options.

use crate::args::{HelpArgs, HelpEnd, PolicyArgs, help_end};
use crate::output;
use crate::request::policy_request;
use clap::Args;
use palisade_gate::{Access, Effect};
use palisade_policy::{OnAsk, Provenance};
use palisade_record::escape;
use palisade_session::Caller;
use palisade_session::why::{self, OtherSubject, SubjectAnswer, WhyOutcome, WhyReason};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP_END: HelpEnd = help_end!(
    "\
Shows whether a command could read or write a path, reach a host or get a variable, and what decides it: a grant, a rule \
with its file and line, the list of secrets or protected names, or a question to you. Nothing is started and nobody is \
asked.

Examples:
  sandbox why ~/data/file
  sandbox why --write .vscode/tasks.json
  sandbox why --host api.example:443
  sandbox why --variable GITHUB_TOKEN

Exit codes: 0 yes, 1 no, 2 you would be asked, 125 sandbox failed."
);

const ASKED: u8 = 2;

#[derive(Args, Debug)]
#[command(after_help = HELP_END.short, after_long_help = HELP_END.all, disable_help_flag = true)]
pub(crate) struct Why {
    #[command(flatten)]
    policy: PolicyArgs,

    /// Explain executing the path, not only reading it
    #[arg(long)]
    execute: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Explain writing to the path, including protected names
    #[arg(long, conflicts_with = "execute")]
    write: bool,

    /// Explain a host, NAME or NAME:PORT [default port: 443]
    #[arg(long, value_name = "HOST", conflicts_with_all = ["execute", "write"])]
    host: Option<String>,

    /// Explain an environment variable
    #[arg(id = "variable", long = "variable", value_name = "NAME", conflicts_with_all = ["execute", "write", "host"])]
    variable: Option<String>,

    /// The path, as on the host
    #[arg(required_unless_present_any = ["host", "variable"], conflicts_with_all = ["host", "variable"])]
    path: Option<PathBuf>,

    #[command(flatten)]
    help: HelpArgs,
}

impl Why {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let caller = Caller::here()?;
        let request = policy_request(&caller, &self.policy)?;
        if let Some(host) = &self.host {
            return tell(&why::host(&caller, &request, host)?, self.json);
        }
        if let Some(name) = &self.variable {
            return tell(&why::variable(&caller, &request, name)?, self.json);
        }
        let path = self.path.unwrap_or_default();
        let hint = hint(&caller, &path);
        if self.write {
            let answer = why::writing(&caller, &request, &path)?;
            return tell_with(&answer, hint, self.json);
        }
        let access = if self.execute { Access::Execute } else { Access::Read };
        let answer = why::why(&caller, &request, &path, access)?;
        for note in &answer.notes {
            output::note(note);
        }
        if self.json {
            output::print_json(&answer)?;
        } else {
            output::print_lines(lines(&answer).into_iter().chain(hint))?;
        }
        Ok(code(answer.reason.outcome()))
    }
}

fn code(outcome: WhyOutcome) -> ExitCode {
    match outcome {
        WhyOutcome::Given => ExitCode::SUCCESS,
        WhyOutcome::Withheld => ExitCode::FAILURE,
        WhyOutcome::Asked => ExitCode::from(ASKED),
    }
}

/// A line about what was probably meant by a path that leads nowhere.
fn hint(caller: &Caller, path: &Path) -> Option<String> {
    Some(match why::other_subject(caller, path)? {
        OtherSubject::Variable(name) => {
            format!(
                "  a variable has this name: sandbox why --variable {}",
                escape::shell_word(&name)
            )
        }
        OtherSubject::Host(host) => {
            format!("  if a host is meant: sandbox why --host {}", escape::shell_word(&host))
        }
    })
}

fn tell(answer: &SubjectAnswer, as_json: bool) -> anyhow::Result<ExitCode> {
    tell_with(answer, None, as_json)
}

fn tell_with(
    answer: &SubjectAnswer,
    hint: Option<String>,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    for note in &answer.notes {
        output::note(note);
    }
    if as_json {
        output::print_json(answer)?;
        return Ok(code(answer.outcome()));
    }
    let (word, by) = match answer.outcome() {
        WhyOutcome::Given => ("allowed", "granted by"),
        WhyOutcome::Withheld => ("denied", "set by"),
        WhyOutcome::Asked => ("asked about", "set by"),
    };
    let mut lines = vec![format!("{}: {word}: {}", answer.subject, answer.because)];
    lines.extend(sources(by, &answer.set_by));
    lines.extend(answer.allow_with.iter().map(|option| format!("  allow with {option}")));
    lines.extend(hint);
    output::print_lines(lines)?;
    Ok(code(answer.outcome()))
}

/// None where nobody said it.
fn sources(word: &str, set_by: &[Provenance]) -> Option<String> {
    let sources: Vec<String> = set_by.iter().map(Provenance::to_string).collect();
    (!sources.is_empty()).then(|| format!("  {word} {}", sources.join("; ")))
}

fn lines(answer: &why::Why) -> Vec<String> {
    let mut lines = vec![format!("{}: {}", answer.path.display(), in_words(&answer.reason))];
    if let Some(real) = answer.real_path.as_ref().filter(|real| **real != answer.path) {
        lines.push(format!("  on the host it is {}", real.display()));
    }
    lines.extend(match &answer.reason {
        WhyReason::Visible { set_by, .. } => sources("granted by", set_by),
        WhyReason::Hidden { set_by, .. } => sources("set by", set_by),
        _ => None,
    });
    lines
}

fn in_words(reason: &WhyReason) -> String {
    match reason {
        WhyReason::Visible { grant, writable, executable, .. } => {
            let writing = if *writable { "writable" } else { "read-only" };
            let executing = if *executable { "" } else { ", not executable" };
            format!("visible, {writing}{executing}: {grant}")
        }
        WhyReason::Own { place } => format!("private: the run has its own {}", place.display()),
        WhyReason::Absent => {
            "does not exist, neither in the sandbox nor on the host; nothing is asked".to_owned()
        }
        WhyReason::Hidden { because, .. } => format!("hidden, and nothing is asked: {because}"),
        WhyReason::Rule { effect, rule, store, place, by } => {
            let by = by.as_ref().map(|by| format!(", by {by}")).unwrap_or_default();
            let word = match effect {
                Effect::Allow => "allowed",
                Effect::Deny => "denied",
            };
            format!("{word} by the rule `{effect}: {rule}` of the {store}, {place}{by}")
        }
        WhyReason::Asked { secret, on_ask, timeout_ms, directory } => {
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
            "hidden until you allow it: you are asked on first use; denied after {} s, or if nobody can be asked",
            timeout_ms / 1000
        ),
        OnAsk::Wait => format!(
            "hidden until you allow it: you are asked on first use; denied after {} s",
            timeout_ms / 1000
        ),
        OnAsk::Allow if !is_secret => "no rule matches, and onAsk allows it".to_owned(),
        OnAsk::Allow => "no rule matches, and onAsk does not allow secrets".to_owned(),
        OnAsk::Deny => "no rule matches, and onAsk denies it".to_owned(),
    }
}
