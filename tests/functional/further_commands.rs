//! Further commands in a running sandbox, over the control interface: each with its own streams or terminal, directory,
//! environment and end.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use palisade_testkit::control::interface::{
    CommandStreams, Environment, Event, Grace, RefusalKind, Request, Response, StartCommand,
    TerminalSize,
};
use palisade_testkit::{Session, World, am_root, is_alive};
use rustix::process::{Pid, Signal, kill_process};

fn shell(script: &str) -> StartCommand {
    Session::request(&["sh", "-c", script])
}

fn text_of(event: &Event) -> String {
    format!("{event:?}")
}

/// Proves: PROC-1 reaping-init
#[test]
fn each_command_has_its_own_directory_environment_umask_and_exit_code() {
    let world = World::new();
    fs::create_dir(world.project().join("below")).unwrap();
    let mut session = Session::start(&world, &["--env", "KNOWN=sandbox"]);
    let script = "pwd; echo $KNOWN $MORE; umask; exit 7";
    let (said, event) = session.run(shell(script));
    let project = world.project().display().to_string();
    assert!(said.starts_with(&format!("{project}\nsandbox\n")), "{said}");
    assert!(text_of(&event).contains("Code(7)"), "{event:?}");
    let start = StartCommand {
        cwd: Some(world.project().join("below")),
        environment: Environment::Extended(vec![(b"MORE".into(), b"this".into())]),
        umask: Some(0o027),
        ..shell(script)
    };
    let (said, _) = session.run(start);
    assert_eq!(said, format!("{project}/below\nsandbox this\n0027\n"));
    let exactly = Environment::Exactly(vec![(b"ONLY".into(), b"one".into())]);
    let start = StartCommand { environment: exactly, ..Session::request(&["/usr/bin/env"]) };
    assert_eq!(session.run(start).0, "ONLY=one\n");
}

/// Root gives every sandbox an id of its own, above all others.
fn without_own_ids(text: &str) -> Vec<String> {
    let is_own = |word: &str| word.len() == 10 && word.starts_with("19");
    let words = |line: &str| {
        let words = line.split(|c: char| !c.is_ascii_alphanumeric());
        words.map(|word| if is_own(word) { "OWN" } else { word }).collect::<Vec<_>>().join(" ")
    };
    // Mounts are numbered anew in every sandbox.
    let mut lines: Vec<_> = text.lines().map(words).collect();
    lines.sort();
    lines
}

/// What `sandbox run` and a further command find of their own walls.
///
/// Proves: PROC-6 no-new-privs
#[test]
fn a_further_command_has_the_walls_of_the_first() {
    let world = World::new();
    let script = "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp|Umask)' /proc/self/status; \
                  sort /proc/self/mountinfo | cut -d' ' -f4-; ls /proc/self/fd | wc -l; hostname; \
                  cat /proc/self/uid_map; ulimit -c; env | sort | grep -v SANDBOX_SESSION";
    let first = world.sandbox_run(["--quiet"], ["sh", "-c", script]).run();
    first.assert_code(0);
    let mut session = Session::start(&world, &[]);
    for _ in 0..2 {
        let (said, _) = session.run(shell(script));
        assert_eq!(without_own_ids(&said), without_own_ids(&first.out()));
    }
}

/// Proves: PROC-1 reaping-init
#[test]
fn a_command_that_cannot_be_started_says_why_and_the_sandbox_goes_on() {
    let world = World::new();
    let mut session = Session::start(&world, &[]);
    for (start, code) in [
        (Session::request(&["no-such-program"]), 127),
        (Session::request(&["/etc/passwd"]), 126),
        (StartCommand { cwd: Some("/no/such/directory".into()), ..shell("true") }, 125),
    ] {
        let (_, event) = session.run(start);
        assert!(
            matches!(event, Event::CommandFailed { exit_code, .. } if exit_code == code),
            "{code}: {event:?}"
        );
    }
    assert_eq!(session.code_of(&["true"]), Some(0));
}

/// Proves: PROC-1 reaping-init
#[test]
fn fifty_commands_run_one_after_another_and_fifty_at_once() {
    let world = World::new();
    let mut session = Session::start(&world, &[]);
    for number in 0..50 {
        assert_eq!(session.code_of(&["sh", "-c", &format!("exit {number}")]), Some(number));
    }
    let output = tempfile::tempfile().unwrap();
    let mut running = BTreeSet::new();
    for number in 0..50 {
        let start = shell(&format!("sleep 0.2; exit {}", number % 7));
        running.insert(session.start_command(start, &output));
    }
    let (Response::Status { commands }, _) = session.client.ask(&Request::Status, &[]).unwrap()
    else {
        panic!("no status")
    };
    assert!(!commands.is_empty());
    while !running.is_empty() {
        if let Event::CommandExited { command, .. } = session.client.next_event().unwrap() {
            assert!(running.remove(&command), "{command:?} ended twice");
        }
    }
}

