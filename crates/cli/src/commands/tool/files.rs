//! A call of a built-in tool that works on files: a session for this call, in which a process of ours does it (TOOL-3), and its report.

use crate::commands::sessions::end_now;
use crate::output;
use anyhow::{Context as _, bail};
use palisade_policy::Flag;
use palisade_policy::tool::{BuiltIn, InputValues};
use palisade_record::metrics::MetricsFile;
use palisade_record::{Failure, Outcome, RunReport};
use palisade_session::background::{self, Creation, NewSession};
use palisade_session::config::{self, PolicyRequest};
use palisade_session::files::SessionFiles;
use palisade_session::foreground;
use palisade_session::run::{Finished, RunRequest};
use palisade_session::sessions::{self, SessionDirectory, SessionOwner};
use palisade_session::supervise::interface::ClaimSandbox;
use palisade_session::tools::{self, DeclaredTool, FileAnswer, ToolOutput, ToolResult};
use palisade_session::transaction::WaitingChanges;
use palisade_session::{AskIn, Caller, SessionError, quarantine};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Of a session for one call. A question may have to be answered in it.
const LIFE: Duration = Duration::from_secs(900);
/// What the supervisor may take to write its last words, after the session has ended.
const LAST_WORDS: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(2);
/// No report is as large.
const MAX_REPORT: usize = 16 << 20;

pub(super) fn run(
    caller: Caller,
    tool: &DeclaredTool,
    (built_in, values): (BuiltIn, &InputValues),
    policy: PolicyRequest,
    metrics: Option<MetricsFile>,
) -> anyhow::Result<ToolResult> {
    background::close_inherited()?;
    let name = &tool.declaration.name;
    // What is looked up for a command is its arguments; these are those of this tool.
    quarantine::check(&caller.places, Some(name), &[built_in.name()])?;
    let places = caller.places.clone();
    let made = memfd_create("tool-report", MemfdFlags::CLOEXEC);
    let report = File::from(made.context("cannot make a file in memory")?);
    let mut request = RunRequest {
        command: vec![built_in.name().into()],
        policy,
        ask_in: AskIn::default(),
        fork_of: None,
        record_to: None,
        listed: None,
        is_for_files: true,
    };
    let most_output = bound_life(&caller, &mut request.policy)?;
    let writer = report.try_clone().context("cannot share the report")?;
    // In the supervisor, at the end.
    let conclude = |finished: &Finished| {
        if let Some(Err(error)) = metrics.map(|file| file.add(&finished.metrics)) {
            output::complain(&error.into());
        }
        if let Err(error) = write_report(writer, finished) {
            output::complain(&error);
        }
    };
    let mut tell = |_: &str| {};
    // A caller that gives up kills this process. The session ends with our end of the socket, which the kernel closes then.
    let (owner, our_end) = SessionOwner::here()?;
    let new = NewSession { owner: Some(owner), ..NewSession::default() };
    let session = match background::create(caller, &request, new, &mut tell, conclude)? {
        Creation::Created { session } => session,
        Creation::Failed { kind, message, .. } => {
            return Err(output::ClassifiedError { kind, message }.into());
        }
    };
    let our_end = our_end.take().context("the socket of the session is gone")?;
    let claim = ClaimSandbox { is_temporary: true, ..ClaimSandbox::default() };
    let ours = foreground::claim(our_end, claim)?;
    let (directory, _) = sessions::find(&places, &session)?;
    let done = carry_out(&directory, built_in, values);
    let ended = end_now(&directory);
    drop(ours);
    // When the report is there, the supervisor has removed what it does not keep.
    let report = read_report(&report)?;
    ended?;
    match sessions::find(&places, &session) {
        Ok((directory, record)) => {
            if WaitingChanges::unapplied(&directory, &record)?.is_none() {
                directory.remove()?;
            }
        }
        Err(SessionError::NoSuchSession { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(result(name, &report, (done, most_output)))
}

/// A supervisor that is stopped, or an answer that nobody gives, must not keep the session for ever. Returns how much output the policy allows.
fn bound_life(caller: &Caller, policy: &mut PolicyRequest) -> anyhow::Result<Option<usize>> {
    const KEY: &str = "resources.timeToLive";
    let resources = config::load(caller, policy)?.merged.policy.resources;
    let stated = resources.time_to_live;
    if stated.is_none_or(|stated| u128::from(stated) > LIFE.as_millis()) {
        let life = format!("{}s", LIFE.as_secs());
        policy.command_line.push(Flag::new("sandbox tool run", KEY, life));
    }
    let most_output = resources.max_output_size;
    Ok(most_output.map(|most| usize::try_from(most).unwrap_or(usize::MAX)))
}

fn carry_out(
    directory: &SessionDirectory,
    built_in: BuiltIn,
    values: &InputValues,
) -> Result<FileAnswer, SessionError> {
    let mut files = SessionFiles::open(directory)?;
    let answer = tools::carry_out(built_in, &mut files.client, values)?;
    files.close();
    Ok(answer)
}

/// The session ended because the call was over: that is no failure of the tool.
fn result(
    name: &str,
    report: &RunReport,
    (done, most_output): (Result<FileAnswer, SessionError>, Option<usize>),
) -> ToolResult {
    let was_stopped = matches!(report.outcome, Outcome::Killed | Outcome::Completed);
    match done {
        Ok(FileAnswer { text, data }) => {
            let output = ToolOutput { stdout: text, stderr: Vec::new() };
            let mut result = ToolResult::new(name, report, &output);
            result.data = Some(data);
            if let Some(most) = most_output {
                result.cut_stdout(most);
            }
            if was_stopped {
                result.outcome = Outcome::Completed;
                (result.exit_code, result.signal, result.failure) = (0, None, None);
            }
            result
        }
        Err(error) => {
            let output =
                ToolOutput { stdout: Vec::new(), stderr: format!("{error}\n").into_bytes() };
            let mut result = ToolResult::new(name, report, &output);
            if was_stopped {
                result.outcome = Outcome::Completed;
                (result.exit_code, result.signal) = (1, None);
                result.failure = Some(Failure::of(error.kind(), &error));
            }
            result
        }
    }
}

fn write_report(mut file: File, finished: &Finished) -> anyhow::Result<()> {
    let text = serde_json::to_vec(&finished.report)?;
    // The length comes last: who reads sees a whole report or none.
    file.seek(SeekFrom::Start(LENGTH))?;
    file.write_all(&text)?;
    file.write_all_at(&(text.len() as u64).to_le_bytes(), 0)?;
    Ok(())
}

/// Of the number before the report.
const LENGTH: u64 = 8;

fn read_report(file: &File) -> anyhow::Result<RunReport> {
    let deadline = Instant::now() + LAST_WORDS;
    loop {
        let mut length = [0; size_of::<u64>()];
        if file.read_at(&mut length, 0).context("cannot read the report")? == length.len() {
            let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
            if length > MAX_REPORT {
                bail!("the report of the call is too large");
            }
            if length > 0 {
                let mut text = vec![0; length];
                file.read_exact_at(&mut text, LENGTH).context("cannot read the report")?;
                return serde_json::from_slice(&text).context("the report cannot be read");
            }
        }
        if Instant::now() > deadline {
            bail!("the supervisor of the call ended without a report");
        }
        sleep(LOOK);
    }
}
