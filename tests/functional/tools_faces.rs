//! Declared tools over HTTP, for models, and a person who agrees to what one needs.

use serde_json::{Value, json};

use crate::escape_response::{SETNS, calling_and_ending};
use crate::mcp_support::McpClient;
use crate::service_support::Server;
use crate::tmux::Tmux;
use crate::tools::{declare, world};

fn count() -> Value {
    json!({
        "name": "count",
        "description": "Count lines",
        "command": ["wc", "-l", "--", "{path}"],
        "input": { "properties": { "path": { "type": "string" } }, "required": ["path"] },
        "limits": { "timeout": "20s" },
    })
}

/// Proves: TOOL-1 declared, TOOL-1 typed-result, TOOL-1 http
#[test]
fn a_tool_is_declared_shown_run_and_removed_over_http() {
    let world = world();
    let server = Server::start(&world, &[]);
    world.write_in_project("notes", "one\ntwo\n");
    server.post("/v1/tools", &count()).expect(201);
    server.post("/v1/tools", &count()).expect_problem(409, "validation");
    server.post("/v1/tools?replace=true", &count()).expect(201);
    let listed = server.get("/v1/tools").expect(200);
    assert_eq!(listed["tools"][0]["input"]["required"], json!(["path"]), "{listed}");
    let shown = server.get("/v1/tools/count").expect(200);
    assert_eq!(shown["policy"]["resources"]["timeout"], json!(20_000), "{shown}");
    assert_eq!(shown["needsApproval"], json!([]));
    let project = world.project();
    let call = json!({ "input": { "path": "notes" }, "project": project });
    let result = server.post("/v1/tools/count/run", &call).expect(200);
    assert_eq!(
        (&result["stdout"], &result["exitCode"]),
        (&json!("2 notes\n"), &json!(0)),
        "{result}"
    );
    // The same as on the command line.
    let line =
        world.sandbox(["tool", "run", "--json", "--input", "{\"path\": \"notes\"}", "count"]).run();
    let line: Value = serde_json::from_str(&line.out()).unwrap();
    let members = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(members(&line), members(&result));
    let missing = server.post(
        "/v1/tools/count/run",
        &json!({ "input": { "path": "nothing" }, "project": project }),
    );
    assert_eq!(missing.expect(200)["exitCode"], 1, "a tool that fails has a result");

    let wrong = server.post("/v1/tools/count/run", &json!({ "input": { "pth": "notes" } }));
    assert!(wrong.expect_problem(422, "validation").contains("did you mean `path`?"));
    server.post("/v1/tools/nothing/run", &json!({})).expect_problem(404, "validation");
    let broken =
        json!({ "name": "x", "description": "d", "command": ["x"], "policy": { "approvals": [] } });
    let refused = server.post("/v1/tools", &broken).expect_problem(422, "validation");
    assert!(refused.contains("cannot say this"), "{refused}");
    let option = json!({ "name": "--help", "description": "d", "command": ["x"] });
    server.post("/v1/tools", &option).expect_problem(422, "validation");
    assert_eq!(server.delete("/v1/tools/count").status, 204);
    server.get("/v1/tools/count").expect_problem(404, "validation");
}

/// Proves: POL-7 lowering-approval, ESC-1 quarantine, TOOL-1 http
#[test]
fn what_is_refused_is_a_problem_with_its_kind() {
    let world = world();
    let server = Server::start(&world, &[]);
    let lower =
        json!({ "name": "lower", "description": "d", "level": "LEVEL_1", "command": ["id"] });
    server.post("/v1/tools", &lower).expect(201);
    let project = world.project();
    let refused = server.post("/v1/tools/lower/run", &json!({ "project": project }));
    assert!(refused.expect_problem(403, "security").contains("lower:no-sandbox"));
    let script =
        json!({ "properties": { "script": { "type": "string" } }, "required": ["script"] });
    let python = json!({ "name": "py", "description": "d", "command": ["python3", "-c", "{script}"], "input": script });
    server.post("/v1/tools", &python).expect(201);
    let run = |script: &str| {
        let call = json!({ "input": { "script": script }, "project": project });
        server.post("/v1/tools/py/run", &call)
    };
    assert_eq!(run(&calling_and_ending(SETNS)).expect(200)["outcome"], "killed");
    assert!(run("print(1)").expect_problem(403, "security").contains("quarantine"));
}

