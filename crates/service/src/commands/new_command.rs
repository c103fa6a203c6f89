//! What is asked for: a command, and how it meets its streams.

use super::model::Size;
use crate::problem::Problem;
use palisade_session::supervise::interface::{
    CommandKind, CommandStreams, Environment, StartCommand,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use utoipa::ToSchema;

/// Of what a command in the background reads at once. As much waits for a command that does not read.
pub(super) const MAX_INPUT: usize = 64 << 10;

#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewCommand {
    /// The program, looked up in `PATH` inside, and its arguments. No shell reads them: for one, give `["sh", "-c", "…"]`.
    #[schema(min_items = 1, example = json!(["make", "test"]))]
    pub argv: Vec<String>,
    /// Variables on top of those of the sandbox.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The working directory, instead of that of the sandbox.
    #[schema(value_type = Option<String>)]
    pub cwd: Option<PathBuf>,
    /// Answer when the command has ended, with what it wrote. It ends with the request: if the client goes, it gets SIGHUP.
    #[serde(default)]
    pub wait: bool,
    /// What it reads. Without `wait`, more can be sent later if `keepStdinOpen` is set.
    pub stdin: Option<String>,
    /// Without `wait`: do not end its input. It ends with a request to `stdin`.
    #[serde(default)]
    pub keep_stdin_open: bool,
    /// Without `wait`: keep apart what it writes to its two outputs. In which order it wrote to both is then not exactly known.
    #[serde(default)]
    pub separate_stderr: bool,
    /// Without `wait`: give it a terminal of this size.
    pub terminal: Option<Size>,
    /// With `wait`: end the command after this time.
    #[schema(minimum = 1)]
    pub timeout_seconds: Option<u64>,
    /// With `wait`: how much of each output to answer with, at most 4 MiB; 1 MiB if nothing is said. The rest is counted.
    pub max_output_bytes: Option<usize>,
}

impl NewCommand {
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let has_nul = |text: &str| text.contains('\0');
        if self.argv.first().is_none_or(String::is_empty) {
            return Err(Problem::invalid("argv: name a program"));
        }
        if self.argv.iter().any(|word| has_nul(word)) {
            return Err(Problem::invalid("argv: an argument cannot have a NUL character"));
        }
        for (name, value) in &self.environment {
            if name.is_empty() || name.contains('=') || has_nul(name) || has_nul(value) {
                return Err(Problem::invalid(format!("environment: `{name}` is no variable")));
            }
        }
        let is_long = self.stdin.as_ref().is_some_and(|text| text.len() > MAX_INPUT);
        if is_long && !self.wait {
            return Err(Problem::too_large(format!(
                "stdin: at most {} KiB at the start of a command that is not waited for; send the rest later",
                MAX_INPUT >> 10
            )));
        }
        let only_waited = self.timeout_seconds.is_some() || self.max_output_bytes.is_some();
        match self.wait {
            true if self.terminal.is_some() || self.keep_stdin_open || self.separate_stderr => {
                Err(Problem::invalid(
                    "terminal, keepStdinOpen and separateStderr go with a command that is not waited for",
                ))
            }
            _ if self.terminal.is_some() && self.separate_stderr => {
                Err(Problem::invalid("separateStderr: a terminal takes both outputs"))
            }
            false if only_waited => {
                Err(Problem::invalid("timeoutSeconds and maxOutputBytes go with `wait`"))
            }
            _ if self.timeout_seconds == Some(0) => {
                Err(Problem::invalid("timeoutSeconds: at least 1"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn start(&self, streams: CommandStreams) -> StartCommand {
        let bytes = |text: &String| text.clone().into_bytes();
        let mut environment: Vec<_> =
            self.environment.iter().map(|(name, value)| (bytes(name), bytes(value))).collect();
        if self.terminal.is_some() && !self.environment.contains_key("TERM") {
            environment.push((b"TERM".to_vec(), b"xterm-256color".to_vec()));
        }
        StartCommand {
            kind: CommandKind::Program,
            argv: self.argv.iter().map(bytes).collect(),
            environment: Environment::Extended(environment),
            cwd: self.cwd.clone(),
            umask: None,
            rlimits: Vec::new(),
            streams,
        }
    }

    pub(super) fn has_input(&self) -> bool {
        self.keep_stdin_open || self.stdin.is_some()
    }
}
