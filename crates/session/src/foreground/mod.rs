//! A command of a session in the foreground of this process: its streams, its terminal, our signals, and how it ended.
//!
//! This process stands where the command would: what it reads and writes is the command's, and nothing is added. Its
//! terminal must be as it was when it is done, whatever happens.

mod detach_keys;
mod left_modes;
mod messages;
mod streams;
mod terminal;

pub use detach_keys::{DetachKeys, NotAKey};
pub use streams::run_with_streams;
pub use terminal::{WatchedCommand, attach, follow, run_in_terminal, window_size};

use crate::error::{Result, SessionError};
use crate::sessions::SessionDirectory;
use palisade_launch::{CommandId, ExitCause};
use palisade_supervisor::SupervisorError;
use palisade_supervisor::control::client::{Client, WireError};
use palisade_supervisor::control::interface::{
    ClaimSandbox, Event, Grace, Request, Response, SessionStatus, VERSION,
};
use palisade_sys::fault;
use palisade_sys::proc::sig::SIGKILL;
use palisade_sys::proc::{self, block_signals, is_ignored, read_signalfd, signalfd};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::process::{Pid, Signal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long a supervisor may take to answer at all.
const GREETING: Duration = Duration::from_secs(3);
/// How long one message of a session that ends is waited for before its lock is looked at.
const END_CHECK: Duration = Duration::from_millis(200);
/// A supervisor that kills everything takes milliseconds. One that was stopped is killed itself after this time.
const KILL_PATIENCE: Duration = Duration::from_secs(3);
/// Between two looks at the lock of a supervisor that has said its last.
const END_LOOK: Duration = Duration::from_millis(1);

/// How the foreground was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// The command ended.
    Exited(ExitCause),
    /// It did not start; the code is what a shell would end with.
    NotStarted { exit_code: i32, message: String },
    /// The command goes on without us.
    Detached,
    /// The same, because of this signal.
    DetachedBy(i32),
    /// The session ended, and with it the command.
    SessionEnded,
}

/// A connection to the supervisor of a session, which speaks our version.
pub fn connect(session: &SessionDirectory) -> Result<Client> {
    greeted(session.connect()?)
}

/// The same for the client that a sandbox was prepared for. The sandbox is a session from then on.
pub fn claim(socket: OwnedFd, claim: ClaimSandbox) -> Result<Client> {
    let mut client = greeted(socket)?;
    ask(&mut client, &Request::Claim(claim), &[])?;
    Ok(client)
}

/// A connection whose greeting was not answered yet, for who has a request to send at once. If the supervisor speaks another
/// version, that is the answer to this request, and nothing was carried out.
pub fn connect_and_greet(session: &SessionDirectory) -> Result<Client> {
    fault::point("connecting", "");
    let mut client = Client::new(session.connect()?);
    fault::point("greeting", "");
    client.greet().map_err(SupervisorError::from)?;
    Ok(client)
}

fn greeted(socket: OwnedFd) -> Result<Client> {
    let mut client = Client::new(socket);
    let hello = Request::Hello { version: VERSION };
    match ask(&mut client, &hello, &[])? {
        Response::Hello { .. } => Ok(client),
        other => Err(unexpected(&other)),
    }
}

