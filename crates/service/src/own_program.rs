//! Our own program, started anew for what a process with threads must not do, or what must not be done in this process: making
//! a sandbox, and work on what a command left, which may be as much as it likes.
//!
//! The program is opened once, so that one that is replaced meanwhile does not matter. No shell, a clean environment, and
//! bounds on time and output.

use crate::limits::{MAX_PROGRAMS, PLACE_TIMEOUT};
use crate::problem::{Problem, ProblemKind};
use palisade_session::{Complaint, ERRORS_AS_JSON, absolute_file};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Of an answer.
const MAX_STDOUT: u64 = 8 << 20;
/// Of complaints: the last one counts.
const MAX_STDERR: u64 = 64 << 10;

/// What of our own environment counts for a sandbox. Everything else, such as a secret of the shell that the server was started
/// in, must not get into one.
const PASSED_ON: &[&str] = &[
    "DBUS_SESSION_BUS_ADDRESS",
    "HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];
/// Options of `sandbox run` that are set for everything of this user; how far the locale goes; where sandboxes send their spans.
const PASSED_PREFIXES: &[&str] = &["SANDBOX_", "LC_", "OTEL_", "SSL_CERT_", "PALISADE_OTEL_"];

#[derive(Clone, Debug)]
pub(crate) struct OwnProgram {
    /// Open for as long as the server runs.
    program: Arc<File>,
    environment: Arc<Vec<(OsString, OsString)>>,
    places: Arc<Semaphore>,
    directory: PathBuf,
}

/// One start of it.
#[derive(Clone, Debug)]
pub(crate) struct Invocation {
    arguments: Vec<OsString>,
    directory: Option<PathBuf>,
    /// Besides those that all starts have.
    variables: Vec<(&'static str, String)>,
    patience: Duration,
}

impl Invocation {
    /// With these words.
    pub(crate) fn new<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Self {
        let arguments = words.into_iter().map(|word| word.as_ref().to_owned()).collect();
        let patience = Duration::from_secs(60);
        Self { arguments, directory: None, variables: Vec::new(), patience }
    }

    #[must_use]
    pub(crate) fn word(mut self, word: impl AsRef<OsStr>) -> Self {
        self.arguments.push(word.as_ref().to_owned());
        self
    }

    /// `--name=value`: a value that begins with a hyphen is still a value.
    #[must_use]
    pub(crate) fn option(self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let mut word = OsString::from(format!("--{name}="));
        word.push(value);
        self.word(word)
    }

    #[must_use]
    pub(crate) fn option_if(self, name: &str, value: Option<impl AsRef<OsStr>>) -> Self {
        match value {
            Some(value) => self.option(name, value),
            None => self,
        }
    }

    #[must_use]
    pub(crate) fn flag(self, name: &str, is_set: bool) -> Self {
        if is_set { self.word(format!("--{name}")) } else { self }
    }

    #[must_use]
    pub(crate) fn in_directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    #[must_use]
    pub(crate) fn variables(mut self, variables: Vec<(&'static str, String)>) -> Self {
        self.variables = variables;
        self
    }

    #[must_use]
    pub(crate) fn within(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }
}

/// What it printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Answer {
    /// The document that it printed.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        serde_json::from_slice(&self.stdout).map_err(|error| {
            Problem::internal(format!("our own program printed no JSON: {error}; {}", self.told()))
        })
    }

    /// The last complaint. What is no complaint is a note.
    pub(crate) fn problem(&self) -> Problem {
        match Complaint::last_of(&self.stderr) {
            Some(Complaint { kind, reason, message }) => {
                Problem::for_reason(kind.into(), reason.unwrap_or_default(), message)
            }
            None => Problem::internal(self.told()),
        }
    }

    /// All that it said.
    pub(crate) fn told(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr).trim().to_owned();
        match (text.is_empty(), self.code) {
            (false, _) => text,
            (true, Some(code)) => format!("our own program ended with {code} and said nothing"),
            (true, None) => "our own program was killed".to_owned(),
        }
    }
}

/// A sandbox that ends with this value: our own program made it, and ends it when its standard input does, which the kernel sees to if
/// this process is killed.
#[derive(Debug)]
pub struct HeldSandbox {
    id: String,
    child: Child,
    stderr: ChildStderr,
}

impl HeldSandbox {
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Ends it, and returns what there is to say about that: where changes wait.
    pub async fn end(mut self) -> String {
        drop(self.child.stdin.take());
        let said = read_up_to(Some(self.stderr), MAX_STDERR).await.unwrap_or_default();
        // It has said everything; how it ended says no more.
        let _ = self.child.wait().await;
        let said = String::from_utf8_lossy(&said);
        // Who passes it on says who we are.
        said.trim().trim_start_matches("sandbox: ").to_owned()
    }
}

/// It runs, and prints a line at a time. Dropped, it is killed.
#[derive(Debug)]
pub struct Lines {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: ChildStderr,
}

