//! The audit log of sessions: read while it is written, exported, and with what was asked for besides (AUD-1, AUD-2).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use palisade_record::{AuditLog, Event, EventKind, Rotation, SignalForwarded, State};
use palisade_testkit::World;
use rustix::process::Signal;
use serde_json::Value;

use crate::inside::inside;
use crate::sessions_support::{Sessions, wait_until};

fn log_of(world: &World) -> PathBuf {
    world.home().join(".local/state/palisade/audit.jsonl")
}

fn head_of(world: &World) -> PathBuf {
    let output = world.sandbox(["audit", "verify", "--json"]).run();
    output.assert_code(0);
    let state = world.home().join(".local/state/palisade");
    let mut found = walk(&state).into_iter().chain(walk(&world.home().join(".local/share")));
    found.find(|path| path.ends_with("audit.head")).unwrap()
}

fn walk(directory: &std::path::Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let below = |path: PathBuf| if path.is_dir() { walk(&path) } else { vec![path] };
    entries.flat_map(|entry| below(entry.path())).collect()
}

#[track_caller]
fn records(world: &World, words: &[&str]) -> Vec<Value> {
    let output = world.sandbox([&["audit"][..], words, &["--json"]].concat()).run();
    output.assert_code(0);
    output.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn names(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["event"].as_str().unwrap()).collect()
}

/// Proves: AUD-2 session-events, AUD-2 command-entry, LIFE-1 audited
#[test]
fn every_command_of_a_session_and_its_end_are_recorded() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let id = sessions.create(&["--name", "work", "--ttl", "1h"]);
    sessions.output_of("work", &["true"]);
    sessions.sandbox(&["exec", "work", "--", "sh", "-c", "exit 4", "--token=abc"]).assert_code(4);
    sessions.sandbox(&["exec", "work", "--", "no-such-program"]).assert_code(127);
    sessions.sandbox(&["extend", "work", "2h"]).assert_code(0);
    sessions.sandbox(&["stop", "work"]).assert_code(0);
    let records = records(&world, &["work"]);
    assert_eq!(
        names(&records),
        [
            "SANDBOX_CREATED",
            "SANDBOX_ENTERED",
            "SANDBOX_VALIDATED",
            "SANDBOX_EXECUTED",
            "SESSION_EXEC",
            "SESSION_EXEC_ENDED",
            "SESSION_EXEC",
            "SESSION_EXEC_ENDED",
            "SESSION_EXEC_ENDED",
            "SESSION_EXTENDED",
            "SESSION_ENDING",
            "SANDBOX_EXITED",
            "SANDBOX_DESTROYED",
        ]
    );
    assert!(records.iter().all(|record| record["sandboxId"] == id.as_str()));
    let (exec, ended, failed) =
        (&records[6]["details"], &records[7]["details"], &records[8]["details"]);
    assert_eq!((&exec["command"], &ended["command"]), (&2.into(), &2.into()));
    assert!(exec["pid"].is_u64() && exec["commandHash"].as_str().unwrap().len() == 64, "{exec}");
    assert!(!exec.to_string().contains("abc"), "{exec}");
    assert_eq!(ended["exitCode"], 4);
    assert!(failed["failure"].as_str().unwrap().contains("no-such-program"), "{failed}");
    assert_eq!(records[9]["details"]["timeMs"], 7_200_000);
    assert_eq!(records[10]["details"]["cause"], "requested");
    world.sandbox(["audit", "verify"]).run().assert_code(0);
}

/// Proves: AUD-2 session-events, LIFE-4 ttl
#[test]
fn a_session_that_expires_says_so() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let id = sessions.create(&["--idle-ttl", "100ms"]);
    let followed = world.sandbox(["audit", &id, "--follow"]).run();
    followed.assert_code(0);
    assert!(followed.out().contains("ending     idle"), "{}", followed.out());
    let records = records(&world, &[&id, "--event", "session-ending,SANDBOX_EXITED"]);
    assert_eq!(names(&records), ["SESSION_ENDING", "SANDBOX_EXITED"]);
    assert_eq!(records[1]["details"]["outcome"], "timeout");
}

