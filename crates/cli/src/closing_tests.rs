use super::*;
use palisade_record::{BlockedCalls, Versions};

fn report() -> RunReport {
    let versions = Versions { palisade: "0".into(), kernel: "0".into() };
    RunReport::begin("s", &["true"], versions)
}

fn refused(path: &str, rule: &str, count: u64) -> ProtectedWrite {
    ProtectedWrite {
        path: path.into(),
        rule: rule.into(),
        why: "run on entering".into(),
        call: "openat".into(),
        executable: "/bin/sh".into(),
        count,
    }
}

fn blocked(name: &str, count: u64, suspicious: bool) -> BlockedCalls {
    BlockedCalls {
        name: name.into(),
        number: 1,
        count,
        suspicious,
        detail: None,
        rule: None,
        executable: "/bin/sh".into(),
    }
}

fn said(report: &RunReport) -> Vec<String> {
    words(report, Path::new("/p"), &SavedPolicy::default())
}

#[test]
fn nothing_is_said_of_an_ordinary_run() {
    let mut report = report();
    report.blocked_calls.push(blocked("personality", 4, false));
    assert_eq!(said(&report), [""; 0]);
}

/// Proves: FS-9 told
#[test]
fn refused_writes_are_named_with_the_way_to_allow_them() {
    let mut report = report();
    report.protected_writes.push(refused("/p/.envrc", ".envrc", 1));
    assert_eq!(
        said(&report),
        ["1 protected write denied: .envrc (run on entering); allow with --allow-write .envrc"]
    );
    for name in ["b", "c", "d"] {
        report.protected_writes.push(refused(&format!("/elsewhere/{name}"), ".envrc", 2));
    }
    let line = &said(&report)[0];
    assert!(line.starts_with("7 protected writes denied: .envrc (run"), "{line}");
    assert!(line.contains("/elsewhere/c (run on entering) and 1 more; allow with"), "{line}");
}

fn denied(path: &str, is_secret: bool) -> TouchedPath {
    TouchedPath {
        path: path.into(),
        directory: None,
        access: "read".into(),
        is_directory: false,
        is_secret,
        by: "nobody".into(),
        executable: "/bin/cat".into(),
        count: 2,
    }
}

/// Proves: GATE-5 denials-told
#[test]
fn denied_paths_are_told_with_the_flag_that_grants_them() {
    let mut report = report();
    report.denied_paths.push(denied("/opt/sdk/x.h", false));
    assert_eq!(said(&report), ["1 path was denied: /opt/sdk/x.h (allow with --ro /opt/sdk/x.h)"]);
    report.denied_paths.push(denied("/home/u/.ssh/id", true));
    let line = &said(&report)[0];
    assert!(line.starts_with("2 paths were denied: /opt/sdk/x.h (allow"), "{line}");
    assert!(line.ends_with(", /home/u/.ssh/id (a secret)"), "{line}");
    report.denied_paths.extend(["/a", "/b"].map(|path| denied(path, false)));
    assert!(said(&report)[0].ends_with("(allow with --ro /a) and 1 more"));
}

/// Proves: GATE-5 denials-told
#[test]
fn a_rule_that_denies_is_named_with_the_command_that_removes_it() {
    let mut report = report();
    let by = |by: &str| TouchedPath { by: by.into(), ..denied("/opt/sdk/x.h", false) };
    report.denied_paths.push(by("rule: /home/u/.config/palisade/policy.yaml:7"));
    assert!(names_rules(&report));
    assert_eq!(
        said(&report),
        ["1 path was denied: /opt/sdk/x.h (the rule at /home/u/.config/palisade/policy.yaml:7)"]
    );
    let place = |line: u32| format!("/home/u/.config/palisade/policy.yaml:{line}");
    let rules = SavedRules::from([(place(3), "/a".to_owned()), (place(7), "/opt/**".to_owned())]);
    let told = words(&report, Path::new("/p"), &SavedPolicy { rules, ..SavedPolicy::default() });
    assert!(
        told[0].ends_with("policy.yaml:7; undo with sandbox policy forget '/opt/**')"),
        "{told:?}"
    );
    report.denied_paths = vec![by("rule: answered in this session")];
    assert_eq!(said(&report), ["1 path was denied: /opt/sdk/x.h (allow with --ro /opt/sdk/x.h)"]);
}

/// Proves: GATE-5 denials-told
#[test]
fn an_answer_that_nobody_gave_is_not_told_as_a_persons() {
    let mut report = report();
    let late = TouchedPath { by: "timeout".into(), ..denied("/opt/sdk/x.h", false) };
    report.denied_paths.push(late);
    assert_eq!(
        said(&report),
        ["1 path was denied: /opt/sdk/x.h (nobody answered in time; allow with --ro /opt/sdk/x.h)"]
    );
}

