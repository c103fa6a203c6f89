//! Restrictions that cannot be undone: seccomp filters, notification, Landlock. Must run only in a child
//! process.

use super::trial::{Outcome, TrialError, trial};
use super::{Finding, Health, Subject};
use crate::filter;
use ::landlock::{
    AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, RulesetStatus,
};
use palisade_bpf::{Arch, CallAnswer, FilterSpec, Listening, Notice, Refusal, Rule, table};
use palisade_sys::clone::CloneFlags;
use palisade_sys::landlock::landlock_abi;
use palisade_sys::seccomp::{self, SeccompFlags};
use palisade_sys::{Errno, Mode, OFlags, creds};
use std::os::fd::OwnedFd;

/// A call that no trial needs, so a filter may answer it.
const HARMLESS: &str = "getpgid";

const SECCOMP_FIX: &str = "use a kernel built with CONFIG_SECCOMP_FILTER; in a container, one \
                            whose seccomp profile allows seccomp(2) (docker: --security-opt \
                            seccomp=unconfined)";

pub(super) fn seccomp() -> Finding {
    let subject = Subject {
        id: "seccomp",
        what: "install a seccomp filter that refuses a call",
        needed_for: "every run",
        without: Health::Missing,
    };
    let outcome = trial(CloneFlags::NONE, || {
        // Not an errno the call could return by itself.
        let refusal = Refusal { errno: errno_number(Errno::XDEV), notice: Notice::Quiet };
        install(CallAnswer::Refuse(refusal), Listening::No)?;
        answered(Errno::XDEV).map(|()| "the filter refused the call".to_owned())
    });
    subject.finding(outcome.map_err(|fault| fault.or_fixed_by(SECCOMP_FIX)))
}

pub(super) fn notify() -> Finding {
    let subject = Subject {
        id: "seccomp-notify",
        what: "receive notifications of a seccomp filter",
        needed_for: "questions while a command runs, and a log of refused calls",
        without: Health::Degraded,
    };
    let outcome = trial(CloneFlags::NONE, || {
        let sizes = seccomp::notify_sizes()?;
        let listener = install(CallAnswer::Broker, Listening::Yes)?;
        drop(listener);
        // Without its listener, a filter that notifies must refuse, never allow.
        answered(Errno::NOSYS)?;
        Ok(format!(
            "notifications of {} bytes; calls fail when nothing listens",
            sizes.notification
        ))
    });
    subject.finding(outcome.map_err(|fault| {
        if fault.detail.contains("EBUSY") {
            TrialError::new("an outer sandbox already has a listener (EBUSY)")
                .fixed_by("run outside the other sandbox")
        } else {
            fault.or_fixed_by(SECCOMP_FIX)
        }
    }))
}

fn install(answer: CallAnswer, listening: Listening) -> Result<Option<OwnedFd>, TrialError> {
    let syscall = table::number(Arch::native(), HARMLESS)
        .ok_or_else(|| TrialError::new(format!("{HARMLESS} is not in the system call table")))?;
    install_rules(vec![Rule { syscall, conditions: Vec::new(), answer }], listening)
}

pub(super) fn install_rules(
    rules: Vec<Rule>,
    listening: Listening,
) -> Result<Option<OwnedFd>, TrialError> {
    let program = FilterSpec::new(Arch::native(), CallAnswer::Allow, rules)
        .compile(listening)
        .map_err(|error| TrialError::new(error.to_string()))?;
    let flags = match listening {
        Listening::Yes => SeccompFlags::NEW_LISTENER,
        Listening::No => SeccompFlags::NONE,
    };
    creds::set_no_new_privs()?;
    Ok(filter::install(program.instructions(), flags)?)
}

fn answered(expected: Errno) -> Result<(), TrialError> {
    match rustix::process::getpgid(None) {
        Err(errno) if errno == expected => Ok(()),
        other => {
            Err(TrialError::new(format!("the filter is installed but had no effect: {other:?}")))
        }
    }
}

fn errno_number(errno: Errno) -> u16 {
    u16::try_from(errno.raw_os_error()).unwrap_or(u16::MAX)
}

pub(super) fn landlock() -> Finding {
    let subject = Subject {
        id: "landlock",
        what: "restrict a process with Landlock",
        needed_for: "a second, independent check of file access, and --level 1 --no-userns",
        without: Health::Degraded,
    };
    subject.finding(trial(CloneFlags::NONE, enforce_landlock))
}

fn enforce_landlock() -> Outcome {
    let abi = landlock_abi().map_err(|error| {
        let fix = match error.errno {
            // Built in, but not in the list of security modules.
            Errno::OPNOTSUPP => format!(
                "add lsm=landlock,{} to the kernel's command line (GRUB_CMDLINE_LINUX in \
                 /etc/default/grub, then sudo update-grub) and reboot",
                active_modules()
            ),
            _ => "use a kernel from 5.13 on built with CONFIG_SECURITY_LANDLOCK; in a container, \
                  one whose seccomp profile allows landlock_create_ruleset(2)"
                .to_owned(),
        };
        TrialError::new(error.to_string()).fixed_by(fix)
    })?;
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::ReadDir)
        .and_then(Ruleset::create)
        .and_then(::landlock::RulesetCreated::restrict_self)
        .map_err(|error| TrialError::new(error.to_string()))?;
    let opened =
        rustix::fs::open("/", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    match (status.ruleset, opened) {
        (RulesetStatus::FullyEnforced, Err(Errno::ACCESS)) => Ok(covered(abi)),
        (status, opened) => Err(TrialError::new(format!(
            "a ruleset was {status:?}, and a refused open gave {opened:?}"
        ))),
    }
}

/// What an ABI cannot refuse yet, so that it is not relied on.
fn covered(abi: u32) -> String {
    let lacks: Vec<&str> = [
        (2, "renames across directories"),
        (3, "truncation"),
        (4, "TCP ports"),
        (5, "ioctl on devices"),
        (6, "signals and abstract sockets"),
    ]
    .into_iter()
    .filter_map(|(since, what)| (abi < since).then_some(what))
    .collect();
    if lacks.is_empty() {
        format!("ABI {abi}")
    } else {
        format!("ABI {abi}, without {}", lacks.join(", "))
    }
}

fn active_modules() -> String {
    let list = std::fs::read_to_string("/sys/kernel/security/lsm").unwrap_or_default();
    match list.trim() {
        "" => "lockdown,yama,apparmor".to_owned(),
        list => list.to_owned(),
    }
}
