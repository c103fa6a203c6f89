//! `sandbox mcp`, examined by two programs of npm: `@modelcontextprotocol/conformance` over HTTP, and the command line of the inspector
//! over both transports. The list of what is installed is `tests/packages/mcp-node/package.json`.

use std::collections::BTreeSet;

use palisade_testkit::{Invocation, World, node_packages, sandbox_program};
use serde_json::{Value, json};

use crate::gate::hidden;
use crate::mcp_support::{McpHttpServer, nothing_is_left};
use crate::sessions_support::{Sessions, wait_until};
use crate::tools;

/// Scenarios that need nothing of the server but the protocol and tools.
const GENERIC: &[&str] = &[
    "server-initialize",
    "ping",
    "tools-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
];

/// Scenarios that call a tool of the package's own server, and what is declared in its place.
const WITH_DECLARED_TOOL: &[(&str, &str)] = &[
    (
        "tools-call-simple-text",
        r#"{ "name": "test_simple_text", "description": "Say something", "command": ["echo", "some text"] }"#,
    ),
    (
        "tools-call-error",
        r#"{ "name": "test_error_handling", "description": "Refused: nobody approved its level", "level": "LEVEL_1", "command": ["true"] }"#,
    ),
    (
        "server-sse-polling",
        r#"{ "name": "test_reconnection", "description": "Do nothing", "command": ["true"] }"#,
    ),
];

/// Scenarios that cannot pass, and why. What the server has not, it does not declare, and its methods do not exist.
const LEFT_OUT: &[(&str, &[&str])] = &[
    ("the server has no log messages", &["logging-set-level", "tools-call-with-logging"]),
    ("the server has no completion", &["completion-complete"]),
    (
        "a tool of the package's own server answers with more than text",
        &[
            "tools-call-image",
            "tools-call-audio",
            "tools-call-embedded-resource",
            "tools-call-mixed-content",
        ],
    ),
    ("the server asks no model", &["tools-call-sampling"]),
    (
        "a tool of the package's own server asks the person by forms of its own; `mcp_clients.rs` answers ours",
        &["tools-call-elicitation", "elicitation-sep1034-defaults", "elicitation-sep1330-enums"],
    ),
    (
        "wants three reports of progress, which take nine seconds here; `mcp_clients.rs` waits for one",
        &["tools-call-with-progress"],
    ),
    ("the input of a declared tool has no `$defs` (docs/tools.md)", &["json-schema-2020-12"]),
    (
        "the server has no resources",
        &[
            "resources-list",
            "resources-read-text",
            "resources-read-binary",
            "resources-templates-read",
            "resources-subscribe",
            "resources-unsubscribe",
        ],
    ),
    (
        "the server has no prompts",
        &[
            "prompts-list",
            "prompts-get-simple",
            "prompts-get-with-args",
            "prompts-get-embedded-resource",
            "prompts-get-with-image",
        ],
    ),
];

fn left_out() -> impl Iterator<Item = &'static str> {
    LEFT_OUT.iter().flat_map(|(_, scenarios)| *scenarios).copied()
}

fn passing() -> impl Iterator<Item = &'static str> {
    GENERIC.iter().copied().chain(WITH_DECLARED_TOOL.iter().map(|(scenario, _)| *scenario))
}

fn conformance(world: &World) -> Invocation {
    let program = node_packages("mcp-node").join("@modelcontextprotocol/conformance/dist/index.js");
    world.bare("node").arg(program)
}