/// A request that is carried out, or an error.
pub fn ask(
    client: &mut Client,
    request: &Request,
    descriptors: &[BorrowedFd<'_>],
) -> Result<Response> {
    fault::point("asking", "");
    let (response, _) = client.ask(request, descriptors).map_err(SupervisorError::from)?;
    fault::point("answered", "");
    match response {
        Response::Refused(refusal) => {
            Err(SessionError::SessionRefused { message: refusal.message })
        }
        response => Ok(response),
    }
}

/// Ends this process. For who has nothing left to write, to put back or to close: others wait for its end.
pub fn leave(exit_code: u8) -> ! {
    proc::exit_now(exit_code.into())
}

/// What a session does, if its supervisor says so in this time: one that was stopped must not keep everybody waiting.
pub fn status(session: &SessionDirectory, patience: Duration) -> Result<SessionStatus> {
    let socket = session.connect()?;
    let failed =
        |errno: rustix::io::Errno| SessionError::io("connect to", session.path(), errno.into());
    set_socket_timeout(&socket, Timeout::Recv, Some(patience)).map_err(failed)?;
    let mut client = Client::new(socket);
    ask(&mut client, &Request::Hello { version: VERSION }, &[])?;
    match ask(&mut client, &Request::Inspect, &[])? {
        Response::Inspected(status) => Ok(status),
        other => Err(unexpected(&other)),
    }
}

/// Ends a session and waits until nothing of it is left. False if its supervisor did not do that in this time.
pub fn end(
    session: &SessionDirectory,
    signal: i32,
    grace: Grace,
    patience: Duration,
) -> Result<bool> {
    let deadline = Instant::now() + patience;
    let socket = session.connect()?;
    let failed =
        |errno: rustix::io::Errno| SessionError::io("connect to", session.path(), errno.into());
    set_socket_timeout(&socket, Timeout::Recv, Some(GREETING)).map_err(failed)?;
    let mut client = Client::new(socket);
    // One that was stopped says nothing, however much time its commands have.
    if ask(&mut client, &Request::Hello { version: VERSION }, &[]).is_err() {
        return Ok(!session.is_alive());
    }
    set_socket_timeout(&client, Timeout::Recv, Some(END_CHECK)).map_err(failed)?;
    client.send(&Request::End { signal, grace }, &[]).map_err(SupervisorError::from)?;
    fault::point("asked for the end", "");
    // Its lock is free when the very last of it is done.
    while session.is_alive() {
        if Instant::now() > deadline {
            return Ok(false);
        }
        match client.next_event() {
            Ok(_) => {}
            Err(WireError::Closed) => std::thread::sleep(END_LOOK),
            // Nothing came in this time.
            Err(_) => {}
        }
    }
    Ok(true)
}

/// Ends a session without asking anybody in it. False if something of it is left.
pub fn kill(session: &SessionDirectory) -> Result<bool> {
    let at_once = Grace::Milliseconds(0);
    if !end(session, Signal::KILL.as_raw(), at_once, KILL_PATIENCE).unwrap_or(false) {
        kill_supervisor(session)?;
    }
    Ok(!session.is_alive())
}

/// Kills the supervisor of a session that does not do what it is asked. The kernel ends everything inside with it.
fn kill_supervisor(session: &SessionDirectory) -> Result<()> {
    let record = session.record()?;
    let pid = record.supervisor.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    // While the lock is held, the number is no other process's.
    if let Some(pid) = pid.filter(|_| session.is_alive()) {
        proc::kill(pid, SIGKILL)?;
    }
    let deadline = Instant::now() + END_CHECK * 10;
    while session.is_alive() && Instant::now() < deadline {
        std::thread::sleep(END_LOOK);
    }
    Ok(())
}

/// Waits until a command runs. An error says why it does not.
pub fn wait_for_start(client: &mut Client, command: CommandId) -> Result<()> {
    loop {
        match client.next_event().map_err(SupervisorError::from)? {
            Event::CommandStarted { command: started, .. } if started == command => return Ok(()),
            Event::CommandFailed { command: failed, message, .. } if failed == command => {
                return Err(SessionError::SessionRefused { message });
            }
            Event::Ended { .. } => return Err(SupervisorError::from(WireError::Closed).into()),
            _ => {}
        }
    }
}

pub(crate) fn unexpected(response: &Response) -> SessionError {
    let message = format!("its supervisor gave an answer to something else: {response:?}");
    SessionError::SessionRefused { message }
}

/// Our signals, blocked until they are read.
#[derive(Debug)]
struct ForegroundSignals(OwnedFd);

impl ForegroundSignals {
    const TAKEN: [Signal; 8] = [
        Signal::INT,
        Signal::TERM,
        Signal::HUP,
        Signal::QUIT,
        Signal::USR1,
        Signal::USR2,
        Signal::ALARM,
        Signal::WINCH,
    ];

    fn take() -> Result<Self> {
        // What we inherited as ignored (nohup) stays ignored.
        let taken = Self::TAKEN.map(Signal::as_raw).into_iter().filter(|it| !is_ignored(*it));
        let taken: Vec<i32> = taken.collect();
        block_signals(&taken)?;
        Ok(Self(signalfd(&taken)?))
    }

    fn next(&self) -> Result<Option<i32>> {
        Ok(read_signalfd(&self.0)?.map(|info| info.signo))
    }
}

impl AsFd for ForegroundSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
