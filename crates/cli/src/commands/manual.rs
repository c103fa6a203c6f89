//! `sandbox man`: a manual page, made of the one definition of every option.

use crate::output;
use anyhow::{Context, bail};
use clap::Args;
use std::io::{self, IsTerminal, Write};
use std::process::{Command, ExitCode, Stdio};

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sandbox man
  sandbox man run
  sandbox man policy check
  sandbox man run > sandbox-run.1")]
pub(crate) struct Man {
    /// The command, such as `run` or `policy check` [default: sandbox itself]
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

impl Man {
    /// On a terminal by `man`, elsewhere as it is, for files and other readers.
    pub(crate) fn execute(self, root: clap::Command) -> anyhow::Result<ExitCode> {
        let page = page(root, &self.command)?;
        if io::stdout().is_terminal() && shown(&page).is_ok() {
            return Ok(ExitCode::SUCCESS);
        }
        output::print(&page)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn page(mut root: clap::Command, names: &[String]) -> anyhow::Result<String> {
    root.build();
    let mut command = &root;
    for name in names {
        match command.find_subcommand(name) {
            Some(found) => command = found,
            None => {
                bail!("there is no command `{} {name}`; see `sandbox --help`", command.get_name())
            }
        }
    }
    let title = std::iter::once("sandbox").chain(names.iter().map(String::as_str));
    let named = command.clone().display_name(title.collect::<Vec<_>>().join("-"));
    let mut page = Vec::new();
    clap_mangen::Man::new(named).render(&mut page).context("cannot make the manual page")?;
    Ok(String::from_utf8(page)?)
}

fn shown(page: &str) -> io::Result<()> {
    let mut man = Command::new("man").args(["-l", "-"]).stdin(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = man.stdin.take() {
        stdin.write_all(page.as_bytes())?;
    }
    if man.wait()?.success() { Ok(()) } else { Err(io::Error::other("man failed")) }
}

#[cfg(test)]
mod tests {
    use super::page;
    use crate::line::Cli;
    use clap::CommandFactory as _;

    /// Proves: LIFE-3 manual
    #[test]
    fn every_command_has_a_page() {
        let names =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert!(page(Cli::command(), &[]).unwrap().contains("sandbox"));
        assert!(page(Cli::command(), &names(&["run"])).unwrap().contains(".TH sandbox-run 1"));
        assert!(
            page(Cli::command(), &names(&["policy", "check"]))
                .unwrap()
                .contains(".TH sandbox-policy-check 1")
        );
        assert!(
            page(Cli::command(), &names(&["ls"]))
                .unwrap_err()
                .to_string()
                .contains("no command `sandbox ls`")
        );
    }
}
