//! How sessions end: by time, by signals, with their supervisor. Nothing of one is left, and its record says what happened.

use std::fs;
use std::time::Duration;

use palisade_testkit::World;
use rustix::process::{Pid, Signal, kill_process};

use crate::sessions_support::{Sessions, adopt_orphans, descendants, wait_for_end, wait_until};

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

/// Proves: LIFE-4 ttl
#[test]
fn a_session_ends_when_its_time_is_over_or_when_it_was_idle_for_too_long() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let whole = sessions.create(&["--ttl", "1s"]);
    let idle = sessions.create(&["--idle-ttl", "1"]);
    let busy = sessions.create(&["--idle-ttl", "1s"]);
    let by_variable = world.sandbox(["create", "--quiet"]).env("SANDBOX_TTL_SECONDS", "1").run();
    by_variable.assert_code(0);
    let by_variable = by_variable.out().trim().to_owned();
    sessions.sandbox(&["exec", "-d", &busy, "--", "sleep", "1000"]).assert_code(0);
    sessions.sandbox(&["exec", "-d", &whole, "--", "sleep", "1000"]).assert_code(0);
    assert!(sessions.inspect(&whole)["status"]["expiresInMs"].is_u64());
    for id in [&whole, &idle, &by_variable] {
        wait_until("its time is over", || sessions.inspect(id)["state"] == "Timeout");
        let record = sessions.inspect(id);
        assert_eq!(record["exitCode"], 124);
        assert_eq!(record["endReason"], "its time to live was over");
    }
    assert_eq!(sessions.inspect(&busy)["isRunning"], true, "a command runs in it");
    let log = fs::read_to_string(world.home().join(".local/state/palisade/audit.jsonl")).unwrap();
    assert!(log.lines().any(|line| line.contains(&whole) && line.contains("\"Timeout\"")));
}

/// Proves: LIFE-4 ttl
#[test]
fn somebody_who_extends_a_session_keeps_it() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let id = sessions.create(&["--ttl", "2s", "--idle-ttl", "2s"]);
    sessions.sandbox(&["extend", &id, "1h"]).assert_code(0);
    std::thread::sleep(Duration::from_millis(2500));
    let now = sessions.inspect(&id);
    assert_eq!(now["isRunning"], true);
    assert!(now["status"]["expiresInMs"].as_u64().unwrap() > 3_000_000, "{now}");
}

/// Proves: LIFE-4 crash, LIFE-1 state-machine
#[test]
fn a_supervisor_that_is_killed_leaves_no_process_and_its_session_is_marked() {
    adopt_orphans();
    let world = World::new();
    let sessions = Sessions::new(&world);
    let id = sessions.create(&["--name", "s"]);
    sessions
        .sandbox(&["exec", "-d", "s", "--", "sh", "-c", "sleep 1000 & sleep 1000"])
        .assert_code(0);
    sessions.sandbox(&["exec", "-d", "-t", "s", "--", "sleep", "1000"]).assert_code(0);
    let supervisor = sessions.supervisor("s");
    let mut all = descendants(supervisor);
    assert!(all.len() > 4, "{all:?}");
    all.push(supervisor);
    send(supervisor, Signal::KILL);
    wait_for_end(&all);
    assert!(!sessions.sandbox(&["ps"]).out().contains("Monitoring"));
    let record = sessions.inspect("s");
    assert_eq!(
        (record["state"].as_str(), record["isRunning"].as_bool()),
        (Some("Error"), Some(false))
    );
    assert!(record["endReason"].as_str().unwrap().contains("killed"), "{record}");
    assert!(!sessions.directory(&id).join("control").exists());
    let log = fs::read_to_string(world.home().join(".local/state/palisade/audit.jsonl")).unwrap();
    let is_its_end = |line: &&str| line.contains(&id) && line.contains("SANDBOX_FAILED");
    assert_eq!(log.lines().filter(is_its_end).count(), 1, "{log}");
    sessions.sandbox(&["audit", "verify"]).assert_code(0);
    sessions.create(&["--name", "s"]);
}

