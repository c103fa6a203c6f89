//! The supervisor's side of a launch: fork into the namespaces, write the id maps, hold the other end of the
//! sockets.
//!
//! Runs in a single-threaded process and stays outside; the child's side is in `setup`.

mod processes;

use crate::broker::{self, Broker};
use crate::egress;
use crate::error::{During, LaunchError, Result};
use crate::fuse_root::GroundStore;
use crate::gatefs::GateFs;
use crate::helper::Helpers;
use crate::home::PrivateHome;
use crate::idmap::OwnerMaps;
use crate::inherited::Inherited;
use crate::init::children as children_of_ours;
use crate::message::{FromInit, ToInit};
use crate::nat::Nat;
use crate::network::InsideNetwork;
use crate::selfcheck::Targets;
use crate::setup::{self, Launch};
use crate::sources;
use crate::spawner::Spawner;
use crate::streams::{Chosen, OutputPipe, Streams};
use palisade_broker::{BrokerMessage, TreeLocks};
use palisade_cgroup::{Birth, RunGroup};
use palisade_egress::Published;
use palisade_gate::AccessReply;
use palisade_gatefs::{GateFsMessage, ToGateFs};
use palisade_plan::model::{
    Confinement, Egress, Gate, IdMapping, Identity, Namespaced, Namespaces, NatHelper, Owner, Plan,
    Probe, SandboxLifetime,
};
use palisade_sys::clone::{CloneFlags, Forked, clone3};
use palisade_sys::creds::{self, IdKind, MapLine, write_map};
use palisade_sys::fdpass::socketpair;
use palisade_sys::proc::{self, PollFd, PollFlags, Status, sig};
use palisade_sys::{Errno, Pid, fault, net};
use palisade_wire::{Received, WireError, WireMessage as _};
use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

/// How long the stand-in for pid 1 may take to end all processes, where there is no pid namespace.
pub const TO_END_EVERYBODY: Duration = Duration::from_secs(2);

/// How often to look for children that the spawner left behind, while the sandbox ends.
const ORPHAN_CHECK: Duration = Duration::from_millis(2);

/// A running sandbox.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
    pidfd: OwnedFd,
    init_socket: OwnedFd,
    pty: Option<OwnedFd>,
    private_home: Option<PrivateHome>,
    network_counters: Vec<OwnedFd>,
    outputs: Vec<OutputPipe>,
    /// Targets of the self-check; closed when the command has started.
    listener: Option<OwnedFd>,
    helpers: Helpers,
    broker: Option<Broker>,
    /// Where a file system notices the use of paths.
    gatefs: Option<GateFs>,
    grounds: Vec<GroundStore>,
    own_files: Vec<(PathBuf, OwnedFd)>,
    /// The spawner, in a sandbox that outlives its commands.
    spawner: Option<Spawner>,
    group: Option<RunGroup>,
    network: Option<InsideNetwork>,
    /// Published ports of the host, until the network is taken.
    published: Vec<Published>,
    /// Not started yet.
    nat_plan: Option<(NatHelper, Option<Identity>)>,
    nat: Option<Nat>,
    /// Whether all processes inside end with pid 1.
    pid_namespace: bool,
    /// Children of this process that are not part of the run.
    strangers: Vec<Pid>,
    /// Whether the stand-in for pid 1 was told to end all processes.
    told_to_end: Cell<bool>,
    reaped: bool,
}

/// What the run used, all its processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunUsage {
    pub user: Duration,
    pub system: Duration,
    /// Of the largest single process.
    pub max_rss_bytes: u64,
}

