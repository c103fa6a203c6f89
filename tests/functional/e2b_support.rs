//! A server that speaks E2B's API, and E2B's own packages as its clients.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;

use palisade_testkit::{Invocation, Running, World, node_packages, python_packages};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::service_support::{Answer, answer};
use crate::sessions_support::wait_until;

pub(crate) const STREAM: &str = "Content-Type: application/connect+json";

/// A message of a stream, as Connect RPC has it.
pub(crate) fn envelope(flags: u8, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[flags][..], &length, message].concat()
}

/// The headers of a request to a sandbox.
pub(crate) fn headers(id: &str, token: &str) -> [String; 2] {
    [format!("E2b-Sandbox-Id: {id}"), format!("X-Access-Token: {token}")]
}

/// Ended with the test; the sandboxes are not.
pub(crate) struct E2bServer<'a> {
    world: &'a World,
    running: Option<Running>,
    pub(crate) port: u16,
    change: Box<dyn Fn(Invocation) -> Invocation + 'a>,
}

impl<'a> E2bServer<'a> {
    pub(crate) fn start(world: &'a World) -> Self {
        Self::start_with(world, |program| program)
    }

    /// The same for a program that something was changed about.
    pub(crate) fn start_with(
        world: &'a World,
        change: impl Fn(Invocation) -> Invocation + 'a,
    ) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self { world, running: None, port, change: Box::new(change) };
        server.restart();
        server
    }

    pub(crate) fn restart(&mut self) {
        let listen = format!("tcp:127.0.0.1:{}", self.port);
        let program = self.world.sandbox(["serve", "--e2b", "--listen", &listen]);
        let running = (self.change)(program).spawn();
        running.wait_for_stderr("for E2B's packages");
        self.running = Some(running);
    }

    pub(crate) fn end(&mut self, signal: Signal) -> palisade_testkit::Output {
        let running = self.running.take().unwrap();
        running.signal(signal);
        running.wait()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.running.as_ref().unwrap().pid()
    }

    pub(crate) fn token(&self) -> String {
        let token = self.world.home().join(".local/state/palisade/service/token");
        fs::read_to_string(token).unwrap().trim().to_owned()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// With the variables that the server tells.
    fn client(&self, program: &str) -> Invocation {
        self.world
            .bare(program)
            .env("E2B_API_URL", self.url())
            .env("E2B_SANDBOX_URL", self.url())
            .env("E2B_API_KEY", self.token())
    }

    pub(crate) fn python(&self, script: &str, arguments: &[&str]) -> Invocation {
        let packages = python_packages("e2b");
        let script = self.world.write("client.py", script);
        let python = self.client("/usr/bin/python3").env("PYTHONPATH", packages);
        python.env("PYTHONDONTWRITEBYTECODE", "1").arg(script).args(arguments)
    }

    pub(crate) fn node(&self, script: &str) -> Invocation {
        let packages = node_packages("e2b");
        let script = self.world.write("client.mjs", script);
        self.client("node").env("NODE_PATH", packages).arg(script)
    }

    fn curl(&self, path: &str) -> Invocation {
        let curl = self.world.bare("curl").args(["-sS", "-m", "60"]);
        curl.arg(format!("{}{path}", self.url()))
    }

    /// A request with these headers and this body; without a body it is a GET.
    #[track_caller]
    pub(crate) fn ask(&self, path: &str, headers: &[&str], body: Option<&[u8]>) -> Answer {
        let curl = headers.iter().fold(self.curl(path), |curl, header| curl.args(["-H", header]));
        match body {
            None => answer(curl),
            Some(body) => answer(curl.args(["--data-binary", "@-"]).stdin(body)),
        }
    }

    /// To the REST API.
    #[track_caller]
    pub(crate) fn api(&self, path: &str, body: Option<&Value>) -> Answer {
        let key = format!("X-API-Key: {}", self.token());
        let body = body.map(|body| body.to_string().into_bytes());
        self.ask(path, &[&key, "Content-Type: application/json"], body.as_deref())
    }

    /// Makes a sandbox, and says its id and its token.
    #[track_caller]
    pub(crate) fn create(&self) -> (String, String) {
        let made = self.api("/v2/sandboxes", Some(&json!({ "templateID": "base" }))).expect(201);
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        (text("sandboxID"), text("envdAccessToken"))
    }

    /// Nothing is left of any sandbox.
    #[track_caller]
    pub(crate) fn expect_nothing_left(&self) {
        let home = self.world.home();
        let places = [
            home.join(".local/share/palisade/e2b"),
            home.join(".local/state/palisade/service/e2b"),
            home.join(".local/state/palisade/sessions"),
        ];
        let is_lock = |path: &PathBuf| path.ends_with("names.lock");
        for place in places {
            wait_until(&format!("nothing is left in {}", place.display()), || {
                let entries = fs::read_dir(&place).into_iter().flatten().flatten();
                entries.map(|entry| entry.path()).all(|path| is_lock(&path))
            });
        }
    }
}

impl Drop for E2bServer<'_> {
    fn drop(&mut self) {
        if self.running.is_some() {
            let _ = self.end(Signal::TERM);
        }
    }
}
