//! Namespaces and what a run does in them: mounts, a new /proc, a new root, shifted clocks. Must touch only
//! namespaces made for the trial.

use super::trial::{Outcome, TrialError, trial};
use super::{Finding, Health, Inside, Subject};
use crate::remedy;
use palisade_sys::clone::{CloneFlags, Forked, fork, unshare};
use palisade_sys::mounts::{self, FsOption, MountAttr, MountAttrs, Recursion};
use palisade_sys::proc::{self, Status};
use palisade_sys::{At as _, CWD, timens};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

const EVERY_RUN: &str = "every run except with --level 1 --no-userns";

pub(super) fn user() -> Finding {
    let subject = Subject {
        id: "user-namespaces",
        what: "create a user namespace and map your id into it",
        needed_for: EVERY_RUN,
        without: Health::Missing,
    };
    subject.finding(trial(CloneFlags::NEWUSER, || {
        Ok(format!("uid {} mapped", rustix::process::geteuid().as_raw()))
    }))
}

pub(super) fn mounts(inside: Inside) -> Finding {
    let subject = Subject {
        id: "mount-namespaces",
        what: "mount a file system in a user namespace and make it read-only",
        needed_for: EVERY_RUN,
        without: Health::Missing,
    };
    subject.finding(inside.trial(CloneFlags::NEWNS, || {
        let mount = tmpfs_over_root()?;
        let sealed = MountAttr { set: MountAttrs::RDONLY, ..MountAttr::default() };
        mounts::mount_setattr(&mount, Recursion::Single, &sealed)?;
        Ok("a tmpfs, read-only".to_owned())
    }))
}

/// A new tmpfs attached over `/`; this process's own root stays below it. Propagation to the host is cut first:
/// a mount must not appear there.
pub(super) fn tmpfs_over_root() -> Result<OwnedFd, TrialError> {
    mounts::make_private_recursive(Path::new("/"))?;
    let options = [FsOption::Text("mode", "0755"), FsOption::Text("size", "1m")];
    let mount = mounts::new_fs("tmpfs", &options, MountAttrs::NOSUID | MountAttrs::NODEV)?;
    mounts::move_mount(&mount, CWD, Path::new("/"))?;
    Ok(mount)
}

/// Ubuntu lets every user create a user namespace and then removes its capabilities, so only the two trials
/// before this one show whether the setting affects this binary.
pub(super) fn apparmor(users: &Finding, mounts: &Finding) -> Finding {
    let subject = Subject {
        id: "apparmor",
        what: "AppArmor does not restrict user namespaces",
        needed_for: EVERY_RUN,
        without: Health::Missing,
    };
    let works = [users, mounts].iter().all(|finding| finding.health == Health::Works);
    subject.finding(match (remedy::apparmor_restricts(), works) {
        (false, _) => Ok("no restriction of user namespaces".to_owned()),
        (true, true) => Ok("restricted in general; allowed for this binary".to_owned()),
        (true, false) => {
            let detail = "kernel.apparmor_restrict_unprivileged_userns is 1, and this binary has \
                          no profile that allows it";
            Err(TrialError::new(detail).fixed_by(remedy::apparmor()))
        }
    })
}

pub(super) fn pids(inside: Inside) -> Finding {
    let subject = Subject {
        id: "pid-namespaces",
        what: "mount a new /proc in a pid namespace",
        needed_for: EVERY_RUN,
        without: Health::Missing,
    };
    subject.finding(inside.trial(CloneFlags::NEWNS | CloneFlags::NEWPID, || {
        let attrs = MountAttrs::NOSUID | MountAttrs::NODEV | MountAttrs::NOEXEC;
        let proc = mounts::new_fs("proc", &[], attrs)?;
        let own = rustix::fs::readlinkat(&proc, "self", Vec::new()).call("readlink /proc/self")?;
        match own.to_bytes() {
            b"1" => Ok("pid 1, and a /proc without other processes".to_owned()),
            other => {
                let other = String::from_utf8_lossy(other);
                Err(TrialError::new(format!("pid {other} instead of 1 in a new pid namespace")))
            }
        }
    }))
}

pub(super) fn change_of_root(inside: Inside) -> Finding {
    let subject = Subject {
        id: "pivot-root",
        what: "change the root to a new file system and detach the old one",
        needed_for: EVERY_RUN,
        without: Health::Missing,
    };
    subject.finding(inside.trial(CloneFlags::NEWNS, || {
        let mount = tmpfs_over_root()?;
        rustix::process::fchdir(&mount).call("fchdir")?;
        mounts::pivot_root(Path::new("."), Path::new("."))?;
        mounts::detach(Path::new("."))?;
        rustix::process::chdir("/").call("chdir")?;
        match std::fs::read_dir("/").at("opendir", Path::new("/"))?.count() {
            0 => Ok("the old root is detached".to_owned()),
            names => {
                Err(TrialError::new(format!("the old root is still there: {names} names in /")))
            }
        }
    }))
}

/// An offset this large cannot be mistaken for a slow machine.
const SHIFT: Duration = Duration::from_secs(10_000);

pub(super) fn time(inside: Inside) -> Finding {
    let subject = Subject {
        id: "time-namespaces",
        what: "shift the monotonic clock in a time namespace",
        needed_for: "--time-offset",
        without: Health::Degraded,
    };
    let outcome = inside.trial(CloneFlags::NEWPID, shifted_clock);
    subject.finding(
        outcome.map_err(|fault| fault.or_fixed_by("use a kernel built with CONFIG_TIME_NS")),
    )
}

fn shifted_clock() -> Outcome {
    let seconds = i64::try_from(SHIFT.as_secs()).unwrap_or(i64::MAX);
    let before = Instant::now();
    unshare(CloneFlags::NEWTIME)?;
    timens::write_timens_offsets(seconds, seconds)?;
    match fork()? {
        Forked::Child => proc::exit_now(i32::from(before.elapsed() < SHIFT)),
        Forked::Parent { pid, .. } => match proc::wait_pid_rusage(pid)?.status {
            Status::Exited(0) => Ok("the clock is shifted for new processes".to_owned()),
            _ => Err(TrialError::new("the clock of a new process is not shifted")),
        },
    }
}
