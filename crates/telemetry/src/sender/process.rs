//! The sender from its start to its end: waits for spans, gathers them for a moment, sends them, and ends when the run is gone or nothing
//! comes.

use super::batch::{Batch, encode_metrics, encode_spans};
use super::confinement::{self, ConfineError};
use super::http::{Destination, PostError};
use crate::encode::Resource;
use crate::message::{NotSent, ToSender};
use crate::settings::{Settings, Target};
use palisade_egress::certificates;
use palisade_sys::{SysError, creds, proc};
use palisade_wire::{WireMessage as _, decode, encode, try_send};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::{Shutdown, shutdown};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::time::Duration;
use tokio::net::UnixDatagram;
use tokio::runtime::Runtime;
use tokio::time::{Instant, timeout, timeout_at};

/// After the first span: others usually follow it.
const GATHER: Duration = Duration::from_millis(500);
/// A sender that has nothing to do for this long ends. The next span starts another one.
const IDLE: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub(super) enum SenderError {
    #[error("there is nowhere to send to")]
    NoTarget,
    #[error(transparent)]
    System(#[from] SysError),
    #[error(transparent)]
    Confine(#[from] ConfineError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Runs as the sender. Standard input is the socket.
pub(super) fn serve() -> Result<(), SenderError> {
    // Neither a terminal nor a job control of the caller concerns it. It is a group's leader already if it was started as one.
    let _ = proc::setsid();
    let _ = proc::set_name(c"sandbox-otlp");
    // It holds the headers, which other processes of the same user must not read.
    creds::set_dumpable(false)?;
    proc::close_range(3, i32::MAX)?;
    let settings = Settings::of(&|name| std::env::var(name).ok());
    let settings = settings.ok().flatten().ok_or(SenderError::NoTarget)?;
    let socket = fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).map_err(io::Error::from)?;
    rustix::fs::fcntl_setfl(&socket, rustix::fs::OFlags::NONBLOCK).map_err(io::Error::from)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let resource = Resource(settings.resource.clone());
    let tls = [&settings.traces, &settings.metrics]
        .into_iter()
        .flatten()
        .any(|target| target.is_tls)
        .then(|| certificates::client(certificates::native_roots()).ok())
        .flatten();
    let resolve = |target: Option<Target>| {
        target.map(|target| {
            let tls = tls.clone().filter(|_| target.is_tls);
            Destination::resolve(target, tls)
        })
    };
    let (traces, metrics) = (resolve(settings.traces), resolve(settings.metrics));
    Sender { traces, metrics, resource }.run(&runtime, socket)
}

struct Sender {
    traces: Option<Result<Destination, PostError>>,
    metrics: Option<Result<Destination, PostError>>,
    resource: Resource,
}

/// What was waited for.
enum Next {
    Message(Box<ToSender>),
    /// The run has said everything.
    Closed,
    Nothing,
}

impl Sender {
    /// Gives up what it does not need, and sends until there is nothing more to send.
    fn run(&self, runtime: &Runtime, socket: OwnedFd) -> Result<(), SenderError> {
        runtime.block_on(async {
            // It keeps the bounds of messages, as this type does.
            let socket = UnixDatagram::from_std(net::UnixDatagram::from(socket))?;
            confinement::confine()?;
            self.serve(&socket).await;
            Ok(())
        })
    }

    async fn serve(&self, socket: &UnixDatagram) {
        loop {
            let mut batch = Batch::default();
            let mut is_over = false;
            match timeout(IDLE, receive(socket)).await.unwrap_or(Next::Nothing) {
                Next::Message(message) => batch.add(*message),
                Next::Closed => return,
                Next::Nothing => {
                    // From here on the run cannot write to it, and starts another one. What it wrote just now is still there.
                    let _ = shutdown(socket, Shutdown::Read);
                    is_over = true;
                }
            }
            let until = Instant::now() + GATHER;
            while !batch.is_full() {
                match timeout_at(until, receive(socket)).await.unwrap_or(Next::Nothing) {
                    Next::Message(message) => batch.add(*message),
                    Next::Closed => {
                        is_over = true;
                        break;
                    }
                    Next::Nothing => break,
                }
            }
            let is_full = batch.is_full();
            self.send(&batch, socket).await;
            // A full one may have left something in the socket.
            if is_over && !is_full {
                return;
            }
        }
    }

    async fn send(&self, batch: &Batch, socket: &UnixDatagram) {
        let failed = |count: usize, why: &PostError| {
            let not_sent = NotSent { count: count as u64, why: why.to_string() };
            if let Ok(packet) = encode(&not_sent) {
                // The run may be over, or not listen.
                let _ = try_send(socket, &packet);
            }
        };
        if !batch.spans.is_empty() {
            let count = batch.spans.len();
            match &self.traces {
                Some(Ok(to)) => {
                    let body = encode_spans(to.protocol(), &self.resource, &batch.spans);
                    if let Err(error) = to.post(&body).await {
                        failed(count, &error);
                    }
                }
                Some(Err(error)) => failed(count, error),
                None => {}
            }
        }
        for metrics in &batch.metrics {
            match &self.metrics {
                Some(Ok(to)) => {
                    let body = encode_metrics(to.protocol(), &self.resource, metrics);
                    if let Err(error) = to.post(&body).await {
                        failed(1, &error);
                    }
                }
                Some(Err(error)) => failed(1, error),
                None => {}
            }
        }
    }
}

async fn receive(socket: &UnixDatagram) -> Next {
    let mut buffer = vec![0; ToSender::MAX_BYTES];
    loop {
        match socket.recv(&mut buffer).await {
            Ok(0) | Err(_) => return Next::Closed,
            Ok(length) => {
                // What cannot be read is left out. It is from our own program.
                if let Ok(message) = decode(&buffer[..length]) {
                    return Next::Message(Box::new(message));
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