/// What of our own environment our own program gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnEnvironment {
    /// What counts for a sandbox, and nothing else.
    Clean,
    /// All of it, as if somebody had typed the command where we were started.
    Whole,
}

impl OwnProgram {
    /// `directory` is where it runs unless something else is said.
    pub(crate) fn open(directory: PathBuf, environment: OwnEnvironment) -> io::Result<Self> {
        let is_passed = |name: &OsStr| {
            if environment == OwnEnvironment::Whole {
                return true;
            }
            let name = name.to_str().unwrap_or_default();
            PASSED_ON.contains(&name) || PASSED_PREFIXES.iter().any(|it| name.starts_with(it))
        };
        let environment = std::env::vars_os().filter(|(name, _)| is_passed(name));
        // It is started in the directories of projects.
        let environment = environment.map(|(name, value)| {
            let value = absolute_file(&name, value);
            (name, value)
        });
        let environment: Vec<_> = environment.collect();
        Ok(Self {
            program: Arc::new(File::open("/proc/self/exe")?),
            environment: Arc::new(environment),
            places: Arc::new(Semaphore::new(MAX_PROGRAMS)),
            directory,
        })
    }

    /// One of the places for processes of ours.
    pub(crate) async fn place(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let busy = || Problem::busy("too many requests of this kind at once; try again");
        let place = timeout(PLACE_TIMEOUT, Arc::clone(&self.places).acquire_owned()).await;
        place.map_err(|_| busy())?.map_err(|_| busy())
    }

    fn start(&self, invocation: &Invocation) -> Result<Child, Problem> {
        self.spawn(invocation, Stdio::null(), true)
    }

    fn spawn(
        &self,
        invocation: &Invocation,
        stdin: Stdio,
        ends_with_us: bool,
    ) -> Result<Child, Problem> {
        // The descriptor is closed by exec itself, after its file was found.
        let mut command = Command::new(format!("/proc/self/fd/{}", self.program.as_raw_fd()));
        command
            .args(&invocation.arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .envs(invocation.variables.iter().map(|(name, value)| (name, value)))
            .env(ERRORS_AS_JSON, "1")
            .current_dir(invocation.directory.as_deref().unwrap_or(&self.directory))
            // Ctrl-C in our terminal is for us.
            .process_group(0)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(ends_with_us);
        command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::ArgumentListTooLong => Problem::too_large("the settings are too long"),
            // The standard library refuses an argument with a zero byte.
            io::ErrorKind::InvalidInput => Problem::invalid("a text has a zero byte (\\0) in it"),
            _ => Problem::internal(format!("cannot start our own program: {error}")),
        })
    }

    /// Makes a sandbox that ends with its standard input. It must print the sandbox as one line of JSON.
    pub(crate) async fn hold(&self, invocation: &Invocation) -> Result<HeldSandbox, Problem> {
        use tokio::io::AsyncBufReadExt as _;
        #[derive(Deserialize)]
        struct Made {
            id: String,
        }
        let _place = self.place().await?;
        let mut child = self.spawn(invocation, Stdio::piped(), false)?;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(Problem::internal("our own program has no output"));
        };
        let mut line = Vec::new();
        let mut stdout = BufReader::new(stdout.take(MAX_STDERR));
        match timeout(invocation.patience, stdout.read_until(b'\n', &mut line)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(Problem::internal(format!("our own program: {error}"))),
            Err(_) => return Err(Problem::timed_out("the sandbox was not made in time")),
        }
        match serde_json::from_slice::<Made>(&line) {
            Ok(Made { id }) => Ok(HeldSandbox { id, child, stderr }),
            Err(_) => {
                drop(child.stdin.take());
                let stderr = read_up_to(Some(stderr), MAX_STDERR).await.unwrap_or_default();
                let code = child.wait().await.ok().and_then(|status| status.code());
                Err(Answer { code, stdout: line, stderr }.problem())
            }
        }
    }

    /// Runs it to its end. If nobody waits for it any more, it is killed.
    pub(crate) async fn ask(&self, invocation: Invocation) -> Result<Answer, Problem> {
        self.ask_with(invocation, Stdio::null()).await
    }

    async fn ask_with(&self, invocation: Invocation, stdin: Stdio) -> Result<Answer, Problem> {
        let _place = self.place().await?;
        let child = self.spawn(&invocation, stdin, true)?;
        Self::follow(child, None, &invocation).await
    }

    /// The same with this at its standard input. Who calls this bounds how many there are.
    pub(crate) async fn ask_with_input(
        &self,
        invocation: Invocation,
        input: Vec<u8>,
    ) -> Result<Answer, Problem> {
        let child = self.spawn(&invocation, Stdio::piped(), true)?;
        Self::follow(child, Some(input), &invocation).await
    }

    async fn follow(
        mut child: Child,
        input: Option<Vec<u8>>,
        invocation: &Invocation,
    ) -> Result<Answer, Problem> {
        use tokio::io::AsyncWriteExt as _;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        let feed = async {
            if let (Some(mut stdin), Some(input)) = (stdin, input) {
                // Who does not read it says why.
                let _ = stdin.write_all(&input).await;
            }
        };
        let done = async {
            let (stdout, stderr, ()) =
                tokio::join!(read_up_to(stdout, MAX_STDOUT), read_up_to(stderr, MAX_STDERR), feed);
            let status: ExitStatus = child.wait().await?;
            Ok::<_, io::Error>((status, stdout?, stderr?))
        };
        match timeout(invocation.patience, done).await {
            Ok(Ok((status, stdout, stderr))) => {
                if stdout.len() as u64 > MAX_STDOUT {
                    return Err(Problem::of_kind(
                        ProblemKind::Resource,
                        format!("the answer exceeds {} MiB; ask for less of it", MAX_STDOUT >> 20),
                    ));
                }
                Ok(Answer { code: status.code(), stdout, stderr })
            }
            Ok(Err(error)) => Err(Problem::internal(format!("our own program: {error}"))),
            Err(_) => Err(Problem::timed_out(format!(
                "it was not done in {} seconds",
                invocation.patience.as_secs()
            ))),
        }
    }

    /// The same, with an exit code of 0.
    pub(crate) async fn done(&self, invocation: Invocation) -> Result<Answer, Problem> {
        let answer = self.ask(invocation).await?;
        if answer.code == Some(0) { Ok(answer) } else { Err(answer.problem()) }
    }

    /// The same with this standard input.
    pub(crate) async fn done_with(
        &self,
        invocation: Invocation,
        stdin: Stdio,
    ) -> Result<Answer, Problem> {
        let answer = self.ask_with(invocation, stdin).await?;
        if answer.code == Some(0) { Ok(answer) } else { Err(answer.problem()) }
    }

    /// Goes on to its end even if nobody waits for it any more: it changes something.
    pub(crate) async fn finish(&self, invocation: Invocation) -> Result<Answer, Problem> {
        let own = self.clone();
        let task = tokio::spawn(async move { own.ask(invocation).await });
        task.await.map_err(|error| Problem::internal(error.to_string()))?
    }

    /// Starts it, to read what it prints as it comes. Who calls this bounds how many there are.
    pub(crate) fn lines(&self, invocation: &Invocation) -> Result<Lines, Problem> {
        let mut child = self.start(invocation)?;
        match (child.stdout.take(), child.stderr.take()) {
            (Some(stdout), Some(stderr)) => {
                Ok(Lines { child, stdout: BufReader::new(stdout), stderr })
            }
            _ => Err(Problem::internal("our own program has no output")),
        }
    }
}

