//! The supervisor's side of a launch: fork into the namespaces, map the ids, hold the other end.
//!
//! Runs in a single-threaded process, and stays outside: what happens inside is `setup`'s.

use crate::broker::{self, Broker, BrokerEvent};
use crate::control::{FromInit, ToInit};
use crate::egress;
use crate::error::{During, LaunchError};
use crate::first_child::first_child;
use crate::helper::Helpers;
use crate::home::PrivateHome;
use crate::idmap::OwnerMaps;
use crate::inherited::Inherited;
use crate::init::children as children_of_ours;
use crate::nat::Nat;
use crate::network::InsideNetwork;
use crate::selfcheck::Targets;
use crate::setup::{self, Launch};
use crate::sources;
use crate::spawner::Spawner;
use crate::streams::{Chosen, OutputPipe, Streams};
use palisade_broker::{Reply, TreeLocks, Trigger};
use palisade_cgroup::{Birth, Held};
use palisade_egress::Published;
use palisade_plan::model::{
    Confinement, Egress, Identity, Lifetime, Mapping, Namespaced, Namespaces, NatHelper, Owner,
    Plan, Probe,
};
use palisade_sys::clone::{CloneFlags, Forked, clone3};
use palisade_sys::creds::{self, IdKind, MapLine, write_map};
use palisade_sys::fdpass::socketpair;
use palisade_sys::proc::{self, PollFd, PollFlags, Status, sig};
use palisade_sys::{Errno, Pid, net};
use palisade_wire::{Received, WireError, WireMessage as _};
use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// How long pid 1's stand-in may take to end everybody, where no namespace does.
pub const TO_END_EVERYBODY: Duration = Duration::from_secs(2);

/// How often to look for children that the spawner left us, while the sandbox ends.
const ORPHAN_CHECK: Duration = Duration::from_millis(2);

/// A run under way.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
    pidfd: OwnedFd,
    control: OwnedFd,
    pty: Option<OwnedFd>,
    private_home: Option<PrivateHome>,
    network_counters: Vec<OwnedFd>,
    outputs: Vec<OutputPipe>,
    /// What the self-check aims at; closed when the command has started.
    listener: Option<OwnedFd>,
    helpers: Helpers,
    broker: Option<Broker>,
    /// Where commands come from, in a sandbox that outlives them.
    spawner: Option<Spawner>,
    group: Option<Held>,
    network: Option<InsideNetwork>,
    /// Ports of the host that lead in, until somebody takes the network.
    published: Vec<Published>,
    /// Yet to be started.
    nat_plan: Option<(NatHelper, Option<Identity>)>,
    nat: Option<Nat>,
    /// Whether everybody inside ends with pid 1.
    pid_namespace: bool,
    /// Children of this process that have nothing to do with the run.
    strangers: Vec<Pid>,
    /// Whether pid 1's stand-in was told to end everybody.
    told_to_end: Cell<bool>,
    reaped: bool,
}

/// What the run used, all its processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub user: Duration,
    pub system: Duration,
    /// Of the largest single process.
    pub max_rss_bytes: u64,
}

