//! A sandbox that ends with this process: the `sandbox` program that made it waits for the end of its standard input, which the
//! kernel brings about if this process is killed.

use crate::error::{Error, Result};
use crate::program::{Answer, Call, Program, wait_for};
use serde::Deserialize;
use std::io::{self, Read as _};
use std::process::{Child, Stdio};
use std::time::Instant;

/// Of the line that says what was made, and of complaints.
const MAX_LINE: usize = 64 << 10;

/// Dropped, it ends the sandbox and waits for that.
#[derive(Debug)]
pub(crate) struct Holder(Option<Child>);

/// What the program prints.
#[derive(Deserialize)]
struct Made {
    id: String,
}

impl Holder {
    /// Makes a sandbox, and says its id. The call has `--hold` and `--json`.
    pub(crate) fn make(program: &Program, call: &Call) -> Result<(Self, String)> {
        let deadline = call.deadline();
        let child = program.spawn(call, Stdio::piped())?;
        // From here on the program ends with us, whatever happens.
        let mut holder = Self(Some(child));
        match holder.first_line(deadline)? {
            Some(line) => {
                let made: Made = serde_json::from_slice(&line).map_err(|error| {
                    Error::internal(format!("`sandbox` printed no id: {error}"))
                })?;
                Ok((holder, made.id))
            }
            None => Err(holder.complaint()),
        }
    }

    /// None at the end of its output.
    fn first_line(&mut self, deadline: Instant) -> Result<Option<Vec<u8>>> {
        let stdout = self.0.as_mut().and_then(|child| child.stdout.take());
        let Some(mut stdout) = stdout else { return Ok(None) };
        let mut line = Vec::new();
        while line.len() < MAX_LINE {
            if !wait_for(&[&stdout], deadline)? {
                self.give_up();
                return Err(Error::timed_out("the sandbox was not made in time"));
            }
            let mut byte = [0];
            match stdout.read(&mut byte) {
                Ok(0) => return Ok(None),
                Ok(_) if byte == *b"\n" => return Ok(Some(line)),
                Ok(_) => line.extend_from_slice(&byte),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::internal(error.to_string())),
            }
        }
        Err(Error::internal("`sandbox` printed a line without an end"))
    }

    /// Kills a program that does not get on. A supervisor without its creator ends.
    fn give_up(&mut self) {
        if let Some(mut child) = self.0.take() {
            // It may have ended meanwhile.
            let _ = child.kill().and_then(|()| child.wait());
        }
    }

    /// Why there is no sandbox, of a program that has closed its output.
    fn complaint(mut self) -> Error {
        let Some(mut child) = self.0.take() else { return Error::internal("nothing was started") };
        drop(child.stdin.take());
        let mut stderr = Vec::new();
        if let Some(from) = child.stderr.take() {
            // What was read until an error is what there is.
            let _ = from.take(MAX_LINE as u64).read_to_end(&mut stderr);
        }
        let code = child.wait().ok().and_then(|status| status.code());
        Answer { code, stdout: Vec::new(), stderr }.error()
    }

    /// The sandbox stays: only the program that would have ended it is killed.
    pub(crate) fn release(mut self) -> Result<()> {
        let Some(mut child) = self.0.take() else { return Ok(()) };
        let killed = child.kill().and_then(|()| child.wait());
        killed
            .map(drop)
            .map_err(|error| Error::internal(format!("cannot keep the sandbox: {error}")))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let Some(mut child) = self.0.take() else { return };
        drop(child.stdin.take());
        // It notes where changes wait, and must not wait for a reader.
        drop(child.stderr.take());
        // An error means that there is nothing to wait for.
        let _ = child.wait();
    }
}

#[cfg(test)]
#[path = "held_tests.rs"]
mod tests;
