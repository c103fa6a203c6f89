//! How the broker takes its place: forked beside the sandbox, it gets the listener of the command's
//! filter, enters the sandbox's user and mount namespaces, becomes who the command is, and gives up
//! everything but looking into its callers.
//!
//! It shares no pid namespace with the command, which so can neither see nor signal it. If it fails or
//! dies, the listener goes with it, and every call that would have come here fails with `ENOSYS`.

use crate::caller::Umasks;
use crate::ground::Ground;
use crate::judge::Judge;
use crate::lock::{Company, Lock};
use crate::message::Message;
use crate::perform::Workshop;
use crate::place::Map;
use crate::serve::{Desk, Teller, serve};
use crate::{DIRECTORY, NO_MODE};
use palisade_bpf::FilterSpec;
use palisade_guard::{Grounds, Matcher};
use palisade_plan::model::Guard;
use palisade_sys::fdpass::recv_from_process;
use palisade_sys::notify::Listener;
use palisade_sys::proc::{self, sig};
use palisade_sys::{At as _, Errno, Mode, Pid, SysError, creds, other};
use std::os::fd::OwnedFd;

/// What the broker is to do.
#[derive(Clone, Copy, Debug)]
pub struct Duties<'p> {
    /// None: only refused calls are told.
    pub guard: Option<&'p Guard>,
    /// The command's filter, as a description.
    pub filter: &'p FilterSpec,
    pub identity: Identity,
}

/// Who the command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The caller, in the caller's namespaces.
    Caller,
    /// The caller, in a user namespace that maps only it.
    CallerMapped,
    /// Another one, given by root.
    Given { uid: u32, gid: u32 },
}

#[derive(Debug)]
pub struct Seat<'p> {
    /// Our parent; the broker does not outlive it.
    pub supervisor_pid: Pid,
    /// The command says here where its listener is, and waits until we have it.
    pub usher: OwnedFd,
    /// Takes [`Message`]s.
    pub supervisor: OwnedFd,
    /// Held while a call is judged and performed; all runs of one user have it open, each for itself.
    pub lock: OwnedFd,
    pub duties: Duties<'p>,
    /// Installs the broker's own filter; the launcher knows how.
    pub confine: fn() -> Result<(), String>,
}

/// Serves until it is killed; the process has nothing else to do.
pub fn occupy(seat: Seat<'_>) -> ! {
    let mut teller = Teller { supervisor: seat.supervisor, lost: 0, lost_suspicious: 0 };
    let supervisor = seat.supervisor_pid;
    let taken = take_listener(&seat.usher, supervisor).and_then(|found| {
        let Some((listener, host_proc, command)) = found else { return Ok(None) };
        match settle(&seat.duties, &command, supervisor) {
            Err(error) if error.call == ENTERING && error.errno == Errno::SRCH => nobody_left(),
            settled => settled.map_err(|error| error.to_string())?,
        }
        (seat.confine)()?;
        Ok(Some((listener, host_proc)))
    });
    match taken {
        Ok(Some(found)) => {
            let lock = Lock::new(seat.lock);
            serve(desk(&seat.duties, lock, seat.usher, found, teller))
        }
        // The launch failed before the command had a filter, and has said why.
        Ok(None) => proc::exit_now(0),
        Err(why) => {
            teller.tell(&Message::Failed(why));
            proc::exit_now(1)
        }
    }
}

/// The call that takes the broker into the sandbox.
const ENTERING: &str = "setns";

/// Everybody has ended, maybe before we came; the supervisor ends us.
pub(crate) fn nobody_left() -> ! {
    loop {
        let _ = proc::poll(&mut [], None);
    }
}

type Taken = (Listener, OwnedFd, OwnedFd);

/// The listener, the host's `/proc`, and a handle on the command. None if the command never came.
fn take_listener(usher: &OwnedFd, supervisor: Pid) -> Result<Option<Taken>, String> {
    take(usher, supervisor).map_err(|error| error.to_string())
}

fn take(usher: &OwnedFd, supervisor: Pid) -> Result<Option<Taken>, SysError> {
    end_with(supervisor)?;
    let host_proc = rustix::fs::open("/proc", DIRECTORY, NO_MODE).call("open /proc")?;
    let mut number = [0; 4];
    let (length, sender) = recv_from_process(usher, &mut number)?;
    let (4, Some(command)) = (length, sender) else { return Ok(None) };
    let command = other::pidfd_of(command)?;
    let listener = other::take_descriptor(&command, i32::from_ne_bytes(number))?;
    rustix::io::write(usher, b"!").call("write")?;
    Ok(Some((Listener::new(listener), host_proc, command)))
}

/// Into the sandbox, as the command, with as little as possible.
fn settle(duties: &Duties<'_>, command: &OwnedFd, supervisor: Pid) -> Result<(), SysError> {
    match duties.identity {
        Identity::Caller => {}
        Identity::CallerMapped => {
            other::enter_user_and_mounts(command)?;
            creds::keep_only_sys_ptrace()?;
        }
        Identity::Given { uid, gid } => {
            other::enter_user_and_mounts(command)?;
            creds::keep_capabilities_over_setuid()?;
            creds::setgroups_empty()?;
            creds::setresgid(gid)?;
            creds::setresuid(uid)?;
            creds::keep_only_sys_ptrace()?;
        }
    }
    creds::set_no_new_privs()?;
    creds::set_dumpable(false)?;
    rustix::process::chdir("/").call("chdir")?;
    // Changing ids cleared it.
    end_with(supervisor)
}

/// Not to be left behind, also if it died a moment ago.
fn end_with(supervisor: Pid) -> Result<(), SysError> {
    creds::set_pdeathsig(sig::SIGKILL)?;
    if rustix::process::getppid() != Some(supervisor) {
        proc::exit_now(1);
    }
    Ok(())
}

fn desk<'p>(
    duties: &Duties<'p>,
    lock: Lock,
    usher: OwnedFd,
    (listener, host_proc): (Listener, OwnedFd),
    teller: Teller,
) -> Desk<'p> {
    // For as long as the process lives.
    let listener: &'static Listener = Box::leak(Box::new(listener));
    let host_proc: &'static OwnedFd = Box::leak(Box::new(host_proc));
    // Before 6.6 every answer costs a second wake-up; nothing else changes.
    let _ = listener.prefer_one_cpu();
    let matcher = duties.guard.map_or_else(|| Matcher::new(Grounds::default()), Guard::matcher);
    Desk {
        listener,
        filter: duties.filter,
        workshop: Workshop {
            lock,
            company: Company::Shared,
            map: Map { ground: Ground::of(duties.guard), proc: host_proc },
            judge: Judge::new(matcher),
            umasks: Umasks::default(),
            own_umask: cleared_umask(),
        },
        teller,
        host_proc,
        usher,
    }
}

fn cleared_umask() -> Mode {
    rustix::process::umask(Mode::empty());
    Mode::empty()
}
