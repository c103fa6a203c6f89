//! The encoding of this version, byte by byte. A client of another build speaks the same version, so none of these may change
//! without [`VERSION`]. Every variant of every type that is sent is here: a new one does not compile until it is.

use super::*;
use palisade_wire::encode;
use std::fmt::Debug;

/// Raise it with any change below.
const OF_VERSION: u32 = 10;

/// The number of a variant, and how many there are, by a match that has to name all of them.
macro_rules! numbers {
    ($name:ident: $type:ty, $($pattern:pat),+ $(,)?) => {
        fn $name(value: &$type) -> (usize, usize) {
            match value { $($pattern => {}),+ }
            let is_it = [$(matches!(value, $pattern)),+];
            (is_it.iter().position(|is_it| *is_it).unwrap(), is_it.len())
        }
    };
}

numbers!(
    request: Request,
    Request::Hello { version: _ },
    Request::Create(CreateSandbox {
        settings: _,
        policy_files: _,
        tool: _,
        ask: AskPeople::IfThere | AskPeople::Always | AskPeople::Never,
        report: _,
        is_quiet: _,
    }),
    Request::StartCommand(StartCommand {
        kind: CommandKind::Program | CommandKind::FileServer,
        argv: _,
        environment: _,
        cwd: _,
        umask: _,
        rlimits: _,
        streams: _
    }),
    Request::Signal { command: _, signal: _ },
    Request::ResizeTerminal { command: _, size: _ },
    Request::Status,
    Request::End { signal: _, grace: _ },
    Request::Attach { command: _, from: _, role: AttachRole::Watch | AttachRole::Type },
    Request::Input { command: _, bytes: _ },
    Request::Detach { command: _ },
    Request::Inspect,
    Request::Extend { milliseconds: _ },
    Request::HoldProject,
    Request::WriteCheckpoints,
    Request::CloseInput { command: _ },
    Request::Claim(ClaimSandbox { name: _, is_temporary: _, traceparent: _, tracestate: _ }),
);
numbers!(
    response: Response,
    Response::Hello { version: _ },
    Response::Created { session: _ },
    Response::Starting { command: _ },
    Response::Done,
    Response::Status { commands: _ },
    Response::Refused(Refusal { kind: _, message: _ }),
    Response::Attached(Attached { command: _, cursor: _, is_typist: _, has_terminal: _ }),
    Response::Inspected(SessionStatus {
        age_ms: _,
        idle_ms: _,
        clients: _,
        questions: _,
        expires_in_ms: _,
        idle_expires_in_ms: _,
        is_ending: _,
        commands: _,
    }),
    Response::ProjectHeld,
);
numbers!(
    event: Event,
    Event::CommandStarted { command: _, pid: _ },
    Event::CommandFailed { command: _, exit_code: _, message: _ },
    Event::CommandExited { command: _, cause: _ },
    Event::CommandStopped { command: _, signal: _ },
    Event::QuestionAsked { question: _, text: _ },
    Event::QuestionAnswered { question: _, is_allowed: _, by: _ },
    Event::LimitReached { limit: _ },
    Event::Output { command: _, cursor: _, stream: _, bytes: _ },
    Event::Marked { text: _ },
    Event::Ended { exit_code: _, error: _ },
);
numbers!(
    resource: Resource,
    Resource::Core,
    Resource::FileSize,
    Resource::OpenFiles,
    Resource::Processes,
    Resource::CpuSeconds,
);
numbers!(
    refusal: RefusalKind,
    RefusalKind::Version,
    RefusalKind::Malformed,
    RefusalKind::OutOfOrder,
    RefusalKind::UnknownCommand,
    RefusalKind::TooManyCommands,
    RefusalKind::Failed,
);
numbers!(cause: ExitCause, ExitCause::Code(_), ExitCause::Signal(_));
numbers!(grace: Grace, Grace::OfSandbox, Grace::Milliseconds(_));
numbers!(environment: Environment, Environment::Extended(_), Environment::Exactly(_));
numbers!(
    streams: CommandStreams,
    CommandStreams::Descriptors,
    CommandStreams::Terminal(_),
    CommandStreams::Held(HeldStreams { terminal: _, has_input: _, has_stderr_apart: _, is_attached: _ }),
);
numbers!(stream: OutputStream, OutputStream::Stdout, OutputStream::Stderr);
numbers!(from: OutputStart, OutputStart::Kept, OutputStart::Byte(_), OutputStart::Now);

