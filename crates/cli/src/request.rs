//! From options and variables to what the session crate asks for.

use crate::args::PolicyArgs;
use crate::environment;
use crate::flags::{Written, flags};
use palisade_session::Caller;
use palisade_session::config::PolicyRequest;

/// The command line above the environment; both above the files.
pub(crate) fn policy_request(caller: &Caller, args: &PolicyArgs) -> anyhow::Result<PolicyRequest> {
    let variables = &caller.facts.env;
    let inherited = environment::options(variables)?.unwrap_or_default();
    let mut files = inherited.policy.clone();
    files.extend(args.policy.iter().cloned());
    Ok(PolicyRequest {
        environment: flags(&inherited, Written::Environment, variables)?,
        command_line: flags(args, Written::CommandLine, variables)?,
        files,
        tool: args.tool.clone().or(inherited.tool),
        project: None,
    })
}
