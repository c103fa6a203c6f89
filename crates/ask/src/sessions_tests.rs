use super::{SessionChange, Sessions, socket_directory, socket_path};
use crate::client::{Client, ClientError};
use crate::message::ServerEvent;
use crate::server::{ClientRequest, ConnectionId, Introduction, Peer, Server};
use crate::test_support::{MAX_OPEN, call};
use crate::{Answer, Asked, Lifetime, Now, QuestionId, Queue, Scope};
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// A session as simple as can be: it does everything it is asked to, one step at a time.
struct Host {
    queue: Queue,
    server: Server,
    listener: Option<UnixListener>,
    clients: Vec<(ConnectionId, UnixStream)>,
}

impl Host {
    fn new(session: &str) -> Self {
        let introduction = Introduction {
            session: session.to_owned(),
            command: "make".to_owned(),
            project: "/p".to_owned(),
        };
        Self {
            queue: Queue::new(session, MAX_OPEN),
            server: Server::new(introduction),
            listener: None,
            clients: Vec::new(),
        }
    }

    fn listen(directory: &Path, session: &str) -> Self {
        let listener = UnixListener::bind(socket_path(directory, session)).unwrap();
        listener.set_nonblocking(true).unwrap();
        Self { listener: Some(listener), ..Self::new(session) }
    }

    fn serve(&mut self, stream: UnixStream) {
        stream.set_nonblocking(true).unwrap();
        let id = self.server.connect(Peer { uid: 0, pid: 1 }, &self.queue).unwrap();
        self.clients.push((id, stream));
    }

    fn ask(&mut self, request: u64, path: &str) {
        match self.queue.ask(call(request, path), Now::read()) {
            Asked::New(id) | Asked::Joined(id) => self.server.asked(id),
            Asked::Full => panic!(),
        }
    }

    fn step(&mut self) {
        if let Some((stream, _)) = self.listener.as_ref().and_then(|it| it.accept().ok()) {
            self.serve(stream);
        }
        for (id, stream) in &mut self.clients {
            let mut chunk = [0; 4096];
            if let Ok(count) = stream.read(&mut chunk) {
                for received in self.server.received(*id, &chunk[..count]) {
                    let ClientRequest::Answer { id, answer } = received.request else { panic!() };
                    let now = Now::read();
                    let outcome = self.queue.answer(id, answer, &received.source, now);
                    for decided in outcome.iter().flatten() {
                        self.server.decided(decided);
                    }
                    self.server.reply(&received, outcome.map(drop));
                }
            }
        }
        for (id, stream) in &mut self.clients {
            while self.server.has_output(*id) {
                let count = stream.write(self.server.output(*id, &self.queue)).unwrap();
                self.server.wrote(*id, count);
            }
        }
    }
}

fn private_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).unwrap();
    directory
}

/// Lets the host work in a thread of its own while `visit` waits for it.
fn meanwhile<T>(host: &mut Host, visit: impl FnOnce() -> T) -> T {
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                host.step();
                std::thread::yield_now();
            }
        });
        let result = visit();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        result
    })
}

const SOON: Duration = Duration::from_secs(20);

/// Refreshes until something happens that is waited for.
fn until(sessions: &mut Sessions, mut wanted: impl FnMut(&SessionChange) -> bool) {
    let deadline = Instant::now() + SOON;
    while Instant::now() < deadline {
        if sessions.refresh().unwrap().iter().any(&mut wanted) {
            return;
        }
    }
    panic!("it did not happen");
}

/// Proves: GATE-6 socket, TOOL-2 socket
#[test]
fn a_client_over_a_socket_pair_answers() {
    let (here, there) = UnixStream::pair().unwrap();
    let mut host = Host::new("s");
    host.ask(1, "/opt/sdk/a");
    host.serve(there);
    let mut client = Client::new(here);
    meanwhile(&mut host, || {
        let deadline = Instant::now() + SOON;
        let Some(ServerEvent::Hello(hello)) = client.wait(deadline).unwrap() else { panic!() };
        assert_eq!((hello.session.as_str(), hello.open), ("s", 1));
        let Some(ServerEvent::FsRequest(question)) = client.wait(deadline).unwrap() else {
            panic!()
        };
        let answer = Answer::Allow { scope: Scope::File, lifetime: Lifetime::Once };
        client.send(&crate::message::ClientCommand::answering(question.id, answer)).unwrap();
        assert!(matches!(client.wait(deadline).unwrap(), Some(ServerEvent::Audit(_))));
        assert!(matches!(client.wait(deadline).unwrap(), Some(ServerEvent::Reply(_))));
        assert!(client.wait(Instant::now()).unwrap().is_none());
    });
    assert!(host.queue.is_empty());
    drop(host);
    assert!(matches!(client.next_event(), Err(ClientError::Gone)));
}

