//! What all calls of a server share.

use crate::denials::Denials;
use crate::options::{AskWhom, McpOptions, OfferedTool};
use crate::pages::{PageHost, QuestionPages};
use crate::questions::Questions;
use crate::sandbox::LazySandbox;
use palisade_service::{ApprovalAnswer, Operations};
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) struct ServerState {
    pub(crate) operations: Operations,
    pub(crate) sandbox: LazySandbox,
    pub(crate) questions: Questions,
    pub(crate) pages: QuestionPages,
    pub(crate) denials: Denials,
    pub(crate) ask: AskWhom,
    pub(crate) may_apply: bool,
    pub(crate) tools: Vec<OfferedTool>,
    pub(crate) tool_files: Vec<PathBuf>,
}

impl std::fmt::Debug for ServerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerState").field("sandbox", &self.sandbox).finish_non_exhaustive()
    }
}

impl ServerState {
    pub(crate) fn new(
        operations: Operations,
        options: &McpOptions,
        pages: QuestionPages,
    ) -> Arc<Self> {
        Arc::new(Self {
            sandbox: LazySandbox::new(operations.clone(), options),
            operations,
            questions: Questions::default(),
            pages,
            denials: Denials::default(),
            ask: options.ask,
            may_apply: options.may_apply,
            tools: options.tools.clone(),
            tool_files: options.tool_files.clone(),
        })
    }

    /// Answers a question of the sandbox. Somebody else may have been first.
    pub(crate) async fn decide(&self, question: u64, answer: &ApprovalAnswer) {
        if let Some(sandbox) = self.sandbox.known().await {
            let _ = self.operations.decide(&sandbox.id, question, answer).await;
        }
    }
}

impl PageHost for ServerState {
    fn pages(&self) -> &QuestionPages {
        &self.pages
    }

    fn is_open(&self, question: u64) -> bool {
        self.questions.is_open(question)
    }

    fn has_own_network(&self) -> bool {
        self.sandbox.has_own_network()
    }

    async fn answer(&self, question: u64, answer: &ApprovalAnswer) -> Result<(), String> {
        let sandbox = self.sandbox.known().await.ok_or("The sandbox has ended.")?;
        let decided = self.operations.decide(&sandbox.id, question, answer).await;
        decided.map_err(|problem| problem.detail().to_owned())
    }
}
