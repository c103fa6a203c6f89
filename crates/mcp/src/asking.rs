//! The client of a call that goes on: what the person there is asked meanwhile, and what it is told (up to revision 2025-11-25, but for
//! progress).

use crate::call::RunningCall;
use crate::context::Confirmation;
use crate::elicitation::{ElicitationMode, ElicitationModes};
use crate::questions::{
    Question, answer_of, approval_form, confirmation_form, is_confirmed, is_opened,
};
use crate::state::ServerState;
use rmcp::RoleServer;
use rmcp::model::{
    CustomNotification, ElicitRequestParams, ElicitResult, ProgressNotificationParam,
    ServerNotification,
};
use rmcp::service::RequestContext;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, interval};

/// While a call goes on, a client that asked for it is told so. Clients give up on a silent server after 30 seconds or more.
pub(crate) const PROGRESS: Duration = Duration::from_secs(3);
/// Sent when a page no longer accepts an answer (revision 2025-11-25).
const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";

/// How a question is asked at a client.
#[derive(Debug)]
pub(crate) struct Elicitation {
    pub(crate) parameters: ElicitRequestParams,
    /// The elicitation id of the page that has the answer, if it is not the client.
    page: Option<String>,
}

impl Elicitation {
    /// None: it cannot be asked there; `sandbox approve` answers it.
    pub(crate) fn of(
        state: &Arc<ServerState>,
        question: &Question,
        mode: ElicitationMode,
    ) -> Option<Self> {
        match mode {
            ElicitationMode::Form => {
                Some(Self { parameters: approval_form(question)?, page: None })
            }
            ElicitationMode::Url => {
                let page = state.pages.offer_question(state, question)?;
                Some(Self { parameters: page.request, page: Some(page.elicitation_id) })
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct CallClient<'a> {
    state: &'a Arc<ServerState>,
    context: &'a RequestContext<RoleServer>,
    /// When the call began.
    pub(crate) began: Instant,
}

impl<'a> CallClient<'a> {
    pub(crate) fn new(
        state: &'a Arc<ServerState>,
        context: &'a RequestContext<RoleServer>,
    ) -> Self {
        Self { state, context, began: Instant::now() }
    }

    /// Asks about what a command waits for. An answer from elsewhere counts as well.
    pub(crate) async fn ask(&self, call: &RunningCall, question: u64, asked: Elicitation) {
        let Elicitation { parameters, page } = asked;
        let has_page = page.is_some();
        // Also if this is dropped, with a client that is gone.
        let withdrawal = page.as_deref().map(|page| self.state.pages.withdraw_later(page));
        let answered = async {
            match self.elicit(parameters).await {
                // It is answered there.
                Some(result) if has_page && is_opened(&result) => std::future::pending().await,
                Some(result) => self.state.decide(question, &answer_of(&result)).await,
                None => {}
            }
        };
        let done = async {
            tokio::select! {
                () = answered => {}
                () = self.state.questions.closed(question) => {}
                // It ended without an answer; its result is asked for again.
                () = call.ended() => {}
            }
        };
        // A call that was cancelled waits no more.
        let _ = self.while_waiting(done).await;
        drop(withdrawal);
        if let Some(page) = &page {
            self.tell_complete(page).await;
        }
    }

    /// Asks whether something may be done, and tells the caller that waits for it.
    pub(crate) async fn confirm(
        &self,
        call: &RunningCall,
        asked: Confirmation,
        modes: ElicitationModes,
    ) {
        let answered = async {
            if modes.form {
                let result = self.elicit(confirmation_form(&asked.message)?).await;
                return Some(is_confirmed(&result?));
            }
            let (answer, answered) = oneshot::channel();
            let page = self.state.pages.offer_confirmation(self.state, &asked.message, answer)?;
            let refused = async {
                let result = self.elicit(page.request).await;
                if result.as_ref().is_some_and(is_opened) {
                    // It is answered there.
                    std::future::pending::<()>().await;
                }
            };
            let withdrawal = self.state.pages.withdraw_later(&page.elicitation_id);
            // A person may be done with the page before the client says that it was opened.
            let yes = tokio::select! {
                answer = answered => answer.ok(),
                () = refused => None,
            };
            drop(withdrawal);
            self.tell_complete(&page.elicitation_id).await;
            yes
        };
        let done = async {
            tokio::select! {
                answer = answered => answer,
                () = call.ended() => None,
            }
        };
        let yes = self.while_waiting(done).await.flatten().unwrap_or(false);
        // Whoever waits for it may be gone.
        let _ = asked.answer.send(yes);
    }

    /// The answer of the person at the client. None: nobody was asked.
    async fn elicit(&self, parameters: ElicitRequestParams) -> Option<ElicitResult> {
        self.context.peer.create_elicitation(parameters).await.ok()
    }

    /// Does something while the client is told that the call goes on. None: the call was cancelled.
    async fn while_waiting<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(work);
        let mut ticks = interval(PROGRESS);
        ticks.tick().await;
        loop {
            tokio::select! {
                done = &mut work => return Some(done),
                _ = ticks.tick() => self.tell_progress().await,
                () = self.context.ct.cancelled() => return None,
            }
        }
    }

    async fn tell_complete(&self, page: &str) {
        let about = json!({ "elicitationId": page });
        let complete = CustomNotification::new(ELICITATION_COMPLETE, Some(about));
        let complete = ServerNotification::CustomNotification(complete);
        // A client that is gone needs none.
        let _ = self.context.peer.send_notification(complete).await;
    }

    pub(crate) async fn tell_progress(&self) {
        let Some(token) = self.context.meta.get_progress_token() else { return };
        let seconds = self.began.elapsed().as_secs_f64();
        let message = match self.waiting().await {
            Some(message) => message,
            None => format!("running for {seconds:.0} s"),
        };
        let progress = ProgressNotificationParam::new(token, seconds).with_message(message);
        // A client that is gone needs none.
        let _ = self.context.peer.notify_progress(progress).await;
    }

    /// What the sandbox waits for, if it waits for a person.
    async fn waiting(&self) -> Option<String> {
        let open = self.state.questions.open();
        if let Some(question) = open.first() {
            let secret = if question.is_secret {
                " This is about a secret: it is not asked in a form."
            } else {
                ""
            };
            return Some(format!(
                "waiting for a person: {} Also with `sandbox approve`.{secret}",
                question.message
            ));
        }
        let sandbox = self.state.sandbox.known().await?;
        let count = self.state.operations.look(&sandbox.id).await.ok()?.status?.questions;
        (count > 0).then(|| {
            format!("waiting for a person: {count} questions; answer them with `sandbox approve`")
        })
    }
}
