use super::*;
use crate::network::{NetworkAction, Via};
use crate::outcome::ErrorKind;
use crate::redact;
use serde_json::{Value, json};
use std::os::unix::ffi::OsStringExt;

pub(crate) fn run() -> Run {
    Run {
        session_id: "s-1".to_owned(),
        worker_id: Some("w-1".to_owned()),
        tool: "bash".to_owned(),
        sandbox_level: "LEVEL_2".to_owned(),
        sandbox_mode: "static".to_owned(),
        network_mode: "none".to_owned(),
        sandbox_root: PathBuf::from("/srv/project"),
        command: CommandDigest::of(&["echo", "--token=abc"]),
    }
}

fn written(state: State, kind: EventKind) -> Value {
    let event = Event::new("b-1", state, kind);
    let value = serde_json::to_value(&event).unwrap();
    assert_eq!(serde_json::from_value::<Event>(value.clone()).unwrap().kind, event.kind);
    value
}

fn exited() -> EventKind {
    EventKind::SandboxExited(Box::new(Exited {
        run: run(),
        outcome: Outcome::Completed,
        exit_code: Some(3),
        signal: None,
        duration_ms: 12,
    }))
}

/// Proves: AUD-2 fleet-fields, AUD-2 command-entry
#[test]
fn the_last_event_tells_the_whole_run() {
    let value = written(State::Completed, exited());
    assert_eq!(value["event"], "SANDBOX_EXITED");
    assert_eq!(value["state"], "Completed");
    assert_eq!(value["level"], "INFO");
    assert_eq!(value["sandboxId"], "b-1");
    assert_eq!(
        value["details"],
        json!({
            "sessionId": "s-1",
            "workerId": "w-1",
            "tool": "bash",
            "sandboxLevel": "LEVEL_2",
            "sandboxMode": "static",
            "networkMode": "none",
            "sandboxRoot": "/srv/project",
            "commandHash": redact::hash(&["echo", "--token=abc"]).to_string(),
            "commandPreview": "echo --token=[redacted]",
            "outcome": "completed",
            "exitCode": 3,
            "durationMs": 12,
        })
    );
}

/// Proves: AUD-2 levels
#[test]
fn every_kind_has_its_name_and_level() {
    let attempt = |severity| {
        EventKind::EscapeAttempt(EscapeAttempt {
            id: String::new(),
            indicator: Indicator::Filesystem,
            severity,
            description: "path traversal".to_owned(),
            pid: None,
        })
    };
    let created = Created { run: run(), pid: 1, uid: 2, working_directory: PathBuf::from("/") };
    let table = [
        (EventKind::SandboxCreated(Box::new(created)), "SANDBOX_CREATED", "INFO"),
        (
            EventKind::SandboxEntered(Entered { pid: 7, namespaces: vec!["pid".to_owned()] }),
            "SANDBOX_ENTERED",
            "INFO",
        ),
        (
            EventKind::SandboxValidated(Validated { probes: 5, duration_us: 90 }),
            "SANDBOX_VALIDATED",
            "INFO",
        ),
        (
            EventKind::SandboxExecuted(Executed { pid: Some(8), setup_us: 1900 }),
            "SANDBOX_EXECUTED",
            "INFO",
        ),
        (exited(), "SANDBOX_EXITED", "INFO"),
        (EventKind::SandboxDestroyed(Destroyed { duration_ms: 4 }), "SANDBOX_DESTROYED", "INFO"),
        (
            EventKind::SandboxFailed(Failure {
                kind: ErrorKind::Initialisation,
                message: "no".to_owned(),
                causes: Vec::new(),
            }),
            "SANDBOX_FAILED",
            "ERROR",
        ),
        (
            EventKind::PolicyViolation(PolicyViolation {
                pid: Some(9),
                op: "exec".to_owned(),
                path: Some("/bin/nc".to_owned()),
                decision: Decision::Denied,
                rule: "process.allowedExecutables".to_owned(),
                latency_us: Some(40),
            }),
            "POLICY_VIOLATION",
            "WARN",
        ),
        (attempt(Severity::High), "ESCAPE_ATTEMPT", "ERROR"),
        (attempt(Severity::Critical), "ESCAPE_ATTEMPT", "CRITICAL"),
        (
            EventKind::ResourceLimitExceeded(LimitExceeded {
                resource: "resources.maxMemory".to_owned(),
                limit: 1,
                observed: None,
                holder: "cgroup v2".to_owned(),
            }),
            "RESOURCE_LIMIT_EXCEEDED",
            "WARN",
        ),
        (
            EventKind::SyscallBlocked(SyscallBlocked {
                name: "bpf".to_owned(),
                number: 321,
                arguments: [0, 1, 2, 3, 4, u64::MAX],
                pid: 9,
                executable: "/usr/bin/x".to_owned(),
                errno: "EPERM".to_owned(),
                suspicious: true,
            }),
            "SYSCALL_BLOCKED",
            "WARN",
        ),
        (
            EventKind::SignalForwarded(SignalForwarded {
                signal: 15,
                name: "SIGTERM".to_owned(),
                fatal: true,
            }),
            "SIGNAL_FORWARDED",
            "INFO",
        ),
        (
            EventKind::ApprovalRecorded(Approval {
                what: "network:host".to_owned(),
                reason: "needs the VPN".to_owned(),
            }),
            "APPROVAL_RECORDED",
            "WARN",
        ),
    ];
    for (kind, name, level) in table {
        let value = written(State::Monitoring, kind);
        assert_eq!((&value["event"], &value["level"]), (&json!(name), &json!(level)));
    }
}

