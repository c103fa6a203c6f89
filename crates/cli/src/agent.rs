//! The preset `agent`: what a coding agent needs, by the name of its program, as the options that a person would
//! type for it. An option that was typed is never overruled, and no program gets what belongs to another.

use crate::args::PolicyArgs;
use anyhow::Context;
use palisade_record::escape;
use palisade_session::agents::{self, Agent};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Whether the command will run, or is only looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Run,
    Look,
}

/// The options with what the program needs among them, and what a person should know about it.
pub(crate) struct Applied {
    pub(crate) policy: PolicyArgs,
    /// Writable paths that were not typed.
    pub(crate) paths: Vec<String>,
    pub(crate) told: String,
}

/// Adds what the command's program needs, if the preset was asked for.
pub(crate) fn apply(
    policy: &PolicyArgs,
    command: &mut Vec<OsString>,
    environment: &BTreeMap<OsString, OsString>,
    purpose: Purpose,
) -> anyhow::Result<Option<Applied>> {
    let is_inherited = environment.get(OsStr::new("SANDBOX_PRESET"));
    let is_inherited = is_inherited
        .is_some_and(|named| named.to_string_lossy().split(':').any(|name| name == agents::PRESET));
    if !is_inherited && !policy.preset.iter().any(|name| name == agents::PRESET) {
        return Ok(None);
    }
    let program = command.first().and_then(|program| Path::new(program).file_name());
    let program = program.unwrap_or_default().to_string_lossy().into_owned();
    let Some(agent) = agents::agent(&program) else {
        let told = format!(
            "the preset `agent` does not support `{}`, only {}; grant what it needs with --rw, --allow-host and --env",
            escape::text(&program),
            agents::programs().join(", ")
        );
        return Ok(Some(Applied { policy: policy.clone(), paths: Vec::new(), told }));
    };
    let home = environment.get(OsStr::new("HOME")).map(Path::new);
    if let (Some(home), Purpose::Run) = (home, purpose) {
        make_json_files(&agent, home)?;
    }
    let typed = policy;
    let mut policy = policy.clone();
    add(&agent, &mut policy, home, environment);
    let is_added = |path: &&String| !typed.rw.contains(path);
    let paths = policy.rw.iter().filter(is_added).cloned().collect();
    let told = told(&agent, &insert(&agent, command));
    Ok(Some(Applied { policy, paths, told }))
}

