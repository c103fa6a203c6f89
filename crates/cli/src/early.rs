//! Asking before a run whether it should have the network, where the command looks as if it needs it (NET-8).
//!
//! The look of a command is only a reason to ask early. It opens nothing: without a yes the run has no network, and
//! with one it reaches what the policy's list allows, however the command looked.

use crate::output;
use palisade_policy::{Flag, LayerKind, NetworkMode};
use palisade_record::escape;
use palisade_session::Caller;
use palisade_session::config::{self, PolicyRequest};
use rustix::termios::{QueueSelector, tcflush};
use serde_json::json;
use std::ffi::OsString;
use std::io::{self, BufRead as _, IsTerminal as _};

/// Programs that are for the network.
const PROGRAMS: [&str; 12] = [
    "curl", "wget", "fetch", "ssh", "scp", "sftp", "rsync", "nc", "ncat", "netcat", "telnet", "ftp",
];

/// Programs that need it for some of what they do.
const ACTIONS: [(&str, &[&str]); 8] = [
    ("npm", &["install", "i", "ci", "update", "publish", "add"]),
    ("pnpm", &["install", "i", "add", "update"]),
    ("yarn", &["add", "install", "upgrade"]),
    ("pip", &["install", "download"]),
    ("pip3", &["install", "download"]),
    ("git", &["clone", "fetch", "pull", "push", "ls-remote"]),
    ("cargo", &["fetch", "install", "update", "publish", "search"]),
    ("go", &["get", "install"]),
];

/// Why a command looks as if it needs the network: the word that says so.
pub(crate) fn hint(command: &[OsString]) -> Option<String> {
    let text: Vec<_> = command.iter().map(|argument| argument.to_string_lossy()).collect();
    let text = text.join(" ");
    // What a shell would part, and the quotes of a script that is given to one.
    let is_part = |c: char| c.is_alphanumeric() || "-_.:/@+~".contains(c);
    let words: Vec<&str> = text.split(|c| !is_part(c)).filter(|word| !word.is_empty()).collect();
    words.iter().enumerate().find_map(|(index, word)| {
        if word.contains("http://") || word.contains("https://") {
            return Some((*word).to_owned());
        }
        let program = word.rsplit('/').next().unwrap_or(word);
        if PROGRAMS.contains(&program) {
            return Some(program.to_owned());
        }
        let (_, actions) = ACTIONS.iter().find(|(name, _)| *name == program)?;
        let action = words[index + 1..].iter().find(|next| !next.starts_with('-'))?;
        actions.contains(action).then(|| format!("{program} {action}"))
    })
}

/// Where nobody chose a network and somebody sits there: asks, and adds a yes to what was requested.
pub(crate) fn ask(caller: &Caller, request: &mut PolicyRequest, command: &[OsString]) {
    let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    let Some(word) = hint(command).filter(|_| is_terminal && is_none_by_default(caller, request))
    else {
        return;
    };
    let approved = with_yes(request);
    // An organisation may have locked it; then there is nothing to ask.
    if config::load(caller, &approved).is_err() {
        return;
    }
    output::question(&format!(
        "`{}` seems to need the network; allow the hosts that the policy lists? [y/N] ",
        escape::text(&word)
    ));
    // What was typed before the question was there is no answer to it.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    let mut answer = String::new();
    let is_yes = io::stdin().lock().read_line(&mut answer).is_ok()
        && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    if is_yes {
        *request = approved;
    }
}

/// Nobody said anything about the network, and so there is none.
fn is_none_by_default(caller: &Caller, request: &PolicyRequest) -> bool {
    let Ok(loaded) = config::load(caller, request) else { return false };
    let sources = loaded.merged.provenance.get("network.mode");
    let is_chosen = sources.is_some_and(|sources| {
        sources.iter().any(|source| source.layer != LayerKind::BuiltIn.name())
    });
    loaded.merged.policy.network.mode == NetworkMode::None && !is_chosen
}

fn with_yes(request: &PolicyRequest) -> PolicyRequest {
    const NAME: &str = "the answer before the run";
    let what = match &request.tool {
        Some(tool) => format!("{tool}:network"),
        None => "network:proxy".to_owned(),
    };
    let approval = json!([{ "what": what, "reason": "answered at the terminal before the run" }]);
    let mut approved = request.clone();
    approved.command_line.push(Flag::new(NAME, "network.mode", "proxy"));
    approved.command_line.push(Flag::new(NAME, "approvals", approval));
    approved
}

#[cfg(test)]
#[path = "early_tests.rs"]
mod tests;
