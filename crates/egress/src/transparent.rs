//! Connections of programs that do not use the proxy. Packet rules redirect every address here, and the
//! original destination is read from the socket.
//!
//! Must never accept a host name from the client: the name is the one that the synthetic address was assigned
//! to.

use crate::engine::{Engine, Refused, Wanted, dns, tunnel};
use crate::peek::{First, ProtocolKind};
use crate::ports::is_usual_for_http;
use crate::{accept, asks, explicit, http_server, passage, turned_away};
use palisade_hosts::inside::is_ours;
use palisade_hosts::{Host, INSIDE_V4, INSIDE_V6, PROXY_PORT};
use palisade_record::network::Via;
use rustix::net::sockopt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// How long to wait for the request of a refused client, so that it can be answered in HTTP.
const REQUEST_WITHIN: Duration = Duration::from_millis(300);
/// On other ports a request is answered only if it has already arrived.
const AT_ONCE: Duration = Duration::from_millis(20);
const DNS_PORT: u16 = 53;

/// Accepts connections until the process ends.
pub(crate) async fn accept(engine: Rc<Engine>, listener: TcpListener) {
    loop {
        let (client, from) = accept::next(&listener).await;
        tokio::task::spawn_local(asks::on_behalf_of(from, serve(Rc::clone(&engine), client)));
    }
}

async fn serve(engine: Rc<Engine>, client: TcpStream) {
    let Ok(meant) = meant(&client) else {
        return tunnel::reset(client);
    };
    serve_meant(engine, client, meant).await;
}

async fn serve_meant(engine: Rc<Engine>, client: TcpStream, meant: SocketAddr) {
    let whom = Meant::of(&engine, meant);
    let destination = match &whom {
        Meant::Host(host, port) => (host.to_string(), *port),
        Meant::Proxy | Meant::Resolver | Meant::Nobody => (meant.ip().to_string(), meant.port()),
    };
    let Some(slot) = engine.load.slot(destination.clone()) else {
        if whom == Meant::Proxy {
            return turned_away::answer(engine, client, None).await;
        }
        turned_away::tell(&engine, Via::Transparent, destination, engine.load.full());
        return tunnel::reset(client);
    };
    let via = if whom == Meant::Proxy { Via::Http } else { Via::Transparent };
    let serving = async {
        match whom {
            Meant::Proxy => explicit::serve(Rc::clone(&engine), client).await,
            Meant::Resolver => dns::serve_tcp(Rc::clone(&engine), client).await,
            Meant::Nobody => {
                let reason = "no name stands for this address".to_owned();
                turned_away::tell(&engine, Via::Transparent, destination.clone(), reason);
                tunnel::reset(client);
            }
            Meant::Host(host, port) => go(Rc::clone(&engine), client, host, port).await,
        }
    };
    if slot.hold(serving).await.is_none() {
        turned_away::tell(&engine, via, destination, engine.load.pushed_out());
    }
}

/// The intended destination of a connection.
#[derive(Debug, PartialEq, Eq)]
enum Meant {
    Proxy,
    Resolver,
    Host(Host, u16),
    /// An address in our range that is not assigned to a name.
    Nobody,
}

impl Meant {
    fn of(engine: &Engine, meant: SocketAddr) -> Self {
        let (address, port) = (meant.ip().to_canonical(), meant.port());
        if port == DNS_PORT {
            return Self::Resolver;
        }
        let inside = address == IpAddr::V4(INSIDE_V4) || address == IpAddr::V6(INSIDE_V6);
        if inside && port == PROXY_PORT {
            return Self::Proxy;
        }
        if !is_ours(address) {
            return Self::Host(Host::from(address), port);
        }
        match engine.dns.name_of(address) {
            Some(name) => Self::Host(Host::Name(name), port),
            None => Self::Nobody,
        }
    }
}

/// The destination before the packet filter redirected the connection. Without a packet filter, it is the local
/// address of the accepted socket, because every address is local.
fn meant(client: &TcpStream) -> io::Result<SocketAddr> {
    let here = client.local_addr()?;
    let before = match here {
        SocketAddr::V4(_) => sockopt::ip_original_dst(client).map(SocketAddr::V4),
        SocketAddr::V6(_) => sockopt::ipv6_original_dst(client).map(SocketAddr::V6),
    };
    Ok(before.unwrap_or(here))
}

/// Connects the client to its destination, if it is allowed.
async fn go(engine: Rc<Engine>, client: TcpStream, host: Host, port: u16) {
    let mut first = First::default();
    let wanted = Wanted { via: Via::Transparent, host, port };
    let admitted = match engine.admit_while_there(wanted, first.end(&client)).await {
        Some(Ok(admitted)) => admitted,
        Some(Err(refused)) => return refuse(client, first, &refused).await,
        None => return,
    };
    match engine.dial(&admitted).await {
        Ok(upstream) => passage::carry(engine, client, upstream, first.bytes, admitted).await,
        Err(refused) => refuse(client, first, &refused).await,
    }
}

/// Refuses a connection: with a response if it is a request, otherwise with a reset, and never with silence.
async fn refuse(client: TcpStream, mut first: First, refused: &Refused) {
    let patience = if is_usual_for_http(refused.port) { REQUEST_WITHIN } else { AT_ONCE };
    let kind = timeout(patience, first.decide(&client, None)).await;
    if let Ok(Ok(ProtocolKind::Http)) = kind {
        http_server::refuse(client, &first.bytes, refused).await;
    } else {
        tunnel::reset(client);
    }
}

#[cfg(test)]
#[path = "transparent_tests.rs"]
mod tests;
