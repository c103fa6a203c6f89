//! Declared tools: what they run, what they are answered with, and what they are refused.

use std::fs;
use std::os::unix::fs::symlink;

use palisade_testkit::{Output, World, sandbox_program};
use serde_json::{Value, json};

use crate::escape_response::{SETNS, calling_and_ending};
use crate::fault_points::Fault;
use crate::mcp_support::nothing_is_left;
use crate::sessions_support::wait_until;

/// With a policy that lets tools run where the host has no control groups for their limits.
pub(crate) fn world() -> World {
    let world = World::new();
    world.write("home/.config/palisade/policy.yaml", "resources: { bestEffort: true }\n");
    world
}

/// Keeps a declaration as the user's own.
#[track_caller]
pub(crate) fn declare(world: &World, text: &str) {
    let declared = world.sandbox(["tool", "declare", "--replace", "-"]).stdin(text).run();
    declared.assert_code(0);
}

#[track_caller]
fn run(world: &World, name: &str, input: &Value) -> Output {
    let input = input.to_string();
    world.sandbox(["tool", "run", "--json", "--input", &input, name]).run()
}

#[track_caller]
fn result(world: &World, name: &str, input: &Value) -> Value {
    let output = run(world, name, input);
    serde_json::from_str(&output.out())
        .unwrap_or_else(|error| panic!("{error}: {} {}", output.out(), output.err()))
}

const WORK: &str = "\
name: work
description: Run a script of sh
command: [sh, -c, --, '{script}']
stdin: '{content}'
input:
  properties:
    script: { type: string }
    content: { type: string }
  required: [script]
limits: { timeout: 20s }
policy:
  filesystem: { project: transaction }
";

/// Proves: TOOL-1 declared, TOOL-1 typed-result
#[test]
fn one_result_says_all_of_a_call() {
    let world = world();
    declare(&world, WORK);
    world.write("home/.ssh/id_ed25519", "secret\n");
    let script =
        "cat; echo oops >&2; echo changed > new; cat ~/.ssh/id_ed25519 2>/dev/null; exit 3";
    let result = result(&world, "work", &json!({ "script": script, "content": "given\n" }));
    assert_eq!(result["stdout"], "given\n", "{result}");
    assert_eq!(result["stderr"], "oops\n");
    assert_eq!((&result["exitCode"], &result["outcome"]), (&json!(3), &json!("completed")));
    assert_eq!((&result["level"], &result["network"]), (&json!("LEVEL_2"), &json!("none")));
    assert!(result["usage"]["wallUs"].as_u64().unwrap() > 0, "{result}");
    assert_eq!(result["transaction"]["waitingChanges"], 1);
    assert!(!world.project().join("new").exists(), "it waits");
    let violations = result["violations"].as_array().unwrap();
    let denied = violations.iter().find(|it| it["subject"].as_str().unwrap().contains(".ssh"));
    assert_eq!(denied.unwrap_or_else(|| panic!("{violations:?}"))["kind"], "access");
    let session = result["sessionId"].as_str().unwrap();
    let diff = world.sandbox(["diff", session]).run();
    assert!(diff.out().contains("+changed"), "{}", diff.out());
    world.sandbox(["discard", session]).run().assert_code(0);
}

/// Proves: TOOL-1 typed-result
#[test]
fn a_limit_that_was_reached_is_in_the_result() {
    let world = world();
    declare(
        &world,
        &WORK
            .replace("timeout: 20s", "timeout: 1s")
            .replace("project: transaction", "project: read-only"),
    );
    let result = result(&world, "work", &json!({ "script": "echo begun; sleep 1000" }));
    assert_eq!((&result["outcome"], &result["exitCode"]), (&json!("timeout"), &json!(124)));
    assert_eq!(result["stdout"], "begun\n");
    assert_eq!(result["violations"][0]["kind"], "limit", "{result}");
}

