//! `sandbox approve`: what sessions wait for, and how a person or a script answers.
//!
//! It only answers. What it shows may have been written by the program that asks, so everything is
//! escaped, and no answer is ever given for a question that was not the one looked at.

mod address;
mod answers;
mod board;
mod draw;
mod help;
mod like;
mod matching;
mod notice;
mod once;
mod pace;
mod row;
mod screen;
pub(crate) mod text;
mod watch;

use crate::args::StoreWord;
use crate::output;
use address::Address;
use anyhow::bail;
use clap::Args;
use palisade_ask::message::Request;
use palisade_ask::sessions::{SessionChange, Sessions};
use palisade_ask::{Answer, Lifetime, Question, Scope, Store};
use palisade_record::escape;
use palisade_session::Caller;
use serde::Serialize;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// How long a session may take to say what is open there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The name that answers are recorded with.
const NAME: &str = "sandbox approve";

const DETAILS: &str = "\
Shows the questions of all your running sandboxes and lets you answer them. After your answer the \
waiting calls continue, or fail with EACCES; connections to hosts that no rule names are made, or \
denied. The first answer counts, whether you give it here, in the sandbox's own terminal or with \
another client (docs/protocol.md). While this is open, sandboxes that cannot ask elsewhere wait for \
an answer.

A question is named by the last characters of its session's name and a number, as shown: \
1c9e0a55:3. The number is enough if only one session asks and the question is not about a \
secret. Permanent answers are written to a policy file. A secret is allowed only with --secret, and \
never by directory.

In the list, keys answer the selected question, and the lines at the bottom name them; ? explains \
them all, / searches, and = answers all questions about the same directory, program or host, after it \
has shown how many there are. Permanent answers (a, D, x) need Enter, and a \
secret needs a typed word: yes, session, no or never, then Enter. A key that comes too soon after \
another key or a change of the list is ignored, and the list says so. w, then \
Enter, saves the answers of the session as your rules, W as rules of the project; \
`sandbox policy save` does the same after the session has ended.

Examples:
  sandbox approve
  sandbox approve --json | jq -r '.questions[] | .path // .host'
  sandbox approve --yes 3
  sandbox approve --yes 1c9e0a55:3 --directory --always --store project
  sandbox approve --yes 1c9e0a55:5 --secret
  sandbox approve --no 4 --always

Exit codes: 0 done (with --json also if nothing is open), 1 the answer was not accepted, 125 sandbox \
failed.";

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct Approve {
    /// Print the open questions as one JSON document
    #[arg(long, conflicts_with_all = ["yes", "no"])]
    json: bool,

    /// With --json: print events, one JSON object per line, until interrupted; meanwhile
    /// sandboxes wait for an answer
    #[arg(long, requires = "json")]
    watch: bool,

    /// Allow what this question asks for [default: once]
    #[arg(long, value_name = "ID", conflicts_with = "no")]
    yes: Option<Address>,

    /// Deny what this question asks for [default: for the session]
    #[arg(long, value_name = "ID")]
    no: Option<Address>,

    /// Answer for the calls that wait now
    #[arg(long, group = "lifetime", conflicts_with_all = ["json", "directory"])]
    once: bool,

    /// Answer until the session ends
    #[arg(long, group = "lifetime", conflicts_with = "json")]
    session: bool,

    /// Answer permanently
    #[arg(long, group = "lifetime", conflicts_with = "json")]
    always: bool,

    /// Allow the directory that the question offers, with everything below it
    #[arg(long, requires = "yes", conflicts_with = "no")]
    directory: bool,

    /// With --directory: also allow running the programs and loading the libraries in it
    #[arg(long, requires = "directory")]
    run: bool,

    /// Let it change a private copy, which is discarded when the run ends
    #[arg(long, requires = "yes", conflicts_with_all = ["no", "directory", "once", "always", "secret"])]
    private_copy: bool,

    /// Allow it although it is a secret
    #[arg(long, requires = "yes", conflicts_with_all = ["no", "directory"])]
    secret: bool,

    /// Where a permanent answer is saved [default: user]
    #[arg(long, value_name = "STORE", requires = "always")]
    store: Option<StoreWord>,

    /// Look for sessions in this directory instead of your own
    #[arg(long, value_name = "DIR")]
    sockets: Option<PathBuf>,

    /// List the questions of this session only, until it ends
    #[arg(long = "only-session", value_name = "SESSION", conflicts_with = "json")]
    only_session: Option<String>,

    /// Exit when no question is open any more
    #[arg(long, conflicts_with_all = ["json", "yes", "no"])]
    until_answered: bool,

    /// Send no desktop notifications
    #[arg(long, conflicts_with_all = ["json", "yes", "no"])]
    no_notify: bool,
}

/// How long the list stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    /// A person ends it.
    Told,
    SessionEnds,
    /// Nothing is open.
    Answered,
}

