//! What the tests of the gate share: a run that asks, and a client that answers at its socket (GATE-6).
//! The client reads every event in its order and waits for what it names, never for a time.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use palisade_testkit::{Invocation, Running, World, patiently};
use serde_json::{Value, json};

use crate::inside::eventually;

const TIMEOUT: Duration = Duration::from_secs(30);
/// A run that has to wait for people and machines.
const LONG: Duration = Duration::from_secs(120);

/// `sandbox run --on-ask wait`, with a report.
pub(crate) fn asking(world: &World, flags: &[&str], command: &[&str]) -> Invocation {
    let flags = ["--on-ask", "wait"].iter().chain(flags);
    world.sandbox_run(flags, command).deadline(LONG)
}

/// A script run that way.
pub(crate) fn asking_script(world: &World, script: &str) -> Running {
    asking(world, &[], &["sh", "-c", script]).spawn()
}

/// A file that no view shows and the user could read, as text.
pub(crate) fn hidden(world: &World, name: &str) -> String {
    let path = Path::new("outside").join(name);
    world.write(path, format!("content of {name}\n")).to_string_lossy().into_owned()
}

pub(crate) fn socket_directory(world: &World) -> PathBuf {
    world.home().join(".local/state/palisade/run")
}

/// The socket of the one run there is, once it has something to ask.
pub(crate) fn socket(world: &World) -> PathBuf {
    let found = || {
        let entries = fs::read_dir(socket_directory(world)).ok()?;
        let mut paths = entries.flatten().map(|entry| entry.path());
        paths.find(|path| path.extension().is_some_and(|end| end == "sock"))
    };
    eventually("a socket", || found().is_some());
    found().unwrap()
}

/// Connects where the path may be longer than an address can be.
pub(crate) fn connect(socket: &Path) -> std::io::Result<UnixStream> {
    let directory = fs::File::open(socket.parent().unwrap())?;
    let name = socket.file_name().unwrap().to_string_lossy().into_owned();
    let address = format!("/proc/self/fd/{}/{name}", directory.as_raw_fd());
    // It has its name a moment before anybody listens.
    let is_early = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
    eventually("a session that listens", || {
        !UnixStream::connect(&address).is_err_and(|e| is_early(&e))
    });
    UnixStream::connect(&address)
}

/// One connection to a session.
pub(crate) struct Client {
    reader: BufReader<UnixStream>,
    /// Events that were read while something else was waited for.
    kept: VecDeque<Value>,
    requests: u64,
    seen: Vec<u64>,
}

impl Client {
    pub(crate) fn connect(world: &World) -> Self {
        let stream = connect(&socket(world)).unwrap();
        stream.set_read_timeout(Some(patiently(TIMEOUT))).unwrap();
        let reader = BufReader::new(stream);
        let mut client = Self { reader, kept: VecDeque::new(), requests: 0, seen: Vec::new() };
        assert_eq!(client.event("event.hello")["protocol"], 1);
        client
    }

    /// The next event, or none at the end of the session.
    pub(crate) fn next(&mut self) -> Option<Value> {
        self.kept.pop_front().or_else(|| self.read())
    }

    fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        // A session that has ended may have reset the connection.
        match self.reader.read_line(&mut line) {
            Ok(0) => None,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Ok(_) => Some(serde_json::from_str(&line).expect(&line)),
            Err(error) => panic!("the session said nothing in time: {error}"),
        }
    }

    /// The next event of this type; others are kept for later.
    #[track_caller]
    pub(crate) fn event(&mut self, kind: &str) -> Value {
        if let Some(index) = self.kept.iter().position(|event| event["type"] == kind) {
            return self.kept.remove(index).unwrap();
        }
        loop {
            match self.read() {
                Some(event) if event["type"] == kind => return event,
                Some(event) => self.kept.push_back(event),
                None => panic!("no {kind} came before the end: {:?}", self.kept),
            }
        }
    }

    /// The next question that was not asked before.
    #[track_caller]
    pub(crate) fn question(&mut self) -> Value {
        loop {
            let question = self.event("event.fs_request");
            let id = question["id"].as_u64().unwrap();
            if !self.seen.contains(&id) {
                self.seen.push(id);
                return question;
            }
        }
    }

    /// The next question, which must be about this path.
    #[track_caller]
    pub(crate) fn question_about(&mut self, path: &str) -> Value {
        let question = self.question();
        assert_eq!(question["path"], path, "{question}");
        question
    }

    pub(crate) fn send(&mut self, text: &[u8]) {
        // A session that hangs up is seen by what it says, or no longer says.
        let _ = self.reader.get_mut().write_all(text);
    }

    /// Sends a command and gives back its reply or error.
    #[track_caller]
    pub(crate) fn command(&mut self, mut command: Value) -> Value {
        self.requests += 1;
        let request = self.requests;
        command["request"] = json!(request);
        self.send(format!("{command}\n").as_bytes());
        loop {
            match self.read() {
                Some(event) if event["request"] == request => return event,
                Some(event) => self.kept.push_back(event),
                None => panic!("no reply to {command} came before the end"),
            }
        }
    }

    #[track_caller]
    fn obeyed(&mut self, command: Value) {
        let reply = self.command(command);
        assert_eq!(reply["type"], "event.reply", "{reply}");
    }

    #[track_caller]
    pub(crate) fn allow(&mut self, question: &Value, lifetime: &str) {
        self.obeyed(json!({"type": "cmd.approve", "id": question["id"], "lifetime": lifetime}));
    }

    #[track_caller]
    pub(crate) fn allow_directory(&mut self, question: &Value) {
        self.obeyed(json!({"type": "cmd.approve", "id": question["id"], "scope": "dir"}));
    }

    /// The directory with its programs, or a private copy.
    #[track_caller]
    pub(crate) fn allow_as(&mut self, question: &Value, scope: &str) {
        self.obeyed(json!({"type": "cmd.approve", "id": question["id"], "scope": scope}));
    }

    #[track_caller]
    pub(crate) fn deny(&mut self, question: &Value, lifetime: &str) {
        self.obeyed(json!({"type": "cmd.deny", "id": question["id"], "lifetime": lifetime}));
    }

    /// Answers every question in the same way until the session ends; gives back what was asked.
    pub(crate) fn answer_all(mut self, answer: &Value) -> Vec<Value> {
        let mut asked: Vec<Value> = Vec::new();
        while let Some(event) = self.next() {
            let is_known = |known: &Value| known["id"] == event["id"];
            if event["type"] == "event.fs_request" && !asked.iter().any(is_known) {
                let mut command = answer.clone();
                command["id"] = event["id"].clone();
                self.send(format!("{command}\n").as_bytes());
                asked.push(event);
            }
        }
        asked
    }
}

pub(crate) fn yes(lifetime: &str) -> Value {
    json!({"type": "cmd.approve", "lifetime": lifetime})
}

pub(crate) fn no(lifetime: &str) -> Value {
    json!({"type": "cmd.deny", "lifetime": lifetime})
}
