//! Our ends of what a command writes to: a terminal or a pipe for both outputs, or a pipe for each. None of them blocks.

use super::interface::OutputStream;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

#[derive(Debug)]
pub(crate) struct HeldOutputs {
    /// Of the terminal, or of the pipe for what `stderr` does not take.
    stdout: HeldOutput,
    stderr: Option<HeldOutput>,
    /// Which one is read next: a flood in one of them must not keep the other waiting.
    next: OutputStream,
}

#[derive(Debug)]
struct HeldOutput {
    descriptor: OwnedFd,
    /// Nobody can write to it any more.
    is_closed: bool,
}

impl HeldOutputs {
    pub(crate) fn new(stdout: OwnedFd, stderr: Option<OwnedFd>) -> Self {
        let output = |descriptor| HeldOutput { descriptor, is_closed: false };
        let stderr = stderr.map(output);
        Self { stdout: output(stdout), stderr, next: OutputStream::Stdout }
    }

    /// Whether both outputs have a pipe each.
    pub(crate) fn are_apart(&self) -> bool {
        self.stderr.is_some()
    }

    /// The command's terminal, if it has one.
    pub(crate) fn terminal(&self) -> &OwnedFd {
        &self.stdout.descriptor
    }

    /// Those into which somebody may still write.
    pub(crate) fn open(&self) -> impl Iterator<Item = (OutputStream, &OwnedFd)> {
        let stdout = (OutputStream::Stdout, &self.stdout);
        let stderr = self.stderr.as_ref().map(|stderr| (OutputStream::Stderr, stderr));
        let all = std::iter::once(stdout).chain(stderr);
        all.filter(|(_, it)| !it.is_closed).map(|(stream, it)| (stream, &it.descriptor))
    }

    pub(crate) fn are_closed(&self) -> bool {
        self.open().next().is_none()
    }

    /// Nothing more is read.
    pub(crate) fn close(&mut self) {
        self.stdout.is_closed = true;
        if let Some(stderr) = &mut self.stderr {
            stderr.is_closed = true;
        }
    }

    /// What there is of one of them. None: nothing at present, or ever.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Option<(OutputStream, usize)> {
        for _ in 0..2 {
            let stream = self.next;
            self.next = match stream {
                OutputStream::Stdout => OutputStream::Stderr,
                OutputStream::Stderr => OutputStream::Stdout,
            };
            let output = match stream {
                OutputStream::Stdout => Some(&mut self.stdout),
                OutputStream::Stderr => self.stderr.as_mut(),
            };
            if let Some(count) = output.and_then(|output| output.read(buffer)) {
                return Some((stream, count));
            }
        }
        None
    }
}

impl HeldOutput {
    fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        while !self.is_closed {
            match rustix::io::read(&self.descriptor, &mut *buffer) {
                // EIO is how the end of a terminal is told.
                Ok(0) | Err(Errno::IO) => self.is_closed = true,
                Ok(count) => return Some(count),
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        None
    }
}
