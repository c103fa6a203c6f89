//! Carries out requests, both those of this process and those of a client at the socket.
//!
//! Must never let a client change a wall or wait for one: a request is carried out at once or refused. How a sandbox is
//! ended, step by step, is in `end.rs`.

use crate::control::endpoint::ClientId;
use crate::control::handshake::refused;
use crate::control::held::NewHeld;
use crate::control::held_outputs::HeldOutputs;
use crate::control::interface::{
    CommandStatus, CommandStreams, HeldStreams, MAX_COMMANDS, RefusalKind, Request, Response,
    SIGNALS, StartCommand, TerminalSize,
};
use crate::error::Result;
use crate::escape::StartedTool;
use crate::supervisor::{Control, Phase, Supervisor};
use palisade_launch::{CommandId, Spawner};
use palisade_record::CommandDigest;
use palisade_sys::stream::only_reads_file;
use palisade_sys::{fault, tty};
use palisade_wire::WireError;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::Signal;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Instant;

/// A response, and the descriptor that goes with it.
#[derive(Debug)]
pub struct Reply {
    pub response: Response,
    pub descriptor: Option<OwnedFd>,
}

impl From<Response> for Reply {
    fn from(response: Response) -> Self {
        Self { response, descriptor: None }
    }
}

impl Supervisor<'_> {
    /// Carries out one request of this process. An error is one of the sandbox, which cannot go on.
    pub fn handle(&mut self, request: Request, descriptors: Vec<OwnedFd>) -> Result<Reply> {
        self.handle_from(None, request, descriptors)
    }

    /// The same for a client at a socket.
    pub(crate) fn handle_from(
        &mut self,
        client: Option<ClientId>,
        request: Request,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Reply> {
        if let Some(why) = malformed(&request, descriptors.len()) {
            return Ok(refused(RefusalKind::Malformed, why).into());
        }
        let may_come_before = matches!(
            request,
            Request::Hello { .. } | Request::Create(_) | Request::Claim(_) | Request::End { .. }
        );
        if client.is_some() && self.is_prepared() && !may_come_before {
            let why = "the sandbox was prepared and not claimed; the next request is Claim";
            return Ok(refused(RefusalKind::OutOfOrder, why.to_owned()).into());
        }
        Ok(match request {
            Request::Hello { .. } | Request::Create(_) => {
                refused(RefusalKind::OutOfOrder, "the sandbox is there already".to_owned()).into()
            }
            Request::StartCommand(start) => self.start_command(client, start, descriptors),
            Request::Signal { command, .. } | Request::ResizeTerminal { command, .. }
                if !self.control.commands.contains(command) =>
            {
                let why = format!("command {} is not running", command.0);
                refused(RefusalKind::UnknownCommand, why).into()
            }
            Request::Signal { command, signal } => self.signal_command(command, signal)?.into(),
            Request::ResizeTerminal { command, size } => self.resize_terminal(command, size).into(),
            Request::Status => Response::Status { commands: self.status() }.into(),
            Request::End { signal, grace } => {
                self.end(signal, grace)?;
                Response::Done.into()
            }
            Request::Attach { command, from, role } => {
                self.attach(client, command, (from, role)).into()
            }
            Request::Input { command, bytes } => self.type_in(client, command, &bytes).into(),
            Request::Detach { command } => self.detach(client, command).into(),
            Request::Inspect => Response::Inspected(self.inspect()).into(),
            Request::Extend { milliseconds } => self.extend(milliseconds).into(),
            Request::HoldProject => self.hold_project(client),
            Request::WriteCheckpoints => self.write_checkpoints().into(),
            Request::CloseInput { command } => self.close_input(client, command).into(),
            Request::Claim(claim) => self.claim(client, &claim).into(),
        })
    }

    fn start_command(
        &mut self,
        client: Option<ClientId>,
        mut start: StartCommand,
        descriptors: Vec<OwnedFd>,
    ) -> Reply {
        let refuse = |kind, why: String| Reply::from(refused(kind, why));
        let Some(spawner) = self.running.spawner() else {
            let why = "the sandbox ends with its command".to_owned();
            return refuse(RefusalKind::OutOfOrder, why);
        };
        if self.phase != Phase::Running {
            return refuse(RefusalKind::OutOfOrder, "the sandbox is ending".to_owned());
        }
        let Control {
            commands,
            held,
            defaults,
            spans,
            outbox,
            expiry,
            project_holder,
            project_workers,
            ..
        } = &mut self.control;
        if project_holder.is_some_and(|holder| outbox.is_connected(holder)) {
            let why = "an earlier state of the project is being brought back; try again".to_owned();
            return refuse(RefusalKind::OutOfOrder, why);
        }
        // What commands left in the background may still hold streams of ours.
        if commands.len().max(held.len()) >= MAX_COMMANDS {
            let why = format!("{MAX_COMMANDS} commands are running");
            return refuse(RefusalKind::TooManyCommands, why);
        }
        let streams = match open_streams(start.streams, descriptors, spawner) {
            Ok(streams) => streams,
            Err(why) => return refuse(RefusalKind::Failed, why),
        };
        let has_terminal = streams.has_terminal;
        let argv = words(&start.argv);
        if let Some(why) = self.veto.as_ref().and_then(|veto| veto.refuses(&argv)) {
            return refuse(RefusalKind::Failed, why);
        }
        let digest = CommandDigest::of(&argv);
        let title = digest.preview().to_owned();
        let tool = StartedTool {
            program: program_name(&argv),
            hash: digest.hash(),
            preview: title.clone(),
        };
        let id = commands.next_id();
        // One that was asked for and cannot begin keeps the command from starting.
        let recording = match (&streams.held, &streams.size) {
            (Some(_), size) => held.begin_recording(id, *size, digest.preview()),
            (None, _) => Ok(None),
        };
        let recording = match recording {
            Ok(recording) => recording,
            Err(why) => return refuse(RefusalKind::Failed, why),
        };
        let caller = spans.put(id, &mut start);
        let request = defaults.complete(id, start, has_terminal);
        fault::point("starting a command", "");
        let started = match project_workers.keeps_states() {
            true => project_workers
                .keep_before(request, streams.of_command, &self.running)
                .map_err(|error| (RefusalKind::Failed, error.to_string())),
            false => spawner.start_command(request, streams.of_command).map_err(not_sent),
        };
        fault::point("command asked for", "");
        if let Err((kind, why)) = started {
            held.forget_recording(id);
            return refuse(kind, why);
        }
        let command = commands.add(streams.to_resize, Some(digest));
        commands.set_tool(command, tool);
        commands.set_caller(command, caller);
        expiry.command_started();
        self.clock.limits.command_starts();
        if let Some(client) = client {
            outbox.started_by(command, client);
        }
        if let Some(HeldEnds { outputs, input, is_attached }) = streams.held {
            let attached = client.filter(|_| is_attached);
            held.add(command, NewHeld { outputs, input, recording, has_terminal, title, attached });
        }
        Reply { response: Response::Starting { command }, descriptor: streams.of_client }
    }

    fn signal_command(&mut self, command: CommandId, signal: i32) -> Result<Response> {
        // Before its exec our own code would get it.
        if !self.is_started() {
            self.control.held_back.push(Request::Signal { command, signal });
            return Ok(Response::Done);
        }
        if self.control.project_workers.hold_signal(command, signal) {
            return Ok(Response::Done);
        }
        if let Some(spawner) = self.running.spawner() {
            return Ok(match spawner.signal(command, signal) {
                Ok(()) => Response::Done,
                Err(error) => refused(RefusalKind::Failed, error.to_string()),
            });
        }
        if signal == Signal::TSTP.as_raw() {
            self.own_client.stop_asked = Some(Instant::now());
        }
        match signal == Signal::CONT.as_raw() {
            true => self.running.resume()?,
            false => self.running.signal(signal)?,
        }
        Ok(Response::Done)
    }

    fn resize_terminal(&mut self, command: CommandId, size: TerminalSize) -> Response {
        if let Some(resized) = self.control.held.resize(command, size) {
            return match resized {
                Ok(()) => Response::Done,
                Err(error) => refused(RefusalKind::Failed, error.to_string()),
            };
        }
        // That of the one command is relayed by us.
        let Some(terminal) = self.control.commands.terminal(command).or(self.running.pty()) else {
            return refused(RefusalKind::Failed, "the command has no terminal".to_owned());
        };
        match tty::set_window_size(terminal, size.into()) {
            Ok(()) => Response::Done,
            Err(error) => refused(RefusalKind::Failed, error.to_string()),
        }
    }

    fn status(&self) -> Vec<CommandStatus> {
        let mut commands = self.control.commands.status();
        if self.running.spawner().is_none() && self.is_started() {
            let pid = self.running.command().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
            commands.iter_mut().for_each(|known| known.pid = pid);
        }
        commands
    }
}

