//! Why the server did not start, or does not go on. What a tool is answered with is in `tools/answer.rs`.

use palisade_service::ServiceError;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum McpError {
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot serve a client at standard input and output: {0}")]
    Streams(String),
    #[error("{} is not understood, and was left as it is: {why}", file.display())]
    Config { file: PathBuf, why: String },
    #[error("{0}")]
    Wrapped(String),
}

impl McpError {
    pub(crate) fn io(action: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io { action, path: path.to_owned(), source: source.into() }
    }
}
