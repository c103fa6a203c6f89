//! What a tool knows of its call: the sandbox it works in, and whether a person can be asked.

use crate::sandbox::KnownSandbox;
use crate::spans::CallTrace;
use crate::state::ServerState;
use palisade_service::{Command, NewCommand, Problem};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

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

    /// Whether a person agrees. Nobody to ask is a no.
    pub(crate) async fn confirm(&self, message: String) -> bool {
        if !self.can_ask {
            return false;
        }
        let (answer, answered) = oneshot::channel();
        if self.confirmations.send(Confirmation { message, answer }).await.is_err() {
            return false;
        }
        answered.await.unwrap_or(false)
    }
}
