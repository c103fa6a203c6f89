//! The control interface of a sandbox: every request, response and event, as one enum each.
//!
//! The process that starts a sandbox uses it by function calls, another process over a SEQPACKET socket, where one packet is
//! one message ([`palisade_wire`]). Each request gets one response, in the order of the requests; events come between them.
//! Who makes requests decides what runs in the sandbox and how it ends, and never what it may do: no request changes a
//! wall.

pub use palisade_launch::{CommandId, CommandKind, ExitCause};
pub use palisade_plan::model::Resource;

use palisade_record::SpanContext;
use palisade_wire::{Raw, Truncated, WireMessage};
use rustix::termios::Winsize;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Both sides have to speak the same one. Raised with every change of an encoding: `golden_tests.rs` has all of them.
pub const VERSION: u32 = 10;

/// Running at once in one sandbox.
pub const MAX_COMMANDS: usize = 256;

/// What there is of signals: see signal(7).
pub(crate) const SIGNALS: RangeInclusive<i32> = 1..=64;

const MAX_TEXT: usize = 4 * 1024;

/// Of a command line, to tell commands apart. With 256 of them a message stays within its limit.
const MAX_COMMAND_TEXT: usize = 64;

/// Of output in one event.
pub const MAX_OUTPUT: usize = 16 * 1024;

/// What is kept of the output of each command for who attaches later.
pub const REPLAYED_BYTES: usize = 1 << 20;

/// From a client to the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The first request. Answered with [`Response::Hello`].
    Hello {
        version: u32,
    },
    /// The second request: makes the sandbox. Answered with [`Response::Created`] as soon as commands can be started.
    Create(CreateSandbox),
    /// Comes with three descriptors where `streams` says so. Answered with [`Response::Starting`];
    /// [`Event::CommandStarted`] or [`Event::CommandFailed`] follows. Refused in a sandbox that ends with its command.
    StartCommand(StartCommand),
    /// Sends a signal to the process group of a command.
    Signal {
        command: CommandId,
        signal: i32,
    },
    ResizeTerminal {
        command: CommandId,
        size: TerminalSize,
    },
    /// Answered with [`Response::Status`].
    Status,
    /// Ends the sandbox: the process group of every command gets `signal`, and SIGCONT, without which a stopped process
    /// does not notice. Who has not ended after the grace time is killed. No command is started from then on;
    /// [`Event::Ended`] is the last message. Asking again can only shorten the grace time.
    End {
        signal: i32,
        grace: Grace,
    },
    /// The output of a command whose streams the supervisor holds comes as [`Event::Output`] from now on, and then its end.
    /// Answered with [`Response::Attached`].
    Attach {
        /// None: the one that was started last.
        command: Option<CommandId>,
        from: OutputStart,
        role: AttachRole,
    },
    /// Bytes for the terminal or the input of a command. Only from the client that types there.
    Input {
        command: CommandId,
        bytes: Vec<u8>,
    },
    /// Ends an [`Self::Attach`]: no more output, and another client may type.
    Detach {
        command: CommandId,
    },
    /// Answered with [`Response::Inspected`].
    Inspect,
    /// The session may stay this much longer, from now on.
    Extend {
        milliseconds: u64,
    },
    /// Commands are refused until this client is gone, so that it can bring an earlier state of the project back. Refused
    /// while commands run, and in a session without a transaction. Answered with [`Response::ProjectHeld`].
    HoldProject,
    /// Checkpoints that are not on disk yet are written there, by a process of the session: the answer does not wait for it.
    /// Refused in a session without a transaction.
    WriteCheckpoints,
    /// What was typed is all that the command reads: its input ends. Only from the client that types there, and not where
    /// there is a terminal, in which a key says so.
    CloseInput {
        command: CommandId,
    },
    /// Makes a session of a sandbox that was prepared: its time begins now, and others find it. Only from the client for whom it was
    /// prepared, which is refused everything else before, and only once.
    Claim(ClaimSandbox),
}

