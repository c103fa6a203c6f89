//! Helper processes: how each is forked, asked to exit, and distinguished from one that died.
//!
//! One register knows all helpers of a run from their fork on. A run that has lost a helper is not the run that
//! was planned, so an unexpected death is recorded here, no matter which source notices it first, and is never
//! forgotten.

use crate::error::{During as _, Result};
use crate::filter;
use crate::init::close_all_but;
use crate::streams;
use palisade_bpf::{Arch, FilterSpec};
use palisade_plan::model::Identity;
use palisade_sys::clone::{Forked, fork};
use palisade_sys::proc::{self, PollFd, PollFlags, Status, sig};
use palisade_sys::{Pid, SysError, creds};
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::fmt;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::time::Duration;

/// Asks a helper to exit. Not SIGKILL: the first fatal signal decides the wait status (`complete_signal` in the
/// kernel's signal.c), so a helper that was killed a moment before still shows as killed. Real-time, because
/// nothing sends it by accident.
const LEAVE: i32 = 50;

/// How long to wait for a helper: one that hangs in a dead network file system dies when the kernel lets it,
/// and must not block us.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);
/// The same for one that has closed its socket and is about to exit: with hundreds of runs that end at once it may not get
/// a CPU for a second, and a run that has ended well must not fail for it.
const CLOSED_EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Which process it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelperKind {
    Broker,
    Keeper,
    GateFs,
    Egress,
    PublishedPorts,
    Nat,
    /// Starts further commands.
    Spawner,
    /// Does one thing beside the sandbox.
    Worker,
    /// Pid 1, or what stands in for it where there is no pid namespace. Not forked here.
    Init,
}

impl HelperKind {
    /// Its name in `ps` while it is still a process of ours.
    fn process_name(self) -> &'static CStr {
        match self {
            Self::Broker => c"sandbox-broker",
            Self::Keeper => c"sandbox-keeper",
            Self::GateFs => c"sandbox-gatefs",
            Self::Egress => c"sandbox-egress",
            Self::PublishedPorts => c"sandbox-ports",
            Self::Nat => c"sandbox-nat",
            Self::Spawner => c"sandbox-spawner",
            Self::Worker => c"sandbox-worker",
            Self::Init => c"sandbox",
        }
    }

    /// What it is, and what a run cannot do without it.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Broker => ("the broker", "without it nothing can be written"),
            Self::Keeper => ("the keeper", "without it nothing can be granted"),
            Self::GateFs => {
                ("the process of the gate's file system", "without it no path can be found")
            }
            Self::Egress => ("the egress process", "with it the way out"),
            Self::PublishedPorts => {
                ("the process for published ports", "with it the way in (--publish)")
            }
            Self::Nat => ("the NAT helper", "with it the way out"),
            Self::Spawner => ("the spawner", "without it no command can be started"),
            Self::Worker => ("a worker", "without it nothing is kept"),
            Self::Init => ("the sandbox's pid 1", "with it everything inside"),
        }
    }

    /// Whether a run that has lost it is not the run that was planned. What a worker does is told by its result.
    fn is_vital(self) -> bool {
        self != Self::Worker
    }

    /// Whether it may exit on its own and says so with its exit code. The broker does when the last process
    /// whose calls could arrive is gone, the keeper when it cannot enter a sandbox that has ended.
    fn may_leave_with(self, code: i32) -> bool {
        match self {
            // The spawner does when the launch failed before it entered.
            // The file system is unmounted with the sandbox.
            Self::Broker | Self::Spawner | Self::GateFs => code == 0,
            Self::Keeper | Self::Worker => true,
            Self::Egress | Self::PublishedPorts | Self::Nat | Self::Init => false,
        }
    }
}

/// A helper that ended without being asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Death {
    pub helper: HelperKind,
    /// None where another process has collected it.
    pub status: Option<Status>,
}

