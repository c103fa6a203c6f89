//! Against a real message bus, with a stand-in for the service manager on it.

use super::*;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};

const UNIT: &str = "palisade-test.scope";
const JOB: &str = "/org/freedesktop/systemd1/job/41";

/// A bus of our own; ends with the test.
struct Bus {
    daemon: Child,
    directory: tempfile::TempDir,
}

impl Bus {
    /// None where dbus-daemon is not installed.
    fn start() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("bus.conf");
        let socket = directory.path().join("bus");
        std::fs::write(
            &config,
            format!(
                "<busconfig><type>session</type><listen>unix:path={}</listen><auth>EXTERNAL</auth>\
                 <policy context='default'><allow send_destination='*' eavesdrop='true'/>\
                 <allow eavesdrop='true'/><allow own='*'/></policy></busconfig>",
                socket.display()
            ),
        )
        .unwrap();
        let daemon = Command::new("dbus-daemon")
            .arg(format!("--config-file={}", config.display()))
            .args(["--nofork", "--nosyslog", "--nopidfile"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(daemon) = daemon else {
            println!("not tried here: dbus-daemon is not installed");
            return None;
        };
        crate::test_support::wait_until(|| UnixStream::connect(&socket).is_ok());
        Some(Self { daemon, directory })
    }

    fn connect(&self) -> Connection {
        let socket = SocketAddr::from_pathname(self.directory.path().join("bus")).unwrap();
        Connection::open(&socket, Instant::now() + Duration::from_secs(20)).unwrap()
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.daemon.kill().unwrap();
        self.daemon.wait().unwrap();
    }
}

fn call<'a>(member: &'a str, signature: &'a str, body: Writer) -> Call<'a> {
    Call { destination: BUS, path: BUS_PATH, interface: BUS, member, signature, body }
}

/// A service manager that has a name on the bus and answers one call.
fn manager(mut bus: Connection, answer: impl FnOnce(&Message) -> Vec<Message>) -> Message {
    let asked =
        bus.wait_for(|message| (message.kind == MessageKind::Call).then(|| message.clone()));
    let asked = asked.unwrap();
    for message in answer(&asked) {
        bus.send(&message.bytes()).unwrap();
    }
    asked
}

fn owner_of_the_name(bus: &Bus) -> Connection {
    let mut connection = bus.connect();
    connection.call(call("Hello", "", Writer::default())).unwrap();
    let mut body = Writer::default();
    body.string(SYSTEMD);
    body.u32(0);
    connection.call(call("RequestName", "su", body)).unwrap();
    connection
}

fn returned(asked: &Message) -> Message {
    let mut message = Message::new(MessageKind::Return, 100);
    message.destination.clone_from(&asked.sender);
    message.reply_to = Some(asked.serial);
    message.signature = "o".to_owned();
    let mut body = Writer::default();
    body.string(JOB);
    message.body = body.bytes;
    message
}

fn removed(job: &str, result: &str, serial: u32) -> Message {
    let mut message = Message::new(MessageKind::Signal, serial);
    message.path = Some(SYSTEMD_PATH.to_owned());
    message.interface = Some(MANAGER.to_owned());
    message.member = Some("JobRemoved".to_owned());
    message.signature = "uoss".to_owned();
    let mut body = Writer::default();
    body.u32(41);
    body.string(job);
    body.string(UNIT);
    body.string(result);
    message.body = body.bytes;
    message
}

/// What came in: name, mode, and the properties with their values.
fn check_request(asked: &Message) {
    assert_eq!(asked.member.as_deref(), Some("StartTransientUnit"));
    assert_eq!(asked.signature, "ssa(sv)a(sa(sv))");
    let mut body = Reader::new(&asked.body);
    assert_eq!(body.string().unwrap(), UNIT);
    assert_eq!(body.string().unwrap(), "fail");
    body.u32().unwrap();
    let mut names = Vec::new();
    for _ in 0..4 {
        body.align(8).unwrap();
        let name = body.string().unwrap();
        match body.signature().unwrap().as_str() {
            "s" => drop(body.string().unwrap()),
            "b" => assert_eq!(body.u32().unwrap(), 1),
            "au" => {
                assert_eq!(body.u32().unwrap(), 4);
                assert_eq!(body.u32().unwrap(), 4711);
            }
            other => panic!("{other}"),
        }
        names.push(name);
    }
    assert_eq!(names, ["Description", "PIDs", "Delegate", "CollectMode"]);
    assert_eq!(body.u32().unwrap(), 0, "no further units");
}

/// Asks while the stand-in answers.
fn conversation(
    answer: impl FnOnce(&Message) -> Vec<Message> + Send,
) -> Option<(Result<(), CgroupError>, Message)> {
    let bus = Bus::start()?;
    let owner = owner_of_the_name(&bus);
    let mut ours = bus.connect();
    std::thread::scope(|threads| {
        let manager = threads.spawn(move || manager(owner, answer));
        let asked = ask(&mut ours, UNIT, 4711);
        Some((asked, manager.join().unwrap()))
    })
}

/// Proves: RES-1 cgroup-v2
#[test]
fn a_scope_is_asked_for_and_waited_for() {
    let conversation = conversation(|asked| {
        vec![returned(asked), removed("/other", "failed", 101), removed(JOB, "done", 102)]
    });
    let Some((outcome, asked)) = conversation else { return };
    outcome.unwrap();
    check_request(&asked);
}

/// The signal may overtake the answer, and is not to be waited for again.
#[test]
fn a_job_that_is_over_before_the_answer_counts() {
    let conversation = conversation(|asked| vec![removed(JOB, "done", 101), returned(asked)]);
    if let Some((outcome, _)) = conversation {
        outcome.unwrap();
    }
}

#[test]
fn a_job_that_fails_and_a_refusal_are_told_as_they_are() {
    let failing = conversation(|asked| vec![returned(asked), removed(JOB, "canceled", 101)]);
    let Some((outcome, _)) = failing else { return };
    assert!(outcome.unwrap_err().to_string().contains("canceled"));
    let refusing = conversation(|asked| {
        let mut message = Message::new(MessageKind::Error, 100);
        message.destination.clone_from(&asked.sender);
        message.reply_to = Some(asked.serial);
        message.error = Some("org.freedesktop.systemd1.UnitExists".to_owned());
        message.signature = "s".to_owned();
        let mut body = Writer::default();
        body.string("it is there already");
        message.body = body.bytes;
        vec![message]
    });
    let error = refusing.unwrap().0.unwrap_err().to_string();
    assert!(error.contains("UnitExists: it is there already"), "{error}");
}

#[test]
fn nobody_of_that_name_on_the_bus_is_an_error_at_once() {
    let Some(bus) = Bus::start() else { return };
    let error = ask(&mut bus.connect(), UNIT, 1).unwrap_err().to_string();
    assert!(error.contains("StartTransientUnit") && error.contains("NameHasNoOwner"), "{error}");
}

/// A bus that says nothing, or says it byte by byte, does not hold up a run.
#[test]
fn a_silent_bus_is_waited_for_no_longer_than_the_deadline() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bus");
    let listener = UnixListener::bind(&path).unwrap();
    let socket = SocketAddr::from_pathname(&path).unwrap();
    let started = Instant::now();
    let error = Connection::open(&socket, started + Duration::from_millis(50)).unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(20));
    drop(listener);
}

/// Nobody accepts, and the queue is full: connecting itself waits.
#[test]
fn a_bus_with_a_full_queue_is_waited_for_no_longer_than_the_deadline() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bus");
    let listener = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let waiting = UnixStream::connect(&path).unwrap();
    let socket = SocketAddr::from_pathname(&path).unwrap();
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let deadline = Instant::now() + Duration::from_millis(100);
        done.send(Connection::open(&socket, deadline).map(drop)).unwrap();
    });
    let error = ended.recv_timeout(Duration::from_secs(20)).expect("it waits for ever");
    assert!(error.unwrap_err().to_string().contains("too long"));
    drop((waiting, listener));
}
