use super::{Action, ToolDeclaration, declared_name, parse_tool};
use crate::{Diagnostic, Level};
use serde_json::json;

fn parsed(text: &str) -> Result<ToolDeclaration, Vec<Diagnostic>> {
    parse_tool(text, "t.yaml")
}

fn complaints(text: &str) -> Vec<String> {
    let problems = parsed(text).err().unwrap_or_default();
    problems.iter().map(ToString::to_string).collect()
}

const WHOLE: &str = "\
version: 1
name: head
description: The first lines of a file
level: LEVEL_2
command: [head, [-n, '{lines}'], --, '{path}']
input:
  type: object
  properties:
    path: { type: string }
    lines: { type: integer, minimum: 1 }
  required: [path]
limits: { timeout: 10s, maxMemory: 64m }
patterns: { maxLength: 200, blocked: ['\\.env'] }
policy:
  filesystem: { project: read-only }
";

/// Proves: TOOL-1 declared
#[test]
fn a_declaration_has_a_name_a_level_a_policy_and_a_command() {
    let tool = parsed(WHOLE).unwrap();
    assert_eq!((tool.name.as_str(), tool.level()), ("head", Some(Level::Full)));
    let policy = tool.policy.to_json();
    assert_eq!(policy["filesystem"], json!({ "project": "read-only" }));
    assert_eq!(policy["resources"]["timeout"], json!(10_000));
    assert_eq!(policy["resources"]["maxOutputSize"], json!(1 << 20), "an answer is bounded");
    let shown = tool.to_json();
    assert_eq!(shown["command"], json!(["head", ["-n", "{lines}"], "--", "{path}"]));
    assert_eq!(shown["input"]["required"], json!(["path"]));
    let built_in = parsed("name: r\ndescription: d\nbuiltin: read\n").unwrap();
    assert!(matches!(built_in.action, Action::BuiltIn(_)));
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    assert_eq!(
        complaints("name: x\ndescription: d\ncomand: [x]\n"),
        [
            "t.yaml:1:1: a tool needs a `command` or a `builtin`",
            "t.yaml:3:1: unknown key `comand`; did you mean `command`?",
        ]
    );
    assert_eq!(complaints("name: 1x\ndescription: d\ncommand: [x]\n").len(), 1);
    let both = complaints("name: x\ndescription: d\ncommand: [x]\nbuiltin: bash\n");
    assert!(both[0].contains("do not go together"), "{both:?}");
    let built_in = complaints("name: x\ndescription: d\nbuiltin: raed\n");
    assert!(built_in[0].ends_with("did you mean `read`?"), "{built_in:?}");
    let unquoted = complaints("name: x\ndescription: d\ncommand: [x, {path}]\n");
    assert!(unquoted[0].contains("in quotes"), "{unquoted:?}");
    let policy = complaints("name: x\ndescription: d\ncommand: [x]\npolicy: { filesytem: {} }\n");
    assert!(policy[0].contains("filesystem"), "{policy:?}");
    let allowed = complaints("name: x\ndescription: d\ncommand: [x]\npatterns: { allowed: [] }\n");
    assert!(allowed[0].contains("at least one pattern"), "{allowed:?}");
    let of_read =
        complaints("name: x\ndescription: d\nbuiltin: read\npatterns: { blocked: [a] }\n");
    assert!(of_read[0].contains("has none"), "{of_read:?}");
}

#[test]
fn places_and_values_belong_together() {
    let text = "name: x\ndescription: d\ncommand: [x, '{path}', '-I{dir}']\ninput: { properties: { dir: { type: string } } }\n";
    let found = complaints(text);
    assert!(found.iter().any(|it| it.contains("a place for `path`")), "{found:?}");
    assert!(found.iter().any(|it| it.contains("`input.properties.dir` has no place")), "{found:?}");
    assert!(found.iter().any(|it| it.contains("`-I{dir}` is no place")), "{found:?}");
    assert_eq!(complaints("name: x\ndescription: d\ncommand: [awk, '{{print}}']\n"), [""; 0]);
}

#[test]
fn a_declaration_approves_nothing() {
    for key in ["approvals: []", "locks: [network]", "maximum: {}", "tools: {}"] {
        let text = format!("name: x\ndescription: d\ncommand: [x]\npolicy: {{ {key} }}\n");
        let found = complaints(&text);
        assert!(found.len() == 1 && found[0].contains("cannot say this"), "{found:?}");
    }
}

#[test]
fn a_short_word_and_its_key_do_not_go_together() {
    let text = "name: x\ndescription: d\ncommand: [x]\nlevel: LEVEL_1\npolicy: { isolationLevel: LEVEL_2 }\n";
    assert!(complaints(text)[0].contains("are the same"));
}

