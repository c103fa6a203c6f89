//! One answer by command line, and what became of it.

use super::address::{Address, Candidate};
use super::{CONNECT_TIMEOUT, Secrets, complain_of};
use crate::output;
use anyhow::{Context, bail};
use palisade_ask::message::{Audit, Decision, LifetimeWord};
use palisade_ask::sessions::{SessionChange, Sessions};
use palisade_ask::{Answer, HostSubject, QuestionId, Scope};
use palisade_record::escape;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::process::ExitCode;
use std::time::{Duration, Instant};

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
    sessions.answer(&name, id, answer)?;
    // That it was taken, and what was decided, come in either order; with a directory there may be
    // more decisions than one.
    let (mut is_taken, mut is_told) = (false, false);
    let deadline = Instant::now() + CONNECT_TIMEOUT;
    while Instant::now() < deadline {
        for change in sessions.refresh()? {
            match change {
                SessionChange::Answered { session, audit } if session == name => {
                    output::print(&told(&audit))?;
                    is_told |= audit.id == id;
                }
                SessionChange::Done { session, .. } if session == name => is_taken = true,
                SessionChange::Refused { session, refused } if session == name => {
                    output::note(&refused.message);
                    return Ok(ExitCode::FAILURE);
                }
                // A short command may have ended with the answer.
                SessionChange::Vanished { session } if session == name && !is_taken => {
                    output::note("the session has ended");
                    return Ok(ExitCode::FAILURE);
                }
                SessionChange::Vanished { session } if session == name => is_told = true,
                _ => {}
            }
        }
        if is_taken && is_told {
            return Ok(ExitCode::SUCCESS);
        }
        wait(sessions, Duration::from_millis(100)).context("waiting for the session")?;
    }
    if is_taken {
        return Ok(ExitCode::SUCCESS);
    }
    output::note("the session does not answer; the answer may not have arrived");
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

/// Waits until a session sends something, at most this long.
pub(crate) fn wait(sessions: &Sessions, longest: Duration) -> Result<(), rustix::io::Errno> {
    let mut polled: Vec<PollFd<'_>> = sessions
        .descriptors()
        .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
        .collect();
    match rustix::event::poll(&mut polled, Timespec::try_from(longest).ok().as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno),
    }
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
