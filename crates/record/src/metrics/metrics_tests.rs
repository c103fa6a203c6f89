use super::table::{Shape, TABLE, Unit, Values};
use super::{Malformed, Metrics, MetricsFile};
use crate::command_digest::CommandDigest;
use crate::decision::Decision;
use crate::event::{
    AccessDecided, Created, Destroyed, EscapeAttempt, EventKind, LimitExceeded, Run,
};
use crate::network::{
    ConnectionClosed, HostDecided, NameQueried, NetworkAction, NetworkAttempt, Via,
};
use crate::outcome::Outcome;
use crate::report::{
    BlockedCalls, LimitReport, ProtectedWrite, Reached, RefusedExecution, ReportedUsage, RunReport,
    Versions,
};
use crate::severity::{Indicator, Severity};
use proptest::prelude::{any, prop, proptest};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

fn report() -> RunReport {
    let versions = Versions { palisade: "0.1.0".to_owned(), kernel: "6.18.0".to_owned() };
    RunReport::begin("s-1", &["true"], versions)
}

fn created() -> EventKind {
    EventKind::SandboxCreated(Box::new(Created {
        run: Run {
            session_id: "s-1".to_owned(),
            worker_id: None,
            tool: "true".to_owned(),
            sandbox_level: "LEVEL_2".to_owned(),
            sandbox_mode: "dynamic".to_owned(),
            network_mode: "none".to_owned(),
            sandbox_root: PathBuf::from("/p"),
            command: CommandDigest::of(&["true"]),
        },
        pid: 1,
        uid: 2,
        working_directory: PathBuf::from("/p"),
    }))
}

fn destroyed(duration_ms: u64) -> EventKind {
    EventKind::SandboxDestroyed(Destroyed { duration_ms })
}

fn decided(decision: Decision, source: &str, question: Option<u64>) -> EventKind {
    EventKind::AccessDecided(Box::new(AccessDecided {
        path: "/home/me/secret\"\n".to_owned(),
        access: "read".to_owned(),
        decision,
        scope: "file".to_owned(),
        lifetime: "once".to_owned(),
        source: source.to_owned(),
        rule: None,
        op: "openat".to_owned(),
        pids: vec![7],
        executable: "/bin/cat".to_owned(),
        question,
        latency_us: 5,
    }))
}

fn attempt(action: NetworkAction, count: u64) -> EventKind {
    EventKind::NetworkAttempt(Box::new(NetworkAttempt {
        action,
        via: Via::Transparent,
        host: "secret.example".to_owned(),
        address: None,
        port: 443,
        rule: None,
        reason: None,
        allow: None,
        count,
    }))
}

fn queried(answer: &str, suspicion: Option<&str>) -> EventKind {
    EventKind::NameQueried(Box::new(NameQueried {
        name: "secret.example".to_owned(),
        record: "A".to_owned(),
        answer: answer.to_owned(),
        rule: None,
        reason: None,
        suspicion: suspicion.map(str::to_owned),
        count: 2,
    }))
}

