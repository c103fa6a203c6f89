//! Commands whose streams the supervisor holds: it keeps what they write, and clients attach to it and leave again.
//!
//! No command waits for a client, with one exception: the one who types may be slower than the command writes, as at any
//! terminal, as long as it reads at all. Everybody else misses what exceeds the replay.

use super::endpoint::ClientId;
use super::held_outputs::HeldOutputs;
use super::interface::{
    AttachRole, Attached, Event, HeldStatus, MAX_OUTPUT, OutputStart, OutputStream, TerminalSize,
};
use super::outbox::Outbox;
use super::output_log::{CommandEnd, OutputLog, OutputLogs};
use super::replay::{Replay, Replayed};
use crate::poll_set::{PollSet, Ready};
use crate::recording::{RecordingDirectory, echoes};
use jiff::Timestamp;
use palisade_launch::{CommandId, ExitCause};
use palisade_record::cast::CastWriter;
use palisade_sys::tty;
use rustix::event::PollFlags;
use rustix::io::Errno;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

/// The clock and signals must not wait for the end of a flood.
const READS_A_TURN: usize = 8;
/// As many as two pipes can hold at most (1 MiB each, pipe(7)): what a command wrote before its end is among them, whatever
/// others go on writing.
const LAST_READS: usize = 2 * 64;
/// Typed, and not read by the command. Beyond it, the client's requests wait.
const MAX_TYPED: usize = 64 * 1024;
/// So far may the client that types be behind before the command waits for it.
const MAX_BEHIND: u64 = 256 * 1024;
/// A client that types and takes nothing for so long is overtaken.
const STUCK: Duration = Duration::from_secs(5);
/// Past the moment in which it is, whichever clock was read first.
const OVERTAKING: Duration = Duration::from_millis(10);
/// What a command wrote to its terminal may take this long to come out of it when it has ended.
const LAST_OUTPUT: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(crate) struct HeldCommands {
    held: BTreeMap<CommandId, HeldCommand>,
    logs: Option<OutputLogs>,
    recordings: Option<RecordingDirectory>,
    /// What went wrong with them, for people.
    notes: Vec<String>,
}

/// A command that was just started.
#[derive(Debug)]
pub(crate) struct NewHeld {
    pub(crate) outputs: HeldOutputs,
    pub(crate) input: Option<OwnedFd>,
    pub(crate) recording: Option<CastWriter>,
    pub(crate) has_terminal: bool,
    /// Its command line, masked.
    pub(crate) title: String,
    pub(crate) attached: Option<ClientId>,
}

/// What became of something typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typing {
    Done,
    /// The command has not read what others typed before.
    Unread,
    /// Another client types there, or nobody can.
    NotHere,
}

#[derive(Debug)]
struct HeldCommand {
    outputs: HeldOutputs,
    /// Our end of its input, where that is a pipe. None: it has a terminal, an empty input, or its input has ended.
    input: Option<OwnedFd>,
    /// Whether its input ends when it has everything that was typed.
    input_ends: bool,
    has_terminal: bool,
    /// Whether the clients were told that it runs.
    is_started: bool,
    title: String,
    started_at: Timestamp,
    typed: VecDeque<u8>,
    replay: Replay,
    log: Option<OutputLog>,
    recording: Option<CastWriter>,
    watchers: BTreeMap<ClientId, Watcher>,
    typist: Option<ClientId>,
    /// Whether this one has typed: only then is it the one who waits for the command to read.
    typist_has_typed: bool,
    end: Option<End>,
}

#[derive(Debug)]
struct Watcher {
    /// The number of the byte that it gets next.
    next: u64,
    /// When it last took something.
    moved: Instant,
}

#[derive(Debug)]
struct End {
    event: Event,
    /// The last of its output is there by then.
    settled_by: Instant,
    /// Whether it is there.
    is_settled: bool,
}

