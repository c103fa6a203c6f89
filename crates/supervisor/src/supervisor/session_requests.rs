//! Requests of those who look into a session: attaching to the output of its commands, typing into them, what it does, and
//! more time for it.

use super::requests::Reply;
use crate::control::endpoint::ClientId;
use crate::control::handshake::refused;
use crate::control::held::Typing;
use crate::control::interface::{
    AttachRole, CommandDetails, OutputStart, RefusalKind, Response, SessionStatus,
};
use crate::supervisor::{Phase, Supervisor};
use palisade_launch::{CommandId, Spawner};
use std::time::{Duration, Instant};

impl Supervisor<'_> {
    pub(super) fn attach(
        &mut self,
        client: Option<ClientId>,
        command: Option<CommandId>,
        how: (OutputStart, AttachRole),
    ) -> Response {
        let held = &mut self.control.held;
        let Some(client) = client else { return for_clients_only() };
        let Some(command) = command.or_else(|| held.latest()) else {
            let why = "no command runs that one could attach to".to_owned();
            return refused(RefusalKind::UnknownCommand, why);
        };
        match held.attach(command, client, how) {
            Some(attached) => Response::Attached(attached),
            None if self.control.commands.contains(command) => {
                let why = format!("command {} has streams of its own client", command.0);
                refused(RefusalKind::Failed, why)
            }
            None => not_running(command),
        }
    }

    pub(super) fn type_in(
        &mut self,
        client: Option<ClientId>,
        command: CommandId,
        bytes: &[u8],
    ) -> Response {
        let Some(client) = client else { return for_clients_only() };
        match self.control.held.type_in(command, client, bytes) {
            Typing::Done => Response::Done,
            Typing::Unread => {
                let why = format!("command {} has not read what was typed before", command.0);
                refused(RefusalKind::Failed, why)
            }
            Typing::NotHere => self.does_not_type(command),
        }
    }

    pub(super) fn close_input(&mut self, client: Option<ClientId>, command: CommandId) -> Response {
        let Some(client) = client else { return for_clients_only() };
        match self.control.held.close_input(command, client) {
            true => Response::Done,
            false => self.does_not_type(command),
        }
    }

    fn does_not_type(&self, command: CommandId) -> Response {
        match self.control.commands.contains(command) {
            false => not_running(command),
            true => refused(RefusalKind::Failed, "this client does not type there".to_owned()),
        }
    }

    pub(super) fn detach(&mut self, client: Option<ClientId>, command: CommandId) -> Response {
        let Some(client) = client else { return for_clients_only() };
        match self.control.held.detach(command, client) {
            true => Response::Done,
            false => refused(RefusalKind::Failed, "this client is not attached".to_owned()),
        }
    }

    pub(super) fn inspect(&self) -> SessionStatus {
        let now = Instant::now();
        let control = &self.control;
        let left =
            |end: Option<Instant>| end.map(|end| milliseconds(end.saturating_duration_since(now)));
        let commands = control.commands.described().map(|(status, text, running)| CommandDetails {
            command: status.command,
            pid: status.pid,
            text: text.to_owned(),
            running_ms: milliseconds(running),
            held: control.held.status(status.command),
        });
        SessionStatus {
            age_ms: milliseconds(control.expiry.age(now)),
            idle_ms: control.expiry.idle_for(now).map(milliseconds),
            clients: u32::try_from(control.outbox.clients()).unwrap_or(u32::MAX),
            questions: u32::try_from(self.asking.open_questions()).unwrap_or(u32::MAX),
            expires_in_ms: left(control.expiry.expires_at()),
            idle_expires_in_ms: left(control.expiry.idle_expires_at()),
            is_ending: self.phase > Phase::Running,
            commands: commands.collect(),
        }
    }

    pub(super) fn hold_project(&mut self, client: Option<ClientId>) -> Reply {
        let refuse = |kind, why: &str| Reply::from(refused(kind, why.to_owned()));
        let Some(client) = client else { return for_clients_only().into() };
        if self.phase != Phase::Running {
            return refuse(RefusalKind::OutOfOrder, "the sandbox is ending");
        }
        let control = &mut self.control;
        let holder = control.project_holder.filter(|holder| *holder != client);
        if holder.is_some_and(|holder| control.outbox.is_connected(holder)) {
            return refuse(RefusalKind::OutOfOrder, "another client holds the project");
        }
        let running = control.commands.len();
        if running > 0 {
            let why = format!("commands are running ({running})");
            return refuse(RefusalKind::OutOfOrder, &why);
        }
        match self.running.spawner().and_then(Spawner::transaction) {
            None => refuse(RefusalKind::Failed, "the session has no transaction"),
            Some(Err(error)) => refuse(RefusalKind::Failed, &error.to_string()),
            Some(Ok(project)) => {
                control.project_holder = Some(client);
                Reply { response: Response::ProjectHeld, descriptor: Some(project) }
            }
        }
    }

    pub(super) fn write_checkpoints(&mut self) -> Response {
        if self.phase != Phase::Running {
            return refused(RefusalKind::OutOfOrder, "the sandbox is ending".to_owned());
        }
        match self.control.project_workers.write_checkpoints(&self.running) {
            Ok(true) => Response::Done,
            Ok(false) => refused(RefusalKind::Failed, "the session has no transaction".to_owned()),
            Err(error) => refused(RefusalKind::Failed, error.to_string()),
        }
    }

    pub(super) fn extend(&mut self, milliseconds: u64) -> Response {
        if self.phase != Phase::Running {
            return refused(RefusalKind::OutOfOrder, "the sandbox is ending".to_owned());
        }
        match self.control.expiry.extend(Instant::now(), Duration::from_millis(milliseconds)) {
            true => {
                self.record_extension(milliseconds);
                Response::Done
            }
            false => refused(RefusalKind::Malformed, "no clock counts that far".to_owned()),
        }
    }
}

fn not_running(command: CommandId) -> Response {
    refused(RefusalKind::UnknownCommand, format!("command {} is not running", command.0))
}

/// Nothing is sent to this process itself.
fn for_clients_only() -> Response {
    refused(RefusalKind::OutOfOrder, "only a client at a socket can be attached".to_owned())
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
