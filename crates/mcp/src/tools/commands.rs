//! `bash`, `bash_output` and `bash_kill`: commands of the sandbox. The session keeps what they write, so that a model can ask for the
//! rest of it later.

use super::answer::{ToolAnswer, ToolError};
use crate::context::CallContext;
use crate::text::{Shortened, lossy};
use palisade_service::{Command, CommandState, NewCommand, Operations};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const DEFAULT_WAIT: u64 = 120;
const MAX_WAIT: u64 = 3600;
const DEFAULT_OUTPUT: usize = 30_000;
const MAX_OUTPUT: usize = 256 << 10;
/// More than a session keeps of one command.
const WHOLE_OUTPUT: usize = 8 << 20;
/// What a shell says of a program that is not there.
const NOT_FOUND: i32 = 127;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Bash {
    command: String,
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    stdin: Option<String>,
    #[serde(default)]
    background: bool,
    #[serde(default)]
    wait_seconds: Option<u64>,
    #[serde(default)]
    timeout_seconds: Option<u64>,
    #[serde(default)]
    max_output_bytes: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct BashOutput {
    command_id: u64,
    #[serde(default)]
    cursor: u64,
    #[serde(default)]
    wait_seconds: Option<u64>,
    #[serde(default)]
    max_output_bytes: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct BashKill {
    command_id: u64,
    #[serde(default)]
    force: bool,
}

/// As the output schema of the three tools says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CommandReport {
    command_id: u64,
    running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    timed_out: bool,
    output: String,
    /// The number of the first byte in `output`.
    cursor: u64,
    /// What to give as `cursor` to read on.
    next_cursor: u64,
    /// Whether bytes are missing in `output`, or more is there already.
    truncated: bool,
}

fn output_limit(wanted: Option<usize>) -> usize {
    wanted.unwrap_or(DEFAULT_OUTPUT).clamp(256, MAX_OUTPUT)
}

fn wait_limit(wanted: Option<u64>, default: u64) -> Duration {
    Duration::from_secs(wanted.unwrap_or(default).min(MAX_WAIT))
}

/// Ends a command that nobody waits for any more: its call was cancelled.
struct EndsWithCall {
    operations: Operations,
    sandbox: String,
    command: u64,
    is_armed: bool,
}

impl Drop for EndsWithCall {
    fn drop(&mut self) {
        if !self.is_armed {
            return;
        }
        let (operations, sandbox, command) =
            (self.operations.clone(), std::mem::take(&mut self.sandbox), self.command);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // If it cannot be ended, it ends with the sandbox.
            runtime.spawn(async move { drop(operations.cancel(&sandbox, command, false).await) });
        }
    }
}

pub(crate) async fn bash(call: &CallContext, wanted: Bash) -> Result<ToolAnswer, ToolError> {
    let sandbox = call.sandbox().await?;
    let cwd = wanted.cwd.as_deref().map(|cwd| sandbox.directory(cwd));
    let new = |shell: &str| NewCommand {
        argv: vec![shell.to_owned(), "-c".to_owned(), wanted.command.clone()],
        environment: wanted.environment.clone(),
        cwd: cwd.clone(),
        stdin: wanted.stdin.clone(),
        ..NewCommand::default()
    };
    let operations = &call.server.operations;
    let command = match call.start(&sandbox.id, &new("bash")).await {
        Err(problem) if problem.exit_code() == Some(NOT_FOUND) => {
            call.start(&sandbox.id, &new("sh")).await?
        }
        started => started?,
    };
    let mut guard = EndsWithCall {
        operations: operations.clone(),
        sandbox: sandbox.id.clone(),
        command: command.number,
        is_armed: true,
    };
    let timed_out = Arc::new(AtomicBool::new(false));
    if let Some(seconds) = wanted.timeout_seconds {
        let (operations, id) = (operations.clone(), sandbox.id.clone());
        let (number, flag) = (command.number, Arc::clone(&timed_out));
        tokio::spawn(async move {
            let over = sleep(Duration::from_secs(seconds.max(1)));
            tokio::select! {
                _ = operations.until_ended(&id, number) => return,
                () = over => {}
            }
            flag.store(true, Ordering::Relaxed);
            // If it cannot be ended, it ends with the sandbox.
            let _ = operations.cancel(&id, number, false).await;
        });
    }
    let wait = match wanted.background {
        true => Duration::ZERO,
        false => wait_limit(wanted.wait_seconds, DEFAULT_WAIT),
    };
    if !wait.is_zero() {
        // That it goes on is no error.
        if let Ok(ended) = timeout(wait, operations.until_ended(&sandbox.id, command.number)).await
        {
            ended?;
        }
    }
    guard.is_armed = false;
    let limit = output_limit(wanted.max_output_bytes);
    report(call, command.number, None, limit, timed_out.load(Ordering::Relaxed)).await
}