impl fmt::Display for Death {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (who, without) = self.helper.words();
        let how = match self.status {
            Some(Status::Signaled { signal: sig::SIGKILL, .. }) => "killed by SIGKILL".to_owned(),
            Some(Status::Signaled { signal, .. }) => format!("killed by signal {signal}"),
            Some(Status::Exited(code)) => format!("exit code {code}"),
            Some(Status::Stopped(_) | Status::Continued) | None => "status unknown".to_owned(),
        };
        write!(out, "{who} went away ({how}), and {without}; was it killed from outside?")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    /// It was told that it is no longer needed.
    Dismissed,
    Collected,
}

#[derive(Debug)]
struct Member {
    kind: HelperKind,
    pid: Pid,
    pidfd: OwnedFd,
    phase: Cell<Phase>,
    /// Of all helpers of the run.
    death: Rc<Cell<Option<Death>>>,
}

/// Every helper of one run.
#[derive(Clone, Debug, Default)]
pub struct Helpers {
    members: Rc<RefCell<Vec<Rc<Member>>>>,
    death: Rc<Cell<Option<Death>>>,
}

impl Helpers {
    /// Forks a helper, which keeps only the descriptors in `kept` and ends with `serve` or with this process.
    /// `serve` gets our pid: a helper that changes its ids has to set its parent-death signal again. The caller
    /// must be single-threaded.
    pub(crate) fn start(
        &self,
        kind: HelperKind,
        step: &str,
        kept: Vec<RawFd>,
        serve: impl FnOnce(Pid),
    ) -> Result<Helper> {
        let supervisor = rustix::process::getpid();
        match fork().during(step)? {
            Forked::Child => {
                // The caller may have blocked or ignored it. The name is for people only.
                proc::reset_action(LEAVE);
                let _ = proc::unblock_signals(&[LEAVE]);
                let _ = proc::set_name(kind.process_name());
                if detach(supervisor, step, kept).is_ok() {
                    serve(supervisor);
                }
                proc::exit_now(1)
            }
            Forked::Parent { pid, pidfd } => {
                let phase = Cell::new(Phase::Serving);
                let death = Rc::clone(&self.death);
                let member = Rc::new(Member { kind, pid, pidfd, phase, death });
                let mut members = self.members.borrow_mut();
                members.retain(|member| member.phase.get() != Phase::Collected);
                members.push(Rc::clone(&member));
                Ok(Helper(member))
            }
        }
    }

    /// Helpers whose end would be unexpected, to be polled.
    pub fn serving(&self) -> Vec<Watched> {
        let members = self.members.borrow();
        let serving = members.iter().filter(|member| member.phase.get() == Phase::Serving);
        serving.map(|member| Watched(Rc::clone(member))).collect()
    }

    /// Whether there is one of this kind.
    pub fn is_serving(&self, kind: HelperKind) -> bool {
        let members = self.members.borrow();
        members.iter().any(|member| member.kind == kind && member.phase.get() == Phase::Serving)
    }

    /// The first that was seen to end without being asked to.
    pub fn known_death(&self) -> Option<Death> {
        self.death.get()
    }

    /// The first that ended without being asked to, as far as is visible now.
    pub fn death(&self) -> Option<Death> {
        for member in self.members.borrow().iter() {
            member.look();
        }
        self.death.get()
    }

    /// Asks all helpers to exit, waits for them, and returns those that had died before.
    pub fn collect(&self) -> Option<Death> {
        let members = self.members.take();
        members.iter().for_each(|member| member.dismiss());
        members.iter().for_each(|member| member.collect());
        self.death.get()
    }

    /// The pids of all that may still be there.
    pub(crate) fn pids(&self) -> Vec<Pid> {
        self.members.borrow().iter().map(|member| member.pid).collect()
    }
}

/// No descriptor of the caller stays open: a pipe must close when the command closes it.
fn detach(supervisor: Pid, step: &str, kept: Vec<RawFd>) -> Result<()> {
    creds::end_with_parent(supervisor).during(step)?;
    streams::release()?;
    close_all_but(kept)
}