/// Proves: TOOL-1 declared
#[test]
fn a_value_becomes_no_option_and_no_second_argument() {
    let world = world();
    let unguarded = "name: show\ndescription: d\ncommand: [printf, '{format}', '{list}']\ninput:\n  properties:\n    format: { type: string }\n    list: { type: array, items: { type: string } }\n";
    declare(&world, unguarded);
    let shown = result(&world, "show", &json!({ "format": "[%s]", "list": ["a b", "$(id)"] }));
    assert_eq!(shown["stdout"], "[a b][$(id)]");
    for refused in [json!({ "format": "-v" }), json!({ "format": "x", "list": ["-v"] })] {
        let output = run(&world, "show", &refused);
        output.assert_code(125);
        assert!(output.err().contains("take it for an option"), "{}", output.err());
        assert_eq!(output.out(), "", "nothing ran");
    }
    let wrong = run(&world, "show", &json!({ "fromat": "x" }));
    wrong.assert_code(125);
    assert!(wrong.err().contains("did you mean `format`?"), "{}", wrong.err());
}

/// Proves: CARGO-1 patterns
#[test]
fn patterns_refuse_what_is_blocked_not_allowed_or_too_long() {
    let world = world();
    let cargo = "name: shell\ndescription: d\nbuiltin: bash\npatterns:\n  maxLength: 60\n  allowed: ['^echo (build|check)( |$)']\n  blocked: ['--config', '[;&|`$<>]']\n";
    declare(&world, cargo);
    assert_eq!(
        result(&world, "shell", &json!({ "command": "echo build it" }))["stdout"],
        "build it\n"
    );
    let refused = |command: &str, code: i32, kind: &str, why: &str| {
        let input = json!({ "command": command }).to_string();
        let output = world
            .sandbox(["tool", "run", "--json", "--input", &input, "shell"])
            .env("PALISADE_ERRORS_AS_JSON", "1")
            .run();
        output.assert_code(code);
        let line = output.err().lines().last().unwrap_or_default().to_owned();
        let complaint: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(complaint["kind"], kind, "{complaint}");
        assert!(complaint["message"].as_str().unwrap().contains(why), "{complaint}");
    };
    refused("echo build --config=x", 126, "security", "blocked pattern `--config`");
    refused("echo build; touch made", 126, "security", "blocked pattern");
    refused("touch made", 126, "security", "none of the allowed patterns");
    refused(&format!("echo build {}", "x".repeat(80)), 125, "validation", "at most 60");
    assert!(!world.project().join("made").exists());
}

/// Proves: TOOL-1 declared, POL-4 trust
#[test]
fn a_tool_of_a_project_runs_only_once_its_content_is_trusted() {
    let world = world();
    let file = world.write_in_project(
        ".palisade/tools/hello.yaml",
        "name: hello\ndescription: d\ncommand: [echo, hello]\n",
    );
    let refused = run(&world, "hello", &json!({}));
    refused.assert_code(126);
    assert!(refused.err().contains("tool trust"), "{}", refused.err());
    let file = file.display().to_string();
    let unasked = world.sandbox(["tool", "trust", &file]).run();
    unasked.assert_code(125);
    assert_eq!(run(&world, "hello", &json!({})).code(), 126, "nobody said yes");
    world.sandbox(["tool", "trust", "--yes", &file]).run().assert_code(0);
    assert_eq!(result(&world, "hello", &json!({}))["stdout"], "hello\n");
    fs::write(&file, "name: hello\ndescription: d\ncommand: [echo, other]\n").unwrap();
    assert_eq!(run(&world, "hello", &json!({})).code(), 126, "it changed");
}