/// A run in which everything happened.
fn eventful() -> Metrics {
    let mut metrics = Metrics::default();
    metrics.hear(&created());
    metrics.hear(&EventKind::EscapeAttempt(EscapeAttempt {
        id: String::new(),
        indicator: Indicator::Syscall,
        severity: Severity::Medium,
        description: "tried mount".to_owned(),
        pid: Some(7),
    }));
    metrics.hear(&EventKind::ResourceLimitExceeded(LimitExceeded {
        resource: "resources.timeout".to_owned(),
        limit: 1000,
        observed: None,
        holder: "timer".to_owned(),
    }));
    metrics.hear(&decided(Decision::Allowed, "terminal", Some(1)));
    metrics.hear(&decided(Decision::Denied, "rule", None));
    metrics.hear(&decided(Decision::Denied, "rule", None));
    metrics.hear(&decided(Decision::Denied, "a source of tomorrow", Some(2)));
    metrics.hear(&attempt(NetworkAction::ProxyAllowed, 1));
    metrics.hear(&attempt(NetworkAction::DnsRebindBlocked, 40));
    metrics.hear(&EventKind::ConnectionClosed(Box::new(ConnectionClosed {
        via: Via::Connect,
        host: "secret.example".to_owned(),
        address: None,
        port: 443,
        sent: 100,
        received: 7000,
        duration_ms: 3,
        count: 1,
    })));
    metrics.hear(&queried("NOERROR", None));
    metrics.hear(&queried("REFUSED", Some("too long")));
    metrics.hear(&EventKind::HostDecided(Box::new(HostDecided {
        host: "secret.example".to_owned(),
        port: 443,
        decision: Decision::Allowed,
        lifetime: "once".to_owned(),
        source: "socket".to_owned(),
        details: None,
        question: Some(3),
        latency_us: 10,
    })));
    metrics.hear(&destroyed(1500));
    let mut report = report();
    report.outcome = Outcome::Timeout;
    report.usage = Some(ReportedUsage {
        cpu_user_us: 1_250_000,
        cpu_system_us: 7,
        peak_memory_bytes: Some(100 << 20),
        read_bytes: Some(4096),
        writes: Some(9),
        ..ReportedUsage::default()
    });
    let limit = |key: &str, times: Option<u64>| LimitReport {
        name: key.to_owned(),
        key: key.to_owned(),
        value: 1,
        holder: "watchdog".to_owned(),
        grip: "sampled".to_owned(),
        overshoot: String::new(),
        reached: times.map(|times| Reached {
            usage: None,
            times: Some(times),
            ended_the_run: false,
        }),
    };
    report.limits = vec![
        limit("resources.timeout", Some(1)),
        limit("resources.maxMemory", Some(7)),
        limit("process.maxProcesses", None),
    ];
    let (path, executable) = (".git/hooks/x".to_owned(), "/bin/sh".to_owned());
    report.protected_writes = vec![ProtectedWrite {
        path: path.clone(),
        rule: ".git/hooks".to_owned(),
        why: "git runs it".to_owned(),
        call: "openat".to_owned(),
        executable: executable.clone(),
        count: 3,
    }];
    report.refused_executions = vec![RefusedExecution {
        path,
        rule: "process.allowedExecutables".to_owned(),
        call: "execve".to_owned(),
        executable: executable.clone(),
        count: 2,
    }];
    let call = |name: &str, count| BlockedCalls {
        detail: None,
        name: name.to_owned(),
        number: 1,
        count,
        suspicious: true,
        rule: None,
        executable: executable.clone(),
    };
    report.blocked_calls = vec![call("mount", 4), call("mount", 1), call("not \"a\" name", 6)];
    metrics.conclude(&report);
    metrics
}

#[track_caller]
fn has(text: &str, line: &str) {
    assert!(text.lines().any(|it| it == line), "no line `{line}` in\n{text}");
}

/// Proves: TEL-1 six, TEL-1 prometheus, TEL-1 cleanup, TEL-1 decisions
#[test]
fn a_run_counts_in_every_family() {
    let text = eventful().to_text();
    for line in [
        r#"palisade_sandboxes_created_total{level="LEVEL_2"} 1"#,
        r#"palisade_sandbox_lifetime_seconds_bucket{le="1"} 0"#,
        r#"palisade_sandbox_lifetime_seconds_bucket{le="5"} 1"#,
        r#"palisade_sandbox_lifetime_seconds_bucket{le="+Inf"} 1"#,
        "palisade_sandbox_lifetime_seconds_sum 1.5",
        "palisade_sandbox_lifetime_seconds_count 1",
        r#"palisade_policy_violations_total{kind="protected-write"} 3"#,
        r#"palisade_policy_violations_total{kind="execution"} 2"#,
        r#"palisade_escape_attempts_total{type="syscall",severity="medium"} 1"#,
        r#"palisade_cpu_seconds_total{mode="user"} 1.25"#,
        r#"palisade_cpu_seconds_total{mode="system"} 0.000007"#,
        r#"palisade_sandbox_peak_memory_bytes_bucket{le="67108864"} 0"#,
        r#"palisade_sandbox_peak_memory_bytes_bucket{le="268435456"} 1"#,
        "palisade_sandbox_peak_memory_bytes_sum 104857600",
        r#"palisade_io_bytes_total{direction="read"} 4096"#,
        r#"palisade_io_bytes_total{direction="write"} 0"#,
        r#"palisade_io_operations_total{direction="write"} 9"#,
        r#"palisade_blocked_syscalls_total{syscall="mount"} 5"#,
        r#"palisade_blocked_syscalls_total{syscall="unknown"} 6"#,
        r#"palisade_cleanups_total{result="done"} 1"#,
        r#"palisade_cleanups_total{result="failed"} 0"#,
        r#"palisade_decisions_total{decision="allowed",source="terminal"} 1"#,
        r#"palisade_decisions_total{decision="denied",source="rule"} 2"#,
        r#"palisade_decisions_total{decision="denied",source="other"} 1"#,
        "palisade_questions_total 3",
        r#"palisade_host_decisions_total{decision="allowed",source="socket"} 1"#,
        r#"palisade_connections_total{verdict="proxy_allowed"} 1"#,
        r#"palisade_connections_total{verdict="dns_rebind_blocked"} 40"#,
        r#"palisade_network_bytes_total{direction="sent"} 100"#,
        r#"palisade_network_bytes_total{direction="received"} 7000"#,
        r#"palisade_name_queries_total{answer="noerror"} 2"#,
        r#"palisade_name_queries_total{answer="refused"} 2"#,
        "palisade_suspected_names_total 2",
        r#"palisade_runs_total{outcome="timeout"} 1"#,
        r#"palisade_runs_total{outcome="completed"} 0"#,
        r#"palisade_limits_hit_total{limit="resources.timeout"} 1"#,
        r#"palisade_limits_hit_total{limit="resources.maxMemory"} 1"#,
        r#"palisade_limits_hit_total{limit="process.maxProcesses"} 0"#,
    ] {
        has(&text, line);
    }
    assert!(!text.contains("secret") && !text.contains("hooks"), "no path is a label");
}