impl HeldCommands {
    /// `logs` is the directory for the output of commands.
    pub(crate) fn new(logs: Option<OwnedFd>, recordings: Option<RecordingDirectory>) -> Self {
        let logs = logs.map(OutputLogs::new);
        Self { held: BTreeMap::new(), logs, recordings, notes: Vec::new() }
    }

    /// Of a command that is about to be started. None where commands are not recorded.
    pub(crate) fn begin_recording(
        &mut self,
        command: CommandId,
        size: Option<TerminalSize>,
        title: &str,
    ) -> Result<Option<CastWriter>, String> {
        let size = size.map(|size| (size.columns, size.rows));
        self.recordings.as_mut().map(|all| all.begin(command, size, title)).transpose()
    }

    /// It was not started.
    pub(crate) fn forget_recording(&mut self, command: CommandId) {
        if let Some(recordings) = &mut self.recordings {
            recordings.forget(command);
        }
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.recordings.is_some()
    }

    /// Something happened that stands in every recording.
    pub(crate) fn mark(&mut self, text: &str) {
        let running = self.held.values_mut().filter(|held| held.end.is_none());
        running.filter_map(|held| held.recording.as_mut()).for_each(|it| it.marker(text));
    }

    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    pub(crate) fn add(
        &mut self,
        command: CommandId,
        NewHeld { outputs, input, recording, has_terminal, title, attached }: NewHeld,
    ) {
        let watcher = |client| (client, Watcher { next: 0, moved: Instant::now() });
        let can_type = has_terminal || input.is_some();
        let has_two = outputs.are_apart();
        let log = self.logs.as_mut().and_then(|logs| logs.open(command, has_two));
        let held = HeldCommand {
            outputs,
            input,
            input_ends: false,
            has_terminal,
            is_started: false,
            title,
            started_at: Timestamp::now(),
            typed: VecDeque::new(),
            replay: Replay::default(),
            log,
            recording,
            watchers: attached.into_iter().map(watcher).collect(),
            typist: attached.filter(|_| can_type),
            typist_has_typed: false,
            end: None,
        };
        self.held.insert(command, held);
    }

