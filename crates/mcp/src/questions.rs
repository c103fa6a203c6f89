//! Questions of the sandbox that a person at the client is asked, and the answers that become of them. `sandbox approve` shows the same
//! ones: the first answer counts.

use crate::elicitation::{ElicitationMode, ElicitationModes};
use crate::text::{listed, named};
use palisade_record::escape;
use palisade_service::{ApprovalAnswer, Decision, Lifetime, Operations, Scope};
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tokio::sync::{OnceCell, watch};

/// Of why something is asked, in characters.
const MAX_REASON: usize = 300;

/// What a command waits for.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) id: u64,
    pub(crate) message: String,
    /// Never asked by a form.
    pub(crate) is_secret: bool,
}

/// Those of one sandbox that are open.
#[derive(Debug)]
pub(crate) struct Questions {
    watching: OnceCell<()>,
    open: watch::Sender<BTreeMap<u64, Question>>,
    /// Those that somebody was asked.
    asked: Mutex<BTreeSet<u64>>,
}

impl Default for Questions {
    fn default() -> Self {
        let (open, _) = watch::channel(BTreeMap::new());
        Self { watching: OnceCell::new(), open, asked: Mutex::default() }
    }
}

impl Questions {
    /// Begins to listen for questions of this sandbox, once.
    pub(crate) async fn watch(&self, operations: &Operations, sandbox: &str) {
        let begin = || async {
            let Ok(mut lines) = operations.follow_approvals() else { return };
            let (open, sandbox) = (self.open.clone(), sandbox.to_owned());
            tokio::spawn(async move {
                while let Ok(Some(line)) = lines.next().await {
                    let Ok(event) = serde_json::from_slice::<Value>(&line) else { continue };
                    if event["session"].as_str() == Some(&sandbox) {
                        open.send_if_modified(|open| take(open, &event));
                    }
                }
                // Nobody can say any more what is open.
                open.send_modify(BTreeMap::clear);
            });
        };
        self.watching.get_or_init(begin).await;
    }

    /// Waits for a question that nobody was asked yet and that can be asked in one of these modes, and takes it.
    pub(crate) async fn next(&self, modes: ElicitationModes) -> (Question, ElicitationMode) {
        let mut open = self.open.subscribe();
        loop {
            let found = {
                let open = open.borrow_and_update();
                let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
                let found = open.values().find_map(|question| {
                    let mode = modes.choose(question.is_secret)?;
                    (!asked.contains(&question.id)).then(|| (question.clone(), mode))
                });
                if let Some((question, _)) = &found {
                    asked.insert(question.id);
                }
                found
            };
            match found {
                Some(found) => return found,
                // The sender is ours: it does not go.
                None => drop(open.changed().await),
            }
        }
    }

    /// Somebody else may ask it again.
    pub(crate) fn put_back(&self, id: u64) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        self.open.send_modify(|_| {});
    }

    pub(crate) fn open(&self) -> Vec<Question> {
        self.open.borrow().values().cloned().collect()
    }

    pub(crate) fn is_open(&self, id: u64) -> bool {
        self.open.borrow().contains_key(&id)
    }

    /// Waits until this question is not open any more.
    pub(crate) async fn closed(&self, id: u64) {
        let mut open = self.open.subscribe();
        // The sender is ours: it does not go.
        let _ = open.wait_for(|open| !open.contains_key(&id)).await;
    }
}

/// Whether something changed.
fn take(open: &mut BTreeMap<u64, Question>, event: &Value) -> bool {
    let Some(id) = event["id"].as_u64() else { return false };
    match event["type"].as_str() {
        Some("event.fs_request" | "event.host_request") => {
            let is_secret = event["isSecret"].as_bool().unwrap_or(false);
            open.insert(id, Question { id, message: message(event), is_secret });
            true
        }
        Some("event.audit" | "event.withdrawn") => open.remove(&id).is_some(),
        _ => false,
    }
}