/// What a sandbox that was prepared could not know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimSandbox {
    /// Another word for the session, unique among those that run.
    pub name: Option<String>,
    /// Whether it ends with this client, and leaves nothing.
    pub is_temporary: bool,
    /// The span that the session is below, in its caller's trace.
    pub traceparent: Option<SpanContext>,
    /// What vendors added to it.
    pub tracestate: Option<String>,
}

/// Where output begins for who attaches. Output is counted in bytes from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputStart {
    /// As far back as it is kept: [`REPLAYED_BYTES`].
    Kept,
    Byte(u64),
    /// Only what comes from now on.
    Now,
}

/// What an attached client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttachRole {
    Watch,
    /// If no other client does. Otherwise it watches.
    Type,
}

/// How long commands may take to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Grace {
    /// As long as the sandbox's policy gives them after a signal (`--grace`).
    OfSandbox,
    Milliseconds(u64),
}

/// What is not said here is as in `sandbox run`: from the policy files and from `SANDBOX_*` variables of the supervisor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateSandbox {
    /// They count as options on a command line do.
    pub settings: Vec<Setting>,
    /// Policy documents that take precedence over the user's own.
    #[serde(with = "Raw")]
    pub policy_files: Vec<PathBuf>,
    /// A tool that the policy declares.
    pub tool: Option<String>,
    pub ask: AskPeople,
    /// Where the report is written at the end.
    #[serde(with = "Raw")]
    pub report: Option<PathBuf>,
    /// Whether notes for people are left out of standard error.
    pub is_quiet: bool,
}

/// A value of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Such as `filesystem.readWritePaths`; `sandbox policy schema` has all of them.
    pub key: String,
    /// In JSON, as in a policy document.
    pub value: String,
}

/// Whether questions wait for somebody. A sandbox that outlives its commands has no terminal to ask in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AskPeople {
    /// While `sandbox approve` runs, or another client of the socket for answers. Otherwise they are denied at once.
    #[default]
    IfThere,
    /// Until somebody answers, or the time for that is over.
    Always,
    Never,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartCommand {
    pub kind: CommandKind,
    /// The program, looked up in `PATH` inside, and its arguments.
    pub argv: Vec<Vec<u8>>,
    pub environment: Environment,
    /// None: that of the sandbox.
    #[serde(with = "Raw")]
    pub cwd: Option<PathBuf>,
    /// None: that of the supervisor.
    pub umask: Option<u32>,
    /// Lower than those of the sandbox.
    pub rlimits: Vec<(Resource, u64)>,
    pub streams: CommandStreams,
}

