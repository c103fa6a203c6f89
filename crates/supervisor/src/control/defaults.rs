//! What a further command has where its request says nothing else.

use super::interface::{Environment, StartCommand};
use palisade_launch::{CommandId, CommandStart};
use palisade_plan::model::{Command, Plan};
use std::os::unix::ffi::OsStrExt as _;

#[derive(Debug)]
pub(crate) struct Defaults {
    command: Command,
    umask: u32,
}

impl Defaults {
    pub(crate) fn of(plan: &Plan) -> Self {
        Self { command: plan.command.clone(), umask: palisade_sys::proc::current_umask() }
    }

    /// The whole command.
    pub(crate) fn complete(
        &self,
        id: CommandId,
        start: StartCommand,
        has_terminal: bool,
    ) -> CommandStart {
        let StartCommand { kind, argv, environment, cwd, umask, rlimits, .. } = start;
        let env = match environment {
            Environment::Exactly(env) => env,
            Environment::Extended(more) => {
                let own = self.command.env.iter();
                let own =
                    own.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
                let mut all: Vec<_> =
                    own.filter(|(name, _)| more.iter().all(|(other, _)| other != name)).collect();
                all.extend(more);
                all
            }
        };
        let cwd = cwd.unwrap_or_else(|| self.command.cwd.clone());
        let umask = umask.unwrap_or(self.umask);
        CommandStart { id, kind, argv, env, cwd, umask, rlimits, has_terminal }
    }
}
