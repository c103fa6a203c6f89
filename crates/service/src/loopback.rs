//! Pages for the person at this machine, at a port of loopback that the kernel chooses: forms without a script, for a question that must not
//! pass through the client that asked for it.
//!
//! Must never answer another user of this machine, a process in a sandbox, a name that leads here from elsewhere (DNS rebinding), or a form
//! of another site. Which page somebody may see is up to the router: its paths have to be secrets.

use crate::auth::{self, Hosts, Peer};
use crate::error::ServiceError;
use crate::listen::{Accepted, ListenAddress, Listener};
use crate::loopback_peer::{self, PeerOwner};
use crate::page;
use crate::server::{ACCEPT_PAUSE, Server};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::task::AbortHandle;
use tokio::time::sleep;

/// A browser opens at most six to one server. All of them are the same user's, outside of sandboxes.
const MAX_LOOPBACK_CONNECTIONS: usize = 16;
/// Connections at once of which it is not known yet who made them. Anybody at this machine can make one.
const MAX_LOOKUPS: usize = 4;
/// For the head of a request, and for how long a connection may be idle: who says nothing keeps nobody out for long.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Styles of our own, forms that lead here, nothing else, and in no frame.
const CONTENT_SECURITY_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
);

/// A server of pages. Dropped, it ends.
#[derive(Debug)]
pub struct LoopbackServer {
    address: SocketAddrV4,
    work: AbortHandle,
    /// Its connections end with it.
    _stop: watch::Sender<bool>,
}

impl Drop for LoopbackServer {
    fn drop(&mut self) {
        self.work.abort();
    }
}

#[derive(Debug)]
struct Admission {
    uid: u32,
    hosts: Hosts,
}

impl LoopbackServer {
    /// Serves these pages, within a runtime. An error, too, if it could not be said who connects.
    pub fn start(pages: Router) -> Result<Self, ServiceError> {
        loopback_peer::check()
            .map_err(|error| ServiceError::io("read", loopback_peer::TABLE.as_ref(), error))?;
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = Listener::open(&ListenAddress::Tcp(any))?;
        let ListenAddress::Tcp(SocketAddr::V4(address)) = listener.address()? else {
            return Err(ServiceError::Address { text: any.to_string() });
        };
        let uid = rustix::process::geteuid().as_raw();
        let admission = Admission { uid, hosts: Hosts::only(address.into()) };
        let router = pages.layer(middleware::from_fn_with_state(Arc::new(admission), admit));
        let (stop, stopping) = watch::channel(false);
        let server = Server::plain(router, stopping, IDLE_TIMEOUT);
        let work = tokio::spawn(accept(listener, server, address, uid)).abort_handle();
        Ok(Self { address, work, _stop: stop })
    }

    /// Where its paths begin, without a slash at the end.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }
}

async fn accept(listener: Listener, server: Server, ours: SocketAddrV4, uid: u32) {
    let own = Peer::LocalUser { uid, is_outside: true };
    let lookups = Arc::new(Semaphore::new(MAX_LOOKUPS));
    let connections = Arc::new(Semaphore::new(MAX_LOOPBACK_CONNECTIONS));
    loop {
        let Ok(lookup) = Arc::clone(&lookups).acquire_owned().await else { return };
        let (stream, theirs) = match listener.accept().await {
            Ok((Accepted::Tcp(stream), _)) => match stream.peer_addr() {
                Ok(theirs) => (stream, theirs),
                Err(_) => continue,
            },
            Ok(_) => continue,
            Err(_) => {
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (server, connections) = (server.clone(), Arc::clone(&connections));
        tokio::spawn(async move {
            let peer = peer(&stream, theirs, ours).await;
            // Somebody else gets no answer, and none of the connections of the person.
            if peer != own {
                return;
            }
            let Ok(permit) = connections.acquire_owned().await else { return };
            drop(lookup);
            server.serve(Accepted::Tcp(stream), peer, permit).await;
        });
    }
}

/// Who connected. An unknown peer is treated as a network peer.
async fn peer(stream: &TcpStream, theirs: SocketAddr, ours: SocketAddrV4) -> Peer {
    let SocketAddr::V4(theirs) = theirs else { return Peer::Network };
    let looked = tokio::task::spawn_blocking(move || loopback_peer::owner(theirs, ours)).await;
    match looked {
        Ok(Ok(Some(PeerOwner { uid, is_outside })))
            if loopback_peer::is_connected(stream, theirs) =>
        {
            Peer::LocalUser { uid, is_outside }
        }
        _ => Peer::Network,
    }
}

/// Before anything else.
async fn admit(State(admission): State<Arc<Admission>>, request: Request, next: Next) -> Response {
    let peer = request.extensions().get().copied();
    let refused = admission.refuses(peer, request.method(), request.uri(), request.headers());
    let mut response = match refused {
        None => next.run(request).await,
        Some(why) => (StatusCode::FORBIDDEN, format!("{why}\n")).into_response(),
    };
    page::protect(response.headers_mut());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY);
    // With `no-referrer` a browser would say `Origin: null` of our own form (Fetch, "append a request Origin header").
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

impl Admission {
    /// Why a request is refused.
    fn refuses(
        &self,
        peer: Option<Peer>,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Option<&'static str> {
        if peer != Some(Peer::LocalUser { uid: self.uid, is_outside: true }) {
            return Some(
                "this page answers only the user whose server this is, on this machine and outside of sandboxes",
            );
        }
        if !self.hosts.are_named_by(uri, headers) {
            return Some("the Host header does not name this server");
        }
        let is_read = *method == Method::GET || *method == Method::HEAD;
        if is_read {
            return None;
        }
        let is_own = self.hosts.are_origin_of(headers) && headers.contains_key(header::ORIGIN);
        (!is_own || auth::check_site(headers).is_err())
            .then_some("the form is not one of this page")
    }
}

#[cfg(test)]
#[path = "loopback_tests.rs"]
mod tests;
