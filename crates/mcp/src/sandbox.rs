//! The sandbox that the tools work in: made at the first call that needs one, and ended with the server.

use crate::options::{McpOptions, WhichSandbox};
use palisade_service::{HeldSandbox, Operations, Problem, Sandbox};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tokio::sync::Mutex;

#[derive(Debug)]
pub(crate) struct LazySandbox {
    operations: Operations,
    which: WhichSandbox,
    state: Mutex<State>,
    has_own_network: OnceLock<bool>,
}

#[derive(Debug)]
enum State {
    NotYet,
    Known {
        sandbox: KnownSandbox,
        held: Option<Box<HeldSandbox>>,
    },
    /// The server ends: nothing new is made.
    Over,
}

/// What does not change about a sandbox.
#[derive(Clone, Debug)]
pub(crate) struct KnownSandbox {
    pub(crate) id: String,
    pub(crate) project: PathBuf,
    has_own_network: bool,
}

impl KnownSandbox {
    fn of(sandbox: Sandbox) -> Self {
        let has_own_network = sandbox.has_own_network;
        Self { id: sandbox.id, project: sandbox.project.into(), has_own_network }
    }

    /// A directory for a command, from the project.
    pub(crate) fn directory(&self, path: &Path) -> PathBuf {
        self.project.join(path)
    }
}

impl LazySandbox {
    pub(crate) fn new(operations: Operations, options: &McpOptions) -> Self {
        let which = options.sandbox.clone();
        let (state, has_own_network) = (Mutex::new(State::NotYet), OnceLock::new());
        Self { operations, which, state, has_own_network }
    }

    /// The sandbox, made if there is none. `questions_wait`: somebody will be asked, so questions of a new one wait for an answer.
    pub(crate) async fn get(&self, questions_wait: bool) -> Result<KnownSandbox, Problem> {
        let mut state = self.state.lock().await;
        if let State::Known { sandbox, .. } = &*state {
            return Ok(sandbox.clone());
        }
        if matches!(*state, State::Over) {
            return Err(Problem::cancelled("the server ends"));
        }
        let (id, held) = match &self.which {
            WhichSandbox::Existing(named) => (named.clone(), None),
            WhichSandbox::New { options, stays } => {
                let mut options = options.clone();
                if questions_wait {
                    options.insert(0, OsString::from("--ask-in=approve"));
                }
                match stays {
                    true => (self.operations.create(&options).await?, None),
                    false => {
                        let held = self.operations.hold(&options).await?;
                        (held.id().to_owned(), Some(Box::new(held)))
                    }
                }
            }
        };
        let sandbox = KnownSandbox::of(self.operations.look(&id).await?);
        // There is one sandbox, so it is said once.
        let _ = self.has_own_network.set(sandbox.has_own_network);
        *state = State::Known { sandbox: sandbox.clone(), held };
        Ok(sandbox)
    }

    /// The sandbox, if there is one.
    pub(crate) async fn known(&self) -> Option<KnownSandbox> {
        match (&*self.state.lock().await, &self.which) {
            (State::Known { sandbox, .. }, _) => Some(sandbox.clone()),
            _ => None,
        }
    }

    /// Whether its commands have another loopback than we have. Not while it is not known.
    pub(crate) fn has_own_network(&self) -> bool {
        self.has_own_network.get().copied().unwrap_or(false)
    }

    /// Ends it, unless it stays. What there is to say about that.
    pub(crate) async fn end(&self) -> Option<String> {
        let state = std::mem::replace(&mut *self.state.lock().await, State::Over);
        match state {
            State::Known { held: Some(held), .. } => Some(held.end().await),
            State::Known { sandbox, held: None } => match self.which {
                WhichSandbox::New { .. } => {
                    let id = sandbox.id;
                    Some(format!("sandbox {id} stays; `sandbox stop {id}` ends it"))
                }
                WhichSandbox::Existing(_) => None,
            },
            State::NotYet | State::Over => None,
        }
    }
}
