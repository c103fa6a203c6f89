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
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// An event of an agent is a few kilobytes.
const MAX_EVENT: u64 = 8 << 20;
/// What agents take as "do not run this", with the reason on standard error.
const DENIED: u8 = 2;
/// A session that its agent forgot ends by itself.
const IDLE: &str = "2h";

const DETAILS: &str = "\
The agent gives an event as JSON on standard input, and gets its answer as JSON. A command of its shell tool (Bash) becomes
`sandbox exec SESSION -- bash -c COMMAND`. The session is made at the first one, in the agent's working directory, and ended with the agent; after
two hours without a command it ends by itself. Its name is that of the agent and its own session. If anything fails, the
command is denied.

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

    /// Let the agent ask you about each command as well, instead of allowing what runs in the sandbox
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
        let program = std::env::current_exe().context("cannot find this program")?;
        if self.settings {
            println!("{}", rewrite::settings(self.agent.name(), &program, self.ask, &self.create)?);
            return Ok(ExitCode::SUCCESS);
        }
        match self.answer(&program) {
            Ok(answer) => {
                if let Some(answer) = answer {
                    println!("{answer}");
                }
                Ok(ExitCode::SUCCESS)
            }
            Err(error) => {
                eprintln!(
                    "sandbox: the command was not run, since no sandbox could be had for it: {error:#}"
                );
                Ok(ExitCode::from(DENIED))
            }
        }
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
        let made = create.stderr(Stdio::piped()).output().context("cannot start this program")?;
        // Two commands at once: the other one has made it.
        if made.status.success() || is_there() {
            return Ok(());
        }
        bail!("{}", String::from_utf8_lossy(&made.stderr).trim_end())
    }
}

/// This program, with nothing to read and nothing of it in the answer.
fn own(program: &Path) -> Command {
    let mut own = Command::new(program);
    own.stdin(Stdio::null()).stdout(Stdio::null());
    own
}
