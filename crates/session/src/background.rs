//! Makes a session: a sandbox with a supervisor of its own, in the background.
//!
//! The supervisor is a fork of the process that creates the session, in a session and process group of its own, with nothing
//! of its creator's terminal. It must be forked before any thread exists.

use crate::caller::Caller;
use crate::error::{Result, SessionError};
use crate::quarantine;
use crate::run::{Controller, Finished, RunRequest, run_until};
use crate::session_id::new_session_id;
use crate::sessions::{
    self, CreatorPipe, FirstCommand, HostedSession, Progress, SessionDirectory, SessionOwner,
    SessionRecord, SupervisorLock, TimeToLive,
};
use jiff::Timestamp;
use palisade_launch::probe::RealTree;
use palisade_record::{ErrorKind, State, redact};
use palisade_sys::clone::{Forked, fork};
use palisade_sys::{fault, proc};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::PipeFlags;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;

/// What is special about a new session.
#[derive(Debug, Default)]
pub struct NewSession {
    pub name: Option<String>,
    pub presets: Vec<String>,
    /// None: the session stays until it is ended.
    pub command: Option<FirstCommand>,
    /// The client that claims it. None: it is a session from the beginning.
    pub owner: Option<SessionOwner>,
}

/// What became of it.
#[derive(Debug)]
pub enum Creation {
    Created {
        session: String,
    },
    /// It could not be made, or its command could not be started.
    Failed {
        exit_code: u8,
        kind: ErrorKind,
        message: String,
    },
}

/// To be called first: the supervisor must not keep what its creator has inherited, such as the pipe of a shell that waits
/// for its end.
pub fn close_inherited() -> Result<()> {
    Ok(proc::close_range(3, i32::MAX)?)
}

/// Makes a session and waits until its commands can be started. The calling process must have one thread only. `tell` gets
/// what a person should know; `conclude` is called in the supervisor at the end.
pub fn create(
    caller: Caller,
    request: &RunRequest,
    new: NewSession,
    tell: &mut dyn FnMut(&str),
    conclude: impl FnOnce(&Finished),
) -> Result<Creation> {
    // Before there is a session that nothing would run in.
    if let Some(first) = &new.command {
        quarantine::check(&caller.places, request.policy.tool.as_deref(), &first.argv)?;
    }
    let project = palisade_plan::locate_project(&caller.facts, &RealTree).root;
    let record = SessionRecord {
        id: new_session_id(),
        name: new.name,
        created_at: Timestamp::now(),
        project,
        command: new.command.as_ref().map(|first| redact::argv(&first.argv)),
        presets: new.presets,
        level: None,
        has_own_network: false,
        time_to_live: TimeToLive::default(),
        checkpoint_each_command: false,
        transaction: None,
        recording: None,
        state: State::Created,
        is_prepared: new.owner.is_some(),
        supervisor: None,
        exit_code: None,
        ended_at: None,
        end_reason: None,
    };
    let made = sessions::create(&caller.places, &record)?;
    let failed =
        |errno: rustix::io::Errno| SessionError::io("make", Path::new("a pipe"), errno.into());
    let (progress, pipe) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
    fault::point("forking", "");
    match fork()? {
        Forked::Child => {
            fault::point("forked", "");
            drop(progress);
            if let Some(owner) = &new.owner {
                owner.close_client();
            }
            let given = (new.command, new.owner);
            let code = supervise(caller, request, (made, record, given), pipe, conclude);
            proc::exit_now(code)
        }
        Forked::Parent { .. } => {
            drop((pipe, made, new.owner));
            fault::point("waiting for the supervisor", "");
            Ok(wait_for(progress, &record.id, tell))
        }
    }
}

type Made = (
    (SessionDirectory, SupervisorLock),
    SessionRecord,
    (Option<FirstCommand>, Option<SessionOwner>),
);

/// In the background, until the session is over.
fn supervise(
    caller: Caller,
    request: &RunRequest,
    (made, record, given): Made,
    pipe: OwnedFd,
    conclude: impl FnOnce(&Finished),
) -> i32 {
    let creator = CreatorPipe::new(pipe);
    let notes = creator.clone();
    let log = match leave_terminal(&made.0) {
        Ok(log) => log,
        Err(error) => {
            let (exit_code, message) = (error.exit_code(), error.to_string());
            let (directory, lock) = made;
            drop(lock);
            // If it cannot be removed, the next sweep finds a supervisor that is gone.
            let _ = directory.remove();
            creator.tell(&Progress::Failed { exit_code, kind: error.kind(), message });
            return i32::from(exit_code);
        }
    };
    let mut hosted = match HostedSession::new(&caller.places, made, record, creator, given) {
        Ok(hosted) => hosted,
        // Its creator sees that the pipe is closed, and the log says why.
        Err(error) => {
            let _ = writeln!(&log, "{error}");
            return i32::from(error.exit_code());
        }
    };
    let mut tell = |note: &str| {
        // A log that cannot be written is no reason to end.
        let _ = writeln!(&log, "{note}");
        notes.tell(&Progress::Note(note.to_owned()));
    };
    let control = Some(Controller::Session(&mut hosted));
    let finished = run_until(caller, request, control, &mut tell);
    if let Some(error) = &finished.error {
        let _ = writeln!(&log, "{error}");
    }
    // One that nobody claimed is counted nowhere.
    let is_used = !hosted.life.is_prepared();
    let failed = hosted.finish(&finished.report, finished.error.as_ref());
    if is_used {
        conclude(&finished);
    }
    if let Some(failed) = failed {
        failed.tell();
    }
    finished.report.exit_code
}

/// Nothing that happens to the creator or its terminal happens to this process from now on.
fn leave_terminal(directory: &SessionDirectory) -> Result<File> {
    proc::setsid()?;
    // The name is for people only.
    let _ = proc::set_name(c"sandbox-session");
    let log = directory.open_log()?;
    let failed =
        |errno: rustix::io::Errno| SessionError::io("open", Path::new("/dev/null"), errno.into());
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(failed)?;
    rustix::stdio::dup2_stdin(&null).map_err(failed)?;
    rustix::stdio::dup2_stdout(&null).map_err(failed)?;
    rustix::stdio::dup2_stderr(&log).map_err(failed)?;
    Ok(File::from(log))
}

fn wait_for(progress: OwnedFd, session: &str, tell: &mut dyn FnMut(&str)) -> Creation {
    for line in BufReader::new(File::from(progress)).lines() {
        let said = line.and_then(|line| Ok(serde_json::from_str(&line)?));
        match said {
            Ok(Progress::Note(note)) => tell(&note),
            Ok(Progress::Started) => return Creation::Created { session: session.to_owned() },
            Ok(Progress::Failed { exit_code, kind, message }) => {
                return Creation::Failed { exit_code, kind, message };
            }
            Err(error) => return died(session, &error),
        }
    }
    died(session, &io::Error::from(io::ErrorKind::UnexpectedEof))
}

fn died(session: &str, error: &io::Error) -> Creation {
    let message = format!(
        "the supervisor of the session died ({error}); `sandbox logs --supervisor {session}` may say why"
    );
    let exit_code = palisade_supervisor::error::OWN_FAILURE;
    Creation::Failed { exit_code, kind: ErrorKind::Initialisation, message }
}
