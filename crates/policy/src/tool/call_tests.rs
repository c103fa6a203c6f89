use super::{CallError, Work, command_line};
use crate::tool::{BuiltIn, PatternError, parse_tool};
use serde_json::json;

const COUNT: &str = "name: count\ndescription: Count lines\ncommand: [wc, -l, --, '{path}']\ninput:\n  properties:\n    path: { type: string }\n  required: [path]\npatterns:\n  allowed: ['^wc -l -- [a-z./ ]+$', \"'\"]\n  blocked: ['secret']\n";

#[test]
fn a_call_is_a_command_with_its_values() {
    let tool = parse_tool(COUNT, "count.yaml").unwrap();
    let call = tool.call(&json!({ "path": "a.txt" })).unwrap();
    let argv = ["wc", "-l", "--", "a.txt"].map(str::to_owned).to_vec();
    assert_eq!(call.work, Work::Command { argv, stdin: None });
}

/// Proves: CARGO-1 patterns
#[test]
fn a_refused_pattern_is_a_refusal_and_a_wrong_input_is_none() {
    let tool = parse_tool(COUNT, "count.yaml").unwrap();
    let blocked = tool.call(&json!({ "path": "secret" })).unwrap_err();
    assert!(matches!(&blocked, CallError::Pattern { error: PatternError::Blocked { .. }, .. }));
    assert!(blocked.is_refusal());
    let wrong = tool.call(&json!({ "path": 1 })).unwrap_err();
    assert!(!wrong.is_refusal());
    assert_eq!(wrong.to_string(), "the input of count is wrong: `path` must be text, not a number");
    assert!(tool.call(&json!({ "path": "A" })).unwrap_err().is_refusal());
}

#[test]
fn patterns_see_arguments_as_a_shell_would_write_them() {
    let line =
        |words: &[&str]| command_line(&words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
    assert_eq!(line(&["cargo", "build", "--release"]), "cargo build --release");
    assert_eq!(line(&["cargo", "build; rm"]), "cargo 'build; rm'");
    assert_eq!(line(&["x", "it's", ""]), r"x 'it'\''s' ''");
}

#[test]
fn patterns_of_bash_see_the_script() {
    let text = "name: sh\ndescription: d\nbuiltin: bash\npatterns:\n  allowed: ['^cargo (build|test)( |$)']\n  blocked: ['[;&|`$<>]']\n";
    let tool = parse_tool(text, "sh.yaml").unwrap();
    assert!(tool.call(&json!({ "command": "cargo build" })).is_ok());
    assert!(tool.call(&json!({ "command": "cargo build; id" })).is_err());
    assert!(tool.call(&json!({ "command": "id" })).is_err());
}

#[test]
fn file_tools_have_no_command() {
    let tool = parse_tool("name: r\ndescription: d\nbuiltin: read\n", "r.yaml").unwrap();
    let call = tool.call(&json!({ "path": "-x" })).unwrap();
    assert_eq!(call.work, Work::Files(BuiltIn::Read));
    assert_eq!(call.values.json(), json!({ "path": "-x", "offset": 1, "limit": 2000 }));
}

/// The page of declared tools names it to whoever has patterns in the file of a cargo runner.
///
/// Proves: CARGO-1 patterns
#[test]
fn the_documented_runner_for_cargo_starts_what_its_patterns_allow() {
    const PAGE: &str = include_str!("../../../../docs/tools.md");
    let is_runner = |text: &&str| text.contains("name: cargo\n");
    let example = PAGE.split("```").find(is_runner).unwrap().strip_prefix("yaml\n").unwrap();
    let tool = parse_tool(example, "cargo.yaml").unwrap();
    assert_eq!(tool.policy.to_json()["preset"], json!(["cargo"]));
    let argv = |input| match tool.call(&input).unwrap().work {
        Work::Command { argv, .. } => argv.join(" "),
        Work::Files(_) => String::new(),
    };
    assert_eq!(argv(json!({ "subcommand": "build" })), "cargo build");
    let all = json!({ "subcommand": "test", "release": true, "package": "app" });
    assert_eq!(argv(all), "cargo test --release --package=app");
    let refused = |input| tool.call(&input).unwrap_err();
    assert!(!refused(json!({ "subcommand": "install" })).is_refusal(), "no such input");
    let package = |text: &str| refused(json!({ "subcommand": "build", "package": text }));
    assert!(package("$(id)").is_refusal());
    assert!(matches!(
        package(&"x".repeat(2000)),
        CallError::Pattern { error: PatternError::TooLong { .. }, .. }
    ));
}