/// Proves: TOOL-1 declared, POL-4 trust
#[test]
fn a_declaration_that_a_policy_makes_writable_runs_only_once_it_is_trusted() {
    let world = world();
    let hello = "name: hello\ndescription: d\ncommand: [echo, hello]\n";
    let file = world.write("home/data/tools/hello.yaml", hello).display().to_string();
    let run = || world.sandbox(["tool", "run", "--json", "--tools", &file, "hello"]);
    run().run().assert_code(0);
    let data = world.home().join("data");
    let refused = run().env("SANDBOX_RW", &data).run();
    refused.assert_code(126);
    assert!(refused.err().contains("tool trust"), "{}", refused.err());
    assert_eq!(refused.out(), "");
    world.write(
        "home/.config/palisade/policy.yaml",
        "resources: { bestEffort: true }\nfilesystem: { readWritePaths: [~/data] }\n",
    );
    run().run().assert_code(126);
    world.sandbox(["tool", "trust", "--yes", &file]).run().assert_code(0);
    run().run().assert_code(0);
}

/// Proves: TOOL-1 declared, POL-4 trust
#[test]
fn a_project_does_not_run_with_the_trust_of_another() {
    let hello = "name: hello\ndescription: d\ncommand: [echo, hello]\n";
    for (link, target) in [(".palisade", ".palisade"), (".palisade/tools", ".palisade/tools")] {
        let world = world();
        let file = world.write("home/other/.palisade/tools/hello.yaml", hello);
        let file = file.display().to_string();
        world.sandbox(["tool", "trust", "--yes", &file]).run().assert_code(0);
        let link = world.project().join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(world.home().join("other").join(target), &link).unwrap();
        let refused = run(&world, "hello", &json!({}));
        refused.assert_code(125);
        assert!(refused.err().contains("no link on the way"), "{}", refused.err());
        assert_eq!(refused.out(), "");
        // The same content as a file of this project is not trusted either.
        fs::remove_file(&link).unwrap();
        world.write_in_project(".palisade/tools/hello.yaml", hello);
        assert_eq!(run(&world, "hello", &json!({})).code(), 126);
    }
}

/// Proves: TOOL-1 declared
#[test]
fn a_broken_link_in_a_project_keeps_no_tool_from_running() {
    let world = world();
    declare(&world, "name: hello\ndescription: d\ncommand: [echo, hello]\n");
    fs::create_dir_all(world.project().join(".palisade/tools")).unwrap();
    symlink("nowhere", world.project().join(".palisade/tools/broken.yaml")).unwrap();
    assert_eq!(result(&world, "hello", &json!({}))["stdout"], "hello\n");
    let listed: Value =
        serde_json::from_str(&world.sandbox(["tool", "list", "--json"]).run().out()).unwrap();
    assert_eq!(listed["ignored"][0]["name"], "broken", "{listed}");
    let refused = run(&world, "broken", &json!({}));
    refused.assert_code(125);
    assert!(refused.err().contains("broken link"), "{}", refused.err());
}

/// Proves: TOOL-1 typed-result
#[test]
fn output_that_is_kept_in_memory_has_a_limit_whatever_a_policy_allows() {
    let world = world();
    declare(
        &world,
        "name: zeros\ndescription: d\ncommand: [head, -c, '150000000', /dev/zero]\nlimits: { timeout: 60s, maxOutputSize: 1g }\n",
    );
    let ended = result(&world, "zeros", &json!({}));
    assert_eq!(ended["outcome"], "output-capped", "{}", ended["failure"]);
}

/// Proves: TOOL-3 same-plan, LIFE-5 crash
#[test]
fn a_file_tool_whose_caller_is_killed_leaves_nothing() {
    let world = world();
    declare(&world, "name: read\ndescription: d\nbuiltin: read\n");
    world.write_in_project("notes", "one\n");
    let call = ["tool", "run", "--json", "--input", "{\"path\": \"notes\"}", "read"];
    Fault::KillAt("none".to_owned()).sandbox(&world, &call).run().assert_code(0);
    assert!(nothing_is_left(&world));
    // Before the session is claimed, after that, and while files are served.
    for moment in ["waiting for the supervisor#1", "asking#1", "answered#2", "answered#4"] {
        let killed = Fault::KillAt(moment.to_owned()).sandbox(&world, &call).run();
        assert_eq!(killed.code(), 128 + 9, "{moment}: {}", killed.err());
        wait_until(moment, || nothing_is_left(&world));
    }
}