fn tried(action: NetworkAction) -> NetworkAttempt {
    NetworkAttempt {
        action,
        via: Via::Transparent,
        host: "registry.example".to_owned(),
        address: Some([203, 0, 113, 7].into()),
        port: 443,
        rule: Some("registry.example".to_owned()),
        reason: None,
        allow: None,
        count: 1,
    }
}

/// Proves: AUD-2 proxy-events, NET-7 logged
#[test]
fn the_proxys_events_have_their_names_and_say_where_to_and_why() {
    let table = [
        (NetworkAction::ProxyAllowed, "proxy_allowed", "INFO"),
        (NetworkAction::ProxyDenied, "proxy_denied", "WARN"),
        (NetworkAction::ProxyDeniedPort, "proxy_denied_port", "WARN"),
        (NetworkAction::ProxyBlockedDns, "proxy_blocked_dns", "WARN"),
        (NetworkAction::DnsRebindBlocked, "dns_rebind_blocked", "WARN"),
        (NetworkAction::RedirectBlocked, "redirect_blocked", "WARN"),
        (NetworkAction::RedirectDenied, "redirect_denied", "WARN"),
    ];
    for (action, name, level) in table {
        let value = written(State::Monitoring, EventKind::NetworkAttempt(Box::new(tried(action))));
        assert_eq!(
            (&value["event"], &value["level"], &value["details"]["action"]),
            (&json!("NETWORK_ATTEMPT"), &json!(level), &json!(name))
        );
    }
    let value = written(
        State::Monitoring,
        EventKind::NetworkAttempt(Box::new(tried(NetworkAction::ProxyAllowed))),
    );
    assert_eq!(
        value["details"],
        json!({
            "action": "proxy_allowed",
            "via": "transparent",
            "host": "registry.example",
            "address": "203.0.113.7",
            "port": 443,
            "rule": "registry.example",
        })
    );
}

/// Proves: NET-6 logged, NET-7 logged, AUD-2 levels
#[test]
fn what_was_looked_up_carried_and_decided_has_names_and_levels() {
    let queried = |answer: &str, suspicion: Option<&str>| {
        EventKind::NameQueried(Box::new(NameQueried {
            name: "registry.example".to_owned(),
            record: "AAAA".to_owned(),
            answer: answer.to_owned(),
            rule: None,
            reason: None,
            suspicion: suspicion.map(str::to_owned),
            count: 1,
        }))
    };
    let decided = |decision| {
        EventKind::HostDecided(Box::new(HostDecided {
            host: "registry.example".to_owned(),
            port: 443,
            decision,
            lifetime: "session".to_owned(),
            source: "terminal".to_owned(),
            details: None,
            question: Some(1),
            latency_us: 7,
        }))
    };
    let closed = EventKind::ConnectionClosed(Box::new(ConnectionClosed {
        via: Via::Socks,
        host: "registry.example".to_owned(),
        address: None,
        port: 443,
        sent: 1,
        received: 2,
        duration_ms: 3,
        count: 1,
    }));
    let summed = |decision| {
        EventKind::EventsSummed(Box::new(EventsSummed {
            what: "access".to_owned(),
            decision,
            source: Some("rule".to_owned()),
            count: 3,
            questions: 0,
            last_path: None,
            duration_ms: 9,
        }))
    };
    let table = [
        (summed(Decision::Allowed), "EVENTS_SUMMED", "INFO"),
        (summed(Decision::Denied), "EVENTS_SUMMED", "WARN"),
        (queried("NOERROR", None), "NAME_QUERIED", "INFO"),
        (queried("NOERROR", Some("too random")), "NAME_QUERIED", "WARN"),
        (queried("NXDOMAIN", None), "NAME_QUERIED", "WARN"),
        (decided(Decision::Allowed), "HOST_DECIDED", "INFO"),
        (decided(Decision::Denied), "HOST_DECIDED", "WARN"),
        (closed, "CONNECTION_CLOSED", "INFO"),
    ];
    for (kind, name, level) in table {
        let value = written(State::Monitoring, kind);
        assert_eq!((&value["event"], &value["level"]), (&json!(name), &json!(level)));
    }
}

#[test]
fn times_are_utc_with_microseconds_and_ids_sort_by_time() {
    let first = Event::new("b-1", State::Completed, exited());
    let second = Event::new("b-1", State::Completed, exited());
    assert!(first.event_id < second.event_id);
    let value = serde_json::to_value(&first).unwrap();
    let time = value["timestamp"].as_str().unwrap();
    assert_eq!((time.len(), time.ends_with('Z')), ("2026-01-02T03:04:05.678901Z".len(), true));
}

#[test]
fn a_path_that_is_not_utf8_is_recorded_all_the_same() {
    let odd = PathBuf::from(std::ffi::OsString::from_vec(b"/a\xff\n".to_vec()));
    let created = Created { run: run(), pid: 1, uid: 2, working_directory: odd };
    let event = Event::new("b-1", State::Created, EventKind::SandboxCreated(Box::new(created)));
    let value = serde_json::to_value(&event).unwrap();
    assert_eq!(value["details"]["workingDirectory"], "/a\\xff\\n");
}
