//! Which control groups the host has, and whether we may put processes into one of our own.
//! Must remove at once the one group it makes.

use super::trial::{Fault, Outcome, trial};
use super::{Finding, Health, Subject};
use crate::probe::mountinfo::{self, Listed};
use palisade_plan::facts::HostMount;
use palisade_sys::clone::CloneFlags;
use palisade_sys::{At as _, Errno, Mode, SysError, proc};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the one group we make is called, before our pid.
const GROUP: &str = "palisade-doctor-";
/// The controllers that hold a limit.
const WANTED: [&str; 3] = ["memory", "pids", "cpu"];

pub(super) fn delegation() -> Finding {
    let subject = Subject {
        id: "cgroups",
        what: "put a process into a control group of our own",
        needed_for: "limits on the memory, processes and CPU of a whole run; without it each \
                     process is limited alone",
        without: Health::Degraded,
    };
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let host = Hierarchies::parse(&mounts, &membership);
    subject.finding(host.try_own_group())
}

/// What the host has mounted, as seen from this process.
#[derive(Debug, Default, PartialEq, Eq)]
struct Hierarchies {
    /// Our own group in cgroup v2.
    v2: Option<PathBuf>,
    /// Our own group for each wanted controller of v1.
    v1: Vec<(&'static str, PathBuf)>,
}

impl Hierarchies {
    /// See cgroups(7), `/proc/PID/cgroup`.
    fn parse(mounts: &[u8], membership: &str) -> Self {
        let mut found = Self::default();
        for Listed { mount, options } in mountinfo::parse(mounts) {
            match mount.fs_type.as_str() {
                "cgroup2" => {
                    found.v2 = found.v2.or_else(|| own_group(membership, "", &mount));
                }
                "cgroup" => {
                    for wanted in WANTED {
                        if options.split(',').any(|option| option == wanted) {
                            let own = own_group(membership, wanted, &mount);
                            found.v1.extend(own.map(|own| (wanted, own)));
                        }
                    }
                }
                _ => {}
            }
        }
        found
    }

    fn try_own_group(&self) -> Outcome {
        let controllers = self.v2.as_deref().map(v2_controllers).unwrap_or_default();
        let usable = controllers.split_whitespace().any(|name| WANTED.contains(&name));
        match (&self.v2, self.v1.first()) {
            (Some(own), _) if usable => {
                let seen = format!("v2, {} with {}", own.display(), controllers.trim());
                seen_with(&seen, enter_new_group(own, |errno| v2_mend(errno, own)))
            }
            (v2, Some(_)) => {
                let names: Vec<&str> = self.v1.iter().map(|(name, _)| *name).collect();
                let beside = if v2.is_some() { "v1 beside an empty v2 (hybrid)" } else { "v1" };
                let seen = format!("{beside}: {}", names.join(", "));
                let mut groups = self.v1.iter();
                let mend = |errno| match errno {
                    Errno::ROFS => READ_ONLY_MEND.to_owned(),
                    _ => V1_MEND.to_owned(),
                };
                seen_with(&seen, groups.try_for_each(|(_, own)| enter_new_group(own, mend)))
            }
            (Some(own), None) => {
                let detail = format!("v2, but {} has no memory, pids or cpu", own.display());
                Err(Fault::new(detail).mended_by(ENABLE_MEND))
            }
            (None, None) => Err(Fault::new("no control groups are mounted")
                .mended_by("sudo mount -t cgroup2 none /sys/fs/cgroup")),
        }
    }
}

const V1_MEND: &str = "switch to cgroup v2, which can be given to an ordinary user: add \
                       systemd.unified_cgroup_hierarchy=1 to GRUB_CMDLINE_LINUX in \
                       /etc/default/grub, then sudo update-grub && sudo reboot";
const READ_ONLY_MEND: &str = "start the container with writable control groups (docker 28: \
                              --security-opt writable-cgroups=true; podman: --security-opt \
                              unmask=/sys/fs/cgroup)";
const ENABLE_MEND: &str =
    "echo '+memory +pids +cpu' | sudo tee /sys/fs/cgroup/cgroup.subtree_control";

/// Our group's directory, if this mount, which shows the hierarchy from its root on, has it. v2 has
/// no controller's name in its line.
fn own_group(membership: &str, controller: &str, mount: &HostMount) -> Option<PathBuf> {
    let path = membership.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        controllers.split(',').any(|name| name == controller).then_some(path)
    })?;
    let below = Path::new(path).strip_prefix(&mount.root).ok()?;
    Some(mount.mount_point.join(below))
}

fn v2_controllers(own: &Path) -> String {
    std::fs::read_to_string(own.join("cgroup.controllers")).unwrap_or_default()
}

fn seen_with(seen: &str, entered: Result<(), Fault>) -> Outcome {
    match entered {
        Ok(()) => Ok(format!("{seen}; a group of our own takes processes")),
        Err(fault) => Err(Fault { detail: format!("{seen}; {}", fault.detail), ..fault }),
    }
}

fn v2_mend(errno: Errno, own: &Path) -> String {
    let own = own.display();
    match errno {
        Errno::ROFS => READ_ONLY_MEND.to_owned(),
        _ if Path::new("/run/systemd/system").is_dir() => {
            "systemd-run --user --scope -p Delegate=yes -- sandbox run …".to_owned()
        }
        _ => format!("sudo chown \"$USER\" {own} {own}/cgroup.procs {own}/cgroup.subtree_control"),
    }
}

/// Makes a group below `own`, moves a throw-away process into it, and removes it again.
fn enter_new_group(own: &Path, mend: impl Fn(Errno) -> String) -> Result<(), Fault> {
    let refused = |error: SysError| {
        let mend = mend(error.errno);
        Fault::from(error).mended_by(mend)
    };
    remove_left_behind(own);
    let group = own.join(format!("{GROUP}{}", std::process::id()));
    rustix::fs::mkdir(&group, Mode::RWXU).at("mkdir", &group).map_err(refused)?;
    let members = group.join("cgroup.procs");
    let entered = trial(CloneFlags::NONE, || {
        std::fs::write(&members, "0").at("write", &members).map_err(refused)?;
        Ok(String::new())
    });
    remove(&group)?;
    entered.map(drop)
}

/// Removes the groups of doctors that were killed. Another's group in use is refused to us as busy.
fn remove_left_behind(own: &Path) {
    for entry in std::fs::read_dir(own).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(GROUP)?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = rustix::fs::rmdir(entry.path());
        }
    }
}

/// A group that a process has just left can be busy for a moment more.
fn remove(group: &Path) -> Result<(), SysError> {
    const TRIES: u32 = 50;
    const PAUSE: Duration = Duration::from_millis(2);
    for _ in 0..TRIES {
        match rustix::fs::rmdir(group) {
            Err(Errno::BUSY) => {
                proc::poll(&mut [], Some(PAUSE))?;
            }
            removed => return removed.at("rmdir", group),
        }
    }
    Err(SysError::new("rmdir", group.display().to_string(), Errno::BUSY))
}

#[cfg(test)]
#[path = "cgroups_tests.rs"]
mod tests;
