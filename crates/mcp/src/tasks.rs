//! Long commands as tasks (extension `io.modelcontextprotocol/tasks`): the client gets a name for the call and looks at it later.

use crate::asking::Elicitation;
use crate::call::{CallEvent, RunningCall};
use crate::elicitation::{ElicitationMode, ElicitationModes};
use crate::questions::{answer_of, confirmation_form, is_confirmed, is_opened};
use crate::state::ServerState;
use palisade_service::random;
use rmcp::model::{
    DetailedTask, ElicitRequest, ElicitResult, InputRequest, InputRequests, InputResponses,
    JsonObject, Task, TaskPayload, TaskStatus,
};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// How long the result of a task is kept.
const KEPT: Duration = Duration::from_secs(3600);
const MAX_TASKS: usize = 256;
const POLL_INTERVAL_MS: u64 = 1000;
/// What the requests for input of a task are called.
const QUESTION: &str = "question-";
const PAGE: &str = "page-";
const CONFIRMATION: &str = "confirmation";

#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<HashMap<String, Record>>);

#[derive(Debug)]
struct Record {
    task: Task,
    state: RecordState,
    work: AbortHandle,
    modes: ElicitationModes,
    /// What the client was asked and did not answer yet: nothing else is answered by it.
    offered: BTreeSet<String>,
    /// What the person at the client has a page for.
    opened: BTreeSet<String>,
    since: Instant,
}

/// Why answers are not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadUpdate {
    UnknownTask,
    NotAsked,
}

#[derive(Debug)]
enum RecordState {
    Working,
    /// Until a person agrees or not.
    Confirming {
        message: String,
        answer: oneshot::Sender<bool>,
    },
    Completed(JsonObject),
    Cancelled,
}

/// Now, as the protocol writes it.
fn now() -> String {
    jiff::Timestamp::now().to_string()
}

