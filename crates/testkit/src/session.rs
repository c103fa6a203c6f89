//! A sandbox that outlives its commands, for tests: `sandbox supervise` as a process, and a client of it.

use std::fs;
use std::io::{Read as _, Seek as _};
use std::os::fd::AsFd as _;
use std::process::Child;

use palisade_launch::{CommandId, CommandKind, ExitCause};
use palisade_supervisor::control::client::Client;
use palisade_supervisor::control::interface::{
    AskPeople, CommandStreams, CreateSandbox, Environment, Event, Grace, Request, Response,
    Setting, StartCommand,
};
use palisade_sys::proc::sig;
use serde_json::json;

use crate::world::World;
use crate::{binaries, must};

/// A running sandbox. Dropped, it ends.
#[derive(Debug)]
pub struct Session {
    pub client: Client,
    supervisor: Child,
}

impl Session {
    #[must_use]
    pub fn start(world: &World, options: &[&str]) -> Self {
        Self::start_with(world, options, &[])
    }

    /// With more variables in the caller's environment.
    #[must_use]
    pub fn start_with(world: &World, options: &[&str], variables: &[(&str, &str)]) -> Self {
        match Self::try_start(world, options, variables) {
            Ok(session) => session,
            Err(why) => panic!("no sandbox: {why}"),
        }
    }

    /// Or why there is none.
    pub fn try_start(
        world: &World,
        options: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Self, String> {
        let mut command = world.host_command(binaries::sandbox().as_os_str());
        command.envs(variables.iter().copied());
        let sandbox = CreateSandbox { is_quiet: true, ..sandbox_of(options) };
        let (client, mut supervisor, response) =
            Client::start(command, sandbox).map_err(|error| error.to_string())?;
        match response {
            Response::Created { .. } => Ok(Self { client, supervisor }),
            other => {
                let _ = supervisor.wait();
                Err(format!("{other:?}"))
            }
        }
    }

    /// Of the supervisor.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.supervisor.id()
    }

    /// The child of the supervisor with this name.
    #[must_use]
    pub fn helper(&self, name: &str) -> u32 {
        let is_it = |pid: &u32| {
            let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            comm.trim_end() == name
        };
        match children(self.pid()).into_iter().find(is_it) {
            Some(pid) => pid,
            None => panic!("no {name}"),
        }
    }

    /// On the host: pid 1 and the commands with all their descendants.
    #[must_use]
    pub fn processes_inside(&self) -> Vec<u32> {
        let mut found = Vec::new();
        let mut next = vec![self.helper("sandbox-spawner"), self.helper("sandbox")];
        while let Some(pid) = next.pop() {
            let below = children(pid);
            found.extend(&below);
            next.extend(below);
        }
        found.push(self.helper("sandbox"));
        found
    }

    /// A request for a command with these words, and descriptors for its streams.
    #[must_use]
    pub fn request<W: AsRef<str>>(words: &[W]) -> StartCommand {
        StartCommand {
            kind: CommandKind::Program,
            argv: words.iter().map(|word| word.as_ref().as_bytes().to_vec()).collect(),
            environment: Environment::Extended(Vec::new()),
            cwd: None,
            umask: None,
            rlimits: Vec::new(),
            streams: CommandStreams::Descriptors,
        }
    }

    /// A request to end everything inside without asking it to.
    #[must_use]
    pub fn end_at_once() -> Request {
        Request::End { signal: sig::SIGTERM, grace: Grace::Milliseconds(0) }
    }

    /// Starts a command that reads nothing and writes to this file.
    pub fn start_command(&mut self, start: StartCommand, output: &fs::File) -> CommandId {
        let null = must(fs::File::open("/dev/null"), "no /dev/null");
        let streams = [null.as_fd(), output.as_fd(), output.as_fd()];
        match self.client.ask(&Request::StartCommand(start), &streams) {
            Ok((Response::Starting { command }, _)) => command,
            other => panic!("not started: {other:?}"),
        }
    }

    /// Waits for the end of this command.
    pub fn end_of(&mut self, command: CommandId) -> Event {
        self.wait_for(|event| match event {
            Event::CommandExited { command: ended, .. }
            | Event::CommandFailed { command: ended, .. } => *ended == command,
            _ => false,
        })
    }

    /// Waits for an event of this kind.
    pub fn wait_for(&mut self, is_it: impl Fn(&Event) -> bool) -> Event {
        loop {
            match self.client.next_event() {
                Ok(event) if is_it(&event) => return event,
                Ok(Event::Ended { exit_code, error }) => {
                    panic!("the sandbox ended: {exit_code} {error:?}")
                }
                Ok(_) => {}
                Err(error) => panic!("the connection ended: {error}"),
            }
        }
    }