/// A scenario of the package that is in no list fails the test, and so does one that was left out and passes.
///
/// Proves: TOOL-1 mcp
#[test]
fn every_scenario_of_the_conformance_package_passes_or_is_left_out_for_a_reason() {
    let world = tools::world();
    let _sessions = Sessions::new(&world);
    let listed = conformance(&world).args(["list", "--server"]).run();
    listed.assert_code(0);
    let listed = listed.out().into_owned();
    let names = listed.lines().filter_map(|line| line.trim().strip_prefix("- "));
    let of_package: BTreeSet<&str> = names.filter_map(|it| it.split(' ').next()).collect();
    let ours: Vec<&str> = passing().chain(left_out()).collect();
    assert_eq!(of_package, ours.iter().copied().collect(), "{listed}");
    assert_eq!(of_package.len(), ours.len(), "a scenario is in two lists");

    for (scenario, declaration) in WITH_DECLARED_TOOL {
        world.write(format!("home/declared/{scenario}.json"), declaration);
    }
    let declared = world.home().join("declared").display().to_string();
    let server = McpHttpServer::start(&world, &["--tools", &declared]);
    // The program fails unless exactly these have a failure or a warning.
    let expected: String = left_out().map(|scenario| format!("  - {scenario}\n")).collect();
    let expected = world.write("expected.yaml", format!("server:\n{expected}"));
    let token = world.write("mcp_token.mjs", include_str!("../clients/mcp_token.mjs"));
    let examined = conformance(&world)
        .args(["server", "--url", &server.url, "--suite", "all", "--expected-failures"])
        .arg(expected)
        .env("NODE_OPTIONS", format!("--import file://{}", token.display()))
        .env("MCP_TOKEN", &server.token)
        .run();
    examined.assert_code(0);
    for scenario in passing() {
        let out = examined.out();
        let result = out.lines().find_map(|it| it.strip_prefix(&format!("✓ {scenario}: ")));
        let result = result.unwrap_or_else(|| panic!("no result of {scenario}: {out}"));
        // One without a check would have no failure either.
        assert!(!result.starts_with("0 passed"), "{scenario}: {out}");
    }
    server.end();
    assert!(nothing_is_left(&world));
}

fn inspector(world: &World, server: &[&str], request: &[&str]) -> Invocation {
    let program =
        node_packages("mcp-node").join("@modelcontextprotocol/inspector-cli/build/cli.js");
    // It takes its own package for a part of a larger one unless there is such a file above the working directory.
    world.write("home/package.json", "{}");
    world.bare("node").arg(program).arg("--cli").args(server).args(request)
}

/// Lists the tools, and calls three of them.
fn inspect(world: &World, server: &[&str]) {
    world.write_in_project("notes", "one\ntwo\n");
    let secret = hidden(world, "secret");
    let ask = |request: &[&str]| {
        let output = inspector(world, server, request).run();
        output.assert_code(0);
        serde_json::from_slice::<Value>(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", output.out()))
    };
    let call = |tool: &str, argument: &str| {
        ask(&["--method", "tools/call", "--tool-name", tool, "--tool-arg", argument])
    };

    let listed = ask(&["--method", "tools/list"]);
    let tools = listed["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 14, "{listed}");
    for tool in tools {
        assert!(!tool["description"].as_str().unwrap().is_empty(), "{tool}");
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{tool}");
            assert!(tool[schema]["properties"].is_object(), "{tool}");
        }
    }
    let bash = tools.iter().find(|tool| tool["name"] == "bash").unwrap();
    assert_eq!(bash["inputSchema"]["required"], json!(["command"]));

    // Its library compares the data with the output schema.
    let bash = call("bash", "command=cat notes; exit 3");
    assert_eq!(bash["structuredContent"]["output"], "one\ntwo\n", "{bash}");
    assert_eq!(bash["structuredContent"]["exitCode"], 3, "{bash}");
    let read = call("read", "path=notes");
    assert_eq!(read["structuredContent"]["content"], "one\ntwo\n", "{read}");
    for denied in
        [call("read", &format!("path={secret}")), call("bash", &format!("command=cat {secret}"))]
    {
        let text = denied["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("A person can"), "{denied}");
        assert!(!text.contains("content of secret"), "{denied}");
    }
}

/// Proves: TOOL-1 mcp
#[test]
fn the_inspector_works_over_pipes() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = json!({ "command": sandbox_program(), "args": ["mcp", "--ask-in", "none"] });
    let configuration = json!({ "mcpServers": { "sandbox": server } });
    let file = world.write("mcp.json", configuration.to_string());
    inspect(&world, &["--config", file.to_str().unwrap()]);
    // A server that takes longer than two seconds to end is killed, and its sandbox ends after it.
    wait_until("nothing is left", || nothing_is_left(&world));
}

/// Proves: TOOL-1 mcp, TOOL-1 http-access
#[test]
fn the_inspector_works_over_http_with_the_token() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = McpHttpServer::start(&world, &["--ask-in", "none"]);
    let address = [server.url.as_str(), "--transport", "http"];
    let token = format!("Authorization: Bearer {}", server.token);
    inspect(&world, &[&address[..], &["--header", &token]].concat());
    let refused = inspector(&world, &address, &["--method", "tools/list"]).run();
    assert_ne!(refused.code(), 0, "{}", refused.out());
    assert!(refused.err().contains("Authorization: Bearer"), "{}", refused.err());
    server.end();
    assert!(nothing_is_left(&world));
}
