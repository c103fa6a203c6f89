//! Commands are started here, and followed by whoever wants to see what they write.

use super::model::{SelectMessage, StartMessage};
use super::relay::Relay;
use crate::connect::{Call, stream};
use crate::error::{Code, RpcError};
use crate::face::Shared;
use crate::paths::{self, resolve};
use crate::running::{Config, KnownCommand, not_found};
use crate::store::KeptSandbox;
use axum::extract::State;
use axum::response::Response;
use palisade_service::{CallerSpan, ControlConnection};
use palisade_session::supervise::interface::{
    AttachRole, CommandKind, CommandStreams, Environment, HeldStreams, OutputStart, Request,
    Response as Answered, StartCommand,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Requests to type that wait.
const WAITING_INPUTS: usize = 16;

pub(super) async fn start(State(face): State<Shared>, call: Call) -> Response {
    let shared = Arc::clone(&face);
    let caller = call.caller();
    stream(
        &face,
        call,
        |sandbox, message| async move { begin(shared, sandbox, message, caller).await },
    )
    .await
}

async fn begin(
    face: Shared,
    sandbox: KeptSandbox,
    message: StartMessage,
    caller: CallerSpan,
) -> Result<Relay, RpcError> {
    let StartMessage { process: config, pty, tag, stdin } = message;
    let terminal = pty.map(super::model::Pty::size);
    let argv: Vec<String> =
        std::iter::once(&config.cmd).chain(&config.args).map(String::clone).collect();
    check(&argv, &config)?;
    // With an input in any case: who has it is waited for by the command if it reads slowly. It ends below if there is none.
    let has_input = terminal.is_none();
    let has_stderr_apart = terminal.is_none();
    let streams = HeldStreams { terminal, has_input, has_stderr_apart, is_attached: true };
    let cwd = resolve(&sandbox, config.cwd.as_deref().unwrap_or_default());
    let wanted = StartCommand {
        kind: CommandKind::Program,
        argv: argv.iter().map(|word| word.clone().into_bytes()).collect(),
        environment: environment(&sandbox, &config, &cwd, caller),
        cwd: Some(cwd),
        umask: None,
        rlimits: Vec::new(),
        streams: CommandStreams::Held(streams),
    };
    let (mut connection, command) = face.host.start_held(&sandbox.id, &argv, wanted).await?;
    let is_typed = terminal.is_some() || stdin.unwrap_or(true);
    if !is_typed {
        // It may have ended already.
        let _ = connection.ask(&Request::CloseInput { command }, &[]).await;
    }
    let (to, inputs) = mpsc::channel(WAITING_INPUTS);
    let known = KnownCommand { config, tag, typist: is_typed.then_some(to) };
    face.running.insert(&sandbox.id, command, known);
    let has_terminal = terminal.is_some();
    Ok(Relay::new(face, (sandbox.id, command), connection, (0, has_terminal), inputs)
        .followed_to_its_end())
}

fn check(argv: &[String], config: &Config) -> Result<(), RpcError> {
    if config.cmd.is_empty() || argv.iter().any(|word| word.contains('\0')) {
        return Err(RpcError::invalid("cmd: name a program, and no word may have a NUL character"));
    }
    for (name, value) in &config.envs {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(RpcError::invalid(format!("envs: `{name}` is no variable")));
        }
    }
    Ok(())
}

/// The client's span and what E2B's server sets, then what the sandbox was made with, then what the command is started with.
fn environment(
    sandbox: &KeptSandbox,
    config: &Config,
    cwd: &Path,
    caller: CallerSpan,
) -> Environment {
    let span = caller.variables();
    let home = paths::text(&sandbox.shown_home);
    // A shell believes it, if it is where it says: so the home has the name that clients know.
    let directory = paths::shown(sandbox, cwd);
    let own = [
        ("HOME", home.as_str()),
        ("PWD", &directory),
        ("E2B_SANDBOX", "true"),
        ("E2B_SANDBOX_ID", &sandbox.id),
    ];
    let mut all: BTreeMap<&str, &str> = own.into();
    all.extend(span.iter().map(|(name, value)| (*name, value.as_str())));
    for (name, value) in sandbox.env_vars.iter().chain(&config.envs) {
        all.insert(name, value);
    }
    let bytes = |text: &str| text.as_bytes().to_vec();
    Environment::Extended(
        all.into_iter().map(|(name, value)| (bytes(name), bytes(value))).collect(),
    )
}

pub(super) async fn connect(State(face): State<Shared>, call: Call) -> Response {
    let shared = Arc::clone(&face);
    stream(&face, call, |sandbox, message| async move { attach(shared, sandbox, message).await })
        .await
}

/// To a command that runs, whichever server started it. What it wrote before is not told again, as with E2B.
async fn attach(
    face: Shared,
    sandbox: KeptSandbox,
    SelectMessage { process }: SelectMessage,
) -> Result<Relay, RpcError> {
    let command = face.running.select(&sandbox.id, &process)?;
    let running = face.host.running(&sandbox.id).await?;
    let details = running.into_iter().find(|it| it.command == command && it.held.is_some());
    let details = details.ok_or_else(|| not_found(command))?;
    let (directory, _) = face.host.find(&sandbox.id).await?;
    let mut connection = ControlConnection::open(&directory).await?;
    let (from, role) = (OutputStart::Now, AttachRole::Type);
    let attach = Request::Attach { command: Some(command), from, role };
    let attached = match connection.ask(&attach, &[]).await {
        Ok(Answered::Attached(attached)) => attached,
        Ok(_) => return Err(RpcError::new(Code::Internal, "the supervisor answered otherwise")),
        // It has ended in between.
        Err(_) => return Err(not_found(command)),
    };
    let (to, inputs) = mpsc::channel(WAITING_INPUTS);
    if face.running.get(&sandbox.id, command).is_none() {
        let config = Config { cmd: details.text, ..Config::default() };
        face.running.insert(&sandbox.id, command, KnownCommand { config, tag: None, typist: None });
    }
    if attached.is_typist {
        face.running.set_typist(&sandbox.id, command, Some(to));
    }
    let place = (attached.cursor, attached.has_terminal);
    Ok(Relay::new(face, (sandbox.id, command), connection, place, inputs))
}
