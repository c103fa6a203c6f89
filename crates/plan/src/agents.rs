//! The coding agents that the preset `agent` knows (`resources/presets/agents.txt`). Data only; the command
//! line turns it into options.

use crate::lists::Listed;
use palisade_guard::list;

static AGENTS: &[Listed] = list!("../../../resources/presets/agents.txt");

/// The preset that uses the list.
pub const PRESET: &str = "agent";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agent {
    pub program: &'static str,
    /// Readable and writable; created if missing.
    pub directories: Vec<&'static str>,
    /// The same, if they exist.
    pub files: Vec<&'static str>,
    /// The same; if missing, created with an empty JSON object.
    pub json_files: Vec<&'static str>,
    pub hosts: Vec<&'static str>,
    /// Denied without a question.
    pub denied_hosts: Vec<&'static str>,
    /// Hidden without a question.
    pub hidden: Vec<&'static str>,
    /// Variables that are passed on although they are secrets.
    pub keys: Vec<&'static str>,
    /// `NAME=VALUE`.
    pub set: Vec<&'static str>,
    /// Inserted before the user's arguments.
    pub arguments: Vec<&'static str>,
}

/// The names of all programs, in the order of the list.
pub fn programs() -> Vec<&'static str> {
    let mut names: Vec<&str> = AGENTS.iter().map(|listed| listed.name).collect();
    names.dedup();
    names
}

/// Finds an agent by its program's name, without a directory.
pub fn agent(program: &str) -> Option<Agent> {
    let lines = AGENTS.iter().filter(|listed| listed.name == program);
    let mut found: Option<Agent> = None;
    for Listed { name, tags, .. } in lines {
        let agent = found.get_or_insert_with(Agent::default);
        agent.program = name;
        let Some((kind, value)) = tags.split_once(':') else { continue };
        let Some(part) = agent.part(kind) else { continue };
        part.push(value);
    }
    found
}

impl Agent {
    fn part(&mut self, kind: &str) -> Option<&mut Vec<&'static str>> {
        Some(match kind {
            "dir" => &mut self.directories,
            "file" => &mut self.files,
            "json" => &mut self.json_files,
            "host" => &mut self.hosts,
            "deny" => &mut self.denied_hosts,
            "hide" => &mut self.hidden,
            "key" => &mut self.keys,
            "set" => &mut self.set,
            "arg" => &mut self.arguments,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{AGENTS, Agent, agent, programs};
    use crate::lists;

    /// Proves: AGENT-1 data
    #[test]
    fn every_line_is_of_a_known_kind_with_a_value_and_a_reason() {
        for line in AGENTS {
            let (kind, value) = line.tags.split_once(':').unwrap();
            assert!(Agent::default().part(kind).is_some(), "{line:?}");
            assert!(!value.is_empty() && !line.why.trim().is_empty(), "{line:?}");
            assert!(kind != "set" || value.contains('='), "{line:?}");
            assert!(
                !["dir", "file", "json", "hide"].contains(&kind) || value.starts_with("~/"),
                "{line:?}"
            );
            assert!(!["host", "deny"].contains(&kind) || value.ends_with(":443"), "{line:?}");
        }
        assert_eq!(programs(), ["claude", "codex", "gemini", "opencode", "aider"]);
        assert_eq!(agent("clau"), None);
    }

    /// Proves: AGENT-1 data
    #[test]
    fn each_program_has_a_place_a_host_and_a_key() {
        for name in programs() {
            let agent = agent(name).unwrap();
            assert!(!agent.directories.is_empty() && !agent.hosts.is_empty(), "{agent:?}");
            for key in &agent.keys {
                let is_withheld = crate::environment::is_secret(std::ffi::OsStr::new(key));
                assert!(is_withheld, "{key} is passed on anyway");
            }
            // The list of secrets keeps them from everybody else.
            let logins = agent.directories.iter();
            let is_secret = |path: &&&str| {
                lists::SECRETS.iter().any(|secret| {
                    let name = secret.name.trim_end_matches('*');
                    path.starts_with(name)
                })
            };
            assert!(logins.clone().any(|path| is_secret(&path)), "{name}");
        }
    }
}
