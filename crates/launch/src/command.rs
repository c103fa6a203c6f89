//! The last steps of the process that becomes the command, from the fork of pid 1 to `exec`.
//!
//! While pid 1 builds the mount view, this process sets up the network, leaves the old root and drops
//! privileges. Once pid 1 is ready: streams, working directory, Landlock, limits, self-check, filter. The order
//! matters; each step says why. No descriptor of the caller may stay open.

use crate::error::{During, LaunchError, Result};
use crate::exec;
use crate::filter;
use crate::inherited::Inherited;
use crate::landlock;
use crate::message::{Checked, FromCommand, FromInit, ToCommand};
use crate::mounts::detach_old_root;
use crate::network;
use crate::selfcheck::{self, ProbeStage, Targets};
use crate::streams::Chosen;
use palisade_bpf::{Arch, CallAnswer, FilterSpec, SeccompData, table};
use palisade_plan::model::{Confinement, Namespaced, Plan, Resource};
use palisade_sys::clone::{CloneFlags, unshare};
use palisade_sys::fdpass::send_with_fds;
use palisade_sys::proc::{self, ResourceLimit, sig};
use palisade_sys::{At as _, Mode, creds, tty};
use palisade_wire::{Received, WireMessage as _};
use rustix::net::SendFlags;
use std::cell::RefCell;
use std::convert::Infallible;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Instant;

/// What the command process starts from.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) chosen: &'a Chosen,
    pub(crate) terminal: Option<BorrowedFd<'a>>,
    pub(crate) targets: Targets,
    pub(crate) inherited: &'a Inherited,
    /// To and from pid 1; closes by itself when exec succeeds.
    pub(crate) report: OwnedFd,
    /// To the broker; closes by itself as well.
    pub(crate) handshake: Option<BorrowedFd<'a>>,
    /// To the spawner, where commands come from it.
    pub(crate) spawner: Option<BorrowedFd<'a>>,
    pub(crate) umask: Mode,
    /// The host's `/proc/sys/net`, until it is used.
    pub(crate) network_settings: RefCell<Option<OwnedFd>>,
}

/// Ends in `exec`, or in a report to pid 1.
pub(crate) fn become_command(start: &Start<'_>) -> ! {
    let Err(error) = attempt(start);
    send(start, FromInit::Failed(error));
    proc::exit_now(125)
}

fn attempt(start: &Start<'_>) -> Result<Infallible> {
    let plan = start.plan;
    // Steps that do not need the view, while pid 1 builds it.
    proc::setpgid(None, None).during("making the command's process group")?;
    rustix::process::umask(start.umask);
    // Rust's runtime ignores it, and exec(2) would keep that. What the caller ignores stays ignored.
    proc::reset_action(sig::SIGPIPE);
    let (argv, env) = exec::c_strings(&plan.command)?;
    if let Confinement::Namespaces(inside) = &plan.sandbox.confinement {
        make_network(start, inside)?;
        wait_for_pid_1(start, ToCommand::RootChanged);
        detach_old_root()?;
        tell_pid_1(start, &FromCommand::OldRootGone, &[])?;
    }
    if let Some(spawner) = start.spawner {
        // Commands are started by the spawner, which enters the sandbox through this process. Our part is done.
        wait_for_pid_1(start, ToCommand::Go);
        admit_spawner(spawner)?;
        proc::exit_now(0);
    }
    // Privileges before Landlock: securebits need a capability, and Landlock needs no_new_privs.
    drop_privileges(plan)?;
    let program = filter::of_plan(plan)?;
    call_broker(start)?;
    wait_for_pid_1(start, ToCommand::Go);
    // In the foreground of its terminal.
    if let Some(terminal) = start.terminal.filter(|_| plan.sandbox.hardening.own_session) {
        tty::tcsetpgrp(terminal, rustix::process::getpid()).during("taking the terminal")?;
    }
    start.chosen.connect(start.terminal)?;
    // With the command's own rights: a directory it may not enter cannot be its working directory.
    enter_directory(&plan.command.cwd)?;
    if let Some(rules) = &plan.sandbox.landlock {
        landlock::restrict(rules)?;
    }
    // Our own descriptors and those of Landlock's rules would count.
    start.inherited.give_back().during("giving the command the caller's limits")?;
    limit(plan)?;
    if plan.sandbox.hardening.close_descriptors {
        // Marked, not closed: the report to pid 1 is still needed until exec.
        proc::close_range_cloexec(3, i32::MAX).during("closing descriptors")?;
    }
    let begun = Instant::now();
    let mut observations =
        selfcheck::run(&plan.sandbox.self_check, ProbeStage::BeforeFilter, start.targets)?;
    let mut took = begun.elapsed();
    proc::unblock_all().during("unblocking signals")?;
    let seen = exec::visible(&plan.command);
    if let (Some(seccomp), Some(program)) = (&plan.sandbox.seccomp, &program) {
        let listener = filter::install_with_listener(program.instructions())?;
        hand_over(start, &seccomp.filter, &listener)?;
    }
    let begun = Instant::now();
    observations.extend(selfcheck::run(
        &plan.sandbox.self_check,
        ProbeStage::AfterFilter,
        start.targets,
    )?);
    took += begun.elapsed();
    send(start, FromInit::Checked(Checked { took, observations }));
    Err(exec::exec(&plan.command, seen.as_deref(), &argv, &env))
}

