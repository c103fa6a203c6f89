//! The audit log: every run in it, and no way to change it unseen (AUD-1, AUD-2, LIFE-1).

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use palisade_testkit::World;

use crate::inside::{inside, soon};
use crate::metrics;
use crate::sessions_support::wait_until;

fn log_of(world: &World) -> PathBuf {
    world.home().join(".local/state/palisade/audit.jsonl")
}

fn records(world: &World) -> Vec<serde_json::Value> {
    let shown = world.sandbox(["audit", "show", "--json"]).run();
    shown.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn verdict(world: &World) -> (i32, serde_json::Value) {
    let output = world.sandbox(["audit", "verify", "--json"]).run();
    (output.code(), serde_json::from_slice(&output.stdout).unwrap())
}

/// Proves: AUD-1 verify, AUD-1 one-line, AUD-1 hash-chain, AUD-2 life-cycle, LIFE-1 audited, LIFE-1 steps
#[test]
fn every_run_is_recorded_from_creation_to_destruction() {
    let world = World::new();
    inside(&world, &[], "exit 3").assert_code(3);
    let log = fs::read_to_string(log_of(&world)).unwrap();
    let events: Vec<String> = log
        .lines()
        .map(|line| {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            record["event"].as_str().or(record["event"]["event"].as_str()).unwrap().to_owned()
        })
        .collect();
    assert_eq!(
        events,
        [
            "SANDBOX_CREATED",
            "SANDBOX_ENTERED",
            "SANDBOX_VALIDATED",
            "SANDBOX_EXECUTED",
            "SANDBOX_EXITED",
            "SANDBOX_DESTROYED",
        ]
    );
    let (code, sound) = verdict(&world);
    assert_eq!((code, &sound["sound"], &sound["records"]), (0, &true.into(), &6.into()));
}

/// Proves: AUD-2 life-cycle
#[test]
fn a_run_that_was_refused_is_recorded_too() {
    let world = World::new();
    inside(&world, &["--static", "--on-ask", "allow"], "true").assert_code(126);
    let shown = world.sandbox(["audit", "show", "--json"]).run();
    assert!(shown.out().contains("SANDBOX_FAILED"), "{}", shown.out());
    assert!(!shown.out().contains("SANDBOX_DESTROYED"), "nothing was created: {}", shown.out());
    assert_eq!(verdict(&world).0, 0);
}

/// Proves: LIFE-1 audited, LIFE-1 steps
#[test]
fn what_was_created_is_destroyed_though_its_command_never_ran() {
    let world = World::new();
    world.sandbox_run([""; 0], ["/no/such/program"]).run().assert_code(127);
    let told: Vec<_> = records(&world)
        .iter()
        .map(|record| format!("{} {}", record["state"], record["event"]))
        .collect();
    let expected = [
        r#""Created" "SANDBOX_CREATED""#,
        r#""Error" "SANDBOX_FAILED""#,
        r#""Cleanup" "SANDBOX_DESTROYED""#,
    ];
    assert_eq!(told, expected);
    assert_eq!(verdict(&world).0, 0);
}

/// Proves: AUD-2 command-entry
#[test]
fn a_record_names_the_project_and_the_program() {
    let world = World::new();
    world.git_init();
    world.write_in_project("deep/below/file", "");
    let below = world.project().join("deep/below");
    world.sandbox_run([""; 0], ["/bin/true"]).cwd(below).run().assert_code(0);
    let created = &records(&world)[0]["details"];
    assert_eq!(created["tool"], "true");
    assert_eq!(created["sandboxRoot"], world.project().to_str().unwrap());
}

/// Proves: AUD-2 life-cycle
#[test]
fn a_limit_names_its_holder_as_the_report_does() {
    let world = World::new();
    let report = inside(&world, &["--timeout", &soon()], "sleep 600").report.unwrap();
    let promises = report["promises"].as_array().unwrap();
    let held = promises.iter().find(|promise| promise["id"] == "RES-2").unwrap();
    let records = records(&world);
    let exceeded = records.iter().find(|record| record["event"] == "RESOURCE_LIMIT_EXCEEDED");
    assert_eq!(exceeded.unwrap()["details"]["holder"], held["layers"][0]);
}

/// Proves: AUD-1 hash-chain, AUD-1 verify
#[test]
fn a_changed_or_missing_record_is_found() {
    let world = World::new();
    inside(&world, &[], "true").assert_code(0);
    let log = fs::read_to_string(log_of(&world)).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let changed = log.replacen("sh", "no", 1);
    let without_second = [&lines[..1], &lines[2..]].concat().join("\n") + "\n";
    let swapped = [&lines[..1], &[lines[2], lines[1]], &lines[3..]].concat().join("\n") + "\n";
    for tampered in [changed, without_second, swapped] {
        fs::write(log_of(&world), tampered).unwrap();
        let (code, fault) = verdict(&world);
        assert_eq!((code, &fault["sound"]), (1, &false.into()), "{fault}");
        assert!(fault["line"].is_u64(), "{fault}");
    }
    fs::write(log_of(&world), &log).unwrap();
    assert_eq!(verdict(&world).0, 0);
}

/// Proves: AUD-1 head-apart
#[test]
fn a_cut_or_missing_log_is_found_and_not_written_on() {
    let world = World::new();
    inside(&world, &[], "true").assert_code(0);
    let log = fs::read_to_string(log_of(&world)).unwrap();
    let cut: String = log.lines().take(3).map(|line| format!("{line}\n")).collect();
    fs::write(log_of(&world), cut).unwrap();
    let (code, fault) = verdict(&world);
    assert_eq!(code, 1);
    assert!(fault["fault"].as_str().unwrap().contains("too early"), "{fault}");
    let output = inside(&world, &[], "touch ran");
    output.assert_code(125);
    assert!(!world.project().join("ran").exists(), "nothing runs unrecorded");
    fs::remove_file(log_of(&world)).unwrap();
    assert_eq!(verdict(&world).0, 1);
}

/// Proves: AUD-1 verify, LIFE-3 audit
#[test]
fn before_the_first_run_nothing_is_recorded_and_nothing_is_wrong() {
    let world = World::new();
    let verified = world.sandbox(["audit", "verify"]).run();
    verified.assert_code(0);
    assert!(verified.out().contains("nothing recorded yet"), "{}", verified.out());
    let (code, sound) = verdict(&world);
    assert_eq!((code, &sound["records"]), (0, &0.into()), "{sound}");
    let shown = world.sandbox(["audit", "show"]).run();
    shown.assert_code(0);
    assert_eq!((&*shown.out(), &*shown.err()), ("", "sandbox: no run has been recorded yet\n"));
    // A head without its log is a log that was taken away.
    inside(&world, &[], "true").assert_code(0);
    fs::remove_file(log_of(&world)).unwrap();
    assert_eq!(verdict(&world).0, 1);
}

/// Proves: AUD-1 concurrent
#[test]
fn runs_at_once_share_one_sound_log() {
    let world = World::new();
    let runs: Vec<_> = (0..6).map(|_| world.sandbox(["run", "--", "true"]).spawn()).collect();
    for run in runs {
        run.wait().assert_code(0);
    }
    let (code, sound) = verdict(&world);
    assert_eq!((code, &sound["records"]), (0, &36.into()), "{sound}");
}

/// Proves: AUD-2 redaction, AUD-2 command-entry
#[test]
fn secrets_on_the_command_line_are_not_kept() {
    let world = World::new();
    let command = ["sh", "-c", "true", "--password", "hunter2-value", "API_TOKEN=token-value"];
    world.sandbox_run([""; 0], command).run().assert_code(0);
    let log = fs::read_to_string(log_of(&world)).unwrap();
    assert!(!log.contains("hunter2-value") && !log.contains("token-value"), "{log}");
    assert!(log.contains("commandHash"), "{log}");
    let report = fs::read_to_string(world.path().join("report.json")).unwrap();
    assert!(!report.contains("hunter2-value") && !report.contains("token-value"), "{report}");
}

/// Proves: AUD-2 escaped-text
#[test]
fn a_command_line_cannot_forge_a_record() {
    let world = World::new();
    let forged = "x\n{\"event\":\"SANDBOX_DESTROYED\"}\u{1b}[2K\u{202e}";
    world.sandbox_run([""; 0], ["true", forged]).run().assert_code(0);
    let log = fs::read(log_of(&world)).unwrap();
    assert_eq!(log.iter().filter(|byte| **byte == b'\n').count(), 6);
    assert!(!log.contains(&0x1b));
    let shown = world.sandbox(["audit", "show"]).run();
    assert!(!shown.out().contains('\u{1b}') && !shown.out().contains('\u{202e}'));
}

/// Proves: AUD-1 append-only, AUD-1 no-follow
#[test]
fn the_state_directory_is_the_users_own_and_out_of_reach_inside() {
    let world = World::new();
    inside(&world, &[], "true").assert_code(0);
    let state = world.home().join(".local/state/palisade");
    assert_eq!(fs::metadata(&state).unwrap().mode() & 0o777, 0o700);
    for file in ["audit.jsonl", "canary"] {
        assert_eq!(fs::metadata(state.join(file)).unwrap().mode() & 0o077, 0, "{file}");
    }
    let path = state.display().to_string();
    let script = format!("ls {path}; echo x >> {path}/audit.jsonl; ls -A ~/.local/state");
    for flags in [&[][..], &["--static"], &["--ro", "~"], &["--overlay", "~/.local"]] {
        let output = inside(&world, flags, &script);
        assert!(!output.out().contains("audit") && !output.out().contains("palisade"), "{flags:?}");
    }
    inside(&world, &["--rw", &path], "true").assert_code(126);
    inside(&world, &["--rw", "~/.local"], "true").assert_code(126);
    assert_eq!(verdict(&world).0, 0);
}

/// Proves: AUD-1 verify, LIFE-3 audit
#[test]
fn the_records_of_one_run_can_be_shown() {
    let world = World::new();
    let first = inside(&world, &[], "true").report.unwrap();
    inside(&world, &[], "true").assert_code(0);
    let session = first["sessionId"].as_str().unwrap();
    let shown = world.sandbox(["audit", "show", session]).run();
    shown.assert_code(0);
    assert_eq!(shown.out().lines().count(), 6);
    let short = &session[session.len() - 8..];
    assert!(shown.out().lines().all(|line| line.contains(short)), "{}", shown.out());
    let lines: Vec<String> = shown.out().lines().map(str::to_owned).collect();
    assert!(lines[0].contains("  created    sh -c true, in "), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("  exited     sh -c true: exit code 0 after ")));
    assert!(!shown.out().contains('{') && !shown.out().contains('\u{1b}'), "{lines:#?}");
    assert_eq!(world.sandbox(["audit", "show", short]).run().out(), shown.out());
    let json = world.sandbox(["audit", "show", "--json", session]).run();
    assert!(json.out().lines().all(|line| line.contains(session)), "{}", json.out());
    world.sandbox(["audit", "show", "no-such-run"]).run().assert_code(125);
}

