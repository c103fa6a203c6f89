//! What a new sandbox is: the options of `sandbox create`, typed. They count as options on a command line do, so a policy of the
//! organisation stays in force. What the options mean is not decided here.

use crate::error::{Error, Result};
use crate::program::{Call, Program};
use serde::Deserialize;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A project that is copied may be large.
pub(crate) const CREATE_PATIENCE: Duration = Duration::from_secs(600);

/// How the project stays as it is until changes are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transaction {
    /// An overlay, or a copy where none can be mounted.
    Overlay,
    /// A copy of the project.
    Copy,
}

/// Whether questions wait for an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ask {
    /// While `sandbox approve` or another client is there; otherwise they are denied at once.
    #[default]
    WhileWatched,
    /// Until somebody answers, or the time for that is over. What a program that answers needs ([`Sandbox::questions`](crate::Sandbox::questions)).
    Always,
    /// Everything that would be asked is denied.
    Never,
}

/// What of the network a sandbox has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// A loopback device of its own.
    None,
    /// The hosts that are allowed, by name.
    Proxy,
    /// Every host except private addresses.
    Nat,
    /// That of the host. The reason is recorded.
    Host {
        /// Why it is needed.
        reason: String,
    },
}

/// A sandbox to be made. Begin with [`Sandbox::create`](crate::Sandbox::create), end with [`Builder::start`].
///
/// ```
/// use palisade::{Ask, Sandbox, Transaction};
/// use std::time::Duration;
///
/// let wanted = Sandbox::create()
///     .project("/home/me/project")
///     .preset("node")
///     .transaction(Transaction::Overlay)
///     .allow_host("registry.example")
///     .time_to_live(Duration::from_secs(3600))
///     .setting("resources.maxMemory", "2g")
///     .ask(Ask::Never);
/// ```
#[derive(Debug, Default)]
#[must_use = "nothing is made before `start`"]
pub struct Builder {
    program: Option<PathBuf>,
    project: Option<PathBuf>,
    name: Option<String>,
    presets: Vec<String>,
    policies: Vec<PathBuf>,
    transaction: Option<Transaction>,
    checkpoint_each: bool,
    environment: Vec<(OsString, OsString)>,
    time_to_live: Option<Duration>,
    idle_time_to_live: Option<Duration>,
    network: Option<Network>,
    allowed_hosts: Vec<String>,
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    settings: Vec<(String, Value)>,
    ask: Ask,
}

/// What `sandbox create --json` prints.
#[derive(Deserialize)]
pub(crate) struct Created {
    pub(crate) id: String,
}

impl Builder {
    /// The directory to work in. That of this process if nothing is said.
    pub fn project(mut self, directory: impl Into<PathBuf>) -> Self {
        self.project = Some(directory.into());
        self
    }

    /// Another word for it, unique among those that run.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Starts from a built-in policy; `sandbox policy presets` lists them. Can be repeated.
    pub fn preset(mut self, name: impl Into<String>) -> Self {
        self.presets.push(name.into());
        self
    }

