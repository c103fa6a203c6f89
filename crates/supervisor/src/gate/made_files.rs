//! Files that a process was allowed once to make. That they are there, and what is in them, was allowed; so until the process
//! ends it may look at them, open, change and remove them, and make them again, without another question.
//!
//! Never for another process or program, for what stood there before, through a link, to execute, or once the name leads to
//! another file.

use super::inquiry::Inquiry;
use crate::process::{Held, Known, process_of, program_of};
use palisade_ask::Act;
use palisade_gate::Access;
use palisade_gate::{PathAccess, Wants};
use palisade_keeper::FileKind;
use palisade_sys::FileIdentity;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Each holds a descriptor; the oldest is asked about again.
const MAX_MADE: usize = 128;

#[derive(Debug, Default)]
pub(super) struct MadeFiles(VecDeque<Made>);

#[derive(Debug)]
struct Made {
    maker: Held,
    /// What the maker ran.
    program: (u64, u64),
    path: PathBuf,
    directory: FileIdentity,
    /// The call that makes it, until it has.
    request: u64,
    file: Option<FileIdentity>,
}

impl MadeFiles {
    /// The calls of this inquiry may make a file. Each caller is waiting: should it end before it is answered, its call makes
    /// nothing.
    pub(super) fn expect(&mut self, inquiry: &Inquiry, path: &Path) {
        let Some(directory) = inquiry.identity.filter(|_| inquiry.act() == Act::Create) else {
            return;
        };
        self.0.retain(|made| made.maker.lives());
        for request in inquiry.requests.iter().filter(|request| opens_file(request)) {
            let pid = process_of(request.pid);
            let (Some(maker), Some(program)) = (Held::of(&Known::of_process(pid)), program_of(pid))
            else {
                continue;
            };
            self.0.retain(|made| made.maker.pid != pid || made.path != path);
            if self.0.len() == MAX_MADE {
                self.0.pop_front();
            }
            let (path, request) = (path.to_owned(), request.id);
            self.0.push_back(Made { maker, program, path, directory, request, file: None });
        }
    }

    /// They are asked about again. Whether there are any.
    pub(super) fn forget_within(&mut self, path: &Path) -> bool {
        let before = self.0.len();
        self.0.retain(|made| !made.path.starts_with(path));
        self.0.len() < before
    }

    pub(super) fn made(&mut self, request: u64, file: FileIdentity) {
        let made = self.0.iter_mut().find(|made| made.request == request && made.file.is_none());
        if let Some(made) = made {
            made.file = Some(file);
        }
    }

    /// Whether all that is asked about is a file of the callers' own making.
    pub(super) fn is_makers_own(&self, inquiry: &Inquiry, known_callers: bool) -> bool {
        let is_own = |request: &PathAccess| {
            let mut made = self.0.iter().filter(|made| made.is_meant(inquiry, request));
            // Asks the kernel, and mostly nothing was made.
            made.any(|made| made.is_by(process_of(request.pid), known_callers))
        };
        inquiry.links.is_empty()
            && inquiry.needs.is_empty()
            && inquiry.access() != Access::Execute
            && inquiry.requests.iter().all(is_own)
    }
}

impl Made {
    /// The file itself, or the name that it had if nothing has that now.
    fn is_meant(&self, inquiry: &Inquiry, request: &PathAccess) -> bool {
        let (Some(file), Some(found)) = (self.file, &inquiry.found) else { return false };
        match inquiry.act() {
            Act::Create => {
                request.wants == Wants::Make
                    && opens_file(request)
                    && inquiry.identity == Some(self.directory)
                    && inquiry.lent_path().is_some_and(|path| path == self.path)
            }
            Act::Rename => false,
            _ => {
                found.kind == FileKind::File
                    && inquiry.identity == Some(file)
                    && found.path == self.path
            }
        }
    }

    fn is_by(&self, pid: u32, known_callers: bool) -> bool {
        // Asked last: while it lives, its number is nobody else's.
        self.maker.pid == pid
            && program_of(pid) == Some(self.program)
            && (self.maker.lives() || !known_callers)
    }
}

/// Whether what it creates would be a plain file.
pub(super) fn opens_file(request: &PathAccess) -> bool {
    matches!(request.call.as_str(), "open" | "openat" | "creat")
}
