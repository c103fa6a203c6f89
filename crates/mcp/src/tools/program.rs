//! A program of the sandbox that a tool needs, run to its end within bounds.

use super::answer::ToolError;
use crate::context::CallContext;
use palisade_service::{CommandState, NewCommand, Operations};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How often it is looked whether it wrote too much.
const LOOK: Duration = Duration::from_millis(250);

pub(crate) struct Finished {
    /// None: it was ended.
    pub(crate) exit_code: Option<i32>,
    pub(crate) output: Vec<u8>,
    /// Whether there was more than was kept, or it was ended.
    pub(crate) is_cut: bool,
}

/// Ends a program whose call was cancelled.
struct EndsWithCall(Operations, String, Option<u64>);

impl Drop for EndsWithCall {
    fn drop(&mut self) {
        if let (Some(command), Ok(runtime)) = (self.2, tokio::runtime::Handle::try_current()) {
            let (operations, sandbox) = (self.0.clone(), std::mem::take(&mut self.1));
            // If it cannot be ended, it ends with the sandbox.
            runtime.spawn(async move { drop(operations.cancel(&sandbox, command, true).await) });
        }
    }
}

/// Both outputs together, at most `most` bytes of them. It is ended when it has written more, or its time is over.
pub(crate) async fn run(
    call: &CallContext,
    wanted: &NewCommand,
    patience: Duration,
    most: usize,
) -> Result<Finished, ToolError> {
    let sandbox = call.sandbox().await?;
    let operations = &call.server.operations;
    let number = call.start(&sandbox.id, wanted).await?.number;
    let mut guard = EndsWithCall(operations.clone(), sandbox.id.clone(), Some(number));
    let deadline = Instant::now() + patience;
    let mut was_ended = false;
    let ended = operations.until_ended(&sandbox.id, number);
    tokio::pin!(ended);
    loop {
        if let Ok(ended) = timeout(LOOK, &mut ended).await {
            ended?;
            break;
        }
        let command = operations.command(&sandbox.id, number).await?;
        let has_too_much = command.output_bytes.is_some_and(|count| count > most as u64);
        if command.state == CommandState::Running && (has_too_much || Instant::now() > deadline) {
            operations.cancel(&sandbox.id, number, true).await?;
            was_ended = true;
            break;
        }
    }
    guard.2 = None;
    let command = operations.command(&sandbox.id, number).await?;
    let kept = operations.output(&sandbox.id, number, 0, most).await?;
    Ok(Finished {
        exit_code: command.exit_code.filter(|_| !was_ended),
        output: kept.bytes,
        is_cut: was_ended || kept.has_more || kept.cursor > 0,
    })
}
