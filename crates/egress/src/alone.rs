//! The explicit proxy as a standalone program (NET-10), for containers on a network with no other route to the
//! outside.
//!
//! It runs in the host's network, so it must never connect to itself or to the host's loopback (N13). Rules can
//! be reloaded while it serves: an open connection continues under the rules that admitted it, and every later
//! request must be judged by the current rules, even from a known client.

use crate::config::Config;
use crate::engine::Engine;
use crate::engine::tunnel;
use crate::error::{EgressError, While as _};
use crate::events::{Events, SINGLY_A_SECOND_ALONE};
use crate::limits::Client;
use crate::serve::raise_descriptor_limit;
use crate::wire::EgressEvent;
use crate::{accept, explicit, turned_away};
use palisade_record::network::Via;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::net::{SocketAddr, TcpListener};
use std::ops::ControlFlow;
use std::rc::Rc;
use tokio::net::TcpStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{JoinSet, LocalSet};

/// The user who runs the proxy.
pub trait Operator {
    /// Receives an event. The proxy ends if it cannot be recorded.
    fn hear(&mut self, event: EgressEvent) -> ControlFlow<()>;
    /// The current rules, or `None` if they cannot be read; then the previous rules stay in force.
    fn reread(&mut self) -> Option<Config>;
    /// Reports whether the new rules are in force, or are invalid and the previous ones stay in force.
    fn renewed(&mut self, renewed: Result<(), EgressError>);
}

/// Serves until `SIGTERM` or `SIGINT`. `SIGHUP` makes it reload its rules.
pub fn serve(
    listener: TcpListener,
    config: Config,
    operator: &mut impl Operator,
) -> Result<(), EgressError> {
    raise_descriptor_limit();
    // Its memory contains secrets, which other processes of the same user must not read.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).doing("close the process to others")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.doing("start a runtime")?;
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, until_the_end(listener, config, operator))
}

async fn until_the_end(
    listener: TcpListener,
    config: Config,
    operator: &mut impl Operator,
) -> Result<(), EgressError> {
    let own = listener.local_addr().doing("use the listener")?;
    tunnel::settle(&listener).doing("use the listener")?;
    listener.set_nonblocking(true).doing("use the listener")?;
    let listener = tokio::net::TcpListener::from_std(listener).doing("watch the listener")?;
    let [mut terminate, mut interrupt, mut hangup] = [
        signal(SignalKind::terminate()).doing("wait for signals")?,
        signal(SignalKind::interrupt()).doing("wait for signals")?,
        signal(SignalKind::hangup()).doing("wait for signals")?,
    ];
    let (events, mut outbox) = Events::with_pace(SINGLY_A_SECOND_ALONE);
    let mut engine = Engine::alone(config, events, own)?;
    let mut clients = JoinSet::new();
    if operator.hear(EgressEvent::Ready).is_break() {
        return Ok(());
    }
    loop {
        tokio::select! {
            (client, from) = accept::next(&listener) => {
                clients.spawn_local(serve_client(Rc::clone(&engine), client, from));
            }
            Some(_ended) = clients.join_next() => {}
            event = outbox.next() => if operator.hear(event).is_break() {
                break;
            },
            _ = hangup.recv() => if let Some(config) = operator.reread() {
                let renewed = engine.renewed(config).map(|renewed| engine = renewed);
                operator.renewed(renewed);
            },
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    // Open connections report that they are closed.
    clients.shutdown().await;
    // If recording fails, nobody can be told; the remaining events are recorded as far as possible.
    let _ = outbox.rest().into_iter().try_for_each(|event| operator.hear(event));
    Ok(())
}

pub(crate) async fn serve_client(engine: Rc<Engine>, client: TcpStream, from: SocketAddr) {
    let from = from.ip();
    let whose = Some(Client::of(from));
    let Some(slot) = engine.load.slot_of((from.to_string(), 0), whose) else {
        return turned_away::answer(engine, client, Some(from)).await;
    };
    // The connection is reset: the client may be waiting for a host's first bytes in a tunnel, where a response
    // of ours would be misread.
    if slot.hold(explicit::serve(Rc::clone(&engine), client)).await.is_none() {
        let reason = turned_away::with_client(engine.load.pushed_out(), Some(from));
        turned_away::tell(&engine, Via::Http, (turned_away::UNNAMED.to_owned(), 0), reason);
    }
}

#[cfg(test)]
#[path = "alone_tests.rs"]
mod tests;
