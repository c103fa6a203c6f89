//! What all requests share.

use crate::error::ApiError;
use crate::homes::Homes;
use crate::running::RunningCommands;
use crate::store::{KeptSandbox, Store};
use crate::watched::Watchers;
use palisade_service::{FaceHost, Problem};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Face {
    pub(crate) host: FaceHost,
    pub(crate) store: Store,
    pub(crate) homes: Homes,
    pub(crate) running: RunningCommands,
    pub(crate) watchers: Watchers,
}

pub(crate) type Shared = Arc<Face>;

impl Face {
    pub(crate) fn new(host: FaceHost) -> Shared {
        let store = Store::new(host.own_directory().join("e2b"));
        Arc::new(Self {
            host,
            store,
            homes: Homes::of_user(),
            running: RunningCommands::default(),
            watchers: Watchers::default(),
        })
    }

    /// A sandbox that was made here and runs. None: it never was, or its time is over.
    pub(crate) async fn living(&self, id: &str) -> Result<Option<KeptSandbox>, Problem> {
        let Some(kept) = self.store.load(id)? else { return Ok(None) };
        Ok(self.is_alive(id).await?.then_some(kept))
    }

    /// The sandbox that a request proved to be about, or what E2B says of one that is gone.
    pub(crate) async fn living_or_gone(
        &self,
        id: Result<String, Problem>,
    ) -> Result<KeptSandbox, ApiError> {
        let id = id?;
        self.living(&id).await?.ok_or_else(|| ApiError::gone(&id))
    }

    pub(crate) async fn is_alive(&self, id: &str) -> Result<bool, Problem> {
        match self.host.find(id).await {
            Ok((directory, record)) => Ok(!record.is_over() && directory.is_alive()),
            Err(problem) if problem.is_not_found() => Ok(false),
            Err(problem) => Err(problem),
        }
    }

    /// Ends a sandbox and removes everything of it. What is gone already is no problem.
    pub(crate) async fn remove(&self, id: &str) -> Result<(), Problem> {
        match self.host.remove(id).await {
            Ok(()) => {}
            Err(problem) if problem.is_not_found() => {}
            Err(problem) => return Err(problem),
        }
        self.running.forget(id);
        if let Some(kept) = self.store.load(id)? {
            self.homes.remove(&kept.home).await?;
        }
        // Last, so that a sweep finds what a killed server has left.
        self.store.remove(id)
    }
}
