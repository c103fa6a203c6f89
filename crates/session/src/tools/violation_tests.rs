use super::{Violation, ViolationKind};
use palisade_record::{
    Decision, EscapeAttempt, EventKind, Indicator, LimitExceeded, PolicyViolation, ProtectedWrite,
    RunReport, Severity, SyscallBlocked, TouchedPath, Versions,
};

#[test]
fn an_event_that_denies_is_a_violation_and_no_other_is() {
    let denied = |decision| {
        EventKind::PolicyViolation(PolicyViolation {
            pid: None,
            op: "open".to_owned(),
            path: Some("/p/.git/hooks/x".to_owned()),
            decision,
            rule: "filesystem.protectNames".to_owned(),
            latency_us: None,
        })
    };
    let found = Violation::of_event(&denied(Decision::Denied)).unwrap();
    assert_eq!(
        (found.kind, found.subject.as_str()),
        (ViolationKind::ProtectedWrite, "/p/.git/hooks/x")
    );
    assert_eq!(found.rule.as_deref(), Some("filesystem.protectNames"));
    assert_eq!(Violation::of_event(&denied(Decision::Allowed)), None);
    let escape = EventKind::EscapeAttempt(EscapeAttempt {
        id: "mount".to_owned(),
        indicator: Indicator::Syscall,
        severity: Severity::Critical,
        description: "mount(2)".to_owned(),
        pid: None,
    });
    assert_eq!(Violation::of_event(&escape).unwrap().kind, ViolationKind::Escape);
    let limit = EventKind::ResourceLimitExceeded(LimitExceeded {
        resource: "resources.timeout".to_owned(),
        limit: 1000,
        observed: None,
        holder: "timer".to_owned(),
    });
    assert_eq!(Violation::of_event(&limit).unwrap().subject, "resources.timeout");
    let blocked = EventKind::SyscallBlocked(SyscallBlocked {
        name: "bpf".to_owned(),
        number: 321,
        arguments: [0; 6],
        pid: 1,
        executable: "/bin/x".to_owned(),
        errno: String::new(),
        suspicious: false,
    });
    assert_eq!(Violation::of_event(&blocked).unwrap().executable.as_deref(), Some("/bin/x"));
}

#[test]
fn a_report_has_all_of_them() {
    let versions = Versions { palisade: String::new(), kernel: String::new() };
    let mut report = RunReport::begin("s", &["x"], versions);
    assert_eq!(Violation::of_report(&report), []);
    report.denied_paths.push(TouchedPath {
        path: "/home/u/.ssh".to_owned(),
        directory: None,
        access: "read".to_owned(),
        is_directory: true,
        is_secret: true,
        by: "secret".to_owned(),
        executable: "/bin/cat".to_owned(),
        count: 3,
    });
    report.protected_writes.push(ProtectedWrite {
        path: "/p/.envrc".to_owned(),
        rule: ".envrc".to_owned(),
        why: "direnv runs it".to_owned(),
        call: "openat".to_owned(),
        executable: "/bin/sh".to_owned(),
        count: 1,
    });
    let found = Violation::of_report(&report);
    let kinds: Vec<_> = found.iter().map(|it| (it.kind, it.count)).collect();
    assert_eq!(kinds, [(ViolationKind::ProtectedWrite, 1), (ViolationKind::Access, 3)]);
}
