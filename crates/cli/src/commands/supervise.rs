//! `sandbox supervise`: one sandbox for a client that speaks the control interface.
//!
//! Hidden: it is for programs. Standard output is not used; what a person should know goes to standard error, and what the
//! client should know goes to the client.

use crate::request::session_request;
use clap::Args;
use palisade_session::run::RunRequest;
use palisade_session::supervise::ControlSocket;
use palisade_session::supervise::interface::{AskPeople, CreateSandbox};
use palisade_session::{AskIn, Caller};
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
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let mut control = ControlSocket::take(self.control_fd)?;
        let outcome = control.accept().map_err(anyhow::Error::from).and_then(|create| {
            #[cfg(feature = "layers-off")]
            crate::starting::warn_of_test_build();
            let CreateSandbox { settings, policy_files, tool, ask, report, is_quiet } = create;
            let caller = Caller::here()?;
            let request = RunRequest {
                command: vec![NAME.into()],
                policy: session_request(&caller, &settings, policy_files, tool)?,
                ask_in: ask_in(ask),
                fork_of: None,
                record_to: None,
                listed: None,
                is_for_files: false,
            };
            let report_file = report.as_deref().map(crate::starting::report_file).transpose()?;
            let mut tell = |note: &str| {
                if !is_quiet {
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

/// There is no terminal of its own to ask in.
fn ask_in(ask: AskPeople) -> AskIn {
    match ask {
        AskPeople::IfThere => AskIn::Terminal,
        AskPeople::Always => AskIn::Approve,
        AskPeople::Never => AskIn::None,
    }
}
