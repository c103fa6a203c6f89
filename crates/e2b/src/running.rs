//! What this server knows about commands that run: what they were started with, and who types into them. What it does not know,
//! because another server started them, the session tells.

use crate::error::{Code, RpcError};
use palisade_session::supervise::interface::CommandId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// Of one sandbox. As many run there at once.
const MAX_KNOWN: usize = 256;

/// What a command is started with.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Config {
    pub(crate) cmd: String,
    pub(crate) args: Vec<String>,
    pub(crate) envs: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<String>,
}

/// Which command is meant.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Selector {
    Pid(u32),
    Tag(String),
}

/// Something for a command to read.
#[derive(Debug)]
pub(crate) enum Typed {
    Bytes(Vec<u8>),
    /// Nothing more comes.
    End,
}

/// With the answer that somebody waits for.
pub(crate) type TypeRequest = (Typed, oneshot::Sender<Result<(), RpcError>>);

#[derive(Clone, Debug)]
pub(crate) struct KnownCommand {
    pub(crate) config: Config,
    pub(crate) tag: Option<String>,
    /// To the answer that follows the command, if it is the one who types.
    pub(crate) typist: Option<mpsc::Sender<TypeRequest>>,
}

#[derive(Debug, Default)]
pub(crate) struct RunningCommands(Mutex<BTreeMap<(String, u64), KnownCommand>>);

impl RunningCommands {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, u64), KnownCommand>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn insert(&self, sandbox: &str, CommandId(number): CommandId, known: KnownCommand) {
        let mut all = self.lock();
        all.insert((sandbox.to_owned(), number), known);
        let own = |number| (sandbox.to_owned(), number);
        let of_sandbox = || own(0)..=own(u64::MAX);
        if all.range(of_sandbox()).count() > MAX_KNOWN
            && let Some(oldest) = all.range(of_sandbox()).next().map(|(key, _)| key.clone())
        {
            all.remove(&oldest);
        }
    }

    pub(crate) fn get(&self, sandbox: &str, CommandId(number): CommandId) -> Option<KnownCommand> {
        self.lock().get(&(sandbox.to_owned(), number)).cloned()
    }

    pub(crate) fn remove(&self, sandbox: &str, CommandId(number): CommandId) {
        self.lock().remove(&(sandbox.to_owned(), number));
    }

    /// Somebody types from now on, or nobody does.
    pub(crate) fn set_typist(
        &self,
        sandbox: &str,
        CommandId(number): CommandId,
        typist: Option<mpsc::Sender<TypeRequest>>,
    ) {
        if let Some(known) = self.lock().get_mut(&(sandbox.to_owned(), number)) {
            known.typist = typist;
        }
    }

    /// Who typed is gone. Another one may have come in its place, whose requests are still taken.
    pub(crate) fn drop_typist(&self, sandbox: &str, CommandId(number): CommandId) {
        if let Some(known) = self.lock().get_mut(&(sandbox.to_owned(), number)) {
            known.typist = known.typist.take().filter(|typist| !typist.is_closed());
        }
    }

    /// The sandbox is gone.
    pub(crate) fn forget(&self, sandbox: &str) {
        self.lock().retain(|(of, _), _| of != sandbox);
    }

    /// The command that is meant.
    pub(crate) fn select(&self, sandbox: &str, selector: &Selector) -> Result<CommandId, RpcError> {
        match selector {
            Selector::Pid(number) => Ok(CommandId(u64::from(*number))),
            Selector::Tag(tag) => {
                let all = self.lock();
                let found = all.iter().find(|((of, _), known)| {
                    of == sandbox && known.tag.as_deref() == Some(tag.as_str())
                });
                found.map(|((_, number), _)| CommandId(*number)).ok_or_else(|| {
                    RpcError::new(Code::NotFound, format!("process with tag {tag} not found"))
                })
            }
        }
    }
}

pub(crate) fn not_found(CommandId(number): CommandId) -> RpcError {
    RpcError::new(Code::NotFound, format!("process with pid {number} not found"))
}
