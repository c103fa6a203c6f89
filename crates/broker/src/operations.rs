//! Tells the supervisor of operations on files, where the policy asks for a record of them. Nobody waits for it: what finds no
//! room is counted, and the count goes with the next one.

use crate::caller::Caller;
use crate::message::{BrokerMessage, FileOperation};
use palisade_bpf::{Arch, table};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Shared by all threads of the broker.
#[derive(Debug)]
pub(crate) struct Operations {
    supervisor: Arc<OwnedFd>,
    /// Not told so far.
    missed: AtomicU64,
}

impl Operations {
    pub(crate) fn new(supervisor: Arc<OwnedFd>) -> Self {
        Self { supervisor, missed: AtomicU64::new(0) }
    }

    /// What was done. The paths are those that were judged: the caller may have changed its own by now.
    pub(crate) fn tell(&self, caller: &Caller, paths: &[PathBuf]) {
        let call = table::name(Arch::native(), caller.notification.number).unwrap_or("?");
        for path in paths {
            let missed = self.missed.swap(0, Ordering::Relaxed);
            let told = palisade_wire::encode(&BrokerMessage::FileOperation(FileOperation {
                call: call.to_owned(),
                path: path.as_os_str().as_bytes().to_vec(),
                pid: caller.thread.as_raw_pid().unsigned_abs(),
                executable: caller.program(),
                missed,
            }));
            let sent = told.and_then(|packet| palisade_wire::try_send(&self.supervisor, &packet));
            if sent.is_err() {
                self.missed.fetch_add(missed + 1, Ordering::Relaxed);
            }
        }
    }
}