/// Whether a yes may be about a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Secrets {
    Allowed,
    Refused,
}

impl Approve {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let directory = self.directory_of_sockets()?;
        let mut sessions = Sessions::new(&directory, NAME);
        if let Some(session) = &self.only_session {
            sessions.only(session);
        }
        if let Some((address, answer)) = self.answer()? {
            let secrets = if self.secret { Secrets::Allowed } else { Secrets::Refused };
            return once::answer(&mut sessions, &address, answer, secrets);
        }
        if self.watch {
            return watch::stream(&mut sessions);
        }
        if self.json {
            complain_of(&sessions.refresh_fully(CONNECT_TIMEOUT)?);
            output::print(&palisade_ask::to_line(&Listing::of(&sessions))?)?;
            return Ok(ExitCode::SUCCESS);
        }
        if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            bail!(
                "standard input is not a terminal; use --json to list questions, and --yes ID or --no ID to \
                 answer them"
            );
        }
        let notices = if self.no_notify { None } else { Some(notice::Notices::new()) };
        let until = match (&self.only_session, self.until_answered) {
            (_, true) => Until::Answered,
            (Some(_), false) => Until::SessionEnds,
            (None, false) => Until::Told,
        };
        sessions.attend()?;
        screen::show(&mut sessions, notices, until)
    }

    fn directory_of_sockets(&self) -> anyhow::Result<PathBuf> {
        if let Some(directory) = &self.sockets {
            return Ok(directory.clone());
        }
        Ok(Caller::here()?.places.runtime)
    }

    fn answer(&self) -> anyhow::Result<Option<(Address, Answer)>> {
        let lifetime = match self {
            Self { always: true, .. } => {
                Some(Lifetime::Always(self.store.map(Store::from).unwrap_or_default()))
            }
            Self { session: true, .. } => Some(Lifetime::Session),
            Self { once: true, .. } => Some(Lifetime::Once),
            _ => None,
        };
        Ok(match (&self.yes, &self.no) {
            (Some(address), _) if self.directory => {
                let lifetime = lifetime.unwrap_or(Lifetime::Session);
                let scope = if self.run { Scope::DirectoryToRun } else { Scope::Directory };
                Some((address.clone(), Answer::Allow { scope, lifetime }))
            }
            (Some(address), _) if self.private_copy => {
                let (scope, lifetime) = (Scope::PrivateCopy, Lifetime::Session);
                Some((address.clone(), Answer::Allow { scope, lifetime }))
            }
            (Some(address), _) => {
                let lifetime = lifetime.unwrap_or(Lifetime::Once);
                Some((address.clone(), Answer::Allow { scope: Scope::File, lifetime }))
            }
            (None, Some(address)) => {
                let lifetime = lifetime.unwrap_or(Lifetime::Session);
                Some((address.clone(), Answer::Deny { lifetime }))
            }
            (None, None) if lifetime.is_some() => {
                bail!("--once, --session and --always go with --yes ID or --no ID")
            }
            (None, None) => None,
        })
    }
}

/// The document of `--json`.
#[derive(Serialize)]
struct Listing {
    sessions: Vec<Known>,
    questions: Vec<Asked>,
}

#[derive(Serialize)]
struct Known {
    session: String,
    command: String,
    project: String,
}

/// A question as the protocol tells it, and the name it can be answered by.
#[derive(Serialize)]
struct Asked {
    address: String,
    #[serde(flatten)]
    question: Request,
}

impl Listing {
    fn of(sessions: &Sessions) -> Self {
        let questions = sessions.iter().flat_map(|(_, session)| session.open());
        Self {
            sessions: sessions.iter().filter_map(|(name, _)| Known::of(sessions, name)).collect(),
            questions: questions.map(|question| Asked::of(sessions, question)).collect(),
        }
    }
}

impl Known {
    fn of(sessions: &Sessions, name: &str) -> Option<Self> {
        let (_, session) = sessions.iter().find(|(known, _)| *known == name)?;
        Some(Self {
            session: name.to_owned(),
            command: session.command().to_owned(),
            project: session.project().to_owned(),
        })
    }
}

impl Asked {
    fn of(sessions: &Sessions, question: &Question) -> Self {
        let names = sessions.iter().map(|(name, _)| name);
        Self {
            address: address::shown(names, &question.session, question.id),
            question: Request::from(question),
        }
    }
}

/// A session that cannot be talked to must not go unnoticed: its questions would.
fn complain_of(changes: &[SessionChange]) {
    for change in changes {
        if let SessionChange::Trouble { session, error } = change {
            output::note(&format!("session {}: {error}", escape::text(session)));
        }
    }
}

#[cfg(test)]
#[path = "test_support.rs"]
mod test_support;

#[cfg(test)]
#[path = "approve_tests.rs"]
mod tests;