/// A file can be kept only if it exists: what is written beside it goes to the private home.
fn make_json_files(agent: &Agent, home: &Path) -> anyhow::Result<()> {
    for path in &agent.json_files {
        let path = home.join(path.trim_start_matches("~/"));
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        match made.and_then(|mut file| file.write_all(b"{}\n")) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(error).with_context(|| format!("cannot create {}", path.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

fn add(
    agent: &Agent,
    policy: &mut PolicyArgs,
    home: Option<&Path>,
    environment: &BTreeMap<OsString, OsString>,
) {
    let exists = |path: &str| {
        let below = path.strip_prefix("~/").zip(home);
        below.is_some_and(|(below, home)| home.join(below).is_file())
    };
    let files = agent.files.iter().chain(&agent.json_files).filter(|path| exists(path));
    policy.rw.extend(agent.directories.iter().chain(files).map(|path| (*path).to_owned()));
    policy.egress.allow_host.extend(agent.hosts.iter().map(|host| (*host).to_owned()));
    policy.blacklist.extend(agent.hidden.iter().map(|path| (*path).to_owned()));
    policy.egress.deny_host.extend(agent.denied_hosts.iter().map(|host| (*host).to_owned()));
    let is_set = |key: &&&str| environment.contains_key(OsStr::new(key));
    let typed: Vec<String> =
        policy.env.iter().map(|set| set.split('=').next().unwrap_or_default().to_owned()).collect();
    let is_free = |set: &&&str| {
        let name = set.split('=').next().unwrap_or_default();
        !typed.iter().any(|typed| typed == name)
    };
    let keys = agent.keys.iter().filter(is_set).filter(is_free);
    let set = agent.set.iter().filter(is_free);
    policy.env.extend(keys.chain(set).map(|variable| (*variable).to_owned()));
}

/// The arguments that were put in: not those whose option was typed.
fn insert(agent: &Agent, command: &mut Vec<OsString>) -> Vec<&'static str> {
    // Of `--config=KEY=VALUE` the key belongs to it: another one may be typed.
    let option = |argument: &str| match argument.splitn(3, '=').collect::<Vec<_>>()[..] {
        [name, key, _] => format!("{name}={key}"),
        [name, ..] => name.to_owned(),
        [] => String::new(),
    };
    let is_typed = |argument: &&&str| {
        let mut typed = command[1..].iter().map(|word| option(&word.to_string_lossy()));
        let name = option(argument);
        typed.any(|word| word == name)
    };
    let missing: Vec<&'static str> =
        agent.arguments.iter().filter(|it| !is_typed(it)).copied().collect();
    command.splice(1..1, missing.iter().map(OsString::from));
    missing
}

fn told(agent: &Agent, arguments: &[&'static str]) -> String {
    let set: Vec<&str> = agent.set.iter().chain(arguments).copied().collect();
    let files = agent.files.iter().chain(&agent.json_files);
    let places: Vec<&str> = agent.directories.iter().chain(files).copied().collect();
    let hosts = agent.hosts.iter().map(|host| host.trim_end_matches(":443"));
    format!(
        "agent {}: {} writable; {} allowed; set {}",
        agent.program,
        places.join(", "),
        hosts.collect::<Vec<_>>().join(", "),
        set.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::{Purpose, apply};
    use crate::args::PolicyArgs;
    use std::collections::BTreeMap;
    use std::ffi::OsString;

    fn applied(
        preset: &str,
        typed: &[&str],
        env: &[&str],
        variables: &[(&str, &str)],
    ) -> (PolicyArgs, Vec<OsString>, Option<String>) {
        let mut policy = PolicyArgs { preset: vec![preset.to_owned()], ..PolicyArgs::default() };
        policy.env = env.iter().map(|set| (*set).to_owned()).collect();
        let mut command: Vec<OsString> = typed.iter().map(OsString::from).collect();
        let variables: BTreeMap<OsString, OsString> =
            variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        match apply(&policy, &mut command, &variables, Purpose::Look).unwrap() {
            Some(applied) => (applied.policy, command, Some(applied.told)),
            None => (policy, command, None),
        }
    }

    /// Proves: AGENT-1 by-name
    #[test]
    fn an_agent_gets_what_its_entry_says() {
        let variables = [("HOME", "/nowhere"), ("ANTHROPIC_API_KEY", "k"), ("OPENAI_API_KEY", "o")];
        let (policy, command, told) =
            applied("agent", &["/opt/bin/claude", "-p", "hi"], &[], &variables);
        assert_eq!(policy.rw, ["~/.claude"], "the file is not there");
        assert!(policy.egress.allow_host.contains(&"api.anthropic.com:443".to_owned()));
        assert_eq!(policy.env[..2], ["ANTHROPIC_API_KEY", "IS_SANDBOX=1"]);
        assert!(!policy.env.contains(&"OPENAI_API_KEY".to_owned()), "another's key");
        assert_eq!(command, ["/opt/bin/claude", "-p", "hi"]);
        let told = told.unwrap();
        assert!(told.contains("~/.claude") && told.contains("IS_SANDBOX=1"), "{told}");
    }

    /// Proves: AGENT-1 inner-sandbox
    #[test]
    fn an_inner_sandbox_is_told_to_stay_off_unless_somebody_says_otherwise() {
        let (_, command, told) = applied("agent", &["codex", "exec", "hi"], &[], &[]);
        let update = "--config=check_for_update_on_startup=false";
        let plugins = "--config=features.plugins=false";
        let sandbox = "--sandbox=danger-full-access";
        assert_eq!(command, ["codex", sandbox, update, plugins, "exec", "hi"]);
        assert!(told.unwrap().contains("set --sandbox=danger-full-access"));
        let (_, command, _) = applied("agent", &["codex", "--sandbox", "read-only"], &[], &[]);
        assert_eq!(command, ["codex", update, plugins, "--sandbox", "read-only"]);
        let (policy, _, _) = applied("agent", &["gemini"], &["GEMINI_SANDBOX=docker"], &[]);
        assert_eq!(policy.env, ["GEMINI_SANDBOX=docker", "SANDBOX="]);
    }

    /// Proves: AGENT-1 by-name
    #[test]
    fn without_the_preset_or_with_another_program_nothing_is_added() {
        let (policy, command, told) = applied("strict", &["claude"], &[], &[]);
        assert!(policy.rw.is_empty() && policy.env.is_empty() && told.is_none());
        assert_eq!(command, ["claude"]);
        let (policy, _, told) = applied("agent", &["claud"], &[], &[]);
        assert!(policy.rw.is_empty() && policy.egress.allow_host.is_empty());
        assert!(told.unwrap().contains("does not support `claud`, only claude, codex"));
    }
}
