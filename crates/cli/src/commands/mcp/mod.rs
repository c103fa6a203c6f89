//! `sandbox mcp`: tools in a sandbox for a client of the Model Context Protocol. What it does is in the mcp crate; this process has
//! threads while it serves, and makes no sandbox itself.

mod forwarded;
mod install;
mod wrapped;

use crate::args::{AskInWord, HelpArgs, HelpEnd, help_end};
use crate::commands::sessions::create::setting;
use crate::output;
use crate::request;
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use forwarded::ForwardedOptions;
use palisade_mcp::{
    AskWhom, McpOptions, OfferedTool, WhichSandbox, is_own_tool, serve_http, serve_streams,
};
use palisade_service::{CLIENT_TIMEOUT, ListenAddress, Listening, ServeOptions, TlsFiles};
use palisade_session::config::PolicyRequest;
use palisade_session::tools::{self, Ignored, IgnoredBecause, ToolOrigin};
use palisade_session::{AppDirs, Caller};
use serde_json::json;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

const SERVER: &str = "Server";

const HELP_END: HelpEnd = help_end!(
    "\
Examples:
  sandbox mcp                                    what a client starts: it speaks at standard input and output
  sandbox mcp --preset minimal --transaction     the project stays as it is until changes are applied
  sandbox mcp --allow-host api.example           with the network, to this host only
  sandbox mcp --session work                     in a session that is there
  sandbox mcp --listen tcp:127.0.0.1:8765        over HTTP, at http://127.0.0.1:8765/mcp
  sandbox mcp install claude                     adds it to a client: claude, codex, cursor, vscode or gemini
  sandbox mcp wrap -- npx some-server            runs another server in a sandbox

Tools: bash, bash_output, bash_kill, read, write, edit, list, grep, web_fetch, sandbox_diff, sandbox_apply, sandbox_checkpoint,
sandbox_rollback, sandbox_status.",
    "

The sandbox is made in the working directory at the first call that needs one, with the options of `sandbox create`, and ends with
the client. Changes of a transaction are kept, and the last line says where. What is not granted is asked at the client where it can
ask (elicitation), and with `sandbox approve`. docs/mcp.md has the rest."
);

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// Add the server to a client's configuration
    Install(install::Install),
    /// Remove it from there
    Uninstall(install::Uninstall),
    /// Run another server in a sandbox, and notice when its tools change
    Wrap(wrapped::Wrap),
    /// Trust the tools of a wrapped server that changed
    Trust(wrapped::Trust),
}

#[derive(Args, Debug)]
#[command(after_help = HELP_END.short, after_long_help = HELP_END.all, disable_help_flag = true, args_conflicts_with_subcommands = true)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    command: Option<McpCommand>,

    /// Listen instead: tcp:ADDRESS:PORT (with a token) or unix:PATH
    #[arg(long, value_name = "ADDRESS", help_heading = SERVER)]
    listen: Option<ListenAddress>,

    /// Use this session instead of a new one; it stays
    #[arg(long, value_name = "SESSION", help_heading = SERVER)]
    session: Option<String>,

    /// Leave the sandbox when the client is gone; `sandbox stop` ends it
    #[arg(long, conflicts_with = "session", help_heading = SERVER)]
    keep: bool,

    /// Another word for the session, unique among those that run
    #[arg(long, value_name = "NAME", conflicts_with = "session", hide_short_help = true, help_heading = SERVER)]
    name: Option<String>,

    /// Also offer the tools that this file declares, or those in this directory; each call has a sandbox of its own; repeatable
    #[arg(long, value_name = "FILE|DIRECTORY", help_heading = SERVER)]
    tools: Vec<PathBuf>,

    /// Let sandbox_apply change the project without asking a person
    #[arg(long, hide_short_help = true, help_heading = SERVER)]
    allow_apply: bool,

    /// Ask nobody at the client. Whether questions wait: approve (until somebody answers) or none (denied)
    #[arg(long, value_name = "WHERE", conflicts_with = "session", hide_short_help = true, help_heading = SERVER)]
    ask_in: Option<AskInWord>,

    /// Ask nothing on pages in a browser, for a client that is not at this machine, such as in a container
    #[arg(long, hide_short_help = true, help_heading = SERVER)]
    no_pages: bool,

    /// Set a key of the policy; the value is JSON, such as 'resources.maxMemory="2g"'
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "session", hide_short_help = true, help_heading = SERVER)]
    set: Vec<String>,

    /// With --listen tcp: the file with the token; made if it is missing [default: service/token in the state directory]
    #[arg(long, value_name = "FILE", requires = "listen", hide_short_help = true, help_heading = SERVER)]
    token_file: Option<PathBuf>,

    /// With --listen tcp: another name of this server that requests may use (repeatable)
    #[arg(long, value_name = "NAME", requires = "listen", hide_short_help = true, help_heading = SERVER)]
    host: Vec<String>,

    /// With --listen tcp: the certificate and those above it, in PEM
    #[arg(long, value_name = "FILE", requires_all = ["listen", "tls_key"], hide_short_help = true, help_heading = SERVER)]
    tls_cert: Option<PathBuf>,

    /// With --listen tcp: the key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", hide_short_help = true, help_heading = SERVER)]
    tls_key: Option<PathBuf>,

    /// With --listen: print where it listens as JSON
    #[arg(long, requires = "listen", hide_short_help = true, help_heading = SERVER)]
    json: bool,

    #[command(flatten)]
    policy: ForwardedOptions,

    #[command(flatten)]
    help: HelpArgs,
}

