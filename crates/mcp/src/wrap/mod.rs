//! Another server in a sandbox: its messages pass through here, and its tools are shown to the client only while they are what a person
//! trusts.

mod pins;

pub use pins::{PinFile, Pins, hash};

use crate::error::McpError;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// Of one message.
const MAX_MESSAGE: u64 = 16 << 20;
/// JSON-RPC leaves these to servers.
const NOT_TRUSTED: i32 = -32001;

#[derive(Clone, Debug)]
pub struct WrapOptions {
    /// What the server is called in the state directory.
    pub name: String,
    pub pins: PinFile,
    /// Trust whatever it says now.
    pub accept_changes: bool,
    /// Our own program's words: `run`, its options, and the server.
    pub words: Vec<OsString>,
}

/// What decides about messages.
struct Gatekeeper<'a> {
    options: &'a WrapOptions,
    state: Mutex<GateState>,
}

struct GateState {
    pins: Pins,
    /// Whether nothing was known of the server when it was started: then what it says first is pinned.
    is_first: bool,
    refused: BTreeSet<String>,
}

/// Runs the server until it or the client ends, and returns what it ended with.
pub fn wrap(options: &WrapOptions, note: &mut dyn FnMut(&str)) -> Result<Option<i32>, McpError> {
    let known = options.pins.read()?;
    let is_first = known.is_none();
    let state = GateState { pins: known.unwrap_or_default(), is_first, refused: BTreeSet::new() };
    let keeper = Gatekeeper { options, state: Mutex::new(state) };
    let wrong =
        |error: std::io::Error| McpError::Wrapped(format!("cannot run the server: {error}"));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(wrong)?;
    let done = runtime.block_on(talk(&keeper, note)).map_err(wrong);
    // A thread may still read standard input.
    runtime.shutdown_background();
    done
}

async fn talk(keeper: &Gatekeeper<'_>, note: &mut dyn FnMut(&str)) -> std::io::Result<Option<i32>> {
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut child = Command::new("/proc/self/exe")
        .args(&keeper.options.words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(std::io::Error::other("the server has no streams"));
    };
    let out = tokio::sync::Mutex::new(tokio::io::stdout());
    let requests = async {
        let mut to = to;
        let mut input = BufReader::new(tokio::io::stdin());
        while let Some(line) = next_line(&mut input).await? {
            match keeper.refusal(&line) {
                Some(answer) => send(&mut *out.lock().await, answer.to_string().as_bytes()).await?,
                None => send(&mut to, &line).await?,
            }
        }
        // Dropped here: the server sees that its client is gone.
        drop(to);
        std::future::pending::<std::io::Result<()>>().await
    };
    let responses = async {
        let mut output = BufReader::new(from);
        while let Some(line) = next_line(&mut output).await? {
            let (line, said) = keeper.shown(line);
            said.iter().for_each(|said| note(said));
            send(&mut *out.lock().await, &line).await?;
        }
        Ok::<_, std::io::Error>(())
    };
    let ended = tokio::select! {
        ended = requests => ended,
        ended = responses => ended,
        _ = terminated.recv() => Ok(()),
        _ = interrupted.recv() => Ok(()),
    };
    if let Some(pid) = child.id().and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed()))
    {
        // It may have ended already. Its sandbox ends everything in it.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    let status = child.wait().await?;
    ended.map(|()| status.code())
}

/// The next message without its line end. Too long a one is an error: a part of a message is none.
async fn next_line(
    from: &mut (impl tokio::io::AsyncBufRead + Unpin),
) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut limited = AsyncReadExt::take(&mut *from, MAX_MESSAGE + 1);
    limited.read_until(b'\n', &mut line).await?;
    if line.len() as u64 > MAX_MESSAGE {
        return Err(std::io::Error::other("a message is longer than 16 MiB"));
    }
    if line.is_empty() {
        return Ok(None);
    }
    line.pop_if(|last| *last == b'\n');
    Ok(Some(line))
}

async fn send(to: &mut (impl AsyncWrite + Unpin), line: &[u8]) -> std::io::Result<()> {
    to.write_all(line).await?;
    to.write_all(b"\n").await?;
    to.flush().await
}

