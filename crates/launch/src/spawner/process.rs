//! The spawner's own process: it enters the sandbox, applies the restrictions, then starts one command after
//! another.
//!
//! The order is that of a command's own last steps (`command.rs`); where it differs, the step says why. It must
//! never make a call that needs a path once the filter is in force: the broker cannot inspect an undumpable
//! process of the host, and refuses what it cannot judge.

use super::config::{EncodedLandlock, EncodedProbe, Given, STEP, SpawnerConfig};
use super::message::SpawnerEvent;
use super::serve::Server;
use crate::command::{broker_is_gone, drop_capabilities_inside, hand_over_by_number};
use crate::error::{During, LaunchError, Result};
use crate::filter;
use crate::landlock;
use crate::message::Checked;
use crate::selfcheck::{self, Observation, ProbeStage, Targets};
use palisade_bpf::Insn;
use palisade_plan::model::Probe;
use palisade_sys::clone::{Forked, SingleThreaded, fork_by_clone};
use palisade_sys::fdpass::{recv_from_process, socketpair};
use palisade_sys::proc::{self, sig};
use palisade_sys::{At as _, Errno, Mode, OFlags, Pid, creds, other};
use palisade_wire::{Received, WireMessage};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Descriptors of the sandbox for the supervisor.
struct Opened {
    user_namespace: OwnedFd,
    mount_namespace: OwnedFd,
    transaction: Option<OwnedFd>,
    terminals: Option<OwnedFd>,
}

pub(super) fn run(given: Given) -> ! {
    // For failures before the server exists.
    let Ok(socket) = given.socket.try_clone() else { proc::exit_now(1) };
    match set_up(given) {
        Ok(Some(server)) => {
            drop(socket);
            server.serve()
        }
        // The launch failed, and the failing process has reported why.
        Ok(None) => proc::exit_now(0),
        Err(error) => {
            // If the supervisor is gone, this process soon ends too.
            let _ = palisade_wire::send(socket, &SpawnerEvent::Failed(error), &[]);
            // The report says more than an exit code that looks like a death.
            proc::exit_now(0)
        }
    }
}

fn set_up(given: Given) -> Result<Option<Server>> {
    let Given { mut config, socket, setup, broker, groups } = given;
    // For people only.
    let _ = proc::set_name(c"sandbox-spawner");
    let supervisor = Pid::from_raw(config.supervisor)
        .ok_or_else(|| LaunchError::new(STEP, "it has no supervisor"))?;
    let alone = SingleThreaded::check().during(STEP)?;
    // A fork must never be in the host's session: its terminal could be opened, and its process group
    // signalled.
    proc::setsid().during(STEP)?;
    // 1. Enter all namespaces as soon as the process that made them is ready, with the command's identity.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let host_proc =
        rustix::fs::open("/proc", flags, Mode::empty()).call("open /proc").during(STEP)?;
    if !enter(config.namespaces, &setup)? {
        return Ok(None);
    }
    drop(setup);
    if let Some((uid, gid)) = config.given_ids {
        // Groups first: one of root's would still open files of root's group.
        creds::setgroups_empty().during(STEP)?;
        creds::setresgid(gid).during(STEP)?;
        creds::setresuid(uid).during(STEP)?;
    }
    // Changing credentials cleared the parent-death signal.
    creds::end_with_parent(supervisor).during(STEP)?;
    // It also made us inaccessible to the broker, which enters the sandbox through us. We have no pid inside.
    creds::set_dumpable(true).during(STEP)?;
    rustix::process::chdir("/").call("chdir").during(STEP)?;
    let opened = open_inside(&host_proc, config.transaction.take())?;
    drop(host_proc);
    // 2. Privileges before Landlock: securebits need a capability, and Landlock needs no_new_privs.
    drop_privileges(&config)?;
    if let Some(broker) = &broker {
        rustix::io::write(broker, b"?").call("write").during("calling the broker")?;
    }
    proc::block_signals(&[sig::SIGCHLD]).during(STEP)?;
    let signals = proc::signalfd(&[sig::SIGCHLD]).during(STEP)?;
    // 3. Landlock, once: every command is in the same domain, and may signal and trace the others.
    if let Some(EncodedLandlock(rules)) = config.landlock.take() {
        landlock::restrict(&rules)?;
    }
    // 4. The self-check, in processes inside the pid namespace, where this one is not. Only the canary is tried by this one: of a
    // process inside, the gate's file system would report an attempt to break out.
    let probes = config.probes.drain(..).map(|EncodedProbe(probe)| probe);
    let (canary, probes): (Vec<_>, Vec<_>) =
        probes.partition(|probe| matches!(probe, Probe::ReadCanary { .. }));
    let targets = Targets { supervisor, port: config.port };
    let observations = selfcheck::run(&canary, ProbeStage::BeforeFilter, targets)?;
    let mut checked = Checked { observations, ..Checked::default() };
    check(&alone, &probes, (ProbeStage::BeforeFilter, targets), &mut checked)?;
    if let Some(cpus) = &config.affinity {
        // Before the filter, which keeps it.
        proc::run_only_on(cpus).during("setting the CPUs to run on")?;
    }
    // 5. The filter, and its listener to the broker.
    if let Some(program) = config.filter.take() {
        let program = program.into_iter().map(|(code, jt, jf, k)| Insn { code, jt, jf, k });
        let listener = filter::install_with_listener(&program.collect::<Vec<_>>())?;
        let broker = broker.as_ref().ok_or_else(broker_is_gone)?;
        hand_over_by_number(broker.as_fd(), &listener)?;
    }
    drop(broker);
    if config.hardening.init_undumpable {
        creds::set_dumpable(false).during("closing the spawner to inspection")?;
    }
    check(&alone, &probes, (ProbeStage::AfterFilter, targets), &mut checked)?;
    let mut inside = vec![opened.user_namespace.as_fd(), opened.mount_namespace.as_fd()];
    inside.extend(opened.transaction.as_ref().map(|project| project.as_fd()));
    inside.extend(opened.terminals.as_ref().map(|terminals| terminals.as_fd()));
    palisade_wire::send(&socket, &SpawnerEvent::Ready(checked), &inside).during(STEP)?;
    Ok(Some(Server::new(config, socket, groups, signals, alone)))
}