const LOWER: &str = "name: lower\ndescription: d\nlevel: LEVEL_1\ncommand: [echo, ran]\n";

/// Proves: POL-7 lowering-approval
#[test]
fn neither_a_declaration_nor_a_caller_lowers_a_level_or_opens_the_network() {
    let world = world();
    declare(&world, LOWER);
    declare(
        &world,
        "name: out\ndescription: d\ncommand: [echo, ran]\npolicy: { network: { mode: proxy, allowedHosts: [a.example] } }\n",
    );
    for (name, what) in [("lower", "lower:no-sandbox"), ("out", "out:network")] {
        let refused = run(&world, name, &json!({}));
        refused.assert_code(126);
        assert!(refused.err().contains(what), "{}", refused.err());
        assert_eq!(refused.out(), "");
        // Without a terminal nobody can agree.
        let approved = world.sandbox(["tool", "approve", name]).stdin("y\ny\n").run();
        assert_ne!(approved.code(), 0);
        assert_eq!(run(&world, name, &json!({})).code(), 126);
    }
    let own =
        LOWER.to_owned() + "policy: { approvals: [{ what: 'lower:no-sandbox', reason: mine }] }\n";
    let refused = world.sandbox(["tool", "declare", "--replace", "-"]).stdin(own).run();
    refused.assert_code(125);
    assert!(refused.err().contains("cannot say this"), "{}", refused.err());
    // A policy of the user's own is a person's word.
    world.write(
        "home/.config/palisade/policy.yaml",
        "resources: { bestEffort: true }\napprovals: [{ what: 'lower:no-sandbox', reason: 'tests' }]\n",
    );
    let lowered = result(&world, "lower", &json!({}));
    assert_eq!((&lowered["stdout"], &lowered["level"]), (&json!("ran\n"), &json!("LEVEL_1")));
    assert_eq!(lowered["approvals"][0]["what"], "lower:no-sandbox", "{lowered}");
}

/// Proves: ESC-1 quarantine, TOOL-1 typed-result
#[test]
fn a_tool_that_tried_to_break_out_is_refused_afterwards() {
    let world = world();
    declare(
        &world,
        "name: py\ndescription: d\ncommand: [python3, -c, '{script}']\ninput:\n  properties:\n    script: { type: string }\n  required: [script]\n",
    );
    let ended = result(&world, "py", &json!({ "script": calling_and_ending(SETNS) }));
    assert_eq!(ended["outcome"], "killed", "{ended}");
    assert_eq!(ended["violations"][0]["kind"], "escape", "{ended}");
    let again = run(&world, "py", &json!({ "script": "print(1)" }));
    again.assert_code(126);
    let refused: Value = serde_json::from_str(&again.out()).unwrap();
    assert_eq!(
        (&refused["outcome"], &refused["failure"]["kind"]),
        (&json!("refused"), &json!("security"))
    );
    assert_eq!(refused["stdout"], "");
    world.sandbox(["quarantine", "release", "py"]).run().assert_code(0);
    assert_eq!(result(&world, "py", &json!({ "script": "print(1)" }))["stdout"], "1\n");
}