/// Proves: SYS-2 patterns
#[test]
fn a_refused_request_is_named_with_the_program_that_made_it() {
    let mut report = report();
    let detail = Some("TIOCSTI, which types into a terminal".to_owned());
    report.blocked_calls.push(BlockedCalls { detail, ..blocked("ioctl", 1, true) });
    assert_eq!(
        said(&report),
        [
            "1 suspicious system call denied: ioctl TIOCSTI, which types into a terminal, by /bin/sh; ordinary programs do \
          not need it (sandbox explain-syscall ioctl)"
        ]
    );
}

/// Proves: FS-3 discarded-told
#[test]
fn what_went_with_the_private_home_is_told_with_the_option_that_keeps_it() {
    let mut report = report();
    let discarded = |paths: &[&str], leftovers| DiscardedFiles {
        home: "/home/u".into(),
        count: paths.len() as u64 + leftovers,
        leftovers,
        paths: paths.iter().map(|path| format!("/home/u/{path}")).collect(),
        copies: vec!["/home/u/.config/git/config".into()],
        is_complete: true,
    };
    report.discarded_files =
        Some(discarded(&[".foorc", ".local/share/x/a", ".local/share/x/b/c"], 4));
    assert_eq!(
        said(&report),
        ["3 files written to the private home were discarded: \
          ~/.foorc (keep with --rw ~/.foorc once it exists outside), \
          ~/.local/share/x/… (keep with --rw ~/.local/share/x)"]
    );
    report.discarded_files = Some(discarded(&["notes/today"], 0));
    assert_eq!(
        said(&report),
        ["1 file written to the private home was discarded: ~/notes/… (keep with --rw ~/notes)"]
    );
    report.discarded_files = Some(discarded(&[".config/git/config"], 0));
    assert_eq!(
        said(&report),
        ["1 file written to the private home was discarded: \
          ~/.config/git/config (keep with --rw ~/.config/git/config)"]
    );
    report.discarded_files = Some(discarded(&[], 7));
    assert_eq!(said(&report), [""; 0]);
}

/// Proves: GATE-5 denials-told
#[test]
fn who_wanted_to_write_is_told_the_flag_for_writing() {
    let mut report = report();
    report.denied_paths.push(TouchedPath { access: "write".into(), ..denied("/home/u/.e", false) });
    report.denied_paths.push(denied("/home/u/.e", false));
    assert_eq!(
        said(&report),
        ["1 path was denied: /home/u/.e (allow writing with --rw /home/u/.e)"]
    );
}

/// Proves: PROC-2 refusals-told
#[test]
fn refused_programs_and_processes_are_told_with_the_key_that_refused_them() {
    let mut report = report();
    report.refused_executions.push(RefusedExecution {
        path: "/bin/ls".into(),
        rule: "process.allowExec".into(),
        call: "execve".into(),
        executable: "/bin/sh".into(),
        count: 2,
    });
    assert_eq!(said(&report), ["2 executions denied by `process.allowExec`: /bin/ls"]);
    let fork = Some("process.allowFork".to_owned());
    report.blocked_calls.push(BlockedCalls { rule: fork, ..blocked("clone", 3, false) });
    assert_eq!(said(&report)[0], "3 forks denied by `process.allowFork`: /bin/sh");
}

/// Proves: SYS-2 repeated
#[test]
fn the_end_of_a_run_that_tried_too_much_is_told() {
    let mut report = report();
    report.blocked_calls =
        vec![blocked("mount", 99, true), blocked("bpf", 1, true), blocked("syslog", 9, false)];
    assert_eq!(
        said(&report),
        [
            "100 suspicious system calls denied: mount by /bin/sh, bpf by /bin/sh; ordinary programs do not need it \
          (sandbox explain-syscall mount)"
        ]
    );
    report.ended_by_blocked_calls = Some(100);
    assert_eq!(
        said(&report),
        [
            "stopped after 100 suspicious system calls (mount by /bin/sh, bpf by /bin/sh); `syscalls.maxBlocked` is 100"
        ]
    );
}

fn denied_host(host: &str, port: Option<u16>, allow: Option<&str>) -> DeniedHost {
    DeniedHost {
        host: host.into(),
        port,
        action: NetworkAction::ProxyDenied,
        reason: Some("it is private".into()),
        rule: None,
        count: 3,
        allow: allow.map(str::to_owned),
    }
}

/// Proves: NET-7 summary
#[test]
fn denied_hosts_are_named_with_the_way_to_allow_them() {
    let mut report = report();
    report.network = Some(NetworkReport {
        denied: vec![
            denied_host("a.example", None, Some("--allow-host a.example")),
            denied_host("a.example", Some(8443), Some("--allow-host a.example:8443")),
            denied_host("b.example", None, Some("--allow-host b.example")),
            denied_host("c.example", Some(443), None),
            DeniedHost {
                action: NetworkAction::ProxyBlockedDns,
                reason: Some("the name does not exist".into()),
                ..denied_host("d.example", Some(443), None)
            },
        ],
        datagrams_rejected: 2,
        ..NetworkReport::default()
    });
    assert_eq!(
        said(&report),
        [
            "3 hosts were denied: a.example:8443 (allow with --allow-host a.example:8443), \
             b.example (allow with --allow-host b.example), c.example:443 (it is private)",
            "1 host was not found: d.example:443 (the name does not exist)",
            "2 datagrams rejected: only TCP and DNS queries are forwarded",
        ]
    );
}

