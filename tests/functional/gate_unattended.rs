//! Nobody is there to answer: what the policy says happens, and the end of the run tells of it (GATE-5).

use std::time::{Duration, Instant};

use palisade_testkit::{Output, World};
use rustix::process::Signal;
use serde_json::Value;

use crate::gate::{Client, asking, hidden, socket_directory};
use crate::inside::eventually;

fn run(world: &World, flags: &[&str], command: &[&str]) -> Output {
    world.sandbox_run(flags, command).run()
}

fn listed<'r>(output: &'r Output, list: &str) -> Vec<&'r Value> {
    output.report.as_ref().unwrap()[list]
        .as_array()
        .map(|list| list.iter().collect())
        .unwrap_or_default()
}

/// Proves: GATE-5 nobody-to-ask, GATE-5 denials-told, COMPAT-1 said
#[test]
fn with_nobody_there_it_does_not_exist_and_is_told_at_the_end() {
    for flags in [&[][..], &["--on-ask", "ask"], &["--on-ask", "deny"]] {
        let world = World::new();
        let file = hidden(&world, "wanted");
        let output = run(&world, flags, &["cat", &file, &file]);
        output.assert_code(1);
        assert_eq!(output.err().matches("No such file").count(), 2, "{}", output.err());
        let told = format!("1 path was denied: {file} (allow with --ro {file})");
        assert!(output.err().contains(&told), "{flags:?}: {}", output.err());
        let denied = listed(&output, "deniedPaths");
        assert_eq!(denied.len(), 1, "{denied:?}");
        assert_eq!(denied[0]["path"], file.as_str());
        assert!(listed(&output, "grantedPaths").is_empty());
        // What it says is true.
        let allowed = run(&world, &["--ro", &file], &["cat", &file]);
        allowed.assert_code(0);
        assert_eq!(allowed.out(), "content of wanted\n");
    }
}

/// Proves: GATE-1 approve-continues, FS-2 asked-in-red, GATE-5 denials-told
#[test]
fn who_allows_everything_still_does_not_give_away_keys() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let secret = world.write("home/.ssh/id_ed25519", "the key\n").to_string_lossy().into_owned();
    let output = run(&world, &["--on-ask", "allow"], &["cat", &file, &secret]);
    output.assert_code(1);
    assert_eq!(output.out(), "content of wanted\n");
    assert!(output.err().contains(&format!("{secret} (a secret)")), "{}", output.err());
    assert_eq!(listed(&output, "grantedPaths")[0]["path"], file.as_str());
    assert_eq!(listed(&output, "deniedPaths")[0]["isSecret"], true);
}

/// Proves: GATE-5 timeout
#[test]
fn silence_is_a_no() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let before = Instant::now();
    let run = asking(&world, &["--ask-timeout", "1"], &["cat", &file]).spawn();
    let mut client = Client::connect(&world);
    client.question_about(&file);
    let audit = client.event("event.audit");
    assert_eq!((&audit["decision"], &audit["source"]), (&"deny".into(), &"timeout".into()));
    let output = run.wait();
    output.assert_code(1);
    assert!(output.err().contains("Permission denied"), "{}", output.err());
    assert!(before.elapsed() >= Duration::from_secs(1));
    let log = world.home().join(".local/state/palisade/audit.jsonl");
    let log = std::fs::read_to_string(log).unwrap();
    let records = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_it: Vec<String> = records.map(|r| r.to_string()).filter(|r| r.contains(&file)).collect();
    let is_told = of_it.iter().any(|record| record.contains(r#""source":"timeout""#));
    assert!(is_told, "{of_it:?}");
    assert!(listed(&output, "deniedPaths")[0]["by"].as_str().unwrap().contains("timeout"));
}

/// Proves: GATE-7 no-questions
#[test]
fn static_mode_asks_nobody() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let output = run(&world, &["--mode", "static"], &["cat", &file]);
    output.assert_code(1);
    assert!(output.err().contains("No such file"), "{}", output.err());
    let waiting = run(&world, &["--mode", "static", "--on-ask", "wait"], &["cat", &file]);
    waiting.assert_code(126);
    assert!(waiting.err().contains("nothing is asked in this run"), "{}", waiting.err());
}

/// Whoever could answer goes away while a question is open: it is denied like one that nobody could ever have answered.
///
/// Proves: GATE-5 nobody-to-ask
#[test]
fn a_question_does_not_wait_for_an_approver_that_quit() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let watch = world.sandbox(["approve", "--json", "--watch"]).spawn();
    eventually("an approver", || socket_directory(&world).join("approver.lock").exists());
    let run = world.sandbox_run(["--on-ask", "ask"], ["cat", &file]).spawn();
    watch.wait_for_stdout("\"event.fs_request\"");
    watch.signal(Signal::TERM);
    let _ended = watch.wait();
    let before = Instant::now();
    let output = run.wait();
    output.assert_code(1);
    assert!(output.err().contains("No such file"), "{}", output.err());
    assert!(before.elapsed() < palisade_testkit::patiently(Duration::from_secs(30)));
    let denied = listed(&output, "deniedPaths");
    assert_eq!(denied[0]["path"], file.as_str());
    assert!(denied[0]["by"].as_str().unwrap().contains("nobody"), "{denied:?}");
}

/// What the view has read-only and a grant would make writable is told once, and only of a command that failed.
///
/// Proves: GATE-10 read-only-told
#[test]
fn a_write_where_only_the_view_forbids_it_is_told_with_the_option_that_grants_it() {
    let world = World::new();
    world.write("home/.local/bin/tool", "#!/bin/sh\n");
    let bin = world.home().join(".local/bin");
    let told = format!("{0} (allow writing with --rw {0})", bin.display());
    let script = "touch ~/.local/bin/new ~/.local/bin/other";
    let failed = world.sandbox_run(["--on-ask", "deny"], ["sh", "-c", script]).run();
    assert_eq!(failed.err().matches(&told).count(), 1, "{}", failed.err());
    let cache = "mkdir ~/.local/bin/__pycache__; touch /usr/bin/new";
    let cached = world.sandbox_run(["--on-ask", "deny"], ["sh", "-c", cache]).run();
    assert!(!cached.err().contains("allow writing"), "{}", cached.err());
    let went_on = format!("{script}; true");
    let went_on = world.sandbox_run(["--on-ask", "deny"], ["sh", "-c", &went_on]).run();
    assert!(!went_on.err().contains("allow writing"), "{}", went_on.err());
    let granted = world.sandbox_run(["--rw", bin.to_str().unwrap()], ["sh", "-c", script]).run();
    granted.assert_code(0);
}
