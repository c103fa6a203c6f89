//! The child's side of a launch: from the fork until pid 1 waits and the command runs.
//!
//! The steps are numbered in the order they happen. Each one either succeeds or ends the run.

use crate::command;
use crate::error::{During, LaunchError, Result};
use crate::fuse_root::{GroundStore, RequestedFuseRoot};
use crate::home;
use crate::idle_init::IdleInit;
use crate::inherited::Inherited;
use crate::init::{self, Init};
use crate::message::{FromCommand, FromInit, ToCommand, ToInit};
use crate::mounts::{self, Builder};
use crate::network;
use crate::selfcheck::Targets;
use crate::sources::Sources;
use crate::streams::Chosen;
use palisade_cgroup::ToJoin;
use palisade_plan::model::{
    Confinement, Egress, Gate, IdMapping, Identity, MountOp, Namespaced, Plan, SandboxLifetime,
};
use palisade_sys::clone::{CloneFlags, Forked, fork, unshare};
use palisade_sys::creds::{self, IdKind, MapLine};
use palisade_sys::fdpass::socketpair;
use palisade_sys::proc::{self, sig};
use palisade_sys::{At as _, CWD, Mode, Pid, timens, tty};
use palisade_wire::{Received, WireError, WireMessage as _};
use rustix::termios::Winsize;
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};
use std::cell::RefCell;
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

const STEP: &str = "starting the command";

/// By which the gate's file system knows who builds the view (`palisade_gatefs`, `callers.rs`).
const SETUP_NAME: &CStr = c"sandbox-setup";
const NAME: &CStr = c"sandbox";

/// Everything the child needs, inherited by the fork.
#[derive(Debug)]
pub(crate) struct Launch<'plan> {
    pub(crate) plan: &'plan Plan,
    pub(crate) init_socket: OwnedFd,
    pub(crate) chosen: Chosen,
    pub(crate) pty: Option<Winsize>,
    pub(crate) targets: Targets,
    pub(crate) inherited: &'plan Inherited,
    pub(crate) prepared: Option<Sources>,
    /// To the broker, for the command.
    pub(crate) handshake: Option<OwnedFd>,
    /// To the process of the gate's file system, where that is the root of the view.
    pub(crate) gatefs: Option<OwnedFd>,
    /// To the spawner, where commands come from it.
    pub(crate) spawner: Option<OwnedFd>,
    /// Control groups that the child has yet to enter.
    pub(crate) to_join: Option<ToJoin<'plan>>,
}

/// Sets everything up and stays as pid 1.
pub(crate) fn child(mut launch: Launch<'_>) -> ! {
    if launch.gatefs.is_some() {
        // Nobody is asked about what is looked at meanwhile. The command's exec ends that for its process.
        let _ = proc::set_name(SETUP_NAME);
    }
    match set_up(&mut launch) {
        Ok(PidOne::WithCommand(init)) => init.run(&launch.init_socket),
        Ok(PidOne::UntilEnded(init)) => init.run(&launch.init_socket),
        Err(error) => {
            init::tell(&launch.init_socket, &FromInit::Failed(error));
            proc::exit_now(125)
        }
    }
}

/// Which pid 1 to become after setup.
enum PidOne {
    WithCommand(Init),
    UntilEnded(IdleInit),
}