fn create(ask: AskPeople) -> CreateSandbox {
    CreateSandbox {
        settings: vec![Setting { key: "k".to_owned(), value: "1".to_owned() }],
        policy_files: vec!["/f".into()],
        tool: Some("t".to_owned()),
        ask,
        report: Some("/r".into()),
        is_quiet: true,
    }
}

fn start(streams: CommandStreams) -> StartCommand {
    StartCommand {
        kind: CommandKind::Program,
        argv: vec![b"a".into(), b"\xff".into()],
        environment: Environment::Extended(vec![(b"N".into(), b"v".into())]),
        cwd: None,
        umask: None,
        rlimits: Vec::new(),
        streams,
    }
}

fn requests() -> Vec<(Request, &'static str)> {
    let size = TerminalSize { rows: 1, columns: 2, pixel_width: 3, pixel_height: 300 };
    let rlimits = vec![
        (Resource::Core, 0),
        (Resource::FileSize, 1),
        (Resource::OpenFiles, 2),
        (Resource::Processes, 3),
        (Resource::CpuSeconds, 300),
    ];
    let whole = StartCommand {
        environment: Environment::Exactly(Vec::new()),
        cwd: Some("/c".into()),
        umask: Some(0o22),
        rlimits,
        ..start(CommandStreams::Terminal(size))
    };
    let command = CommandId(300);
    vec![
        (Request::Hello { version: VERSION }, "000a"),
        (Request::Create(CreateSandbox::default()), "01000000000000"),
        (Request::Create(create(AskPeople::Always)), "0101016b013101022f660101740101022f7201"),
        (Request::Create(create(AskPeople::Never)), "0101016b013101022f660101740201022f7201"),
        (
            Request::StartCommand(start(CommandStreams::Descriptors)),
            "020002016101ff0001014e017600000000",
        ),
        (
            Request::StartCommand(StartCommand {
                kind: CommandKind::FileServer,
                ..start(CommandStreams::Descriptors)
            }),
            "020102016101ff0001014e017600000000",
        ),
        (
            Request::StartCommand(whole),
            "020002016101ff010001022f63011205000001010202030304ac0201010203ac02",
        ),
        (
            Request::StartCommand(StartCommand {
                environment: Environment::Exactly(Vec::new()),
                ..start(CommandStreams::Held(HeldStreams {
                    terminal: Some(size),
                    has_input: false,
                    has_stderr_apart: false,
                    is_attached: true,
                }))
            }),
            "020002016101ff01000000000201010203ac02000001",
        ),
        (Request::Signal { command, signal: 15 }, "03ac021e"),
        (Request::ResizeTerminal { command, size }, "04ac02010203ac02"),
        (Request::Status, "05"),
        (Request::End { signal: 2, grace: Grace::OfSandbox }, "060400"),
        (Request::End { signal: 2, grace: Grace::Milliseconds(300) }, "060401ac02"),
        (attach(None, OutputStart::Kept, AttachRole::Watch), "07000000"),
        (attach(Some(command), OutputStart::Byte(300), AttachRole::Type), "0701ac0201ac0201"),
        (attach(None, OutputStart::Now, AttachRole::Watch), "07000200"),
        (Request::Input { command, bytes: b"a\xff".into() }, "08ac020261ff"),
        (Request::Detach { command }, "09ac02"),
        (Request::Inspect, "0a"),
        (Request::Extend { milliseconds: 300 }, "0bac02"),
        (Request::HoldProject, "0c"),
        (Request::WriteCheckpoints, "0d"),
        (Request::CloseInput { command }, "0eac02"),
        (Request::Claim(ClaimSandbox::default()), "0f00000000"),
        (
            claim("n"),
            "0f01016e01013730302d34626639326633353737623334646136613363653932396430653065343733362d303066303637616130626139303262372d30310103613d62",
        ),
    ]
}

