use super::*;
use crate::model::{SpanStatus, Value};
use palisade_record::{
    CommandDigest, Destroyed, ErrorKind, Executed, Failure, LimitExceeded, Run, State,
};
use std::path::PathBuf;

fn run() -> Run {
    Run {
        session_id: "s-1".to_owned(),
        worker_id: None,
        tool: "make".to_owned(),
        sandbox_level: "LEVEL_2".to_owned(),
        sandbox_mode: "dynamic".to_owned(),
        network_mode: "none".to_owned(),
        sandbox_root: PathBuf::from("/p"),
        command: CommandDigest::of(&["make", "test"]),
    }
}

fn tracer(is_session: bool, caller: Option<SpanContext>) -> Tracer {
    Tracer::new(TracerOptions {
        session: "s-1".to_owned(),
        caller,
        state: Some("a=b".to_owned()),
        is_session,
        shows_commands: false,
        began: crate::model::now(),
    })
}

fn event(kind: EventKind) -> Event {
    Event::new("s-1", State::Running, kind)
}

fn created() -> EventKind {
    EventKind::SandboxCreated(Box::new(Created {
        run: run(),
        pid: 1,
        uid: 2,
        working_directory: PathBuf::from("/p"),
    }))
}

fn exited(exit_code: i32) -> EventKind {
    EventKind::SandboxExited(Box::new(Exited {
        run: run(),
        outcome: Outcome::Completed,
        exit_code: Some(exit_code),
        signal: None,
        duration_ms: 5,
    }))
}

fn value(span: &Span, name: &str) -> Option<Value> {
    span.attributes.iter().find(|it| it.name == name).map(|it| it.value.clone())
}

fn caller() -> SpanContext {
    SpanContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap()
}

#[test]
fn a_run_is_a_tree_below_its_caller() {
    let mut tracer = tracer(false, Some(caller()));
    let mut spans = Vec::new();
    for kind in [
        created(),
        EventKind::SandboxExecuted(Executed { pid: None, setup_us: 3 }),
        EventKind::AccessDecided(Box::new(AccessDecided {
            path: "/home/me/secret".to_owned(),
            access: "read".to_owned(),
            decision: Decision::Denied,
            scope: "file".to_owned(),
            lifetime: "once".to_owned(),
            source: "terminal".to_owned(),
            rule: None,
            op: "openat".to_owned(),
            pids: vec![7],
            executable: "/bin/cat".to_owned(),
            question: Some(4),
            latency_us: 2_000_000,
        })),
        exited(2),
        EventKind::SandboxDestroyed(Destroyed { duration_ms: 9 }),
    ] {
        spans.extend(tracer.hear(&event(kind)));
    }
    let (run_context, command) = (tracer.context(), tracer.command_context());
    let root = tracer.finish(Outcome::Completed, crate::model::now());
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["plan", "launch", "question", "make"]);
    assert_eq!(root.parent, Some(*caller().span_id()));
    assert_eq!((root.id, root.state.as_str()), (*run_context.span_id(), "a=b"));
    assert!(spans.iter().all(|span| span.trace == *caller().trace_id()));
    let [plan, launch, question, make] = spans.as_slice() else { panic!("{spans:?}") };
    for child in [plan, launch, make] {
        assert_eq!(child.parent, Some(*run_context.span_id()), "{}", child.name);
    }
    assert_eq!(question.parent, Some(*command.span_id()), "the command waited for it");
    assert_eq!(make.id, *command.span_id());
    assert_eq!(plan.end, launch.start);
    assert_eq!(question.end - question.start, 2_000_000_000);
    assert_eq!(value(make, names::EXIT_CODE), Some(Value::Number(2)));
    assert_eq!(make.status, SpanStatus::Error("exit code 2".to_owned()));
    assert_eq!((make.kind, &root.status), (SpanKind::Client, &SpanStatus::Unset));
    let all = format!("{root:?} {spans:?}");
    for secret in ["/home/me/secret", "make test", "/bin/cat"] {
        assert!(!all.contains(secret), "{secret} in {all}");
    }
}

