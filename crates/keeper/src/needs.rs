//! What else is needed to execute a program: the interpreter of a script, the loader of a binary. The kernel
//! opens them itself, by path, where no call can be stopped and asked about.

use crate::look::{Host, HostFile};
use crate::message::FileKind;
use crate::own_files::OwnFiles;
use palisade_plan::program::{Needs, needs};
use palisade_sys::{OFlags, Result};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// As the kernel: scripts whose interpreters are scripts (`exec_binprm`).
const MAX_DEPTH: usize = 5;

/// The real paths, and the links that lead to them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Needed {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
}

/// A file that cannot be read has no known needs.
pub(crate) fn of_program(host: &Host, own_files: &OwnFiles, program: &HostFile) -> Result<Needed> {
    let mut needed = Needed::default();
    let mut next = needs_of(own_files, &program.file, program.kind);
    for _ in 0..MAX_DEPTH {
        let path = match &next {
            Needs::Nothing => break,
            Needs::Loader(path) | Needs::Interpreter { path, .. } => path,
        };
        // The kernel accepts nothing else.
        let Some(seen) = host.look(path, true)?.filter(|seen| seen.kind == FileKind::File) else {
            break;
        };
        let is_loader = matches!(next, Needs::Loader(_));
        next = if is_loader { Needs::Nothing } else { needs_of(own_files, &seen.file, seen.kind) };
        needed.links.extend(seen.links);
        if !needed.paths.contains(&seen.path) {
            needed.paths.push(seen.path);
        }
    }
    Ok(needed)
}

fn needs_of(own_files: &OwnFiles, file: &OwnedFd, kind: FileKind) -> Needs {
    if kind != FileKind::File {
        return Needs::Nothing;
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let Ok(open) = own_files.reopen(file, flags) else { return Needs::Nothing };
    needs(&|offset, length| {
        let mut buffer = vec![0; length];
        let read = rustix::io::pread(&open, &mut buffer, offset).ok()?;
        buffer.truncate(read);
        Some(buffer)
    })
}