/// By write(2): the one way to send that even a narrow custom filter leaves open.
fn send(start: &Start<'_>, message: FromInit) {
    // The texts are truncated, so the report always fits. If it did not, pid 1 would get a message it cannot
    // decode, never silence, which it takes for a successful exec.
    let packet = palisade_wire::encode(&FromCommand::PassOn(message)).unwrap_or(vec![u8::MAX]);
    // If pid 1 is gone, nobody can be told, and this process ends with it.
    let _ = rustix::io::write(&start.report, &packet);
}

/// Lets the broker enter: our root is the sandbox's by now, not the host's. The broker sets itself up while we
/// wait for the view to be complete.
fn call_broker(start: &Start<'_>) -> Result<()> {
    let Some(handshake) = start.handshake else { return Ok(()) };
    rustix::io::write(handshake, b"?").call("write").during("calling the broker").map(drop)
}

/// Says that the sandbox can be entered through this process, and waits until that has happened.
fn admit_spawner(spawner: BorrowedFd<'_>) -> Result<()> {
    const STEP: &str = "waiting for the spawner";
    rustix::io::write(spawner, b"?").call("write").during(STEP)?;
    match rustix::io::read(spawner, &mut [0_u8; 1]) {
        Ok(1) => Ok(()),
        // The other side reports the reason.
        _ => Err(LaunchError::new(STEP, "the spawner is gone")),
    }
}

/// Gives the listener to the broker. Our own copy closes at exec, so we wait until the broker has fetched it.
/// That takes only write(2) and read(2), which even a narrow custom filter allows.
fn hand_over(start: &Start<'_>, filter: &FilterSpec, listener: &OwnedFd) -> Result<()> {
    let handshake = start.handshake.ok_or_else(broker_is_gone)?;
    if may_send(filter, handshake) {
        return send_with_fds(handshake, b"!", &[listener.as_fd()]).map_err(|_| broker_is_gone());
    }
    hand_over_by_number(handshake, listener)
}

/// The broker fetches the listener from this process and confirms it. Until then the process must stay
/// accessible.
pub(crate) fn hand_over_by_number(handshake: BorrowedFd<'_>, listener: &OwnedFd) -> Result<()> {
    rustix::io::write(handshake, &listener.as_raw_fd().to_ne_bytes())
        .map_err(|_| broker_is_gone())?;
    match rustix::io::read(handshake, &mut [0_u8; 1]) {
        Ok(1) => Ok(()),
        _ => Err(broker_is_gone()),
    }
}

pub(crate) fn broker_is_gone() -> LaunchError {
    LaunchError::new("handing the filter's listener to the broker", "the broker is gone")
}

/// Whether the filter that we are under by now lets us send a descriptor.
fn may_send(filter: &FilterSpec, socket: BorrowedFd<'_>) -> bool {
    let arch = Arch::native();
    let (Some(nr), Ok(number)) =
        (table::number(arch, "sendmsg"), u64::try_from(socket.as_raw_fd()))
    else {
        return false;
    };
    let args = [number, 0, u64::from(SendFlags::NOSIGNAL.bits()), 0, 0, 0];
    let call = SeccompData { nr, arch: arch.audit_value(), instruction_pointer: 0, args };
    filter.answer(&call) == CallAnswer::Allow
}

