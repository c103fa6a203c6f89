//! The calls of a server: what they share, and those whose client comes back later.

use crate::error::McpError;
use crate::options::McpOptions;
use crate::pages::QuestionPages;
use crate::parked::ParkedCalls;
use crate::spans::CallSpans;
use crate::state::ServerState;
use crate::tasks::Tasks;
use palisade_service::Operations;
use palisade_service::random;
use rmcp::model::RequestStateCodec;
use std::sync::Arc;

pub(crate) struct ServerCalls {
    pub(crate) state: Arc<ServerState>,
    pub(crate) parked: ParkedCalls,
    pub(crate) tasks: Arc<Tasks>,
    /// Signs what a client has to give back. The key is of this process: no other server takes it.
    pub(crate) codec: RequestStateCodec,
    pub(crate) spans: CallSpans,
}

impl std::fmt::Debug for ServerCalls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerCalls").field("state", &self.state).finish_non_exhaustive()
    }
}

impl ServerCalls {
    pub(crate) fn new(
        operations: Operations,
        options: &McpOptions,
        spans: CallSpans,
        pages: QuestionPages,
    ) -> Result<Arc<Self>, McpError> {
        let failed = |error| McpError::io("read", "/dev/urandom".as_ref(), error);
        let key = random::bytes(RequestStateCodec::MIN_KEY_LENGTH).map_err(failed)?;
        let codec = RequestStateCodec::try_new(key)
            .map_err(|error| McpError::Streams(error.to_string()))?;
        Ok(Arc::new(Self {
            state: ServerState::new(operations, options, pages),
            parked: ParkedCalls::default(),
            tasks: Arc::default(),
            codec,
            spans,
        }))
    }
}
