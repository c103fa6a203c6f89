//! `sandbox extend`: more time for a session.

use super::{Lasting, connect};
use clap::Args;
use palisade_session::foreground;
use palisade_session::supervise::interface::Request;
use std::process::ExitCode;

#[derive(Args, Debug)]
#[command(after_help = "\
The session may stay for this time from now on, even if no command runs in it. A session without a time to live stays
anyway.

Examples:
  sandbox extend work 2h")]
pub(crate) struct Extend {
    /// The session, by its id, a part of it or its name
    #[arg(value_name = "SESSION")]
    sid: String,

    /// How long it may stay from now on, such as 30m or 2h
    #[arg(value_name = "TIME")]
    time: Lasting,
}

impl Extend {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let (mut client, _) = connect(&self.sid)?;
        let request = Request::Extend { milliseconds: self.time.milliseconds() };
        foreground::ask(&mut client, &request, &[])?;
        Ok(ExitCode::SUCCESS)
    }
}
