//! The one error of this crate: which call failed, on what, and with which errno.
//! It must never lose the errno: callers decide by it, and people search for its name.

use std::fmt;
use std::path::Path;

use rustix::io::Errno;

/// What the functions of this crate return.
pub type Result<T> = std::result::Result<T, SysError>;

/// A system call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SysError {
    /// The name of its man page.
    pub call: &'static str,
    /// The path or object it concerned; empty if there is none.
    pub subject: String,
    pub errno: Errno,
}

impl SysError {
    /// `subject` is empty if the call has none.
    pub fn new(call: &'static str, subject: impl Into<String>, errno: Errno) -> Self {
        Self { call, subject: subject.into(), errno }
    }
}

impl fmt::Display for SysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.call)?;
        if !self.subject.is_empty() {
            write!(f, " {}", self.subject)?;
        }
        write!(f, ": {}", errno_text(self.errno))
    }
}

/// What an error number says, for people.
pub fn errno_text(errno: Errno) -> String {
    // std's text ends in "(os error N)"; the symbol is easier to search for than the number.
    let text = std::io::Error::from(errno).to_string();
    let words = text.split(" (os error").next().unwrap_or_default();
    match errno_name(errno) {
        UNNAMED => format!("{words} (errno {})", errno.raw_os_error()),
        name => format!("{words} ({name})"),
    }
}

/// Adds the call and its subject to a bare errno.
pub trait At<T> {
    /// Names the call only.
    fn call(self, call: &'static str) -> Result<T>;
    /// Names the call and its path.
    fn at(self, call: &'static str, path: &Path) -> Result<T>;
}

impl<T> At<T> for std::result::Result<T, Errno> {
    fn call(self, call: &'static str) -> Result<T> {
        self.map_err(|errno| SysError::new(call, "", errno))
    }

    fn at(self, call: &'static str, path: &Path) -> Result<T> {
        self.map_err(|errno| SysError::new(call, path.display().to_string(), errno))
    }
}

impl<T> At<T> for std::io::Result<T> {
    fn call(self, call: &'static str) -> Result<T> {
        self.map_err(|error| SysError::new(call, "", errno_of(&error)))
    }

    fn at(self, call: &'static str, path: &Path) -> Result<T> {
        self.map_err(|error| SysError::new(call, path.display().to_string(), errno_of(&error)))
    }
}

/// The errno of a std error; `EIO` for the few that std creates itself.
pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// The errno the last libc call of this thread left behind.
pub(crate) fn last_errno() -> Errno {
    errno_of(&std::io::Error::last_os_error())
}

/// Turns libc's `-1` into the errno.
pub(crate) fn check(returned: libc::c_long) -> std::result::Result<libc::c_long, Errno> {
    if returned < 0 { Err(last_errno()) } else { Ok(returned) }
}

const UNNAMED: &str = "EUNKNOWN";

macro_rules! names {
    ($($name:ident $symbol:literal),* $(,)?) => {
        /// The symbol of an errno, as in man pages; `EUNKNOWN` for one that is not listed here.
        pub fn errno_name(errno: Errno) -> &'static str {
            match errno {
                $( Errno::$name => $symbol, )*
                _ => UNNAMED,
            }
        }
    };
}

names! {
    PERM "EPERM", NOENT "ENOENT", SRCH "ESRCH", INTR "EINTR", IO "EIO", NXIO "ENXIO",
    TOOBIG "E2BIG", NOEXEC "ENOEXEC", BADF "EBADF", CHILD "ECHILD", AGAIN "EAGAIN",
    NOMEM "ENOMEM", ACCESS "EACCES", FAULT "EFAULT", NOTBLK "ENOTBLK", BUSY "EBUSY",
    EXIST "EEXIST", XDEV "EXDEV", NODEV "ENODEV", NOTDIR "ENOTDIR", ISDIR "EISDIR",
    INVAL "EINVAL", NFILE "ENFILE", MFILE "EMFILE", NOTTY "ENOTTY", TXTBSY "ETXTBSY",
    FBIG "EFBIG", NOSPC "ENOSPC", SPIPE "ESPIPE", ROFS "EROFS", MLINK "EMLINK", PIPE "EPIPE",
    DOM "EDOM", RANGE "ERANGE", DEADLK "EDEADLK", NAMETOOLONG "ENAMETOOLONG", NOLCK "ENOLCK",
    NOSYS "ENOSYS", NOTEMPTY "ENOTEMPTY", LOOP "ELOOP", NODATA "ENODATA", TIME "ETIME",
    PROTO "EPROTO", BADMSG "EBADMSG", OVERFLOW "EOVERFLOW", USERS "EUSERS",
    NOTSOCK "ENOTSOCK", MSGSIZE "EMSGSIZE", PROTONOSUPPORT "EPROTONOSUPPORT",
    OPNOTSUPP "EOPNOTSUPP", AFNOSUPPORT "EAFNOSUPPORT", ADDRINUSE "EADDRINUSE",
    ADDRNOTAVAIL "EADDRNOTAVAIL", NETDOWN "ENETDOWN", NETUNREACH "ENETUNREACH",
    CONNABORTED "ECONNABORTED", CONNRESET "ECONNRESET", NOBUFS "ENOBUFS", ISCONN "EISCONN",
    NOTCONN "ENOTCONN", TIMEDOUT "ETIMEDOUT", CONNREFUSED "ECONNREFUSED",
    HOSTUNREACH "EHOSTUNREACH", ALREADY "EALREADY", INPROGRESS "EINPROGRESS", STALE "ESTALE",
    DQUOT "EDQUOT", CANCELED "ECANCELED", NOKEY "ENOKEY", KEYEXPIRED "EKEYEXPIRED",
    KEYREVOKED "EKEYREVOKED", KEYREJECTED "EKEYREJECTED",
}

/// The system's message with the errno's symbol, as in [`SysError`].
pub fn io_error_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    match (Errno::from_io_error(error), text.split_once(" (os error")) {
        (Some(errno), Some((words, _))) => format!("{words} ({})", errno_name(errno)),
        _ => text,
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
