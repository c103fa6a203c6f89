//! Long commands as tasks (extension `io.modelcontextprotocol/tasks`): the client gets a name for the call and looks at it later.

use crate::call::{CallEvent, RunningCall};
use crate::questions::{answer_of, approval_form, confirmation_form, is_confirmed};
use crate::random;
use crate::state::ServerState;
use rmcp::model::{
    DetailedTask, ElicitRequest, ElicitResult, InputRequest, InputRequests, InputResponses,
    JsonObject, Task, TaskPayload, TaskStatus,
};
use serde_json::Value;
use std::collections::HashMap;
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
const CONFIRMATION: &str = "confirmation";

#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<HashMap<String, Record>>);

#[derive(Debug)]
struct Record {
    task: Task,
    state: RecordState,
    work: AbortHandle,
    can_ask: bool,
    since: Instant,
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
        server: &Arc<ServerState>,
        mut call: RunningCall,
        can_ask: bool,
    ) -> Option<Task> {
        let id = random::hex(16).ok()?;
        let tasks = &server.tasks;
        let is_full = tasks.with(|all| {
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
        let (owner, name) = (Arc::clone(server), id.clone());
        let (registered, begin) = oneshot::channel::<()>();
        let work = tokio::spawn(async move {
            // Not before it is in the table.
            let _ = begin.await;
            loop {
                match call.next().await {
                    CallEvent::Done(result) => {
                        let result = serde_json::to_value(result).unwrap_or_default();
                        let Value::Object(result) = result else { return };
                        owner.tasks.set(&name, RecordState::Completed(result));
                        return;
                    }
                    CallEvent::Confirm(asked) => {
                        let (message, answer) = (asked.message, asked.answer);
                        owner.tasks.set(&name, RecordState::Confirming { message, answer });
                    }
                }
            }
        });
        let record = Record {
            task: task.clone(),
            state: RecordState::Working,
            work: work.abort_handle(),
            can_ask,
            since: Instant::now(),
        };
        tasks.with(|all| all.insert(id, record));
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
    pub(crate) fn get(server: &ServerState, id: &str) -> Option<DetailedTask> {
        server.tasks.with(|all| {
            let record = all.get(id)?;
            let payload = match &record.state {
                RecordState::Completed(result) => TaskPayload::Completed { result: result.clone() },
                RecordState::Cancelled => TaskPayload::Cancelled,
                RecordState::Confirming { message, .. } => {
                    let form = confirmation_form(message)?;
                    let request = InputRequest::Elicitation(ElicitRequest::new(form));
                    let input_requests = InputRequests::from([(CONFIRMATION.to_owned(), request)]);
                    TaskPayload::InputRequired { input_requests }
                }
                RecordState::Working if record.can_ask => match questions(server) {
                    asked if asked.is_empty() => TaskPayload::Working,
                    input_requests => TaskPayload::InputRequired { input_requests },
                },
                RecordState::Working => TaskPayload::Working,
            };
            Some(DetailedTask::new(record.task.clone(), payload))
        })
    }

    /// A person's answers. False: there is no such task.
    pub(crate) async fn update(server: &ServerState, id: &str, responses: &InputResponses) -> bool {
        let Some(sandbox) = server.sandbox.known().await else { return false };
        for (key, response) in responses {
            let Ok(result) = serde_json::from_value::<ElicitResult>(response.clone()) else {
                continue;
            };
            if key == CONFIRMATION {
                server.tasks.with(|all| {
                    let Some(record) = all.get_mut(id) else { return };
                    let before = std::mem::replace(&mut record.state, RecordState::Working);
                    match before {
                        // Whoever waits for it may be gone.
                        RecordState::Confirming { answer, .. } => {
                            let _ = answer.send(is_confirmed(&result));
                        }
                        other => record.state = other,
                    }
                });
            } else if let Some(Ok(question)) = key.strip_prefix(QUESTION).map(str::parse) {
                // Somebody else may have been first.
                let _ = server.operations.decide(&sandbox.id, question, &answer_of(&result)).await;
            }
        }
        server.tasks.with(|all| all.contains_key(id))
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

/// What is open and not about a secret, as requests for input.
fn questions(server: &ServerState) -> InputRequests {
    let open = server.questions.open().into_iter().filter(|question| !question.is_secret);
    open.filter_map(|question| {
        let request = InputRequest::Elicitation(ElicitRequest::new(approval_form(&question)?));
        Some((format!("{QUESTION}{}", question.id), request))
    })
    .collect()
}
