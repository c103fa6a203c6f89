//! Whether a run could have its own control group, created as a run creates it. Must remove the one group it
//! creates at once.

use super::trial::{Outcome, TrialError, trial};
use super::{Finding, Health, Subject};
use palisade_cgroup::{CgroupError, RunGroup};
use palisade_plan::limit::{CgroupHome, Controller, Group, GroupCreation, GroupSettings};
use palisade_sys::clone::CloneFlags;
use palisade_sys::{At as _, Errno};

/// The limit of the group that is tried, and the controller that enforces it.
const TASKS: u64 = 16;

pub(super) fn delegation() -> Finding {
    let subject = Subject {
        id: "cgroups",
        what: "put a process into its own control group",
        needed_for: "hard limits on the memory, CPU time and I/O of a whole run; without it they are \
                     looked at now and then (--best-effort-limits)",
        without: Health::Degraded,
    };
    subject.finding(try_group(palisade_cgroup::find()))
}

fn try_group(home: CgroupHome) -> Outcome {
    let seen = seen(&home)?;
    let tasks = home.has(Controller::Pids).then_some(TASKS);
    let settings = GroupSettings { tasks, ..GroupSettings::default() };
    let group = Group { home, settings };
    // In a child process, because a systemd scope would move this one away.
    trial(CloneFlags::NONE, || {
        let held = RunGroup::create(&group, &format!("doctor-{}", std::process::id()));
        let held = held.map_err(|error| refused(&error))?;
        entered(&held)?;
        held.remove().map_err(|error| refused(&error))?;
        Ok(format!("{seen}; a new group accepts processes"))
    })
}

/// Which kind of group it would be.
fn seen(home: &CgroupHome) -> Outcome {
    match home {
        CgroupHome::V2 { parent, controllers, way } => {
            let way = match way {
                GroupCreation::OwnGroup => "below the current group",
                GroupCreation::BesideOwn => "beside the current group",
                GroupCreation::SystemdScope => "as a scope of the user's service manager",
            };
            Ok(format!("v2, {way}, {} with {}", parent.display(), names(controllers)))
        }
        CgroupHome::V1 { parents } => Ok(format!("v1: {}", names(parents.keys()))),
        CgroupHome::Nowhere { why } => Err(TrialError::new(why.clone()).fixed_by(fix())),
    }
}

fn names<'a>(controllers: impl IntoIterator<Item = &'a Controller>) -> String {
    let names = controllers.into_iter().map(|controller| match controller {
        Controller::Memory => "memory",
        Controller::Swap => "swap",
        Controller::Cpu => "cpu",
        Controller::CpuAccount => "cpuacct",
        Controller::Pids => "pids",
        Controller::Io => "io",
        Controller::CpuSet => "cpuset",
    });
    names.collect::<Vec<_>>().join(", ")
}

fn entered(held: &RunGroup) -> Result<(), TrialError> {
    let birth = held.entry().clone3(CloneFlags::NONE)?;
    match birth.forked {
        palisade_sys::clone::Forked::Child => {
            let joined = birth.to_join.join();
            palisade_sys::proc::exit_now(i32::from(joined.is_err()))
        }
        palisade_sys::clone::Forked::Parent { pid, .. } => {
            let status = palisade_sys::proc::wait_pid_rusage(pid)?.status;
            let failed = status != palisade_sys::proc::Status::Exited(0);
            failed.then_some(Errno::ACCESS).map_or(Ok(()), Err).call("entering the group")?;
            Ok(())
        }
    }
}

fn refused(error: &CgroupError) -> TrialError {
    TrialError::new(error.to_string()).fixed_by(fix())
}

/// The ways to get one, whatever the cause.
fn fix() -> &'static str {
    if std::path::Path::new("/run/systemd/system").is_dir() {
        "systemd-run --user --scope -p Delegate=yes -- sandbox run …"
    } else {
        "run as root, or delegate a group to this user (cgroup v2: chown the directory, cgroup.procs \
         and cgroup.subtree_control); in a container: writable control groups (docker 28: \
         --security-opt writable-cgroups=true; podman: --security-opt unmask=/sys/fs/cgroup)"
    }
}

#[cfg(test)]
#[path = "cgroups_tests.rs"]
mod tests;