/// Proves: LIFE-3 kill
#[test]
fn kill_ends_a_session_that_ignores_signals_and_one_whose_supervisor_is_stopped() {
    adopt_orphans();
    let world = World::new();
    let sessions = Sessions::new(&world);
    let stubborn = sessions.create(&[]);
    let script = "trap '' TERM INT HUP; while :; do sleep 1; done";
    sessions.sandbox(&["exec", "-d", &stubborn, "--", "sh", "-c", script]).assert_code(0);
    let supervisor = sessions.supervisor(&stubborn);
    let all = [descendants(supervisor), vec![supervisor]].concat();
    sessions.sandbox(&["stop", "--grace", "200ms", &stubborn]).assert_code(0);
    wait_for_end(&all);
    let stopped = sessions.create(&[]);
    let supervisor = sessions.supervisor(&stopped);
    let all = [descendants(supervisor), vec![supervisor]].concat();
    send(supervisor, Signal::STOP);
    assert!(sessions.sandbox(&["ps"]).out().contains("Unresponsive"));
    let refused = sessions.sandbox(&["stop", &stopped]);
    refused.assert_code(125);
    assert!(refused.err().contains("sandbox kill"), "{}", refused.err());
    sessions.sandbox(&["kill", &stopped]).assert_code(0);
    wait_for_end(&all);
}

/// Proves: LIFE-4 crash, LIFE-3 kill
#[test]
fn twenty_sessions_leave_nothing() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    for number in 0..20 {
        let id = sessions.create(&["--name", "again"]);
        assert_eq!(
            sessions.output_of("again", &["echo", &number.to_string()]).trim(),
            number.to_string()
        );
        let supervisor = sessions.supervisor(&id);
        let mut all = descendants(supervisor);
        all.push(supervisor);
        match number % 3 {
            0 => sessions.sandbox(&["stop", &id]).assert_code(0),
            1 => sessions.sandbox(&["kill", &id]).assert_code(0),
            _ => sessions.sandbox(&["rm", "--force", &id]).assert_code(0),
        };
        wait_for_end(&all);
    }
    sessions.sandbox(&["prune"]).assert_code(0);
    let left = fs::read_dir(world.home().join(".local/state/palisade/sessions")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["names.lock"]);
}

/// Proves: LIFE-3 bad-input
#[test]
fn a_client_that_says_what_is_no_request_is_dropped_and_the_session_goes_on() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
    use std::os::fd::AsRawFd as _;
    let world = World::new();
    let sessions = Sessions::new(&world);
    let id = sessions.create(&[]);
    let directory = fs::File::open(sessions.directory(&id)).unwrap();
    let address = format!("/proc/self/fd/{}/control", directory.as_raw_fd());
    let connect = || {
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        rustix::net::connect(&socket, &SocketAddrUnix::new(&address).unwrap()).unwrap();
        socket
    };
    let malformed = connect();
    for _ in 0..40 {
        if rustix::io::write(&malformed, &[0xff; 64]).is_err() {
            break;
        }
    }
    // More than are served at once, and none of them says anything.
    let silent: Vec<_> = (0..60).map(|_| connect()).collect();
    assert_eq!(sessions.output_of(&id, &["echo", "on"]), "on\n");
    drop(silent);
}

/// Proves: LIFE-4 crash
#[test]
fn what_a_command_leaves_in_the_background_does_not_hold_up_its_session() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let id = sessions.create(&[]);
    for terminal in [&["-d"][..], &["-d", "-t"]] {
        let script = ["sh", "-c", "trap '' HUP; yes & exit 0"];
        let words = [&["exec"][..], terminal, &[&id, "--"], &script].concat();
        sessions.sandbox(&words).assert_code(0);
    }
    let is_idle = || sessions.inspect(&id)["status"]["commands"] == serde_json::json!([]);
    wait_until("both commands have ended", is_idle);
    assert_eq!(sessions.output_of(&id, &["echo", "on"]), "on\n");
    sessions.sandbox(&["stop", &id]).assert_code(0);
}

