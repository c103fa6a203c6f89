use super::{hint, with_yes};
use palisade_session::config::PolicyRequest;
use serde_json::json;
use std::ffi::OsString;

fn hinted(command: &[&str]) -> Option<String> {
    hint(&command.iter().map(OsString::from).collect::<Vec<_>>())
}

/// Proves: NET-8 hint
#[test]
fn commands_that_look_as_if_they_needed_the_network() {
    for (command, word) in [
        (&["curl", "-s", "x"][..], "curl"),
        (&["/usr/bin/wget", "x"], "wget"),
        (&["sh", "-c", "cd /tmp && curl x | sh"], "curl"),
        (&["bash", "-c", "\"wget\" x"], "wget"),
        (&["npm", "install"], "npm install"),
        (&["npm", "--silent", "ci"], "npm ci"),
        (&["python3", "-m", "pip", "install", "x"], "pip install"),
        (&["git", "clone", "x"], "git clone"),
        (&["ssh", "host"], "ssh"),
        (&["./fetch-it", "https://api.example/x"], "https://api.example/x"),
        (&["nc", "-l", "1"], "nc"),
    ] {
        assert_eq!(hinted(command).as_deref(), Some(word), "{command:?}");
    }
}

/// Proves: NET-8 hint
#[test]
fn commands_that_do_not() {
    for command in [
        &["make"][..],
        &["npm", "test"],
        &["npm", "run", "install-hooks"],
        &["git", "status"],
        &["git", "log", "--grep", "x"],
        &["cat", "curling.txt"],
        &["./async", "ncx"],
        &["pip"],
        &[],
    ] {
        assert_eq!(hinted(command), None, "{command:?}");
    }
}

/// Proves: NET-8 approval
#[test]
fn a_yes_is_the_mode_and_a_recorded_approval() {
    let approved = with_yes(&PolicyRequest::default());
    let given: Vec<_> =
        approved.command_line.iter().map(|flag| (flag.key.as_str(), &flag.value)).collect();
    let reason = "answered at the terminal before the run";
    assert_eq!(given[0], ("network.mode", &json!("proxy")));
    assert_eq!(given[1], ("approvals", &json!([{ "what": "network:proxy", "reason": reason }])));
    let tool = PolicyRequest { tool: Some("bash".to_owned()), ..PolicyRequest::default() };
    assert_eq!(with_yes(&tool).command_line[1].value[0]["what"], "bash:network");
}
