use super::filters::install_rules;
use super::*;
use crate::remedy;
use palisade_bpf::{
    Arch, Arg, CallAnswer, Condition, Listening, Notice, Refusal, Rule, Test, Width, table,
};
use palisade_sys::mounts::{self, FsOption, MountAttrs};
use palisade_sys::test_child::{become_namespace_root, in_child};
use palisade_sys::{CWD, Errno, SysError, creds};
use std::path::{Path, PathBuf};

const ALWAYS: [&str; 19] = [
    "user-namespaces",
    "mount-namespaces",
    "apparmor",
    "pid-namespaces",
    "pivot-root",
    "network-namespaces",
    "seccomp",
    "landlock",
    "openat2",
    "close-range",
    "overlay",
    "seccomp-notify",
    "fuse",
    "cgroups",
    "time-namespaces",
    "yama",
    "subordinate-ids",
    "nf-tables",
    "nat-helper",
];

/// An ordinary user's process; in a test run that has no privilege it is one already.
fn become_ordinary() {
    if rustix::process::geteuid().is_root() {
        creds::setgroups_empty().unwrap();
        creds::setresgid(1234).unwrap();
        creds::setresuid(1234).unwrap();
        creds::set_dumpable(true).unwrap();
    }
}

fn finding<'report>(report: &'report Report, id: &str) -> &'report Finding {
    report.findings.iter().find(|finding| finding.id == id).unwrap()
}

fn assert_healthy(report: &Report) {
    for id in ALWAYS {
        let finding = finding(report, id);
        assert!(!finding.detail.is_empty(), "{finding:?}");
        if finding.health == Health::Works {
            assert_eq!(finding.fix, None, "{finding:?}");
        } else {
            assert!(finding.fix.is_some(), "{finding:?}");
        }
    }
    assert_eq!(finding(report, "user-namespaces").health, Health::Works);
    assert!(report.ready(), "{report:#?}");
}

/// Proves: PROC-7 doctor, PROC-7 doctor-more, PROC-7 oldest-kernel
#[test]
fn everything_a_run_needs_is_tried_as_the_caller() {
    in_child(|| {
        let report = doctor();
        assert_healthy(&report);
        let root = rustix::process::geteuid().is_root();
        let mapped = report.findings.iter().any(|finding| finding.id == "id-mapped-mounts");
        assert_eq!(mapped, root);
        assert_eq!(report.oldest_kernel, "5.12");
        assert!(!report.kernel.is_empty());
    });
}

/// Proves: PROC-7 doctor, PROC-7 works
#[test]
fn everything_a_run_needs_is_tried_as_an_ordinary_user() {
    in_child(|| {
        become_ordinary();
        let report = doctor();
        assert_healthy(&report);
        assert!(report.findings.iter().all(|finding| finding.id != "id-mapped-mounts"));
    });
}

/// What a trial could leave behind.
#[derive(Debug, PartialEq, Eq)]
struct Traces {
    mounts: String,
    children: String,
    descriptors: usize,
    groups: Vec<PathBuf>,
}

impl Traces {
    fn now() -> Self {
        let own = std::process::id();
        Self {
            mounts: std::fs::read_to_string("/proc/self/mountinfo").unwrap(),
            children: std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap(),
            descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            groups: groups_named(&format!("palisade-doctor-{own}"), Path::new("/sys/fs/cgroup")),
        }
    }
}

fn groups_named(name: &str, below: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(below).into_iter().flatten().filter_map(Result::ok);
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .flat_map(|entry| {
            let mut found = groups_named(name, &entry.path());
            found.extend((entry.file_name() == name).then(|| entry.path()));
            found
        })
        .collect()
}

/// Proves: PROC-7 doctor
#[test]
fn nothing_is_left_behind() {
    in_child(|| {
        let before = Traces::now();
        assert_eq!((before.children.as_str(), before.groups.len()), ("", 0));
        doctor();
        assert_eq!(Traces::now(), before);
    });
}