    /// Reads a policy file, too; it overrides the user's own. Can be repeated.
    pub fn policy_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.policies.push(file.into());
        self
    }

    /// Keeps the project as it is: changes wait for [`Sandbox::apply`](crate::Sandbox::apply).
    pub fn transaction(mut self, how: Transaction) -> Self {
        self.transaction = Some(how);
        self
    }

    /// With a transaction: keeps the state of the project before each command.
    pub fn checkpoint_each_command(mut self) -> Self {
        self.checkpoint_each = true;
        self
    }

    /// A variable of the sandbox. Its value is in no command line, where every user of the host could read it, and is no setting of
    /// the sandbox, whatever its name.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Ends it so long after its start, in whole seconds.
    pub fn time_to_live(mut self, time: Duration) -> Self {
        self.time_to_live = Some(time);
        self
    }

    /// Ends it when no command has run for so long, in whole seconds.
    pub fn idle_time_to_live(mut self, time: Duration) -> Self {
        self.idle_time_to_live = Some(time);
        self
    }

    /// What of the network it has. Nothing, unless the policy says otherwise.
    pub fn network(mut self, network: Network) -> Self {
        self.network = Some(network);
        self
    }

    /// Allows a host, such as `api.example` or `*.example:8443`, and no other that is not allowed, too. Can be repeated.
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.allowed_hosts.push(host.into());
        self
    }

    /// Makes a path readable. Can be repeated.
    pub fn readable(mut self, path: impl Into<PathBuf>) -> Self {
        self.readable.push(path.into());
        self
    }

    /// Makes a path writable. Can be repeated.
    pub fn writable(mut self, path: impl Into<PathBuf>) -> Self {
        self.writable.push(path.into());
        self
    }

    /// Sets any key of the policy, such as `resources.maxMemory` to `"2g"`. Can be repeated.
    pub fn setting(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.settings.push((key.into(), value.into()));
        self
    }

    /// Whether questions wait for an answer.
    pub fn ask(mut self, ask: Ask) -> Self {
        self.ask = ask;
        self
    }

    /// The `sandbox` program, if it is neither in `PATH` nor named by `PALISADE_SANDBOX`.
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// The program that makes it.
    pub(crate) fn named_program(&self) -> Program {
        Program::find(self.program.as_deref())
    }

    /// Its variables, out of the way.
    pub(crate) fn into_environment(self) -> Vec<(OsString, OsString)> {
        self.environment
    }

    /// How it is made.
    pub(crate) fn call(&self) -> Result<Call> {
        let mut call = Call::new(["create", "--json", "--quiet"])
            .option_if("name", self.name.as_ref())
            .option_if("ttl", self.time_to_live.map(seconds))
            .option_if("idle-ttl", self.idle_time_to_live.map(seconds))
            .flag("checkpoint-each", self.checkpoint_each)
            .in_directory(self.project.as_deref())
            .within(CREATE_PATIENCE);
        call = match self.transaction {
            None => call,
            Some(Transaction::Overlay) => call.word("--transaction"),
            Some(Transaction::Copy) => call.option("transaction", "copy"),
        };
        call = match &self.network {
            None => call,
            Some(Network::None) => call.option("network", "none"),
            Some(Network::Proxy) => call.option("network", "proxy"),
            Some(Network::Nat) => call.option("network", "nat"),
            Some(Network::Host { reason }) => {
                call.option("network", "host").option("approve-network-host", reason)
            }
        };
        call = call.option_if("ask-in", self.ask.word());
        for preset in &self.presets {
            call = call.option("preset", preset);
        }
        for (option, paths) in
            [("policy", &self.policies), ("ro", &self.readable), ("rw", &self.writable)]
        {
            for path in paths {
                call = call.option(option, path);
            }
        }
        for host in &self.allowed_hosts {
            call = call.option("allow-host", host);
        }
        for (name, value) in &self.environment {
            call = call.option("env", name).variable(name, value);
        }
        for (key, value) in &self.settings {
            if key.is_empty() || key.contains('=') {
                return Err(Error::invalid(format!("`{key}` is no key of a policy")));
            }
            call = call.option("set", format!("{key}={value}"));
        }
        match &self.project {
            Some(project) => check_directory(project).map(|()| call),
            None => Ok(call),
        }
    }
}

impl Ask {
    /// The word of `--ask-in`.
    pub(crate) fn word(self) -> Option<&'static str> {
        match self {
            Self::WhileWatched => None,
            Self::Always => Some("approve"),
            Self::Never => Some("none"),
        }
    }
}

/// Otherwise the program could not be started, and the error would be about that.
fn check_directory(project: &Path) -> Result<()> {
    match project.metadata() {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(Error::invalid(format!("{} is no directory", project.display()))),
        Err(error) => Err(Error::invalid(format!("{}: {error}", project.display()))),
    }
}

/// What is begun of a second counts.
fn seconds(time: Duration) -> String {
    let begun = u64::from(time.subsec_nanos() > 0);
    format!("{}s", time.as_secs().saturating_add(begun))
}

#[cfg(test)]
mod tests {
    use super::{Ask, Builder, Duration, Network, Transaction};

    #[test]
    fn every_option_reaches_the_program_as_one_word() {
        let builder = Builder::default()
            .name("--force")
            .preset("node")
            .policy_file("p.yaml")
            .transaction(Transaction::Copy)
            .checkpoint_each_command()
            .env("TOKEN", "a secret")
            .time_to_live(Duration::from_millis(1500))
            .network(Network::Host { reason: "a test".to_owned() })
            .allow_host("api.example")
            .readable("/r")
            .writable("/w")
            .setting("resources.maxMemory", "2g")
            .ask(Ask::Always);
        assert_eq!(
            builder.call().unwrap().words(),
            [
                "create",
                "--json",
                "--quiet",
                "--name=--force",
                "--ttl=2s",
                "--checkpoint-each",
                "--transaction=copy",
                "--network=host",
                "--approve-network-host=a test",
                "--ask-in=approve",
                "--preset=node",
                "--policy=p.yaml",
                "--ro=/r",
                "--rw=/w",
                "--allow-host=api.example",
                "--env=TOKEN",
                "--set=resources.maxMemory=\"2g\"",
            ]
        );
    }

    #[test]
    fn a_project_that_is_not_there_is_an_error_about_the_project() {
        let error = Builder::default().project("/nowhere").call().unwrap_err();
        assert!(error.to_string().starts_with("/nowhere: "), "{error}");
        assert!(Builder::default().setting("a=b", 1).call().is_err());
    }
}