impl Tasks {
    fn with<T>(&self, work: impl FnOnce(&mut HashMap<String, Record>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Goes on with a call as a task. None: there are too many, and the call is given up.
    pub(crate) fn begin(
        self: &Arc<Self>,
        mut call: RunningCall,
        modes: ElicitationModes,
    ) -> Option<Task> {
        let id = random::hex(16).ok()?;
        let is_full = self.with(|all| {
            all.retain(|_, it| {
                matches!(it.state, RecordState::Working) || it.since.elapsed() < KEPT
            });
            all.len() >= MAX_TASKS
        });
        if is_full {
            return None;
        }
        let time = now();
        let ttl = u64::try_from(KEPT.as_millis()).unwrap_or(u64::MAX);
        let task = Task::new(id.clone(), TaskStatus::Working, time.clone(), time)
            .with_ttl_ms(ttl)
            .with_poll_interval_ms(POLL_INTERVAL_MS);
        let (owner, name) = (Arc::clone(self), id.clone());
        let (registered, begin) = oneshot::channel::<()>();
        let work = tokio::spawn(async move {
            // Not before it is in the table.
            let _ = begin.await;
            loop {
                match call.next().await {
                    CallEvent::Done(result) => {
                        let result = serde_json::to_value(result).unwrap_or_default();
                        let Value::Object(result) = result else { return };
                        owner.set(&name, RecordState::Completed(result));
                        return;
                    }
                    // No tool that can be a task asks this; there is no page for it.
                    CallEvent::Confirm(_) if !modes.form => {}
                    CallEvent::Confirm(asked) => {
                        let (message, answer) = (asked.message, asked.answer);
                        owner.set(&name, RecordState::Confirming { message, answer });
                    }
                }
            }
        });
        let record = Record {
            task: task.clone(),
            state: RecordState::Working,
            work: work.abort_handle(),
            modes,
            offered: BTreeSet::new(),
            opened: BTreeSet::new(),
            since: Instant::now(),
        };
        self.with(|all| all.insert(id, record));
        // It waits for this, and does not go before.
        let _ = registered.send(());
        Some(task)
    }

    fn set(&self, id: &str, state: RecordState) {
        self.with(|all| {
            if let Some(record) = all.get_mut(id)
                && !matches!(record.state, RecordState::Cancelled)
            {
                record.state = state;
                record.task.last_updated_at = now();
            }
        });
    }

    /// How a task is.
    pub(crate) fn get(&self, server: &Arc<ServerState>, id: &str) -> Option<DetailedTask> {
        self.with(|all| {
            let record = all.get_mut(id)?;
            let payload = match &record.state {
                RecordState::Completed(result) => TaskPayload::Completed { result: result.clone() },
                RecordState::Cancelled => TaskPayload::Cancelled,
                RecordState::Confirming { message, .. } => {
                    let form = confirmation_form(message)?;
                    let request = InputRequest::Elicitation(ElicitRequest::new(form));
                    let input_requests = InputRequests::from([(CONFIRMATION.to_owned(), request)]);
                    TaskPayload::InputRequired { input_requests }
                }
                RecordState::Working => match questions(server, record) {
                    asked if asked.is_empty() => TaskPayload::Working,
                    input_requests => TaskPayload::InputRequired { input_requests },
                },
            };
            if let TaskPayload::InputRequired { input_requests } = &payload {
                record.offered.extend(input_requests.keys().cloned());
            }
            Some(DetailedTask::new(record.task.clone(), payload))
        })
    }

    /// A person's answers: all of them or, if one is to something that this task did not ask, none.
    pub(crate) async fn update(
        &self,
        server: &ServerState,
        id: &str,
        responses: &InputResponses,
    ) -> Result<(), BadUpdate> {
        let answers = self.take_answers(id, responses)?;
        for (question, result) in answers {
            server.decide(question, &answer_of(&result)).await;
        }
        Ok(())
    }

    /// Answers to questions of the sandbox are returned. One to a confirmation is given to the call.
    fn take_answers(
        &self,
        id: &str,
        responses: &InputResponses,
    ) -> Result<Vec<(u64, ElicitResult)>, BadUpdate> {
        self.with(|all| {
            let record = all.get_mut(id).ok_or(BadUpdate::UnknownTask)?;
            let is_open =
                matches!(record.state, RecordState::Working | RecordState::Confirming { .. });
            let is_offered = |key| record.offered.contains(key);
            if !(record.modes.any() && is_open && responses.keys().all(is_offered)) {
                return Err(BadUpdate::NotAsked);
            }
            let mut answers = Vec::new();
            for (key, response) in responses {
                let Ok(result) = serde_json::from_value::<ElicitResult>(response.clone()) else {
                    continue;
                };
                record.offered.remove(key);
                if key == CONFIRMATION {
                    let before = std::mem::replace(&mut record.state, RecordState::Working);
                    match before {
                        // Whoever waits for it may be gone.
                        RecordState::Confirming { answer, .. } => {
                            let _ = answer.send(is_confirmed(&result));
                        }
                        other => record.state = other,
                    }
                } else if key.starts_with(PAGE) && is_opened(&result) {
                    record.opened.insert(key.clone());
                } else if let Some(question) = question_of(key) {
                    answers.push((question, result));
                }
            }
            Ok(answers)
        })
    }

    /// Ends it. False: there is no such task.
    pub(crate) fn cancel(&self, id: &str) -> bool {
        self.with(|all| {
            let Some(record) = all.get_mut(id) else { return false };
            if !matches!(record.state, RecordState::Completed(_)) {
                record.work.abort();
                record.state = RecordState::Cancelled;
                record.task.last_updated_at = now();
            }
            true
        })
    }
}

/// What is open, as requests for input: by a form, or by a page that the person did not open yet.
fn questions(server: &Arc<ServerState>, record: &Record) -> InputRequests {
    let open = server.questions.open().into_iter();
    open.filter_map(|question| {
        let mode = record.modes.choose(question.is_secret)?;
        let prefix = if mode == ElicitationMode::Url { PAGE } else { QUESTION };
        let key = format!("{prefix}{}", question.id);
        if record.opened.contains(&key) {
            return None;
        }
        let asked = Elicitation::of(server, &question, mode)?;
        Some((key, InputRequest::Elicitation(ElicitRequest::new(asked.parameters))))
    })
    .collect()
}

/// The question that a request for input was about.
fn question_of(key: &str) -> Option<u64> {
    key.strip_prefix(QUESTION).or_else(|| key.strip_prefix(PAGE))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{BadUpdate, Record, RecordState, Tasks, now};
    use crate::elicitation::ElicitationModes;
    use rmcp::model::{InputResponses, Task, TaskStatus};
    use serde_json::json;
    use std::collections::BTreeSet;
    use std::time::Instant;

    #[test]
    fn only_what_was_asked_is_answered() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let work = runtime.spawn(async {}).abort_handle();
        let tasks = Tasks::default();
        let add = |id: &str, form| {
            let record = Record {
                task: Task::new(id.to_owned(), TaskStatus::Working, now(), now()),
                state: RecordState::Working,
                work: work.clone(),
                modes: ElicitationModes { form, url: false },
                offered: ["question-3".to_owned(), "page-4".to_owned(), "page-5".to_owned()].into(),
                opened: BTreeSet::new(),
                since: Instant::now(),
            };
            tasks.with(|all| all.insert(id.to_owned(), record));
        };
        add("asked", true);
        add("not there", false);
        let yes = json!({ "action": "accept", "content": { "answer": "once" } });
        let answer = |id: &str, keys: &[&str]| {
            let all = keys.iter().map(|key| ((*key).to_owned(), yes.clone()));
            let taken = tasks.take_answers(id, &all.collect::<InputResponses>());
            taken.map(|all| all.into_iter().map(|(question, _)| question).collect::<Vec<_>>())
        };
        assert_eq!(answer("no task", &["question-3"]), Err(BadUpdate::UnknownTask));
        assert_eq!(answer("not there", &["question-3"]), Err(BadUpdate::NotAsked));
        // Who agrees to open a page has not answered yet; who does not has.
        assert_eq!(answer("asked", &["page-4"]), Ok(vec![]));
        tasks.with(|all| assert!(all["asked"].opened.contains("page-4")));
        let no = InputResponses::from([("page-5".to_owned(), json!({ "action": "decline" }))]);
        assert_eq!(tasks.take_answers("asked", &no).unwrap()[0].0, 5);
        for keys in [&["question-4"][..], &["question-3", "question-4"], &["confirmation"]] {
            assert_eq!(answer("asked", keys), Err(BadUpdate::NotAsked), "{keys:?}");
        }
        assert_eq!(answer("asked", &["question-3"]), Ok(vec![3]));
        assert_eq!(answer("asked", &["question-3"]), Err(BadUpdate::NotAsked), "once");
    }
}