/// Starts what the plan says. `locks` are for the broker, and open nowhere else (they count by open file). The caller
/// must be single-threaded, and cannot be traced or looked into from here on.
pub fn launch(
    plan: &Plan,
    streams: &Streams,
    inherited: &Inherited,
    locks: TreeLocks,
) -> Result<Running, LaunchError> {
    const STEP: &str = "preparing the launch";
    // Who ignores it, by inheritance, has no children to wait for.
    proc::reset_action(sig::SIGCHLD);
    let (control, inner) = socketpair().during(STEP)?;
    let listener = network_target(plan)?;
    let published = egress::listen_for(&plan.sandbox.publish)?;
    let targets = Targets {
        supervisor: rustix::process::getpid(),
        port: listener.as_ref().map(|(_, port)| *port),
    };
    let mut chosen = match plan.sandbox.lifetime {
        Lifetime::OneCommand => Chosen::choose(streams)?,
        // Each command brings its own.
        Lifetime::UntilEnded => Chosen::none(),
    };
    let outputs = match plan.supervision.max_output {
        Some(_) => chosen.put_pipes_between()?,
        None => Vec::new(),
    };
    let ends = broker::Ends::for_plan(plan)?;
    let prepared = match &plan.sandbox.confinement {
        Confinement::Namespaces(inside) if inside.identity.mapping == Mapping::ByRoot => {
            chosen.give_pipes_to(host_owner(&inside.identity))?;
            let maps = OwnerMaps::for_plan(&inside.mounts, host_owner(&inside.identity))?;
            Some(sources::prepare(&inside.mounts, plan.sandbox.hardening, &maps)?)
        }
        _ => None,
    };
    if plan.sandbox.hardening.init_undumpable {
        // Before there is a child: afterwards the command could be faster than we are.
        creds::set_dumpable(false).during("closing the supervisor to inspection")?;
    }
    let pid_namespace = clone_flags(plan).contains(CloneFlags::NEWPID);
    let strangers = children_of_ours();
    if !pid_namespace || plan.sandbox.lifetime == Lifetime::UntilEnded {
        // If pid 1's stand-in or the spawner dies, its orphans come to us.
        creds::set_child_subreaper().during("adopting what pid 1's stand-in may leave")?;
    }
    // Before there is a child: our own group can be divided only while we are alone in it.
    let group = plan
        .sandbox
        .group
        .as_ref()
        .map(|group| Held::create(group, &plan.session))
        .transpose()
        .map_err(|error| LaunchError::new("making the control group", error.to_string()))?;
    // Before the sandbox and not beside it, where it would keep a processor from one of the two processes that
    // set the sandbox up.
    let helpers = Helpers::default();
    let (broker, handshake) = match (ends, &plan.sandbox.seccomp) {
        (Some(ends), Some(seccomp)) => {
            let (broker, handshake) = Broker::start(&helpers, plan, seccomp, ends, locks)?;
            (Some(broker), Some(handshake))
        }
        _ => (None, None),
    };
    let root_owner = match &plan.sandbox.confinement {
        Confinement::Namespaces(inside) if inside.identity.mapping == Mapping::ByRoot => {
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
        // The handshake is the spawner's from now on.
        Some((spawner, setup)) => (Some(spawner), None, Some(setup)),
        None => (None, handshake, None),
    };
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
            drop(control);
            drop(outputs);
            drop(published);
            setup::child(Launch {
                to_join,
                plan,
                control: inner,
                chosen,
                pty: streams.pty,
                targets,
                inherited,
                prepared,
                handshake,
                spawner: spawner_end,
            })
        }
        Forked::Parent { pid, pidfd } => {
            let running = Running {
                pid,
                pidfd,
                control,
                pty: None,
                private_home: None,
                network_counters: Vec::new(),
                outputs,
                listener: listener.map(|(listener, _)| listener),
                helpers,
                broker,
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

    /// On the host, whose children everybody inside descends from: pid 1, and the spawner if there is one.
    pub fn roots(&self) -> Vec<u32> {
        let spawner = self.spawner.as_ref().map(Spawner::pid);
        let roots = [Some(self.pid), spawner].into_iter().flatten();
        roots.map(|pid| pid.as_raw_nonzero().get().unsigned_abs()).collect()
    }

    /// The command's process on the host: the first child of pid 1.
    pub fn command(&self) -> Option<Pid> {
        first_child(self.pid())
    }

    /// Readable when [`Self::receive`] will not block.
    pub fn control(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// Readable when [`Self::news`] has something.
    pub fn broker(&self) -> Option<BorrowedFd<'_>> {
        self.broker.as_ref().and_then(Broker::news)
    }

    /// Every process beside the sandbox.
    pub fn helpers(&self) -> &Helpers {
        &self.helpers
    }

    /// Who starts further commands; none where the sandbox ends with its command.
    pub fn spawner(&self) -> Option<&Spawner> {
        self.spawner.as_ref()
    }

    /// What the broker says, without waiting.
    pub fn news(&self) -> Result<BrokerEvent, LaunchError> {
        self.broker.as_ref().map_or(Ok(BrokerEvent::None), Broker::receive)
    }

    /// Who notices first touches, and carries out what was decided about them.
    pub fn trigger(&self) -> Option<&impl Trigger<Error = LaunchError>> {
        self.broker.as_ref()
    }

    /// Tells the broker what becomes of a touch.
    pub fn reply(&self, reply: Reply, file: Option<BorrowedFd<'_>>) -> Result<(), LaunchError> {
        self.broker.as_ref().map_or(Ok(()), |broker| broker.reply(reply, file))
    }

    /// The command has ended: ends who served it, without waiting for them. What the broker has said can still
    /// be heard.
    pub fn dismiss_helpers(&self) {
        self.broker.as_ref().map(Broker::dismiss);
        self.nat.as_ref().map(Nat::dismiss);
        self.spawner.as_ref().map(Spawner::dismiss);
    }

    /// The control group, if the plan has one.
    pub fn group(&self) -> Option<&Held> {
        self.group.as_ref()
    }

    /// To be removed after [`Self::wait`]; what it has counted can be read until then.
    pub fn take_group(&mut self) -> Option<Held> {
        self.group.take()
    }

    /// Readable when pid 1, and with it everything inside, is gone.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Whether pid 1 is gone, without waiting for it.
    pub fn has_ended(&self) -> Result<bool, LaunchError> {
        self.ends_within(Duration::ZERO)
    }

    fn ends_within(&self, patience: Duration) -> Result<bool, LaunchError> {
        let mut set = [PollFd::from_borrowed_fd(self.pidfd.as_fd(), PollFlags::IN)];
        let ready = proc::poll(&mut set, Some(patience)).during("asking for pid 1's end")?;
        Ok(ready > 0)
    }

    /// The other end of the command's terminal, after [`FromInit::Terminal`].
    pub fn pty(&self) -> Option<BorrowedFd<'_>> {
        self.pty.as_ref().map(AsFd::as_fd)
    }

    /// What the command wrote to, where its home directory is its own, after [`FromInit::PrivateHome`].
    pub fn take_private_home(&mut self) -> Option<PrivateHome> {
        self.private_home.take()
    }

    /// `/proc/net/snmp` and `snmp6` of a network that leads nowhere, after [`FromInit::NetworkCounters`].
    pub fn take_network_counters(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.network_counters)
    }

    /// What is to be served for the command, after [`FromInit::Network`]: see [`crate::Outlet`]. None where a NAT
    /// helper does it, and nothing is published.
    pub fn take_network(&mut self) -> Option<InsideNetwork> {
        self.network.take()
    }

    /// What the command writes to, where the plan caps it.
    pub fn take_outputs(&mut self) -> Vec<OutputPipe> {
        std::mem::take(&mut self.outputs)
    }

    /// The next message; none when pid 1 is gone.
    pub fn receive(&mut self) -> Result<Option<FromInit>, LaunchError> {
        const STEP: &str = "listening to the sandbox's pid 1";
        let mut buffer = [0; FromInit::MAX_BYTES];
        let (message, mut descriptors) = match palisade_wire::receive(&self.control, &mut buffer) {
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

    fn connect(&mut self, inside: InsideNetwork) -> Result<(), LaunchError> {
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
    pub fn signal(&self, signal: i32) -> Result<(), LaunchError> {
        self.tell(ToInit::Signal(signal))
    }

    /// Lets the stopped command go on in the foreground.
    pub fn resume(&self) -> Result<(), LaunchError> {
        self.tell(ToInit::Resume)
    }

    /// Ends everything inside, now. Without a pid namespace nobody's death takes the others along: pid 1's
    /// stand-in, whose descendants they are, ends them one by one. Called again, it is ended itself.
    pub fn kill(&self) -> Result<(), LaunchError> {
        // Behind it stands what follows: it may fail.
        let _ = self.group.as_ref().map(Held::kill);
        if !self.pid_namespace && !self.told_to_end.replace(true) {
            return self.tell(ToInit::End);
        }
        match proc::pidfd_send_signal(&self.pidfd, sig::SIGKILL) {
            Err(error) if error.errno != Errno::SRCH => Err(error).during("ending the sandbox"),
            _ => Ok(()),
        }
    }

    /// Asks pid 1 of a sandbox that outlives its commands to end everything inside, and to say so.
    pub fn end(&self) -> Result<(), LaunchError> {
        self.tell(ToInit::End)
    }

    /// Ends what a stand-in for pid 1, or the spawner, left behind: by then it is ours.
    fn end_orphans(&self) {
        if self.pid_namespace && self.spawner.is_none() {
            return;
        }
        let known: Vec<Pid> = self.strangers.iter().copied().chain(self.helpers.pids()).collect();
        // Each death may hand us more.
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

    /// Waits for the end and tells what the run used.
    pub fn wait(&mut self) -> Result<Usage, LaunchError> {
        // While a child of the spawner is not collected, the kernel keeps pid 1 from ending (pid_namespaces(7)).
        while self.spawner.is_some() && !self.ends_within(ORPHAN_CHECK)? {
            self.end_orphans();
        }
        let reaped = proc::wait_pid_rusage(self.pid).during("waiting for the sandbox")?;
        self.reaped = true;
        if matches!(reaped.status, Status::Signaled { .. }) {
            self.end_orphans();
        }
        let usage = reaped.usage;
        Ok(Usage {
            user: usage.user_time,
            system: usage.system_time,
            max_rss_bytes: usage.max_rss_bytes,
        })
    }

    fn tell(&self, message: ToInit) -> Result<(), LaunchError> {
        match palisade_wire::send(&self.control, &message, &[]) {
            // It is gone; the end arrives by the pidfd.
            Err(WireError::Closed) => Ok(()),
            sent => sent.during("talking to the sandbox's pid 1"),
        }
    }

    /// Only root may give the child an id that is not its own; everybody else's child maps itself.
    fn map_ids(&self, identity: &Identity) -> Result<(), LaunchError> {
        const STEP: &str = "mapping ids into the sandbox";
        if identity.mapping == Mapping::OwnId {
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
    // The network is the command process's to make, beside the view; the clocks are pid 1's.
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

/// A port on the host's loopback, for the network probe to fail at.
fn network_target(plan: &Plan) -> Result<Option<(OwnedFd, u16)>, LaunchError> {
    if !plan.sandbox.self_check.iter().any(|probe| matches!(probe, Probe::ReachNetwork { .. })) {
        return Ok(None);
    }
    match net::tcp_listener_loopback() {
        Ok(listener) => Ok(Some(listener)),
        // A host without a usable loopback has nothing the probe could reach; it is then reported
        // as not probed.
        Err(error) if matches!(error.errno, Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT) => Ok(None),
        Err(error) => Err(error).during("opening the self-check's loopback port"),
    }
}