impl Lines {
    /// The next one. None: it has ended.
    pub async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        use tokio::io::AsyncBufReadExt as _;
        let mut line = Vec::new();
        let count = (&mut self.stdout).take(MAX_STDOUT).read_until(b'\n', &mut line).await?;
        line.pop_if(|last| *last == b'\n');
        Ok((count > 0).then_some(line))
    }

    /// After its last line: why it did not do what it was asked for.
    pub async fn problem(mut self) -> Option<Problem> {
        let stderr = read_up_to(Some(self.stderr), MAX_STDERR).await.unwrap_or_default();
        let code = self.child.wait().await.ok()?.code();
        (code != Some(0)).then(|| Answer { code, stdout: Vec::new(), stderr }.problem())
    }
}

/// One byte more shows that there would have been more. The rest is not waited for.
async fn read_up_to(from: Option<impl AsyncRead + Unpin>, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(most + 1).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{Answer, Invocation};

    #[test]
    fn a_value_with_a_hyphen_is_no_option() {
        let invocation = Invocation::new(["create"]).option("name", "--force").flag("json", true);
        assert_eq!(invocation.arguments, ["create", "--name=--force", "--json"]);
    }

    #[test]
    fn the_last_complaint_is_the_problem() {
        let stderr = b"{\"kind\":\"security\",\"message\":\"no\"}\nsandbox: a note\n".to_vec();
        let problem = Answer { code: Some(126), stdout: Vec::new(), stderr }.problem();
        let problem = serde_json::to_value(problem).unwrap();
        assert_eq!((&problem["status"], &problem["kind"]), (&403.into(), &"security".into()));
        assert_eq!(problem["detail"], "no");
        let stderr =
            b"{\"kind\":\"validation\",\"reason\":\"nameTaken\",\"message\":\"taken\"}\n".to_vec();
        let taken = Answer { code: Some(125), stdout: Vec::new(), stderr }.problem();
        let taken = serde_json::to_value(taken).unwrap();
        assert_eq!(
            (&taken["status"], &taken["type"]),
            (&409.into(), &"urn:palisade:problem:name-taken".into())
        );
        let silent = Answer { code: None, stdout: Vec::new(), stderr: Vec::new() }.problem();
        assert_eq!(serde_json::to_value(silent).unwrap()["detail"], "our own program was killed");
    }
}