/// Proves: TOOL-1 mcp, TOOL-1 typed-result
#[test]
fn a_model_is_offered_the_tools_of_a_file() {
    let world = world();
    world.write_in_project("notes", "one\ntwo\n");
    let file = world.write("home/declared/count.json", count().to_string());
    let file = file.display().to_string();
    let mut client = McpClient::start(&world, &["--tools", &file], &json!({}));
    let listed = client.ask("tools/list", &json!({}));
    let good = client.call("count", &json!({ "path": "notes" }));
    let wrong = client.call("count", &json!({ "path": 1 }));
    let told = client.end();
    let tools = told.message(listed)["result"]["tools"].clone();
    let offered = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "count").unwrap();
    assert_eq!(offered["inputSchema"]["required"], json!(["path"]), "{offered}");
    assert_eq!(told.data(good)["stdout"], "2 notes\n");
    assert_eq!(told.message(wrong)["result"]["isError"], true, "{}", told.message(wrong));

    let own = world.write("home/declared/list.json", count().to_string().replace("count", "list"));
    let refused = world.sandbox(["mcp", "--tools"]).arg(&own).run();
    refused.assert_code(125);
    assert!(refused.err().contains("of its own"), "{}", refused.err());
}

/// Proves: TOOL-1 mcp, TOOL-1 declared
#[test]
fn a_tool_that_changed_since_it_was_offered_is_refused() {
    let world = world();
    world.write_in_project("notes", "one\ntwo\n");
    let file = world.write("home/declared/count.json", count().to_string());
    let named = file.display().to_string();
    let mut client = McpClient::start(&world, &["--tools", &named], &json!({}));
    let good = client.call("count", &json!({ "path": "notes" }));
    let changed = count().to_string().replace("Count lines", "Count other lines");
    std::fs::write(&file, changed).unwrap();
    let refused = client.call("count", &json!({ "path": "notes" }));
    let told = client.end();
    assert_eq!(told.data(good)["stdout"], "2 notes\n");
    let why = told.error(refused);
    assert!(why.contains("has changed since") && why.contains("restart"), "{why}");
}

/// Proves: TOOL-1 mcp, POL-4 trust
#[test]
fn a_model_is_offered_no_tool_that_its_sandbox_can_write() {
    let world = world();
    let file = world.write("home/data/tools/count.json", count().to_string());
    let (named, data) = (file.display().to_string(), world.home().join("data"));
    let rw = format!("--rw={}", data.display());
    let set = format!("--set=filesystem.readWritePaths=[\"{}\"]", data.display());
    for (option, is_offered) in [(None, true), (Some(&rw), false), (Some(&set), false)] {
        let mut options = vec!["--tools", &named];
        options.extend(option.map(String::as_str));
        let mut client = McpClient::start(&world, &options, &json!({}));
        let listed = client.ask("tools/list", &json!({}));
        let told = client.end();
        let tools = told.message(listed)["result"]["tools"].to_string();
        assert_eq!(tools.contains("\"count\""), is_offered, "{option:?}: {tools}");
        assert_eq!(told.0.err().contains("tool trust"), !is_offered, "{}", told.0.err());
    }
}

/// Proves: POL-7 lowering-approval
#[test]
fn a_person_at_a_terminal_approves_a_tool_until_it_changes() {
    let world = world();
    let lower = "name: lower\ndescription: d\nlevel: LEVEL_1\ncommand: [echo, ran]\n";
    declare(&world, lower);
    let run = || world.sandbox(["tool", "run", "--json", "lower"]).run();
    run().assert_code(126);
    {
        let tmux = Tmux::new(&world);
        tmux.line("sandbox tool approve lower");
        tmux.wait_for("(lower:no-sandbox)? [y/N]");
        tmux.keys(&["n", "Enter"]);
        tmux.expect_status(125);
        assert_eq!(run().code(), 126, "a no is a no");
        // What was typed before a question does not answer it, and the first one is still on the screen.
        tmux.line("clear; echo se''cond; sandbox tool approve lower");
        tmux.wait_for("second");
        tmux.wait_for("(lower:no-sandbox)? [y/N]");
        tmux.keys(&["y", "Enter"]);
        tmux.expect_status(0);
    }
    let approved = run();
    approved.assert_code(0);
    let result: Value = serde_json::from_str(&approved.out()).unwrap();
    assert_eq!((&result["stdout"], &result["level"]), (&json!("ran\n"), &json!("LEVEL_1")));
    assert_eq!(result["approvals"][0]["what"], "lower:no-sandbox", "{result}");
    declare(&world, &lower.replace("ran", "other"));
    run().assert_code(126);
}
