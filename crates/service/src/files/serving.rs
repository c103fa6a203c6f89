//! Work with the files of a sandbox on a thread of its own, which is let go when the client is gone: a question to a person may
//! keep it waiting for as long as nobody answers.

use crate::problem::Problem;
use crate::service::Shared;
use palisade_session::files::{Client, SessionFiles};
use rustix::net::{Shutdown, shutdown};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Does `work` in the sandbox of this name. Dropped before it is done, it is given up.
pub(crate) async fn with_files<T: Send + 'static>(
    service: &Shared,
    named: &str,
    work: impl FnOnce(&mut Client) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let (work, _given_up) = start(service, named, work).await?;
    work.await.map_err(|error| Problem::internal(error.to_string()))?
}

/// The same, begun: it goes on until it is done or [`GivenUp`] is dropped.
pub(crate) async fn start<T: Send + 'static>(
    service: &Shared,
    named: &str,
    work: impl FnOnce(&mut Client) -> Result<T, Problem> + Send + 'static,
) -> Result<(JoinHandle<Result<T, Problem>>, GivenUp), Problem> {
    let (directory, _) = service.find(named).await?;
    let place = service.file_places.take(directory.id())?;
    let line = Arc::new(Line::default());
    let ours = Arc::clone(&line);
    let (to, done) = oneshot::channel();
    let thread = move || {
        let done = SessionFiles::open(&directory).map_err(Problem::from).and_then(|mut files| {
            ours.begin(&files)?;
            let done = work(&mut files.client);
            // If it was given up, the process inside may wait for an answer, and is hung up.
            if ours.end().is_some() {
                files.close();
            }
            done
        });
        drop(place);
        // Nobody may wait for it any more.
        let _ = to.send(done);
    };
    // None of the runtime's: it may wait for as long as nobody answers, and those are for what is done at once.
    thread::Builder::new()
        .name("files".to_owned())
        .spawn(thread)
        .map_err(|error| Problem::busy(format!("no thread can be started: {error}")))?;
    let work = tokio::spawn(async move {
        done.await.unwrap_or_else(|_| Err(Problem::internal("the work with files ended early")))
    });
    Ok((work, GivenUp(line)))
}

/// What a thread waits at, and whether somebody still waits for the thread.
#[derive(Debug, Default)]
struct Line(Mutex<LineState>);

#[derive(Debug, Default)]
enum LineState {
    #[default]
    NotYet,
    Open(OwnedFd),
    GivenUp,
}

impl Line {
    fn begin(&self, files: &SessionFiles) -> Result<(), Problem> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, LineState::GivenUp) {
            return Err(Problem::conflict("the client is gone"));
        }
        let socket = files.client.socket().try_clone_to_owned();
        *state = LineState::Open(socket.map_err(|error| Problem::internal(error.to_string()))?);
        Ok(())
    }

    /// Ends it. The socket, if nobody has ended it before: with this copy open, the process inside would not notice that its client is done.
    fn end(&self) -> Option<OwnedFd> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, LineState::GivenUp) {
            LineState::Open(socket) => Some(socket),
            LineState::NotYet | LineState::GivenUp => None,
        }
    }
}

/// Dropped, it ends the wait of the thread.
#[derive(Debug)]
pub struct GivenUp(Arc<Line>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        if let Some(socket) = self.0.end() {
            // If the other end is gone already, nobody waits.
            let _ = shutdown(socket.as_fd(), Shutdown::Both);
        }
    }
}
