//! A server for one client of the Model Context Protocol, spoken to line by line, and one over HTTP.

use palisade_testkit::{Invocation, Output, Running, World};
use rustix::process::Signal;
use serde_json::{Value, json};

/// The client's side of `sandbox mcp` at its streams.
pub(crate) struct McpClient {
    pub(crate) running: Running,
    next: u64,
}

impl McpClient {
    /// As revision 2025-11-25 begins, with these capabilities of the client.
    pub(crate) fn start(world: &World, options: &[&str], capabilities: &Value) -> Self {
        Self::start_with(world, options, capabilities, |program| program)
    }

    /// The same for a program that something was changed about.
    pub(crate) fn start_with(
        world: &World,
        options: &[&str],
        capabilities: &Value,
        change: impl FnOnce(Invocation) -> Invocation,
    ) -> Self {
        let running = change(world.sandbox(["mcp"]).args(options)).keep_stdin_open().spawn();
        let mut client = Self::of(running);
        let who = json!({ "name": "test", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": who });
        let id = client.ask("initialize", &hello);
        client.running.wait_for_stdout(&answer_to(id));
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    /// Of a server that was told nothing yet.
    pub(crate) fn of(running: Running) -> Self {
        Self { running, next: 100 }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.running.send(format!("{message}\n").as_bytes());
    }

    /// Sends a request, and says its id.
    pub(crate) fn ask(&mut self, method: &str, parameters: &Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }));
        id
    }

    pub(crate) fn begin(&mut self, tool: &str, arguments: &Value) -> u64 {
        let meta = json!({ "progressToken": tool });
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments, "_meta": meta }))
    }

    /// Calls a tool, and waits for its answer, which is in what [`Self::end`] returns.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> u64 {
        let id = self.begin(tool, arguments);
        self.running.wait_for_stdout(&answer_to(id));
        id
    }

    /// The client goes, and what it was told.
    pub(crate) fn end(self) -> Told {
        let output = self.running.wait();
        output.assert_code(0);
        Told(output)
    }
}

fn answer_to(id: u64) -> String {
    format!("\"id\":{id},")
}

pub(crate) struct Told(pub(crate) Output);

impl Told {
    /// The message with this id.
    #[track_caller]
    pub(crate) fn message(&self, id: u64) -> Value {
        let out = self.0.out();
        let messages = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut found = messages.filter(|message| message["id"] == id);
        found.next().unwrap_or_else(|| panic!("no answer to {id}: {out}"))
    }

    /// What a tool did: its data.
    #[track_caller]
    pub(crate) fn data(&self, id: u64) -> Value {
        let message = self.message(id);
        assert_eq!(message["result"]["isError"], false, "{message}");
        message["result"]["structuredContent"].clone()
    }

    /// Why a tool did not do it.
    #[track_caller]
    pub(crate) fn error(&self, id: u64) -> String {
        let message = self.message(id);
        assert_eq!(message["result"]["isError"], true, "{message}");
        message["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

/// `sandbox mcp` at a TCP socket.
pub(crate) struct McpHttpServer {
    running: Running,
    pub(crate) url: String,
    pub(crate) token: String,
}

impl McpHttpServer {
    pub(crate) fn start(world: &World, options: &[&str]) -> Self {
        let running = world.sandbox(["mcp", "--listen", "tcp:127.0.0.1:0"]).args(options).spawn();
        running.wait_for_stderr("the token is in");
        let said = running.said();
        let url = said.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
        let token = world.home().join(".local/state/palisade/service/token");
        let token = std::fs::read_to_string(token).unwrap().trim().to_owned();
        Self { running, url: url.to_owned(), token }
    }

    #[track_caller]
    pub(crate) fn end(self) {
        self.running.signal(Signal::TERM);
        self.running.wait().assert_code(0);
    }
}

/// Whether nothing of a session is left in this world.
pub(crate) fn nothing_is_left(world: &World) -> bool {
    let sessions = world.home().join(".local/state/palisade/sessions");
    let names = std::fs::read_dir(sessions).into_iter().flatten().flatten();
    names.filter(|entry| entry.file_name().len() == 36).count() == 0
}