#[test]
fn command_lines_are_there_only_on_request() {
    let mut tracer = tracer(false, None);
    tracer.options.shows_commands = true;
    tracer.hear(&event(EventKind::SandboxExecuted(Executed { pid: None, setup_us: 3 })));
    let spans = tracer.hear(&event(exited(0)));
    assert_eq!(value(&spans[0], names::COMMAND_LINE), Some(Value::from("make test")));
}

#[test]
fn a_command_of_a_session_is_below_the_span_that_asked_for_it() {
    let mut tracer = tracer(true, None);
    let exec = |command, traceparent| {
        event(EventKind::SessionExec(Box::new(SessionExec {
            command,
            digest: CommandDigest::of(&["/usr/bin/npm", "test", "--token=x"]),
            pid: 77,
            traceparent,
        })))
    };
    let end = |command, failure: Option<&str>| {
        event(EventKind::SessionExecEnded(Box::new(SessionExecEnded {
            command,
            exit_code: failure.is_none().then_some(0),
            signal: None,
            failure: failure.map(str::to_owned),
            duration_ms: 3,
        })))
    };
    assert_eq!(tracer.hear(&exec(1, None)), []);
    tracer.hear(&exec(2, Some(caller())));
    let unsampled = SpanContext::parse(&caller().to_string().replace("-01", "-00")).unwrap();
    tracer.hear(&exec(3, Some(unsampled)));
    let second = tracer.hear(&end(2, None)).remove(0);
    let first = tracer.hear(&end(1, None)).remove(0);
    assert_eq!(tracer.hear(&end(3, None)), [], "its caller does not want it");
    let never_began = tracer.hear(&end(4, Some("no such file"))).remove(0);
    assert_eq!(first.parent, Some(*tracer.context().span_id()));
    assert_eq!((second.trace, second.parent), (*caller().trace_id(), Some(*caller().span_id())));
    assert_eq!(second.id, *caller().of_command("s-1", 2).span_id());
    assert_eq!((first.name.as_str(), value(&first, names::PID)), ("npm", Some(Value::Number(77))));
    assert!(first.end - first.start >= 3_000_000, "as long as the supervisor measured");
    assert_eq!(never_began.status, SpanStatus::Error("not started".to_owned()));
    let root = tracer.finish(Outcome::Killed, crate::model::now());
    assert_eq!((root.name.as_str(), root.status), ("session", SpanStatus::Unset));
}

#[test]
fn a_run_that_failed_says_so_without_its_message() {
    let mut tracer = tracer(false, None);
    tracer.hear(&event(created()));
    tracer.hear(&event(EventKind::ResourceLimitExceeded(LimitExceeded {
        resource: "resources.timeout".to_owned(),
        limit: 1,
        observed: None,
        holder: "timer".to_owned(),
    })));
    let failure = Failure {
        kind: ErrorKind::Timeout,
        message: "/home/me/secret".to_owned(),
        causes: Vec::new(),
    };
    tracer.hear(&event(EventKind::SandboxFailed(failure)));
    let root = tracer.finish(Outcome::Timeout, crate::model::now());
    assert_eq!(root.status, SpanStatus::Error("timeout".to_owned()));
    assert_eq!(value(&root, names::OUTCOME), Some(Value::from("timeout")));
    assert_eq!(root.events[0].name, "limit reached");
    assert!(!format!("{root:?}").contains("secret"));
}

#[test]
fn a_program_is_named_only_if_it_is_a_plain_name() {
    assert_eq!(program_of("/usr/bin/python3.12 -c x"), "python3.12");
    for other in ["", "'a b'", "/", "$(x)", &"x".repeat(65)] {
        assert_eq!(program_of(other), "command", "{other}");
    }
}
