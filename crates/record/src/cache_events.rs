//! What is recorded about caches of the sandboxes' own (FS-5).

use serde::{Deserialize, Serialize};

/// What a run wrote to caches is not there for later runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheWritesLost {
    pub reason: String,
}
