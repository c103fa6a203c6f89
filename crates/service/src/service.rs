//! What all requests share.

use crate::auth::Access;
use crate::counters::Counters;
use crate::file_places::FilePlaces;
use crate::idempotency::IdempotencyKeys;
use crate::limits::{MAX_STREAMS, MAX_WAITING_COMMANDS};
use crate::own_program::OwnProgram;
use crate::problem::Problem;
use crate::warm::WarmSandboxes;
use palisade_session::sessions::{self, SessionDirectory, SessionRecord};
use palisade_session::{AppDirs, SessionError};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

pub(crate) struct Service {
    pub(crate) places: AppDirs,
    pub(crate) program: OwnProgram,
    pub(crate) access: Access,
    pub(crate) keys: IdempotencyKeys,
    pub(crate) counters: Counters,
    /// Whether the server ends.
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) client_timeout: Duration,
    pub(crate) file_places: FilePlaces,
    /// None: no sandbox is prepared.
    pub(crate) warm: Option<WarmSandboxes>,
    streams: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

pub(crate) type Shared = Arc<Service>;

impl Service {
    pub(crate) fn new(
        (places, program, keys): (AppDirs, OwnProgram, IdempotencyKeys),
        access: Access,
        stopping: watch::Receiver<bool>,
        client_timeout: Duration,
        warm: usize,
    ) -> Shared {
        Arc::new(Self {
            places,
            program,
            access,
            keys,
            counters: Counters::default(),
            stopping,
            client_timeout,
            file_places: FilePlaces::default(),
            warm: WarmSandboxes::new(warm),
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            waiting: Arc::new(Semaphore::new(MAX_WAITING_COMMANDS)),
        })
    }

    /// The file in which sandboxes count what they did.
    pub(crate) fn metrics_file(&self) -> PathBuf {
        own_directory(&self.places).join("sandboxes.prom")
    }

    /// A place for an answer that goes on.
    pub(crate) fn stream_place(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let place = Arc::clone(&self.streams).try_acquire_owned();
        place.map_err(|_| Problem::busy(format!("{MAX_STREAMS} streams are open; close one")))
    }

    /// A place for a request that waits for the end of a command.
    pub(crate) fn waiting_place(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let place = Arc::clone(&self.waiting).try_acquire_owned();
        place.map_err(|_| {
            Problem::busy(format!(
                "{MAX_WAITING_COMMANDS} requests wait for their commands; start this one without `wait`"
            ))
        })
    }

    /// Something that reads files or waits, on a thread of its own.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Service) -> Result<T, SessionError> + Send + 'static,
    ) -> Result<T, Problem> {
        let service = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(&service)).await;
        Ok(done.map_err(|error| Problem::internal(error.to_string()))??)
    }

    /// The sandbox of this name or id.
    pub(crate) async fn find(
        self: &Arc<Self>,
        named: &str,
    ) -> Result<(Arc<SessionDirectory>, SessionRecord), Problem> {
        let named = named.to_owned();
        self.blocking(move |service| {
            let (directory, record) = sessions::find(&service.places, &named)?;
            Ok((Arc::new(directory), record))
        })
        .await
    }
}

/// What belongs to the service, beside the sessions.
pub(crate) fn own_directory(places: &AppDirs) -> PathBuf {
    places.state.join("service")
}