    /// The clients have been told that it runs: what it writes may follow. Its output can be here before the spawner
    /// says that its exec succeeded, and a client that waits for the start would not expect it.
    pub(crate) fn started(&mut self, command: CommandId, outbox: &mut Outbox<'_>) {
        if let Some(held) = self.held.get_mut(&command) {
            held.is_started = true;
            held.serve(command, outbox, Instant::now());
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    pub(crate) fn status(&self, command: CommandId) -> Option<HeldStatus> {
        self.held.get(&command).map(|held| HeldStatus {
            has_terminal: held.has_terminal,
            output_bytes: held.replay.end(),
            watchers: u32::try_from(held.watchers.len()).unwrap_or(u32::MAX),
            has_typist: held.typist.is_some(),
        })
    }

    /// The command that was started last and has not ended.
    pub(crate) fn latest(&self) -> Option<CommandId> {
        let running = self.held.iter().filter(|(_, held)| held.end.is_none());
        running.map(|(command, _)| *command).next_back()
    }

    /// None if no such command is held, or its end is on record. One that has just ended still has to tell of it.
    pub(crate) fn attach(
        &mut self,
        command: CommandId,
        client: ClientId,
        (from, role): (OutputStart, AttachRole),
    ) -> Option<Attached> {
        let held = self.held.get_mut(&command).filter(|held| !held.is_settled())?;
        let cursor = match from {
            OutputStart::Kept => held.replay.start(),
            OutputStart::Byte(number) => number.clamp(held.replay.start(), held.replay.end()),
            OutputStart::Now => held.replay.end(),
        };
        held.watchers.insert(client, Watcher { next: cursor, moved: Instant::now() });
        let can_type = held.end.is_none() && (held.has_terminal || held.input.is_some());
        if role == AttachRole::Type && can_type {
            held.typist.get_or_insert(client);
        }
        let is_typist = held.typist == Some(client);
        Some(Attached { command, cursor, is_typist, has_terminal: held.has_terminal })
    }

    /// Whether it was attached.
    pub(crate) fn detach(&mut self, command: CommandId, client: ClientId) -> bool {
        self.held.get_mut(&command).is_some_and(|held| held.lose(client))
    }

    /// It is gone.
    pub(crate) fn forget_client(&mut self, client: ClientId) {
        for held in self.held.values_mut() {
            held.lose(client);
        }
    }

    /// Types into the command's terminal or input.
    pub(crate) fn type_in(&mut self, command: CommandId, client: ClientId, bytes: &[u8]) -> Typing {
        let held = self.held.get_mut(&command).filter(|held| held.typist == Some(client));
        let Some(held) = held.filter(|held| held.may_type()) else { return Typing::NotHere };
        // The requests of one client wait; those who come one after another are told.
        if held.typed.len() > MAX_TYPED {
            return Typing::Unread;
        }
        let records_input = self.recordings.as_ref().is_some_and(RecordingDirectory::records_input);
        if let Some(recording) = held.recording.as_mut().filter(|_| records_input)
            && echoes(held.outputs.terminal())
        {
            recording.input(bytes);
        }
        held.typist_has_typed = true;
        held.typed.extend(bytes);
        held.write();
        Typing::Done
    }

    /// Nothing more is typed. False if this client does not type there, or it has a terminal.
    pub(crate) fn close_input(&mut self, command: CommandId, client: ClientId) -> bool {
        let held = self.held.get_mut(&command).filter(|held| held.typist == Some(client));
        let Some(held) = held.filter(|held| held.input.is_some()) else { return false };
        held.input_ends = true;
        held.write();
        true
    }

    /// Whether a client types faster than its command reads.
    pub(crate) fn is_congested(&self, client: ClientId) -> bool {
        let is_behind = |held: &HeldCommand| {
            held.typist == Some(client) && held.typist_has_typed && held.typed.len() > MAX_TYPED
        };
        self.held.values().any(is_behind)
    }

    /// None if its terminal is not held here.
    pub(crate) fn resize(
        &mut self,
        command: CommandId,
        size: TerminalSize,
    ) -> Option<palisade_sys::Result<()>> {
        let held = self.held.get_mut(&command).filter(|held| held.has_terminal)?;
        if let Some(recording) = &mut held.recording {
            recording.resize(size.columns, size.rows);
        }
        Some(tty::set_window_size(held.outputs.terminal(), size.into()))
    }

    /// The clients that are told of its end after its output.
    pub(crate) fn watchers(&self, command: CommandId) -> Vec<ClientId> {
        let held = self.held.get(&command);
        held.map(|held| held.watchers.keys().copied().collect()).unwrap_or_default()
    }

    /// The command has ended; `event` says how.
    pub(crate) fn ended(&mut self, command: CommandId, event: Event) {
        if let Some(held) = self.held.get_mut(&command) {
            // A pipe has everything at once.
            let time = if held.has_terminal { LAST_OUTPUT } else { Duration::ZERO };
            let settled_by = Instant::now() + time;
            held.end = Some(End { event, settled_by, is_settled: false });
            held.typist = None;
            held.input = None;
            held.read(LAST_READS);
        }
    }

    pub(crate) fn register<'fd>(&'fd self, set: &mut PollSet<'fd>) {
        for (command, held) in &self.held {
            let mut events = PollFlags::empty();
            events.set(PollFlags::IN, held.may_read(Instant::now()));
            let has_typed = !held.typed.is_empty();
            match &held.input {
                Some(input) if has_typed => {
                    set.add(key(*command, Part::Input), input.as_fd(), PollFlags::OUT);
                }
                Some(_) => {}
                None => events.set(PollFlags::OUT, has_typed),
            }
            // That the other end is gone is reported in any case, and over and over.
            if !events.is_empty() {
                for (stream, output) in held.outputs.open() {
                    set.add(key(*command, Part::Output(stream)), output.as_fd(), events);
                }
            }
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let deadlines = self.held.values().filter_map(|held| match &held.end {
            Some(end) if !end.is_settled => Some(end.settled_by),
            Some(_) => None,
            None => held.overtakes_at(),
        });
        let recordings =
            self.held.values().filter_map(|held| held.recording.as_ref()?.next_flush());
        deadlines.chain(recordings).min()
    }

    /// Moves what is there, and lets go of commands that have ended and were told of.
    pub(crate) fn handle(&mut self, ready: &Ready, outbox: &mut Outbox<'_>) {
        let now = Instant::now();
        for (command, held) in &mut self.held {
            let events = ready.at(key(*command, Part::Output(OutputStream::Stdout)))
                | ready.at(key(*command, Part::Output(OutputStream::Stderr)));
            // That nobody reads its input any more is an event, too.
            let input_events = ready.at(key(*command, Part::Input));
            if events.contains(PollFlags::OUT) || !input_events.is_empty() {
                held.write();
            }
            if events.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                held.read(READS_A_TURN);
            }
            if let Some(recording) = &mut held.recording {
                recording.flush_if_due(now);
                self.notes.extend(recording.take_failure());
            }
            held.settle(now);
            held.serve(*command, outbox, now);
            if held.is_settled() && held.watchers.is_empty() {
                held.replay.forget();
            }
        }
        // Whoever was left behind in the background may still write to a pipe; with its terminal it is hung up.
        self.held.retain(|_, held| {
            let is_done = held.is_settled() && held.watchers.is_empty();
            !is_done || !(held.outputs.are_closed() || held.has_terminal)
        });
    }

    /// The sandbox is gone: whatever was written comes out now.
    pub(crate) fn conclude(&mut self, outbox: &mut Outbox<'_>) {
        for (command, held) in &mut self.held {
            held.read(LAST_READS);
            held.outputs.close();
            held.settle(Instant::now());
            held.serve_all(*command, outbox);
        }
    }
}

/// One of the ends that we hold of a command.
#[derive(Clone, Copy)]
enum Part {
    Output(OutputStream),
    Input,
}

/// In a poll set.
fn key(CommandId(number): CommandId, part: Part) -> usize {
    let part = match part {
        Part::Output(OutputStream::Stdout) => 0,
        Part::Output(OutputStream::Stderr) => 1,
        Part::Input => 2,
    };
    usize::try_from(number).unwrap_or(usize::MAX).saturating_mul(3).saturating_add(part)
}

impl HeldCommand {
    fn may_type(&self) -> bool {
        self.has_terminal || self.input.is_some() && !self.input_ends
    }