/// Starts what the plan says. `locks` are for the broker, and open nowhere else (they count by open file). The
/// caller must be single-threaded, and becomes undumpable.
pub fn launch(
    plan: &Plan,
    streams: &Streams,
    inherited: &Inherited,
    locks: TreeLocks,
) -> Result<Running> {
    const STEP: &str = "preparing the launch";
    // A process that inherited an ignored SIGCHLD could not wait for its children.
    proc::reset_action(sig::SIGCHLD);
    let (init_socket, inner) = socketpair().during(STEP)?;
    let listener = network_target(plan)?;
    let published = egress::listen_for(&plan.sandbox.publish)?;
    let targets = Targets {
        supervisor: rustix::process::getpid(),
        port: listener.as_ref().map(|(_, port)| *port),
    };
    let mut chosen = match plan.sandbox.lifetime {
        SandboxLifetime::OneCommand => {
            Chosen::choose(streams, plan.sandbox.hardening.no_file_streams)?
        }
        // Each command brings its own streams.
        SandboxLifetime::UntilEnded => Chosen::none(),
    };
    let outputs = match plan.relays_output() {
        true => chosen.put_pipes_between()?,
        false => Vec::new(),
    };
    let ends = broker::Ends::for_plan(plan)?;
    let prepared = match &plan.sandbox.confinement {
        Confinement::Namespaces(inside) if inside.identity.mapping == IdMapping::ByRoot => {
            chosen.give_pipes_to(host_owner(&inside.identity))?;
            let maps = OwnerMaps::for_plan(&inside.mounts, host_owner(&inside.identity))?;
            Some(sources::prepare(inside, plan.sandbox.hardening, &maps)?)
        }
        _ => None,
    };
    if plan.sandbox.hardening.init_undumpable {
        // Before the fork: afterwards the command could be faster.
        creds::set_dumpable(false).during("closing the supervisor to inspection")?;
    }
    let pid_namespace = clone_flags(plan).contains(CloneFlags::NEWPID);
    let strangers = children_of_ours();
    if !pid_namespace || plan.sandbox.lifetime == SandboxLifetime::UntilEnded {
        // If the stand-in for pid 1 or the spawner dies, its orphans become our children.
        creds::set_child_subreaper().during("adopting what pid 1's stand-in may leave")?;
    }
    // Before the fork: our own group can be divided only while we are alone in it.
    let group = plan
        .sandbox
        .group
        .as_ref()
        .map(|group| RunGroup::create(group, &plan.session))
        .transpose()
        .map_err(|error| LaunchError::new("making the control group", error.to_string()))?;
    fault::point("control group made", "");
    // Before the sandbox, not in parallel with it, where it would take a processor from one of the two
    // processes that set the sandbox up.
    let helpers = Helpers::default();
    let (broker, handshake) = match (ends, &plan.sandbox.seccomp) {
        (Some(ends), Some(seccomp)) => {
            let (broker, handshake) = Broker::start(&helpers, plan, seccomp, ends, locks)?;
            (Some(broker), Some(handshake))
        }
        _ => (None, None),
    };
    let (gatefs, gatefs_setup) = GateFs::start(&helpers, plan, group.as_ref())?.unzip();
    let root_owner = match &plan.sandbox.confinement {
        Confinement::Namespaces(inside) if inside.identity.mapping == IdMapping::ByRoot => {
            Some(host_owner(&inside.identity))
        }
        _ => None,
    };
    let (spawner, handshake, spawner_end) = match Spawner::start(
        &helpers,
        plan,
        (inherited, targets, root_owner),
        group.as_ref(),
        handshake.as_ref().map(AsFd::as_fd),
    )? {
        // From now on the handshake belongs to the spawner.
        Some((spawner, setup)) => (Some(spawner), None, Some(setup)),
        None => (None, handshake, None),
    };
    fault::point("helpers started", "");
    const CREATING: &str = "creating the sandbox's namespaces";
    let (forked, to_join) = match &group {
        Some(group) => {
            let Birth { forked, to_join } =
                group.entry().clone3(clone_flags(plan)).during(CREATING)?;
            (forked, Some(to_join))
        }
        None => (clone3(clone_flags(plan)).during(CREATING)?, None),
    };
    match forked {
        Forked::Child => {
            drop(init_socket);
            drop(outputs);
            drop(published);
            setup::child(Launch {
                to_join,
                plan,
                init_socket: inner,
                chosen,
                pty: streams.pty,
                targets,
                inherited,
                prepared,
                handshake,
                spawner: spawner_end,
                gatefs: gatefs_setup,
            })
        }
        Forked::Parent { pid, pidfd } => {
            let running = Running {
                pid,
                pidfd,
                init_socket,
                pty: None,
                private_home: None,
                network_counters: Vec::new(),
                outputs,
                listener: listener.map(|(listener, _)| listener),
                helpers,
                broker,
                gatefs,
                grounds: Vec::new(),
                own_files: Vec::new(),
                spawner,
                group,
                network: None,
                published,
                nat_plan: match &plan.sandbox.egress {
                    Some(Egress::Nat(nat)) => {
                        Some((nat.helper.clone(), egress::given_identity(plan).cloned()))
                    }
                    _ => None,
                },
                nat: None,
                pid_namespace,
                strangers,
                told_to_end: Cell::new(false),
                reaped: false,
            };
            fault::point("sandbox forked", "");
            if let Confinement::Namespaces(inside) = &plan.sandbox.confinement {
                running.map_ids(&inside.identity)?;
            }
            Ok(running)
        }
    }
}

