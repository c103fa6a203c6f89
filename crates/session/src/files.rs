//! The files of a session that runs, for clients outside: a command of the session serves them, so that the very plan counts that
//! every command obeys (TOOL-3).

use crate::error::{Result, SessionError};
use crate::foreground::{ask, connect, unexpected, wait_for_start};
use crate::sessions::SessionDirectory;
use crate::transaction;
use palisade_supervisor::control::client::Client as ControlClient;
use palisade_supervisor::control::interface::{
    CommandId, CommandKind, CommandStreams, Environment, Event, Request, Response, StartCommand,
};
use palisade_sys::fdpass::socketpair;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::Path;

pub use palisade_files::{
    Change, ChangeKind, Client, ClientError, FileError, FileInfo, FileType, FileVersion, Handle,
    IfExists, Listing, MAX_CONTENT, WriteOptions,
};

/// What the command is called in records and listings.
const NAME: &[u8] = b"sandbox-files";

/// The connection to a command that serves the files of a session, which ends with it.
#[derive(Debug)]
pub struct SessionFiles {
    pub client: Client,
    /// Dropped, it hangs the command up, also one that waits for an answer.
    control: ControlClient,
    command: CommandId,
}

impl SessionFiles {
    /// Relative paths start in the session's project.
    pub fn open(session: &SessionDirectory) -> Result<Self> {
        const NULL: &str = "/dev/null";
        transaction::before_command(session)?;
        let mut control = connect(session)?;
        let (ours, theirs) = socketpair()?;
        let null = File::options().write(true).open(NULL);
        let null = null.map_err(|error| SessionError::io("open", Path::new(NULL), error))?;
        let start = Request::StartCommand(StartCommand {
            kind: CommandKind::FileServer,
            argv: vec![NAME.to_vec()],
            environment: Environment::Extended(Vec::new()),
            cwd: None,
            umask: None,
            rlimits: Vec::new(),
            streams: CommandStreams::Descriptors,
        });
        let streams = [theirs.as_fd(), null.as_fd(), null.as_fd()];
        let command = match ask(&mut control, &start, &streams)? {
            Response::Starting { command } => command,
            other => return Err(unexpected(&other)),
        };
        // With our copy open, the end of the command would not be noticed.
        drop(theirs);
        wait_for_start(&mut control, command)?;
        Ok(Self { client: Client::new(ours)?, control, command })
    }

    /// Lets the command end by itself.
    pub fn close(self) {
        let Self { client, mut control, command } = self;
        drop(client);
        loop {
            match control.next_event() {
                Ok(Event::CommandExited { command: ended, .. }) if ended == command => return,
                Ok(Event::Ended { .. }) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }
}
