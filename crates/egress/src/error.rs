//! The error of this crate: why egress could not start. The failure of a single connection is a
//! [`crate::engine::Refused`], never this.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    #[error("cannot {what}: {source}")]
    Io { what: &'static str, source: io::Error },
    #[error("cannot use the run's certificate authority: {0}")]
    Authority(String),
}

/// Adds what was attempted to a failed I/O call.
pub(crate) trait While<T> {
    fn doing(self, what: &'static str) -> Result<T, EgressError>;
}

impl<T, E: Into<io::Error>> While<T> for Result<T, E> {
    fn doing(self, what: &'static str) -> Result<T, EgressError> {
        self.map_err(|error| EgressError::Io { what, source: error.into() })
    }
}