impl Running {
    /// Of the sandbox's pid 1, on the host.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Readable when [`Self::receive`] will not block.
    pub fn init_socket(&self) -> BorrowedFd<'_> {
        self.init_socket.as_fd()
    }

    /// Readable when [`Self::news`] has something.
    pub fn broker(&self) -> Option<BorrowedFd<'_>> {
        self.broker.as_ref().and_then(Broker::news)
    }

    /// Readable when [`Self::gatefs_message`] has something.
    pub fn gatefs(&self) -> Option<BorrowedFd<'_>> {
        self.gatefs.as_ref().and_then(GateFs::socket)
    }

    /// The next message of the gate's file system, without waiting.
    pub fn gatefs_message(&self) -> Result<Option<GateFsMessage>, LaunchError> {
        self.gatefs.as_ref().map_or(Ok(None), GateFs::receive)
    }

    /// Tells the gate's file system a decision about a path, or that a grant has ended.
    pub fn tell_gatefs(
        &self,
        message: &ToGateFs,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<(), LaunchError> {
        self.gatefs.as_ref().map_or(Ok(()), |gatefs| gatefs.tell(message, file))
    }

    /// The file systems behind the gate's, after [`FromInit::Ground`].
    pub(crate) fn grounds(&self) -> &[GroundStore] {
        &self.grounds
    }

    /// Whether pid 1 has handed over everything that the keeper needs.
    pub fn is_ready_for_keeper(&self, gate: &Gate) -> bool {
        !gate.is_fuse() || self.grounds.len() >= gate.grounds.len()
    }

    /// Every helper process.
    pub fn helpers(&self) -> &Helpers {
        &self.helpers
    }

    /// Starts further commands; none where the sandbox ends with its command.
    pub fn spawner(&self) -> Option<&Spawner> {
        self.spawner.as_ref()
    }

    /// The next message of the broker, without waiting.
    pub fn news(&self) -> Result<Option<BrokerMessage>> {
        self.broker.as_ref().map_or(Ok(None), Broker::receive)
    }

    /// Tells the broker the decision about a path.
    pub fn reply(&self, reply: &AccessReply, file: Option<BorrowedFd<'_>>) -> Result<()> {
        self.broker.as_ref().map_or(Ok(()), |broker| broker.reply(reply, file))
    }

    /// The command has ended: asks the helpers to exit, without waiting for them. Messages of the broker can
    /// still be read.
    pub fn dismiss_helpers(&self) {
        self.broker.as_ref().map(Broker::dismiss);
        self.gatefs.as_ref().map(GateFs::dismiss);
        self.nat.as_ref().map(Nat::dismiss);
        self.spawner.as_ref().map(Spawner::dismiss);
    }

    /// The control group, if the plan has one.
    pub fn group(&self) -> Option<&RunGroup> {
        self.group.as_ref()
    }

    /// To be removed after [`Self::wait`]; what it has counted can be read until then.
    pub fn take_group(&mut self) -> Option<RunGroup> {
        self.group.take()
    }

    /// Readable when pid 1, and with it everything inside, is gone.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Whether pid 1 is gone, without waiting for it.
    pub fn has_ended(&self) -> Result<bool> {
        self.ends_within(Duration::ZERO)
    }

    fn ends_within(&self, patience: Duration) -> Result<bool> {
        let mut set = [PollFd::from_borrowed_fd(self.pidfd.as_fd(), PollFlags::IN)];
        let ready = proc::poll(&mut set, Some(patience)).during("asking for pid 1's end")?;
        Ok(ready > 0)
    }

    /// The other end of the command's terminal, after [`FromInit::Terminal`].
    pub fn pty(&self) -> Option<BorrowedFd<'_>> {
        self.pty.as_ref().map(AsFd::as_fd)
    }

    /// The private home directory, where the command has one, after [`FromInit::PrivateHome`].
    pub fn private_home(&self) -> Option<&PrivateHome> {
        self.private_home.as_ref()
    }

    /// File systems of the run's own that were handed over ([`FromInit::OwnFiles`]).
    pub fn own_files(&self) -> &[(PathBuf, OwnedFd)] {
        &self.own_files
    }

    /// The private home directory, for good.
    pub fn take_private_home(&mut self) -> Option<PrivateHome> {
        self.private_home.take()
    }

    /// `/proc/net/snmp` and `snmp6` of a network that leads nowhere, after [`FromInit::NetworkCounters`].
    pub fn take_network_counters(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.network_counters)
    }

    /// The listeners to serve for the command, after [`FromInit::Network`]: see [`crate::Outlet`]. None where a
    /// NAT helper does it and no port is published.
    pub fn take_network(&mut self) -> Option<InsideNetwork> {
        self.network.take()
    }

    /// The command's output pipes, where the plan caps output.
    pub fn take_outputs(&mut self) -> Vec<OutputPipe> {
        std::mem::take(&mut self.outputs)
    }

    /// The next message; none when pid 1 is gone.
    pub fn receive(&mut self) -> Result<Option<FromInit>> {
        const STEP: &str = "listening to the sandbox's pid 1";
        let mut buffer = [0; FromInit::MAX_BYTES];
        let (message, mut descriptors) =
            match palisade_wire::receive(&self.init_socket, &mut buffer) {
                Ok(Received { message, descriptors }) => (message, descriptors),
                Err(WireError::Closed) => return Ok(None),
                Err(error) => return Err(error).during(STEP),
            };
        match message {
            FromInit::Terminal => self.pty = descriptors.pop(),
            FromInit::PrivateHome { inodes } => {
                let home = |directory| PrivateHome { directory, inodes_at_start: inodes };
                self.private_home = descriptors.pop().map(home);
            }
            FromInit::Ground { ref path } => {
                let store = |root| GroundStore { path: path.clone(), root };
                self.grounds.extend(descriptors.pop().map(store));
            }
            FromInit::OwnFiles { ref path } => {
                self.own_files.extend(descriptors.pop().map(|root| (path.clone(), root)));
            }
            FromInit::NetworkCounters => self.network_counters = descriptors,
            FromInit::Network(handed) => {
                let made = InsideNetwork::from_descriptors(
                    handed,
                    descriptors,
                    std::mem::take(&mut self.published),
                );
                self.connect(made.ok_or_else(|| LaunchError::new(STEP, "a network that is cut"))?)?;
            }
            FromInit::Started | FromInit::Failed(_) => self.listener = None,
            _ => {}
        }
        Ok(Some(message))
    }

    fn connect(&mut self, inside: InsideNetwork) -> Result<()> {
        if let Some((helper, identity)) = self.nat_plan.take() {
            self.nat = Some(Nat::start(&self.helpers, &helper, &inside, identity.as_ref())?);
            self.tell(ToInit::Connected)?;
        }
        if inside.is_to_be_served() {
            self.network = Some(inside);
        }
        Ok(())
    }

    /// Sends a signal to the command's process group.
    pub fn signal(&self, signal: i32) -> Result<()> {
        self.tell(ToInit::Signal(signal))
    }

    /// Lets the stopped command go on in the foreground.
    pub fn resume(&self) -> Result<()> {
        self.tell(ToInit::Resume)
    }

    /// Ends everything inside, now. Without a pid namespace no death ends the others: the stand-in for pid 1,
    /// whose descendants they are, ends them one by one. A second call ends the stand-in itself.
    pub fn kill(&self) -> Result<()> {
        // It may fail; what follows does not depend on it.
        let _ = self.group.as_ref().map(RunGroup::kill);
        if !self.pid_namespace && !self.told_to_end.replace(true) {
            return self.tell(ToInit::End);
        }
        match proc::pidfd_send_signal(&self.pidfd, sig::SIGKILL) {
            Err(error) if error.errno != Errno::SRCH => Err(error).during("ending the sandbox"),
            _ => Ok(()),
        }
    }

    /// Asks pid 1 of a sandbox that outlives its commands to end everything inside, and to say so.
    pub fn end(&self) -> Result<()> {
        self.tell(ToInit::End)
    }

    /// Ends processes that a stand-in for pid 1, or the spawner, left behind: by then they are our children.
    fn end_orphans(&self) {
        if self.pid_namespace && self.spawner.is_none() {
            return;
        }
        let known: Vec<Pid> = self.strangers.iter().copied().chain(self.helpers.pids()).collect();
        // Each death may leave us more orphans.
        loop {
            let mut orphans = children_of_ours();
            orphans.retain(|pid| *pid != self.pid && !known.contains(pid));
            if orphans.is_empty() {
                return;
            }
            for pid in orphans {
                let _ = proc::kill(pid, sig::SIGKILL);
                let _ = proc::wait_pid_rusage(pid);
            }
        }
    }

    /// Waits for the end and returns what the run used.
    pub fn wait(&mut self) -> Result<RunUsage> {
        // Until every child of the spawner is reaped, the kernel keeps pid 1 from ending (pid_namespaces(7)).
        while self.spawner.is_some() && !self.ends_within(ORPHAN_CHECK)? {
            self.end_orphans();
        }
        let reaped = proc::wait_pid_rusage(self.pid).during("waiting for the sandbox")?;
        self.reaped = true;
        if matches!(reaped.status, Status::Signaled { .. }) {
            self.end_orphans();
        }
        let usage = reaped.usage;
        Ok(RunUsage {
            user: usage.user_time,
            system: usage.system_time,
            max_rss_bytes: usage.max_rss_bytes,
        })
    }

    fn tell(&self, message: ToInit) -> Result<()> {
        match palisade_wire::send(&self.init_socket, &message, &[]) {
            // It is gone; the end arrives by the pidfd.
            Err(WireError::Closed) => Ok(()),
            sent => sent.during("talking to the sandbox's pid 1"),
        }
    }

    /// Only root may give the child an id other than its own; any other user's child maps itself.
    fn map_ids(&self, identity: &Identity) -> Result<()> {
        const STEP: &str = "mapping ids into the sandbox";
        if identity.mapping == IdMapping::OwnId {
            return Ok(());
        }
        let one = |inside, outside| [MapLine { inside, outside, count: 1 }];
        let gids = one(identity.inside_gid, identity.host_gid);
        write_map(Some(self.pid), IdKind::Gid, &gids).during(STEP)?;
        let uids = one(identity.inside_uid, identity.host_uid);
        write_map(Some(self.pid), IdKind::Uid, &uids).during(STEP)?;
        self.tell(ToInit::Mapped)
    }
}

