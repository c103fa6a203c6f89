//! Starts the broker process and holds the launcher's ends of its sockets: one for the command, one for the
//! supervisor. What the broker does is in `palisade-broker`.

use crate::error::{During, Result};
use crate::helper::{Helper, HelperKind, Helpers, confine};
use palisade_bpf::broker_spec;
use palisade_broker::{
    BrokerMessage, BrokerStartup, CommandIdentity, Duties, TreeLocks, run_broker,
};
use palisade_gate::AccessReply;
use palisade_plan::model::{Confinement, IdMapping, Landlock, Plan, Seccomp};
use palisade_sys::fdpass::{reveal_senders, socketpair};
use palisade_sys::{At as _, Errno};
use palisade_wire::{WireError, WireMessage as _};
use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

const STEP: &str = "starting the broker";

/// The socket holds hundreds of answers, and the broker needs microseconds for each.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// Enough to write a few small files on a slow disk.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(5);

/// The ends of the broker's sockets, created before any fork.
#[derive(Debug)]
pub(crate) struct Ends {
    /// The command's.
    pub(crate) handshake: OwnedFd,
    handshake_of_broker: OwnedFd,
    news: OwnedFd,
    news_of_broker: OwnedFd,
}

impl Ends {
    /// None without a filter: then there is nothing to listen to.
    pub(crate) fn for_plan(plan: &Plan) -> Result<Option<Self>> {
        if plan.sandbox.seccomp.is_none() {
            return Ok(None);
        }
        let (handshake, handshake_of_broker) = socketpair().during(STEP)?;
        reveal_senders(&handshake_of_broker).during(STEP)?;
        let (news, news_of_broker) = socketpair().during(STEP)?;
        if plan.sandbox.gate.is_some() {
            // A broker whose thread hangs in a dead file system reads no answers. It must not block us.
            let sending = rustix::net::sockopt::Timeout::Send;
            rustix::net::sockopt::set_socket_timeout(&news, sending, Some(SEND_TIMEOUT))
                .call("setsockopt")
                .during(STEP)?;
        }
        Ok(Some(Self { handshake, handshake_of_broker, news, news_of_broker }))
    }
}

/// The running broker, seen from the supervisor.
#[derive(Debug)]
pub(crate) struct Broker {
    helper: Helper,
    news: OwnedFd,
    /// Whether git configuration was written that is not closed and judged yet.
    is_staging: Cell<bool>,
}

impl Broker {
    /// Forks the broker, which waits until it is called. Also returns the command's end of its socket.
    pub(crate) fn start(
        helpers: &Helpers,
        plan: &Plan,
        seccomp: &Seccomp,
        ends: Ends,
        locks: TreeLocks,
    ) -> Result<(Self, OwnedFd)> {
        let Ends { handshake, handshake_of_broker, news, news_of_broker } = ends;
        let kept = [&handshake_of_broker, &news_of_broker].into_iter().chain(&locks.files);
        let kept = kept.map(AsRawFd::as_raw_fd).collect();
        let helper = helpers.start(HelperKind::Broker, STEP, kept, |supervisor_pid| {
            run_broker(BrokerStartup {
                supervisor_pid,
                handshake: handshake_of_broker,
                supervisor: news_of_broker,
                locks,
                duties: Duties {
                    guard: plan.sandbox.guard.as_ref(),
                    executables: plan
                        .sandbox
                        .landlock
                        .as_ref()
                        .and_then(|landlock| landlock.executables.listed()),
                    transactions: plan.transactions(),
                    own_mounts: plan.own_mounts(),
                    gate: plan.sandbox.gate.as_ref(),
                    filter: &seccomp.filter,
                    identity: identity(plan),
                    records_operations: plan.supervision.records_operations(),
                    landlock_truncates: plan
                        .sandbox
                        .landlock
                        .as_ref()
                        .is_some_and(Landlock::refuses_truncation),
                    trees_of_others: plan.trees_of_others(),
                },
                confine: || confine(broker_spec),
            })
        })?;
        Ok((Self { helper, news, is_staging: Cell::new(false) }, handshake))
    }

    /// Ends it, if it has not ended by itself.
    pub(crate) fn dismiss(&self) {
        if self.is_staging.get() && self.helper.is_serving() {
            // It commits what was written last and exits. If it cannot, that content is not committed.
            self.helper.expect_end();
            let _ = rustix::net::shutdown(&self.news, rustix::net::Shutdown::Write);
            self.helper.ends_within(COMMIT_TIMEOUT);
        } else {
            self.helper.dismiss();
        }
    }

    /// Readable when there is a message, or when the broker is gone. None once that is known: the closed end
    /// would stay readable.
    pub(crate) fn news(&self) -> Option<BorrowedFd<'_>> {
        self.helper.is_serving().then(|| self.news.as_fd())
    }

    /// The next message, without waiting for one.
    pub(crate) fn receive(&self) -> Result<Option<BrokerMessage>> {
        const STEP: &str = "listening to the broker";
        let mut buffer = [0; BrokerMessage::MAX_BYTES];
        loop {
            let received = palisade_wire::try_receive(&self.news, &mut buffer);
            match received.map(|received| received.map(|received| received.message)) {
                Ok(Some(BrokerMessage::Staging { is_open })) => self.is_staging.set(is_open),
                Ok(message @ Some(_)) => return Ok(message),
                Ok(None) => return Ok(None),
                Err(WireError::Closed) => {
                    // The helper register knows whether it exited as asked or died.
                    self.helper.has_closed();
                    return Ok(None);
                }
                Err(error) => return Err(error).during(STEP),
            }
        }
    }

    /// `file` belongs to [`AccessReply::File`] and [`AccessReply::WriteOnce`]. An answer to a call that has
    /// ended is no error.
    pub(crate) fn reply(&self, reply: &AccessReply, file: Option<BorrowedFd<'_>>) -> Result<()> {
        let sent = match palisade_wire::send(&self.news, reply, file.as_slice()) {
            // A path that no system call takes either.
            Err(WireError::TooLong { .. }) => {
                let refusal = AccessReply::fail(reply.request(), Errno::NAMETOOLONG);
                palisade_wire::send(&self.news, &refusal, &[])
            }
            sent => sent,
        };
        match sent {
            // Its end is seen by its pidfd.
            Err(WireError::Closed) => Ok(()),
            sent => sent.during("answering the broker"),
        }
    }
}

fn identity(plan: &Plan) -> CommandIdentity {
    match &plan.sandbox.confinement {
        Confinement::Namespaces(inside) => match inside.identity.mapping {
            IdMapping::OwnId => CommandIdentity::CallerMapped,
            IdMapping::ByRoot => {
                let (uid, gid) = (inside.identity.inside_uid, inside.identity.inside_gid);
                CommandIdentity::Given { uid, gid }
            }
        },
        Confinement::NoNamespaces | Confinement::None => CommandIdentity::Caller,
    }
}
