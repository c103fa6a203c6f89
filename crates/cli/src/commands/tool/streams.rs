//! The standard streams of a call whose result is one document: what the tool reads comes from memory, and what it writes goes there.
//!
//! Files in memory and not pipes: this process has no thread that could empty one. How much a tool may write is a limit of its
//! policy, which is at most [`MAX_CAPTURED`] here.

use anyhow::Context as _;
use palisade_session::tools::ToolOutput;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, dup, fcntl_setfd};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;

/// Of all that a tool writes: as much as any of our presets allows.
pub(super) const MAX_CAPTURED: u64 = 100 << 20;
/// What is kept of each output; a result holds less.
const MAX_KEPT: u64 = 8 << 20;

/// Our standard output and error as they were, while those of a tool are in their place.
#[derive(Debug)]
pub(super) struct Captured {
    stdout: File,
    stderr: File,
    ours: (OwnedFd, OwnedFd),
}

fn in_memory(name: &str) -> anyhow::Result<File> {
    let made = memfd_create(name, MemfdFlags::CLOEXEC);
    Ok(File::from(made.context("cannot make a file in memory")?))
}

/// Lets standard input be this text, or empty.
pub(super) fn set_stdin(text: Option<&str>) -> anyhow::Result<()> {
    let input = match text {
        Some(text) => {
            let mut file = in_memory("tool-input")?;
            file.write_all(text.as_bytes()).context("cannot keep the input")?;
            file.seek(SeekFrom::Start(0)).context("cannot keep the input")?;
            file
        }
        None => File::open("/dev/null").context("cannot open /dev/null")?,
    };
    rustix::stdio::dup2_stdin(&input).context("cannot replace standard input")
}

impl Captured {
    pub(super) fn begin() -> anyhow::Result<Self> {
        let kept = |fd| -> anyhow::Result<OwnedFd> {
            let copy = dup(fd).context("cannot keep a standard stream")?;
            fcntl_setfd(&copy, FdFlags::CLOEXEC).context("cannot keep a standard stream")?;
            Ok(copy)
        };
        let ours = (kept(rustix::stdio::stdout())?, kept(rustix::stdio::stderr())?);
        let (stdout, stderr) = (in_memory("tool-output")?, in_memory("tool-errors")?);
        rustix::stdio::dup2_stdout(&stdout).context("cannot replace standard output")?;
        rustix::stdio::dup2_stderr(&stderr).context("cannot replace standard error")?;
        Ok(Self { stdout, stderr, ours })
    }

    /// Ours again, and what was written meanwhile.
    pub(super) fn end(self) -> anyhow::Result<ToolOutput> {
        let Self { stdout, stderr, ours } = self;
        rustix::stdio::dup2_stdout(&ours.0).context("cannot restore standard output")?;
        rustix::stdio::dup2_stderr(&ours.1).context("cannot restore standard error")?;
        let read = |mut file: File| -> anyhow::Result<Vec<u8>> {
            file.seek(SeekFrom::Start(0)).context("cannot read the output")?;
            let mut bytes = Vec::new();
            file.take(MAX_KEPT).read_to_end(&mut bytes).context("cannot read the output")?;
            Ok(bytes)
        };
        Ok(ToolOutput { stdout: read(stdout)?, stderr: read(stderr)? })
    }
}
