//! `sandbox supervise`: one sandbox for a client that speaks the control interface.
//!
//! Hidden: it is for programs. Standard output is not used; what a person should know goes to standard error, and what the
//! client should know goes to the client.

use crate::commands::run::{Run, Session};
use clap::Args;
use palisade_session::Caller;
use palisade_session::supervise::ControlSocket;
use std::ffi::OsString;
use std::process::ExitCode;

/// What reports and logs call it: there is no first command.
const NAME: &str = "sandbox-session";

#[derive(Args, Debug)]
pub(crate) struct Supervise {
    /// The number of the descriptor that the client is connected to
    #[arg(long, value_name = "N")]
    control_fd: i32,
}

impl Supervise {
    /// `read_options` reads the options that the client gives, as those of `run` with this command.
    pub(crate) fn execute(
        self,
        read_options: impl Fn(Vec<OsString>, &str) -> anyhow::Result<Run>,
    ) -> anyhow::Result<ExitCode> {
        let mut control = ControlSocket::take(self.control_fd)?;
        let outcome = control.accept().map_err(anyhow::Error::from).and_then(|options| {
            let caller = Caller::here()?;
            let Session { caller, request, report_file, quiet } =
                read_options(options, NAME)?.into_session(caller)?;
            let mut tell = |note: &str| {
                if !quiet {
                    crate::output::note(note);
                }
            };
            let finished = control.supervise(caller, &request, &mut tell);
            if let Some(file) = report_file {
                file.write(&finished.report)?;
            }
            Ok(finished)
        });
        let (code, error) = match &outcome {
            Ok(finished) => {
                (finished.report.exit_code, finished.error.as_ref().map(ToString::to_string))
            }
            Err(error) => (i32::from(crate::OWN_FAILURE), Some(format!("{error:#}"))),
        };
        control.tell_end(code, error);
        let finished = outcome?;
        match finished.error {
            Some(error) => Err(error.into()),
            None => Ok(ExitCode::from(u8::try_from(code).unwrap_or(crate::OWN_FAILURE))),
        }
    }
}