impl Drop for Running {
    /// Nothing inside outlives the handle. Errors have nowhere to go, and the kernel kills the
    /// child with its parent as well.
    fn drop(&mut self) {
        if !self.reaped {
            let _ = self.kill();
            if !self.pid_namespace {
                let _ = self.ends_within(TO_END_EVERYBODY);
                let _ = self.kill();
            }
            if self.spawner.is_some() {
                let _ = self.helpers.collect();
                while matches!(self.ends_within(ORPHAN_CHECK), Ok(false)) {
                    self.end_orphans();
                }
            }
            let _ = proc::wait_pid_rusage(self.pid);
            self.end_orphans();
        }
    }
}

fn clone_flags(plan: &Plan) -> CloneFlags {
    let Confinement::Namespaces(inside) = &plan.sandbox.confinement else {
        return CloneFlags::NONE;
    };
    let Namespaced { namespaces, .. } = inside.as_ref();
    // The command's process creates the network, in parallel with the view; pid 1 sets the clocks.
    let Namespaces { mount, pid, net: _, uts, ipc, cgroup, time_offset: _ } = *namespaces;
    let mut flags = CloneFlags::NEWUSER;
    for (wanted, flag) in [
        (mount, CloneFlags::NEWNS),
        (pid, CloneFlags::NEWPID),
        (uts, CloneFlags::NEWUTS),
        (ipc, CloneFlags::NEWIPC),
        (cgroup, CloneFlags::NEWCGROUP),
    ] {
        if wanted {
            flags |= flag;
        }
    }
    flags
}

pub(crate) fn host_owner(identity: &Identity) -> Owner {
    Owner { uid: identity.host_uid, gid: identity.host_gid }
}

/// A port on the host's loopback, for the network probe to try.
fn network_target(plan: &Plan) -> Result<Option<(OwnedFd, u16)>> {
    if !plan.sandbox.self_check.iter().any(|probe| matches!(probe, Probe::ReachNetwork { .. })) {
        return Ok(None);
    }
    match net::tcp_listener_loopback() {
        Ok(listener) => Ok(Some(listener)),
        // A host without a usable loopback has no target for the probe, which is then reported as not probed.
        Err(error) if matches!(error.errno, Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT) => Ok(None),
        Err(error) => Err(error).during("opening the self-check's loopback port"),
    }
}
