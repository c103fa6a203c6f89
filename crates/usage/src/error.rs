//! The error of this crate. A caller that enforces a limit by these numbers must take any of them as "can no longer be
//! enforced", never as "nothing was used".

use std::path::PathBuf;

use palisade_sys::SysError;

pub(crate) type Result<T, E = UsageError> = std::result::Result<T, E>;

/// Why usage could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// The first process of the tree has ended, or its pid was reused.
    #[error("process {0} is gone: nothing is left to measure")]
    Gone(i32),
    /// `/proc` is not a proc file system.
    #[error(
        "/proc is not a proc file system: mount one there, or let control groups do the counting"
    )]
    NoProc,
    /// A file of `/proc` did not have the form that proc(5) describes.
    #[error("/proc/{pid}/{file} cannot be understood: {text:?}")]
    Form {
        /// The process.
        pid: i32,
        /// The file's name in the process's directory.
        file: &'static str,
        /// The beginning of its content.
        text: String,
    },
    /// The kernel refused a necessary call.
    #[error("cannot measure usage: {0}")]
    Sys(#[from] SysError),
    /// A watched directory was removed.
    #[error("{} was removed while its size was watched", .0.display())]
    Vanished(PathBuf),
    /// A directory that is writable but cannot be listed.
    #[error(
        "{} cannot be listed, so what it holds cannot be counted: give its owner the right to read it",
        .0.display()
    )]
    Unreadable(PathBuf),
    /// A path too long for one system call, too many directories side by side, or more than can be walked before a run.
    #[error(
        "{} is too deep, too wide or too large to be counted within bounds: let the command write to a smaller directory, or do without limits on space and inodes",
        .0.display()
    )]
    TooLarge(PathBuf),
    /// More open or mapped files than one look covers.
    #[error(
        "more files are open or mapped than can be looked at, so deleted ones cannot be counted"
    )]
    TooManyOpen,
    /// A file system that does not report its usage.
    #[error("{} does not tell how much of it is used: mount a tmpfs with a size there", .0.display())]
    Sizeless(PathBuf),
}
