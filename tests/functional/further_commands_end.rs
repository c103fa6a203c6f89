//! How a sandbox that outlives its commands ends: commands are asked to first, have their time, and each one's end is told.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use palisade_testkit::control::interface::{
    CommandId, CommandStreams, Event, ExitCause, Grace, RefusalKind, Request, Response,
    StartCommand, TerminalSize,
};
use palisade_testkit::{Session, World, is_alive};
use rustix::process::{Pid, Signal, kill_process};

use crate::inside::eventually;

const TERM: i32 = Signal::TERM.as_raw();
const KILL: i32 = Signal::KILL.as_raw();

/// Starts a shell script that writes `ready` when its traps are set, and waits for that.
fn start_ready(session: &mut Session, script: &str, output: &File) -> CommandId {
    let script = format!("{script}; echo ready; while :; do sleep 0.05; done");
    let command = session.start_command(Session::request(&["sh", "-c", &script]), output);
    eventually("the command is ready", || output.metadata().unwrap().len() > 0);
    command
}

fn ask(session: &mut Session, request: &Request) -> Response {
    session.client.ask(request, &[]).unwrap().0
}

fn exit_of(session: &mut Session, command: CommandId) -> ExitCause {
    match session.end_of(command) {
        Event::CommandExited { cause, .. } => cause,
        other => panic!("{other:?}"),
    }
}

/// The code of the sandbox as a whole.
fn end_of_sandbox(session: &mut Session) -> i32 {
    loop {
        if let Event::Ended { exit_code, error } = session.client.next_event().unwrap() {
            assert_eq!(error, None);
            return exit_code;
        }
    }
}