/// Text that a command chose.
fn shown(value: &Value) -> String {
    named(value.as_str().unwrap_or_default())
}

fn message(event: &Value) -> String {
    let program = match event["processes"][0]["exe"].as_str() {
        Some(program) if !program.is_empty() => named(program),
        _ => "A command".to_owned(),
    };
    let wanted = match event["host"].is_string() {
        true => format!("connect to {} port {}", shown(&event["host"]), event["port"]),
        false => wanted_of_file(event),
    };
    let reason = event["reason"].as_str().map(escape::text).unwrap_or_default();
    let reason: String = reason.chars().take(MAX_REASON).collect();
    format!("{program} in the sandbox wants to {wanted} ({reason}). Allow it?")
}

/// All that a yes is about.
fn wanted_of_file(event: &Value) -> String {
    let path = event["path"].as_str().unwrap_or_default();
    let act = match event["act"].as_str().unwrap_or("use") {
        "see" => "look at",
        "execute" => "run",
        "write" => "write to",
        "change" => "change the attributes of",
        act => act,
    };
    let mut text = match event["entry"].as_str() {
        // Which may be a whole path: then that is it.
        Some(entry) => {
            let entry = Path::new(path).join(entry);
            format!(
                "{act} {} in the directory {}, which becomes writable if it is allowed for the session",
                named(&entry.to_string_lossy()),
                named(path)
            )
        }
        None if event["isDirectory"] == true => format!("{act} the directory {}", named(path)),
        None => format!("{act} {}", named(path)),
    };
    if event["newPath"].is_string() {
        text.push_str(&format!("; the new name is {}", shown(&event["newPath"])));
    }
    if let Some(also) = event["also"].as_array().filter(|also| !also.is_empty()) {
        let also: Vec<String> = also.iter().map(shown).collect();
        text.push_str(&format!("; granted with it: {}", listed(&also)));
    }
    text
}

const ANSWER: &str = "answer";
const ONCE: &str = "once";
const SESSION: &str = "session";

/// A form with one choice of these: the value and what a person reads.
fn form(message: String, choices: &[(&str, &str)]) -> Option<ElicitRequestParams> {
    let one_of: Vec<Value> =
        choices.iter().map(|(value, title)| json!({ "const": value, "title": title })).collect();
    let schema = json!({
        "type": "object",
        "properties": { ANSWER: { "type": "string", "title": "Answer", "oneOf": one_of } },
        "required": [ANSWER],
    });
    let Value::Object(schema) = schema else { return None };
    let requested_schema = ElicitationSchema::from_json_schema(schema).ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// How a person at the client is asked about what a command waits for.
pub(crate) fn approval_form(question: &Question) -> Option<ElicitRequestParams> {
    let choices = [(ONCE, "Allow once"), (SESSION, "Allow for the session"), ("deny", "Deny")];
    form(question.message.clone(), &choices)
}

/// How a person is asked whether something may be done.
pub(crate) fn confirmation_form(message: &str) -> Option<ElicitRequestParams> {
    form(message.to_owned(), &[("yes", "Yes"), ("no", "No")])
}

fn chosen(result: &ElicitResult) -> Option<&str> {
    match result.action {
        ElicitationAction::Accept => result.content.as_ref()?.get(ANSWER)?.as_str(),
        _ => None,
    }
}

pub(crate) fn is_confirmed(result: &ElicitResult) -> bool {
    chosen(result) == Some("yes")
}

/// What a person chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Once,
    Session,
}

impl Choice {
    pub(crate) fn of(value: &str) -> Option<Self> {
        match value {
            ONCE => Some(Self::Once),
            SESSION => Some(Self::Session),
            _ => None,
        }
    }