/// The streams of a new command, and the other ends of those that have one.
struct OpenStreams {
    of_command: Vec<OwnedFd>,
    has_terminal: bool,
    /// Of a terminal that we hold.
    size: Option<TerminalSize>,
    /// A copy of the command's end: one of the client's would keep the terminal from being hung up.
    to_resize: Option<OwnedFd>,
    of_client: Option<OwnedFd>,
    /// For us.
    held: Option<HeldEnds>,
}

/// Our ends of a command's streams.
struct HeldEnds {
    outputs: HeldOutputs,
    /// Of its input, where that is none of the terminal.
    input: Option<OwnedFd>,
    /// Whether the client is attached to it.
    is_attached: bool,
}

fn open_streams(
    wanted: CommandStreams,
    descriptors: Vec<OwnedFd>,
    spawner: &Spawner,
) -> Result<OpenStreams, String> {
    let none = OpenStreams {
        of_command: descriptors,
        has_terminal: false,
        size: None,
        to_resize: None,
        of_client: None,
        held: None,
    };
    let terminal =
        |size: TerminalSize| spawner.open_terminal(size.into()).map_err(|error| error.to_string());
    Ok(match wanted {
        CommandStreams::Descriptors => {
            if !spawner.refuses_truncation() && none.of_command.iter().any(only_reads_file) {
                let why = "a file that is only read cannot be a stream here, because a command could empty it; pass a pipe";
                return Err(why.to_owned());
            }
            none
        }
        CommandStreams::Terminal(size) => {
            let (master, slave) = terminal(size)?;
            OpenStreams {
                // Without a copy of our own it cannot be resized by us; the client still can.
                to_resize: slave.try_clone().ok(),
                of_command: vec![slave],
                has_terminal: true,
                size: None,
                of_client: Some(master),
                held: None,
            }
        }
        CommandStreams::Held(HeldStreams { terminal: Some(size), is_attached, .. }) => {
            let (master, slave) = terminal(size)?;
            never_block(&master)?;
            let held = Some(HeldEnds {
                outputs: HeldOutputs::new(master, None),
                input: None,
                is_attached,
            });
            OpenStreams {
                of_command: vec![slave],
                has_terminal: true,
                size: Some(size),
                held,
                ..none
            }
        }
        CommandStreams::Held(HeldStreams {
            terminal: None,
            has_input,
            has_stderr_apart,
            is_attached,
        }) => {
            let failed = |errno: Errno| errno.to_string();
            let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(failed);
            let (theirs, input) = match has_input {
                true => {
                    let (theirs, ours) = pipe()?;
                    never_block(&ours)?;
                    (theirs, Some(ours))
                }
                false => {
                    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                    let null = rustix::fs::open("/dev/null", flags, Mode::empty());
                    (null.map_err(failed)?, None)
                }
            };
            let (our_output, output) = pipe()?;
            never_block(&our_output)?;
            let (our_error, error) = match has_stderr_apart {
                true => {
                    let (ours, theirs) = pipe()?;
                    never_block(&ours)?;
                    (Some(ours), theirs)
                }
                false => (None, output.try_clone().map_err(|error| error.to_string())?),
            };
            let outputs = HeldOutputs::new(our_output, our_error);
            let held = Some(HeldEnds { outputs, input, is_attached });
            OpenStreams { of_command: vec![theirs, output, error], held, ..none }
        }
    })
}