fn attach(command: Option<CommandId>, from: OutputStart, role: AttachRole) -> Request {
    Request::Attach { command, from, role }
}

fn claim(name: &str) -> Request {
    let span = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    Request::Claim(ClaimSandbox {
        name: Some(name.to_owned()),
        is_temporary: true,
        traceparent: SpanContext::parse(span),
        tracestate: Some("a=b".to_owned()),
    })
}

fn inspected() -> SessionStatus {
    let held = HeldStatus { has_terminal: true, output_bytes: 300, watchers: 2, has_typist: true };
    let details = |command, pid, held| CommandDetails {
        command: CommandId(command),
        pid,
        text: "t".to_owned(),
        running_ms: 7,
        held,
    };
    SessionStatus {
        age_ms: 300,
        idle_ms: Some(5),
        clients: 2,
        questions: 3,
        expires_in_ms: Some(6),
        idle_expires_in_ms: None,
        is_ending: true,
        commands: vec![details(1, Some(10), Some(held)), details(2, None, None)],
    }
}

fn refused(kind: RefusalKind) -> Response {
    Response::Refused(Refusal { kind, message: "m".into() })
}

fn responses() -> Vec<(Response, &'static str)> {
    let commands = vec![
        CommandStatus { command: CommandId(1), pid: None },
        CommandStatus { command: CommandId(2), pid: Some(300) },
    ];
    vec![
        (Response::Hello { version: VERSION }, "00000a"),
        (Response::Created { session: "s".into() }, "00010173"),
        (Response::Starting { command: CommandId(300) }, "0002ac02"),
        (Response::Done, "0003"),
        (Response::Status { commands }, "00040201000201ac02"),
        (refused(RefusalKind::Version), "000500016d"),
        (refused(RefusalKind::Malformed), "000501016d"),
        (refused(RefusalKind::OutOfOrder), "000502016d"),
        (refused(RefusalKind::UnknownCommand), "000503016d"),
        (refused(RefusalKind::TooManyCommands), "000504016d"),
        (refused(RefusalKind::Failed), "000505016d"),
        (
            Response::Attached(Attached {
                command: CommandId(1),
                cursor: 300,
                is_typist: true,
                has_terminal: false,
            }),
            "000601ac020100",
        ),
        (
            Response::Inspected(inspected()),
            "0007ac0201050203010600010201010a0174070101ac020201020001740700",
        ),
        (Response::ProjectHeld, "0008"),
    ]
}

fn events() -> Vec<(Event, &'static str)> {
    let command = CommandId(1);
    vec![
        (Event::CommandStarted { command, pid: None }, "01000100"),
        (Event::CommandStarted { command, pid: Some(300) }, "01000101ac02"),
        (Event::CommandFailed { command, exit_code: 127, message: "m".into() }, "010101fe01016d"),
        (Event::CommandExited { command, cause: ExitCause::Code(3) }, "0102010006"),
        (Event::CommandExited { command, cause: ExitCause::Signal(9) }, "0102010112"),
        (Event::CommandStopped { command, signal: 19 }, "01030126"),
        (Event::QuestionAsked { question: 5, text: "t".into() }, "0104050174"),
        (Event::QuestionAnswered { question: 5, is_allowed: true, by: "b".into() }, "010505010162"),
        (Event::LimitReached { limit: "l".into() }, "0106016c"),
        (
            Event::Output { command, cursor: 0, stream: OutputStream::Stdout, bytes: b"a".into() },
            "01070100000161",
        ),
        (
            Event::Output {
                command,
                cursor: 300,
                stream: OutputStream::Stderr,
                bytes: b"a\xff".into(),
            },
            "010701ac02010261ff",
        ),
        (Event::Marked { text: "m".into() }, "0108016d"),
        (Event::Ended { exit_code: 0, error: None }, "01090000"),
        (Event::Ended { exit_code: -1, error: Some("e".into()) }, "010901010165"),
    ]
}