/// Proves: PROC-3 grace
#[test]
fn a_command_that_handles_the_signal_ends_with_its_own_code() {
    let world = World::new();
    let mut session = Session::start(&world, &[]);
    let output = tempfile::tempfile().unwrap();
    let command = start_ready(&mut session, "trap 'exit 7' TERM", &output);
    let begun = Instant::now();
    let end = Request::End { signal: TERM, grace: Grace::Milliseconds(60_000) };
    assert_eq!(ask(&mut session, &end), Response::Done);
    assert_eq!(exit_of(&mut session, command), ExitCause::Code(7));
    assert_eq!(end_of_sandbox(&mut session), 0);
    assert_eq!(session.wait(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(30), "nobody waits for the rest of the time");
}

/// Proves: PROC-3 grace
#[test]
fn a_command_that_ignores_the_signal_is_killed_after_the_grace_time() {
    let world = World::new();
    let mut session = Session::start(&world, &[]);
    let output = tempfile::tempfile().unwrap();
    let deaf = start_ready(&mut session, "trap '' TERM", &output);
    let output = tempfile::tempfile().unwrap();
    let polite = start_ready(&mut session, "trap 'exit 3' TERM", &output);
    let inside = session.processes_inside();
    let grace = Duration::from_millis(700);
    let begun = Instant::now();
    let end = Request::End { signal: TERM, grace: Grace::Milliseconds(700) };
    assert_eq!(ask(&mut session, &end), Response::Done);
    assert_eq!(exit_of(&mut session, polite), ExitCause::Code(3));
    // The sandbox still answers.
    let Response::Status { commands } = ask(&mut session, &Request::Status) else { panic!() };
    assert_eq!(commands.iter().map(|known| known.command).collect::<Vec<_>>(), [deaf]);
    assert_eq!(exit_of(&mut session, deaf), ExitCause::Signal(KILL));
    assert!(begun.elapsed() >= grace, "{:?}", begun.elapsed());
    assert_eq!(end_of_sandbox(&mut session), 0);
    session.wait();
    assert!(!inside.iter().any(|pid| is_alive(*pid)));
}

/// Proves: PROC-3 grace
#[test]
fn without_a_time_in_the_request_the_policy_gives_one() {
    let world = World::new();
    let mut session = Session::start(&world, &["--grace", "300ms"]);
    let output = tempfile::tempfile().unwrap();
    let deaf = start_ready(&mut session, "trap '' TERM", &output);
    let begun = Instant::now();
    let end = Request::End { signal: TERM, grace: Grace::OfSandbox };
    assert_eq!(ask(&mut session, &end), Response::Done);
    assert_eq!(exit_of(&mut session, deaf), ExitCause::Signal(KILL));
    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
    assert_eq!(end_of_sandbox(&mut session), 0);
}

/// Proves: PROC-3 grace
#[test]
fn while_a_sandbox_ends_nothing_is_started_and_its_time_can_only_be_shortened() {
    let world = World::new();
    let mut session = Session::start(&world, &[]);
    let output = tempfile::tempfile().unwrap();
    let deaf = start_ready(&mut session, "trap '' TERM", &output);
    let begun = Instant::now();
    let hour = Duration::from_secs(3600);
    let grace = Grace::Milliseconds(u64::try_from(hour.as_millis()).unwrap());
    assert_eq!(ask(&mut session, &Request::End { signal: TERM, grace }), Response::Done);
    let streams = CommandStreams::Terminal(TerminalSize::default());
    let start = StartCommand { streams, ..Session::request(&["true"]) };
    let refused = ask(&mut session, &Request::StartCommand(start));
    assert!(
        matches!(&refused, Response::Refused(refusal) if refusal.kind == RefusalKind::OutOfOrder),
        "{refused:?}"
    );
    for grace in [Grace::Milliseconds(0), Grace::Milliseconds(u64::MAX)] {
        assert_eq!(ask(&mut session, &Request::End { signal: TERM, grace }), Response::Done);
    }
    assert_eq!(exit_of(&mut session, deaf), ExitCause::Signal(KILL));
    assert_eq!(end_of_sandbox(&mut session), 0);
    assert!(begun.elapsed() < hour);
}

/// A stopped process does not notice any signal but SIGKILL until it goes on.
///
/// Proves: PROC-3 grace
#[test]
fn a_stopped_command_goes_on_to_end() {
    let world = World::new();
    let mut session = Session::start(&world, &[]);
    let output = tempfile::tempfile().unwrap();
    let command = start_ready(&mut session, "trap 'exit 5' TERM", &output);
    let stop = Request::Signal { command, signal: Signal::STOP.as_raw() };
    assert_eq!(ask(&mut session, &stop), Response::Done);
    let end = Request::End { signal: TERM, grace: Grace::Milliseconds(60_000) };
    assert_eq!(ask(&mut session, &end), Response::Done);
    assert_eq!(exit_of(&mut session, command), ExitCause::Code(5));
    assert_eq!(end_of_sandbox(&mut session), 0);
}

/// Proves: PROC-3 fatal, PROC-3 grace
#[test]
fn a_signal_to_the_supervisor_asks_every_command_to_end() {
    let world = World::new();
    let mut session = Session::start(&world, &[]);
    let output = tempfile::tempfile().unwrap();
    let command = start_ready(&mut session, "trap 'exit 9' INT", &output);
    let supervisor = Pid::from_raw(i32::try_from(session.pid()).unwrap()).unwrap();
    kill_process(supervisor, Signal::INT).unwrap();
    assert_eq!(exit_of(&mut session, command), ExitCause::Code(9));
    assert_eq!(end_of_sandbox(&mut session), 0);
}

/// Proves: RES-2 wall-time, PROC-3 grace
#[test]
fn at_the_time_limit_commands_are_asked_to_end_and_the_client_is_told() {
    let world = World::new();
    let mut session = Session::start(&world, &["--timeout", "2s", "--grace", "20s"]);
    let output = tempfile::tempfile().unwrap();
    let command = start_ready(&mut session, "trap 'exit 6' TERM", &output);
    let limit = session.wait_for(|event| matches!(event, Event::LimitReached { .. }));
    assert_eq!(limit, Event::LimitReached { limit: "timeout".to_owned() });
    assert_eq!(exit_of(&mut session, command), ExitCause::Code(6));
    assert_eq!(end_of_sandbox(&mut session), 124);
}

/// Nothing runs, and nobody waits for the answer: that is a sandbox which ended as asked.
///
/// Proves: PROC-3 grace
#[test]
fn a_client_that_asks_for_the_end_and_goes_gets_an_ordinary_one() {
    let world = World::new();
    for _ in 0..5 {
        let mut session = Session::start(&world, &[]);
        let end = Request::End { signal: TERM, grace: Grace::OfSandbox };
        session.client.send(&end, &[]).unwrap();
        rustix::net::shutdown(session.client.socket(), rustix::net::Shutdown::Both).unwrap();
        assert_eq!(session.wait(), Some(0));
    }
}

/// Proves: PROC-3 grace
#[test]
fn each_end_is_told_however_often_the_sandbox_is_asked_to_end_at_once() {
    let world = World::new();
    let mut session = Session::start(&world, &[]);
    let commands: Vec<CommandId> = (0..20)
        .map(|_| {
            let output = tempfile::tempfile().unwrap();
            start_ready(&mut session, "trap '' TERM", &output)
        })
        .collect();
    let end = Session::end_at_once();
    for _ in 0..20 {
        // It may have ended by then.
        let _ = session.client.send(&end, &[]);
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut exited = Vec::new();
    let code = loop {
        match session.client.next_event().unwrap() {
            Event::CommandExited { command, .. } => exited.push(command),
            Event::Ended { exit_code, .. } => break exit_code,
            _ => {}
        }
    };
    exited.sort();
    assert_eq!((exited, code), (commands, 0));
}

/// More than a socket has room for.
const MANY: u64 = 150;

/// Proves: LIFE-4 control
#[test]
fn a_client_that_reads_late_still_gets_every_event() {
    let world = World::new();
    let mut session = Session::start(&world, &[]);
    let null = File::open("/dev/null").unwrap();
    let start = Request::StartCommand(Session::request(&["/bin/true"]));
    for _ in 0..MANY {
        session.client.send(&start, &[null.as_fd(); 3]).unwrap();
        // Never so many at once as would be refused.
        std::thread::sleep(Duration::from_millis(20));
    }
    let end = Request::End { signal: TERM, grace: Grace::Milliseconds(60_000) };
    session.client.send(&end, &[]).unwrap();
    let supervisor = session.pid();
    std::thread::sleep(Duration::from_secs(1));
    assert!(is_alive(supervisor), "it waits for who reads late");
    let (mut started, mut exited) = (0, 0);
    let code = loop {
        match session.client.next_event().unwrap() {
            Event::CommandStarted { .. } => started += 1,
            Event::CommandExited { .. } => exited += 1,
            Event::Ended { exit_code, .. } => break exit_code,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((started, exited, code), (MANY, MANY, 0));
}
