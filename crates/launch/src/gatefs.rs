//! Starts the process of the gate's file system and holds the launcher's ends of its sockets: one for the process that
//! builds the view, one for the supervisor. What the process does is in `palisade-gatefs`.

use crate::error::{During, LaunchError};
use crate::helper::{Helper, HelperKind, Helpers, confine};
use palisade_bpf::gatefs_spec;
use palisade_cgroup::RunGroup;
use palisade_gatefs::{GateFsMessage, GateFsStartup, ServerIdentity, ToGateFs, run_gatefs};
use palisade_plan::model::{Confinement, IdMapping, Plan};
use palisade_sys::At as _;
use palisade_sys::fdpass::socketpair;
use palisade_wire::{WireError, WireMessage as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

const STEP: &str = "starting the gate's file system";

/// The socket holds hundreds of answers, and the server needs microseconds for each.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// The running process, seen from the supervisor.
#[derive(Debug)]
pub(crate) struct GateFs {
    helper: Helper,
    socket: OwnedFd,
}

impl GateFs {
    /// Forks it, where the plan wants it. Also returns the end of its socket for the process that builds the view.
    pub(crate) fn start(
        helpers: &Helpers,
        plan: &Plan,
        group: Option<&RunGroup>,
    ) -> Result<Option<(Self, OwnedFd)>, LaunchError> {
        let (Confinement::Namespaces(inside), Some(gate)) =
            (&plan.sandbox.confinement, &plan.sandbox.gate)
        else {
            return Ok(None);
        };
        if !gate.is_fuse() {
            return Ok(None);
        }
        let (uid, gid) = (inside.identity.host_uid, inside.identity.host_gid);
        let identity = match inside.identity.mapping {
            IdMapping::OwnId => ServerIdentity::OrdinaryUser,
            IdMapping::ByRoot => ServerIdentity::Root { uid, gid },
        };
        let (socket, supervisor) = socketpair().during(STEP)?;
        // A server that hangs in a dead file system of the host reads no answers. It must not block us.
        let sending = rustix::net::sockopt::Timeout::Send;
        rustix::net::sockopt::set_socket_timeout(&socket, sending, Some(SEND_TIMEOUT))
            .call("setsockopt")
            .during(STEP)?;
        let (setup, setup_of_server) = socketpair().during(STEP)?;
        // What the command writes through it is the command's.
        let groups = group.map(|group| group.entry().members()).unwrap_or_default();
        let kept = [&supervisor, &setup_of_server].map(AsRawFd::as_raw_fd);
        let kept = kept.into_iter().chain(groups.iter().map(AsRawFd::as_raw_fd)).collect();
        let helper = helpers.start(HelperKind::GateFs, STEP, kept, |supervisor_pid| {
            if groups.iter().any(|group| rustix::io::write(group, b"0").is_err()) {
                return;
            }
            run_gatefs(GateFsStartup {
                supervisor_pid,
                supervisor,
                setup: setup_of_server,
                gate,
                identity,
                confine: || confine(gatefs_spec),
            })
        })?;
        Ok(Some((Self { helper, socket }, setup)))
    }

    /// Readable when there is a message, or when the process is gone. None once that is known.
    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.helper.is_serving().then(|| self.socket.as_fd())
    }

    /// The next message, without waiting for one.
    pub(crate) fn receive(&self) -> Result<Option<GateFsMessage>, LaunchError> {
        let mut buffer = [0; GateFsMessage::MAX_BYTES];
        match palisade_wire::try_receive(&self.socket, &mut buffer) {
            Ok(received) => Ok(received.map(|received| received.message)),
            Err(WireError::Closed) => {
                // The helper register knows whether it exited as asked or died.
                self.helper.has_closed();
                Ok(None)
            }
            Err(error) => Err(error).during("listening to the gate's file system"),
        }
    }

    /// `file` belongs to [`palisade_gate::AccessReply::File`]. An answer to a call that has ended is no error.
    pub(crate) fn tell(
        &self,
        message: &ToGateFs,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<(), LaunchError> {
        match palisade_wire::send(&self.socket, message, file.as_slice()) {
            // Its end is seen by its pidfd.
            Err(WireError::Closed) => Ok(()),
            sent => sent.during("answering the gate's file system"),
        }
    }

    /// Asks it to exit: everything inside has ended.
    pub(crate) fn dismiss(&self) {
        self.helper.dismiss();
    }
}
