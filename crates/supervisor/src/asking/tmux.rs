//! Opens `sandbox approve` in a tmux window for a run that asks there: a popup over the run's pane, or a pane next to
//! it if no client can show a popup. It shows the questions of this run only.
//!
//! tmux starts it, out of the command's reach. Nothing here waits for it.

use super::People;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A list that closes because no question is open ends within this time, and does not show a question that arrives
/// meanwhile.
const ENDING: Duration = Duration::from_millis(500);
/// How long a pane may take until its list has connected to the session.
const STARTING: Duration = Duration::from_secs(3);

/// How tmux shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Popup,
    Split,
}

/// The run that the list is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker<'a> {
    pub(super) session: &'a str,
    /// The directory of its socket.
    pub(super) runtime: &'a Path,
}

#[derive(Debug, Default)]
pub(super) struct Window {
    /// The tmux client that requested it; for a popup, it runs while the popup is open.
    client: Option<(Form, Child)>,
    /// When a pane was opened whose list has not connected yet.
    starting_since: Option<Instant>,
    /// When the last question arrived, while it may have reached a list that was about to close.
    unseen_since: Option<Instant>,
}

impl Window {
    /// Opens a window for a new question, unless an approver is already running. The window closes itself: the list
    /// ends with the session, and when no question is open.
    pub(super) fn look(
        &mut self,
        asker: Asker<'_>,
        is_new: bool,
        approver: People,
        now: Instant,
    ) -> io::Result<()> {
        // A person who closes a list has seen older questions in it.
        self.unseen_since = match is_new {
            true => Some(now),
            false => self.unseen_since.filter(|since| now < *since + ENDING),
        };
        if approver == People::Present {
            self.starting_since = None;
        }
        if let Some((form, client)) = &mut self.client {
            let form = *form;
            let Some(status) = client.try_wait()? else { return Ok(()) };
            self.client = None;
            // Without an attached client, tmux cannot show a popup.
            if !status.success() && form == Form::Popup {
                return self.open(Form::Split, asker, now);
            }
            if !status.success() {
                return Err(io::Error::other("it opened neither a popup nor a pane"));
            }
        }
        let is_starting = self.starting_since.is_some_and(|since| now < since + STARTING);
        if self.unseen_since.is_some() && approver == People::Nobody && !is_starting {
            return self.open(Form::Popup, asker, now);
        }
        Ok(())
    }

    fn open(&mut self, form: Form, asker: Asker<'_>, now: Instant) -> io::Result<()> {
        self.unseen_since = None;
        self.starting_since = (form == Form::Split).then_some(now);
        let own = std::env::current_exe()?;
        let pane = std::env::var_os("TMUX_PANE");
        let target = pane.map(|pane| [OsString::from("-t"), pane]).into_iter().flatten();
        let mut command = Command::new("tmux");
        match form {
            Form::Popup => command.args(["display-popup", "-E", "-w", "90%", "-h", "80%"]),
            Form::Split => command.args(["split-window", "-l", "60%"]),
        };
        command.args(target).arg(own).args(["approve", "--no-notify", "--until-answered"]);
        command.args(["--only-session", asker.session, "--sockets"]).arg(asker.runtime);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.client = Some((form, command.spawn()?));
        Ok(())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if let Some((_, client)) = &mut self.client {
            // The list ends with the session's socket. If the client has already ended, this has no effect.
            let _ = client.kill();
            let _ = client.wait();
        }
    }
}
