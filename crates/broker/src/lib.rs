//! The broker: a process beside the sandbox that answers the calls its filter notifies (FS-9, SYS-2).
//!
//! In the trees of the host that the command may write, Landlock takes from it everything but removing.
//! What creates, writes or renames there arrives here; the broker copies the arguments once, resolves the
//! path itself, judges what would come to stand where, performs the call and hands back the result. It
//! never lets the kernel do a call that Landlock would not refuse if its arguments had changed meanwhile:
//! that is what makes `Continue` harmless here. Nor does it let the kernel go on where Landlock would refuse what
//! the caller may do: such a call is performed, or answered with the errno that was seen.
//!
//! Programs about to be executed arrive where a policy says which may be: forbidden ones are refused here, unlisted ones
//! by Landlock.
//!
//! Refused calls arrive too, so that they can be told to the supervisor, and get their errno.

#![forbid(unsafe_code)]

mod absent;
mod attributes;
mod below;
mod brokered_trees;
mod call;
mod caller;
mod deep;
mod duties;
mod executing;
mod exists;
mod foresee;
mod git;
mod glance;
mod hand_out;
mod judge;
mod lock;
mod message;
mod missing;
mod numbered;
mod own_path;
mod path_access;
mod path_call;
mod perform;
mod place;
mod program;
mod python;
mod read_only;
mod remote;
mod replacing;
mod serve;
mod signals;
mod slow;
mod staging;
mod startup;
#[cfg(test)]
mod test_sandbox;
mod verdict;

pub use duties::{CommandIdentity, Duties};
pub use foresee::{WriteVerdict, foresee_granted_write, foresee_write};
pub use lock::{PRESENCE, TreeLock, TreeLocks};
pub use message::{BlockedCall, BrokerMessage, NotExecuted, Protected};
pub use path_access::{AccessReply, PathAccess, Trigger, Wants};
pub use startup::{BrokerStartup, run_broker};

use palisade_sys::{Mode, OFlags};

/// Directories are only ever passed through or looked into.
pub(crate) const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

pub(crate) const NO_MODE: Mode = Mode::empty();
