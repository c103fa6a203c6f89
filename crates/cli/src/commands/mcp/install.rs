//! `sandbox mcp install` and `uninstall`: the server in a client's own configuration file.

use crate::output;
use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use palisade_mcp::clients::{
    ClientKind, ConfigChange, ConfigScope, ServerCommand, installed, uninstalled,
};
use palisade_record::escape;
use similar::TextDiff;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ClientWord {
    Claude,
    Codex,
    Cursor,
    Vscode,
    Gemini,
}

impl From<ClientWord> for ClientKind {
    fn from(word: ClientWord) -> Self {
        match word {
            ClientWord::Claude => Self::Claude,
            ClientWord::Codex => Self::Codex,
            ClientWord::Cursor => Self::Cursor,
            ClientWord::Vscode => Self::VsCode,
            ClientWord::Gemini => Self::Gemini,
        }
    }
}

#[derive(Args, Debug)]
struct Where {
    /// Whose configuration
    #[arg(value_name = "CLIENT", value_enum)]
    client: ClientWord,

    /// In the file of the project in the working directory, for everybody who works on it
    #[arg(long)]
    project: bool,

    /// Write without asking
    #[arg(long, short)]
    yes: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Shows the change and asks. The file as it was is kept beside it, with `.before-palisade` at the end. Everything else in the file
stays as it is, with its comments; a file that is not understood is left alone.

Examples:
  sandbox mcp install claude
  sandbox mcp install codex --project
  sandbox mcp install vscode -- --preset minimal --transaction     with these options of `sandbox mcp`")]
pub(crate) struct Install {
    #[command(flatten)]
    place: Where,

    /// Options of `sandbox mcp` that the client starts it with
    #[arg(value_name = "OPTION", last = true)]
    options: Vec<String>,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sandbox mcp uninstall claude
  sandbox mcp uninstall codex --project")]
pub(crate) struct Uninstall {
    #[command(flatten)]
    place: Where,
}

impl Where {
    fn scope(&self) -> anyhow::Result<ConfigScope> {
        if self.project {
            return Ok(ConfigScope::Project(
                std::env::current_dir().context("the working directory")?,
            ));
        }
        let variable =
            |name| std::env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
        let home =
            variable("HOME").context("HOME is not set: there is no configuration of yours")?;
        let config = variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        Ok(ConfigScope::User { home, config })
    }

    /// Shows it, asks, and writes it.
    fn carry_out(&self, change: &ConfigChange) -> anyhow::Result<ExitCode> {
        let file = change.file.display();
        if change.is_done() {
            output::note(&format!("{file} is as it should be; nothing was changed"));
            return Ok(ExitCode::SUCCESS);
        }
        let before = change.before.as_deref().unwrap_or_default();
        let diff = TextDiff::from_lines(before, &change.after);
        let name = file.to_string();
        let shown = diff.unified_diff().context_radius(3).header(&name, &name).to_string();
        let escaped: Vec<_> = shown.lines().map(|line| escape::text(line).into_owned()).collect();
        output::print(&escaped.join("\n"))?;
        if !self.yes && !agrees(&format!("Write {file}?"))? {
            output::note("nothing was changed");
            return Ok(ExitCode::FAILURE);
        }
        change.write()?;
        match change.before {
            Some(_) => output::note(&format!(
                "{file} was written; {} is the file as it was",
                change.backup().display()
            )),
            None => output::note(&format!("{file} was written")),
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Whether the person at the terminal says yes.
pub(super) fn agrees(question: &str) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        bail!("{question} There is no terminal to ask at; give --yes");
    }
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush())?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

impl Install {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        // A file of a project is for other machines, too.
        let program = match self.place.project {
            true => "sandbox".to_owned(),
            false => std::env::current_exe()
                .context("our own program")?
                .into_os_string()
                .into_string()
                .map_err(|name| anyhow::anyhow!("{} is not UTF-8", name.to_string_lossy()))?,
        };
        let mut arguments = vec!["mcp".to_owned()];
        arguments.extend(self.options);
        let command = ServerCommand { program, arguments };
        let change = installed(self.place.client.into(), &self.place.scope()?, &command)?;
        self.place.carry_out(&change)
    }
}

impl Uninstall {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let change = uninstalled(self.place.client.into(), &self.place.scope()?)?;
        self.place.carry_out(&change)
    }
}
