//! A small process in the sandbox's network namespace that creates TCP sockets there and hands them out, for
//! connections from outside to a published port.
//!
//! It never connects a socket itself, holds no capability, and is started only where a port is published. The
//! request `4` or `6` is answered with a socket of that family.

use crate::error::{During, Result};
use crate::helper::{Helper, HelperKind, Helpers, confine, take_identity};
use crate::init::close_all_but;
use crate::network::InsideNetwork;
use palisade_bpf::maker_spec;
use palisade_plan::model::Identity;
use palisade_sys::fdpass::{recv_with_fds, send_with_fds, socketpair};
use palisade_sys::proc;
use palisade_sys::{Pid, SysError, creds, net, other};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

const STEP: &str = "starting the maker of sockets";

/// Forks it. Also returns the other end of its socket.
pub(crate) fn start(
    helpers: &Helpers,
    inside: &InsideNetwork,
    identity: Option<&Identity>,
) -> Result<(Helper, OwnedFd)> {
    let (line, own_line) = socketpair().during(STEP)?;
    let kept = [&own_line, &inside.user, &inside.network].map(|fd| fd.as_raw_fd()).to_vec();
    let helper = helpers.start(HelperKind::PublishedPorts, STEP, kept, |supervisor| {
        let settled = settle(supervisor, inside, identity)
            .during(STEP)
            .and_then(|()| close_all_but(vec![own_line.as_raw_fd()]));
        // Otherwise it exits, which is noticed and ends the run.
        if settled.is_ok() && confine(maker_spec).is_ok() {
            serve(&own_line);
        }
    })?;
    Ok((helper, line))
}

fn settle(
    supervisor: Pid,
    inside: &InsideNetwork,
    identity: Option<&Identity>,
) -> Result<(), SysError> {
    proc::setsid()?;
    other::enter_user(&inside.user)?;
    net::enter(&inside.network)?;
    identity.map_or(Ok(()), take_identity)?;
    creds::drop_all_capabilities()?;
    creds::set_no_new_privs()?;
    creds::set_dumpable(false)?;
    creds::end_with_parent(supervisor)
}

fn serve(line: &OwnedFd) -> ! {
    loop {
        let mut asked = [0; 1];
        let Ok((1, _)) = recv_with_fds(line, &mut asked) else { proc::exit_now(0) };
        let family = match &asked {
            b"4" => AddressFamily::INET,
            b"6" => AddressFamily::INET6,
            _ => proc::exit_now(1),
        };
        let made = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        // Without a socket: the kernel lacks this family, or no descriptor is left.
        let made: Vec<_> = made.iter().map(|socket| socket.as_fd()).collect();
        if send_with_fds(line, &asked, &made).is_err() {
            proc::exit_now(1);
        }
    }
}
