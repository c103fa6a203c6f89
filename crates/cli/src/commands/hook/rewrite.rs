//! The command that an agent runs in place of its own, and the settings by which it asks for it.

use anyhow::Context as _;
use palisade_record::escape;
use serde_json::json;
use std::ffi::OsString;
use std::path::Path;

/// How long making a session may take before the agent gives up, in seconds.
const PATIENCE: u32 = 60;

/// The same command in a session, for the agent's own shell to run. Its working directory counts.
pub(super) fn in_session(program: &Path, session: &str, command: &str) -> anyhow::Result<String> {
    let program = quoted(program)?;
    let command = escape::shell_word(command);
    Ok(format!("{program} exec --cwd \"$PWD\" {session} -- bash -c -- {command}"))
}

/// What belongs into the settings of an agent.
pub(super) fn settings(
    agent: &str,
    program: &Path,
    asks: bool,
    create: &[OsString],
) -> anyhow::Result<String> {
    let mut line = format!("{} hook {agent}", quoted(program)?);
    if asks {
        line.push_str(" --ask");
    }
    if !create.is_empty() {
        line.push_str(" --");
        for word in create {
            let word = word.to_str().context("an option is not UTF-8")?;
            line.push(' ');
            line.push_str(&escape::shell_word(word));
        }
    }
    let run = json!([{ "type": "command", "command": line, "timeout": PATIENCE }]);
    let settings = json!({
        "hooks": {
            "PreToolUse": [{ "matcher": "Bash", "hooks": run }],
            "SessionEnd": [{ "hooks": run }],
        }
    });
    Ok(serde_json::to_string_pretty(&settings)?)
}

fn quoted(program: &Path) -> anyhow::Result<String> {
    let program = program.to_str().context("the path of this program is not UTF-8")?;
    Ok(escape::shell_word(program).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{in_session, settings};
    use std::path::Path;

    #[test]
    fn a_command_stays_one_word_whatever_is_in_it() {
        let line = in_session(Path::new("/opt/sandbox"), "claude-1", "echo 'a' \"$B\"; x\n`y`");
        let expected =
            r#"/opt/sandbox exec --cwd "$PWD" claude-1 -- bash -c -- 'echo '\''a'\'' "$B"; x"#;
        assert_eq!(line.unwrap(), format!("{expected}\n`y`'"));
    }

    #[test]
    fn settings_name_this_program_and_the_options_of_the_session() {
        let options = ["--allow-for".into(), "npm,git".into()];
        let text = settings("claude", Path::new("/opt/sandbox"), true, &options).unwrap();
        assert!(text.contains("/opt/sandbox hook claude --ask -- --allow-for npm,git"), "{text}");
    }
}