/// Through the process that made them, which waits for this and then exits. False if it has ended before.
fn enter(namespaces: u32, setup: &OwnedFd) -> Result<bool> {
    const STEP: &str = "entering the sandbox's namespaces";
    let (_, sender) = recv_from_process(setup, &mut [0]).during(STEP)?;
    let Some(maker) = sender else { return Ok(false) };
    let maker = match other::pidfd_of(maker) {
        Err(error) if error.errno == Errno::SRCH => return Ok(false),
        maker => maker.during(STEP)?,
    };
    // The pid namespace is that of our children: our own stays the host's.
    let flags = ThreadNameSpaceType::from_bits_retain(namespaces);
    // All by one call (setns(2) with a pidfd, 5.8): the user namespace first, for the rights over the others.
    move_into_thread_name_spaces(maker.as_fd(), flags).call("setns").during(STEP)?;
    rustix::io::write(setup, b"!").call("write").during(STEP)?;
    Ok(true)
}

/// Through the host's `/proc`: the sandbox's own does not list us.
fn open_inside(host_proc: &OwnedFd, transaction: Option<Vec<u8>>) -> Result<Opened> {
    let open = |name: &str| {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::openat(host_proc, name, flags, Mode::empty())
            .at("open", Path::new(name))
            .during(STEP)
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open_transaction = |path: Vec<u8>| {
        let path = PathBuf::from(OsString::from_vec(path));
        rustix::fs::open(&path, flags | OFlags::NOFOLLOW, Mode::empty())
            .at("open", &path)
            .during(STEP)
    };
    Ok(Opened {
        user_namespace: open("self/ns/user")?,
        mount_namespace: open("self/ns/mnt")?,
        transaction: transaction.map(open_transaction).transpose()?,
        // A view without it has no terminals.
        terminals: rustix::fs::open("/dev/pts", flags, Mode::empty()).ok(),
    })
}

fn drop_privileges(config: &SpawnerConfig) -> Result<()> {
    if config.hardening.drop_capabilities {
        drop_capabilities_inside()?;
    }
    #[cfg(feature = "layers-off")]
    if !config.hardening.drop_capabilities {
        crate::layers_off::keep_capabilities()?;
    }
    if config.hardening.no_new_privs {
        creds::set_no_new_privs().during("dropping privileges")?;
    }
    Ok(())
}

/// Results of a process that made the self-check's attempts.
#[derive(Debug, Serialize, Deserialize)]
enum CheckResult {
    Passed(Vec<Observation>),
    Failed(LaunchError),
}

impl WireMessage for CheckResult {
    const MAX_BYTES: usize = 16 * 1024;
}

/// Makes the attempts of this stage in a process that is set up like every command.
fn check(
    alone: &SingleThreaded,
    probes: &[Probe],
    (moment, targets): (ProbeStage, Targets),
    checked: &mut Checked,
) -> Result<()> {
    const STEP: &str = "checking the walls from inside";
    let begun = Instant::now();
    let (ours, theirs) = socketpair().during(STEP)?;
    match fork_by_clone(alone).during(STEP)? {
        Forked::Child => {
            drop(ours);
            // The broker inspects the caller of a notified call.
            let result = creds::set_dumpable(true)
                .during(STEP)
                .and_then(|()| selfcheck::run(probes, moment, targets))
                .map_or_else(CheckResult::Failed, CheckResult::Passed);
            let sent = palisade_wire::send(&theirs, &result, &[]);
            proc::exit_now(i32::from(sent.is_err()))
        }
        Forked::Parent { pid, .. } => {
            drop(theirs);
            let received = palisade_wire::receive(&ours, &mut [0; CheckResult::MAX_BYTES]);
            proc::wait_pid_rusage(pid).during(STEP)?;
            match received.during(STEP)? {
                Received { message: CheckResult::Passed(observations), .. } => {
                    checked.observations.extend(observations);
                }
                Received { message: CheckResult::Failed(error), .. } => return Err(error),
            }
        }
    }
    checked.took += begun.elapsed();
    Ok(())
}
