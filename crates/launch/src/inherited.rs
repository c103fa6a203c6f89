//! Process settings of the caller that the launcher changes for itself. The command gets them back before its
//! exec.

use palisade_sys::SysError;
use palisade_sys::proc::{self, Resource, ResourceLimit, sig};
use std::sync::OnceLock;

/// Open files that we and our helpers may need: the maximum of most kernels (`fs.nr_open`).
const ENOUGH_FILES: u64 = 1 << 20;

static TAKEN: OnceLock<Inherited> = OnceLock::new();

/// Must be called before we write the first file.
#[derive(Clone, Copy, Debug)]
pub struct Inherited {
    /// The caller's own limit.
    pub(crate) open_files: ResourceLimit,
    pub(crate) ignores_file_size: bool,
}

impl Inherited {
    /// Raises the soft limit on open files to the hard limit, for the connections and mounts of a run.
    /// Exceeding the caller's limit on file sizes (setrlimit(2), RLIMIT_FSIZE) now fails the write instead of
    /// killing us. The first call in a process stores the caller's values; later calls change nothing.
    pub fn take() -> Self {
        *TAKEN.get_or_init(Self::take_over)
    }

    fn take_over() -> Self {
        let open_files = proc::get_rlimit(Resource::Nofile);
        let ignores_file_size = proc::is_ignored(sig::SIGXFSZ);
        proc::ignore(sig::SIGXFSZ);
        let wanted = open_files.hard.unwrap_or(ENOUGH_FILES).min(ENOUGH_FILES);
        if open_files.soft.is_some_and(|soft| soft < wanted) {
            // If it fails, the limit stays as it was.
            let limit = ResourceLimit { soft: Some(wanted), hard: open_files.hard };
            let _ = proc::set_rlimit(Resource::Nofile, limit);
        }
        Self { open_files, ignores_file_size }
    }

    /// In the process that becomes the command.
    pub(crate) fn give_back(&self) -> Result<(), SysError> {
        if !self.ignores_file_size {
            proc::reset_action(sig::SIGXFSZ);
        }
        proc::set_rlimit(Resource::Nofile, self.open_files)
    }
}