/// Becomes the command's id in its user namespace, with all capabilities there. Those that are needed are kept
/// next.
pub(crate) fn take_identity(identity: &Identity) -> Result<(), SysError> {
    creds::take_ids_with_capabilities(identity.inside_uid, identity.inside_gid)
}

/// Installs a helper's own filter before it serves any request.
pub(crate) fn confine(filter: fn(Arch) -> FilterSpec) -> Result<(), String> {
    filter::confine(&filter(Arch::native())).map_err(|error| error.to_string())
}

/// The end of a helper, as a descriptor to poll.
#[derive(Debug)]
pub struct Watched(Rc<Member>);

impl Watched {
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.0.pidfd.as_fd()
    }
}

/// One helper. Dropping it ends the process.
#[derive(Debug)]
pub(crate) struct Helper(Rc<Member>);

impl Helper {
    /// Asks it to exit without waiting: messages it has sent can still be read.
    pub(crate) fn dismiss(&self) {
        self.0.dismiss();
    }

    /// It was told in its own protocol that it is no longer needed, and will exit.
    pub(crate) fn expect_end(&self) {
        self.0.look();
        if self.0.phase.get() == Phase::Serving {
            self.0.phase.set(Phase::Dismissed);
        }
    }

    /// Waits for its end, no longer than `patience`.
    pub(crate) fn ends_within(&self, patience: Duration) -> bool {
        self.0.ends_within(patience)
    }

    pub(crate) fn is_serving(&self) -> bool {
        self.0.phase.get() == Phase::Serving
    }

    pub(crate) fn pid(&self) -> Pid {
        self.0.pid
    }

    #[cfg(test)]
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.0.pidfd.as_fd()
    }

    /// Its socket has closed: waits for its exit status, which follows a moment later.
    pub(crate) fn has_closed(&self) {
        if self.0.ends_within(CLOSED_EXIT_TIMEOUT) {
            self.0.look();
        } else if self.0.phase.get() == Phase::Serving {
            // It is alive but serves no requests.
            self.0.died(None);
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.0.dismiss();
        self.0.collect();
    }
}

impl Member {
    fn ends_within(&self, patience: Duration) -> bool {
        let mut watched = [PollFd::new(&self.pidfd, PollFlags::IN)];
        matches!(proc::poll(&mut watched, Some(patience)), Ok(1..))
    }

    /// Collects it if it has ended.
    fn look(&self) {
        if self.phase.get() == Phase::Collected || !self.ends_within(Duration::ZERO) {
            return;
        }
        let was = self.phase.replace(Phase::Collected);
        let status = proc::wait_pid_rusage(self.pid).ok().map(|reaped| reaped.status);
        let in_order = match status {
            Some(Status::Signaled { signal, .. }) => was == Phase::Dismissed && signal == LEAVE,
            Some(Status::Exited(code)) => was == Phase::Dismissed || self.kind.may_leave_with(code),
            Some(Status::Stopped(_) | Status::Continued) | None => false,
        };
        if !in_order {
            self.died(status);
        }
    }

    /// The first is the one to report: the others may have followed it.
    fn died(&self, status: Option<Status>) {
        if self.kind.is_vital() && self.death.get().is_none() {
            self.death.set(Some(Death { helper: self.kind, status }));
        }
    }

    fn dismiss(&self) {
        self.look();
        if self.phase.get() == Phase::Serving {
            self.phase.set(Phase::Dismissed);
            let _ = proc::pidfd_send_signal(&self.pidfd, LEAVE);
        }
    }

    fn collect(&self) {
        if self.phase.get() == Phase::Collected {
            return;
        }
        if !self.ends_within(EXIT_TIMEOUT) {
            // It is stuck; how it dies after this says nothing.
            let _ = proc::pidfd_send_signal(&self.pidfd, sig::SIGKILL);
            if self.ends_within(EXIT_TIMEOUT) {
                let _ = proc::wait_pid_rusage(self.pid);
            }
            self.phase.set(Phase::Collected);
            return;
        }
        self.look();
    }
}

#[cfg(test)]
#[path = "helper_tests.rs"]
mod tests;
