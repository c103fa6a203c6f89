//! What a face that is mounted into the server does with sandboxes: the operations that the handlers of requests are made of.

use crate::caller_span::CallerSpan;
use crate::commands::{self, Known};
use crate::control::ControlConnection;
use crate::files::{self, GivenUp};
use crate::limits::drain_later;
use crate::problem::Problem;
use crate::sandboxes::{self, EndQuery, NewSandbox};
use crate::service::{Shared, own_directory};
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use palisade_session::files::Client;
use palisade_session::sessions::{SessionDirectory, SessionRecord};
use palisade_session::supervise::interface::{CommandDetails, CommandId, StartCommand};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;

/// Makes the routes of a face. It is called when the server has begun.
pub type MountedFace = fn(&FaceHost) -> Router;

/// The server, as a face sees it. Cheap to clone.
#[derive(Clone)]
pub struct FaceHost(pub(crate) Shared);

impl std::fmt::Debug for FaceHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaceHost").finish_non_exhaustive()
    }
}

impl FaceHost {
    /// Puts routes behind the checks of the host and the site that a request names, and after them `check`: whether it proves who
    /// asks. What either refuses is said by `refuse`.
    pub fn guard<C>(
        &self,
        router: Router,
        check: C,
        refuse: fn(&Request, &Problem) -> Response,
    ) -> Router
    where
        C: Fn(&FaceHost, &Request) -> Result<(), Problem> + Clone + Send + Sync + 'static,
    {
        let host = self.clone();
        router.layer(middleware::from_fn(move |request: Request, next: Next| {
            let (host, check) = (host.clone(), check.clone());
            async move {
                let checked = host.check_place(&request).and_then(|()| check(&host, &request));
                let mut response = match checked {
                    Ok(()) => next.run(request).await,
                    Err(problem) => {
                        let refused = refuse(&request, &problem);
                        drain_later(request.into_body().into_data_stream());
                        refused
                    }
                };
                // No browser must take an answer for a page.
                let headers = response.headers_mut();
                let nosniff = HeaderValue::from_static("nosniff");
                headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
                host.0.counters.answered(response.status());
                response
            }
        }))
    }

    fn check_place(&self, request: &Request) -> Result<(), Problem> {
        match request.extensions().get().copied() {
            Some(peer) => self.0.access.check_place(peer, request.uri(), request.headers()),
            None => Err(Problem::internal("nobody knows where the request comes from")),
        }
    }

    /// Whether this is the server's token.
    pub fn is_token(&self, given: &str) -> bool {
        self.0.access.is_token(given).unwrap_or(false)
    }

    /// A secret that belongs to the token and this purpose. None: the server has no token.
    pub fn secret_for(&self, purpose: &str) -> Option<String> {
        self.0.access.secret_for(purpose)
    }

    /// Where the service keeps what is its own.
    pub fn own_directory(&self) -> PathBuf {
        own_directory(&self.0.places)
    }

    /// How long a client may take.
    pub fn client_timeout(&self) -> Duration {
        self.0.client_timeout
    }

    /// Returns when the server is asked to end.
    pub async fn stopping(&self) {
        let mut stopping = self.0.stopping.clone();
        // If nobody can say it any more, the server is gone.
        drop(stopping.wait_for(|is_stopping| *is_stopping).await);
    }

    /// A place for an answer that goes on.
    pub fn stream_place(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.0.stream_place()
    }

    /// The sandbox of this name or id.
    pub async fn find(
        &self,
        named: &str,
    ) -> Result<(Arc<SessionDirectory>, SessionRecord), Problem> {
        self.0.find(named).await
    }

    /// Makes a sandbox, and says its id.
    pub async fn create(&self, wanted: &NewSandbox, caller: CallerSpan) -> Result<String, Problem> {
        sandboxes::create(&self.0, wanted, caller).await
    }

    /// Kills what runs in a sandbox, and removes it with everything that it changed in a transaction.
    pub async fn remove(&self, named: &str) -> Result<(), Problem> {
        sandboxes::end(&self.0, named, &EndQuery { kill: true, discard: true }).await
    }

    /// How long a sandbox may stay from now on.
    pub async fn extend(&self, named: &str, time: Duration) -> Result<(), Problem> {
        let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
        sandboxes::extend(&self.0, named, milliseconds).await
    }

    /// Starts a command whose streams the session holds, and waits until it runs.
    pub async fn start_held(
        &self,
        named: &str,
        argv: &[String],
        wanted: StartCommand,
    ) -> Result<(ControlConnection, CommandId), Problem> {
        commands::start_held(&self.0, named, argv, wanted).await
    }

    /// What runs in a sandbox.
    pub async fn running(&self, named: &str) -> Result<Vec<CommandDetails>, Problem> {
        Ok(Known::find(&self.0, named).await?.running)
    }

    /// Does `work` with the files of a sandbox, as its commands could. Dropped before it is done, it is given up.
    pub async fn with_files<T: Send + 'static>(
        &self,
        named: &str,
        work: impl FnOnce(&mut Client) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        files::with_files(&self.0, named, work).await
    }

    /// The same, begun: it goes on until it is done or what comes with it is dropped.
    pub async fn start_with_files<T: Send + 'static>(
        &self,
        named: &str,
        work: impl FnOnce(&mut Client) -> Result<T, Problem> + Send + 'static,
    ) -> Result<(JoinHandle<Result<T, Problem>>, GivenUp), Problem> {
        files::start(&self.0, named, work).await
    }

    /// The content of a file, as an answer, or the range of it that a `Range` header asks for.
    pub async fn read_content(
        &self,
        named: &str,
        path: PathBuf,
        range: Option<String>,
    ) -> Result<Response, Problem> {
        files::read_content(&self.0, named, path, range).await
    }
}
