//! Starts the egress process and holds the launcher's end of its socket. What the process does is in
//! `palisade-egress`.
//!
//! It uses the host's network, opens no files, and serves listeners that were created in the sandbox. It is
//! outside the sandbox's pid namespace, so no process inside can see or signal it. If it dies, its listeners
//! close.

use crate::error::{During, LaunchError, Result};
use crate::filter;
use crate::helper::{Helper, HelperKind, Helpers, confine, take_identity};
use crate::maker;
use crate::network::InsideNetwork;
use palisade_bpf::{Arch, egress_spec, proxy_spec};
use palisade_egress::wire::{EgressEvent, EgressRequest, MAX_PACKET_BYTES};
use palisade_egress::{Config, EgressStartup, Published, serve};
use palisade_plan::model::{Confinement, IdMapping, Identity, Plan, Publish};
use palisade_sys::fdpass::socketpair;
use palisade_sys::proc;
use palisade_sys::{At as _, Errno, Pid, SysError, creds, other};
use rustix::net::{RecvFlags, SendFlags};
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

const STEP: &str = "starting the egress process";

/// The running egress process, seen from the supervisor.
#[derive(Debug)]
pub struct EgressProcess {
    helper: Helper,
    socket: OwnedFd,
    /// Ends with this.
    maker: Option<Helper>,
}

/// What the process reported.
#[derive(Debug)]
pub enum EgressMessage {
    EgressEvent(EgressEvent),
    Nothing,
    /// It sent something that cannot be decoded.
    Garbled,
    /// It has ended.
    Gone,
}

impl EgressProcess {
    /// Forks it. The caller must be single-threaded.
    pub fn start(
        helpers: &Helpers,
        plan: &Plan,
        config: Config,
        inside: InsideNetwork,
    ) -> Result<Self> {
        Self::start_as(helpers, given_identity(plan), config, inside)
    }

    fn start_as(
        helpers: &Helpers,
        identity: Option<&Identity>,
        config: Config,
        inside: InsideNetwork,
    ) -> Result<Self> {
        let (maker, maker_line) = if inside.published.is_empty() {
            (None, None)
        } else {
            let (maker, line) = maker::start(helpers, &inside, identity)?;
            (Some(maker), Some(line))
        };
        let (socket, supervisor) = socketpair().during(STEP)?;
        let InsideNetwork { tcp, udp, counters, published, user, .. } = inside;
        let startup =
            EgressStartup { supervisor, tcp, udp, counters, published, maker: maker_line, config };
        let mut kept = descriptors(&startup);
        kept.push(user.as_raw_fd());
        let helper = helpers.start(HelperKind::Egress, STEP, kept, |supervisor| {
            let settled = settle(supervisor, identity, user).map_err(|error| error.to_string());
            serve(startup, move || settled.and_then(|()| confine(egress_spec)))
        })?;
        Ok(Self { helper, socket, maker })
    }

    /// Tells it that no process is left in the sandbox: it reports what is pending, and exits.
    pub fn end(&self) -> Result<()> {
        // The process for published ports exits when its connection closes.
        self.maker.as_ref().map(Helper::expect_end);
        self.helper.expect_end();
        self.send(&EgressRequest::End)
    }

    /// Readable when there is a message, or when the process is gone.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Never waits. [`Self::receive`] reports a process that is gone.
    pub fn send(&self, request: &EgressRequest) -> Result<()> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match rustix::net::send(&self.socket, &request.encode(), flags) {
            Ok(_) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
            Err(errno) => Err(errno).call("send").during("talking to the egress process"),
        }
    }

    /// The next message, without waiting for one.
    pub fn receive(&self) -> EgressMessage {
        let mut packet = vec![0; MAX_PACKET_BYTES];
        match rustix::net::recv(&self.socket, packet.as_mut_slice(), RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) => EgressMessage::Nothing,
            Ok((length @ 1.., _)) => EgressEvent::decode(&packet[..length])
                .map_or(EgressMessage::Garbled, EgressMessage::EgressEvent),
            Ok(_) | Err(_) => {
                // The helper register knows whether it exited as asked or died.
                self.helper.has_closed();
                EgressMessage::Gone
            }
        }
    }
}

/// The command's identity, where root gave it an id other than the caller's.
pub(crate) fn given_identity(plan: &Plan) -> Option<&Identity> {
    match &plan.sandbox.confinement {
        Confinement::Namespaces(inside) if inside.identity.mapping == IdMapping::ByRoot => {
            Some(&inside.identity)
        }
        _ => None,
    }
}

/// Published ports on the host, opened with the caller's rights.
pub(crate) fn listen_for(ports: &[Publish]) -> Result<Vec<Published>> {
    let listen = |publish: &Publish| {
        let Publish { address, port, inner } = *publish;
        let listener = TcpListener::bind((address, port)).map_err(|error| {
            let wanted = std::net::SocketAddr::from((address, port));
            LaunchError::new("publishing a port", format!("listen at {wanted}: {error}"))
                .with_fix("choose another one: --publish [ADDR:]PORT:INNER")
        })?;
        Ok(Published { listener: listener.into(), inner })
    };
    ports.iter().map(listen).collect()
}

fn descriptors(startup: &EgressStartup) -> Vec<i32> {
    [&startup.supervisor]
        .into_iter()
        .chain(&startup.tcp)
        .chain(&startup.udp)
        .chain(&startup.counters)
        .chain(startup.published.iter().map(|published| &published.listener))
        .chain(&startup.maker)
        .map(AsRawFd::as_raw_fd)
        .collect()
}

/// Drops what the caller has and this process does not need. Reading the counters needs a capability over the
/// sandbox's network: an ordinary user has it as owner of the namespace, root's process keeps it.
fn settle(
    supervisor: Pid,
    identity: Option<&Identity>,
    user_namespace: OwnedFd,
) -> Result<(), SysError> {
    // Leaves the terminal's session: a key that interrupts the command must not end this process.
    proc::setsid()?;
    if let Some(identity) = identity {
        other::enter_user(&user_namespace)?;
        take_identity(identity)?;
        creds::keep_only_net_admin()?;
    }
    drop(user_namespace);
    creds::set_no_new_privs()?;
    creds::set_dumpable(false)?;
    creds::end_with_parent(supervisor)
}

/// For the standalone proxy, once its listener, runtime and log are open: it can then only forward connections,
/// read files as its user, and write to its log.
pub fn confine_alone() -> Result<()> {
    const STEP: &str = "confining the proxy";
    creds::set_no_new_privs().during(STEP)?;
    creds::set_dumpable(false).during(STEP)?;
    creds::give_up_capabilities().during(STEP)?;
    filter::confine(&proxy_spec(Arch::native()))
}

#[cfg(test)]
#[path = "egress_tests.rs"]
mod tests;
