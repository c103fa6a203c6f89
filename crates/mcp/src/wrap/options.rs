//! What a server is run with.

use super::pins::PinFile;
use std::ffi::OsString;

#[derive(Clone, Debug)]
pub struct WrapOptions {
    /// What the server is called in the state directory.
    pub name: String,
    pub pins: PinFile,
    /// Trust the first list of tools of this run.
    pub accept_changes: bool,
    /// Our own program's words: `run`, its options, and the server.
    pub words: Vec<OsString>,
}
