//! An engine for tests, on loopback: every name stands for 127.0.0.1 and addresses are not checked, unless a
//! test wants it otherwise.

use crate::config::{Checks, Config, Limits, Lookup, OnUnknown};
use crate::engine::Engine;
use crate::events::{Events, Outbox};
use crate::wire::EgressEvent;
use palisade_hosts::{Host, HostEntry, Rules};
use palisade_record::network::NetworkAttempt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;
use tokio::time::timeout;

/// Nothing in a test takes so long unless it hangs.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Runs a test on one thread, as the process does.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async { timeout(TIMEOUT, test).await.unwrap() })
}

pub(crate) fn host(text: &str) -> Host {
    Host::parse(text).unwrap()
}

fn entries(texts: &[&str]) -> Vec<HostEntry> {
    texts.iter().map(|text| HostEntry::parse(text).unwrap()).collect()
}

/// These hosts are allowed, on every port that is asked for by name.
pub(crate) fn config(allowed: &[&str]) -> Config {
    Config {
        checks: Checks { addresses: false, ..Checks::default() },
        rules: Rules::new(entries(allowed), Vec::new(), Vec::new(), Vec::new()),
        on_unknown: OnUnknown::Deny,
        limits: Limits::default(),
        follow_redirects: false,
        upstream: None,
        credentials: Vec::new(),
        authority: None,
        lookup: Lookup::default(),
    }
}

impl Config {
    pub(crate) fn knows(mut self, name: &str, address: impl Into<IpAddr>) -> Self {
        self.lookup.known.push((name.to_owned(), address.into()));
        self
    }

    pub(crate) fn denies(mut self, allowed: &[&str], denied: &[&str]) -> Self {
        self.rules = Rules::new(entries(allowed), entries(denied), Vec::new(), Vec::new());
        self
    }
}

pub(crate) fn engine(config: Config) -> (Rc<Engine>, Outbox) {
    let (events, outbox) = Events::new();
    (Engine::new(config, events).unwrap(), outbox)
}

/// What was told of attempts so far.
pub(crate) fn attempts(outbox: &mut Outbox) -> Vec<NetworkAttempt> {
    let attempt = |event| match event {
        EgressEvent::Attempt(attempt) => Some(attempt),
        _ => None,
    };
    outbox.rest().into_iter().filter_map(attempt).collect()
}

pub(crate) async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Two ends of one connection.
pub(crate) async fn pair() -> (TcpStream, TcpStream) {
    let (listener, address) = listen().await;
    let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
    (near.unwrap(), far.unwrap().0)
}
