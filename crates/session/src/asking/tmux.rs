//! `sandbox approve` in a window of tmux, for a run that is asked there: a popup over the run's pane, or a pane beside it where no
//! client could show a popup. It shows the questions of this run only.
//!
//! tmux starts it, outside of everything the command can reach. Nothing here waits for it.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// So long a list may take to start and to connect, before another is opened for the next question.
const START: Duration = Duration::from_secs(3);

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
    opened: Option<Instant>,
}

/// Which questions a window shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown<'a> {
    /// Where the sockets of all sessions are.
    pub(super) runtime: &'a Path,
    pub(super) session: &'a str,
}

/// Whether a window is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A new question waits, and nobody is there who would see it.
    Yes,
    No,
}

impl Window {
    /// Opens a window for a new question, and sees to one that did not open.
    pub(super) fn look(&mut self, shown: Shown<'_>, wanted: Wanted) -> io::Result<()> {
        if let Some((form, client)) = &mut self.client {
            let form = *form;
            let Some(status) = client.try_wait()? else { return Ok(()) };
            self.client = None;
            // Without an attached client there is nothing to show a popup on.
            if !status.success() && form == Form::Popup {
                return self.open(Form::Split, shown);
            }
            if !status.success() {
                return Err(io::Error::other("it opened neither a popup nor a pane"));
            }
        }
        let is_starting = self.opened.is_some_and(|opened| opened.elapsed() < START);
        if wanted == Wanted::Yes && !is_starting {
            return self.open(Form::Popup, shown);
        }
        Ok(())
    }

    fn open(&mut self, form: Form, shown: Shown<'_>) -> io::Result<()> {
        let own = std::env::current_exe()?;
        let pane = std::env::var_os("TMUX_PANE");
        let target = pane.map(|pane| [OsString::from("-t"), pane]).into_iter().flatten();
        let mut command = Command::new("tmux");
        match form {
            Form::Popup => command.args(["display-popup", "-E", "-w", "90%", "-h", "80%"]),
            Form::Split => command.args(["split-window", "-l", "60%"]),
        };
        command.args(target).arg(own).args(["approve", "--no-notify"]);
        command.arg("--sockets").arg(shown.runtime).args(["--only", shown.session]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.client = Some((form, command.spawn()?));
        self.opened = Some(Instant::now());
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
