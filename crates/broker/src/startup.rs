//! How the broker starts: forked beside the sandbox, it enters the sandbox's user and mount namespaces, takes
//! on the command's identity, drops everything except the right to inspect its callers, and only then gets the
//! listener of the command's filter.
//!
//! It shares no pid namespace with the command, which can neither see nor signal it. If it fails or dies, the
//! listener is closed, and every call that would have come here fails with `ENOSYS`.

use crate::brokered_trees::BrokeredTrees;
use crate::caller::{no_callers_remain, set_own_umask};
use crate::duties::{CommandIdentity, Duties};
use crate::judge::Judge;
use crate::lock::{Locks, TreeLocks};
use crate::message::BrokerMessage;
use crate::native_dirs::NativeDirs;
use crate::operations::Operations;
use crate::perform::CallExecutor;
use crate::perform::owners::RootOwner;
use crate::place::Map;
use crate::serve::directory_moves::DirectoryMoves;
use crate::serve::gate;
use crate::serve::{BrokerServer, EventSender, ParallelCalls, serve};
use crate::slow::Helpers;
use crate::staging::StagedConfigs;
use crate::{DIRECTORY, NO_MODE};
use palisade_guard::{MatchContext, Matcher};
use palisade_sys::fdpass::{recv_from_process, recv_with_fds};
use palisade_sys::notify::Listener;
use palisade_sys::proc;
use palisade_sys::{At as _, Errno, Mode, Pid, SysError, creds, other};
use std::os::fd::OwnedFd;
use std::sync::Arc;

#[derive(Debug)]
pub struct BrokerStartup<'p> {
    /// Our parent; the broker does not outlive it. The launcher ensures that until credentials change.
    pub supervisor_pid: Pid,
    /// The command says here when the sandbox can be entered, then where its listener is.
    pub handshake: OwnedFd,
    /// Takes [`BrokerMessage`]s.
    pub supervisor: OwnedFd,
    /// Held while a call is judged and performed.
    pub locks: TreeLocks,
    pub duties: Duties<'p>,
    /// Installs the broker's own filter; the launcher knows how.
    pub confine: fn() -> Result<(), String>,
}

/// Serves until no caller is left; the process does nothing else.
pub fn run_broker(startup: BrokerStartup<'_>) -> ! {
    let supervisor = Arc::new(startup.supervisor);
    let mut events = EventSender { supervisor, lost: 0, lost_suspicious: 0 };
    let (command, host_proc) =
        match settle(&startup.duties, &startup.handshake, startup.supervisor_pid) {
            Ok(settled) => settled,
            Err(error) => fail(&mut events, error.to_string()),
        };
    // A call that is not received yet is interrupted by every signal, and not all handlers restart it.
    let _ = proc::run_soon_after_waking();
    // The filter forbids what this needs.
    let parallel = match ParallelCalls::new() {
        Ok(parallel) => Arc::new(parallel),
        Err(errno) => fail(&mut events, format!("eventfd: {errno}")),
    };
    if let Err(why) = (startup.confine)() {
        fail(&mut events, why);
    }
    match take_listener(&startup.handshake, &command) {
        Ok(listener) => {
            drop(command);
            let locks = Locks::new(startup.locks);
            // For as long as the process lives.
            let host_proc: &'static OwnedFd = Box::leak(Box::new(host_proc));
            let Duties { guard, gate, ref transactions, .. } = startup.duties;
            match Map::new(BrokeredTrees::of(guard, gate, transactions.clone()), host_proc) {
                Ok(map) => serve(server(
                    &startup.duties,
                    (locks, map, parallel),
                    startup.handshake,
                    listener,
                    events,
                )),
                Err(errno) => fail(&mut events, format!("opening /proc/self/fd: {errno}")),
            }
        }
        Err(error) => fail(&mut events, error.to_string()),
    }
}

fn fail(events: &mut EventSender, why: String) -> ! {
    events.tell(&BrokerMessage::Failed(why));
    proc::exit_now(1)
}

