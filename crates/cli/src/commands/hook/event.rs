//! What an agent says before it uses a tool, and what it is answered. Claude Code and Codex have the same words for it.

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Of what an agent calls its session, in the name of ours.
const MAX_NAME: usize = 40;

#[derive(Debug, Deserialize)]
pub(super) struct HookEvent {
    session_id: String,
    /// Of the agent, or of its shell.
    pub(super) cwd: PathBuf,
    hook_event_name: String,
    #[serde(default)]
    tool_name: String,
    #[serde(default)]
    tool_input: Map<String, Value>,
}

/// What an event is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning<'event> {
    /// The agent is going to run this in a shell.
    Command(&'event str),
    /// The agent's session is over.
    End,
    /// Nothing of ours.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Allow,
    Ask,
}

impl HookEvent {
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        serde_json::from_str(text).context("what came on standard input is no event of a hook")
    }

    pub(super) fn meaning(&self) -> anyhow::Result<Meaning<'_>> {
        match (self.hook_event_name.as_str(), self.tool_name.as_str()) {
            ("PreToolUse", "Bash") => {
                let command = self.tool_input.get("command").and_then(Value::as_str);
                command.map(Meaning::Command).context("the event has no command")
            }
            ("SessionEnd", _) => Ok(Meaning::End),
            _ => Ok(Meaning::Other),
        }
    }

    /// The name of the session in which the commands of this agent run.
    pub(super) fn session_name(&self, agent: &str) -> String {
        let kept = self.session_id.chars().filter(|it| it.is_ascii_alphanumeric() || *it == '-');
        let kept: String = kept.take(MAX_NAME).collect();
        format!("{agent}-{kept}")
    }

    /// Another command in the place of the agent's. Everything else of its input stays.
    pub(super) fn with_command(&self, answer: Answer, command: &str) -> String {
        let mut input = self.tool_input.clone();
        input.insert("command".to_owned(), command.into());
        let decision = match answer {
            Answer::Allow => "allow",
            Answer::Ask => "ask",
        };
        json!({
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": decision,
                "permissionDecisionReason": "it runs in a sandbox",
                "updatedInput": input,
            }
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, HookEvent, Meaning};
    use serde_json::{Value, json};

    fn event(name: &str, tool: &str, input: &Value) -> HookEvent {
        let event = json!({
            "session_id": "12ab-../x y", "cwd": "/work", "hook_event_name": name,
            "tool_name": tool, "tool_input": input, "permission_mode": "default",
        });
        HookEvent::parse(&event.to_string()).unwrap()
    }

    #[test]
    fn only_commands_of_the_shell_tool_are_changed() {
        let input = json!({ "command": "ls", "timeout": 5 });
        assert_eq!(event("PreToolUse", "Bash", &input).meaning().unwrap(), Meaning::Command("ls"));
        assert_eq!(event("PreToolUse", "Read", &input).meaning().unwrap(), Meaning::Other);
        assert_eq!(event("PostToolUse", "Bash", &input).meaning().unwrap(), Meaning::Other);
        assert_eq!(event("SessionEnd", "", &json!({})).meaning().unwrap(), Meaning::End);
        assert!(event("PreToolUse", "Bash", &json!({ "command": 1 })).meaning().is_err());
        assert!(HookEvent::parse("[]").is_err());
    }

    #[test]
    fn an_answer_keeps_the_rest_of_the_input() {
        let event = event("PreToolUse", "Bash", &json!({ "command": "ls", "timeout": 5 }));
        let answer: Value =
            serde_json::from_str(&event.with_command(Answer::Allow, "other")).unwrap();
        let answer = &answer["hookSpecificOutput"];
        assert_eq!(answer["updatedInput"], json!({ "command": "other", "timeout": 5 }));
        assert_eq!(answer["permissionDecision"], "allow");
        assert_eq!(event.session_name("claude"), "claude-12ab-xy");
    }
}