fn set_up(launch: &mut Launch<'_>) -> Result<PidOne> {
    let plan = launch.plan;
    // 0. Before anything is used that a limit counts.
    launch
        .to_join
        .take()
        .map_or(Ok(()), |groups| groups.join())
        .during("entering the control group")?;
    // Set-up creates names with exact modes; the command gets the caller's umask back.
    let caller_umask = rustix::process::umask(Mode::empty());
    // Inherited from the supervisor and undone: an undumpable process does not own its /proc files, among them
    // the id maps.
    creds::set_dumpable(true).during("opening the child to itself")?;
    // The caller's command line may contain secrets, and every process inside can read that of pid 1.
    if plan.sandbox.hardening.init_undumpable {
        proc::replace_command_line("sandbox").during("hiding the caller's command line")?;
    }
    // 1. Identity, and the parent-death signal.
    let mut fuse_root = None;
    match &plan.sandbox.confinement {
        Confinement::Namespaces(inside) => {
            // Changing ids clears the parent-death signal, so that comes after.
            take_identity(launch, &inside.identity)?;
            // It is mounted while we go on.
            if let Some(setup) = launch.gatefs.take() {
                let requested = RequestedFuseRoot::request(setup, inside.identity.mapping)?;
                fuse_root = Some(requested);
            }
            creds::set_pdeathsig(sig::SIGKILL)
                .during("tying the sandbox's life to the supervisor's")?;
            // Only children forked from now on get the shifted clocks.
            shift_clocks(inside.namespaces.time_offset)?;
        }
        // Without a pid namespace our own death would not end the others: the stand-in for pid 1 stays alive
        // when the supervisor dies, sees its socket close and ends them all.
        Confinement::NoNamespaces | Confinement::None => {
            creds::set_child_subreaper().during("adopting the command's orphans")?;
        }
    }
    // 2. Leave the caller's terminal.
    if plan.sandbox.hardening.own_session {
        proc::setsid().during("leaving the caller's session")?;
    }
    // 3. A new terminal: only processes forked later have it as their controlling terminal.
    let (devpts, terminal) = open_terminal(launch)?;
    // 4. The command's process, forked this early: creating a network namespace and leaving the old root take
    // the kernel about as long as building the view takes us, so both run in parallel. It waits there until it
    // is told to go on.
    proc::block_signals(&[sig::SIGCHLD, sig::SIGTTOU]).during(STEP)?;
    let CommandProcess { pid, pidfd, report } =
        start_command(launch, terminal.as_ref(), caller_umask)?;
    if let Confinement::Namespaces(inside) = &plan.sandbox.confinement {
        // 5. The view.
        build_view(launch, inside, (devpts, fuse_root), &report)?;
        // 6. The rest of the namespaces.
        if let Some(hostname) = &inside.hostname {
            proc::sethostname(hostname).during("setting the host name")?;
        }
        if inside.namespaces.net {
            if inside.loopback && network::is_handed_over(plan) {
                pass_network_on(&launch.init_socket, &report)?;
            }
            expect(&report, &FromCommand::NetworkReady)?;
            move_into_thread_name_spaces(pidfd.as_fd(), ThreadNameSpaceType::NETWORK)
                .call("setns")
                .during("entering the network namespace")?;
            if plan.is_offline() {
                hand_over_counters(&launch.init_socket)?;
            }
        }
    }
    // Before pid 1 closes every descriptor it does not need: dropped later, the number would be closed twice.
    drop(pidfd);
    // 7. Undumpable, with no descriptor of the caller left.
    let signals = proc::signalfd(&[sig::SIGCHLD]).during(STEP)?;
    let mut keep = vec![launch.init_socket.as_fd(), report.as_fd(), signals.as_fd()];
    keep.extend(terminal.as_ref().map(AsFd::as_fd));
    init::close_off(plan, &keep)?;
    // 8. Everything is in place: the command's process goes on to its last steps, and pid 1 starts waiting.
    if matches!(plan.sandbox.confinement, Confinement::Namespaces(_)) {
        expect(&report, &FromCommand::OldRootGone)?;
    }
    if let Some(Egress::Nat(_)) = &plan.sandbox.egress {
        wait_for_connection(&launch.init_socket)?;
    }
    if plan.sandbox.gate.as_ref().is_some_and(Gate::is_fuse) {
        let _ = proc::set_name(NAME);
    }
    say(&report, ToCommand::Go)?;
    init::settle(plan)?;
    Ok(match plan.sandbox.lifetime {
        SandboxLifetime::OneCommand => {
            PidOne::WithCommand(Init::new(plan, pid, report, terminal, signals))
        }
        SandboxLifetime::UntilEnded => PidOne::UntilEnded(IdleInit::new(report, signals)),
    })
}

/// The process that becomes the command, seen from pid 1.
struct CommandProcess {
    pid: Pid,
    pidfd: OwnedFd,
    /// To it and from it, until its exec.
    report: OwnedFd,
}

fn start_command(
    launch: &Launch<'_>,
    terminal: Option<&OwnedFd>,
    umask: Mode,
) -> Result<CommandProcess> {
    let (report, command_report) = socketpair().during(STEP)?;
    let network_settings = network::open_settings(launch.plan);
    match fork().during(STEP)? {
        Forked::Child => {
            drop(report);
            command::become_command(&command::Start {
                plan: launch.plan,
                chosen: &launch.chosen,
                terminal: terminal.map(AsFd::as_fd),
                targets: launch.targets,
                inherited: launch.inherited,
                report: command_report,
                handshake: launch.handshake.as_ref().map(AsFd::as_fd),
                spawner: launch.spawner.as_ref().map(AsFd::as_fd),
                umask,
                network_settings: RefCell::new(network_settings),
            })
        }
        Forked::Parent { pid, pidfd } => Ok(CommandProcess { pid, pidfd, report }),
    }
}

