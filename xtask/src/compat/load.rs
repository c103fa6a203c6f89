//! Processes that keep CPUs busy while tests run, ended when dropped: races that never show on a quiet machine do then.

use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// The busy processes.
#[derive(Debug)]
pub(crate) struct Load(Vec<Child>);

impl Load {
    /// Starts so many of them.
    pub(crate) fn start(count: usize) -> Result<Self> {
        let mut load = Self(Vec::new());
        for _ in 0..count {
            let mut shell = Command::new("sh");
            // Ends by itself should this process be killed.
            shell.args([
                "-c",
                "while kill -0 $PPID; do for i in 1 2 3 4 5 6 7 8 9; do :; done; done",
            ]);
            shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            load.0.push(shell.spawn().context("cannot start sh")?);
        }
        Ok(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