/// Names and values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Environment {
    /// The sandbox's own, with these set.
    Extended(Vec<(Vec<u8>, Vec<u8>)>),
    /// Nothing but these.
    Exactly(Vec<(Vec<u8>, Vec<u8>)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandStreams {
    /// Standard input, output and error come with the request. With a terminal or a directory among them the command
    /// fails to start.
    Descriptors,
    /// One terminal inside for all three. Its other end comes with [`Response::Starting`].
    Terminal(TerminalSize),
    /// The supervisor holds their other ends: it keeps what the command writes, and clients attach to it.
    Held(HeldStreams),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldStreams {
    /// None: pipes.
    pub terminal: Option<TerminalSize>,
    /// Without a terminal: whether there is something to read, which a client types. Otherwise its input is empty.
    pub has_input: bool,
    /// Without a terminal: whether both outputs have a pipe each. What was written to one of them is then told from what was written to
    /// the other, and no longer exactly in which order. Otherwise one pipe is both.
    pub has_stderr_apart: bool,
    /// Whether the client that starts it is attached from its beginning, and types.
    pub is_attached: bool,
}

/// Where a command wrote something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputStream {
    /// Or to either of both, where they are one pipe or a terminal.
    Stdout,
    Stderr,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    pub rows: u16,
    pub columns: u16,
    /// Of the whole window; 0 if it is not known.
    pub pixel_width: u16,
    pub pixel_height: u16,
}

impl From<Winsize> for TerminalSize {
    fn from(size: Winsize) -> Self {
        let Winsize { ws_row, ws_col, ws_xpixel, ws_ypixel } = size;
        Self { rows: ws_row, columns: ws_col, pixel_width: ws_xpixel, pixel_height: ws_ypixel }
    }
}

impl From<TerminalSize> for Winsize {
    fn from(size: TerminalSize) -> Self {
        let TerminalSize { rows, columns, pixel_width, pixel_height } = size;
        Self { ws_row: rows, ws_col: columns, ws_xpixel: pixel_width, ws_ypixel: pixel_height }
    }
}

/// From the supervisor to a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromSupervisor {
    Response(Response),
    Event(Event),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Response {
    Hello {
        version: u32,
    },
    Created {
        session: String,
    },
    Starting {
        command: CommandId,
    },
    Done,
    Status {
        commands: Vec<CommandStatus>,
    },
    Refused(Refusal),
    Attached(Attached),
    Inspected(SessionStatus),
    /// The project comes with it as commands see it (`O_PATH`).
    ProjectHeld,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    pub command: CommandId,
    /// The number of the first byte that comes.
    pub cursor: u64,
    pub is_typist: bool,
    pub has_terminal: bool,
}

/// What a session does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// Since commands could be started.
    pub age_ms: u64,
    /// Since its last command ended. None while one runs.
    pub idle_ms: Option<u64>,
    /// Connected, the one that asks included.
    pub clients: u32,
    /// Waiting for an answer.
    pub questions: u32,
    /// Until its time to live is over.
    pub expires_in_ms: Option<u64>,
    /// Until it has been idle for too long. None while a command runs.
    pub idle_expires_in_ms: Option<u64>,
    pub is_ending: bool,
    pub commands: Vec<CommandDetails>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandDetails {
    pub command: CommandId,
    /// On the host; none before its exec.
    pub pid: Option<u32>,
    /// The beginning of its command line.
    #[serde(with = "Truncated::<MAX_COMMAND_TEXT>")]
    pub text: String,
    pub running_ms: u64,
    /// None where its streams are a client's own.
    pub held: Option<HeldStatus>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldStatus {
    pub has_terminal: bool,
    /// Written so far.
    pub output_bytes: u64,
    pub watchers: u32,
    pub has_typist: bool,
}

/// Why a request was not carried out. Nothing of it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub kind: RefusalKind,
    #[serde(with = "Truncated::<MAX_TEXT>")]
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefusalKind {
    /// The two sides speak different versions.
    Version,
    /// It cannot be decoded, exceeds a limit, names no signal, or has other descriptors than it says.
    Malformed,
    /// It is none that can come now.
    OutOfOrder,
    /// No command of this number is running.
    UnknownCommand,
    TooManyCommands,
    /// What it asks for could not be done.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandStatus {
    pub command: CommandId,
    /// On the host; none before its exec.
    pub pid: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// Its exec succeeded. The pid is the host's; in a sandbox that ends with its command it is not looked up, and
    /// [`Request::Status`] tells it.
    CommandStarted {
        command: CommandId,
        pid: Option<u32>,
    },
    /// Nothing of it ran. The code is what a shell would end with: 126, 127, or 125 for a failure of ours.
    CommandFailed {
        command: CommandId,
        exit_code: i32,
        #[serde(with = "Truncated::<MAX_TEXT>")]
        message: String,
    },
    CommandExited {
        command: CommandId,
        cause: ExitCause,
    },
    /// A signal stopped it (job control). Told in a sandbox that ends with its command, which stops with its caller.
    CommandStopped {
        command: CommandId,
        signal: i32,
    },
    /// A question waits for an answer, in the terminal or from `sandbox approve`. The text says which program wants what.
    QuestionAsked {
        question: u64,
        #[serde(with = "Truncated::<MAX_TEXT>")]
        text: String,
    },
    /// It is no longer open: somebody answered, time did, or nobody waits for it any more.
    QuestionAnswered {
        question: u64,
        is_allowed: bool,
        /// Where the answer came from, in the word of the audit log.
        #[serde(with = "Truncated::<MAX_TEXT>")]
        by: String,
    },
    /// The sandbox has reached a limit for the first time. The name is that of its option.
    LimitReached {
        #[serde(with = "Truncated::<MAX_TEXT>")]
        limit: String,
    },
    /// Output of a command that the client is attached to. Bytes between two events were dropped: nobody waits for a client
    /// that reads too slowly.
    Output {
        command: CommandId,
        /// The number of the first byte.
        cursor: u64,
        stream: OutputStream,
        bytes: Vec<u8>,
    },
    /// Something happened that stands in recordings as a marker: a verdict about a path or the network, a limit, an attempt to
    /// break out. For clients that record what their commands write.
    Marked {
        #[serde(with = "Truncated::<MAX_TEXT>")]
        text: String,
    },
    /// The sandbox is gone, or never came about. If it had to be killed, the ends of its last commands are not told.
    Ended {
        exit_code: i32,
        #[serde(with = "Truncated::<MAX_TEXT>")]
        error: Option<String>,
    },
}

impl Event {
    /// The command that it is about.
    pub(crate) fn command(&self) -> Option<CommandId> {
        match self {
            Self::CommandStarted { command, .. }
            | Self::CommandFailed { command, .. }
            | Self::CommandExited { command, .. }
            | Self::CommandStopped { command, .. }
            | Self::Output { command, .. } => Some(*command),
            Self::QuestionAsked { .. }
            | Self::QuestionAnswered { .. }
            | Self::LimitReached { .. }
            | Self::Marked { .. }
            | Self::Ended { .. } => None,
        }
    }

    /// Whether what is inside causes as many of them as it likes. They are not kept for a client that does not read them,
    /// or a command could end its sandbox by them.
    pub(crate) fn may_be_lost(&self) -> bool {
        matches!(
            self,
            Self::CommandStopped { .. }
                | Self::QuestionAsked { .. }
                | Self::QuestionAnswered { .. }
                | Self::Marked { .. }
        )
    }
}

impl Request {
    /// How many descriptors come with it.
    pub(crate) fn descriptors(&self) -> usize {
        match self {
            Self::StartCommand(start) => match start.streams {
                CommandStreams::Descriptors => 3,
                CommandStreams::Terminal(_) | CommandStreams::Held(_) => 0,
            },
            Self::Hello { .. }
            | Self::Create(_)
            | Self::Signal { .. }
            | Self::ResizeTerminal { .. }
            | Self::Status
            | Self::End { .. }
            | Self::Attach { .. }
            | Self::Input { .. }
            | Self::Detach { .. }
            | Self::Inspect
            | Self::Extend { .. }
            | Self::HoldProject
            | Self::WriteCheckpoints
            | Self::CloseInput { .. }
            | Self::Claim(_) => 0,
        }
    }

    /// The signal that it sends.
    pub(crate) fn signal(&self) -> Option<i32> {
        match self {
            Self::Signal { signal, .. } | Self::End { signal, .. } => Some(*signal),
            Self::Hello { .. }
            | Self::Create(_)
            | Self::StartCommand(_)
            | Self::ResizeTerminal { .. }
            | Self::Status
            | Self::Attach { .. }
            | Self::Input { .. }
            | Self::Detach { .. }
            | Self::Inspect
            | Self::Extend { .. }
            | Self::HoldProject
            | Self::WriteCheckpoints
            | Self::CloseInput { .. }
            | Self::Claim(_) => None,
        }
    }
}

impl WireMessage for Request {
    const MAX_BYTES: usize = 128 * 1024;
}

impl WireMessage for FromSupervisor {
    const MAX_BYTES: usize = 32 * 1024;
}

#[cfg(test)]
#[path = "golden_tests.rs"]
mod golden_tests;
#[cfg(test)]
#[path = "interface_tests.rs"]
mod tests;