pub(crate) async fn bash_output(
    call: &CallContext,
    wanted: BashOutput,
) -> Result<ToolAnswer, ToolError> {
    let sandbox = call.sandbox().await?;
    let operations = &call.server.operations;
    let wait = wait_limit(wanted.wait_seconds, 0);
    if !wait.is_zero() {
        let ended = operations.until_ended(&sandbox.id, wanted.command_id);
        if let Ok(ended) = timeout(wait, ended).await {
            ended?;
        }
    }
    let limit = output_limit(wanted.max_output_bytes);
    report(call, wanted.command_id, Some(wanted.cursor), limit, false).await
}

pub(crate) async fn bash_kill(
    call: &CallContext,
    wanted: BashKill,
) -> Result<ToolAnswer, ToolError> {
    let sandbox = call.sandbox().await?;
    call.server.operations.cancel(&sandbox.id, wanted.command_id, wanted.force).await?;
    report(call, wanted.command_id, None, DEFAULT_OUTPUT, false).await
}

/// How a command is, with its output: the beginning and the end of it, or everything from a byte on.
async fn report(
    call: &CallContext,
    number: u64,
    since: Option<u64>,
    limit: usize,
    timed_out: bool,
) -> Result<ToolAnswer, ToolError> {
    let id = call.sandbox().await?.id;
    let operations = &call.server.operations;
    // First how it is: what it wrote before its end is there by then.
    let command = operations.command(&id, number).await?;
    let (output, cursor, next_cursor, truncated) = match since {
        Some(since) => {
            let kept = operations.output(&id, number, since, limit).await?;
            let next = kept.cursor + kept.bytes.len() as u64;
            let is_cut = kept.has_more || kept.cursor > since;
            (lossy(&kept.bytes), kept.cursor, next, is_cut)
        }
        None => {
            let kept = operations.output(&id, number, 0, WHOLE_OUTPUT).await?;
            let next = kept.cursor + kept.bytes.len() as u64;
            let shown = Shortened::of(&kept.bytes, limit);
            let left_out = shown
                .left_out
                .as_ref()
                .map(|range| (kept.cursor + range.start as u64, kept.cursor + range.end as u64));
            let text = shown.joined(|count| match left_out {
                Some((from, _)) => format!(
                    "\n[{count} bytes left out; read them with bash_output, commandId {number}, cursor {from}]\n"
                ),
                None => String::new(),
            });
            (text, kept.cursor, next, left_out.is_some() || kept.cursor > 0)
        }
    };
    let running = command.state == CommandState::Running;
    let data = CommandReport {
        command_id: number,
        running,
        exit_code: command.exit_code,
        signal: command.signal,
        timed_out,
        output,
        cursor,
        next_cursor,
        truncated,
    };
    let mut answer = ToolAnswer::new(text_of(&data, &command), &data)?;
    answer.may_be_denied = !running && command.exit_code != Some(0);
    Ok(answer)
}

fn text_of(report: &CommandReport, command: &Command) -> String {
    let mut text = report.output.trim_end_matches('\n').to_owned();
    if !text.is_empty() {
        text.push('\n');
    }
    let number = report.command_id;
    // Writing to a text does not fail.
    let _ = match (report.running, report.exit_code, report.signal) {
        (true, ..) => write!(
            text,
            "[still running as commandId {number}: bash_output with cursor {} reads on, bash_kill ends it]",
            report.next_cursor
        ),
        _ if report.timed_out => write!(text, "[ended: timeoutSeconds reached]"),
        (_, _, Some(signal)) => write!(text, "[killed by signal {signal}]"),
        (_, Some(code), _) => write!(text, "[exit code {code}]"),
        _ => write!(text, "[ended; how is not known]"),
    };
    if let Some(message) = &command.message {
        let _ = write!(text, " {message}");
    }
    text
}