    fn lose(&mut self, client: ClientId) -> bool {
        if self.typist == Some(client) {
            self.typist = None;
            self.typist_has_typed = false;
        }
        self.watchers.remove(&client).is_some()
    }

    fn write(&mut self) {
        while !self.typed.is_empty() {
            let to = self.input.as_ref().unwrap_or(self.outputs.terminal());
            match rustix::io::write(to, self.typed.as_slices().0) {
                Ok(count) => drop(self.typed.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // Nobody reads it any more.
                Err(_) => {
                    self.typed.clear();
                    self.input_ends = true;
                }
            }
        }
        if self.input_ends {
            self.input = None;
        }
    }

    fn read(&mut self, most: usize) {
        let mut buffer = [0; MAX_OUTPUT];
        for _ in 0..most {
            if !self.may_read(Instant::now()) {
                return;
            }
            let Some((stream, count)) = self.outputs.read(&mut buffer) else { return };
            self.keep(stream, &buffer[..count]);
        }
    }

    fn keep(&mut self, stream: OutputStream, bytes: &[u8]) {
        self.replay.push(stream, bytes);
        if let Some(recording) = &mut self.recording {
            recording.output(bytes);
        }
        if self.log.as_mut().is_some_and(|log| log.append(stream, bytes).is_err()) {
            self.log = None;
        }
    }

    /// How far the client that types is behind, if the command waits for it.
    fn slow_typist(&self) -> Option<&Watcher> {
        let typist = self.typist.filter(|_| self.end.is_none())?;
        let watcher = self.watchers.get(&typist)?;
        (self.replay.end().saturating_sub(watcher.next) > MAX_BEHIND).then_some(watcher)
    }

    fn may_read(&self, now: Instant) -> bool {
        self.slow_typist().is_none_or(|slow| now.saturating_duration_since(slow.moved) > STUCK)
    }

    fn overtakes_at(&self) -> Option<Instant> {
        let end = self.slow_typist().map(|slow| slow.moved + STUCK)?;
        // Once it is overtaken, time alone changes nothing more.
        let end = end + OVERTAKING;
        (end > Instant::now()).then_some(end)
    }

    fn settle(&mut self, now: Instant) {
        let Some(end) = self.end.as_mut().filter(|end| !end.is_settled) else { return };
        end.is_settled = self.outputs.are_closed() || end.settled_by <= now;
        if end.is_settled {
            self.log_end();
        }
    }

    /// Who asks later is told how it ended, when all of its output is there.
    fn log_end(&mut self) {
        let Some((log, end)) = self.log.as_ref().zip(self.end.as_ref()) else { return };
        let (exit_code, signal, message) = match &end.event {
            Event::CommandExited { cause: ExitCause::Code(code), .. } => (Some(*code), None, None),
            Event::CommandExited { cause: ExitCause::Signal(signal), .. } => {
                (None, Some(*signal), None)
            }
            Event::CommandFailed { exit_code, message, .. } => {
                (Some(*exit_code), None, Some(message.clone()))
            }
            _ => return,
        };
        // Like the log itself: no command fails for it.
        let _ = log.write_end(&CommandEnd {
            command: self.title.clone(),
            started_at: self.started_at,
            ended_at: Timestamp::now(),
            exit_code,
            signal,
            message,
            has_terminal: self.has_terminal,
        });
    }

    /// Whether it has ended and all of its output is there.
    fn is_settled(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.is_settled)
    }

