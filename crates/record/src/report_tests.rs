use super::*;
use crate::network::NetworkAction;
use crate::network_report::{DeniedHost, OtherHosts, QueriesReport, ReachedHost};
use crate::outcome::ErrorKind;

pub(crate) fn report() -> RunReport {
    let versions = Versions { palisade: "0.1.0".to_owned(), kernel: "6.18.0".to_owned() };
    let promise = |id: &str, planned, observed, probe_errno| PromiseReport {
        id: id.to_owned(),
        what: format!("what {id} says"),
        layers: vec!["mount view".to_owned(), "landlock".to_owned()],
        planned,
        observed,
        probe_errno,
    };
    let probe = |probe: &str, observed: &str, ok| ProbeReport {
        probe: probe.to_owned(),
        expected: "EACCES or ENOENT".to_owned(),
        observed: observed.to_owned(),
        ok,
    };
    RunReport {
        started_at: "2026-01-02T03:04:05.678901Z".parse().unwrap(),
        outcome: Outcome::Completed,
        exit_code: 3,
        usage: Some(ReportedUsage {
            setup_us: 2_400,
            wall_us: 1_234_567,
            cpu_user_us: 900_000,
            cpu_system_us: 12_000,
            peak_memory_bytes: Some(47_395_635),
            counted_by: "processes".to_owned(),
            memory_bytes: None,
            peak_processes: Some(3),
            read_bytes: Some(4096),
            written_bytes: None,
            reads: None,
            writes: None,
        }),
        walls: Some(ReportedConfinement {
            level: "LEVEL_2".to_owned(),
            view: "host".to_owned(),
            mode: "static".to_owned(),
            network: "none".to_owned(),
            identity: ReportedIdentity {
                inside_uid: 1000,
                inside_gid: 1000,
                outside_uid: 1000,
                outside_gid: 1000,
            },
        }),
        promises: vec![
            promise("FS-1", Planned::Held, Some(Observed::Held), Some(30)),
            promise("PROC-2", Planned::Advisory, Some(Observed::NotProbed), None),
            promise("NET-2", Planned::Held, Some(Observed::NotProbed), None),
            promise("SYS-2", Planned::Absent, None, None),
        ],
        self_check: vec![
            probe("read a canary outside", "ENOENT", true),
            probe("write to /usr", "success", false),
        ],
        relaxations: vec!["debugging is on".to_owned()],
        notes: vec!["from inside: \u{1b}[2J\u{202e}\nsandbox: completed".to_owned()],
        signals_forwarded: vec![SignalForwarded {
            signal: 15,
            name: "SIGTERM".to_owned(),
            fatal: true,
        }],
        approvals: vec![Approval {
            what: "network:host".to_owned(),
            reason: "needs the VPN".to_owned(),
        }],
        ..RunReport::begin("s-1", &["npm", "test", "--token=abc"], versions)
    }
}

#[test]
fn the_json_is_the_published_form() {
    let json = report().to_json().unwrap();
    assert_eq!(json, include_str!("testdata/report.json"));
    assert_eq!(serde_json::from_str::<RunReport>(&json).unwrap(), report());
}

/// Proves: AUD-2 escaped-text
#[test]
fn the_summary_is_short_and_escaped() {
    assert_eq!(report().to_string(), include_str!("testdata/report.txt"));
}

/// Proves: ERR-1 report
#[test]
fn a_failed_run_says_why() {
    let versions = Versions { palisade: "0.1.0".to_owned(), kernel: "6.18.0".to_owned() };
    let failed = RunReport {
        failure: Some(Failure {
            kind: ErrorKind::Initialisation,
            message: "cannot make a user namespace: EPERM".to_owned(),
            causes: vec!["kernel.apparmor_restrict_unprivileged_userns is 1".to_owned()],
        }),
        ..RunReport::begin("s-1", &["true"], versions)
    };
    assert_eq!(
        failed.to_string(),
        "sandbox: failed, exit code 125\n  \
           error      cannot make a user namespace: EPERM\n  \
           cause      kernel.apparmor_restrict_unprivileged_userns is 1\n  \
           command    true\n  \
           session    s-1\n"
    );
    let json: serde_json::Value = serde_json::from_str(&failed.to_json().unwrap()).unwrap();
    assert_eq!(json["outcome"], "failed");
    assert_eq!(json["failure"]["kind"], "initialisation");
    assert_eq!(json.get("walls"), None);
}

/// Proves: NET-7 logged
#[test]
fn the_network_is_told_with_what_would_allow_a_denied_host() {
    let mut report = report();
    report.network = Some(NetworkReport {
        mode: "proxy".to_owned(),
        front: "transparent".to_owned(),
        hosts: vec![ReachedHost {
            host: "registry.example".to_owned(),
            port: 443,
            connections: 2,
            sent: 1 << 20,
            received: 3 << 20,
            rule: None,
        }],
        denied: vec![DeniedHost {
            host: "other\x1b.example".to_owned(),
            port: Some(443),
            action: NetworkAction::ProxyDenied,
            reason: Some("not allowed".to_owned()),
            rule: None,
            count: 4,
            allow: Some("--allow-host other.example".to_owned()),
        }],
        queries: QueriesReport { answered: 2, refused: 1, ..QueriesReport::default() },
        beyond: 9,
        others: Some(OtherHosts { connections: 6, sent: 1 << 20, received: 2 << 20 }),
        ..NetworkReport::default()
    });
    let text = report.to_string();
    for told in [
        "  network    proxy (transparent), 2 names answered, 1 not",
        "  reached    registry.example:443, 2 times, 1.0 MiB sent, 3.0 MiB received",
        "  reached    other hosts, 6 times, 1.0 MiB sent, 2.0 MiB received",
        "             9 more attempts at other hosts",
        "  denied     other\\x1b.example:443, 4 times: not allowed; allow with --allow-host other.example",
    ] {
        assert!(text.contains(told), "no `{told}` in\n{text}");
    }
    let again: RunReport = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    assert_eq!(again, report);
}
