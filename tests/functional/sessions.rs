//! Sandboxes that stay: made, found, used, looked at and removed by their commands.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use palisade_testkit::World;
use rustix::process::Signal;

use crate::sessions_support::{Sessions, wait_until};

/// Proves: LIFE-4 directory, LIFE-3 ps
#[test]
fn a_session_stays_between_commands_and_is_listed_until_it_is_stopped() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let id = sessions.create(&["--name", "work"]);
    assert_eq!(
        sessions.output_of("work", &["sh", "-c", "echo kept > /tmp/file; pwd"]).trim(),
        world.project().display().to_string()
    );
    assert_eq!(sessions.output_of(&id[24..], &["cat", "/tmp/file"]), "kept\n");
    let mode = fs::metadata(sessions.directory(&id)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let listed = sessions.sandbox(&["ps", "--json"]);
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let one = &listed["sessions"][0];
    assert_eq!((one["id"].as_str(), one["name"].as_str()), (Some(id.as_str()), Some("work")));
    assert_eq!(one["state"], "Monitoring");
    assert!(one["status"]["idleMs"].is_u64() && one["status"]["commands"] == serde_json::json!([]));
    let shown = sessions.sandbox(&["ps"]);
    assert!(shown.out().contains("work") && shown.out().contains("Monitoring"), "{}", shown.out());
    sessions.sandbox(&["stop", "work"]).assert_code(0);
    assert!(!sessions.sandbox(&["ps"]).out().contains("work"));
    assert!(sessions.sandbox(&["ps", "--all"]).out().contains("Completed"));
    let over = sessions.sandbox(&["exec", "work", "--", "true"]);
    over.assert_code(125);
    assert!(over.err().contains("is not running"), "{}", over.err());
    sessions.sandbox(&["rm", "work"]).assert_code(0);
    assert!(!sessions.directory(&id).exists());
}

/// Proves: LIFE-3 exit-code
#[test]
fn exec_passes_streams_signals_and_exit_codes_through() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "s"]);
    let run = |arguments: &[&str]| sessions.sandbox(&[&["exec"][..], arguments].concat());
    let output = run(&["s", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    output.assert_code(7);
    assert_eq!((output.out().as_ref(), output.err().as_ref()), ("out\n", "err\n"));
    run(&["s", "--", "sh", "-c", "kill -9 $$"]).assert_code(137);
    run(&["s", "--", "no-such-program"]).assert_code(127);
    run(&["s", "--", "/etc/passwd"]).assert_code(126);
    let piped = world.sandbox(["exec", "-i", "s", "--", "cat"]).stdin("through\n").run();
    assert_eq!(piped.out(), "through\n");
    let without = world.sandbox(["exec", "s", "--", "cat"]).stdin("not passed\n").run();
    assert_eq!(without.out(), "", "without -i there is nothing to read");
    let more =
        run(&["--env", "MORE=this", "--cwd", "/usr", "s", "--", "sh", "-c", "echo $MORE; pwd"]);
    assert_eq!(more.out(), "this\n/usr\n");
    let script = "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    let running = world.sandbox(["exec", "s", "--", "sh", "-c", script]).spawn();
    running.wait_for_stdout("ready");
    running.signal(Signal::TERM);
    let output = running.wait();
    output.assert_code(5);
    assert!(output.out().contains("caught"), "{}", output.out());
}

/// Proves: LIFE-3 exit-code
#[test]
fn a_command_whose_client_is_killed_hears_of_it() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "s"]);
    let script = "trap 'echo hung up > gone; exit' HUP; touch up; while :; do sleep 0.05; done";
    let running = world.sandbox(["exec", "s", "--", "sh", "-c", script]).spawn();
    wait_until("it runs", || world.project().join("up").exists());
    running.signal(Signal::KILL);
    wait_until("it was told", || world.project().join("gone").exists());
    drop(running.wait());
    assert_eq!(sessions.output_of("s", &["echo", "on"]), "on\n", "the session goes on");
}

/// Proves: LIFE-4 directory
#[test]
fn output_in_the_background_is_kept_by_the_byte_also_after_the_end() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "s"]);
    let script = "printf 0123456789; sleep 0.3; printf abc";
    let started = sessions.sandbox(&["exec", "--detach", "s", "--", "sh", "-c", script]);
    assert_eq!(started.out(), "1\n");
    let followed = sessions.sandbox(&["logs", "--follow", "s"]);
    assert_eq!(followed.out(), "0123456789abc");
    assert_eq!(sessions.sandbox(&["logs", "--since", "8", "s"]).out(), "89abc");
    let flood = "head -c 6000000 /dev/zero | tr '\\0' x; echo end";
    sessions.sandbox(&["exec", "-d", "s", "--", "sh", "-c", flood]).assert_code(0);
    let last = || sessions.sandbox(&["logs", "s"]);
    wait_until("everything is written", || last().out().ends_with("end\n"));
    assert!(last().err().contains("bytes were dropped") && last().out().len() <= 4 << 20);
    sessions.sandbox(&["stop", "s"]).assert_code(0);
    assert_eq!(sessions.sandbox(&["logs", "--command", "1", "s"]).out(), "0123456789abc");
    let unknown = sessions.sandbox(&["logs", "--command", "9", "s"]);
    unknown.assert_code(125);
    assert!(unknown.err().contains("only of 1, 2"), "{}", unknown.err());
}

