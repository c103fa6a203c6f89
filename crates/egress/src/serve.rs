//! The egress process: receives its listeners, confines itself, and serves until it is told to end or the
//! supervisor is gone.
//!
//! Must never serve unconfined, and never outlive the supervisor's end of the socket.

use crate::asks::Answer;
use crate::config::Config;
use crate::datagrams::{Counters, Refused};
use crate::engine::Engine;
use crate::engine::{dns, tunnel};
use crate::error::{EgressError, While as _};
use crate::events::{Events, Outbox};
use crate::line::{Line, line};
use crate::publish::Published;
use crate::wire::{EgressEvent, EgressRequest, MAX_PACKET_BYTES};
use crate::{publish, transparent};
use rustix::net::{SendFlags, sockopt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fmt::Display;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::timeout;

/// How long the last bytes of processes that have ended may take to be sent.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the supervisor has to read the remaining events.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum time from [`crate::wire::EgressRequest::End`] to exit.
pub const MAX_SHUTDOWN_TIME: Duration = DRAIN_TIMEOUT.saturating_add(REPORT_TIMEOUT);

/// Everything the process receives when it starts.
#[derive(Debug)]
pub struct EgressStartup {
    /// Carries whole packets in both directions, see [`crate::wire`].
    pub supervisor: OwnedFd,
    /// Listeners that were created inside.
    pub tcp: Vec<OwnedFd>,
    pub udp: Vec<OwnedFd>,
    /// Reads what the packet filter inside rejected.
    pub counters: Option<OwnedFd>,
    pub published: Vec<Published>,
    /// Provides sockets that were created inside, see [`crate::publish`].
    pub maker: Option<OwnedFd>,
    pub config: Config,
}

/// Serves, then ends the process. `confine` is called after all files are read and all sockets are set up.
pub fn serve<E: Display>(startup: EgressStartup, confine: impl FnOnce() -> Result<(), E>) -> ! {
    let EgressStartup { supervisor, .. } = &startup;
    let line = supervisor.try_clone();
    let code = match run(startup, confine) {
        Ok(()) => 0,
        Err(why) => {
            let event = EgressEvent::Unable { why }.encode();
            // If the supervisor is gone, there is nobody else to report to.
            let _gone = line.map(|line| rustix::net::send(line, &event, SendFlags::NOSIGNAL));
            1
        }
    };
    palisade_sys::proc::exit_now(code)
}

fn run<E: Display>(
    startup: EgressStartup,
    confine: impl FnOnce() -> Result<(), E>,
) -> Result<(), String> {
    let text = |error: EgressError| error.to_string();
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.doing("start a runtime").map_err(text)?;
    runtime.block_on(async {
        let tasks = LocalSet::new();
        let opened = tasks.run_until(async { Open::new(startup) }).await;
        let Open { engine, mut outbox, line, counters } = opened.map_err(text)?;
        confine().map_err(|error| error.to_string())?;
        engine.events.tell(EgressEvent::Ready);
        tasks.run_until(converse(&engine, &line, &mut outbox)).await;
        let _stuck = tasks.run_until(timeout(DRAIN_TIMEOUT, tunnel::all_is_sent())).await;
        if let Some(counters) = counters {
            counters.tell_new(&engine.events);
        }
        // Open connections end here and report it.
        drop(tasks);
        let _late = timeout(REPORT_TIMEOUT, send_all(&line, outbox.rest())).await;
        Ok(())
    })
}

/// The process while it serves.
struct Open {
    engine: Rc<Engine>,
    outbox: Outbox,
    line: Line,
    counters: Option<Rc<Counters>>,
}

impl Open {
    /// Starts a task for each listener, which runs only after the process is confined.
    fn new(startup: EgressStartup) -> Result<Self, EgressError> {
        let (events, outbox) = Events::new();
        let engine = Engine::new(startup.config, events)?;
        let refused = if startup.tcp.is_empty() { Refused::Addresses } else { Refused::Protocols };
        for fd in startup.tcp {
            let listener = tcp_listener(fd)?;
            never_pace(&listener);
            spawn_local(transparent::accept(Rc::clone(&engine), listener));
        }
        for fd in startup.udp {
            spawn_local(dns::serve_udp(Rc::clone(&engine), udp_socket(fd)?));
        }
        if let Some(maker) = startup.maker {
            let watched = maker.try_clone().doing("use the maker's socket")?;
            let (events, load) = (engine.events.clone(), Rc::clone(&engine.load));
            let inbound = publish::Inbound::new(events, load, maker, &engine.config)?;
            let inbound = Rc::new(inbound);
            spawn_local(Rc::clone(&inbound).watch(watched));
            for Published { listener, inner } in startup.published {
                let listener = tcp_listener(listener)?;
                spawn_local(publish::accept(Rc::clone(&inbound), listener, inner));
            }
        }
        let counters = startup.counters.map(|socket| Rc::new(Counters::new(socket, refused)));
        if let Some(counters) = &counters {
            spawn_local(Rc::clone(counters).watch(engine.events.clone()));
        }
        let line = line(startup.supervisor).doing("use the supervisor's socket")?;
        Ok(Self { engine, outbox, line, counters })
    }
}

fn tcp_listener(fd: OwnedFd) -> Result<TcpListener, EgressError> {
    let listener = std::net::TcpListener::from(fd);
    tunnel::settle(&listener).doing("use a listener")?;
    listener.set_nonblocking(true).doing("use a listener")?;
    TcpListener::from_std(listener).doing("watch a listener")
}

/// Traffic into the sandbox never leaves the machine, so it needs no congestion control. A host's default such
/// as BBR would pace every burst with a timer, which costs a third of the throughput. Connections inherit the
/// setting.
fn never_pace(listener: &TcpListener) {
    // Reno is always available (tcp(7), TCP_CONGESTION). A failure only costs speed.
    let _slower = sockopt::set_tcp_congestion(listener, "reno");
}

fn udp_socket(fd: OwnedFd) -> Result<UdpSocket, EgressError> {
    let socket = std::net::UdpSocket::from(fd);
    socket.set_nonblocking(true).doing("use the resolver's socket")?;
    UdpSocket::from_std(socket).doing("watch the resolver's socket")
}

/// A connection uses up to six descriptors, and the default limit of 1,024 exists for select(2).
pub(crate) fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // If this fails, connections wait in the kernel's queue when descriptors run out.
    let _as_it_was =
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Sends events and receives requests, until the last request or until the supervisor is gone.
async fn converse(engine: &Rc<Engine>, line: &Line, outbox: &mut Outbox) {
    let tell = async {
        loop {
            outbox.gather().await;
            if outbox.hand_on(async |event| send(line, event).await).await.is_err() {
                return;
            }
        }
    };
    let obey = async {
        loop {
            match receive(line).await {
                Ok(Some(EgressRequest::Answer { ask, allowed, holds, source })) => {
                    engine.answered(ask, Answer { allowed, source }, holds);
                }
                Ok(Some(EgressRequest::End) | None) | Err(_) => return,
            }
        }
    };
    tokio::select! {
        () = tell => {}
        () = obey => {}
    }
}

async fn send_all(line: &Line, rest: Vec<EgressEvent>) -> io::Result<()> {
    for event in rest {
        send(line, &event).await?;
    }
    Ok(())
}

async fn send(line: &Line, event: &EgressEvent) -> io::Result<()> {
    line.send(&event.encode()).await.map(drop)
}

/// The next request. `None` if it is invalid or the supervisor is gone; both end the process.
async fn receive(line: &Line) -> io::Result<Option<EgressRequest>> {
    let mut packet = vec![0; MAX_PACKET_BYTES];
    let length = line.recv(&mut packet).await?;
    Ok(packet.get(..length).and_then(EgressRequest::decode))
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