fn check<T: Debug, M: WireMessage>(
    samples: Vec<(T, &str)>,
    message: impl Fn(T) -> M,
) -> Vec<String> {
    let differs = |(sample, expected): (T, &str)| {
        let shown = format!("{sample:?}");
        let bytes = encode(&message(sample)).unwrap();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        (hex != expected).then(|| format!("{shown}: {hex}, not {expected}"))
    };
    samples.into_iter().filter_map(differs).collect()
}

#[test]
fn no_encoding_changes_without_the_version() {
    let mut differ = check(requests(), |request| request);
    differ.extend(check(responses(), FromSupervisor::Response));
    differ.extend(check(events(), FromSupervisor::Event));
    assert!(differ.is_empty(), "raise VERSION, then correct these: {differ:#?}");
    assert_eq!(VERSION, OF_VERSION, "these are the bytes of another version");
}

/// The number that is sent for a variant is the one it has in the lists above.
#[test]
fn every_variant_has_its_number_and_a_sample() {
    fn all<T>(samples: impl IntoIterator<Item = T>, number: impl Fn(&T) -> (usize, usize)) {
        let (mut seen, counts): (Vec<_>, Vec<_>) =
            samples.into_iter().map(|sample| number(&sample)).unzip();
        seen.dedup();
        assert_eq!(seen, (0..counts[0]).collect::<Vec<_>>());
    }
    all(requests().into_iter().map(|(sample, _)| sample), request);
    all(responses().into_iter().map(|(sample, _)| sample), response);
    all(events().into_iter().map(|(sample, _)| sample), event);
    let starts = || {
        requests().into_iter().filter_map(|(sample, _)| match sample {
            Request::StartCommand(start) => Some(start),
            _ => None,
        })
    };
    all(starts().flat_map(|start| start.rlimits).map(|(limited, _)| limited), resource);
    all(starts().map(|start| start.environment), environment);
    all(starts().map(|start| start.streams), streams);
    let written = events().into_iter().filter_map(|(sample, _)| match sample {
        Event::Output { stream, .. } => Some(stream),
        _ => None,
    });
    all(written, stream);
    let ends = requests().into_iter().filter_map(|(sample, _)| match sample {
        Request::End { grace, .. } => Some(grace),
        _ => None,
    });
    all(ends, grace);
    let attaches = requests().into_iter().filter_map(|(sample, _)| match sample {
        Request::Attach { from, .. } => Some(from),
        _ => None,
    });
    all(attaches, from);
    let refusals = responses().into_iter().filter_map(|(sample, _)| match sample {
        Response::Refused(refused) => Some(refused.kind),
        _ => None,
    });
    all(refusals, refusal);
    let causes = events().into_iter().filter_map(|(sample, _)| match sample {
        Event::CommandExited { cause, .. } => Some(cause),
        _ => None,
    });
    all(causes, cause);
}

#[test]
fn the_page_has_every_message() {
    let page = include_str!("../../../../docs/control.md");
    assert!(page.contains(&format!("Version {VERSION}.")));
    let requests = requests().into_iter().map(|(sample, _)| format!("{sample:?}"));
    let responses = responses().into_iter().map(|(sample, _)| format!("{sample:?}"));
    let events = events().into_iter().map(|(sample, _)| format!("{sample:?}"));
    for shown in requests.chain(responses).chain(events) {
        let name = shown.split(|c: char| !c.is_alphanumeric()).next().unwrap();
        assert!(page.contains(&format!("`{name}`")), "{name} is missing");
    }
}
