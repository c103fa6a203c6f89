//! The broker: a helper process that answers the system calls which the filter notifies (FS-9, SYS-2).
//!
//! In writable trees of the host, Landlock denies the command everything but removing. Calls that create, write
//! or rename there arrive here. The broker copies the arguments once, resolves the path itself, judges the
//! result, performs the call and returns its result. It never lets the kernel continue a call that Landlock
//! would not refuse if its arguments had changed meanwhile: that is what makes `Continue` safe here. Nor does
//! it let the kernel continue where Landlock would refuse what the caller may do: such a call is performed, or
//! answered with the errno that was seen.
//!
//! Mounts of the run's own and directories of build output that the policy names are the exception: Landlock grants the
//! command its rights there, and calls in them continue (`native_dirs.rs`).
//!
//! Where a policy lists programs, exec arrives here too: forbidden programs are refused here, unlisted ones by
//! Landlock.
//!
//! Refused calls also arrive, get their errno, and are reported to the supervisor.
//!
//! One thread does all of this until calls queue up. Then several do, side by side where no call can change what another was
//! judged by (`serve/workers.rs`, `lock.rs`).

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
mod lookout;
mod message;
mod missing;
mod native_dirs;
mod newborn;
mod numbered;
mod operations;
mod overlay_move;
mod own_path;
mod path_call;
mod path_lookup;
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
mod stand_ins;
mod startup;
#[cfg(test)]
mod test_sandbox;
mod unpoisoned;
mod verdict;

pub use duties::{CommandIdentity, Duties};
pub use foresee::{WriteVerdict, foresee_granted_write, foresee_write};
pub use lock::{PRESENCE, TreeLock, TreeLocks};
pub use message::{BlockedCall, BrokerMessage, FileOperation, NotExecuted, Protected};
pub use startup::{BrokerStartup, run_broker};

use palisade_sys::{Mode, OFlags};

/// Directories are only ever passed through or looked into.
pub(crate) const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

pub(crate) const NO_MODE: Mode = Mode::empty();
