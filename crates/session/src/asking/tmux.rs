//! `sandbox approve` in a window of tmux, for a run that is asked there: a popup over the run's pane, or a pane beside it where no
//! client could show a popup.
//!
//! tmux starts it, outside of everything the command can reach. Nothing here waits for it.

use super::desk::approver_is_there;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// How tmux shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Popup,
    Split,
}

#[derive(Debug, Default)]
pub(super) struct Window {
    /// The client that asked tmux for it; of a popup, as long as it is open.
    client: Option<(Form, Child)>,
}

impl Window {
    /// Opens a window for a new question, unless somebody is there already.
    pub(super) fn look(&mut self, runtime: &Path, is_new: bool) -> io::Result<()> {
        if let Some((form, client)) = &mut self.client {
            let form = *form;
            let Some(status) = client.try_wait()? else { return Ok(()) };
            self.client = None;
            // Without an attached client there is nothing to show a popup on.
            if !status.success() && form == Form::Popup {
                return self.open(Form::Split, runtime);
            }
            if !status.success() {
                return Err(io::Error::other("it opened neither a popup nor a pane"));
            }
        }
        if is_new && !approver_is_there(runtime) {
            return self.open(Form::Popup, runtime);
        }
        Ok(())
    }

    fn open(&mut self, form: Form, runtime: &Path) -> io::Result<()> {
        let own = std::env::current_exe()?;
        let pane = std::env::var_os("TMUX_PANE");
        let target = pane.map(|pane| [OsString::from("-t"), pane]).into_iter().flatten();
        let mut command = Command::new("tmux");
        match form {
            Form::Popup => command.args(["display-popup", "-E", "-w", "90%", "-h", "80%"]),
            Form::Split => command.args(["split-window", "-l", "60%"]),
        };
        command.args(target).arg(own).args(["approve", "--no-notify", "--sockets"]).arg(runtime);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.client = Some((form, command.spawn()?));
        Ok(())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if let Some((_, client)) = &mut self.client {
            // A popup goes with the client that opened it; one that is gone already needs nothing.
            let _ = client.kill();
            let _ = client.wait();
        }
    }
}