/// As a container's profile does: clone3 not at all, the older calls by their flags.
fn forbid_user_namespaces() {
    const NEWUSER: u64 = 0x1000_0000;
    let number = |name| table::number(Arch::native(), name).unwrap();
    let asks_for_user =
        Condition { arg: Arg::A0, width: Width::Full, test: Test::MaskedAny { mask: NEWUSER } };
    let rule = |name, conditions, errno: Errno| Rule {
        syscall: number(name),
        conditions,
        answer: CallAnswer::Refuse(Refusal {
            errno: u16::try_from(errno.raw_os_error()).unwrap(),
            notice: Notice::Quiet,
        }),
    };
    let rules = vec![
        rule("clone3", Vec::new(), Errno::NOSYS),
        rule("clone", vec![asks_for_user], Errno::PERM),
        rule("unshare", Vec::new(), Errno::PERM),
    ];
    install_rules(rules, Listening::No).unwrap();
}

/// Proves: PROC-7 doctor, PROC-7 says-why
#[test]
fn a_host_that_forbids_user_namespaces_is_told_in_the_words_of_a_run() {
    in_child(|| {
        become_ordinary();
        forbid_user_namespaces();
        let report = doctor();
        assert!(!report.ready());
        let users = finding(&report, "user-namespaces");
        assert_eq!(users.health, Health::Missing);
        assert!(users.detail.contains("EPERM"), "{users:?}");
        let words_of_run = remedy::for_call(&SysError::new("clone3", "", Errno::PERM));
        assert_eq!(users.fix, words_of_run);
        assert!(users.fix.as_ref().unwrap().contains("--level 1 --no-userns"), "{users:?}");
        // What needs no namespace is tried all the same, and what needs one points to the cause.
        assert_eq!(finding(&report, "seccomp").health, Health::Works);
        assert_eq!(finding(&report, "openat2").health, Health::Works);
        for id in ["mount-namespaces", "pid-namespaces", "network-namespaces", "pivot-root"] {
            let finding = finding(&report, id);
            assert_eq!(finding.health, Health::Missing);
            assert!(finding.detail.contains("user-namespaces"), "{finding:?}");
        }
    });
}

/// Proves: PROC-7 says-why
#[test]
fn user_namespaces_that_are_switched_off_are_mended_by_a_sysctl() {
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNS);
        std::fs::write("/proc/sys/user/max_user_namespaces", "0").unwrap();
        let report = doctor();
        let users = finding(&report, "user-namespaces");
        assert_eq!(users.health, Health::Missing);
        assert!(users.detail.contains("ENOSPC"), "{users:?}");
        let fix = users.fix.as_ref().unwrap();
        assert!(fix.contains("sudo sysctl -w user.max_user_namespaces="), "{fix}");
    });
}

/// Proves: PROC-7 says-why
#[test]
fn a_covered_proc_is_named_as_the_cause() {
    in_child(|| {
        become_namespace_root(CloneFlags::NEWNS);
        mounts::make_private_recursive(Path::new("/")).unwrap();
        let cover =
            mounts::new_fs("tmpfs", &[FsOption::Text("size", "64k")], MountAttrs::NONE).unwrap();
        mounts::move_mount(&cover, CWD, Path::new("/proc/irq")).unwrap();
        let report = doctor();
        assert_eq!(finding(&report, "mount-namespaces").health, Health::Works);
        let pids = finding(&report, "pid-namespaces");
        assert_eq!(pids.health, Health::Missing);
        assert!(pids.detail.contains("EPERM"), "{pids:?}");
        assert!(pids.fix.as_ref().unwrap().contains("systempaths=unconfined"), "{pids:?}");
    });
}

#[test]
fn the_report_prints_as_json_in_camel_case() {
    let subject = Subject { id: "x", what: "w", needed_for: "n", without: Health::Degraded };
    let finding = subject.finding(Err(TrialError::new("why").fixed_by("how")));
    let report = Report { kernel: "k".to_owned(), oldest_kernel: "o", findings: vec![finding] };
    let expected = serde_json::json!({
        "kernel": "k",
        "oldestKernel": "o",
        "findings": [{
            "id": "x", "what": "w", "health": "degraded",
            "detail": "why", "mend": "how", "neededFor": "n",
        }],
    });
    assert_eq!(serde_json::to_value(&report).unwrap(), expected);
    assert!(report.ready());
}
