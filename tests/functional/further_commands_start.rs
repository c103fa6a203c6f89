//! The beginning of a conversation over the control interface, and clients that do it wrong or go meanwhile.

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};

use palisade_testkit::control::client::Client;
use palisade_testkit::control::interface::{
    CommandStreams, CreateSandbox, Event, ExitCause, RefusalKind, Request, Response, StartCommand,
    TerminalSize, VERSION,
};
use palisade_testkit::{Session, World, sandbox_program};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// A supervisor at this socket, before anything was said.
fn supervisor(world: &World, socket: impl Into<Stdio>) -> Child {
    let mut command = world.host_command(sandbox_program().as_os_str());
    command.args(["supervise", "--control-fd", "0"]);
    command.stdin(socket).stderr(Stdio::piped()).spawn().unwrap()
}

fn pair(flags: SocketFlags) -> (OwnedFd, OwnedFd) {
    let flags = flags | SocketFlags::CLOEXEC;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
}

fn create() -> Request {
    Request::Create(CreateSandbox { is_quiet: true, ..CreateSandbox::default() })
}

/// Its exit code, and what it said.
fn end_of(mut child: Child) -> (Option<i32>, String) {
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (child.wait().unwrap().code(), said)
}

/// Proves: LIFE-4 crash
#[test]
fn a_client_that_goes_while_its_sandbox_is_started_is_noticed_then() {
    let world = World::new();
    let (ours, theirs) = pair(SocketFlags::empty());
    let child = supervisor(&world, theirs);
    let mut client = Client::new(ours);
    let hello = client.ask(&Request::Hello { version: VERSION }, &[]).unwrap().0;
    assert_eq!(hello, Response::Hello { version: VERSION });
    client.send(&create(), &[]).unwrap();
    drop(client);
    let (code, said) = end_of(child);
    assert!(said.contains("the client closed its control socket"), "{said}");
    assert_eq!(code, Some(125));
}

/// Proves: LIFE-3 bad-input
#[test]
fn a_failed_handshake_is_told_by_the_last_event() {
    let world = World::new();
    let (ours, theirs) = pair(SocketFlags::empty());
    let child = supervisor(&world, theirs);
    let mut client = Client::new(ours);
    for _ in 0..16 {
        let refused = client.ask(&Request::Hello { version: VERSION + 1 }, &[]).unwrap().0;
        assert!(
            matches!(&refused, Response::Refused(refusal) if refusal.kind == RefusalKind::Version),
            "{refused:?}"
        );
    }
    let ended = client.next_event().unwrap();
    assert!(matches!(&ended, Event::Ended { exit_code: 125, error: Some(_) }), "{ended:?}");
    assert_eq!(end_of(child).0, Some(125));
}

/// Proves: LIFE-3 bad-input
#[test]
fn a_socket_that_does_not_block_is_as_good_as_any() {
    let world = World::new();
    let (ours, theirs) = pair(SocketFlags::NONBLOCK);
    rustix::fs::fcntl_setfl(&ours, rustix::fs::OFlags::empty()).unwrap();
    let child = supervisor(&world, theirs);
    // The supervisor is there first.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let mut client = Client::new(ours);
    client.ask(&Request::Hello { version: VERSION }, &[]).unwrap();
    let created = client.ask(&create(), &[]).unwrap().0;
    assert!(matches!(created, Response::Created { .. }), "{created:?}");
    drop(client);
    end_of(child);
}

/// Proves: LIFE-3 bad-input
#[test]
fn what_is_no_control_socket_is_refused_by_name() {
    let world = World::new();
    let (stream, _other) = UnixStream::pair().unwrap();
    for given in [Stdio::from(OwnedFd::from(stream)), Stdio::null()] {
        let (code, said) = end_of(supervisor(&world, given));
        assert!(said.contains("descriptor 0 is no control socket"), "{said}");
        assert_eq!(code, Some(125));
    }
}

/// What the C library's own start and /bin/true need.
const OF_EVERY_PROGRAM: [&str; 24] = [
    "access",
    "arch_prctl",
    "brk",
    "chdir",
    "execve",
    "exit_group",
    "faccessat",
    "faccessat2",
    "futex",
    "getrandom",
    "madvise",
    "mmap",
    "mprotect",
    "mremap",
    "munmap",
    "newfstatat",
    "openat",
    "pread64",
    "readlinkat",
    "rseq",
    "set_robust_list",
    "set_tid_address",
    "statx",
    "umask",
];

/// The plan names the first call that it misses in a filter. With those that it has named, and no others, a command starts.
///
/// Proves: PROC-1 reaping-init
#[test]
fn the_plan_knows_every_call_that_starting_a_command_needs() {
    let world = World::new();
    let mut calls: Vec<String> = OF_EVERY_PROGRAM.map(str::to_owned).into();
    let mut session = loop {
        let syscalls = serde_json::json!({ "mode": "WHITELIST", "syscalls": calls });
        let policy = serde_json::json!({ "syscalls": syscalls }).to_string();
        let file = world.write("listed.json", policy).display().to_string();
        match Session::try_start(&world, &["--policy", &file], &[]) {
            Ok(session) => break session,
            Err(why) => {
                let call = why.split("the system call filter refuses ").nth(1);
                let call = call.and_then(|rest| rest.split(',').next());
                let call = call.unwrap_or_else(|| panic!("{why}")).to_owned();
                assert!(!calls.contains(&call), "{why}");
                calls.push(call);
            }
        }
    };
    let (_, event) = session.run(Session::request(&["/bin/true"]));
    assert!(
        matches!(&event, Event::CommandExited { cause: ExitCause::Code(0), .. }),
        "{event:?} with {calls:?}"
    );
    let streams = CommandStreams::Terminal(TerminalSize::default());
    let start = StartCommand { streams, ..Session::request(&["/bin/true"]) };
    let (response, _terminal) = session.client.ask(&Request::StartCommand(start), &[]).unwrap();
    let Response::Starting { command } = response else { panic!("{response:?}") };
    let event = session.end_of(command);
    assert!(matches!(&event, Event::CommandExited { cause: ExitCause::Code(0), .. }), "{event:?}");
}
