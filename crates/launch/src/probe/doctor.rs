//! The checks of `sandbox doctor`: every kernel feature a run needs, tried on this host. Must never judge by a
//! version number, and must leave nothing behind: what would change this process is tried in a child process.

mod cgroups;
mod files;
mod filters;
mod namespaces;
mod network;
mod programs;
mod trial;

use palisade_sys::clone::CloneFlags;
use serde::Serialize;
use trial::{Outcome, TrialError, trial};

pub(super) use files::overlay_obstacle;

/// `mount_setattr` is the newest call no run can do without. Landlock (5.13) and a count of processes
/// per sandbox (5.14) are used where they are.
const OLDEST_KERNEL: &str = "5.12";

/// What this host can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// As uname(2) reports it; nothing was concluded from it.
    pub kernel: String,
    /// The oldest kernel supported.
    pub oldest_kernel: &'static str,
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether a run with the default settings can work here.
    pub fn ready(&self) -> bool {
        self.findings.iter().all(|finding| finding.health != Health::Missing)
    }
}

/// One feature, and whether it works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Stable, for programs: `user-namespaces`.
    pub id: &'static str,
    /// What was tried, in one line.
    pub what: &'static str,
    pub health: Health,
    /// What was observed, or why it does not work, with the errno's name.
    pub detail: String,
    /// The command that fixes it, where one is known. Scripts know it as `mend`.
    #[serde(rename = "mend")]
    pub fix: Option<String>,
    /// What does not work without it.
    pub needed_for: &'static str,
}

/// Whether a feature works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Health {
    Works,
    /// Does not work, and a run needs it.
    Missing,
    /// Does not work; runs go on without it and lose what `needed_for` says.
    Degraded,
}

/// A check before it is made.
struct Subject {
    id: &'static str,
    what: &'static str,
    needed_for: &'static str,
    /// The health if it does not work.
    without: Health,
}

impl Subject {
    fn finding(self, outcome: Outcome) -> Finding {
        let Self { id, what, needed_for, without } = self;
        let (health, detail, fix) = match outcome {
            Ok(detail) => (Health::Works, detail, None),
            Err(TrialError { detail, fix }) => (without, detail, fix),
        };
        Finding { id, what, health, detail, fix, needed_for }
    }
}

/// Whether trials inside a user namespace make sense at all.
#[derive(Clone, Copy)]
struct Inside {
    usable: bool,
}

impl Inside {
    /// Tries `body` in a user namespace, and the `others` besides. Without user namespaces, one finding says so
    /// with its fix, and the rest refer to it.
    fn trial(self, others: CloneFlags, body: impl FnOnce() -> Outcome) -> Outcome {
        if self.usable {
            trial(CloneFlags::NEWUSER | others, body)
        } else {
            Err(TrialError::new("not tried: it needs a user namespace, see user-namespaces"))
        }
    }
}

/// Tries everything. The caller must be single-threaded; takes some tens of milliseconds.
pub fn doctor() -> Report {
    // A process that inherited an ignored SIGCHLD could not wait for its children.
    palisade_sys::proc::reset_action(palisade_sys::proc::sig::SIGCHLD);
    let users = namespaces::user();
    let inside = Inside { usable: users.health == Health::Works };
    let mounts = namespaces::mounts(inside);
    let apparmor = namespaces::apparmor(&users, &mounts);
    let mut findings = vec![
        users,
        mounts,
        apparmor,
        namespaces::pids(inside),
        namespaces::change_of_root(inside),
        network::namespace(inside),
        filters::seccomp(),
        filters::landlock(),
        files::openat2(),
        files::close_range(),
    ];
    if rustix::process::geteuid().is_root() {
        findings.push(files::id_mapped_mounts());
    }
    findings.extend([
        files::overlay(inside),
        filters::notify(),
        files::fuse(inside),
        cgroups::delegation(),
        namespaces::time(inside),
        programs::yama(),
        programs::subordinate_ids(),
        network::nf_tables(inside),
        programs::nat_helper(),
    ]);
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    Report { kernel, oldest_kernel: OLDEST_KERNEL, findings }
}

#[cfg(test)]
#[path = "doctor_tests.rs"]
mod tests;
