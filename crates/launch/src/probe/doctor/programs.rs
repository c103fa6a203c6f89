//! What must be installed or configured on the host: helper programs, subordinate ids, Yama. Must never run
//! what it finds.

use super::trial::{Outcome, TrialError};
use super::{Finding, Health, Subject};
use crate::probe::account_of;
use palisade_sys::{At as _, Mode, OFlags};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

pub(super) fn yama() -> Finding {
    let subject = Subject {
        id: "yama",
        what: "Yama allows debuggers to trace",
        needed_for: "debuggers and strace in the sandbox",
        without: Health::Degraded,
    };
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
    subject.finding(judge_yama(scope.as_deref().map(str::trim)))
}

/// See the kernel's Documentation/admin-guide/LSM/Yama.rst.
fn judge_yama(scope: Option<&str>) -> Outcome {
    match scope {
        None => Ok("not in this kernel".to_owned()),
        Some("0") => Ok("ptrace_scope 0: any process of the same user".to_owned()),
        Some("1") => Ok("ptrace_scope 1: what the debugger itself started; to attach to others, \
                         sudo sysctl -w kernel.yama.ptrace_scope=0"
            .to_owned()),
        Some("2") => Err(TrialError::new("ptrace_scope 2: administrators only")
            .fixed_by("sudo sysctl -w kernel.yama.ptrace_scope=1")),
        Some(other) => {
            Err(TrialError::new(format!("ptrace_scope {other}: nobody, until a reboot")).fixed_by(
                "echo kernel.yama.ptrace_scope=1 | sudo tee /etc/sysctl.d/99-ptrace.conf && \
                 sudo reboot",
            ))
        }
    }
}

pub(super) fn subordinate_ids() -> Finding {
    let subject = Subject {
        id: "subordinate-ids",
        what: "newuidmap, newgidmap and subordinate ids",
        needed_for: "more than one user in a sandbox",
        without: Health::Degraded,
    };
    let uid = rustix::process::geteuid();
    subject.finding(if uid.is_root() {
        Ok("root maps ids itself".to_owned())
    } else {
        helpers_and_ranges(uid.as_raw())
    })
}

fn helpers_and_ranges(uid: u32) -> Outcome {
    for program in ["newuidmap", "newgidmap"] {
        if find(program).is_none() {
            let package = Package {
                debian: "uidmap",
                fedora: "shadow-utils",
                alpine: "shadow-uidmap",
                other: "shadow",
            };
            return Err(not_found(program).fixed_by(package.install()));
        }
    }
    let name = account_of(uid).map_or_else(|| uid.to_string(), |account| account.name);
    for file in ["/etc/subuid", "/etc/subgid"] {
        let text = std::fs::read_to_string(Path::new(file)).unwrap_or_default();
        if !has_range(&text, &name, uid) {
            let fix = format!(
                "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {name}"
            );
            return Err(TrialError::new(format!("{file} has no ids for {name}")).fixed_by(fix));
        }
    }
    Ok(format!("installed, and {name} has ids in /etc/subuid and /etc/subgid"))
}

/// A line is `USER:FIRST:COUNT`, the user by name or number, see subuid(5).
fn has_range(text: &str, name: &str, uid: u32) -> bool {
    text.lines().any(|line| {
        let mut fields = line.split(':');
        let owner = fields.next().unwrap_or_default();
        let count = fields.nth(1).and_then(|count| count.trim().parse().ok()).unwrap_or(0_u32);
        (owner == name || owner == uid.to_string()) && count > 0
    })
}

pub(super) fn nat_helper() -> Finding {
    let subject = Subject {
        id: "nat-helper",
        what: "pasta or slirp4netns, and a device for their link",
        needed_for: "--network nat: any host on any port",
        without: Health::Degraded,
    };
    let found: Vec<String> = ["pasta", "slirp4netns"]
        .into_iter()
        .filter_map(find)
        .map(|path| path.display().to_string())
        .collect();
    subject.finding(if found.is_empty() {
        let package = Package { debian: "passt", fedora: "passt", alpine: "passt", other: "passt" };
        Err(TrialError::new("neither pasta nor slirp4netns is in PATH").fixed_by(package.install()))
    } else if let Err(error) = link_device() {
        Err(TrialError::new(format!("{}, but {error}", found.join(", ")))
            .fixed_by("sudo modprobe tun; sudo chmod 0666 /dev/net/tun"))
    } else {
        Ok(found.join(", "))
    })
}

/// Opening it does not create a link yet.
fn link_device() -> palisade_sys::Result<()> {
    let path = Path::new("/dev/net/tun");
    rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).at("open", path).map(drop)
}

fn not_found(program: &str) -> TrialError {
    TrialError::new(format!("{program} is not in PATH"))
}

/// Looks in `PATH`, and in the directories that an ordinary user's `PATH` often lacks.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let forgotten = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(forgotten).map(|dir| dir.join(program)).find(|file| {
        file.metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}

/// The package's name, by family of distributions.
struct Package {
    debian: &'static str,
    fedora: &'static str,
    alpine: &'static str,
    other: &'static str,
}

impl Package {
    fn install(&self) -> String {
        self.install_on(&std::fs::read_to_string("/etc/os-release").unwrap_or_default())
    }

    /// By the `ID` and `ID_LIKE` lines of os-release(5).
    fn install_on(&self, os_release: &str) -> String {
        let families: Vec<&str> = os_release
            .lines()
            .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")))
            .flat_map(|value| value.trim_matches(['"', '\'']).split_whitespace())
            .collect();
        let like = |names: &[&str]| families.iter().any(|family| names.contains(family));
        if like(&["debian", "ubuntu"]) {
            format!("sudo apt install {}", self.debian)
        } else if like(&["fedora", "rhel"]) {
            format!("sudo dnf install {}", self.fedora)
        } else if like(&["alpine"]) {
            format!("sudo apk add {}", self.alpine)
        } else if like(&["arch"]) {
            format!("sudo pacman -S {}", self.other)
        } else if like(&["suse", "opensuse"]) {
            format!("sudo zypper install {}", self.other)
        } else {
            format!("install the package {}", self.other)
        }
    }
}

#[cfg(test)]
#[path = "programs_tests.rs"]
mod tests;