/// Enters the sandbox as soon as the command is ready, with the command's identity and as few privileges as
/// possible. Returns a handle on the command, and the host's `/proc`.
fn settle(
    duties: &Duties<'_>,
    handshake: &OwnedFd,
    supervisor: Pid,
) -> Result<(OwnedFd, OwnedFd), SysError> {
    let host_proc = rustix::fs::open("/proc", DIRECTORY, NO_MODE).call("open /proc")?;
    let (_, sender) = recv_from_process(handshake, &mut [0])?;
    let Some(command) = sender else { no_callers_remain() };
    let command = unless_over(other::pidfd_of(command))?;
    if duties.identity != CommandIdentity::Caller {
        unless_over(other::enter_user_and_mounts(&command))?;
        if let CommandIdentity::Given { uid, gid } = duties.identity {
            creds::take_ids_with_capabilities(uid, gid)?;
        }
        creds::keep_only_sys_ptrace()?;
    }
    creds::set_no_new_privs()?;
    creds::set_dumpable(false)?;
    rustix::process::chdir("/").call("chdir")?;
    // Changing ids cleared the parent-death signal.
    creds::end_with_parent(supervisor)?;
    Ok((command, host_proc))
}

/// A launch that fails meanwhile reports the reason itself.
fn unless_over<T>(done: Result<T, SysError>) -> Result<T, SysError> {
    match done {
        Err(error) if error.errno == Errno::SRCH => no_callers_remain(),
        done => done,
    }
}

/// It arrives as a descriptor, or the command names its number and waits until we have fetched it.
fn take_listener(handshake: &OwnedFd, command: &OwnedFd) -> Result<Listener, SysError> {
    let mut number = [0; 4];
    let (length, mut descriptors) = recv_with_fds(handshake, &mut number)?;
    if let Some(listener) = descriptors.pop() {
        return Ok(Listener::new(listener));
    }
    if length != number.len() {
        no_callers_remain();
    }
    let listener = other::take_descriptor(command, i32::from_ne_bytes(number))?;
    rustix::io::write(handshake, b"!").call("write")?;
    Ok(Listener::new(listener))
}

fn server<'p>(
    duties: &Duties<'p>,
    (locks, map, parallel): (Locks, Map, Arc<ParallelCalls>),
    handshake: OwnedFd,
    listener: Listener,
    events: EventSender,
) -> BrokerServer<'p> {
    let host_proc = map.proc;
    // For as long as the process lives.
    let listener: &'static Listener = Box::leak(Box::new(listener));
    // Before 6.6 every answer costs a second wake-up; nothing else changes.
    let _ = listener.prefer_one_cpu();
    let matcher = match (duties.guard, duties.gate) {
        (Some(guard), Some(gate)) => guard.matcher_for_grants(gate),
        (Some(guard), None) => guard.matcher(),
        (None, _) => Matcher::new(MatchContext::default()),
    };
    let limited = duties.guard.map_or_else(Vec::new, |guard| guard.limited.clone());
    let hooks = duties.guard.map_or_else(Vec::new, |guard| guard.hooks.clone());
    let judge = Judge::new(matcher, limited).with_hooks(hooks);
    set_own_umask(Mode::empty());
    BrokerServer {
        listener,
        filter: duties.filter,
        executables: duties.executables,
        gate: duties.gate.map(|gate| gate::Gate::new(gate, listener, host_proc)),
        native_dirs: Arc::new(NativeDirs::open(
            &duties.own_mounts,
            duties.guard.map_or(&[], |guard| guard.build_dirs.as_slice()),
            duties.guard.map_or(&[], |guard| guard.trees.as_slice()),
        )),
        executor: CallExecutor {
            locks,
            map: Arc::new(map),
            judge: Arc::new(judge),
            staged: StagedConfigs::default(),
            stages: true,
            asks_first: false,
            landlock_truncates: duties.landlock_truncates,
            root_owner: RootOwner::of(duties),
            operations: duties
                .records_operations
                .then(|| Arc::new(Operations::new(Arc::clone(&events.supervisor)))),
            judged_paths: Vec::new(),
            umasks: Arc::default(),
        },
        helpers: Helpers::default(),
        moves: DirectoryMoves::default(),
        events,
        host_proc,
        read_only: std::collections::HashSet::new(),
        handshake,
        parallel,
    }
}
