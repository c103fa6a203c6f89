//! What a tool knows of its call: the sandbox it works in, and whether a person can be asked.

use crate::sandbox::KnownSandbox;
use crate::spans::CallTrace;
use crate::state::ServerState;
use palisade_service::{Command, NewCommand, Problem};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// As long as a question of the sandbox is open.
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(300);

/// What a tool knows of its call.
#[derive(Clone, Debug)]
pub(crate) struct CallContext {
    pub(crate) server: Arc<ServerState>,
    /// Whether the client can ask a person.
    can_ask: bool,
    confirmations: mpsc::Sender<Confirmation>,
    trace: CallTrace,
}

/// Something that a tool does only if a person agrees.
#[derive(Debug)]
pub(crate) struct Confirmation {
    pub(crate) message: String,
    /// Dropped, it is a no.
    pub(crate) answer: oneshot::Sender<bool>,
}

impl CallContext {
    pub(crate) fn new(
        server: &Arc<ServerState>,
        can_ask: bool,
        confirmations: mpsc::Sender<Confirmation>,
        trace: CallTrace,
    ) -> Self {
        Self { server: Arc::clone(server), can_ask, confirmations, trace }
    }

    /// The sandbox, made if there is none.
    pub(crate) async fn sandbox(&self) -> Result<KnownSandbox, Problem> {
        let known = self.server.sandbox.get(self.can_ask).await?;
        if self.can_ask {
            self.server.questions.watch(&self.server.operations, &known.id).await;
        }
        Ok(known)
    }

    /// Starts a command as a part of this call's trace.
    pub(crate) async fn start(
        &self,
        sandbox: &str,
        wanted: &NewCommand,
    ) -> Result<Command, Problem> {
        let mut wanted = wanted.clone();
        self.trace.put(&mut wanted.environment);
        self.server.operations.start(sandbox, &wanted).await
    }

    /// By which a process becomes a part of this call's trace.
    pub(crate) fn trace_variables(&self) -> Vec<(&'static str, String)> {
        self.trace.variables()
    }

    /// Whether the client can ask a person.
    pub(crate) fn can_ask(&self) -> bool {
        self.can_ask
    }

    /// Whether a person agrees, in five minutes. Nobody to ask is a no.
    pub(crate) async fn confirm(&self, message: String) -> bool {
        if !self.can_ask {
            return false;
        }
        let (answer, answered) = oneshot::channel();
        let agreed = async {
            let sent = self.confirmations.send(Confirmation { message, answer }).await;
            sent.is_ok() && answered.await.unwrap_or(false)
        };
        within(CONFIRMATION_TIMEOUT, agreed).await
    }
}

/// What is not agreed to in this time is not. Whoever asks meanwhile stops: the answer is not waited for any more.
async fn within(limit: Duration, agreed: impl Future<Output = bool>) -> bool {
    timeout(limit, agreed).await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::within;
    use std::time::Duration;
    use tokio::sync::oneshot;

    #[test]
    fn no_answer_in_time_is_a_no_and_the_page_ends() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (answer, answered) = oneshot::channel::<bool>();
        let agreed = async { answered.await.unwrap_or(false) };
        assert!(!runtime.block_on(async { within(Duration::ZERO, agreed).await }));
        assert!(answer.is_closed(), "by this a page knows that nobody waits");
        let yes = async { true };
        assert!(runtime.block_on(async { within(Duration::ZERO, yes).await }));
    }
}
