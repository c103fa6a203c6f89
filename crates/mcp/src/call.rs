//! One call of a tool while it runs: on a task of its own, so that a person can be asked meanwhile, and so that a call that is given up
//! takes what it does with it.

use crate::context::{CallContext, Confirmation};
use crate::denials;
use crate::spans::CallTrace;
use crate::state::ServerState;
use crate::tools::{self, ToolCall};
use rmcp::model::CallToolResult;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A call that runs. Dropped, it is given up: what it started is ended.
#[derive(Debug)]
pub(crate) struct RunningCall {
    work: JoinHandle<CallToolResult>,
    confirmations: mpsc::Receiver<Confirmation>,
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.work.abort();
    }
}

impl RunningCall {
    pub(crate) fn start(
        server: &Arc<ServerState>,
        tool: ToolCall,
        can_ask: bool,
        trace: CallTrace,
    ) -> Self {
        let (to, confirmations) = mpsc::channel(1);
        let context = CallContext::new(server, can_ask, to, trace);
        let work = tokio::spawn(async move {
            let done = tool.run(&context).await;
            let may_be_denied = match &done {
                Ok(answer) => answer.may_be_denied,
                Err(error) => error.may_be_denied,
            };
            let server = &context.server;
            let mut denials = match server.sandbox.known().await {
                Some(sandbox) if may_be_denied => {
                    server.denials.new_ones(&server.operations, &sandbox.id).await
                }
                _ => Vec::new(),
            };
            if denials.is_empty() && may_be_denied {
                let text = match &done {
                    Ok(answer) => &answer.text,
                    Err(error) => &error.text,
                };
                denials.extend(denials::hint(text).map(str::to_owned));
            }
            tools::result(done, &denials)
        });
        Self { work, confirmations }
    }

    /// Waits until it has ended; the result stays.
    pub(crate) async fn ended(&self) {
        const LOOK: std::time::Duration = std::time::Duration::from_millis(50);
        while !self.work.is_finished() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits for its end, or for the next thing that a person has to agree to. May be dropped while it waits, and asked for again.
    pub(crate) async fn next(&mut self) -> CallEvent {
        let Self { work, confirmations } = self;
        tokio::select! {
            done = &mut *work => CallEvent::Done(match done {
                Ok(result) => result,
                Err(error) => {
                    let text = format!("the call failed: {error}");
                    tools::result(Err(tools::ToolError::ours(text)), &[])
                }
            }),
            // None: the tool asks for nothing more.
            Some(asked) = confirmations.recv() => CallEvent::Confirm(asked),
        }
    }
}

/// What happens in a call.
#[derive(Debug)]
pub(crate) enum CallEvent {
    Done(CallToolResult),
    Confirm(Confirmation),
}