/// Proves: LIFE-3 exit-code
#[test]
fn a_signal_reaches_the_group_of_one_command_only() {
    let world = World::new();
    let mut session = Session::start(&world, &[]);
    let output = tempfile::tempfile().unwrap();
    let one = session.start_command(shell("sleep 1000 | cat"), &output);
    let other = session.start_command(shell("sleep 1; exit 3"), &output);
    // Both lead a session by the time they run.
    let mut started = 0;
    while started < 2 {
        if let Event::CommandStarted { .. } = session.client.next_event().unwrap() {
            started += 1;
        }
    }
    let (done, _) = session.client.ask(&Request::Signal { command: one, signal: 15 }, &[]).unwrap();
    assert_eq!(done, Response::Done);
    let event = session.end_of(one);
    assert!(text_of(&event).contains("Signal(15)"), "{event:?}");
    let event = session.end_of(other);
    assert!(text_of(&event).contains("Code(3)"), "{event:?}");
    let gone = session.client.ask(&Request::Signal { command: one, signal: 15 }, &[]).unwrap().0;
    assert!(
        matches!(&gone, Response::Refused(refusal) if refusal.kind == RefusalKind::UnknownCommand),
        "{gone:?}"
    );
}

fn read_until(terminal: &mut fs::File, wanted: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut said = String::new();
    while !said.contains(wanted) {
        assert!(Instant::now() < deadline, "{said}");
        let mut buffer = [0; 1024];
        let Ok(count) = terminal.read(&mut buffer) else { break };
        said.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    said
}

/// Proves: PROC-3 pty
#[test]
fn a_command_can_have_a_terminal_of_its_own() {
    let world = World::new();
    let mut session = Session::start(&world, &[]);
    let size = TerminalSize { rows: 31, columns: 97, ..TerminalSize::default() };
    let start = StartCommand {
        streams: CommandStreams::Terminal(size),
        ..shell(
            "tty; stty size; test -O $(tty) && echo mine; echo > /dev/tty; read line; stty size; exit 4",
        )
    };
    let (response, master) = session.client.ask(&Request::StartCommand(start), &[]).unwrap();
    let Response::Starting { command } = response else { panic!("{response:?}") };
    let mut master = fs::File::from(master.unwrap());
    let said = read_until(&mut master, "mine");
    assert!(said.contains("/dev/pts/") && said.contains("31 97"), "{said}");
    let size = TerminalSize { rows: 20, columns: 40, ..TerminalSize::default() };
    let resize = Request::ResizeTerminal { command, size };
    assert_eq!(session.client.ask(&resize, &[]).unwrap().0, Response::Done);
    master.write_all(b"go\n").unwrap();
    let said = read_until(&mut master, "20 40");
    assert!(said.contains("20 40"), "{said}");
    assert!(text_of(&session.end_of(command)).contains("Code(4)"));
}

/// Proves: PROC-3 pty
#[test]
fn a_terminal_that_the_client_closes_is_hung_up() {
    let world = World::new();
    let mut session = Session::start(&world, &[]);
    let streams = CommandStreams::Terminal(TerminalSize::default());
    for (script, wanted) in [
        ("echo ready; sleep 1000", "Signal(1)"),
        ("trap '' HUP; echo ready; read line; exit 6", "Code(6)"),
    ] {
        let start = Request::StartCommand(StartCommand { streams, ..shell(script) });
        let (response, master) = session.client.ask(&start, &[]).unwrap();
        let Response::Starting { command } = response else { panic!("{response:?}") };
        let mut master = fs::File::from(master.unwrap());
        read_until(&mut master, "ready");
        drop(master);
        let event = session.end_of(command);
        assert!(text_of(&event).contains(wanted), "{script}: {event:?}");
    }
}

/// Its forks can be traced before their own exec: with the caller's session they would have its terminal and its process group.
///
/// Proves: PROC-5 supervisor-signals
#[test]
fn the_spawner_has_a_session_of_its_own() {
    let world = World::new();
    let session = Session::start(&world, &[]);
    let spawner = session.helper("sandbox-spawner");
    let stat = fs::read_to_string(format!("/proc/{spawner}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let own = spawner.to_string();
    assert_eq!(
        (fields[2], fields[3], fields[4]),
        (&*own, &*own, "0"),
        "group, session and terminal"
    );
}

/// Proves: LIFE-4 helper-death
#[test]
fn a_spawner_that_is_killed_fails_the_run() {
    let world = World::new();
    let mut session = Session::start(&world, &[]);
    let output = tempfile::tempfile().unwrap();
    session.start_command(shell("sleep 1000"), &output);
    let inside = session.processes_inside();
    let spawner = Pid::from_raw(i32::try_from(session.helper("sandbox-spawner")).unwrap()).unwrap();
    kill_process(spawner, Signal::KILL).unwrap();
    let ended = loop {
        if let Event::Ended { exit_code, error } = session.client.next_event().unwrap() {
            break (exit_code, error.unwrap_or_default());
        }
    };
    assert_eq!(ended.0, 125);
    assert!(ended.1.contains("the spawner went away"), "{ended:?}");
    session.wait();
    assert!(!inside.iter().any(|pid| is_alive(*pid)));
}

/// Proves: LIFE-4 crash
#[test]
fn a_client_that_goes_takes_the_sandbox_along() {
    let world = World::new();
    let mut session = Session::start(&world, &[]);
    let output = tempfile::tempfile().unwrap();
    session.start_command(shell("setsid sleep 1000"), &output);
    let inside = session.processes_inside();
    rustix::net::shutdown(session.client.socket(), rustix::net::Shutdown::Both).unwrap();
    session.wait();
    assert!(!inside.iter().any(|pid| is_alive(*pid)));
}

/// Proves: LIFE-3 bad-input
#[test]
fn what_is_no_request_is_refused_and_harms_nobody() {
    let world = World::new();
    let mut session = Session::start(&world, &[]);
    // A start without its streams.
    let start = Request::StartCommand(shell("true"));
    let refused = session.client.ask(&start, &[]).unwrap().0;
    assert!(
        matches!(&refused, Response::Refused(refusal) if refusal.kind == RefusalKind::Malformed),
        "{refused:?}"
    );
    let signal = Request::End { signal: 65, grace: Grace::OfSandbox };
    let refused = session.client.ask(&signal, &[]).unwrap().0;
    assert!(
        matches!(&refused, Response::Refused(refusal) if refusal.kind == RefusalKind::Malformed),
        "{refused:?}"
    );
    let frames = [&[0xff; 40][..], &[0], &[7, 7, 7], &[0x7f; 100_000]];
    for frame in frames {
        rustix::io::write(session.client.socket(), frame).unwrap();
    }
    // Each of them is answered before the request that came after it.
    for _ in frames {
        let refused = session.client.ask(&Request::Status, &[]).unwrap().0;
        assert!(
            matches!(&refused, Response::Refused(refusal) if refusal.kind == RefusalKind::Malformed),
            "{refused:?}"
        );
    }
    let answer = session.client.ask(&Request::Status, &[]).unwrap().0;
    assert!(matches!(answer, Response::Status { .. }), "{answer:?}");
}

/// A way to the host's tree, and one to what is typed at the client's terminal.
///
/// Proves: LIFE-3 bad-input
#[test]
fn a_stream_that_is_more_than_a_stream_starts_nothing() {
    let world = World::new();
    let mut session = Session::start(&world, &[]);
    let (directory, null) = (fs::File::open("/").unwrap(), fs::File::open("/dev/null").unwrap());
    let terminal = fs::File::open("/dev/ptmx").unwrap();
    for (given, why) in [(&directory, "is a directory"), (&terminal, "is a terminal")] {
        let start = Request::StartCommand(shell("ls /proc/self/fd/2/"));
        let streams = [null.as_fd(), null.as_fd(), given.as_fd()];
        let response = session.client.ask(&start, &streams).unwrap().0;
        let Response::Starting { command } = response else { panic!("{response:?}") };
        let event = session.end_of(command);
        let Event::CommandFailed { exit_code: 125, message, .. } = &event else {
            panic!("{event:?}")
        };
        assert!(message.contains(why), "{message}");
    }
}

/// Proves: PROC-7 no-userns
#[test]
fn without_a_pid_namespace_there_are_no_further_commands() {
    if am_root() {
        return;
    }
    let world = World::new();
    let refused = Session::try_start(&world, &["--level", "1", "--no-userns"], &[]);
    let why = refused.err().unwrap();
    assert!(why.contains("cannot run further commands"), "{why}");
}
