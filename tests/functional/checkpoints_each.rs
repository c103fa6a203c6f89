//! A session that keeps a state before each command does so whoever starts the command (LIFE-5).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use palisade_testkit::World;
use palisade_testkit::control::client::Client;
use palisade_testkit::control::interface::{
    CommandId, CommandKind, CommandStreams, Environment, Event, ExitCause, Grace, HeldStreams,
    Request, Response, StartCommand, VERSION,
};
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

use crate::checkpoints::script;
use crate::fault_points::{Fault, unfinished_files};
use crate::sessions_support::{Sessions, connected_to, wait_until};

const OPTIONS: [&str; 4] = ["--transaction", "--checkpoint-each", "--name", "s"];

fn reasons(sessions: &Sessions<'_>) -> Vec<String> {
    let all = sessions.sandbox(&["checkpoints", "--json", "s"]);
    let all: Value = serde_json::from_slice(&all.assert_code(0).stdout).unwrap();
    let all = all["checkpoints"].as_array().unwrap().iter();
    all.map(|checkpoint| checkpoint["reason"].as_str().unwrap().to_owned()).collect()
}

/// A client at the socket of a session that is none of ours.
fn client_at(directory: &Path) -> Client {
    let mut client = Client::new(connected_to(directory));
    let hello = client.ask(&Request::Hello { version: VERSION }, &[]).unwrap().0;
    assert_eq!(hello, Response::Hello { version: VERSION });
    client
}

fn start(client: &mut Client, words: &[&str]) -> CommandId {
    let start = StartCommand {
        kind: CommandKind::Program,
        argv: words.iter().map(|word| word.as_bytes().to_vec()).collect(),
        environment: Environment::Extended(Vec::new()),
        cwd: None,
        umask: None,
        rlimits: Vec::new(),
        streams: CommandStreams::Held(HeldStreams {
            terminal: None,
            has_input: false,
            has_stderr_apart: false,
            is_attached: false,
        }),
    };
    match client.ask(&Request::StartCommand(start), &[]).unwrap().0 {
        Response::Starting { command } => command,
        other => panic!("not started: {other:?}"),
    }
}

fn end_of(client: &mut Client, command: CommandId) -> Event {
    let [end] = ends_of(client, [command]);
    end
}

/// In the order of the commands, whichever ends first.
fn ends_of<const COUNT: usize>(
    client: &mut Client,
    commands: [CommandId; COUNT],
) -> [Event; COUNT] {
    let mut ends = BTreeMap::new();
    while !commands.iter().all(|command| ends.contains_key(command)) {
        let event = client.next_event().unwrap();
        if let Event::CommandExited { command, .. } | Event::CommandFailed { command, .. } = &event
        {
            ends.insert(*command, event);
        }
    }
    commands.map(|command| ends.remove(&command).unwrap())
}

/// Proves: LIFE-5 checkpoint
#[test]
fn a_state_is_kept_before_each_command_whoever_starts_it() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let id = sessions.create(&OPTIONS);
    script(&sessions, "s", "echo one > notes");
    sessions.sandbox(&["exec", "-d", "s", "--", "sh", "-c", "echo two > notes"]).assert_code(0);
    wait_until("it is written", || sessions.sandbox(&["diff", "s"]).out().contains("+two"));
    let mut client = client_at(&sessions.directory(&id));
    // Neither waits for the other to end, and each has a state of its own.
    let words = ["sh", "-c", "echo three > notes"];
    let both = [start(&mut client, &words), start(&mut client, &words)];
    let cause = ExitCause::Code(0);
    let ended = both.map(|command| Event::CommandExited { command, cause });
    assert_eq!(ends_of(&mut client, both), ended);
    assert_eq!(reasons(&sessions), ["beforeCommand"; 4]);
    let between = sessions.sandbox(&["diff", "s", "1..3"]);
    assert!(between.out().contains("+two"), "{}", between.out());
    // A signal that comes while the command waits is not lost.
    let command = start(&mut client, &["sleep", "1000"]);
    client.ask(&Request::Signal { command, signal: 15 }, &[]).unwrap();
    let cause = ExitCause::Signal(15);
    assert_eq!(end_of(&mut client, command), Event::CommandExited { command, cause });
    sessions.sandbox(&["stop", "s"]).assert_code(0);
}

/// Proves: LIFE-5 checkpoint
#[test]
fn the_command_that_a_session_is_for_has_a_state_before_it() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let words = [
        &["create", "--quiet"],
        &OPTIONS[..],
        &["--", "sh", "-c", "echo one > notes; exec sleep 1000"],
    ];
    world.sandbox(words.concat()).run().assert_code(0);
    assert_eq!(reasons(&sessions), ["beforeCommand"]);
    let changed = || sessions.sandbox(&["diff", "--name-only", "s", "1.."]).out().into_owned();
    wait_until("it is written", || changed() == "notes\n");
}

/// Proves: LIFE-5 crash
#[test]
fn a_command_whose_state_could_not_be_kept_does_not_start() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let create = [&["create", "--quiet"], &OPTIONS[..]].concat();
    // The process that keeps it is killed.
    let created = Fault::KillAt("copied the layer#1".to_owned()).sandbox(&world, &create).run();
    let id = created.assert_code(0).out().trim().to_owned();
    for _ in 0..2 {
        let refused = sessions.sandbox(&["exec", "s", "--", "touch", "made"]);
        refused.assert_code(125);
        assert!(refused.err().contains("could not be kept: its process was killed"));
    }
    assert_eq!(sessions.sandbox(&["diff", "--name-only", "s"]).out(), "");
    // Somebody else cleans up, and the session goes on.
    sessions.sandbox(&["checkpoint", "s"]).assert_code(0);
    assert_eq!(unfinished_files(&sessions.directory(&id)), Vec::<std::path::PathBuf>::new());
    sessions.sandbox(&["stop", "s"]).assert_code(0);
}

/// Proves: LIFE-5 crash, LIFE-4 crash
#[test]
fn a_session_ends_while_a_command_waits_for_its_state() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let id = sessions.create(&OPTIONS);
    script(&sessions, "s", "echo one > notes");
    let directory = sessions.directory(&id);
    // Somebody is busy with the changes.
    let lock = File::open(directory.join("changes.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let mut client = client_at(&directory);
    let command = start(&mut client, &["touch", "made"]);
    let running = &sessions.inspect("s")["status"]["commands"];
    assert_eq!(running[0]["pid"], Value::Null, "{running}");
    // A rollback would be in its way.
    let held = client.ask(&Request::HoldProject, &[]).unwrap().0;
    assert!(matches!(held, Response::Refused(_)), "{held:?}");
    let end = Request::End { signal: 15, grace: Grace::OfSandbox };
    client.ask(&end, &[]).unwrap();
    match end_of(&mut client, command) {
        Event::CommandFailed { exit_code: 125, message, .. } => {
            assert!(message.contains("ending"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    drop(lock);
    wait_until("it is over", || sessions.inspect("s")["isRunning"] == false);
    assert_eq!(sessions.sandbox(&["diff", "--name-only", "s"]).out(), "notes\n");
    assert!(!fs::exists(directory.join("layers/1/upper/made")).unwrap());
}
