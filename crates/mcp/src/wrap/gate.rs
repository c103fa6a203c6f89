//! What of a server's messages reaches the client, and which calls reach the server.

use super::options::WrapOptions;
use super::pins::{BadList, Pins};
use super::strict::{self, MESSAGE, TOOL_LIST};
use crate::error::McpError;
use crate::text::{listed, named};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// JSON-RPC leaves this to servers.
const NOT_TRUSTED: i32 = -32001;
const NO_MESSAGE: i32 = -32700;
/// Requests of the client without an answer.
const MAX_OPEN: usize = 4096;
/// What is said of wrong messages: the server can write as many as it likes.
const MAX_NOTES: usize = 100;

/// What decides about messages.
pub(super) struct Gatekeeper<'a> {
    options: &'a WrapOptions,
    state: Mutex<GateState>,
}

struct GateState {
    /// What waits in them is not called.
    pins: Pins,
    first: FirstList,
    /// What the client asked and the server did not answer yet, by the id as it is written.
    open: HashMap<String, Asked>,
    notes: usize,
}

enum Asked {
    /// For the tools from here on, or from the beginning.
    Tools(Option<String>),
    Other,
}

/// The list of tools that is trusted without a look.
enum FirstList {
    NotYet,
    /// Its next page is asked for with this cursor.
    GoesOn(String),
    Over,
}

/// What becomes of a message of the server.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// For the client.
    pub(super) line: Option<Vec<u8>>,
    pub(super) note: Option<String>,
    /// Why the server is not run any longer.
    pub(super) end: Option<String>,
}