fn build_view(
    launch: &mut Launch<'_>,
    inside: &Namespaced,
    (devpts, fuse_root): (Option<OwnedFd>, Option<RequestedFuseRoot>),
    report: &OwnedFd,
) -> Result<()> {
    let sandbox = &launch.plan.sandbox;
    let pieces = mounts::collect(inside, launch.prepared.take(), devpts, sandbox)?;
    let fuse = fuse_root.map(RequestedFuseRoot::receive).transpose()?;
    let mut view = Builder::new(sandbox.hardening, fuse)?;
    let pieces = view.complete(inside, pieces, sandbox)?;
    view.change_root()?;
    say(report, ToCommand::RootChanged)?;
    view.furnish(&inside.mounts, &pieces)?;
    hand_over_home(launch, inside, &pieces, view.stores())?;
    hand_over_own_files(launch, inside, &pieces)?;
    hand_over_grounds(launch, view.stores())
}

/// For the keeper, which creates names there. The gate's file system shows them.
fn hand_over_grounds(launch: &Launch<'_>, stores: &[GroundStore]) -> Result<(), LaunchError> {
    stores.iter().try_for_each(|GroundStore { path, root }| {
        let message = FromInit::Ground { path: path.clone() };
        palisade_wire::send(&launch.init_socket, &message, &[root.as_fd()])
            .during("handing the sandbox's own file systems to the supervisor")
    })
}

/// For the supervisor to measure.
fn hand_over_own_files(
    launch: &Launch<'_>,
    inside: &Namespaced,
    pieces: &[Option<OwnedFd>],
) -> Result<(), LaunchError> {
    let plan = launch.plan;
    let is_fuse = plan.sandbox.gate.as_ref().is_some_and(Gate::is_fuse);
    if !is_fuse || plan.supervision.limits.is_empty() {
        return Ok(());
    }
    let own = inside.mounts.iter().zip(pieces).filter(|(op, _)| {
        // That one is handed over for another reason, and by its own file system.
        op.holds_own_files(plan.sandbox.scratch.as_ref())
            && Some(op.target()) != inside.private_home.as_deref()
    });
    own.filter_map(|(op, piece)| Some((op.target(), piece.as_ref()?))).try_for_each(
        |(path, piece)| {
            let message = FromInit::OwnFiles { path: path.to_owned() };
            palisade_wire::send(&launch.init_socket, &message, &[piece.as_fd()])
                .during("handing the run's own files to the supervisor")
        },
    )
}

/// The supervisor reports at the end what was written there. It reads nothing before all processes inside have
/// ended.
fn hand_over_home(
    launch: &Launch<'_>,
    inside: &Namespaced,
    pieces: &[Option<OwnedFd>],
    stores: &[GroundStore],
) -> Result<()> {
    const STEP: &str = "handing the private home to the supervisor";
    let home = inside.private_home.as_deref();
    let mut steps = inside.mounts.iter().zip(pieces);
    let is_home = |op: &MountOp| matches!(op, MountOp::Tmpfs { target, .. } if Some(target.as_path()) == home);
    let piece = steps.find(|(op, _)| is_home(op)).and_then(|(_, piece)| piece.as_ref());
    // The gate's file system only shows it, and not to the supervisor.
    let store = stores.iter().find(|store| Some(store.path.as_path()) == home);
    let piece = store.map(|store| &store.root).or(piece);
    let Some(piece) = piece else { return Ok(()) };
    let inodes = home::inodes_in_use(piece).unwrap_or(0);
    let message = FromInit::PrivateHome { inodes };
    palisade_wire::send(&launch.init_socket, &message, &[piece.as_fd()]).during(STEP)
}

/// The supervisor reports at the end what was tried without a network. Opened before the command can run: after
/// a short command has ended, no process is left in its namespace to find it by.
fn hand_over_counters(init_socket: &OwnedFd) -> Result<()> {
    let counters = network::open_counters();
    let files: Vec<_> = counters.iter().map(AsFd::as_fd).collect();
    palisade_wire::send(init_socket, &FromInit::NetworkCounters, &files)
        .during("handing the network's counters to the supervisor")
}

/// Tells the command's process how far setup is. One that is gone has reported why.
fn say(report: &OwnedFd, reached: ToCommand) -> Result<()> {
    palisade_wire::send(report, &reached, &[]).map_err(|_| match hear(report) {
        Ok(Received { message, .. }) => failure(message),
        Err(error) => error,
    })
}

/// Waits until the command's process has done its part.
fn expect(report: &OwnedFd, part: &FromCommand) -> Result<()> {
    let Received { message, .. } = hear(report)?;
    if message == *part { Ok(()) } else { Err(failure(message)) }
}

/// Hands what the command's process made to the supervisor, and keeps none of it.
fn pass_network_on(init_socket: &OwnedFd, report: &OwnedFd) -> Result<()> {
    let Received { message, descriptors } = hear(report)?;
    match message {
        FromCommand::PassOn(network @ FromInit::Network(_)) => {
            let made: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
            palisade_wire::send(init_socket, &network, &made)
                .during("handing the sandbox's network to the supervisor")
        }
        other => Err(failure(other)),
    }
}