    /// The answer to a question. None: a no for the session.
    pub(crate) fn answer(choice: Option<Self>, may_use_secret: bool) -> ApprovalAnswer {
        let (decision, lifetime) = match choice {
            Some(Self::Once) => (Decision::Allow, Lifetime::Once),
            Some(Self::Session) => (Decision::Allow, Lifetime::Session),
            None => (Decision::Deny, Lifetime::Session),
        };
        let secret = may_use_secret && decision == Decision::Allow;
        ApprovalAnswer {
            decision,
            lifetime: Some(lifetime),
            scope: Scope::File,
            secret,
            store: None,
        }
    }
}

/// What a person's answer means. Whatever is no clear yes is a no; who only closed the form is asked again the next time.
pub(crate) fn answer_of(result: &ElicitResult) -> ApprovalAnswer {
    let choice = chosen(result).and_then(Choice::of);
    let lifetime = match (choice, &result.action) {
        (None, ElicitationAction::Cancel) => Some(Lifetime::Once),
        _ => None,
    };
    let answer = Choice::answer(choice, false);
    ApprovalAnswer { lifetime: lifetime.or(answer.lifetime), ..answer }
}

/// Whether the person agreed to open a page. What it says then is answered there.
pub(crate) fn is_opened(result: &ElicitResult) -> bool {
    result.action == ElicitationAction::Accept
}

#[cfg(test)]
mod tests {
    use super::{Question, answer_of, approval_form, is_confirmed, message, take};
    use palisade_service::{Decision, Lifetime};
    use rmcp::model::ElicitResult;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[test]
    fn questions_come_and_go_and_cannot_write_lines_of_their_own() {
        let mut open = BTreeMap::new();
        let asked = json!({ "type": "event.fs_request", "id": 3, "path": "/x\nAllow it? yes\u{1b}[2J", "act": "read",
            "reason": "no rule", "isSecret": false, "processes": [{ "exe": "/bin/cat" }] });
        assert!(take(&mut open, &asked));
        let question: &Question = &open[&3];
        assert!(!question.message.contains(['\n', '\u{1b}']), "{}", question.message);
        assert!(question.message.starts_with(r"/bin/cat in the sandbox wants to read '/x\nAllow"));
        let form = serde_json::to_value(approval_form(question).unwrap()).unwrap();
        assert_eq!(form["mode"], "form");
        assert!(take(&mut open, &json!({ "type": "event.audit", "id": 3 })));
        assert!(open.is_empty());
    }

    #[test]
    fn the_whole_subject_is_asked_about() {
        let event = |entry: &str| {
            json!({ "act": "rename", "path": "/p/a", "isDirectory": true, "entry": entry, "newPath": "a/ev\u{202e}il",
                "also": ["/p/with it"], "reason": "not granted" })
        };
        for entry in ["notes", "/p/a/notes"] {
            let asked = message(&event(entry));
            for part in
                ["rename /p/a/notes in the directory /p/a,", r"'a/ev\u{202e}il'", "'/p/with it'"]
            {
                assert!(asked.contains(part), "{part}: {asked}");
            }
        }
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        let of = |result| answer_of(&serde_json::from_value::<ElicitResult>(result).unwrap());
        let once = of(json!({ "action": "accept", "content": { "answer": "once" } }));
        assert_eq!(once.decision, Decision::Allow);
        assert!(matches!(once.lifetime, Some(Lifetime::Once)));
        for no in [
            json!({ "action": "decline" }),
            json!({ "action": "cancel" }),
            json!({ "action": "accept" }),
            json!({ "action": "accept", "content": { "answer": "deny" } }),
            json!({ "action": "decline", "content": { "answer": "once" } }),
        ] {
            assert_eq!(of(no).decision, Decision::Deny);
        }
        let confirmed = |result| is_confirmed(&serde_json::from_value(result).unwrap());
        assert!(confirmed(json!({ "action": "accept", "content": { "answer": "yes" } })));
        assert!(!confirmed(json!({ "action": "accept", "content": { "answer": "no" } })));
    }
}