    /// Sends each watcher what it has room for, and at last how the command ended.
    fn serve(&mut self, command: CommandId, outbox: &mut Outbox<'_>, now: Instant) {
        if !self.is_started && self.end.is_none() {
            return;
        }
        let is_settled = self.is_settled();
        let Self { watchers, replay, end, .. } = self;
        watchers.retain(|client, watcher| {
            while watcher.next < replay.end() && outbox.is_reading(*client) {
                send_next(command, replay, (*client, watcher), outbox);
                watcher.moved = now;
            }
            let is_told = is_settled && watcher.next >= replay.end();
            if let Some(end) = end.as_ref().filter(|_| is_told) {
                outbox.tell(*client, end.event.clone());
            }
            !is_told
        });
    }

    fn serve_all(&mut self, command: CommandId, outbox: &mut Outbox<'_>) {
        for (client, mut watcher) in std::mem::take(&mut self.watchers) {
            while watcher.next < self.replay.end() {
                send_next(command, &self.replay, (client, &mut watcher), outbox);
            }
            if let Some(end) = &self.end {
                outbox.tell(client, end.event.clone());
            }
        }
    }
}

fn send_next(
    command: CommandId,
    replay: &Replay,
    (client, watcher): (ClientId, &mut Watcher),
    outbox: &mut Outbox<'_>,
) {
    let Replayed { cursor, stream, bytes } = replay.read(watcher.next, MAX_OUTPUT);
    watcher.next = cursor + bytes.len() as u64;
    outbox.tell(client, Event::Output { command, cursor, stream, bytes });
}

#[cfg(test)]
#[path = "held_tests.rs"]
mod tests;