/// Proves: AUD-2 follow, LIFE-3 audit
#[test]
fn a_session_is_followed_until_it_ends_and_only_what_was_asked_for_is_printed() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "a"]);
    sessions.create(&["--name", "b"]);
    sessions.output_of("a", &["true"]);
    let follow = world.sandbox(["audit", "a", "--follow", "--event", "session-exec"]).spawn();
    follow.wait_for_stdout("command 1: true");
    sessions.output_of("b", &["true"]);
    sessions.output_of("a", &["echo", "second"]);
    follow.wait_for_stdout("command 2: echo second");
    sessions.sandbox(&["stop", "a"]).assert_code(0);
    let output = follow.wait();
    output.assert_code(0);
    assert_eq!(output.out().lines().count(), 2, "{}", output.out());

    let all = records(&world, &["a"]);
    let middle = all[all.len() / 2]["seq"].as_u64().unwrap();
    let later = records(&world, &["a", "--since", &middle.to_string()]);
    assert_eq!(later, all[all.len() / 2 + 1..]);
    assert_eq!(records(&world, &["a", "--since", "1h"]), all);
    assert_eq!(records(&world, &["a", "--since", "2026-01-01"]), all);
    assert!(records(&world, &["a", "--since", "2999-01-01T00:00:00Z"]).is_empty());
    assert!(records(&world, &["a", "--level", "warn"]).is_empty());

    let nobody = world.sandbox(["audit", "no-such-session"]).run();
    nobody.assert_code(125);
    assert!(nobody.err().contains("no record of a run"), "{}", nobody.err());
    let nothing = world.sandbox(["audit", "a", "--event", "nothing"]).run();
    assert!(nothing.err().contains("access-decided"), "{}", nothing.err());
}

/// Proves: AUD-2 follow, AUD-1 rotation
#[test]
fn following_goes_on_when_the_log_is_rotated() {
    let world = World::new();
    inside(&world, &[], "true").assert_code(0);
    let follow = world.sandbox(["audit", "--follow", "--event", "signal-forwarded"]).spawn();
    let small = Rotation { full_at: 1, kept: 5 };
    let mut log = AuditLog::open(&log_of(&world), &head_of(&world)).unwrap().rotating(small);
    for number in 0..5 {
        let name = format!("SIG{number}");
        let kind = EventKind::SignalForwarded(SignalForwarded { signal: 15, name, fatal: false });
        log.append_batch(&[Event::new("other", State::Monitoring, kind)]).unwrap();
        follow.wait_for_stdout(&format!("SIG{number} forwarded"));
    }
    assert!(log_of(&world).with_extension("jsonl.5").exists(), "it was rotated");
    follow.signal(Signal::INT);
    let output = follow.wait();
    assert_eq!(output.out().lines().count(), 5, "{}", output.out());
    world.sandbox(["audit", "verify"]).run().assert_code(0);
}

/// Proves: AUD-1 export
#[test]
fn an_export_is_verified_without_the_log_and_a_changed_one_is_not_sound() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "work"]);
    sessions.output_of("work", &["true"]);
    sessions.sandbox(&["stop", "work"]).assert_code(0);
    let file = world.project().join("part.jsonl");
    let name = file.to_str().unwrap();
    let exported = world.sandbox(["audit", "export", "work", "--output", name]).run();
    exported.assert_code(0);
    let hash = exported.err().trim().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // Elsewhere there is no log.
    let elsewhere = World::new();
    let verify = |more: &[&str]| {
        elsewhere.sandbox([&["audit", "verify", "--file", name][..], more].concat()).run()
    };
    verify(&[]).assert_code(0);
    verify(&["--head", &hash]).assert_code(0);
    assert_ne!(verify(&["--head", &"0".repeat(64)]).code(), 0);
    let sound: Value = serde_json::from_slice(&verify(&["--json"]).stdout).unwrap();
    assert_eq!((&sound["sound"], &sound["head"]), (&true.into(), &hash.as_str().into()));

    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("SESSION_EXEC", "SESSION_EXIT", 1)).unwrap();
    verify(&[]).assert_code(1);
    let lines: Vec<&str> = text.lines().collect();
    fs::write(&file, [&lines[..3], &lines[4..]].concat().join("\n") + "\n").unwrap();
    verify(&[]).assert_code(1);

    let table = world.sandbox(["audit", "export", "work", "--format", "csv"]).run();
    table.assert_code(0);
    assert!(table.out().contains("\"SESSION_EXEC\",\"command 1: true"), "{}", table.out());
}

