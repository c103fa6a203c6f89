//! File systems and descriptors: `openat2`, overlays, FUSE, id-mapped mounts. Must write only to file systems
//! made for the trial.

use super::namespaces::tmpfs_over_root;
use super::trial::{Outcome, TrialError, trial};
use super::{Finding, Health, Inside, Subject};
use crate::idmap::mapped_namespace;
use palisade_sys::beneath::{mkdir_p_beneath, open_beneath};
use palisade_sys::clone::CloneFlags;
use palisade_sys::creds::MapLine;
use palisade_sys::mounts::{self, FsOption, MountAttr, MountAttrs, Recursion};
use palisade_sys::{At as _, CWD, Errno, Mode, OFlags, SysError, proc};
use rustix::fs::AtFlags;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::Path;

pub(super) fn openat2() -> Finding {
    let subject = Subject {
        id: "openat2",
        what: "open a file without following symbolic links",
        needed_for: "every run",
        without: Health::Missing,
    };
    subject.finding(trial(CloneFlags::NONE, || {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        open_beneath(CWD, Path::new("."), flags)?;
        Ok("symbolic links are refused".to_owned())
    }))
}

pub(super) fn close_range() -> Finding {
    let subject = Subject {
        id: "close-range",
        what: "close all open files at exec",
        needed_for: "every run",
        without: Health::Missing,
    };
    let outcome = trial(CloneFlags::NONE, || {
        proc::close_range_cloexec(3, i32::MAX)?;
        Ok("no open file is inherited".to_owned())
    });
    let fix = "use a kernel from 5.11 on; in a container, one whose seccomp profile allows \
                close_range(2)";
    subject.finding(outcome.map_err(|fault| fault.or_fixed_by(fix)))
}

pub(super) fn overlay(inside: Inside) -> Finding {
    let subject = Subject {
        id: "overlay",
        what: "mount an overlay in a user namespace and change files in it",
        needed_for: "--overlay",
        without: Health::Degraded,
    };
    let outcome = inside.trial(CloneFlags::NEWNS, throwaway_overlay);
    let fix = "use a kernel from 5.11 on with overlayfs (sudo modprobe overlay); from 6.6 on a \
                directory can also be replaced in it";
    subject.finding(outcome.map_err(|fault| fault.or_fixed_by(fix)))
}

/// Deleting makes a whiteout, and replacing a directory needs an extended attribute on the tmpfs (6.6): an
/// upper layer must support both.
fn throwaway_overlay() -> Outcome {
    let scratch = tmpfs_over_root()?;
    let layer = |name: &str| mkdir_p_beneath(&scratch, Path::new(name), Mode::RWXU);
    let (lower, upper, work) = (layer("lower")?, layer("upper")?, layer("work")?);
    layer("lower/directory")?;
    let overlay = overlay_of(&lower, &upper, &work)?;
    rustix::fs::unlinkat(&overlay, "directory", AtFlags::REMOVEDIR).call("rmdir in the overlay")?;
    rustix::fs::mkdirat(&overlay, "directory", Mode::RWXU).call("mkdir in the overlay")?;
    Ok("changes stay in the upper layer".to_owned())
}

/// Why the kernel takes no overlay of this directory, tried with an upper layer in memory. Nothing is written to it.
pub(in crate::probe) fn overlay_obstacle(lower: &Path) -> Option<String> {
    let refused = trial(CloneFlags::NEWUSER | CloneFlags::NEWNS, || {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let lower = rustix::fs::open(lower, flags, Mode::empty()).at("open", lower)?;
        let scratch = tmpfs_over_root()?;
        let layer = |name: &str| mkdir_p_beneath(&scratch, Path::new(name), Mode::RWXU);
        overlay_of(&lower, &layer("upper")?, &layer("work")?)?;
        Ok(String::new())
    });
    refused.err().map(|error| error.detail)
}

