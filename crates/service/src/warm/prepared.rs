//! A sandbox that is no session yet: made by our own program, and ours alone until we claim it. It ends with our end of its socket, which
//! the kernel closes if this process is killed.

use crate::control::ControlConnection;
use crate::own_program::{Answer, Invocation, OwnProgram};
use crate::problem::Problem;
use palisade_session::inputs::Inputs;
use palisade_session::supervise::interface::{ClaimSandbox, Grace, Request};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::Signal;
use serde::Deserialize;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

/// One that waited longer is given to nobody: what it sees of the host was decided when it was made.
pub(super) const MAX_AGE: Duration = Duration::from_secs(600);

/// How long a supervisor may take to carry out a claim when its sandbox is there.
const CLAIM_PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct PreparedSandbox {
    id: String,
    inputs: Arc<Inputs>,
    made: Instant,
    connection: ControlConnection,
}

/// It is a session now.
#[derive(Debug)]
pub(crate) struct ClaimedSandbox {
    pub(crate) id: String,
    /// For one that is temporary, the sandbox ends with it.
    pub(crate) connection: ControlConnection,
}

/// What our own program prints.
#[derive(Debug, Deserialize)]
struct Made {
    id: String,
    inputs: Inputs,
}

impl PreparedSandbox {
    /// By these words of `sandbox create`. It waits for its claim, and so it must hold no secrets.
    pub(crate) async fn make(program: &OwnProgram, create: Invocation) -> Result<Self, Problem> {
        let (ours, theirs) = pair()?;
        let made = Instant::now();
        let create = create.option("prepare", "later");
        let Made { id, inputs } = program.done_with(create, theirs.into()).await?.json()?;
        let connection = ControlConnection::over(ours, id.clone()).await?;
        Ok(Self { id, inputs: Arc::new(inputs), made, connection })
    }

    pub(super) fn made(&self) -> Instant {
        self.made
    }

    /// Whether one that is made now, in this project, would be like it. None: in the directory of the server.
    pub(crate) async fn is_current(&self, project: Option<&Path>) -> bool {
        if self.made.elapsed() >= MAX_AGE {
            return false;
        }
        let (inputs, project) = (Arc::clone(&self.inputs), project.map(Path::to_owned));
        let look = move || {
            project.is_none_or(|project| inputs.is_directory(&project)) && inputs.are_unchanged()
        };
        let looked = tokio::task::spawn_blocking(look).await;
        looked.unwrap_or(false)
    }

    /// An error ends it.
    pub(crate) async fn claim(&mut self, claim: &ClaimSandbox) -> Result<(), Problem> {
        let mut claiming = Claiming { connection: &mut self.connection, is_answered: false };
        claiming.connection.ask(&Request::Claim(claim.clone()), &[]).await?;
        claiming.is_answered = true;
        Ok(())
    }

    pub(crate) fn into_claimed(self) -> ClaimedSandbox {
        ClaimedSandbox { id: self.id, connection: self.connection }
    }
}

/// Makes a sandbox for a request that is there already, and claims it. The claim waits in its socket: so the request goes on as soon
/// as commands can be started, and not when our own program has ended and was read.
pub(crate) async fn make_claimed(
    program: &OwnProgram,
    create: Invocation,
    claim: &ClaimSandbox,
) -> Result<ControlConnection, Problem> {
    let (ours, theirs) = pair()?;
    let mut connection = ControlConnection::claiming(ours, claim)?;
    let (program, create) = (program.clone(), create.option("prepare", "now"));
    // Dropped, it kills the program.
    let mut making = JoinSet::new();
    making.spawn(async move { program.done_with(create, theirs.into()).await });
    let mut claimed = Box::pin(connection.claimed());
    let answer = tokio::select! {
        answer = &mut claimed => answer,
        made = making.join_next() => {
            made_well(made)?;
            let late = || Problem::timed_out("the sandbox was made, and does not answer");
            timeout(CLAIM_PATIENCE, claimed.as_mut()).await.unwrap_or_else(|_| Err(late()))
        }
    };
    drop(claimed);
    if let Err(problem) = answer {
        // Our own program knows why there is none.
        made_well(making.join_next().await)?;
        return Err(problem);
    }
    // What is left of it is to print what was made.
    making.detach_all();
    Ok(connection)
}

/// How our own program ended, if it was not heard before.
fn made_well(made: Option<Result<Result<Answer, Problem>, JoinError>>) -> Result<(), Problem> {
    match made {
        Some(made) => made.map_err(|error| Problem::internal(error.to_string()))?.map(drop),
        None => Ok(()),
    }
}

/// Our end of a socket, and that of a sandbox.
fn pair() -> Result<(OwnedFd, OwnedFd), Problem> {
    let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    pair.map_err(|errno| Problem::internal(format!("cannot make a pair of sockets: {errno}")))
}

/// A claim whose answer is waited for.
struct Claiming<'a> {
    connection: &'a mut ControlConnection,
    is_answered: bool,
}

impl Drop for Claiming<'_> {
    /// Nobody waits for the answer any more. The claim may still be carried out, and nobody would know of the session.
    fn drop(&mut self) {
        if !self.is_answered {
            let grace = Grace::Milliseconds(0);
            let end = Request::End { signal: Signal::TERM.as_raw(), grace };
            // What cannot be told ends with its connection.
            let _ = self.connection.send(&end, &[]);
        }
    }
}
