use super::*;
use palisade_wire::{decode, encode};

#[test]
fn requests_arrive_as_they_were_sent() {
    let start = StartCommand {
        kind: CommandKind::Program,
        argv: vec![b"sh".into(), b"\xff".into()],
        environment: Environment::Exactly(vec![(b"A".into(), b"\xfe".into())]),
        cwd: Some("/tmp".into()),
        umask: Some(0o22),
        rlimits: vec![(Resource::OpenFiles, 10)],
        streams: CommandStreams::Terminal(TerminalSize {
            rows: 24,
            columns: 80,
            ..TerminalSize::default()
        }),
    };
    for request in [
        Request::Hello { version: VERSION },
        Request::StartCommand(start.clone()),
        Request::StartCommand(StartCommand { cwd: None, ..start }),
        Request::Signal { command: CommandId(3), signal: 9 },
        Request::Status,
        Request::End { signal: 15, grace: Grace::OfSandbox },
        Request::End { signal: 2, grace: Grace::Milliseconds(u64::MAX) },
    ] {
        assert_eq!(decode::<Request>(&encode(&request).unwrap()).unwrap(), request);
    }
}

/// Every answer fits, however long its text and however many commands there are.
#[test]
fn the_largest_answers_fit() {
    let status = CommandStatus { command: CommandId(u64::MAX), pid: Some(u32::MAX) };
    let commands = vec![status; MAX_COMMANDS];
    encode(&FromSupervisor::Response(Response::Status { commands })).unwrap();
    let message = "x".repeat(100_000);
    let refusal = Refusal { kind: RefusalKind::Failed, message: message.clone() };
    encode(&FromSupervisor::Response(Response::Refused(refusal))).unwrap();
    let (text, by, limit) = (message.clone(), message.clone(), message.clone());
    for event in [
        Event::CommandFailed { command: CommandId(1), exit_code: 127, message },
        Event::QuestionAsked { question: u64::MAX, text },
        Event::QuestionAnswered { question: u64::MAX, is_allowed: false, by },
        Event::LimitReached { limit },
    ] {
        encode(&FromSupervisor::Event(event)).unwrap();
    }
}
