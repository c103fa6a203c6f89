//! The one error of this crate. Names of files are shown quoted: a session chose them.

use crate::paths::quoted;
use palisade_sys::SysError;
use std::path::{Path, PathBuf};

pub type Result<T> = std::result::Result<T, ChangesError>;

#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    #[error(transparent)]
    System(SysError),
    #[error(
        "the session changed more than {limit} files; apply or discard some of its directories"
    )]
    TooMany { limit: usize },
    #[error(
        "the project has more than {files} files or {} MiB to be copied, which is the limit", .bytes >> 20
    )]
    TooLargeToCopy { files: u64, bytes: u64 },
    #[error("{} cannot be read, so the project cannot be copied", quoted(.path))]
    UnreadableOnHost { path: PathBuf },
    #[error("what was written down about the copy of the project cannot be read: {0}")]
    CopyRecord(postcard::Error),
    #[error("{} has more than {limit} levels of directories", quoted(.path))]
    TooDeep { path: PathBuf, limit: usize },
    #[error("{} changed while it was read; end the session's commands and try again", quoted(.path))]
    ChangedMeanwhile { path: PathBuf },
    #[error("the changes belong to a checkpoint that others lie below; apply needs all layers")]
    NotWhole,
    #[error("another apply works on this project; try again when it has ended")]
    Busy,
    #[error("an earlier apply was interrupted; recover it first")]
    Interrupted,
    #[error("the journal cannot be used: {why}; the project was not changed")]
    Journal { why: String },
    #[error("{} changed on the host during the apply; everything was undone", quoted(.path))]
    ChangedOnHost { path: PathBuf },
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
    /// Only with fault injection.
    #[error("stopped at step {step}")]
    Stopped { step: u32 },
}

impl From<SysError> for ChangesError {
    fn from(error: SysError) -> Self {
        Self::System(SysError { subject: quoted(Path::new(&error.subject)), ..error })
    }
}
