//! Recordings of what commands write to their terminals (LIFE-6): whose they are, where they go, and which events stand in them
//! as markers. What we draw ourselves, such as a question, is not part of them.

use palisade_launch::CommandId;
use palisade_plan::model::Recording;
use palisade_record::cast::{CastHeader, CastWriter};
use palisade_record::{Decision, EventKind, escape, network};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::termios::LocalModes;
use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;

/// Of one session. The oldest are removed.
pub const MAX_RECORDINGS: usize = 64;

/// The recordings of a session's commands, a file each.
#[derive(Debug)]
pub struct RecordingDirectory {
    directory: OwnedFd,
    path: PathBuf,
    plan: Recording,
    /// Oldest first.
    recorded: VecDeque<CommandId>,
}

impl RecordingDirectory {
    pub fn new(directory: OwnedFd, path: PathBuf, plan: Recording) -> Self {
        Self { directory, path, plan, recorded: VecDeque::new() }
    }

    /// Whether what is typed is recorded, too.
    pub(crate) fn records_input(&self) -> bool {
        self.plan.input
    }

    /// Begins the recording of a command that is about to be started.
    pub(crate) fn begin(
        &mut self,
        command: CommandId,
        size: Option<(u16, u16)>,
        title: &str,
    ) -> Result<CastWriter, String> {
        while self.recorded.len() >= MAX_RECORDINGS
            && let Some(oldest) = self.recorded.pop_front()
        {
            // What cannot be removed goes with the session.
            let _ = rustix::fs::unlinkat(&self.directory, name_of(oldest), AtFlags::empty());
        }
        let name = name_of(command);
        let path = self.path.join(&name);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let owner = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(&self.directory, &name, flags, owner)
            .map_err(|errno| format!("cannot record to {}: {errno}", path.display()))?;
        self.recorded.push_back(command);
        let header = CastHeader::new(size, title);
        CastWriter::begin(File::from(file), &path, &header, self.plan.max_bytes)
            .map_err(|error| error.to_string())
    }

    /// It was not started.
    pub(crate) fn forget(&mut self, command: CommandId) {
        self.recorded.retain(|known| *known != command);
        let _ = rustix::fs::unlinkat(&self.directory, name_of(command), AtFlags::empty());
    }
}

fn name_of(command: CommandId) -> String {
    format!("{}.cast", command.0)
}

/// Whether a terminal shows what is typed into it, given its master. What is typed while it does not may be a password.
pub(crate) fn echoes(master: impl AsFd) -> bool {
    rustix::termios::tcgetattr(master)
        .is_ok_and(|modes| modes.local_modes.contains(LocalModes::ECHO))
}

/// How an event stands in a recording; most do not.
pub(crate) fn marker(kind: &EventKind) -> Option<String> {
    let word = |decision: Decision| match decision {
        Decision::Allowed => "allowed",
        Decision::Denied => "denied",
    };
    let port = |port| network::one_port(port).map_or(String::new(), |port| format!(":{port}"));
    let text = match kind {
        EventKind::AccessDecided(access) => {
            let asked = access.question.map_or("", |_| ", asked");
            let decision = word(access.decision);
            format!("{decision} {} {}, by {}{asked}", access.access, access.path, access.source)
        }
        EventKind::AccessRevoked(revoked) => format!("revoked {}", revoked.path),
        EventKind::HostDecided(host) => {
            let asked = host.question.map_or("", |_| ", asked");
            let decision = word(host.decision);
            format!("{decision} host {}{}, by {}{asked}", host.host, port(host.port), host.source)
        }
        EventKind::NetworkAttempt(attempt) => {
            let decision = if attempt.action.is_allowed() { "allowed" } else { "denied" };
            format!("{decision} connection to {}{}", attempt.host, port(attempt.port))
        }
        EventKind::PolicyViolation(violation) => {
            let path = violation.path.as_deref().unwrap_or("-");
            format!("{} {} {path}", word(violation.decision), violation.op)
        }
        EventKind::EscapeAttempt(attempt) => attempt.description.clone(),
        EventKind::ResourceLimitExceeded(limit) => format!("limit {} reached", limit.resource),
        _ => return None,
    };
    Some(escape::text(&text).into_owned())
}