    /// What a command wrote, and how it ended.
    pub fn run(&mut self, start: StartCommand) -> (String, Event) {
        let mut file = must(tempfile::tempfile(), "no temporary file");
        let command = self.start_command(start, &file);
        let event = self.end_of(command);
        let mut text = String::new();
        must(file.rewind(), "cannot read what was written");
        must(file.read_to_string(&mut text), "cannot read what was written");
        (text, event)
    }

    /// What a command with these words wrote.
    pub fn output_of<W: AsRef<str>>(&mut self, words: &[W]) -> String {
        self.run(Self::request(words)).0
    }

    /// The code that a command with these words ended with.
    pub fn code_of<W: AsRef<str>>(&mut self, words: &[W]) -> Option<i32> {
        match self.run(Self::request(words)).1 {
            Event::CommandExited { cause: ExitCause::Code(code), .. } => Some(code),
            _ => None,
        }
    }

    /// Waits for the supervisor's end, and says its code.
    pub fn wait(&mut self) -> Option<i32> {
        must(self.supervisor.wait(), "the supervisor").code()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It ends everything inside, if there still is something.
        let _ = self.client.ask(&Self::end_at_once(), &[]);
        let _ = self.supervisor.wait();
    }
}

fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Whether there is a process of this number that has not ended.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| !rest.starts_with(" Z")))
}

/// Whether these bytes are anywhere in what a process can read of its own memory.
#[must_use]
pub fn memory_holds(pid: u32, bytes: &[u8]) -> bool {
    use std::os::unix::fs::FileExt as _;
    let maps = must(fs::read_to_string(format!("/proc/{pid}/maps")), "cannot read its maps");
    let memory = must(fs::File::open(format!("/proc/{pid}/mem")), "cannot open its memory");
    maps.lines().any(|line| {
        let mut words = line.split_whitespace();
        let (Some(range), Some(rights)) = (words.next(), words.next()) else { return false };
        let Some((first, last)) = range.split_once('-') else { return false };
        let parse = |text| u64::from_str_radix(text, 16).unwrap_or(0);
        let (first, last) = (parse(first), parse(last));
        // Files are nobody's secret, and a program's own are large.
        if !rights.starts_with("rw") {
            return false;
        }
        let mut content = vec![0; usize::try_from(last - first).unwrap_or(0)];
        let read = memory.read_at(&mut content, first).unwrap_or(0);
        content[..read].windows(bytes.len()).any(|window| window == bytes)
    })
}

/// What options of `sandbox run` say, as far as tests of sessions use them.
///
/// # Panics
///
/// If it is another option.
#[must_use]
pub fn sandbox_of(options: &[&str]) -> CreateSandbox {
    let mut sandbox = CreateSandbox::default();
    let mut words = options.iter().copied();
    while let Some(option) = words.next() {
        let mut value = || match words.next() {
            Some(value) => value,
            None => panic!("{option} without a value"),
        };
        let mut set = |key: &str, value: serde_json::Value| {
            let (key, value) = (key.to_owned(), value.to_string());
            sandbox.settings.push(Setting { key, value });
        };
        match option {
            "--quiet" => sandbox.is_quiet = true,
            "--report" => sandbox.report = Some(value().into()),
            "--policy" => sandbox.policy_files.push(value().into()),
            "--ask-in" => match value() {
                "approve" => sandbox.ask = AskPeople::Always,
                other => panic!("--ask-in {other}"),
            },
            "--ro" => set("filesystem.readOnlyPaths", json!([value()])),
            "--rw" => set("filesystem.readWritePaths", json!([value()])),
            "--level" => set("isolationLevel", json!(value())),
            "--no-userns" => set("process.userNamespace", json!(false)),
            "--static" => set("mode", json!("static")),
            "--network" => set("network.mode", json!(value())),
            "--memory" => set("resources.maxMemory", json!(value())),
            "--ask-timeout" => set("askTimeout", json!(time(value()))),
            "--timeout" => set("resources.timeout", json!(time(value()))),
            "--grace" => set("resources.grace", json!(time(value()))),
            "--env" => {
                let Some((name, value)) = value().split_once('=') else { panic!("--env NAME") };
                set("process.env", json!({ name: value }));
            }
            other => panic!("no test of a session uses {other}"),
        }
    }
    sandbox
}

/// A time without a unit is in seconds.
fn time(text: &str) -> String {
    if text.ends_with('s') { text.to_owned() } else { format!("{text}s") }
}