/// A decision says in which session which process did what to which path, what was decided, and how long it waited for that.
///
/// Proves: AUD-2 decision-fields
#[test]
fn a_decision_is_recorded_with_who_asked_for_what_and_how_long_it_took() {
    let world = World::new();
    let hidden = world.write("home/papers/letter", "read me\n");
    let began = Instant::now();
    let run =
        world.sandbox(["run", "--quiet", "--on-ask", "wait", "--", "cat"]).arg(&hidden).spawn();
    // The process on the host whose command line is the command's own.
    let words = format!("cat\0{}\0", hidden.display());
    let asking = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let mut pids = processes.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
        pids.find(|pid| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == words.as_bytes())
        })
    };
    wait_until("the command runs", || asking().is_some());
    let pid = asking().unwrap();
    let asked = Instant::now();
    metrics::answer_the_question(&world, "--no");
    let waited = asked.elapsed();
    run.wait().assert_code(1);
    let all = began.elapsed();
    let records = records(&world);
    let event = |name: &str| {
        let found = records.iter().find(|record| record["event"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {records:#?}"))
    };
    let decided = event("ACCESS_DECIDED");
    assert_eq!(decided["sandboxId"], event("SANDBOX_CREATED")["sandboxId"], "its session");
    let details = &decided["details"];
    assert_eq!(details["pids"], serde_json::json!([pid]));
    assert!(["open", "openat", "openat2"].contains(&details["op"].as_str().unwrap()), "{decided}");
    assert_eq!(details["path"], hidden.to_str().unwrap());
    assert_eq!((&details["decision"], &details["source"]), (&"denied".into(), &"socket".into()));
    let latency = Duration::from_micros(details["latencyUs"].as_u64().unwrap());
    assert!(latency > Duration::ZERO && latency <= all, "{latency:?} of {all:?}");
    // The question was there within the wait: a latency of the answer alone would be far shorter.
    assert!(latency + Duration::from_secs(1) > waited, "{latency:?}, waited {waited:?}");
}
