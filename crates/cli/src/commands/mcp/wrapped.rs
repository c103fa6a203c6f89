//! `sandbox mcp wrap` and `trust`: another server in a sandbox, and its tools.

use super::forwarded::ForwardedOptions;
use super::install::agrees;
use crate::output;
use anyhow::bail;
use clap::Args;
use palisade_mcp::wrap::{PinFile, WrapOptions, hash, wrap};
use palisade_record::escape;
use palisade_session::AppDirs;
use serde_json::json;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

#[derive(Args, Debug)]
#[command(after_help = "\
Runs the server as `sandbox run` would, with the same options, and passes its messages on. The first time, the descriptions and schemas
of its tools are kept as hashes in the state directory. If one changes later, the tools are not passed on until `sandbox mcp trust`.

Examples:
  sandbox mcp wrap -- npx -y @modelcontextprotocol/server-filesystem .
  sandbox mcp wrap --name git --ro ~/src -- uvx mcp-server-git")]
pub(crate) struct Wrap {
    /// What the server is called for `sandbox mcp trust` [default: its program and a hash of its command line]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Trust the first list of tools of this run
    #[arg(long)]
    accept_changes: bool,

    #[command(flatten)]
    policy: ForwardedOptions,

    /// The server and its arguments
    #[arg(value_name = "SERVER", required = true, last = true)]
    server: Vec<OsString>,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  sandbox mcp trust git
  sandbox mcp trust --json git     what waits, without trusting it")]
pub(crate) struct Trust {
    /// Trust without asking
    #[arg(long, short)]
    yes: bool,

    /// Print the tools that wait as JSON, and trust nothing
    #[arg(long, conflicts_with = "yes")]
    json: bool,

    /// The name of the server
    #[arg(value_name = "NAME")]
    name: String,
}

/// The same for the same command line.
fn default_name(server: &[OsString]) -> String {
    let words: Vec<_> = server.iter().map(|word| word.to_string_lossy()).collect();
    let digest = hash(&json!(words));
    let program = words.first().map(|word| {
        Path::new(&**word).file_name().unwrap_or_default().to_string_lossy().into_owned()
    });
    let is_name = |c: &char| c.is_ascii_alphanumeric() || "-_".contains(*c);
    let program: String = program.unwrap_or_default().chars().filter(is_name).take(40).collect();
    format!("{program}-{}", &digest[..8]).trim_start_matches('-').to_owned()
}

impl Wrap {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let name = self.name.unwrap_or_else(|| default_name(&self.server));
        let pins = PinFile::of(&AppDirs::here()?.state, &name)?;
        let mut words = vec![OsString::from("run")];
        words.extend(self.policy.0);
        words.push("--".into());
        words.extend(self.server);
        let options = WrapOptions { name, pins, accept_changes: self.accept_changes, words };
        let code = wrap(&options, &mut |said| output::note(said))?;
        Ok(ExitCode::from(
            code.and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::OWN_FAILURE),
        ))
    }
}

impl Trust {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let file = PinFile::of(&AppDirs::here()?.state, &self.name)?;
        let Some(mut pins) = file.read()? else {
            bail!(
                "nothing is known of a server `{}`: it was not used with `sandbox mcp wrap`",
                self.name
            );
        };
        if self.json {
            output::print_json(&json!({ "name": self.name, "waiting": pins.waiting }))?;
            return Ok(ExitCode::SUCCESS);
        }
        if pins.waiting.is_empty() {
            output::note("nothing waits: its tools are those that were trusted");
            return Ok(ExitCode::SUCCESS);
        }
        for (name, tool) in &pins.waiting {
            let word = if pins.tools.contains_key(name) { "changed" } else { "new" };
            output::print(&format!("{} ({word})", escape::text(name)))?;
            let text = serde_json::to_string_pretty(tool)?;
            for line in text.lines() {
                output::print(&format!("    {}", escape::text(line)))?;
            }
        }
        if !self.yes && !agrees("Trust these tools?")? {
            output::note("nothing was changed");
            return Ok(ExitCode::FAILURE);
        }
        pins.trust();
        file.write(&pins)?;
        Ok(ExitCode::SUCCESS)
    }
}