/// Proves: TEL-1 cleanup
#[test]
fn a_sandbox_that_was_made_and_never_recorded_as_gone_is_a_failed_clean_up() {
    let mut metrics = Metrics::default();
    metrics.hear(&created());
    metrics.conclude(&report());
    let text = metrics.to_text();
    has(&text, r#"palisade_cleanups_total{result="failed"} 1"#);
    has(&text, r#"palisade_cleanups_total{result="done"} 0"#);
    let mut never_made = Metrics::default();
    never_made.conclude(&report());
    let text = never_made.to_text();
    has(&text, r#"palisade_cleanups_total{result="failed"} 0"#);
    has(&text, r#"palisade_runs_total{outcome="failed"} 1"#);
}

#[test]
fn a_bound_belongs_to_its_bucket() {
    let mut metrics = Metrics::default();
    for duration in [1000, 1001, u64::MAX] {
        metrics.hear(&destroyed(duration));
    }
    let text = metrics.to_text();
    has(&text, r#"palisade_sandbox_lifetime_seconds_bucket{le="0.5"} 0"#);
    has(&text, r#"palisade_sandbox_lifetime_seconds_bucket{le="1"} 1"#);
    has(&text, r#"palisade_sandbox_lifetime_seconds_bucket{le="5"} 2"#);
    has(&text, r#"palisade_sandbox_lifetime_seconds_bucket{le="+Inf"} 3"#);
}

/// The naming rules of Prometheus, for the whole table.
///
/// Proves: TEL-1 prometheus
#[test]
fn names_follow_the_conventions_and_help_needs_no_escape() {
    let names: BTreeSet<&str> = TABLE.iter().map(|family| family.name).collect();
    assert_eq!(names.len(), TABLE.len());
    for family in TABLE {
        let name = family.name.strip_prefix("palisade_").unwrap();
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        match family.shape {
            Shape::Counter => assert!(name.ends_with("_total"), "{name}"),
            Shape::Histogram(bounds) => {
                assert!(!name.ends_with("_total"), "{name}");
                assert!(bounds.is_sorted_by(|a, b| a < b), "{name}");
                assert!(family.labels.is_empty(), "{name}: a bucket's labels are not parsed");
            }
        }
        let base = name.trim_end_matches("_total");
        assert_eq!(base.ends_with("_seconds"), family.unit == Unit::Microseconds, "{name}");
        assert_eq!(base.ends_with("_bytes"), family.unit == Unit::Bytes, "{name}");
        assert!(!family.help.contains(['\\', '\n']), "{name}");
        for label in family.labels {
            assert!(label.name.bytes().all(|byte| byte.is_ascii_lowercase()), "{name}");
            if let Values::Fixed(values) = label.values {
                assert!(values.iter().all(|value| !value.contains(['"', '\\', '\n', ','])));
            }
        }
    }
}

#[test]
fn every_outcome_has_its_label() {
    for outcome in [
        Outcome::Completed,
        Outcome::Signalled,
        Outcome::Timeout,
        Outcome::OutOfMemory,
        Outcome::CpuTime,
        Outcome::TooManyProcesses,
        Outcome::DiskFull,
        Outcome::OutputCapped,
        Outcome::Killed,
        Outcome::Refused,
        Outcome::Failed,
    ] {
        let mut metrics = Metrics::default();
        let mut report = report();
        report.outcome = outcome;
        metrics.conclude(&report);
        has(&metrics.to_text(), r#"palisade_runs_total{outcome="other"} 0"#);
    }
}

/// Proves: TEL-1 prometheus
#[test]
fn what_is_written_is_read_back_and_adds_up() {
    let one = eventful();
    let mut read = Metrics::from_text(&one.to_text()).unwrap();
    assert_eq!(read.to_text(), one.to_text());
    read.add(&one);
    let text = read.to_text();
    has(&text, r#"palisade_cpu_seconds_total{mode="system"} 0.000014"#);
    has(&text, "palisade_sandbox_lifetime_seconds_sum 3");
    has(&text, r#"palisade_sandbox_lifetime_seconds_bucket{le="5"} 2"#);
    has(&text, r#"palisade_blocked_syscalls_total{syscall="mount"} 10"#);
    assert_eq!(Metrics::from_text(&Metrics::default().to_text()).unwrap().to_text(), {
        Metrics::default().to_text()
    });
}

#[test]
fn an_older_file_that_lacks_a_metric_is_still_ours() {
    let older: String = eventful()
        .to_text()
        .lines()
        .filter(|line| !line.contains("questions_total") && !line.contains("lifetime"))
        .map(|line| format!("{line}\n"))
        .collect();
    let mut read = Metrics::from_text(&older).unwrap();
    read.add(&eventful());
    let text = read.to_text();
    has(&text, "palisade_questions_total 3");
    has(&text, "palisade_sandbox_lifetime_seconds_count 1");
    has(&text, r#"palisade_runs_total{outcome="timeout"} 2"#);
}

#[test]
fn anything_else_is_not_ours() {
    let text = eventful().to_text();
    assert_eq!(Metrics::from_text("node_load1 3\n"), Err(Malformed::NotOurs));
    assert_eq!(Metrics::from_text(text.trim_end()), Err(Malformed::CutShort));
    let lines: Vec<&str> = text.lines().collect();
    for end in 1..lines.len() {
        let cut = lines[..end].join("\n") + "\n";
        assert_eq!(Metrics::from_text(&cut), Err(Malformed::CutShort), "{end} lines");
    }
    let wrong = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        Metrics::from_text(&text.replacen(from, to, 1)).unwrap_err().to_string()
    };
    let timeout = r#"{outcome="timeout"} 1"#;
    assert!(wrong(timeout, r#"{outcome="timeout"} -1"#).ends_with("its value is not a count"));
    assert!(wrong(timeout, r#"{outcome="timeout"} 1e3"#).ends_with("its value is not a count"));
    assert!(wrong(timeout, r#"{outcome="timeout"}"#).ends_with("it has no value"));
    assert!(wrong(timeout, r#"{outcome="bored"} 1"#).ends_with("no such labels"));
    assert!(wrong(timeout, r#"{outcome="completed"} 1"#).ends_with("it is there twice"));
    assert!(wrong(timeout, r#"{outcome=timeout} 1"#).ends_with("its labels cannot be read"));
    assert!(wrong("_questions_total 3", "_answers_total 2").ends_with("no such metric"));
    assert!(
        wrong(r#"seconds_bucket{le="5"} 1"#, r#"seconds_bucket{le="6"} 1"#)
            .ends_with("other buckets")
    );
    assert!(
        wrong(r#"seconds_bucket{le="60"} 1"#, r#"seconds_bucket{le="60"} 0"#)
            .ends_with("do not add up")
    );
    assert!(
        wrong("lifetime_seconds_count 1", "lifetime_seconds_count 2").ends_with("do not add up")
    );
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_fall_over(text in any::<String>(), at in any::<prop::sample::Index>()) {
        let mut ours = eventful().to_text();
        let place = at.index(ours.len());
        ours.insert_str(place, &text);
        let _ = Metrics::from_text(&ours);
        let _ = Metrics::from_text(&text);
    }
}

/// The page describes what there is, in the table's own words.
#[test]
fn the_page_has_every_metric_label_value_and_bucket() {
    let page = include_str!("../../../../docs/metrics.md");
    let expected: String = TABLE.iter().map(|family| row(family)).collect();
    assert!(page.contains(&expected), "docs/metrics.md should have these rows:\n{expected}");
}

fn row(family: &super::Family) -> String {
    let kind = match family.shape {
        Shape::Counter => "counter",
        Shape::Histogram(_) => "histogram",
    };
    let labels = family.labels.iter().map(|label| {
        let values = match label.values {
            Values::Fixed(values) => values.join(", "),
            Values::SystemCalls => "names of system calls, and unknown".to_owned(),
        };
        format!("`{}`: {values}", label.name)
    });
    let bounds = match family.shape {
        Shape::Counter => None,
        Shape::Histogram(bounds) => {
            let bounds: Vec<String> =
                bounds.iter().map(|bound| super::text::number(family.unit, *bound)).collect();
            Some(format!("`le`: {}, +Inf", bounds.join(", ")))
        }
    };
    let labels: Vec<String> = labels.chain(bounds).collect();
    format!("| `{}` | {kind} | {} | {} |\n", family.name, labels.join("; "), family.help)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let sorted: BTreeSet<String> = names.collect();
    sorted.into_iter().collect()
}

/// Whoever scrapes can read the file, and by that lock it; it is not what we lock.
///
/// Proves: TEL-1 prometheus
#[test]
fn a_reader_that_locks_the_file_holds_nobody_up_and_cannot_open_the_lock() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("palisade.prom");
    let file = MetricsFile::prepare(&path).unwrap();
    file.add(&eventful()).unwrap();
    let lock = directory.path().join(".palisade.prom.lock");
    assert_eq!(fs::metadata(&lock).unwrap().permissions().mode() & 0o777, 0o600);
    let reader = fs::File::open(&path).unwrap();
    reader.lock().unwrap();
    file.add(&eventful()).unwrap();
    has(&fs::read_to_string(&path).unwrap(), r#"palisade_runs_total{outcome="timeout"} 2"#);
    // One of us who does not let go is waited for, and not for long.
    let ours = fs::File::open(&lock).unwrap();
    ours.lock().unwrap();
    let start = Instant::now();
    let error = file.add(&eventful()).unwrap_err().to_string();
    assert!(error.contains(".palisade.prom.lock: this run is not counted"), "{error}");
    assert!((2..10).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
}

/// Proves: TEL-1 prometheus
#[test]
fn what_a_killed_writer_left_is_swept_once_it_is_old() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("palisade.prom");
    let id = |last: &str| format!("{}{last}", "0".repeat(31));
    let old = SystemTime::now() - Duration::from_secs(120);
    let kept = [
        format!(".palisade.prom.{}", id("1")),
        format!(".other.prom.{}", id("2")),
        ".palisade.prom.notes".to_owned(),
    ];
    let left = format!(".palisade.prom.{}", id("3"));
    for name in kept.iter().chain([&left]) {
        let file = fs::File::create(directory.path().join(name)).unwrap();
        if *name != kept[0] {
            file.set_modified(old).unwrap();
        }
    }
    MetricsFile::prepare(&path).unwrap().add(&eventful()).unwrap();
    let there = names(directory.path());
    assert!(kept.iter().all(|name| there.contains(name)), "{there:?}");
    assert!(!there.contains(&left), "{there:?}");
}

/// Proves: TEL-1 prometheus
#[test]
fn a_file_adds_up_and_keeps_its_mode() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("palisade.prom");
    let add = || MetricsFile::prepare(&path).unwrap().add(&eventful()).unwrap();
    add();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o444, 0o444);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    add();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    has(&fs::read_to_string(&path).unwrap(), r#"palisade_runs_total{outcome="timeout"} 2"#);
    assert_eq!(names(directory.path()), [".palisade.prom.lock", "palisade.prom"]);
}

#[test]
fn what_is_not_ours_is_refused_and_left_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("palisade.prom");
    let prepared = MetricsFile::prepare(&path).unwrap();
    for content in ["node_load1 3\n", "\u{0}", &eventful().to_text()[..200]] {
        fs::write(&path, content).unwrap();
        let error = MetricsFile::prepare(&path).unwrap_err().to_string();
        assert!(error.contains("no metrics file of ours"), "{error}");
        // It may become so while the command runs.
        prepared.add(&eventful()).unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    fs::write(&path, [0xff, 0xfe]).unwrap();
    MetricsFile::prepare(&path).unwrap_err();
    fs::remove_file(&path).unwrap();
    symlink("/etc/passwd", &path).unwrap();
    MetricsFile::prepare(&path).unwrap_err();
    prepared.add(&eventful()).unwrap_err();
    assert_eq!(fs::read_link(&path).unwrap(), PathBuf::from("/etc/passwd"));
}

#[test]
fn threads_at_once_lose_no_count() {
    const THREADS: usize = 8;
    const TIMES: usize = 25;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("palisade.prom");
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..TIMES {
                    MetricsFile::prepare(&path).unwrap().add(&eventful()).unwrap();
                }
            });
        }
    });
    let text = fs::read_to_string(&path).unwrap();
    has(&text, &format!("palisade_runs_total{{outcome=\"timeout\"}} {}", THREADS * TIMES));
    assert_eq!(names(directory.path()), [".palisade.prom.lock", "palisade.prom"]);
}
