//! Why the service did not start, or does not go on. What a request is answered with is in `problem.rs`.

use palisade_session::SessionError;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot listen at {address}: {source}")]
    Listen { address: String, source: io::Error },
    #[error(
        "another server listens at {}: end it first, or name another socket with --listen unix:PATH", path.display()
    )]
    AlreadyListening { path: PathBuf },
    #[error("{} is in the way, and is not a socket: remove it, or name another path with --listen unix:PATH", path.display())]
    NotASocket { path: PathBuf },
    #[error(
        "`{text}` is no address to listen at; write unix:PATH or tcp:ADDRESS:PORT, such as tcp:127.0.0.1:8080"
    )]
    Address { text: String },
    #[error(
        "{address} can be reached from other machines: give --tls-cert and --tls-key, or listen at a loopback address such as \
         tcp:127.0.0.1:8080"
    )]
    NeedsTls { address: String },
    #[error(
        "--tls-cert and --tls-key: a UNIX socket has no use for them; leave them out, or listen at tcp:ADDRESS:PORT"
    )]
    TlsOnSocket,
    #[error("cannot use {} for TLS: {why}", path.display())]
    Tls { path: PathBuf, why: String },
    #[error("{why}")]
    Face { why: String },
    #[error("the token in {} can be read by others (mode {mode:03o}): run `chmod 600` on it, or remove it and a new one is made", path.display())]
    TokenReadable { path: PathBuf, mode: u32 },
    #[error("the token in {} has {length} characters: at least {least} are needed; remove the file and a new one is made", path.display())]
    TokenShort { path: PathBuf, length: usize, least: usize },
}

impl ServiceError {
    pub(crate) fn io(action: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io { action, path: path.to_owned(), source: source.into() }
    }
}
