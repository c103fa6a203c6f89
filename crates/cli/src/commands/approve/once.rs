//! One answer by command line, and what became of it.

use super::address::{Address, Candidate};
use super::{CONNECT_TIMEOUT, Secrets, complain_of};
use crate::output;
use anyhow::bail;
use palisade_ask::answering::Taken;
use palisade_ask::message::{Audit, Decision, LifetimeWord};
use palisade_ask::sessions::Sessions;
use palisade_ask::{Answer, HostSubject, QuestionId, Scope};
use palisade_record::escape;
use std::process::ExitCode;

/// Ends with 1 if the answer was not taken.
pub(crate) fn answer(
    sessions: &mut Sessions,
    address: &Address,
    answer: Answer,
    secrets: Secrets,
) -> anyhow::Result<ExitCode> {
    complain_of(&sessions.refresh_fully(CONNECT_TIMEOUT)?);
    let (name, id) = match meant(sessions, address, answer, secrets) {
        Ok(found) => found,
        Err(error) => {
            output::complain(&error);
            return Ok(ExitCode::FAILURE);
        }
    };
    let mut tell = Ok(());
    let mut decided = |audit: &Audit| tell = output::print(&told(audit));
    let taken = sessions.answer_and_wait((&name, id), answer, CONNECT_TIMEOUT, &mut decided)?;
    tell?;
    match taken {
        Taken::Yes => return Ok(ExitCode::SUCCESS),
        Taken::No(why) => output::note(&why),
        Taken::Unknown => {
            output::note("the session does not answer; the answer may not have arrived");
        }
    }
    Ok(ExitCode::FAILURE)
}

/// The question to answer, if this answer may be given to it.
fn meant(
    sessions: &Sessions,
    address: &Address,
    answer: Answer,
    secrets: Secrets,
) -> anyhow::Result<(String, QuestionId)> {
    let open = sessions.iter().flat_map(|(session, known)| {
        known.open().map(move |question| Candidate {
            session,
            id: question.id,
            is_secret: question.is_secret,
        })
    });
    let found = address.find(open, sessions.iter().count())?;
    let is_yes = matches!(answer, Answer::Allow { .. });
    if is_yes && found.is_secret && secrets == Secrets::Refused {
        bail!("question {address} is about a secret; allow it with --secret");
    }
    Ok((found.session.to_owned(), found.id))
}

/// A decision in a few words, with what it is about.
pub(crate) fn told(audit: &Audit) -> String {
    let about = match (&audit.path, &audit.host, audit.port) {
        (Some(path), ..) => path.clone(),
        (None, Some(host), Some(port)) => HostSubject { host: host.clone(), port }.to_string(),
        _ => format!("question {}", audit.id),
    };
    format!("{}: {}", decision(audit), escape::text(&about))
}

/// What was decided, by whom and for how long.
pub(crate) fn decision(audit: &Audit) -> String {
    let decision = match audit.decision {
        Decision::Allow => "allowed",
        Decision::Deny => "denied",
    };
    let lifetime = match audit.lifetime {
        LifetimeWord::Once => "once".to_owned(),
        LifetimeWord::Session => "for the session".to_owned(),
        LifetimeWord::Always => match audit.store {
            Some(store) => format!("always (kept for the {store})"),
            None => "always".to_owned(),
        },
    };
    let what = match audit.scope {
        Some(Scope::Directory) => "with its directory, ",
        Some(Scope::DirectoryToRun) => "with its directory and the programs in it, ",
        Some(Scope::PrivateCopy) => "on a private copy, ",
        Some(Scope::File) | None => "",
    };
    let by = match audit.source.as_str() {
        "terminal" => ", in its own terminal",
        "timeout" => ", because nobody answered in time",
        "on_ask" => ", by the policy",
        "nobody" => ", because nobody could be asked",
        _ => "",
    };
    format!("{decision} {what}{lifetime}{by}")
}
