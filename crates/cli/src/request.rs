//! From options and variables to what the session crate asks for.

use crate::args::PolicyArgs;
use crate::environment;
use crate::flags::{Written, flags};
use anyhow::{Context as _, bail};
use palisade_policy::{Flag, Level, NetworkMode};
use palisade_session::Caller;
use palisade_session::config::{self, PolicyRequest};
use palisade_session::supervise::interface::Setting;
use std::path::PathBuf;

/// The command line above the environment; both above the files.
pub(crate) fn policy_request(caller: &Caller, args: &PolicyArgs) -> anyhow::Result<PolicyRequest> {
    let variables = &caller.facts.env;
    environment::refuse_misspelt(variables)?;
    let inherited: PolicyArgs = environment::options(variables)?;
    let mut files = inherited.policy.clone();
    files.extend(args.policy.iter().cloned());
    let request = PolicyRequest {
        environment: flags(&inherited, Written::Environment, variables)?,
        command_line: flags(args, Written::CommandLine, variables)?,
        files,
        tool: args.tool.clone().or_else(|| inherited.tool.clone()),
        declared: None,
        project: None,
        preset_paths: Vec::new(),
    };
    for (args, written) in [(&inherited, Written::Environment), (args, Written::CommandLine)] {
        refuse_idle_approvals(args, written, caller, &request)?;
    }
    Ok(request)
}

/// The file of a recording, if one was named.
pub(crate) fn record_to(caller: &Caller, args: &PolicyArgs) -> anyhow::Result<Option<PathBuf>> {
    let inherited: PolicyArgs = environment::options(&caller.facts.env)?;
    let named = args.record.clone().or(inherited.record);
    // In a variable, 1 switches an option on.
    Ok(named.filter(|name| !name.is_empty() && name != "1").map(PathBuf::from))
}

/// What a client of the control interface asks for.
pub(crate) fn session_request(
    caller: &Caller,
    settings: &[Setting],
    policy_files: Vec<PathBuf>,
    tool: Option<String>,
) -> anyhow::Result<PolicyRequest> {
    let mut request = policy_request(caller, &PolicyArgs::default())?;
    request.command_line = flags_of(settings)?;
    request.files.extend(policy_files);
    request.tool = tool.or(request.tool);
    Ok(request)
}

/// Keys of the policy that count as options do.
pub(crate) fn flags_of(settings: &[Setting]) -> anyhow::Result<Vec<Flag>> {
    settings.iter().map(flag).collect()
}

fn flag(Setting { key, value }: &Setting) -> anyhow::Result<Flag> {
    let parsed: serde_json::Value = serde_json::from_str(value)
        .with_context(|| format!("the value of the setting `{key}` is not JSON: {value}"))?;
    Ok(Flag::new(format!("setting {key}"), key, parsed))
}

/// An approval is recorded, so one that approves nothing would be a lie in the audit log. What it is
/// for may come from any layer; whatever else is wrong with them is said when they are used.
fn refuse_idle_approvals(
    args: &PolicyArgs,
    written: Written,
    caller: &Caller,
    request: &PolicyRequest,
) -> anyhow::Result<()> {
    if args.approve_no_isolation.is_none() && args.approve_network_host.is_none() {
        return Ok(());
    }
    let Ok(loaded) = config::load(caller, request) else { return Ok(()) };
    let policy = &loaded.merged.policy;
    if args.approve_no_isolation.is_some() && policy.isolation_level != Level::None {
        bail!(
            "{} contradicts `isolationLevel`, which is not LEVEL_0; set that with {}, or remove \
             the approval",
            written.name("approve-no-isolation"),
            written.name("level"),
        );
    }
    if args.approve_network_host.is_some() && policy.network.mode != NetworkMode::Host {
        bail!(
            "{} contradicts `network.mode`, which is not host; set that with {}, or remove the \
             approval",
            written.name("approve-network-host"),
            written.name("network"),
        );
    }
    Ok(())
}
