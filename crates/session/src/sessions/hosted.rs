//! The session that this process supervises: keeps its record true, tells its creator how the start went, and starts the
//! command that it is for.

use super::claiming::{KeptRecord, SessionOwner};
use super::directory::{SessionDirectory, SupervisorLock};
use super::record::{SessionRecord, TimeToLive};
use crate::app_dirs::AppDirs;
use crate::error::{Result, SessionError};
use crate::reporting::word;
use palisade_launch::{CommandId, CommandKind, ExitCause};
use palisade_plan::model::Plan;
use palisade_record::{ErrorKind, Outcome, RunReport, State};
use palisade_supervisor::control::connection::Connection;
use palisade_supervisor::control::endpoint::Endpoint;
use palisade_supervisor::control::interface::{
    CommandStreams, Environment, Event, FromSupervisor, Grace, HeldStreams, Request, Response,
    StartCommand, TerminalSize,
};
use palisade_supervisor::error::{OWN_FAILURE, SIGNAL_BASE};
use palisade_supervisor::recording::RecordingDirectory;
use palisade_supervisor::{ClaimRecord, Supervisor};
use palisade_sys::fault;
use palisade_sys::proc::sig::SIGTERM;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::rc::Rc;

const EXPIRED: &str = "its time to live was over";
const DISCARDED: &str = "its time to live was over, and its changes were discarded";

/// What the creator of a session is told, a line of JSON each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Progress {
    /// For a person.
    Note(String),
    /// It is there, and the command that it is for runs.
    Started,
    Failed {
        exit_code: u8,
        kind: ErrorKind,
        message: String,
    },
}

/// The creator of a session, while it waits.
#[derive(Clone, Debug)]
pub struct CreatorPipe(Rc<RefCell<Option<File>>>);

impl CreatorPipe {
    pub(crate) fn new(pipe: OwnedFd) -> Self {
        Self(Rc::new(RefCell::new(Some(File::from(pipe)))))
    }

    /// Says something. False if nobody waits for it.
    pub(crate) fn tell(&self, progress: &Progress) -> bool {
        let mut waiting = self.0.borrow_mut();
        let Some(pipe) = waiting.as_mut() else { return false };
        let line = serde_json::to_string(progress).map(|line| line + "\n").unwrap_or_default();
        let is_told = pipe.write_all(line.as_bytes()).is_ok();
        if !matches!(progress, Progress::Note(_)) {
            *waiting = None;
        }
        is_told
    }
}

/// The command that a session is for: it ends with it.
#[derive(Clone, Debug)]
pub struct FirstCommand {
    pub argv: Vec<OsString>,
    /// None: no terminal, and nothing to read.
    pub terminal: Option<TerminalSize>,
}

#[derive(Debug)]
pub struct HostedSession {
    pub(crate) endpoint: Endpoint,
    pub(crate) life: SessionLife,
}

/// Everything of a hosted session but its clients.
#[derive(Debug)]
pub(crate) struct SessionLife {
    directory: SessionDirectory,
    record: Rc<KeptRecord>,
    _lock: SupervisorLock,
    creator: CreatorPipe,
    first: Option<FirstCommand>,
    /// Of a sandbox that is prepared: whether it may be long before it is claimed.
    waits: bool,
    /// Whether its creator was told that it is there.
    has_started: bool,
    /// The number of the first command while it runs.
    running: Option<CommandId>,
    /// What the first command ended with, and why it did not start.
    outcome: Option<(i32, Option<String>)>,
}