/// Proves: AUD-2 session-events, LIFE-2 apply, LIFE-2 discard
#[test]
fn what_became_of_changes_is_recorded() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "t", "--transaction"]);
    sessions.output_of("t", &["sh", "-c", "echo x > a; echo y > b"]);
    sessions.sandbox(&["stop", "t"]).assert_code(0);
    sessions.sandbox(&["apply", "t", "--", "a"]).assert_code(0);
    let hosts = world.project().join("b");
    fs::write(&hosts, "of the host").unwrap();
    sessions.sandbox(&["apply", "t"]).assert_code(1);
    sessions.sandbox(&["discard", "t"]).assert_code(0);
    let records = records(&world, &["t"]);
    let details = |name: &str| {
        let found = records.iter().find(|record| record["event"] == name);
        found.unwrap_or_else(|| panic!("{name} in {records:?}"))["details"].clone()
    };
    assert_eq!(details("CHANGES_APPLIED")["paths"], 1);
    assert_eq!(details("CHANGES_HELD")["conflicts"], 1);
    assert!(details("CHANGES_DISCARDED")["paths"].as_u64().unwrap() >= 1);
    world.sandbox(["audit", "verify"]).run().assert_code(0);
}

/// Proves: AUD-2 file-operations, AUD-2 escaped-text
#[test]
fn operations_on_files_are_recorded_if_asked_for() {
    let script = "mkdir d; echo x > d/file; mv d/file d/moved; ln -s moved d/link; \
                  touch \"$(printf 'a\\nb\\033[2J')\"; cat d/moved";
    let operations = |options: &[&str]| {
        let world = World::new();
        inside(&world, options, script).assert_code(0);
        let shown = world.sandbox(["audit", "--since", "0", "--event", "file-operation"]).run();
        shown.assert_code(0);
        assert!(!shown.out().contains('\u{1b}'), "{}", shown.out());
        let all = records(&world, &["--since", "0", "--event", "file-operation"]);
        assert_eq!(shown.out().lines().count(), all.len());
        let project = world.project().display().to_string();
        let path = |record: &Value| {
            record["details"]["path"].as_str().unwrap().replacen(&project, "", 1).to_owned()
        };
        all.iter().map(path).collect::<Vec<_>>()
    };
    assert!(operations(&[]).is_empty());
    let seen = operations(&["--audit-files"]);
    for path in ["/d", "/d/file", "/d/moved", "/d/link", "/a\nb\u{1b}[2J"] {
        assert!(seen.iter().any(|seen| seen == path), "{path:?} in {seen:?}");
    }
    let changed = operations(&["--audit-files", "--transaction"]);
    for path in ["/d", "/d/moved", "/d/link"] {
        assert!(changed.iter().any(|seen| seen == path), "{path:?} in {changed:?}");
    }
}

/// A program inside makes more files than the log may have records of.
///
/// Proves: AUD-2 file-operations, AUD-2 sums
#[test]
fn a_flood_of_operations_does_not_fill_the_log() {
    let world = World::new();
    let flood =
        "for round in 1 2 3; do i=0; while [ $i -lt 3000 ]; do : > f; i=$((i+1)); done; done";
    inside(&world, &["--audit-files"], flood).assert_code(0);
    let recorded = records(&world, &["--since", "0", "--event", "file-operation"]).len();
    assert!((1000..8000).contains(&recorded), "{recorded}");
    let sums = records(&world, &["--since", "0", "--event", "events-summed"]);
    let counted: u64 = sums.iter().map(|sum| sum["details"]["count"].as_u64().unwrap()).sum();
    assert!(counted + recorded as u64 >= 8990, "{counted} and {recorded}");
    wait_until("the log is sound", || world.sandbox(["audit", "verify"]).run().code() == 0);
}
