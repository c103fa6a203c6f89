//! What the caller set for itself and we change for ourselves. The command gets it back before its exec.

use palisade_sys::SysError;
use palisade_sys::proc::{self, Resource, ResourceLimit, sig};
use std::sync::OnceLock;

/// Open files that we and our helpers may need: what most kernels allow at all (`fs.nr_open`).
const ENOUGH_FILES: u64 = 1 << 20;

static TAKEN: OnceLock<Inherited> = OnceLock::new();

/// To be taken before the first file of ours is written.
#[derive(Clone, Copy, Debug)]
pub struct Inherited {
    open_files: ResourceLimit,
    ignores_file_size: bool,
}

impl Inherited {
    /// Takes as many open files as the hard limit gives, for connections and mounts of a run. A file that reaches the
    /// caller's limit on its size (setrlimit(2), RLIMIT_FSIZE) is an error of that write from here on, and no longer our
    /// end. What was taken first in this process is the caller's; taking it again changes nothing.
    pub fn take() -> Self {
        *TAKEN.get_or_init(Self::take_over)
    }

    fn take_over() -> Self {
        let open_files = proc::get_rlimit(Resource::Nofile);
        let ignores_file_size = proc::is_ignored(sig::SIGXFSZ);
        proc::ignore(sig::SIGXFSZ);
        let wanted = open_files.hard.unwrap_or(ENOUGH_FILES).min(ENOUGH_FILES);
        if open_files.soft.is_some_and(|soft| soft < wanted) {
            // Where it fails, there are as many as there were.
            let limit = ResourceLimit { soft: Some(wanted), hard: open_files.hard };
            let _ = proc::set_rlimit(Resource::Nofile, limit);
        }
        Self { open_files, ignores_file_size }
    }

    /// The caller's own limit.
    pub(crate) fn open_files(&self) -> ResourceLimit {
        self.open_files
    }

    pub(crate) fn ignores_file_size(&self) -> bool {
        self.ignores_file_size
    }

    /// In the process that becomes the command.
    pub(crate) fn give_back(&self) -> Result<(), SysError> {
        if !self.ignores_file_size {
            proc::reset_action(sig::SIGXFSZ);
        }
        proc::set_rlimit(Resource::Nofile, self.open_files)
    }
}
