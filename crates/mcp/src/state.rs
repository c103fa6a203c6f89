//! What all calls of a server share.

use crate::denials::Denials;
use crate::error::McpError;
use crate::options::{AskWhom, McpOptions};
use crate::parked::ParkedCalls;
use crate::questions::Questions;
use crate::random;
use crate::sandbox::LazySandbox;
use crate::tasks::Tasks;
use palisade_service::Operations;
use rmcp::model::RequestStateCodec;
use std::sync::Arc;

pub(crate) struct ServerState {
    pub(crate) operations: Operations,
    pub(crate) sandbox: LazySandbox,
    pub(crate) questions: Questions,
    pub(crate) denials: Denials,
    pub(crate) ask: AskWhom,
    pub(crate) may_apply: bool,
    pub(crate) parked: ParkedCalls,
    pub(crate) tasks: Tasks,
    /// Signs what a client has to give back. The key is of this process: no other server takes it.
    pub(crate) codec: RequestStateCodec,
}

impl std::fmt::Debug for ServerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerState").field("sandbox", &self.sandbox).finish_non_exhaustive()
    }
}

impl ServerState {
    pub(crate) fn new(operations: Operations, options: &McpOptions) -> Result<Arc<Self>, McpError> {
        let failed = |error| McpError::io("read", "/dev/urandom".as_ref(), error);
        let key = random::bytes(RequestStateCodec::MIN_KEY_LENGTH).map_err(failed)?;
        let codec = RequestStateCodec::try_new(key)
            .map_err(|error| McpError::Streams(error.to_string()))?;
        Ok(Arc::new(Self {
            sandbox: LazySandbox::new(operations.clone(), options),
            operations,
            questions: Questions::default(),
            denials: Denials::default(),
            ask: options.ask,
            may_apply: options.may_apply,
            parked: ParkedCalls::default(),
            tasks: Tasks::default(),
            codec,
        }))
    }
}
