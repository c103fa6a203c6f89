//! `sandbox serve`: sandboxes over HTTP. What it does is in the service crate; this process has threads from then on, and makes no
//! sandbox itself.

use crate::commands::sessions::Lasting;
use crate::output;
use anyhow::{Context as _, bail};
use clap::Args;
use palisade_service::{
    CLIENT_TIMEOUT, ListenAddress, Listening, MAX_WARM, ServeOptions, TlsFiles, serve,
};
use palisade_session::AppDirs;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

const DETAILS: &str = "\
Listens at a UNIX socket in your runtime directory, and answers your own processes only. With tcp: every request needs the token
in the token file; a browser logs in with the link that is printed, or with the token. Other machines are served only with TLS.
Sandboxes do not end with the server: each has a supervisor of its own, and the next server finds them again. SIGTERM ends the
server; requests that run may end first. docs/service.md has all requests, docs/web-page.md the page, and /v1/openapi.json
describes the requests for programs.

With --e2b it also speaks the API of E2B's hosted sandboxes, and prints the variables by which E2B's own packages find it. docs/e2b.md has what works.

With --warm N a request gets a sandbox in the time that a program takes to start: N of them are made before they are asked for. They hold no secrets
and no identity, are no sessions, and end with the server. docs/service.md says which requests get one.

Examples:
  sandbox serve
  curl --unix-socket \"$XDG_RUNTIME_DIR/palisade/service/http.sock\" http://localhost/v1/sandboxes

  sandbox serve --warm 4
  curl --unix-socket \"$XDG_RUNTIME_DIR/palisade/service/http.sock\" http://localhost/v1/runs --json '{\"command\": {\"argv\": [\"make\"]}}'

  sandbox serve --listen tcp:127.0.0.1:8080        prints a link to a page for people, too
  curl -H \"Authorization: Bearer $(cat ~/.local/state/palisade/service/token)\" http://127.0.0.1:8080/v1/sandboxes

  sandbox serve --e2b &
  E2B_API_URL=http://127.0.0.1:49983 E2B_SANDBOX_URL=$E2B_API_URL E2B_API_KEY=$(cat ~/.local/state/palisade/service/token) python3 agent.py

  sandbox serve --listen tcp:0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem --host box.example";

#[derive(Args, Debug)]
#[command(after_help = DETAILS)]
pub(crate) struct Serve {
    /// Where to listen: unix:PATH or tcp:ADDRESS:PORT [default: a socket in the runtime directory]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<ListenAddress>,

    /// With tcp: the file with the token; made if it is missing [default: service/token in the state directory]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// With tcp: another name of this server that requests may use (repeatable)
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,

    /// With tcp: the certificate and those above it, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// With tcp: the key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// How long a client may take to send a request, to take its answer, and be idle [default: 30s]
    #[arg(long, value_name = "TIME")]
    client_timeout: Option<Lasting>,

    /// Speak E2B's API, too; listens at tcp:127.0.0.1:49983 if nothing else is said
    #[arg(long)]
    e2b: bool,

    /// Keep this many sandboxes prepared, up to 64, for requests that make one or run a command in one of its own
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = warm_count)]
    warm: usize,

    /// Print where it listens as JSON
    #[arg(long)]
    json: bool,
}

impl Serve {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let e2b_default = || ListenAddress::Tcp(palisade_e2b::DEFAULT_ADDRESS.into());
        let listen = self.listen.or_else(|| self.e2b.then(e2b_default));
        let is_tcp = matches!(listen, Some(ListenAddress::Tcp(_)));
        if self.e2b && !is_tcp {
            bail!("--e2b needs --listen tcp:ADDRESS:PORT: E2B's packages cannot use a UNIX socket");
        }
        if !is_tcp && (self.token_file.is_some() || !self.host.is_empty()) {
            bail!("--token-file and --host go with --listen tcp:ADDRESS:PORT");
        }
        let options = ServeOptions {
            places: AppDirs::here()?,
            listen,
            token_file: self.token_file,
            hosts: self.host.clone(),
            tls: self
                .tls_cert
                .zip(self.tls_key)
                .map(|(certificates, key)| TlsFiles { certificates, key }),
            directory: std::env::current_dir().context("the working directory")?,
            client_timeout: self.client_timeout.map_or(CLIENT_TIMEOUT, |time| time.0),
            warm: self.warm,
            mounted: if self.e2b { vec![palisade_e2b::routes] } else { Vec::new() },
        };
        let mut unprinted = None;
        serve(&options, &mut |listening| {
            let url = self.e2b.then(|| e2b_url(listening, &self.host)).flatten();
            unprinted = tell(listening, url.as_deref(), self.json).err();
        })?;
        match unprinted {
            Some(error) => Err(error),
            None => Ok(ExitCode::SUCCESS),
        }
    }
}

fn warm_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if count <= MAX_WARM => Ok(count),
        _ => Err(format!("a number from 0 to {MAX_WARM}")),
    }
}

/// Where E2B's packages find the server. An address that stands for all of them needs a name.
fn e2b_url(listening: &Listening, hosts: &[String]) -> Option<String> {
    let ListenAddress::Tcp(address) = listening.address else { return None };
    let scheme = if listening.has_tls { "https" } else { "http" };
    let named = hosts.first().map(|host| format!("{host}:{}", address.port()));
    Some(format!("{scheme}://{}", named.unwrap_or_else(|| address.to_string())))
}

fn tell(listening: &Listening, e2b_url: Option<&str>, as_json: bool) -> anyhow::Result<()> {
    let Listening { address, token_file, has_tls, page } = listening;
    if as_json {
        let address = address.to_string();
        let mut told = json!({
            "address": address, "tokenFile": token_file, "hasTls": has_tls, "page": page
        });
        if let Some(url) = e2b_url {
            told["e2bUrl"] = url.into();
        }
        return output::print_json(&told);
    }
    output::note(&format!("listening at {address}"));
    if let Some(file) = token_file {
        output::note(&format!("the token is in {}", file.display()));
    }
    if let Some(page) = page {
        output::note(&format!("for a browser, once: {page}"));
    }
    if let (Some(url), Some(file)) = (e2b_url, token_file) {
        output::note(&format!(
            "for E2B's packages: export E2B_API_URL={url} E2B_SANDBOX_URL={url} E2B_API_KEY=\"$(cat '{}')\"",
            file.display()
        ));
    }
    Ok(())
}