impl HostedSession {
    pub(crate) fn new(
        places: &AppDirs,
        (directory, lock): (SessionDirectory, SupervisorLock),
        record: SessionRecord,
        creator: CreatorPipe,
        (first, owner): (Option<FirstCommand>, Option<SessionOwner>),
    ) -> Result<Self> {
        let record = KeptRecord::new(places.clone(), directory.try_clone()?, record);
        // For who has to kill it before it has started.
        record.change(|record| record.supervisor = Some(std::process::id()))?;
        let waits = owner.as_ref().is_some_and(|owner| owner.waits);
        let listener = directory.listen()?;
        let endpoint = match owner {
            Some(owner) => Endpoint::prepared(listener, Connection::new(owner.socket)),
            None => Endpoint::listening(listener),
        };
        fault::point("listening", "");
        let life = SessionLife {
            directory,
            record: Rc::new(record),
            _lock: lock,
            creator,
            first,
            waits,
            has_started: false,
            running: None,
            outcome: None,
        };
        Ok(Self { endpoint, life })
    }

    /// The last of it: its record says how it ended, and so do the last messages to everybody. Of what failed before it had started
    /// nothing is kept: the audit log knows why, and its creator, who is told when everything else is done.
    pub(crate) fn finish(
        mut self,
        report: &RunReport,
        error: Option<&SessionError>,
    ) -> Option<FailedStart> {
        let Self { endpoint, life } = &mut self;
        let exit_code = life.exit_code(report);
        let message = error.map(ToString::to_string);
        life.directory.remove_socket();
        fault::point("socket removed", "");
        let escape = report.escape.as_ref().and_then(|escape| escape.response.as_ref());
        let escape =
            escape.map(|done| format!("ended for an attempt to break out ({})", done.indicator));
        let failed = life.failure_of_start(error);
        let discarded = report.discarded_changes.map(|_| DISCARDED.to_owned());
        life.record_end(report.outcome, exit_code, message.clone().or(escape).or(discarded));
        endpoint.finish(&FromSupervisor::Event(Event::Ended { exit_code, error: message }));
        if failed.is_none() && !life.record.leaves_nothing() {
            return None;
        }
        let SessionLife { directory, creator, _lock: lock, .. } = self.life;
        drop(lock);
        // If it cannot be removed, its record says how it ended.
        let _ = directory.remove();
        failed.map(|failed| FailedStart { creator, failed })
    }
}

/// A session that never started, and whose creator waits to hear why.
#[derive(Debug)]
pub(crate) struct FailedStart {
    creator: CreatorPipe,
    failed: Progress,
}

impl FailedStart {
    pub(crate) fn tell(&self) {
        self.creator.tell(&self.failed);
    }
}

impl SessionLife {
    pub(crate) fn id(&self) -> &str {
        self.directory.id()
    }

    /// For the supervisor of a sandbox that is prepared.
    pub(crate) fn claim_record(&self) -> Option<Rc<dyn ClaimRecord>> {
        let record: Rc<dyn ClaimRecord> = self.record.clone();
        self.record.is_prepared().then_some(record)
    }

    /// Whether nobody has claimed it.
    pub(crate) fn is_prepared(&self) -> bool {
        self.record.is_prepared()
    }

    /// Whether it may be long before it is claimed.
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    pub(crate) fn output_logs(&self) -> Result<OwnedFd> {
        self.directory.open_output()
    }

    /// Where the terminals of commands are recorded, if they are.
    pub(crate) fn recordings(&self, plan: &Plan) -> Result<Option<RecordingDirectory>> {
        self.directory.open_recordings(plan)
    }

    /// Commands can be started.
    pub(crate) fn started(&mut self, plan: &Plan, supervisor: &mut Supervisor<'_>) -> Result<()> {
        let seconds = |milliseconds: Option<u64>| milliseconds.map(|time| time.div_ceil(1000));
        let transaction = plan.supervision.transaction.as_ref();
        self.record.change(|record| {
            record.state = State::Monitoring;
            record.level = Some(word(&plan.explanation.level));
            record.has_own_network = plan.has_own_network();
            record.recording = plan.supervision.recording.map(Into::into);
            record.time_to_live = TimeToLive {
                seconds: seconds(plan.supervision.time_to_live_ms),
                idle_seconds: seconds(plan.supervision.idle_time_to_live_ms),
            };
            record.transaction = transaction.map(|transaction| transaction.method);
            record.checkpoint_each_command =
                transaction.is_some_and(|transaction| transaction.checkpoint_each_command);
        })?;
        let Some(first) = self.first.take() else { return self.tell_started(supervisor) };
        let start = StartCommand {
            kind: CommandKind::Program,
            argv: first.argv.into_iter().map(OsString::into_vec).collect(),
            environment: Environment::Extended(Vec::new()),
            cwd: None,
            umask: None,
            rlimits: Vec::new(),
            streams: CommandStreams::Held(HeldStreams {
                terminal: first.terminal,
                has_input: false,
                has_stderr_apart: false,
                is_attached: false,
            }),
        };
        match supervisor.handle(Request::StartCommand(start), Vec::new())?.response {
            Response::Starting { command } => {
                self.running = Some(command);
                Ok(())
            }
            Response::Refused(refusal) => self.first_failed(125, refusal.message, supervisor),
            _ => Ok(()),
        }
    }

