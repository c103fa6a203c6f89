//! Connections: accepted, served and ended. Who is slow is given up, and when the server ends, requests may end first. Sandboxes stay.

use crate::auth::{self, Access, Hosts, Peer};
use crate::error::ServiceError;
use crate::face_host::{FaceHost, MountedFace};
use crate::idempotency::IdempotencyKeys;
use crate::limits::{Impatient, MAX_CONNECTIONS, MAX_HEADER_BYTES, SHUTDOWN_GRACE};
use crate::listen::{Accepted, ListenAddress, Listener, TlsFiles};
use crate::logins::Logins;
use crate::operations::Operations;
use crate::own_program::{OwnEnvironment, OwnProgram};
use crate::routes;
use crate::sandboxes;
use crate::service::{Service, own_directory};
use axum::Extension;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use palisade_session::AppDirs;
use std::fs::DirBuilder;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// After an error of accept(2), such as too many open files, which passes.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Threads for what reads files. They end when they are not needed.
const MAX_BLOCKING_THREADS: usize = 32;

/// What the service is started with.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    pub places: AppDirs,
    /// None: the socket in the runtime directory.
    pub listen: Option<ListenAddress>,
    /// The file with the token. None: one in the state directory.
    pub token_file: Option<PathBuf>,
    /// Further names by which a TCP socket is ours.
    pub hosts: Vec<String>,
    pub tls: Option<TlsFiles>,
    /// Where sandboxes are made if a request does not say it.
    pub directory: PathBuf,
    /// How long a client may take to send something, and to take something.
    pub client_timeout: Duration,
    /// Further faces at the same socket, each with its own way to know who asks.
    pub mounted: Vec<MountedFace>,
    /// How many sandboxes are prepared before a request asks for them.
    pub warm: usize,
}

/// Said when the first connection can come.
#[derive(Clone, Debug)]
pub struct Listening {
    pub address: ListenAddress,
    /// Where the token is, if one is needed.
    pub token_file: Option<PathBuf>,
    pub has_tls: bool,
    /// The page, with a code that logs a browser in once. None at a UNIX socket.
    pub page: Option<String>,
}

impl ServeOptions {
    fn address(&self) -> ListenAddress {
        let socket = || ListenAddress::Unix(self.places.runtime.join("service").join("http.sock"));
        self.listen.clone().unwrap_or_else(socket)
    }
}

/// What answers requests, behind the checks of who may ask.
#[derive(Debug)]
pub struct Face<E> {
    pub router: Router,
    /// What is done when the last connection is gone.
    pub end: E,
}

/// Serves until SIGTERM or SIGINT. The calling process must have no sandbox of its own.
pub fn serve(options: &ServeOptions, tell: &mut dyn FnMut(&Listening)) -> Result<(), ServiceError> {
    serve_with(options, tell, OwnEnvironment::Clean, |Operations(service)| {
        let requests = routes::requests(Arc::clone(&service));
        let requests = routes::guarded(requests, Arc::clone(&service));
        let host = FaceHost(service);
        let router = options.mounted.iter().fold(requests, |all, face| all.merge(face(&host)));
        Ok(Face { router, end: std::future::ready(()) })
    })
}

/// Serves something else than the requests of this crate at the same kinds of sockets, with the same checks.
pub fn serve_face<E: Future<Output = ()>>(
    options: &ServeOptions,
    tell: &mut dyn FnMut(&Listening),
    face: impl FnOnce(Operations) -> Result<Face<E>, ServiceError>,
) -> Result<(), ServiceError> {
    serve_with(options, tell, OwnEnvironment::Whole, |operations| {
        let service = Arc::clone(&operations.0);
        let Face { router, end } = face(operations)?;
        Ok(Face { router: routes::guarded(router, service), end })
    })
}

fn serve_with<E: Future<Output = ()>>(
    options: &ServeOptions,
    tell: &mut dyn FnMut(&Listening),
    environment: OwnEnvironment,
    face: impl FnOnce(Operations) -> Result<Face<E>, ServiceError>,
) -> Result<(), ServiceError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .build()
        .map_err(|source| ServiceError::Listen {
            address: options.address().to_string(),
            source,
        })?;
    let done = runtime.block_on(run(options, tell, environment, face));
    // Whatever still reads a file ends by itself.
    runtime.shutdown_background();
    done
}