/// Proves: GATE-6 socket
#[test]
fn sessions_are_found_answered_and_lost() {
    let directory = private_directory();
    let mut sessions = Sessions::new(directory.path(), "test");
    assert!(sessions.refresh().unwrap().is_empty() && sessions.is_empty());
    let mut host = Host::listen(directory.path(), "one");
    host.ask(1, "/opt/sdk/a");
    host.ask(2, "/opt/sdk/b");
    meanwhile(&mut host, || {
        let changes = sessions.refresh_fully(SOON).unwrap();
        assert!(matches!(&changes[0], SessionChange::Appeared { session } if session == "one"));
        let (_, session) = sessions.iter().next().unwrap();
        assert_eq!(session.open().count(), 2);
        let answer = Answer::Allow { scope: Scope::Directory, lifetime: Lifetime::Session };
        sessions.answer("one", QuestionId(1), answer).unwrap();
        until(&mut sessions, |change| matches!(change, SessionChange::Done { .. }));
        assert_eq!(sessions.iter().next().unwrap().1.open().count(), 0, "both are answered");
        sessions.answer("one", QuestionId(1), answer).unwrap();
        until(
            &mut sessions,
            |change| matches!(change, SessionChange::Refused { refused, .. } if refused.code == "not_open"),
        );
    });
    drop(host);
    until(
        &mut sessions,
        |change| matches!(change, SessionChange::Vanished { session } if session == "one"),
    );
    // The socket is still there, and nobody behind it.
    assert!(socket_path(directory.path(), "one").exists());
    assert!(sessions.refresh().unwrap().is_empty() && sessions.is_empty());
}

/// A session that was stopped, as by Ctrl-Z, has its socket and does not answer; nobody waits for it.
#[test]
fn a_session_that_is_stopped_holds_up_nobody() {
    let directory = private_directory();
    let _stopped = UnixListener::bind(socket_path(directory.path(), "a-stopped")).unwrap();
    let mut host = Host::listen(directory.path(), "one");
    host.ask(1, "/opt/sdk/a");
    let mut sessions = Sessions::new(directory.path(), "test");
    let began = Instant::now();
    meanwhile(&mut host, || {
        until(&mut sessions, |change| matches!(change, SessionChange::Asked { .. }));
        assert_eq!(sessions.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["one"]);
        let changes = sessions.refresh_fully(Duration::from_millis(1)).unwrap();
        assert!(matches!(&changes[..],
            [SessionChange::Trouble { session, error: ClientError::Silent }] if session == "a-stopped"));
    });
    assert!(began.elapsed() < SOON);
}

/// One that talks nonsense is told once, and does not hide the other.
#[test]
fn a_session_that_makes_no_sense_is_left_alone() {
    let directory = private_directory();
    let nonsense = UnixListener::bind(socket_path(directory.path(), "nonsense")).unwrap();
    let mut host = Host::listen(directory.path(), "one");
    let mut sessions = Sessions::new(directory.path(), "test");
    let talker = std::thread::spawn(move || {
        let (mut stream, _) = nonsense.accept().unwrap();
        stream.write_all(b"SSH-2.0-OpenSSH\n").unwrap();
        (nonsense, stream)
    });
    meanwhile(&mut host, || {
        let changes = sessions.refresh_fully(SOON).unwrap();
        let troubles =
            changes.iter().filter(|change| matches!(change, SessionChange::Trouble { .. })).count();
        assert_eq!(troubles, 1, "{changes:?}");
        assert_eq!(sessions.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["one"]);
        assert!(sessions.refresh().unwrap().is_empty());
    });
    talker.join().unwrap();
}

#[test]
fn a_long_way_to_the_socket_is_no_obstacle() {
    let directory = private_directory();
    let deep = directory.path().join("d".repeat(150));
    fs::DirBuilder::new().mode(0o700).create(&deep).unwrap();
    let held = fs::File::open(&deep).unwrap();
    let listener =
        UnixListener::bind(format!("/proc/self/fd/{}/one.sock", held.as_raw_fd())).unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut host = Host { listener: Some(listener), ..Host::new("one") };
    let mut sessions = Sessions::new(&deep, "test");
    meanwhile(&mut host, || {
        until(&mut sessions, |change| matches!(change, SessionChange::Appeared { .. }));
    });
}

/// Proves: GATE-6 socket
#[test]
fn who_attends_is_seen_until_gone() {
    let parent = private_directory();
    let directory = parent.path().join("run/palisade");
    let is_attended = || {
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(directory.join(super::APPROVER_LOCK))
            .unwrap();
        let flags = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        rustix::fs::flock(&file, flags).is_err()
    };
    let mut first = Sessions::new(&directory, "first");
    let mut second = Sessions::new(&directory, "second");
    first.attend().unwrap();
    second.attend().unwrap();
    let mode = fs::metadata(&directory).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(is_attended());
    drop(first);
    assert!(is_attended());
    drop(second);
    assert!(!is_attended());
}

/// Proves: GATE-6 socket
#[test]
fn a_directory_that_others_can_write_is_not_believed() {
    let directory = private_directory();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).unwrap();
    let refused = Sessions::new(directory.path(), "test").refresh().unwrap_err();
    assert!(matches!(refused, ClientError::Directory { .. }), "{refused}");
    let missing = directory.path().join("missing");
    assert!(Sessions::new(&missing, "test").refresh().unwrap().is_empty());
}

#[test]
fn sockets_are_in_the_runtime_directory_if_it_is_the_users_own() {
    let state = Path::new("/home/eve/.local/state/palisade");
    let runtime = private_directory();
    let place = |runtime: Option<&Path>| socket_directory(runtime.map(Path::as_os_str), state);
    assert_eq!(place(Some(runtime.path())), runtime.path().join("palisade"));
    let missing = runtime.path().join("missing");
    for other in [None, Some(Path::new("relative")), Some(&missing)] {
        assert_eq!(place(other), state.join("run"), "{other:?}");
    }
    fs::set_permissions(runtime.path(), Permissions::from_mode(0o1777)).unwrap();
    assert_eq!(place(Some(runtime.path())), state.join("run"), "others can write to it");
    // Root's, whom nothing keeps from writing to any directory; to an ordinary user it is somebody else's.
    if !rustix::process::geteuid().is_root() {
        assert_eq!(place(Some(Path::new("/"))), state.join("run"), "it is somebody else's");
    }
}