    /// What happens in the sandbox, as far as it is about the command that the session is for.
    pub(crate) fn hear(&mut self, event: &Event, supervisor: &mut Supervisor<'_>) -> Result<()> {
        let is_first = |command: &CommandId| self.running == Some(*command);
        match event {
            Event::CommandStarted { command, .. } if is_first(command) => {
                self.tell_started(supervisor)
            }
            Event::CommandFailed { command, exit_code, message } if is_first(command) => {
                self.first_failed(*exit_code, message.clone(), supervisor)
            }
            Event::CommandExited { command, cause } if is_first(command) => {
                self.running = None;
                let code = match cause {
                    ExitCause::Code(code) => *code,
                    ExitCause::Signal(signal) => SIGNAL_BASE + signal,
                };
                self.outcome = Some((code, None));
                end(supervisor)
            }
            _ => Ok(()),
        }
    }

    fn tell_started(&mut self, supervisor: &mut Supervisor<'_>) -> Result<()> {
        fault::point("telling the creator", "");
        self.has_started = true;
        // Nobody would know of it: its creator was ended while it waited.
        if !self.creator.tell(&Progress::Started) {
            return end(supervisor);
        }
        Ok(())
    }

    fn first_failed(
        &mut self,
        exit_code: i32,
        message: String,
        supervisor: &mut Supervisor<'_>,
    ) -> Result<()> {
        self.running = None;
        self.outcome = Some((exit_code, Some(message)));
        end(supervisor)
    }

    /// What its creator is told if it never started.
    fn failure_of_start(&self, error: Option<&SessionError>) -> Option<Progress> {
        if self.has_started {
            return None;
        }
        let failed = match (error, &self.outcome) {
            (Some(error), _) => (error.exit_code(), error.kind(), error.to_string()),
            (None, Some((code, Some(message)))) => {
                let code = u8::try_from(*code).unwrap_or(OWN_FAILURE);
                (code, ErrorKind::Validation, message.clone())
            }
            _ => return None,
        };
        let (exit_code, kind, message) = failed;
        Some(Progress::Failed { exit_code, kind, message })
    }

    /// That of the command that the session is for, unless something else ended it.
    fn exit_code(&self, report: &RunReport) -> i32 {
        match &self.outcome {
            Some((code, _)) if report.exit_code == 0 => *code,
            _ => report.exit_code,
        }
    }

    fn record_end(&mut self, outcome: Outcome, exit_code: i32, error: Option<String>) {
        let why_not_started = self.outcome.take().and_then(|(_, why)| why);
        let expired = || EXPIRED.to_owned();
        // If it cannot be written, the next sweep finds a supervisor that is gone.
        let _ = self.record.change(|record| {
            record.end(outcome.into(), Some(exit_code));
            record.end_reason =
                error.or(why_not_started).or_else(|| (outcome == Outcome::Timeout).then(expired));
        });
        let _ = self.directory.remove_temporaries();
    }
}

fn end(supervisor: &mut Supervisor<'_>) -> Result<()> {
    supervisor.handle(Request::End { signal: SIGTERM, grace: Grace::OfSandbox }, Vec::new())?;
    Ok(())
}