/// Why a command could not be asked for.
fn not_sent(error: WireError) -> (RefusalKind, String) {
    match error {
        // The request itself is within its limit; the sandbox's own variables come on top.
        WireError::TooLong { limit } => {
            let why = format!(
                "arguments and environment, with the variables of the sandbox, exceed {limit} bytes"
            );
            (RefusalKind::Malformed, why)
        }
        error => (RefusalKind::Failed, error.to_string()),
    }
}

fn never_block(stream: &OwnedFd) -> Result<(), String> {
    rustix::io::ioctl_fionbio(stream, true).map_err(|errno| errno.to_string())
}

fn words(argv: &[Vec<u8>]) -> Vec<&OsStr> {
    argv.iter().map(|word| OsStr::from_bytes(word)).collect()
}

/// The last part of the program's path.
fn program_name(argv: &[&OsStr]) -> String {
    let name = argv.first().and_then(|program| Path::new(program).file_name());
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Why a request is none, whatever the sandbox does.
fn malformed(request: &Request, descriptors: usize) -> Option<String> {
    let expected = request.descriptors();
    if descriptors != expected {
        return Some(format!("{descriptors} descriptors came with it, not {expected}"));
    }
    let signal = request.signal().filter(|signal| !SIGNALS.contains(signal))?;
    Some(format!("{signal} is no signal"))
}

#[cfg(test)]
mod tests {
    use super::{CommandId, Request, malformed};
    use crate::control::interface::Grace;

    #[test]
    fn a_number_that_is_no_signal_is_refused() {
        for signal in [i32::MIN, -1, 0, 1, 9, 64, 65, i32::MAX] {
            let is_one = (1..=64).contains(&signal);
            for request in [
                Request::Signal { command: CommandId(1), signal },
                Request::End { signal, grace: Grace::OfSandbox },
            ] {
                assert_eq!(malformed(&request, 0).is_none(), is_one, "{request:?}");
                assert!(malformed(&request, 1).is_some(), "it has no descriptors");
            }
        }
    }
}