/// The network namespace, with its loopback up, for us and for pid 1 to follow into.
fn make_network(start: &Start<'_>, inside: &Namespaced) -> Result<()> {
    if !inside.namespaces.net {
        return Ok(());
    }
    unshare(CloneFlags::NEWNET).during("creating the network namespace")?;
    if let Some(directory) = start.network_settings.take() {
        network::apply_settings(&directory, &inside.network_settings);
    }
    if inside.loopback
        && let Some(made) = network::set_up(start.plan)?
    {
        let message = FromCommand::PassOn(FromInit::Network(made.handed()));
        tell_pid_1(start, &message, &made.descriptors())?;
    }
    tell_pid_1(start, &FromCommand::NetworkReady, &[])
}

fn tell_pid_1(
    start: &Start<'_>,
    message: &FromCommand,
    descriptors: &[BorrowedFd<'_>],
) -> Result<()> {
    palisade_wire::send(&start.report, message, descriptors).during("talking to pid 1")
}

/// Until pid 1 says so.
fn wait_for_pid_1(start: &Start<'_>, expected: ToCommand) {
    match palisade_wire::receive::<ToCommand>(&start.report, &mut [0; ToCommand::MAX_BYTES]) {
        Ok(Received { message, .. }) if message == expected => {}
        // Pid 1 has failed and reported why.
        _ => proc::exit_now(125),
    }
}

pub(crate) fn set_limit(resource: Resource, value: u64) -> Result<()> {
    let resource = match resource {
        Resource::Core => proc::Resource::Core,
        Resource::FileSize => proc::Resource::Fsize,
        Resource::OpenFiles => proc::Resource::Nofile,
        Resource::Processes => proc::Resource::Nproc,
        Resource::CpuSeconds => proc::Resource::Cpu,
    };
    // An ordinary user's process can have no more than its parent, whose limit holds anyway.
    let own = (resource == proc::Resource::Nproc).then(|| proc::get_rlimit(resource).hard);
    let value = own.flatten().map_or(value, |own| value.min(own));
    let limit = ResourceLimit { soft: Some(value), hard: Some(value) };
    proc::set_rlimit(resource, limit).during("setting a limit")
}

fn limit(plan: &Plan) -> Result<()> {
    for rlimit in &plan.sandbox.rlimits {
        set_limit(rlimit.resource, rlimit.value)?;
    }
    if let Some(cpus) = &plan.sandbox.affinity {
        proc::run_only_on(cpus).during("setting the CPUs to run on")?;
    }
    Ok(())
}

fn drop_privileges(plan: &Plan) -> Result<()> {
    const STEP: &str = "dropping privileges";
    if plan.sandbox.hardening.drop_capabilities {
        match plan.sandbox.confinement {
            Confinement::Namespaces(_) => drop_capabilities_inside()?,
            Confinement::NoNamespaces | Confinement::None => check_that_no_capability_is_left()?,
        }
    }
    #[cfg(feature = "layers-off")]
    if !plan.sandbox.hardening.drop_capabilities {
        crate::layers_off::keep_capabilities()?;
    }
    if plan.sandbox.hardening.no_new_privs {
        creds::set_no_new_privs().during(STEP)?;
    }
    Ok(())
}

/// In the sandbox's user namespace, for good.
pub(crate) fn drop_capabilities_inside() -> Result<()> {
    const STEP: &str = "dropping privileges";
    creds::lock_securebits().during(STEP)?;
    creds::drop_all_capabilities().during(STEP)?;
    check_that_no_capability_is_left()
}

fn check_that_no_capability_is_left() -> Result<()> {
    const STEP: &str = "dropping privileges";
    let held = creds::capability_sets().during(STEP)?;
    if held.effective | held.permitted | held.inheritable != 0 {
        return Err(LaunchError::new(STEP, "capabilities are left")
            .with_fix("start as an ordinary user, or with user namespaces"));
    }
    Ok(())
}

fn enter_directory(cwd: &Path) -> Result<()> {
    rustix::process::chdir(cwd)
        .at("chdir", cwd)
        .during("entering the working directory")
        .map_err(|error| error.with_fix("choose another one with --cwd, or grant it"))
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