/// Proves: NET-7 summary
#[test]
fn many_denied_hosts_have_a_line_each_and_the_rest_a_place_where_they_are() {
    let mut report = report();
    let host = |number: usize| {
        let name = format!("n{number}.example");
        let flag = format!("--allow-host {name}");
        denied_host(&name, Some(443), Some(&flag))
    };
    let mut denied = |count: usize| {
        let denied = (0..count).map(host).collect();
        report.network = Some(NetworkReport { denied, ..NetworkReport::default() });
        said(&report)
    };
    let lines = denied(4);
    assert_eq!(lines.len(), 5, "{lines:#?}");
    assert_eq!(lines[0], "4 hosts were denied:");
    assert_eq!(lines[4], "  n3.example:443 (allow with --allow-host n3.example)");
    let lines = denied(27);
    assert_eq!(lines.len(), 22, "{lines:#?}");
    assert_eq!(lines[20], "  n19.example:443 (allow with --allow-host n19.example)");
    assert_eq!(lines[21], "  7 more: sandbox net s");
}

/// Proves: GATE-5 denials-told
#[test]
fn questions_that_found_no_room_are_counted_with_what_to_do() {
    let mut report = report();
    report.unasked_questions = Some(UnaskedQuestions { count: 3, limit: 4096 });
    let told = said(&report);
    assert!(
        told[0].starts_with("3 questions were denied without asking: 4096 were already waiting"),
        "{told:?}"
    );
    assert!(told[0].contains("sandbox approve") && told[0].contains("--ro"), "{told:?}");
}

/// Proves: POL-5 saved-told
#[test]
fn what_was_answered_for_good_is_told_with_its_line_and_the_way_back() {
    let mut report = report();
    report.saved_answers.push(SavedAnswer {
        what: "allow /srv/x".into(),
        file: "/h/policy.yaml".into(),
        line: Some(3),
        words: Some("/srv/x".into()),
        ..SavedAnswer::default()
    });
    report.saved_answers.push(SavedAnswer { error: Some("no room".into()), ..Default::default() });
    assert_eq!(
        said(&report),
        [
            "saved permanently: allow /srv/x (/h/policy.yaml:3); undo with sandbox policy forget /srv/x",
            "an answer was not saved: no room"
        ]
    );
}

/// Proves: POL-5 saved-told, NET-8 approval
#[test]
fn a_host_that_is_saved_says_which_runs_it_counts_in() {
    let mut report = report();
    report.saved_answers.push(SavedAnswer {
        what: "allow host a.example:443".into(),
        file: "/h/policy.yaml".into(),
        line: Some(3),
        words: Some("a.example:443".into()),
        counts_with: Some("--network proxy".into()),
        error: None,
    });
    assert_eq!(
        said(&report),
        [
            "saved permanently: allow host a.example:443 (/h/policy.yaml:3), applies to runs with --network proxy; \
          undo with sandbox policy forget a.example:443"
        ]
    );
}

/// Proves: POL-5 saved-told
#[test]
fn many_answers_for_good_take_one_line() {
    let mut report = report();
    let saved = |number: usize| SavedAnswer {
        what: format!("allow /srv/{number}"),
        file: "/h/policy.yaml".into(),
        line: Some(number),
        words: Some(format!("/srv/{number}")),
        ..SavedAnswer::default()
    };
    report.saved_answers = (1..=39).map(saved).collect();
    assert_eq!(
        said(&report),
        ["39 answers saved permanently: allow /srv/1, allow /srv/2, allow /srv/3 and 36 more; \
          `sandbox policy rules` lists them; undo one with sandbox policy forget /srv/1"]
    );
    report.saved_answers.truncate(3);
    assert_eq!(said(&report).len(), 3);
}

/// Proves: LIFE-3 losses-told
#[test]
fn what_was_lost_is_told_with_the_option_that_changes_it() {
    let mut report = report();
    report.exit_code = 6;
    report.removed_variables = vec!["A_TOKEN".into()];
    report.offline_attempts = Some(OfflineAttempts { unreachable: 2, unanswered: 1 });
    assert_eq!(
        said(&report),
        [
            "1 variable with a secret-like name was not passed on: A_TOKEN; pass one on with --env A_TOKEN",
            "the network is off; the command made 2 attempts to reach an outside address and \
             1 attempt to look up a name or to send a datagram; allow hosts with --allow-host HOST"
        ]
    );
    let saved = SavedPolicy { lists_hosts: true, ..SavedPolicy::default() };
    let told = words(&report, Path::new("/p"), &saved);
    assert!(told[1].contains("the hosts that the policy lists with --network proxy"), "{told:?}");
    report.exit_code = 0;
    assert_eq!(said(&report).len(), 1, "a command that went well needed no network");
}