/// The command must not start before its network is complete.
fn wait_for_connection(init_socket: &OwnedFd) -> Result<()> {
    const STEP: &str = "waiting for the way out";
    loop {
        match next_order(init_socket, STEP)? {
            ToInit::Connected => return Ok(()),
            // No command is running yet that it could be meant for.
            ToInit::Resume | ToInit::Mapped => {}
            ToInit::Signal(signal) => {
                return Err(LaunchError::new(STEP, format!("interrupted by signal {signal}")));
            }
            ToInit::End => return Err(LaunchError::new(STEP, "the supervisor went away")),
        }
    }
}

fn next_order(init_socket: &OwnedFd, step: &str) -> Result<ToInit> {
    match palisade_wire::receive(init_socket, &mut [0; ToInit::MAX_BYTES]) {
        Ok(Received { message, .. }) => Ok(message),
        Err(WireError::Closed) => Err(LaunchError::new(step, "the supervisor went away")),
        Err(error) => Err(error).during(step),
    }
}

fn hear(report: &OwnedFd) -> Result<Received<FromCommand>> {
    match palisade_wire::receive(report, &mut [0; FromCommand::MAX_BYTES]) {
        Err(WireError::Closed) => Err(died_early()),
        received => received.during("waiting for the command's process"),
    }
}

/// Why the command's process gave up before it was told to go on.
fn failure(message: FromCommand) -> LaunchError {
    match message {
        FromCommand::PassOn(FromInit::Failed(error)) => error,
        _ => died_early(),
    }
}

fn died_early() -> LaunchError {
    LaunchError::new(STEP, "its process died before it was told to go on")
}

fn take_identity(launch: &Launch<'_>, identity: &Identity) -> Result<()> {
    const STEP: &str = "taking the sandbox's identity";
    match identity.mapping {
        IdMapping::OwnId => {
            // Without this an unprivileged process may not write its gid map (CVE-2014-8989).
            creds::deny_setgroups(None).during(STEP)?;
            let line = |inside, outside| [MapLine { inside, outside, count: 1 }];
            let gids = line(identity.inside_gid, identity.host_gid);
            creds::write_map(None, IdKind::Gid, &gids).during(STEP)?;
            let uids = line(identity.inside_uid, identity.host_uid);
            creds::write_map(None, IdKind::Uid, &uids).during(STEP)
        }
        IdMapping::ByRoot => {
            if next_order(&launch.init_socket, STEP)? != ToInit::Mapped {
                return Err(LaunchError::new(STEP, "the supervisor went away"));
            }
            // Groups first: one of root's would still open files that are root's group's.
            creds::setgroups_empty().during(STEP)?;
            creds::setresgid(identity.inside_gid).during(STEP)?;
            creds::setresuid(identity.inside_uid).during(STEP)?;
            // A change of ids makes a process undumpable, and then its own /proc files are root's.
            creds::set_dumpable(true).during(STEP)
        }
    }
}

fn shift_clocks(offset: Option<i64>) -> Result<()> {
    const STEP: &str = "shifting the clocks";
    let Some(offset) = offset else { return Ok(()) };
    unshare(CloneFlags::NEWTIME).during(STEP)?;
    timens::write_timens_offsets(offset, offset).during(STEP)
}

/// A terminal, and the devpts it belongs to, which is yet to be put in its place. A slave of the
/// host's would be "not a tty" inside, and its number could be guessed at (CVE-2025-52565).
fn open_terminal(launch: &Launch<'_>) -> Result<(Option<OwnedFd>, Option<OwnedFd>)> {
    const STEP: &str = "opening a terminal inside";
    let Some(size) = launch.pty else { return Ok((None, None)) };
    let (devpts, master) = match launch.plan.sandbox.confinement {
        Confinement::Namespaces(_) => {
            let devpts = mounts::new_devpts()?;
            let master = tty::open_ptmx_in(&devpts, Path::new("ptmx")).during(STEP)?;
            (Some(devpts), master)
        }
        Confinement::NoNamespaces | Confinement::None => {
            (None, tty::open_ptmx_in(CWD, Path::new("/dev/ptmx")).during(STEP)?)
        }
    };
    let slave = tty::open_slave(&master).during(STEP)?;
    tty::set_window_size(&slave, size).during(STEP)?;
    // Pid 1 leads the session, the command's group is another one in it: so the command is no
    // orphan to the kernel, and Ctrl-Z stops it.
    if launch.plan.sandbox.hardening.own_session {
        tty::set_controlling_tty(&slave).during(STEP)?;
    }
    palisade_wire::send(&launch.init_socket, &FromInit::Terminal, &[master.as_fd()])
        .during(STEP)?;
    Ok((devpts, Some(slave)))
}
