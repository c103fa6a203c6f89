//! `sandbox hook`: for agents that have a shell tool of their own. Before the agent runs a command, it asks this program, which answers with
//! another command: the same one in a session of the sandbox.
//!
//! Whatever goes wrong here denies the command: it must never run outside because of it.

mod event;
mod rewrite;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use event::{Answer, HookEvent, Meaning};
use palisade_session::{AppDirs, sessions};
use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// An event of an agent is a few kilobytes.
const MAX_EVENT: u64 = 8 << 20;
/// What agents take as "do not run this", with the reason on standard error. Any other code but 0 lets them run the command as it was.
pub(crate) const DENIED: u8 = 2;
/// Less than the time that the settings give us: who is late is not asked any more.
const DEADLINE: Duration = Duration::from_secs(45);
const LOOK: Duration = Duration::from_millis(10);
/// Of the null device, which nobody reads.
const NULL_DEVICE: u64 = 0x103;
/// A session that its agent forgot ends by itself.
const IDLE: &str = "2h";

const DETAILS: &str = "\
The agent gives an event as JSON on standard input, and gets its answer as JSON. A command of its shell tool (Bash) becomes
`sandbox exec SESSION -- bash -c COMMAND`. The session is made at the first one, in the agent's working directory, and ended with the agent; after
two hours without a command it ends by itself. Its name is that of the agent and its own session. If anything fails, the
command is denied. Codex needs version 0.144 or later; --ask is for Claude Code only.

Options after `--` are those of `sandbox create`.

Examples:
  sandbox hook claude --settings                            what belongs into ~/.claude/settings.json
  sandbox hook codex --settings                             what belongs into ~/.codex/hooks.json
  sandbox hook claude -- --transaction --allow-for npm,git  changes wait for `sandbox apply`";

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct Hook {
    /// The agent that asks
    #[arg(value_enum)]
    agent: Agent,

    /// Print what belongs into the agent's settings, and do nothing else
    #[arg(long)]
    settings: bool,

    /// For claude: let the agent ask you about each command as well, instead of allowing what runs in the sandbox
    #[arg(long)]
    ask: bool,

    /// Options of `sandbox create`, after `--`
    #[arg(last = true, value_name = "OPTIONS")]
    create: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Agent {
    Claude,
    Codex,
}

impl Agent {
    fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }
}

impl Hook {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        // Not the code of a panic: the agent would go on.
        std::panic::set_hook(Box::new(|panic| {
            eprintln!("sandbox: the command was not run: {panic}");
            std::process::exit(DENIED.into());
        }));
        match self.answer_or_settings() {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(error) => {
                eprintln!(
                    "sandbox: the command was not run, since no sandbox could be created for it: {error:#}"
                );
                Ok(ExitCode::from(DENIED))
            }
        }
    }

    fn answer_or_settings(&self) -> anyhow::Result<()> {
        if self.ask && self.agent == Agent::Codex {
            bail!("--ask: Codex takes another command only together with a yes");
        }
        let program = std::env::current_exe().context("cannot find this program")?;
        let printed = match self.settings {
            true => Some(rewrite::settings(self.agent.name(), &program, self.ask, &self.create)?),
            false => self.answer(&program)?,
        };
        let Some(printed) = printed else { return Ok(()) };
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{printed}").and_then(|()| stdout.flush()).context("standard output")
    }

    fn answer(&self, program: &Path) -> anyhow::Result<Option<String>> {
        let mut text = String::new();
        std::io::stdin()
            .take(MAX_EVENT)
            .read_to_string(&mut text)
            .context("cannot read the event")?;
        let event = HookEvent::parse(&text)?;
        let session = event.session_name(self.agent.name());
        Ok(match event.meaning()? {
            Meaning::Command(command) => {
                let stdout = std::fs::metadata("/proc/self/fd/1").context("standard output")?;
                if stdout.rdev() == NULL_DEVICE {
                    bail!("nobody reads standard output");
                }
                self.have_session(program, &session, &event.cwd)?;
                let rewritten = rewrite::in_session(program, &session, command)?;
                let answer = if self.ask { Answer::Ask } else { Answer::Allow };
                Some(event.with_command(answer, &rewritten))
            }
            Meaning::End => {
                // It may have ended by itself.
                let _ = own(program).args(["stop", &session]).stderr(Stdio::null()).status();
                None
            }
            Meaning::Other => None,
        })
    }

    /// Makes the session of this agent, unless it is there.
    fn have_session(&self, program: &Path, session: &str, cwd: &Path) -> anyhow::Result<()> {
        let places = AppDirs::here()?;
        let is_there =
            || sessions::find(&places, session).is_ok_and(|(directory, _)| directory.is_alive());
        if is_there() {
            return Ok(());
        }
        let mut create = own(program);
        create.args(["create", "--quiet", "--name", session]);
        if !self.create.iter().any(|word| word.as_encoded_bytes().starts_with(b"--idle-ttl")) {
            create.args(["--idle-ttl", IDLE]);
        }
        create.args(&self.create).current_dir(cwd);
        let mut making =
            create.stderr(Stdio::piped()).spawn().context("cannot start this program")?;
        let status = in_time(&mut making)?;
        // Two commands at once: the other one has made it.
        if status.success() || is_there() {
            return Ok(());
        }
        let mut why = String::new();
        if let Some(stderr) = making.stderr.take() {
            stderr.take(MAX_EVENT).read_to_string(&mut why).context("cannot read why")?;
        }
        bail!("{}", why.trim_end())
    }
}

/// Waits for its end, but no longer than the agent waits for us.
fn in_time(making: &mut Child) -> anyhow::Result<ExitStatus> {
    let end = Instant::now() + DEADLINE;
    while Instant::now() < end {
        if let Some(status) = making.try_wait().context("cannot wait for this program")? {
            return Ok(status);
        }
        std::thread::sleep(LOOK);
    }
    // It may have ended in between.
    let _ = making.kill();
    let _ = making.wait();
    bail!("it took more than {} seconds", DEADLINE.as_secs())
}

/// This program, with nothing to read and nothing of it in the answer.
fn own(program: &Path) -> Command {
    let mut own = Command::new(program);
    own.stdin(Stdio::null()).stdout(Stdio::null());
    own
}