/// Proves: LIFE-1 state-machine
#[test]
fn a_session_for_a_command_ends_with_it_and_has_its_exit_code() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let id = sessions.create(&["--name", "job", "--", "sh", "-c", "echo done; exit 3"]);
    wait_until("it has ended", || sessions.inspect(&id)["state"] == "Completed");
    let record = sessions.inspect("job");
    assert_eq!((&record["exitCode"], &record["isRunning"]), (&3.into(), &false.into()));
    assert_eq!(record["command"], serde_json::json!(["sh", "-c", "echo done; exit 3"]));
    assert_eq!(sessions.sandbox(&["logs", "job"]).out(), "done\n");
    let missing = sessions.sandbox(&["create", "--", "no-such-program"]);
    missing.assert_code(127);
    assert!(missing.err().contains("no-such-program"), "{}", missing.err());
    let refused = sessions.sandbox(&["create", "--rw", "~/.config"]);
    refused.assert_code(126);
    assert!(refused.out().is_empty() && !refused.err().is_empty());
}

/// Proves: LIFE-4 directory
#[test]
fn a_word_that_means_no_session_or_several_is_refused_with_what_there_is() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let none = sessions.sandbox(&["inspect", "nothing"]);
    none.assert_code(125);
    assert!(none.err().contains("no session `nothing`"), "{}", none.err());
    let (one, other) = (sessions.create(&["--name", "one"]), sessions.create(&[]));
    let several = sessions.sandbox(&["inspect", &one[..4]]);
    several.assert_code(125);
    assert!(several.err().contains(&one) && several.err().contains(&other), "{}", several.err());
    let taken = sessions.sandbox(&["create", "--name", "one"]);
    taken.assert_code(125);
    assert!(taken.err().contains("taken"), "{}", taken.err());
    let running = sessions.sandbox(&["rm", "one"]);
    running.assert_code(125);
    assert!(running.err().contains("is running"), "{}", running.err());
    let words = sessions.sandbox(&["complete", "--", "exec", ""]);
    assert!(words.out().contains("one\t") && words.out().contains(&other), "{}", words.out());
}

/// Proves: LIFE-1 audited
#[test]
fn every_step_of_a_session_is_in_the_audit_log() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let id = sessions.create(&[]);
    sessions.sandbox(&["stop", &id]).assert_code(0);
    let log = world.home().join(".local/state/palisade/audit.jsonl");
    let log = fs::read_to_string(log).unwrap();
    let own: Vec<_> = log.lines().filter(|line| line.contains(&id)).collect();
    for state in ["Created", "Initialized", "Running", "Completed", "Cleanup"] {
        let word = format!("\"{state}\"");
        assert!(own.iter().any(|line| line.contains(&word)), "{state}: {own:#?}");
    }
    sessions.sandbox(&["audit", "verify"]).assert_code(0);
}

/// Proves: LIFE-3 run
#[test]
fn a_run_that_keeps_its_sandbox_leaves_a_session() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let kept = world.sandbox(["run", "--keep", "--", "sh", "-c", "cat > /tmp/x; exit 4"]);
    let kept = kept.stdin("input").run();
    kept.assert_code(4);
    let session = kept
        .err()
        .split_whitespace()
        .find(|word| word.len() == 37)
        .map(|word| word[..36].to_owned());
    let session = session.unwrap_or_else(|| panic!("{}", kept.err()));
    assert_eq!(sessions.output_of(&session, &["cat", "/tmp/x"]), "input");
}

/// Proves: LIFE-4 directory
#[test]
fn two_sessions_see_nothing_of_each_other() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let (one, other) = (sessions.create(&[]), sessions.create(&[]));
    let script =
        "echo private | tee /tmp/kept /var/tmp/kept ~/kept > /dev/shm/kept; exec sleep 1000";
    sessions.sandbox(&["exec", "-d", &one, "--", "sh", "-c", script]).assert_code(0);
    let kept = "cat /tmp/kept /var/tmp/kept ~/kept /dev/shm/kept 2>/dev/null; true";
    wait_until("it is written", || {
        sessions.output_of(&one, &["sh", "-c", kept]).lines().count() == 4
    });
    assert_eq!(sessions.output_of(&other, &["sh", "-c", kept]), "");
    let processes = sessions.output_of(&other, &["ps", "-e", "-o", "args"]);
    assert!(!processes.contains("sleep 1000"), "{processes}");
    let roots = "cat /proc/[0-9]*/root/tmp/kept 2>/dev/null; true";
    assert_eq!(sessions.output_of(&other, &["sh", "-c", roots]), "");
    // By an id that was guessed right, its own included.
    for id in [&one, &other] {
        let directory = sessions.directory(id).display().to_string();
        let script = "ls \"$0\" 2>/dev/null; cat \"$0/session.json\" 2>/dev/null; echo forged > \"$0/session.json\" 2>/dev/null; true";
        assert_eq!(sessions.output_of(&other, &["sh", "-c", script, &directory]), "");
        assert_eq!(sessions.inspect(id)["isRunning"], true, "its record is as it was");
    }
}