/// Proves: TOOL-1 declared
#[test]
fn a_place_behind_an_option_has_a_value_in_each_call() {
    let with = |command: &str, properties: &str| {
        complaints(&format!(
            "name: x\ndescription: d\ncommand: {command}\ninput:\n  properties: {{ {properties} }}\n  required: [p, l, m]\n"
        ))
    };
    const REST: &str = "p: { type: string }, l: { type: array }, m: { type: array, minItems: 1 }";
    const PLACES: &str = "[-e, '{l}'], [-e, '{m}'], [-e, '{p}']";
    let refused = |command: &str, properties: &str| {
        let found = with(command, &format!("{properties}, {REST}"));
        assert!(found.len() == 1 && found[0].contains("put both in a list"), "{found:?}");
    };
    let accepted = |command: &str, properties: &str| {
        assert_eq!(with(command, &format!("{properties}, {REST}")), [""; 0]);
    };
    let glob = "glob: { type: string }";
    refused(&format!("[grep, --include, '{{glob}}', {PLACES}]"), glob);
    refused(&format!("[grep, -e, '{{l}}', '{{glob}}', {PLACES}]"), glob);
    let empty = "glob: { type: array, default: [a] }";
    refused(&format!("[grep, -e, '{{glob}}', {PLACES}]"), empty);
    accepted(&format!("[grep, [--include, '{{glob}}'], {PLACES}]"), glob);
    accepted(&format!("[grep, '--include={{glob}}', {PLACES}]"), glob);
    accepted(&format!("[ls, -l, --, '{{glob}}', {PLACES}]"), glob);
    accepted(&format!("[grep, -e, '{{glob}}', {PLACES}]"), "glob: { type: string, default: a }");
    accepted(&format!("[grep, -e, '{{p}}', -e, '{{m}}', '{{glob}}', {PLACES}]"), glob);
}

/// Proves: POL-7 lowering-approval
#[test]
fn the_name_of_a_built_in_tool_with_a_policy_is_only_for_that_tool() {
    for name in ["bash", "read", "write", "edit", "web_fetch"] {
        let command = complaints(&format!("name: {name}\ndescription: d\ncommand: [x]\n"));
        assert!(command.len() == 1 && command[0].contains("only the built-in"), "{command:?}");
        let other = complaints(&format!("name: {name}\ndescription: d\nbuiltin: list\n"));
        assert!(other.len() == 1 && other[0].contains("only the built-in"), "{other:?}");
        let same = format!("name: {name}\ndescription: d\nbuiltin: {name}\n");
        assert_eq!(complaints(&same), [""; 0]);
    }
    assert_eq!(complaints("name: list\ndescription: d\ncommand: [x]\n"), [""; 0]);
}

#[test]
fn work_is_bounded_before_it_is_done() {
    // Each of these patterns alone is refused, and says so when it is compiled.
    let bad = vec!["'('"; 70].join(", ");
    let text = format!("name: x\ndescription: d\ncommand: [x]\npatterns: {{ blocked: [{bad}] }}\n");
    let found = complaints(&text);
    assert!(found.len() == 1 && found[0].contains("more than 64"), "{found:?}");
    let values: String =
        (0..70).map(|n| format!("    v{n}: {{ type: string, pattern: '(' }}\n")).collect();
    let text = format!("name: x\ndescription: d\ncommand: [x]\ninput:\n  properties:\n{values}");
    let found = complaints(&text);
    assert!(found.len() == 1 && found[0].contains("more than 64"), "{found:?}");
    let words = vec!["{}"; 1001].join(", ");
    let found = complaints(&format!("name: x\ndescription: d\ncommand: [x, {words}]\n"));
    assert!(found.len() == 1 && found[0].contains("at most 1000"), "{found:?}");
    let values: String = (0..101).map(|n| format!("    v{n}: {{ type: nonsense }}\n")).collect();
    let text = format!("name: x\ndescription: d\ncommand: [x]\ninput:\n  properties:\n{values}");
    let found = complaints(&text);
    assert!(found.len() == 1 && found[0].contains("at most 100 values"), "{found:?}");
}

#[test]
fn the_name_is_read_whatever_the_rest_is() {
    let text = "name: x\ncommand: 5\npatterns: { blocked: ['('] }\n";
    assert_eq!(declared_name(text, "t.yaml").unwrap(), "x");
    assert!(declared_name("name: 1x\n", "t.yaml").is_err());
    assert!(declared_name("name: [", "t.yaml").is_err());
}
