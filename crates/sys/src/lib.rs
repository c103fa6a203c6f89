//! The system calls Palisade makes, as safe functions with typed arguments and errors. This is the only crate
//! that may contain unsafe code; it decides nothing and knows no policy. `unsafe_code` is denied for the crate
//! (workspace lints): a module that needs it says so and why.

pub mod beneath;
pub mod clone;
pub mod creds;
mod error;
pub mod fault;
pub mod fdpass;
mod flags;
mod identity;
pub mod landlock;
pub mod lease;
pub mod lock;
pub mod mounts;
pub mod net;
pub mod notify;
pub mod other;
pub mod proc;
mod program_pages;
pub mod raw;
pub mod seccomp;
pub mod stream;
pub mod timens;
pub mod tty;

#[cfg(any(test, feature = "test-child"))]
pub mod test_child;

pub use error::{At, Result, SysError, errno_name, errno_text, io_error_text};
pub use identity::{FileIdentity, identity_of};
pub use rustix::fs::{CWD, Mode, OFlags};
pub use rustix::io::Errno;
pub use rustix::process::Pid;
