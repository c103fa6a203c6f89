//! A server for one test, and requests to it by curl, as anybody would make them.

use std::path::{Path, PathBuf};

use palisade_testkit::{Invocation, Running, World};
use rustix::process::Signal;
use serde_json::Value;

/// Ended with the test; the sandboxes are not.
pub(crate) struct Server<'a> {
    world: &'a World,
    running: Option<Running>,
    socket: PathBuf,
}

/// What a request was answered with.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) body: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// A clear refusal, as RFC 9457 has it.
    #[track_caller]
    pub(crate) fn expect_problem(&self, status: u16, kind: &str) -> String {
        assert_eq!(self.status, status, "{}", self.body);
        assert_eq!(self.content_type, "application/problem+json", "{}", self.body);
        let problem = self.json();
        assert_eq!((&problem["status"], &problem["kind"]), (&status.into(), &kind.into()));
        assert!(problem["type"].as_str().unwrap().starts_with("urn:palisade:problem:"));
        problem["detail"].as_str().unwrap().to_owned()
    }
}

impl<'a> Server<'a> {
    /// At a socket of its own.
    pub(crate) fn start(world: &'a World, arguments: &[&str]) -> Self {
        Self::start_in(world, world.path(), arguments)
    }

    /// With its socket in this directory.
    pub(crate) fn start_in(world: &'a World, directory: &Path, arguments: &[&str]) -> Self {
        Self::start_program(world, directory, arguments, |program| program)
    }

    /// With more about the program, such as variables.
    pub(crate) fn start_with(
        world: &'a World,
        arguments: &[&str],
        with: impl FnOnce(Invocation) -> Invocation,
    ) -> Self {
        Self::start_program(world, world.path(), arguments, with)
    }

    fn start_program(
        world: &'a World,
        directory: &Path,
        arguments: &[&str],
        with: impl FnOnce(Invocation) -> Invocation,
    ) -> Self {
        let socket = directory.join("http.sock");
        let listen = format!("unix:{}", socket.display());
        let program = world.sandbox(["serve", "--listen", &listen]).args(arguments);
        let running = with(program).spawn();
        running.wait_for_stderr("listening at");
        Self { world, running: Some(running), socket }
    }

    /// The same server again, after it was ended.
    pub(crate) fn restart(&mut self) {
        let socket = format!("unix:{}", self.socket.display());
        let running = self.world.sandbox(["serve", "--listen", &socket]).spawn();
        running.wait_for_stderr("listening at");
        self.running = Some(running);
    }

    /// Ends it, and says how.
    pub(crate) fn end(&mut self, signal: Signal) -> palisade_testkit::Output {
        let running = self.running.take().unwrap();
        running.signal(signal);
        running.wait()
    }

    /// Waits for its end, which somebody else asked for.
    pub(crate) fn finish(&mut self) -> palisade_testkit::Output {
        self.running.take().unwrap().wait()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.running.as_ref().unwrap().pid()
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// `path` without the name of a host.
    pub(crate) fn curl(&self, path: &str) -> Invocation {
        let curl = self.world.bare("curl").args(["-sS", "-m", "100", "--unix-socket"]);
        curl.arg(&self.socket).arg(format!("http://localhost{path}"))
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        answer(self.curl(path))
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_with(path, body, &[])
    }

    #[track_caller]
    pub(crate) fn post_with(&self, path: &str, body: &Value, headers: &[&str]) -> Answer {
        let curl = self.curl(path).args(["-H", "Content-Type: application/json", "-d", "@-"]);
        let curl = headers.iter().fold(curl, |curl, header| curl.args(["-H", header]));
        answer(curl.stdin(body.to_string()))
    }

    #[track_caller]
    pub(crate) fn delete(&self, path: &str) -> Answer {
        answer(self.curl(path).args(["-X", "DELETE"]))
    }

    /// Makes a sandbox, and says its id.
    #[track_caller]
    pub(crate) fn create(&self, body: &Value) -> String {
        let made = self.post("/v1/sandboxes", body).expect(201);
        made["id"].as_str().unwrap().to_owned()
    }

    /// What a command that is waited for was answered with.
    #[track_caller]
    pub(crate) fn run(&self, sandbox: &str, argv: &[&str]) -> Value {
        let body = serde_json::json!({ "argv": argv, "wait": true });
        self.post(&format!("/v1/sandboxes/{sandbox}/commands"), &body).expect(200)
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        if self.running.is_some() {
            let _ = self.end(Signal::TERM);
        }
    }
}

/// Runs curl, which has to be answered.
#[track_caller]
pub(crate) fn answer(curl: Invocation) -> Answer {
    let output = curl.args(["-w", "\n%{http_code} %{content_type}"]).run();
    output.assert_code(0);
    let said = output.out();
    let (body, told) = said.rsplit_once('\n').unwrap();
    let (status, content_type) = told.split_once(' ').unwrap();
    Answer {
        status: status.parse().unwrap(),
        content_type: content_type.to_owned(),
        body: body.to_owned(),
    }
}

/// The events of a stream: their names and data.
pub(crate) fn events(stream: &str) -> Vec<(String, Value)> {
    let field = |event: &str, name: &str| {
        event.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
    };
    stream
        .split("\n\n")
        .filter_map(|event| {
            let data = serde_json::from_str(&field(event, "data:")?).unwrap();
            Some((field(event, "event:")?, data))
        })
        .collect()
}

/// What the `output` events say together.
pub(crate) fn written(stream: &str) -> String {
    let parts = events(stream).into_iter().filter(|(name, _)| name == "output");
    parts.map(|(_, data)| data["data"].as_str().unwrap().to_owned()).collect()
}
