//! The part of `cargo xtask bench gate` that asks: a program inside touches files it was not given, and a client
//! here answers each question as soon as it hears it. The client's own time is taken off.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use crate::measure::{BenchContext, Times};

/// Of which the first makes the keeper and the socket, and is not counted.
const QUESTIONS: usize = 101;
/// Far more than the first question takes.
const TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Serialize)]
pub(crate) struct Question {
    pub(crate) name: &'static str,
    /// From the call to its return, without the client.
    pub(crate) median_us: f64,
    pub(crate) p95_us: f64,
    pub(crate) client_us: f64,
}

/// `outside` is a directory that nobody granted.
pub(crate) fn ask(
    sandbox: &Path,
    probe: &Path,
    surroundings: &BenchContext<'_>,
    outside: &Path,
) -> Result<Vec<Question>> {
    for name in 0..QUESTIONS {
        let file = outside.join(name.to_string());
        fs::write(&file, "content").with_context(|| file.display().to_string())?;
    }
    let kinds = [
        ("open, once", "open-each", "once"),
        ("open, for the session", "open-each", "session"),
        ("stat, once", "stat-each", "once"),
    ];
    let mut questions = Vec::new();
    for (name, probe_name, lifetime) in kinds {
        let options = ["run", "--quiet", "--on-ask", "wait", "--"].map(OsString::from);
        let count = QUESTIONS.to_string();
        let probe_words = [probe.into(), probe_name.into(), outside.into(), count.into()];
        let words: Vec<OsString> =
            std::iter::once(sandbox.into()).chain(options).chain(probe_words).collect();
        let mut command = surroundings.command(&words)?;
        // An address of a socket has to be short.
        command.env("XDG_RUNTIME_DIR", surroundings.home).stdin(Stdio::null());
        let mut run = command.stdout(Stdio::piped()).spawn()?;
        let answered = answer_all(&mut run, &surroundings.home.join("palisade"), lifetime);
        if answered.is_err() {
            run.kill()?;
        }
        let mut said = String::new();
        run.stdout.take().context("no standard output")?.read_to_string(&mut said)?;
        let status = run.wait()?;
        let client =
            answered.with_context(|| format!("{name}: the probe said `{}`", said.trim()))?;
        ensure!(status.success(), "{name}: the run ended with {status}: {said}");
        questions.push(Question { name, ..compare(&said, &client)? });
    }
    Ok(questions)
}

fn compare(said: &str, client: &[Duration]) -> Result<Question> {
    let calls = said.trim().strip_prefix("done ").context("the probe did not say how long")?;
    let calls = calls
        .split(' ')
        .map(|nanoseconds| Ok(Duration::from_nanos(nanoseconds.parse()?)))
        .collect::<Result<Vec<_>>>()?;
    ensure!(calls.len() == client.len(), "{} calls, {} answers", calls.len(), client.len());
    let ours = calls.iter().zip(client).skip(1).map(|(call, client)| call.saturating_sub(*client));
    let ours = Times::new(ours.collect())?;
    let client = Times::new(client.iter().skip(1).copied().collect())?;
    let microseconds = |time: Duration| time.as_secs_f64() * 1e6;
    Ok(Question {
        name: "",
        median_us: microseconds(ours.median()),
        p95_us: microseconds(ours.percentile(95)),
        client_us: microseconds(client.median()),
    })
}

/// How long the client took over each answer: from having read the question to having written the answer.
fn answer_all(run: &mut Child, sockets: &Path, lifetime: &str) -> Result<Vec<Duration>> {
    let mut stream = connect(run, sockets)?;
    let mut lines = BufReader::new(stream.try_clone()?);
    let mut took = Vec::new();
    let mut line = String::new();
    while took.len() < QUESTIONS {
        line.clear();
        ensure!(lines.read_line(&mut line)? > 0, "the session ended after {} answers", took.len());
        let start = Instant::now();
        let event: Value = serde_json::from_str(&line)?;
        if event["type"] == "event.fs_request" {
            let answer = json!({"type": "cmd.approve", "id": event["id"], "lifetime": lifetime});
            stream.write_all(format!("{answer}\n").as_bytes())?;
            took.push(start.elapsed());
        } else if event["type"] == "event.error" {
            bail!("the session said {line}");
        }
    }
    Ok(took)
}

/// The socket appears with the first question.
fn connect(run: &mut Child, sockets: &Path) -> Result<UnixStream> {
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        if let Some(stream) = find_socket(sockets).and_then(|path| UnixStream::connect(path).ok()) {
            stream.set_read_timeout(Some(TIMEOUT))?;
            return Ok(stream);
        }
        if let Some(status) = run.try_wait()? {
            bail!("the run ended with {status} and did not ask");
        }
        thread::sleep(Duration::from_millis(1));
    }
    bail!("nobody asked; looked in {}", sockets.display())
}

fn find_socket(sockets: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(sockets).ok()?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.find(|path| path.extension().is_some_and(|extension| extension == "sock"))
}
