//! A loop whose calls go by a listener that does nothing but let the kernel go on: the least that any
//! trigger by notification costs, for `cargo xtask bench gate` to show beside the gate.

use std::os::fd::{AsFd as _, OwnedFd};

use palisade_sys::clone::{Forked, fork};
use palisade_sys::creds::{set_no_new_privs, set_pdeathsig};
use palisade_sys::fdpass::{recv_with_fds, send_with_fds, socketpair};
use palisade_sys::notify::{Listener, Response};
use palisade_sys::proc::{exit_now, sig};
use palisade_sys::seccomp::{SeccompFlags, SockFilter, install};
use rustix::io::Errno;

use crate::{Failure, Probe, argument, loops};

pub(crate) const PROBES: &[Probe] = &[("notified", "LOOP PATH COUNT THREADS", notified)];

/// What the loops call, in every libc.
const CALLS: [libc::c_long; 3] = [libc::SYS_openat, libc::SYS_newfstatat, libc::SYS_statx];

fn notified(arguments: &[String]) -> Result<String, Failure> {
    let name = argument(arguments, 0, "LOOP")?;
    let probe = loops::PROBES.iter().find(|(known, _, _)| *known == name);
    let (_, _, run) = probe.ok_or_else(|| Failure::Usage(format!("no loop `{name}`")))?;
    let (ours, theirs) = socketpair()?;
    if let Forked::Child = fork()? {
        drop(ours);
        listen(&theirs)
    }
    drop(theirs);
    set_no_new_privs()?;
    // As ours is.
    let flags = SeccompFlags::NEW_LISTENER | SeccompFlags::WAIT_KILLABLE_RECV;
    let listener = install(&filter()?, flags)?.ok_or(Errno::NOSYS)?;
    send_with_fds(&ours, b"!", &[listener.as_fd()])?;
    drop(listener);
    run(&arguments[1..])
}

/// Until the loop has ended, and the other process with it.
fn listen(socket: &OwnedFd) -> ! {
    let received = set_pdeathsig(sig::SIGKILL).and_then(|()| recv_with_fds(socket, &mut [0]));
    let Some(listener) = received.ok().and_then(|(_, mut files)| files.pop()) else { exit_now(1) };
    let listener = Listener::new(listener);
    // Before 6.6 it cannot; neither can ours.
    let _ = listener.prefer_one_cpu();
    loop {
        let continued =
            listener.receive().and_then(|call| listener.respond(call.id, Response::Continue));
        if continued.is_err_and(|errno| errno != Errno::INTR) {
            exit_now(0);
        }
    }
}

fn filter() -> Result<Vec<SockFilter>, Failure> {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let action = |k| SockFilter { code: RETURN, jt: 0, jf: 0, k };
    let mut program = vec![SockFilter { code: LOAD_NUMBER, jt: 0, jf: 0, k: 0 }];
    for call in CALLS {
        let k = u32::try_from(call).map_err(|_| Errno::INVAL)?;
        program.push(SockFilter { code: JUMP_IF_EQUAL, jt: 0, jf: 1, k });
        program.push(action(libc::SECCOMP_RET_USER_NOTIF));
    }
    program.push(action(libc::SECCOMP_RET_ALLOW));
    Ok(program)
}