impl Mcp {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        match self.command {
            None => self.serve(),
            Some(McpCommand::Install(install)) => install.execute(),
            Some(McpCommand::Uninstall(uninstall)) => uninstall.execute(),
            Some(McpCommand::Wrap(wrap)) => wrap.execute(),
            Some(McpCommand::Trust(trust)) => trust.execute(),
        }
    }

    fn serve(self) -> anyhow::Result<ExitCode> {
        let options = self.options()?;
        let mut note = |said: &str| output::note(said);
        let Some(address) = self.listen else {
            serve_streams(&options, &mut note)?;
            return Ok(ExitCode::SUCCESS);
        };
        let is_tcp = matches!(address, ListenAddress::Tcp(_));
        if !is_tcp && (self.token_file.is_some() || !self.host.is_empty()) {
            bail!("--token-file and --host go with --listen tcp:ADDRESS:PORT");
        }
        let listen = ServeOptions {
            places: options.places.clone(),
            listen: Some(address),
            token_file: self.token_file,
            hosts: self.host,
            tls: self
                .tls_cert
                .zip(self.tls_key)
                .map(|(certificates, key)| TlsFiles { certificates, key }),
            directory: options.directory.clone(),
            client_timeout: CLIENT_TIMEOUT,
            mounted: Vec::new(),
            warm: 0,
        };
        let mut unprinted = None;
        let mut tell = |listening: &Listening| unprinted = announce(listening, self.json).err();
        serve_http(&options, &listen, &mut tell, &mut note)?;
        match unprinted {
            Some(error) => Err(error),
            None => Ok(ExitCode::SUCCESS),
        }
    }

    fn options(&self) -> anyhow::Result<McpOptions> {
        let mut options: Vec<OsString> = self.policy.0.clone();
        if self.session.is_some() && !options.is_empty() {
            bail!(
                "--session: the session has its policy already; leave out {}",
                options[0].to_string_lossy()
            );
        }
        let word = |name: &str, value: &str| OsString::from(format!("--{name}={value}"));
        options.extend(self.set.iter().map(|setting| word("set", setting)));
        options.extend(self.name.iter().map(|name| word("name", name)));
        match self.ask_in {
            None => {}
            Some(AskInWord::Approve) => options.push(word("ask-in", "approve")),
            Some(AskInWord::None) => options.push(word("ask-in", "none")),
            Some(AskInWord::Terminal | AskInWord::Tmux) => {
                bail!("--ask-in: the client has the terminal; use approve or none")
            }
        }
        Ok(McpOptions {
            places: AppDirs::here()?,
            directory: std::env::current_dir().context("the working directory")?,
            sandbox: match &self.session {
                Some(session) => WhichSandbox::Existing(session.clone()),
                None => WhichSandbox::New { options, stays: self.keep },
            },
            ask: if self.ask_in.is_some() { AskWhom::Others } else { AskWhom::Client },
            has_pages: !self.no_pages,
            may_apply: self.allow_apply,
            tools: self.offered()?,
            tool_files: self.tools.clone(),
        })
    }

    /// That of the sandbox of the other tools: what it makes writable, a model could change.
    fn policy_request(&self, caller: &Caller) -> anyhow::Result<PolicyRequest> {
        let mut request = request::policy_request(caller, &self.policy.policy_args()?)?;
        let settings: Result<Vec<_>, _> = self.set.iter().map(|text| setting(text)).collect();
        request.command_line.extend(request::flags_of(&settings?)?);
        Ok(request)
    }

    /// The declared tools that are offered: those of the files that were named.
    fn offered(&self) -> anyhow::Result<Vec<OfferedTool>> {
        if self.tools.is_empty() {
            return Ok(Vec::new());
        }
        let caller = Caller::here()?;
        let set = tools::load(&caller, &self.tools, &self.policy_request(&caller)?)?;
        let is_told = |it: &&Ignored| it.because != IgnoredBecause::Shadowed;
        for ignored in set.ignored.iter().filter(is_told) {
            output::note(&format!("{} not used: {}", ignored.path.display(), ignored.why));
        }
        let named = set.tools.into_values().filter(|tool| tool.origin == ToolOrigin::Named);
        let mut offered = Vec::new();
        for tool in named {
            let declaration = tool.declaration;
            if is_own_tool(&declaration.name) {
                bail!(
                    "{}: the server has a tool `{}` of its own; give the declared one another name",
                    tool.file.path.display(),
                    declaration.name
                );
            }
            offered.push(OfferedTool {
                input: declaration.input.to_json(),
                sha256: tool.digest.to_string(),
                name: declaration.name,
                description: declaration.description,
            });
        }
        Ok(offered)
    }
}

fn announce(listening: &Listening, as_json: bool) -> anyhow::Result<()> {
    let Listening { address, token_file, has_tls, .. } = listening;
    let scheme = if *has_tls { "https" } else { "http" };
    let url = match address {
        ListenAddress::Tcp(address) => Some(format!("{scheme}://{address}/mcp")),
        ListenAddress::Unix(_) => None,
    };
    if as_json {
        let address = address.to_string();
        return output::print_json(
            &json!({ "address": address, "url": url, "tokenFile": token_file }),
        );
    }
    output::note(&format!("listening at {}", url.unwrap_or_else(|| address.to_string())));
    if let Some(file) = token_file {
        output::note(&format!("the token is in {}", file.display()));
    }
    Ok(())
}
