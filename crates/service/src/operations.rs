//! What another face of the service does with sandboxes: the operations that the handlers of requests are made of, without HTTP.

use crate::approvals::{self, ApprovalAnswer};
use crate::audit::{self, AuditPage, AuditQuery};
use crate::auth::Access;
use crate::checkpoints::{self, CheckpointPurpose, RollbackRequest};
use crate::commands::{self, Command, KeptOutput, Known, NewCommand};
use crate::error::ServiceError;
use crate::files;
use crate::idempotency::IdempotencyKeys;
use crate::limits::CLIENT_TIMEOUT;
use crate::own_program::{HeldSandbox, Invocation, Lines, OwnEnvironment, OwnProgram};
use crate::problem::Problem;
use crate::sandboxes::{self, CREATE_PATIENCE, Sandbox};
use crate::service::{Service, Shared, own_directory};
use crate::tools::{self, ToolToRun};
use crate::transactions::{self, ApplyRequest, DiffQuery};
use palisade_session::AppDirs;
use palisade_session::files::Client;
use palisade_session::supervise::interface::CommandId;
use serde_json::Value;
use std::ffi::OsString;
use std::path::PathBuf;
use tokio::sync::watch;

/// Sandboxes of this user, for a process with threads. Cheap to clone.
#[derive(Clone)]
pub struct Operations(pub(crate) Shared);

impl std::fmt::Debug for Operations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operations").finish_non_exhaustive()
    }
}

impl Operations {
    /// For a face that listens nowhere. Sandboxes are made in `directory`, and with our own environment.
    pub fn open(places: AppDirs, directory: PathBuf) -> Result<Self, ServiceError> {
        let program = OwnProgram::open(directory, OwnEnvironment::Whole)
            .map_err(|error| ServiceError::io("open", "/proc/self/exe".as_ref(), error))?;
        let access = Access::SameUser { uid: rustix::process::geteuid().as_raw() };
        // Nobody stops it: what is waited for ends with the process.
        let (_, stopping) = watch::channel(false);
        let kept = own_directory(&places).join("keys");
        let keys = IdempotencyKeys::open(kept.clone())
            .map_err(|error| ServiceError::io("make", &kept, error))?;
        let parts = (places, program, keys);
        Ok(Self(Service::new(parts, access, stopping, CLIENT_TIMEOUT, 0)))
    }

    /// Makes a sandbox with these options of `sandbox create`. It ends with what is returned, even if this process is killed.
    pub async fn hold(&self, options: &[OsString]) -> Result<HeldSandbox, Problem> {
        let create = Invocation::new(["create", "--json", "--quiet", "--hold"]);
        let create = options.iter().fold(create, Invocation::word).within(CREATE_PATIENCE);
        self.0.program.hold(&create).await
    }

    /// Makes a sandbox with these options of `sandbox create`, which stays, and says its id.
    pub async fn create(&self, options: &[OsString]) -> Result<String, Problem> {
        let create = Invocation::new(["create", "--json", "--quiet"]);
        let create = options.iter().fold(create, Invocation::word).within(CREATE_PATIENCE);
        sandboxes::made_by(&self.0, create).await
    }

    /// A sandbox as it is now.
    pub async fn look(&self, named: &str) -> Result<Sandbox, Problem> {
        sandboxes::look(&self.0, named).await
    }

    /// Starts a command in the background: the session keeps what it writes.
    pub async fn start(&self, named: &str, wanted: &NewCommand) -> Result<Command, Problem> {
        wanted.check()?;
        let (directory, _) = self.0.find(named).await?;
        commands::in_background(&self.0, &directory, wanted).await
    }

    /// A command that runs, or ran in the background.
    pub async fn command(&self, named: &str, number: u64) -> Result<Command, Problem> {
        let known = Known::find(&self.0, named).await?;
        known.command(&self.0, CommandId(number)).await
    }

    /// Waits for the end of a command in the background. May be dropped while it waits.
    pub async fn until_ended(&self, named: &str, number: u64) -> Result<(), Problem> {
        let (directory, _) = self.0.find(named).await?;
        commands::until_ended(&directory, CommandId(number)).await
    }

    /// What a command in the background wrote, from a byte on.
    pub async fn output(
        &self,
        named: &str,
        number: u64,
        since: u64,
        most: usize,
    ) -> Result<KeptOutput, Problem> {
        let (directory, _) = self.0.find(named).await?;
        commands::kept_output(&self.0, &directory, CommandId(number), since, most).await
    }

    /// Ends a command: SIGTERM, and SIGKILL after two seconds. Returns when it has ended.
    pub async fn cancel(&self, named: &str, number: u64, kill: bool) -> Result<(), Problem> {
        commands::cancel(&self.0, named, CommandId(number), kill).await
    }

    /// Does `work` with the files of a sandbox, as its commands could. Dropped before it is done, it is given up.
    pub async fn with_files<T: Send + 'static>(
        &self,
        named: &str,
        work: impl FnOnce(&mut Client) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        files::with_files(&self.0, named, work).await
    }

    /// What `sandbox diff` prints.
    pub async fn diff(&self, named: &str, query: &DiffQuery) -> Result<Vec<u8>, Problem> {
        transactions::diff(&self.0, named, query).await
    }

    /// What `sandbox apply --json` prints. A conflict says what stands in the way.
    pub async fn apply(&self, named: &str, wanted: &ApplyRequest) -> Result<Value, Problem> {
        transactions::apply(&self.0, named, wanted).await
    }

    /// What `sandbox checkpoint --json` prints.
    pub async fn checkpoint(
        &self,
        named: &str,
        message: Option<&str>,
        purpose: CheckpointPurpose,
    ) -> Result<Value, Problem> {
        checkpoints::make(&self.0, named, message, purpose).await
    }

    /// What `sandbox checkpoints --json` prints.
    pub async fn checkpoints(&self, named: &str) -> Result<Value, Problem> {
        checkpoints::list(&self.0, named).await
    }

    /// What `sandbox rollback --json` prints.
    pub async fn roll_back(
        &self,
        named: &str,
        number: u32,
        wanted: &RollbackRequest,
    ) -> Result<Value, Problem> {
        checkpoints::bring_back(&self.0, named, number, wanted).await
    }

    /// What `sandbox tool run --json` prints: one call of a declared tool, in a sandbox of its own, with `variables` besides ours.
    pub async fn run_tool(
        &self,
        tool: ToolToRun<'_>,
        input: &Value,
        variables: Vec<(&'static str, String)>,
    ) -> Result<Value, Problem> {
        tools::run(&self.0, tool, (None, variables), input).await
    }

    /// Questions and answers of all sandboxes as they come, one JSON document a line. While it is read, sandboxes wait for an answer.
    pub fn follow_approvals(&self) -> Result<Lines, Problem> {
        self.0.program.lines(&approvals::watching())
    }

    /// Answers a question.
    pub async fn decide(
        &self,
        sandbox: &str,
        question: u64,
        answer: &ApprovalAnswer,
    ) -> Result<(), Problem> {
        approvals::decide(&self.0, sandbox, &question.to_string(), answer).await
    }

    /// Records of the audit log.
    pub async fn audit(&self, query: &AuditQuery) -> Result<AuditPage, Problem> {
        audit::records(&self.0, query).await
    }

    /// Returns when the server that this belongs to is asked to end.
    pub async fn stopping(&self) {
        let mut stopping = self.0.stopping.clone();
        // Nobody can say it any more: there is no server.
        if stopping.wait_for(|is_stopping| *is_stopping).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
