//! Clients that do not wait for the answer to their greeting: what follows it is carried out, or refused with it.

use palisade_testkit::World;
use palisade_testkit::control::client::Client;
use palisade_testkit::control::interface::{
    CommandKind, CommandStreams, Environment, Event, ExitCause, HeldStreams, RefusalKind, Request,
    Response, StartCommand, VERSION,
};

use crate::sessions_support::{Sessions, connected_to};

fn touch(name: &str) -> Request {
    Request::StartCommand(StartCommand {
        kind: CommandKind::Program,
        argv: ["touch", name].map(|word| word.as_bytes().to_vec()).to_vec(),
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
    })
}

fn wait_for_success(client: &mut Client) {
    loop {
        match client.next_event().unwrap() {
            Event::CommandExited { cause, .. } => return assert_eq!(cause, ExitCause::Code(0)),
            Event::CommandFailed { message, .. } => panic!("{message}"),
            _ => {}
        }
    }
}

#[test]
fn requests_behind_an_unanswered_greeting_are_carried_out_in_order() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let id = sessions.create(&[]);
    let mut client = Client::new(connected_to(&sessions.directory(&id)));
    client.greet().unwrap();
    client.send(&touch("first"), &[]).unwrap();
    client.send(&Request::Inspect, &[]).unwrap();
    // Each sends one more, and gets the next answer.
    let answers = [next_answer(&mut client), next_answer(&mut client), next_answer(&mut client)];
    assert!(matches!(answers[0], Response::Starting { .. }), "{answers:?}");
    assert!(matches!(answers[1], Response::Inspected(_)), "{answers:?}");
    assert!(matches!(answers[2], Response::Status { .. }), "{answers:?}");
    wait_for_success(&mut client);
    assert!(world.project().join("first").exists());
}

/// The answer to the oldest request that has none yet.
fn next_answer(client: &mut Client) -> Response {
    client.ask(&Request::Status, &[]).unwrap().0
}

/// A client of another version may mean something else by the same bytes.
#[test]
fn nothing_behind_a_greeting_that_is_refused_is_carried_out() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let id = sessions.create(&[]);
    let mut client = Client::new(connected_to(&sessions.directory(&id)));
    client.send(&Request::Hello { version: VERSION + 1 }, &[]).unwrap();
    client.send(&touch("never"), &[]).unwrap();
    for _ in 0..2 {
        match next_answer(&mut client) {
            Response::Refused(refusal) => assert_ne!(refusal.kind, RefusalKind::Malformed),
            other => panic!("{other:?}"),
        }
    }
    // Whatever was started before has ended before this.
    sessions.output_of(&id, &["touch", "after"]);
    assert!(world.project().join("after").exists());
    assert!(!world.project().join("never").exists());
    let commands = &sessions.inspect(&id)["commands"];
    assert!(commands.as_array().is_none_or(Vec::is_empty), "{commands}");
}