impl<'a> Gatekeeper<'a> {
    pub(super) fn new(options: &'a WrapOptions) -> Result<Self, McpError> {
        let known = options.pins.read()?;
        let is_first = known.is_none() || options.accept_changes;
        let state = GateState {
            pins: known.unwrap_or_default(),
            first: if is_first { FirstList::NotYet } else { FirstList::Over },
            open: HashMap::new(),
            notes: 0,
        };
        Ok(Self { options, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn advice(&self) -> String {
        let name = &self.options.name;
        format!(
            "a person has to look at it: `sandbox mcp trust {name}` shows what changed and asks"
        )
    }

    /// A message of the client: remembers what it asks for. What is returned is answered instead of passing it on.
    pub(super) fn refusal(&self, line: &[u8]) -> Option<Value> {
        if line.trim_ascii().is_empty() {
            return None;
        }
        let Ok(message) = strict::parse(line) else {
            return Some(error(&Value::Null, NO_MESSAGE, "this is no message"));
        };
        let calls = match &message {
            Value::Array(all) => all.iter().collect(),
            one => vec![one],
        };
        let mut state = self.state();
        for call in &calls {
            let name = call["params"]["name"].as_str().unwrap_or_default();
            if call["method"] == "tools/call" && state.pins.waiting.contains_key(name) {
                let text = format!("the tool {} has changed; {}", named(name), self.advice());
                return Some(error(&call["id"], NOT_TRUSTED, &text));
            }
        }
        for call in calls {
            let Some(method) = call["method"].as_str() else { continue };
            if method == "notifications/cancelled" {
                state.open.remove(&call["params"]["requestId"].to_string());
            }
            if call["id"].is_null() {
                continue;
            }
            if state.open.len() >= MAX_OPEN {
                let text = "too many requests wait for an answer of the server";
                return Some(error(&call["id"], NOT_TRUSTED, text));
            }
            let cursor = || call["params"]["cursor"].as_str().map(str::to_owned);
            let asked = if method == "tools/list" { Asked::Tools(cursor()) } else { Asked::Other };
            state.open.insert(call["id"].to_string(), asked);
        }
        None
    }

    /// A message of the server as the client gets it: always written anew from what was looked at.
    pub(super) fn judge(&self, line: &[u8]) -> Judged {
        let mut judged = Judged::default();
        if line.trim_ascii().is_empty() {
            return judged;
        }
        let mut guard = self.state();
        let state = &mut *guard;
        let kept = match strict::parse(line) {
            Ok(Value::Array(all)) => {
                let one = |one| self.judge_one(state, one, &mut judged);
                let kept: Vec<Value> = all.into_iter().filter_map(one).collect();
                (!kept.is_empty()).then_some(Value::Array(kept))
            }
            Ok(one) => self.judge_one(state, one, &mut judged),
            Err(why) => {
                let text = format!("the server wrote something that is no message: {why}");
                judged.note = Some(text.clone());
                let params = json!({ "level": "error", "data": text });
                Some(
                    json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params }),
                )
            }
        };
        judged.line = kept.map(|message| message.to_string().into_bytes());
        if judged.note.is_some() {
            state.notes += 1;
            judged.note.take_if(|_| state.notes > MAX_NOTES);
        }
        judged
    }

    /// None: it is left out.
    fn judge_one(&self, state: &mut GateState, one: Value, judged: &mut Judged) -> Option<Value> {
        let Value::Object(members) = &one else {
            judged.note = Some("the server wrote something that is no message".to_owned());
            return None;
        };
        let has_lookalike = strict::has_lookalike(members, MESSAGE);
        if members.contains_key("method") {
            let is_answer = members.contains_key("result") || members.contains_key("error");
            if has_lookalike || is_answer {
                let text = "left out a message of the server that can be read in two ways";
                judged.note = Some(text.to_owned());
                return None;
            }
            return Some(one);
        }
        let Some(asked) = members.get("id").and_then(|id| state.open.remove(&id.to_string()))
        else {
            let text = "left out an answer of the server that nobody asked for";
            judged.note = Some(text.to_owned());
            return None;
        };
        let result = members.get("result");
        let result_has_lookalike = result
            .and_then(Value::as_object)
            .is_some_and(|result| strict::has_lookalike(result, TOOL_LIST));
        let checked = match (&asked, result) {
            _ if has_lookalike || result_has_lookalike => Err(BadList::Malformed(
                "the answer of the server can be read in two ways".to_owned(),
            )),
            (Asked::Tools(cursor), Some(result)) => self.check(state, cursor.as_deref(), result),
            (Asked::Other, Some(result)) if result.get("tools").is_some() => {
                let text = "the server answered with tools that nobody asked for".to_owned();
                Err(BadList::Malformed(text))
            }
            _ => Ok(()),
        };
        let text = match checked {
            Ok(()) => return Some(one),
            Err(BadList::Malformed(text)) => text,
            Err(BadList::TooMuch(text)) => {
                judged.end = Some(text.clone());
                text
            }
        };
        judged.note = Some(text.clone());
        Some(error(&one["id"], NOT_TRUSTED, &text))
    }

    /// Whether these tools are what is trusted. The first list is, with all its pages.
    fn check(
        &self,
        state: &mut GateState,
        cursor: Option<&str>,
        result: &Value,
    ) -> Result<(), BadList> {
        let Some(tools) = result["tools"].as_array() else {
            let text = "the server answered without a list of tools".to_owned();
            return Err(BadList::Malformed(text));
        };
        let may_pin = match (&state.first, cursor) {
            (FirstList::NotYet, None) => true,
            (FirstList::GoesOn(expected), Some(cursor)) => expected == cursor,
            _ => false,
        };
        let mut pins = state.pins.clone();
        let difference = pins.compare(tools)?;
        if may_pin {
            pins.trust_these(&difference);
        }
        // An empty list is written as well: the next time is not the first any more.
        if may_pin || pins != state.pins {
            let failed = |error: McpError| BadList::TooMuch(error.to_string());
            self.options.pins.write(&pins).map_err(failed)?;
            state.pins = pins;
        }
        match result["nextCursor"].as_str() {
            Some(next) if may_pin => state.first = FirstList::GoesOn(next.to_owned()),
            // A second list, or the end of the first.
            _ if may_pin || cursor.is_none() => state.first = FirstList::Over,
            _ => {}
        }
        if may_pin || difference.is_none() {
            return Ok(());
        }
        let mut parts = Vec::new();
        for (names, word) in [(&difference.changed, "changed"), (&difference.new, "new")] {
            if !names.is_empty() {
                let names: Vec<String> = names.iter().map(|name| named(name)).collect();
                parts.push(format!("{word}: {}", listed(&names)));
            }
        }
        let name = &self.options.name;
        Err(BadList::Malformed(format!(
            "the tools of server {name} are not those that were trusted ({}); {}",
            parts.join("; "),
            self.advice()
        )))
    }
}

fn error(id: &Value, code: i32, text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } })
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