fn overlay_of(lower: &OwnedFd, upper: &OwnedFd, work: &OwnedFd) -> Result<OwnedFd, SysError> {
    let by_fd = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
    let (lower, upper, work) = (by_fd(lower), by_fd(upper), by_fd(work));
    let options = [
        FsOption::Text("lowerdir", &lower),
        FsOption::Text("upperdir", &upper),
        FsOption::Text("workdir", &work),
        FsOption::Flag("userxattr"),
    ];
    mounts::new_fs("overlay", &options, MountAttrs::NOSUID | MountAttrs::NODEV)
}

const FUSE: &str = "/dev/fuse";

pub(super) fn fuse(inside: Inside) -> Finding {
    let subject = Subject {
        id: "fuse",
        what: "open /dev/fuse and mount a file system with it in a user namespace",
        needed_for: "asking about unlisted paths without slowing down listed ones",
        without: Health::Degraded,
    };
    // Opened first: an inaccessible device is the usual cause, whatever else is wrong.
    subject.finding(open_fuse().and_then(|_| inside.trial(CloneFlags::NEWNS, mount_fuse)))
}

fn open_fuse() -> Result<OwnedFd, TrialError> {
    rustix::fs::open(FUSE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .at("open", Path::new(FUSE))
        .map_err(|error| {
            let fix = fuse_fix(error.errno).map(str::to_owned);
            TrialError { fix, ..TrialError::from(error) }
        })
}

/// The kernel accepts only a device that was opened in the user namespace that mounts (`fuse_fill_super()`),
/// and mounts before anything answers on it.
fn mount_fuse() -> Outcome {
    let device = open_fuse()?;
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let (uid, gid) = (uid.as_raw().to_string(), gid.as_raw().to_string());
    let descriptor = device.as_raw_fd().to_string();
    let options = [
        FsOption::Text("fd", &descriptor),
        FsOption::Text("rootmode", "40000"),
        FsOption::Text("user_id", &uid),
        FsOption::Text("group_id", &gid),
    ];
    mounts::new_fs("fuse", &options, MountAttrs::NOSUID | MountAttrs::NODEV)?;
    Ok("works".to_owned())
}

fn fuse_fix(errno: Errno) -> Option<&'static str> {
    match errno {
        Errno::ACCESS => Some("sudo chmod 0666 /dev/fuse"),
        Errno::NOENT | Errno::NODEV | Errno::NXIO => {
            Some("sudo modprobe fuse (in a container: docker run --device /dev/fuse)")
        }
        Errno::PERM => Some("start the container with --device /dev/fuse"),
        _ => None,
    }
}

/// Any id other than root's and our own.
const SOME_ID: u32 = 65_533;

/// Runs of root write to the project as another user, through a mount that maps the ids back.
pub(super) fn id_mapped_mounts() -> Finding {
    let subject = Subject {
        id: "id-mapped-mounts",
        what: "mount the current directory with another owner",
        needed_for: "runs started by root that write to the current directory",
        without: Health::Missing,
    };
    let outcome = trial(CloneFlags::NONE, map_current_directory);
    let fix = "keep the project on ext4, xfs, btrfs or tmpfs, or run as its owner: \
                sudo -u OWNER sandbox run";
    subject.finding(outcome.map_err(|fault| fault.or_fixed_by(fix)))
}

fn map_current_directory() -> Outcome {
    let line = [MapLine { inside: 0, outside: SOME_ID, count: 1 }];
    let namespace = mapped_namespace(&line, &line).map_err(|error| match error.call {
        "write" => TrialError::from(error).fixed_by(
            "only root's id is available here; start as an ordinary user, or in a \
                 container that has 65536 ids",
        ),
        _ => TrialError::from(error),
    })?;
    let mount = mounts::open_tree(CWD, Path::new("."), Recursion::Single)?;
    let attr = MountAttr { userns_fd: Some(namespace.as_fd()), ..MountAttr::default() };
    mounts::mount_setattr(&mount, Recursion::Single, &attr).map_err(|error| SysError {
        subject: "MOUNT_ATTR_IDMAP on the current directory".to_owned(),
        ..error
    })?;
    Ok("its file system supports id maps".to_owned())
}