/// Proves: TOOL-3 same-plan, TOOL-1 typed-result
#[test]
fn built_in_file_tools_obey_the_plan_of_their_sandbox() {
    let world = world();
    for name in ["read", "write", "edit", "list"] {
        declare(&world, &format!("name: {name}\ndescription: d\nbuiltin: {name}\n"));
    }
    let written =
        result(&world, "write", &json!({ "path": "sub/a", "content": "one\ntwo\nthree\n" }));
    assert_eq!(
        (&written["exitCode"], &written["data"]["size"]),
        (&json!(0), &json!(14)),
        "{written}"
    );
    assert_eq!(written["level"], "LEVEL_1");
    assert_eq!(fs::read_to_string(world.project().join("sub/a")).unwrap(), "one\ntwo\nthree\n");
    let read = result(&world, "read", &json!({ "path": "sub/a", "offset": 2, "limit": 1 }));
    assert_eq!(
        (&read["stdout"], &read["data"]["nextLine"]),
        (&json!("two\n"), &json!(3)),
        "{read}"
    );
    let edited =
        result(&world, "edit", &json!({ "path": "sub/a", "oldText": "two", "newText": "2" }));
    assert_eq!(edited["data"]["replacements"], 1, "{edited}");
    assert_eq!(fs::read_to_string(world.project().join("sub/a")).unwrap(), "one\n2\nthree\n");
    let listed = result(&world, "list", &json!({ "path": "sub" }));
    assert!(listed["stdout"].as_str().unwrap().contains("a\n"), "{listed}");

    declare(
        &world,
        "name: beginning\ndescription: d\nbuiltin: read\nlimits: { maxOutputSize: 3 }\n",
    );
    let cut = result(&world, "beginning", &json!({ "path": "sub/a" }));
    let expected = (&json!("one"), &json!(true), &json!(0));
    assert_eq!((&cut["stdout"], &cut["truncated"], &cut["exitCode"]), expected, "{cut}");

    world.write("home/.ssh/id_ed25519", "secret\n");
    let secret = world.home().join(".ssh/id_ed25519");
    let denied = result(&world, "read", &json!({ "path": secret }));
    assert_eq!(denied["exitCode"], 1, "{denied}");
    assert!(!denied.to_string().contains("secret\\n"), "{denied}");
    let hook = result(&world, "write", &json!({ "path": ".envrc", "content": "x" }));
    assert_eq!(hook["exitCode"], 1, "{hook}");
    assert!(!world.project().join(".envrc").exists());
    let sessions = world.sandbox(["ps", "--all", "--json"]).run();
    assert!(!sessions.out().contains("\"id\""), "no session is left: {}", sessions.out());
}

/// The documented commands, as typed.
/// Proves: TOOL-1 declared
#[test]
fn the_documented_example_works() {
    const PAGE: &str = include_str!("../../docs/tools.md");
    let example = PAGE.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let world = world();
    fs::create_dir(world.path().join("bin")).unwrap();
    symlink(sandbox_program(), world.path().join("bin/sandbox")).unwrap();
    let path = format!("{}:/usr/bin:/bin", world.path().join("bin").display());
    let output = world.bare("bash").args(["-ec", example]).env("PATH", path).run();
    output.assert_code(0);
    let said = output.out();
    assert!(said.contains("2 notes\n"), "{said}");
    assert!(said.contains("\"stdout\": \"2 notes\\n\""), "{said}");
}

/// Every YAML of the page that is a whole part of a declaration is one.
/// Proves: TOOL-1 declared
#[test]
fn the_documented_parts_are_accepted() {
    const PAGE: &str = include_str!("../../docs/tools.md");
    let parts: Vec<&str> =
        PAGE.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(parts.len(), 3);
    let world = world();
    let input = "input: { properties: { ignoreCase: { type: boolean }, pattern: { type: string }, path: { type: string } } }\n";
    let texts = [
        format!("name: a\ndescription: d\n{}{input}", parts[0]),
        format!("name: b\ndescription: d\nbuiltin: bash\n{}", parts[1]),
        parts[2].to_owned(),
    ];
    for text in texts {
        let file = world.write("part.yaml", &text);
        let checked = world.sandbox(["tool", "check"]).arg(&file).run();
        assert_eq!(checked.code(), 0, "{}{text}", checked.err());
    }
}
