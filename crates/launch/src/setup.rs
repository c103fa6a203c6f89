//! The child's side of a launch: from the fork to pid 1 waiting and the command running.
//!
//! The steps are numbered in the order they happen; each either succeeds or ends the run.

use crate::command;
use crate::control::{FromInit, ToInit};
use crate::error::{During, LaunchError};
use crate::init::{self, Init};
use crate::mounts::Builder;
use crate::selfcheck::Targets;
use crate::sources::Prepared;
use crate::streams::Chosen;
use palisade_plan::model::{Confinement, Identity, Mapping, Namespaced, Plan};
use palisade_sys::clone::{CloneFlags, Forked, fork, unshare};
use palisade_sys::creds::{self, IdKind, MapLine};
use palisade_sys::fdpass::{recv_with_fds, send_with_fds, socketpair};
use palisade_sys::proc::{self, sig};
use palisade_sys::{Mode, net, timens, tty};
use rustix::termios::Winsize;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Everything the child needs, inherited by the fork.
#[derive(Debug)]
pub(crate) struct Launch<'plan> {
    pub(crate) plan: &'plan Plan,
    pub(crate) control: OwnedFd,
    pub(crate) chosen: Chosen,
    pub(crate) pty: Option<Winsize>,
    pub(crate) targets: Targets,
    pub(crate) prepared: Option<Prepared>,
}

/// Sets everything up and stays as pid 1.
pub(crate) fn child(mut launch: Launch<'_>) -> ! {
    match set_up(&mut launch) {
        Ok(init) => init.run(&launch.control),
        Err(error) => {
            init::tell(&launch.control, &FromInit::Failed(error));
            proc::exit_now(125)
        }
    }
}

fn set_up(launch: &mut Launch<'_>) -> Result<Init, LaunchError> {
    let plan = launch.plan;
    // Set-up creates names with exact modes; the command gets the caller's umask back.
    let caller_umask = rustix::process::umask(Mode::empty());
    // Inherited from the supervisor, and undone: an undumpable process does not own its own /proc
    // files, among them the id maps.
    creds::set_dumpable(true).during("opening the child to itself")?;
    match &plan.confinement {
        Confinement::Namespaces(inside) => {
            // 1. Who we are. Changing ids clears the parent-death signal, so it comes after.
            take_identity(launch, &inside.identity)?;
            creds::set_pdeathsig(sig::SIGKILL)
                .during("tying the sandbox's life to the supervisor's")?;
            // 2. The view.
            let mut view = Builder::new(launch.prepared.take(), plan.hardening)?;
            view.build(&inside.mounts)?;
            view.enter()?;
            // 3. The rest of the namespaces.
            enter_namespaces(inside)?;
        }
        // Without a pid namespace our own death would not take the others along: pid 1's stand-in
        // stays alive when the supervisor dies, sees its socket close and ends them all.
        Confinement::NoNamespaces | Confinement::None => {
            creds::set_child_subreaper().during("adopting the command's orphans")?;
        }
    }
    // 4. Away from the caller's terminal, towards our own.
    if plan.hardening.own_session {
        proc::setsid().during("leaving the caller's session")?;
    }
    let terminal = open_terminal(launch)?;
    // 5. From here on nobody inside may look into this process or trace it.
    if plan.hardening.init_undumpable {
        creds::set_dumpable(false).during("closing pid 1 to inspection")?;
    }
    // 6. The command.
    proc::block_signals(&[sig::SIGCHLD, sig::SIGTTOU]).during("blocking signals")?;
    let (report, command_report) = socketpair().during("starting the command")?;
    match fork().during("starting the command")? {
        Forked::Child => {
            drop(report);
            command::become_command(&command::Start {
                plan,
                chosen: &launch.chosen,
                terminal: terminal.as_ref().map(AsFd::as_fd),
                targets: launch.targets,
                report: command_report,
                umask: caller_umask,
            })
        }
        Forked::Parent { pid, pidfd } => {
            // Before pid 1 closes every descriptor it has no use for: dropped later, its number
            // would be closed a second time.
            drop(pidfd);
            drop(command_report);
            Init::take_over(plan, pid, report, terminal, launch.control.as_fd())
        }
    }
}

fn take_identity(launch: &Launch<'_>, identity: &Identity) -> Result<(), LaunchError> {
    const STEP: &str = "taking the sandbox's identity";
    match identity.mapping {
        Mapping::OwnId => {
            // Without this an unprivileged process may not write its gid map (CVE-2014-8989).
            creds::deny_setgroups(None).during(STEP)?;
            let line = |inside, outside| [MapLine { inside, outside, count: 1 }];
            let gids = line(identity.inside_gid, identity.host_gid);
            creds::write_map(None, IdKind::Gid, &gids).during(STEP)?;
            let uids = line(identity.inside_uid, identity.host_uid);
            creds::write_map(None, IdKind::Uid, &uids).during(STEP)
        }
        Mapping::ByRoot => {
            let mut packet = [0; 64];
            let (length, _) = recv_with_fds(&launch.control, &mut packet).during(STEP)?;
            if ToInit::decode(&packet[..length]) != Some(ToInit::Mapped) {
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

fn enter_namespaces(inside: &Namespaced) -> Result<(), LaunchError> {
    if let Some(hostname) = &inside.hostname {
        proc::sethostname(hostname).during("setting the host name")?;
    }
    if inside.loopback {
        net::loopback_up().during("bringing up the loopback interface")?;
    }
    if let Some(offset) = inside.namespaces.time_offset {
        const STEP: &str = "shifting the clocks";
        unshare(CloneFlags::NEWTIME).during(STEP)?;
        timens::write_timens_offsets(offset, offset).during(STEP)?;
    }
    Ok(())
}

/// A terminal of the sandbox's own devpts. A slave of the host's would be "not a tty" inside, and
/// its number could be guessed at (CVE-2025-52565).
fn open_terminal(launch: &Launch<'_>) -> Result<Option<OwnedFd>, LaunchError> {
    const STEP: &str = "opening a terminal inside";
    let Some(size) = launch.pty else { return Ok(None) };
    let ptmx = match launch.plan.confinement {
        Confinement::Namespaces(_) => "/dev/pts/ptmx",
        Confinement::NoNamespaces | Confinement::None => "/dev/ptmx",
    };
    let master = tty::open_ptmx_in(Path::new(ptmx)).during(STEP)?;
    let slave = tty::open_slave(&master).during(STEP)?;
    tty::set_window_size(&slave, size).during(STEP)?;
    // Pid 1 leads the session, the command's group is another one in it: so the command is no
    // orphan to the kernel, and Ctrl-Z stops it.
    tty::set_controlling_tty(&slave).during(STEP)?;
    send_with_fds(&launch.control, &FromInit::Terminal.encode(), &[master.as_fd()]).during(STEP)?;
    Ok(Some(slave))
}