impl Gatekeeper<'_> {
    fn state(&self) -> std::sync::MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer to a call of a tool that is not trusted, instead of the call.
    fn refusal(&self, line: &[u8]) -> Option<Value> {
        let message: Value = serde_json::from_slice(line).ok()?;
        let calls = match &message {
            Value::Array(all) => all.iter().collect(),
            one => vec![one],
        };
        let state = self.state();
        let refused = |call: &&Value| {
            let name = call["params"]["name"].as_str().unwrap_or_default();
            call["method"] == "tools/call" && state.refused.contains(name)
        };
        let call = calls.into_iter().find(refused)?;
        let text = format!(
            "the tool `{}` has changed; {}",
            call["params"]["name"].as_str()?,
            self.advice()
        );
        Some(error(&call["id"], &text))
    }

    fn advice(&self) -> String {
        let name = &self.options.name;
        format!(
            "a person has to look at it: `sandbox mcp trust {name}` shows what changed and asks"
        )
    }

    /// A message of the server as the client gets it, and what there is to say about it.
    fn shown(&self, line: Vec<u8>) -> (Vec<u8>, Option<String>) {
        let Ok(mut message) = serde_json::from_slice::<Value>(&line) else {
            // No message. A client leaves it out; passed on it could be read as something else.
            return (b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"error\",\"data\":\"the server wrote something that is no message\"}}".to_vec(), None);
        };
        let mut said = None;
        let mut has_tools = false;
        let mut check = |one: &mut Value| {
            let Some(tools) = one["result"]["tools"].as_array() else { return };
            has_tools = true;
            if let Err(text) = self.check(tools) {
                *one = error(&one["id"], &text);
                said = Some(text);
            }
        };
        match &mut message {
            Value::Array(all) => all.iter_mut().for_each(&mut check),
            one => check(one),
        }
        // Written anew: nothing that was not looked at, such as a second member of the same name, gets through.
        (if has_tools { message.to_string().into_bytes() } else { line }, said)
    }

    /// Whether these tools are what is trusted.
    fn check(&self, tools: &[Value]) -> Result<(), String> {
        let mut guard = self.state();
        let state = &mut *guard;
        let difference = state.pins.compare(tools)?;
        if difference.is_none() {
            return Ok(());
        }
        let may_pin = state.is_first || self.options.accept_changes;
        if may_pin {
            state.pins.trust();
        } else {
            state.refused.extend(difference.changed.iter().chain(&difference.new).cloned());
        }
        self.options.pins.write(&state.pins).map_err(|error| error.to_string())?;
        if may_pin {
            return Ok(());
        }
        let mut parts = Vec::new();
        for (names, word) in [(&difference.changed, "changed"), (&difference.new, "new")] {
            if !names.is_empty() {
                parts.push(format!("{word}: {}", crate::tools::lossy(names.join(", ").as_bytes())));
            }
        }
        let name = &self.options.name;
        Err(format!(
            "the tools of server {name} are not those that were trusted ({}); {}",
            parts.join("; "),
            self.advice()
        ))
    }
}

fn error(id: &Value, text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": NOT_TRUSTED, "message": text } })
}

#[cfg(test)]
mod tests {
    use super::{GateState, Gatekeeper, PinFile, Pins, WrapOptions};
    use serde_json::{Value, json};
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    fn listed(text: &str) -> Vec<u8> {
        json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [{ "name": "a", "description": text }] } })
            .to_string()
            .into_bytes()
    }

    #[test]
    fn tools_that_changed_are_neither_shown_nor_called() {
        let directory = tempfile::tempdir().unwrap();
        let pins = PinFile::of(directory.path(), "x").unwrap();
        let mut options =
            WrapOptions { name: "x".into(), pins, accept_changes: false, words: vec![] };
        let run = |options: &WrapOptions, text: &str| {
            let known = options.pins.read().unwrap();
            let is_first = known.is_none();
            let state =
                GateState { pins: known.unwrap_or_default(), is_first, refused: BTreeSet::new() };
            let keeper = Gatekeeper { options, state: Mutex::new(state) };
            let (line, _) = keeper.shown(listed(text));
            let call = json!({ "id": 2, "method": "tools/call", "params": { "name": "a" } });
            let refused = keeper.refusal(call.to_string().as_bytes()).is_some();
            (serde_json::from_slice::<Value>(&line).unwrap(), refused)
        };
        assert!(run(&options, "good").0["result"].is_object(), "the first time");
        assert!(run(&options, "good").0["result"].is_object());
        let (shown, refused) = run(&options, "evil");
        assert!(
            shown["error"]["message"].as_str().unwrap().contains("sandbox mcp trust x"),
            "{shown}"
        );
        assert!(refused && shown.get("result").is_none());
        options.accept_changes = true;
        assert!(run(&options, "evil").0["result"].is_object());
        options.accept_changes = false;
        assert!(run(&options, "evil").0["result"].is_object(), "trusted now");
        let kept: Pins = options.pins.read().unwrap().unwrap();
        assert!(kept.waiting.is_empty());
    }
}
