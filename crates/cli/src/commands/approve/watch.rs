//! `--json --watch`: what happens, a line for each, for programs that would rather not speak the
//! protocol themselves.

use super::{Asked, CONNECT_TIMEOUT, Known, complain_of};
use palisade_ask::message::Audit;
use palisade_ask::sessions::{SessionChange, Sessions};
use palisade_ask::{QuestionId, Subject, to_line};
use rustix::event::{PollFd, PollFlags, Timespec};
use serde::Serialize;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;

const LOOK_AGAIN: Duration = Duration::from_millis(250);

#[derive(Serialize)]
#[serde(tag = "type")]
enum Line {
    #[serde(rename = "session.appeared")]
    Appeared(Known),
    #[serde(rename = "session.vanished")]
    Vanished { session: String },
    #[serde(rename = "event.fs_request")]
    FileAsked(Box<Asked>),
    #[serde(rename = "event.host_request")]
    HostAsked(Box<Asked>),
    #[serde(rename = "event.audit")]
    Answered {
        session: String,
        #[serde(flatten)]
        audit: Audit,
    },
    #[serde(rename = "event.withdrawn")]
    Withdrawn { session: String, id: QuestionId },
}

/// Until interrupted, or until nobody reads any more.
pub(crate) fn stream(sessions: &mut Sessions) -> anyhow::Result<ExitCode> {
    sessions.attend()?;
    let mut changes = sessions.refresh_fully(CONNECT_TIMEOUT)?;
    loop {
        complain_of(&changes);
        for line in changes.into_iter().filter_map(|change| line(sessions, change)) {
            let mut stdout = io::stdout().lock();
            match stdout.write_all(to_line(&line)?.as_bytes()).and_then(|()| stdout.flush()) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    return Ok(ExitCode::SUCCESS);
                }
                written => written?,
            }
        }
        if is_reader_gone()? {
            return Ok(ExitCode::SUCCESS);
        }
        sessions.wait(LOOK_AGAIN)?;
        changes = sessions.refresh()?;
    }
}

fn line(sessions: &Sessions, change: SessionChange) -> Option<Line> {
    Some(match change {
        SessionChange::Appeared { session } => Line::Appeared(Known::of(sessions, &session)?),
        SessionChange::Vanished { session } => Line::Vanished { session },
        SessionChange::Asked { session, id, .. } => {
            // Gone again already; that it is gone comes next.
            let question = sessions.question(&session, id)?;
            let asked = Box::new(Asked::of(sessions, question));
            match &question.subject {
                Subject::File(_) => Line::FileAsked(asked),
                Subject::Host(_) => Line::HostAsked(asked),
            }
        }
        SessionChange::Answered { session, audit } => Line::Answered { session, audit },
        SessionChange::Withdrawn { session, id } => Line::Withdrawn { session, id },
        SessionChange::Done { .. }
        | SessionChange::Refused { .. }
        | SessionChange::Trouble { .. } => return None,
    })
}

fn is_reader_gone() -> Result<bool, rustix::io::Errno> {
    let stdout = io::stdout();
    let descriptor = stdout.as_fd();
    let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::empty())];
    match rustix::event::poll(&mut polled, Some(&Timespec::default())) {
        Ok(_) => Ok(polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(errno) => Err(errno),
    }
}