async fn run<E: Future<Output = ()>>(
    options: &ServeOptions,
    tell: &mut dyn FnMut(&Listening),
    environment: OwnEnvironment,
    face: impl FnOnce(Operations) -> Result<Face<E>, ServiceError>,
) -> Result<(), ServiceError> {
    let address = options.address();
    let signals = |kind| {
        signal(kind)
            .map_err(|source| ServiceError::Listen { address: "signals".to_owned(), source })
    };
    let (mut terminated, mut interrupted) =
        (signals(SignalKind::terminate())?, signals(SignalKind::interrupt())?);
    let own = own_directory(&options.places);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&own)
        .map_err(|error| ServiceError::io("make", &own, error))?;
    let (acceptor, token_file) = match (&address, &options.tls) {
        (ListenAddress::Unix(_), Some(_)) => return Err(ServiceError::TlsOnSocket),
        (ListenAddress::Unix(_), None) => (None, None),
        (ListenAddress::Tcp(wanted), None) if !wanted.ip().is_loopback() => {
            return Err(ServiceError::NeedsTls { address: address.to_string() });
        }
        (ListenAddress::Tcp(_), tls) => {
            let file = options.token_file.clone().unwrap_or_else(|| own.join("token"));
            (tls.as_ref().map(TlsFiles::acceptor).transpose()?, Some(file))
        }
    };
    let token = token_file.as_deref().map(auth::token).transpose()?;
    let listener = Listener::open(&address)?;
    let address = listener.address()?;
    let has_tls = acceptor.is_some();
    let (access, page) = match (&address, &token) {
        (ListenAddress::Tcp(bound), Some(token)) => {
            let logins = Logins::new(bound.port(), has_tls);
            let code = logins
                .new_code()
                .map_err(|error| ServiceError::io("read", "/dev/urandom".as_ref(), error))?;
            let link = format!("{}#code={code}", page_address(*bound, &options.hosts, has_tls));
            let hosts = Hosts::of(*bound, &options.hosts, has_tls);
            (Access::by_token(token, hosts, logins), Some(link))
        }
        _ => (Access::SameUser { uid: rustix::process::geteuid().as_raw() }, None),
    };
    let program = OwnProgram::open(options.directory.clone(), environment)
        .map_err(|error| ServiceError::io("open", "/proc/self/exe".as_ref(), error))?;
    let keys = IdempotencyKeys::open(own.join("keys"))
        .map_err(|error| ServiceError::io("make", &own.join("keys"), error))?;
    let (stop, stopping) = watch::channel(false);
    let client_timeout = options.client_timeout;
    let parts = (options.places.clone(), program, keys);
    let service = Service::new(parts, access, stopping.clone(), client_timeout, options.warm);
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let Face { router, end } = face(Operations(Arc::clone(&service)))?;
    let server = Server { router, acceptor, stopping, client_timeout };
    let preparing = tokio::spawn(sandboxes::keep_prepared(Arc::clone(&service)));
    tell(&Listening { address, token_file, has_tls, page });
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &connections) => accepted,
            _ = terminated.recv() => break,
            _ = interrupted.recv() => break,
        };
        match accepted {
            Ok((stream, peer, permit)) => {
                service.counters.connected();
                tokio::spawn(server.clone().serve(stream, peer, permit));
            }
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
    preparing.abort();
    // Nobody connects any more; a new server can begin.
    drop(listener);
    stop.send_replace(true);
    let everything = u32::try_from(MAX_CONNECTIONS).unwrap_or(u32::MAX);
    // Who is not done by then is cut off.
    let _ = timeout(SHUTDOWN_GRACE, connections.acquire_many(everything)).await;
    end.await;
    Ok(())
}

/// Where a browser finds the page. An address that stands for all of them leads nowhere, so a name that was given is taken first.
fn page_address(bound: SocketAddr, hosts: &[String], has_tls: bool) -> String {
    let scheme = if has_tls { "https" } else { "http" };
    match hosts.first().filter(|_| !bound.ip().is_loopback()) {
        Some(name) => format!("{scheme}://{name}:{}/", bound.port()),
        None => format!("{scheme}://{bound}/"),
    }
}

/// Further connections wait in the queue of the socket.
async fn accept(
    listener: &Listener,
    connections: &Arc<Semaphore>,
) -> std::io::Result<(Accepted, Peer, OwnedSemaphorePermit)> {
    let permit = Arc::clone(connections).acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, permit))
}

/// Serves connections that another piece of code accepted.
#[derive(Clone)]
pub(crate) struct Server {
    router: Router,
    acceptor: Option<TlsAcceptor>,
    stopping: watch::Receiver<bool>,
    client_timeout: Duration,
}

impl Server {
    /// Without TLS.
    pub(crate) fn plain(
        router: Router,
        stopping: watch::Receiver<bool>,
        client_timeout: Duration,
    ) -> Self {
        Self { router, acceptor: None, stopping, client_timeout }
    }

    pub(crate) async fn serve(self, stream: Accepted, peer: Peer, permit: OwnedSemaphorePermit) {
        match (stream, self.acceptor.clone()) {
            (Accepted::Unix(stream), _) => self.talk(stream, peer).await,
            (Accepted::Tcp(stream), None) => self.talk(stream, peer).await,
            (Accepted::Tcp(stream), Some(acceptor)) => {
                if let Ok(Ok(stream)) = timeout(self.client_timeout, acceptor.accept(stream)).await
                {
                    self.talk(stream, peer).await;
                }
            }
        }
        drop(permit);
    }

    async fn talk<S>(mut self, stream: S, peer: Peer)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let router = self.router.clone().layer(Extension(peer));
        let stream = TokioIo::new(Impatient::new(stream, self.client_timeout));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.client_timeout)
            .max_buf_size(MAX_HEADER_BYTES)
            .serve_connection(stream, TowerToHyperService::new(router));
        tokio::pin!(connection);
        let stopped = async { drop(self.stopping.wait_for(|is_stopping| *is_stopping).await) };
        tokio::select! {
            // What a client does wrong is said to the client.
            _ = connection.as_mut() => return,
            () = stopped => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}