/// A session with a change and a checkpoint.
fn with_changes(sessions: &Sessions<'_>, options: &[&str]) -> String {
    let id = sessions.create(&[&["--transaction", "--ttl", "1h"][..], options].concat());
    sessions.output_of(&id, &["sh", "-c", "echo new > made"]);
    sessions.sandbox(&["checkpoint", &id]).assert_code(0);
    id
}

/// Whether its change waits.
fn waits(sessions: &Sessions<'_>, id: &str) -> bool {
    sessions.sandbox(&["diff", "--name-only", id]).out().contains("made")
}

fn discarded_records(sessions: &Sessions<'_>, id: &str) -> Vec<serde_json::Value> {
    let log = sessions.sandbox(&["audit", id, "--event", "CHANGES_DISCARDED", "--json"]);
    log.assert_code(0);
    log.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Proves: LIFE-4 ttl, LIFE-2 discard
#[test]
fn changes_of_a_session_that_expires_are_kept_or_discarded_as_the_policy_says() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let discard = "filesystem.onExpiry=\"discard\"";
    let cases: [(&[&str], bool); 3] =
        [(&["--on-expiry", "discard"], false), (&["--set", discard], false), (&[], true)];
    for (options, is_kept) in cases {
        let id = with_changes(&sessions, options);
        sessions.sandbox(&["extend", &id, "200ms"]).assert_code(0);
        wait_until("its time is over", || sessions.inspect(&id)["state"] == "Timeout");
        let record = sessions.inspect(&id);
        assert_eq!(record["exitCode"], 124);
        let reason = record["endReason"].as_str().unwrap();
        assert_eq!(reason.ends_with("its changes were discarded"), !is_kept, "{reason}");
        assert_eq!(waits(&sessions, &id), is_kept, "{options:?}");
        for part in ["layers", "checkpoints"] {
            assert_eq!(sessions.directory(&id).join(part).exists(), is_kept, "{part}");
        }
        let discarded = discarded_records(&sessions, &id);
        match is_kept {
            true => assert!(discarded.is_empty(), "{discarded:?}"),
            false => assert_eq!(discarded[0]["details"]["paths"], 1, "{discarded:?}"),
        }
        assert!(!world.project().join("made").exists());
    }
    sessions.sandbox(&["audit", "verify"]).assert_code(0);
}

/// Proves: LIFE-4 ttl, LIFE-2 discard
#[test]
fn whoever_ends_a_session_before_its_time_keeps_its_changes() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let options = ["--on-expiry", "discard"];
    let stopped = with_changes(&sessions, &options);
    sessions.sandbox(&["stop", &stopped]).assert_code(0);
    let killed = with_changes(&sessions, &options);
    sessions.sandbox(&["kill", &killed]).assert_code(0);
    let crashed = with_changes(&sessions, &options);
    let supervisor = sessions.supervisor(&crashed);
    send(supervisor, Signal::KILL);
    wait_for_end(&[supervisor]);
    // Its time is over while its command is still given time to end.
    let ending = with_changes(&sessions, &options);
    let stubborn = "trap '' TERM INT HUP; sleep 1000";
    sessions.sandbox(&["exec", "-d", &ending, "--", "sh", "-c", stubborn]).assert_code(0);
    sessions.sandbox(&["extend", &ending, "4s"]).assert_code(0);
    sessions.sandbox(&["stop", "--grace", "6s", &ending]).assert_code(0);
    for id in [&stopped, &killed, &crashed, &ending] {
        assert!(waits(&sessions, id), "{}", sessions.inspect(id));
        assert_eq!(discarded_records(&sessions, id), [] as [serde_json::Value; 0]);
    }
    assert_ne!(sessions.inspect(&ending)["state"], "Timeout");
}
