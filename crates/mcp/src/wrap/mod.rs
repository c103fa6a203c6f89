//! Another server in a sandbox: its messages pass through here, and its tools are shown to the client only while they are what a person
//! trusts.

mod gate;
mod options;
mod pins;
mod strict;

pub use options::WrapOptions;
pub use pins::{PinFile, Pins, hash};

use crate::error::McpError;
use gate::Gatekeeper;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// Of one message.
const MAX_MESSAGE: u64 = 16 << 20;

/// Runs the server until it or the client ends, and returns what it ended with.
pub fn wrap(options: &WrapOptions, note: &mut dyn FnMut(&str)) -> Result<Option<i32>, McpError> {
    let keeper = Gatekeeper::new(options)?;
    let wrong =
        |error: std::io::Error| McpError::Wrapped(format!("cannot run the server: {error}"));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(wrong)?;
    let done = runtime.block_on(talk(&keeper, options, note)).map_err(wrong);
    // A thread may still read standard input.
    runtime.shutdown_background();
    match done? {
        Ending::Itself(code) => Ok(code),
        Ending::Forced(why) => Err(McpError::Wrapped(format!("the server was ended: {why}"))),
    }
}

/// How the server ended.
enum Ending {
    /// With this exit code, if it has one.
    Itself(Option<i32>),
    /// For this reason.
    Forced(String),
}

async fn talk(
    keeper: &Gatekeeper<'_>,
    options: &WrapOptions,
    note: &mut dyn FnMut(&str),
) -> std::io::Result<Ending> {
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut child = Command::new("/proc/self/exe")
        .args(&options.words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(std::io::Error::other("the server has no streams"));
    };
    let out = tokio::sync::Mutex::new(tokio::io::stdout());
    let requests = async {
        let mut to = to;
        let mut input = BufReader::new(tokio::io::stdin());
        while let Some(line) = next_line(&mut input).await? {
            match keeper.refusal(&line) {
                Some(answer) => send(&mut *out.lock().await, answer.to_string().as_bytes()).await?,
                None => send(&mut to, &line).await?,
            }
        }
        // Dropped here: the server sees that its client is gone.
        drop(to);
        std::future::pending::<std::io::Result<Option<String>>>().await
    };
    let responses = async {
        let mut output = BufReader::new(from);
        while let Some(line) = next_line(&mut output).await? {
            let judged = keeper.judge(&line);
            judged.note.iter().for_each(|said| note(said));
            if let Some(line) = judged.line {
                send(&mut *out.lock().await, &line).await?;
            }
            if judged.end.is_some() {
                return Ok(judged.end);
            }
        }
        Ok(None)
    };
    let ended = tokio::select! {
        ended = requests => ended,
        ended = responses => ended,
        _ = terminated.recv() => Ok(None),
        _ = interrupted.recv() => Ok(None),
    };
    if let Some(pid) = child.id().and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed()))
    {
        // It may have ended already. Its sandbox ends everything in it.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    let status = child.wait().await?;
    Ok(ended?.map_or_else(|| Ending::Itself(status.code()), Ending::Forced))
}

/// The next message without its line end. Too long a one is an error: a part of a message is none.
async fn next_line(
    from: &mut (impl tokio::io::AsyncBufRead + Unpin),
) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut limited = AsyncReadExt::take(&mut *from, MAX_MESSAGE + 1);
    limited.read_until(b'\n', &mut line).await?;
    if line.len() as u64 > MAX_MESSAGE {
        return Err(std::io::Error::other("a message is longer than 16 MiB"));
    }
    if line.is_empty() {
        return Ok(None);
    }
    line.pop_if(|last| *last == b'\n');
    Ok(Some(line))
}

async fn send(to: &mut (impl AsyncWrite + Unpin), line: &[u8]) -> std::io::Result<()> {
    to.write_all(line).await?;
    to.write_all(b"\n").await?;
    to.flush().await
}
