//! `sandbox mcp`, examined by two programs of npm: `@modelcontextprotocol/conformance` over HTTP, and the command line of the inspector
//! over both transports, each by both eras of the protocol. What is installed, with the node that they need, is listed in
//! `tests/packages/mcp-conformance/package.json`.

use std::collections::BTreeSet;

use palisade_testkit::{Invocation, World, node_packages, sandbox_program};
use serde_json::{Value, json};

use crate::gate::hidden;
use crate::mcp_support::{McpHttpServer, nothing_is_left};
use crate::sessions_support::{Sessions, wait_until};
use crate::tools;

/// What the package requires of a server by these revisions is examined.
const REVISIONS: &[&str] = &["2025-11-25", "2026-07-28"];

/// Scenarios without a failure and without a warning.
const PASSING: &[&str] = &[
    "dns-rebinding-protection",
    "http-header-validation",
    "input-required-result-unsupported-methods",
    "input-required-result-validate-input",
    "ping",
    "server-initialize",
    "server-session-lifecycle",
    "server-sse-multiple-streams",
    "server-sse-polling",
    "tools-call-error",
    "tools-call-simple-text",
    "tools-list",
];

/// Tools of the package's own server, and what is declared in their place.
const DECLARED: &[&str] = &[
    r#"{ "name": "test_simple_text", "description": "Say something", "command": ["echo", "some text"] }"#,
    r#"{ "name": "test_error_handling", "description": "Refused: nobody approved its level", "level": "LEVEL_1", "command": ["true"] }"#,
    r#"{ "name": "test_reconnection", "description": "Do nothing", "command": ["true"] }"#,
    r#"{ "name": "test_logging_tool", "description": "Do nothing", "command": ["true"] }"#,
    r#"{ "name": "test_streaming_elicitation", "description": "Do nothing", "command": ["true"] }"#,
    r#"{ "name": "greet", "description": "Greet", "command": ["printf", "Hello, %s!", "{name}"], "input": { "properties": { "name": { "type": "string" } }, "required": ["name"] } }"#,
    r#"{ "name": "slow_compute", "description": "Done at once", "command": ["echo", "{seconds}", "{label}"], "input": { "properties": { "seconds": { "type": "integer" }, "label": { "type": "string", "default": "none" } }, "required": ["seconds"] } }"#,
    r#"{ "name": "failing_job", "description": "Fail", "command": ["false"] }"#,
];

/// Scenarios, or single checks of them, that cannot pass, and why. What the server has not, it does not declare, and its methods do not exist.
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
    ("the server asks no model", &["tools-call-sampling", "input-required-result-basic-sampling"]),
    (
        "a tool of the package's own server asks the person by forms of its own; `mcp_clients.rs` answers ours",
        &[
            "tools-call-elicitation",
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
            "input-required-result-basic-elicitation",
            "input-required-result-basic-list-roots",
            "input-required-result-capability-check",
            "input-required-result-ignore-extra-params",
            "input-required-result-missing-input-response",
            "input-required-result-multi-round",
            "input-required-result-multiple-input-requests",
            "input-required-result-request-state",
            "input-required-result-result-type",
            "input-required-result-tampered-state",
        ],
    ),
    (
        "no tool needs something of the client: nobody is asked where the client cannot ask",
        &[
            "server-stateless:sep-2575-server-rejects-undeclared-capability",
            "server-stateless:sep-2575-missing-capability-http-400",
        ],
    ),
    (
        "wants three reports of progress, which take nine seconds here; `mcp_clients.rs` waits for one",
        &["tools-call-with-progress"],
    ),
    ("the input of a declared tool has no `$defs` (docs/tools.md)", &["json-schema-2020-12"]),
    ("no value of a tool belongs into a header", &["http-custom-header-server-validation"]),
    (
        "the server has no resources",
        &[
            "resources-list",
            "resources-read-text",
            "resources-read-binary",
            "resources-templates-read",
            "resources-subscribe",
            "resources-unsubscribe",
            "sep-2164-resource-not-found:sep-2164-error-code",
            "sep-2164-resource-not-found:sep-2164-data-uri",
            "caching:sep-2549-resources-list-caching-hints",
            "caching:sep-2549-resources-templates-list-caching-hints",
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
            "input-required-result-non-tool-request",
            "caching:sep-2549-prompts-list-caching-hints",
        ],
    ),
    (
        "a call becomes a task after ten seconds, which the package does not wait for; `mcp_clients.rs` does",
        &[
            "tasks-capability-negotiation:tasks-per-request-meta-opt-in",
            "tasks-dispatch-and-envelope:tasks-server-directed-creation-no-hint",
            "tasks-dispatch-and-envelope:tasks-result-type-complete-on-non-task-responses",
            "tasks-dispatch-and-envelope:sep-2663-durable-create-strong-consistency",
            "tasks-lifecycle:sep-2663-result-type-task-on-create",
            "tasks-lifecycle:sep-2663-tasks-get-status-working",
            "tasks-lifecycle:sep-2663-tasks-get-status-completed",
            "tasks-lifecycle:sep-2663-tasks-get-status-failed",
            "tasks-lifecycle:sep-2663-tool-error-uses-completed-status",
            "tasks-lifecycle:sep-2663-cancel-ack-empty-result",
            "tasks-lifecycle:tasks-cancel-terminal-idempotent-ack",
            "tasks-mrtr-composition:sep-2663-mrtr-synchronous-before-task-creation",
            "tasks-mrtr-input",
            "tasks-request-headers:sep-2663-routing-headers-accepted-on-tasks-get",
            "tasks-request-headers:sep-2663-server-rejects-mismatched-mcp-name-on-tasks-get",
            "tasks-request-state-removal:tasks-request-state-removal-setup",
            "tasks-wire-fields",
        ],
    ),
    (
        "every tool works for a client that knows no tasks",
        &["tasks-required-task-error:sep-2663-server-returns-missing-capability-when-required"],
    ),
    (
        "what a declared tool says ends with its exit code",
        &["tasks-request-headers:tasks-headers-tolerate-mcp-method-on-tools-call"],
    ),
];

/// The package examines nothing.
const EMPTY: &str = "tasks-status-notifications";

fn left_out() -> impl Iterator<Item = &'static str> {
    LEFT_OUT.iter().flat_map(|(_, scenarios)| *scenarios).copied()
}

/// A program of the set by its node: that of the system is too old.
fn of_packages(world: &World, program: &str) -> Invocation {
    let packages = node_packages("mcp-conformance");
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let node = packages.join(format!("node-linux-{machine}/bin/node"));
    world.bare(node.to_str().unwrap()).arg(packages.join(program))
}

/// A scenario of the package that is in no list fails the test, and so does one that was left out and passes.
///
/// Proves: TOOL-5 eras
#[test]
fn every_scenario_of_the_conformance_package_passes_or_is_left_out_for_a_reason() {
    let world = tools::world();
    let _sessions = Sessions::new(&world);
    for (number, declaration) in DECLARED.iter().enumerate() {
        world.write(format!("home/declared/{number}.json"), declaration);
    }
    let declared = world.home().join("declared").display().to_string();
    let server = McpHttpServer::start(&world, &["--tools", &declared]);
    // The program fails unless exactly these have a failure or a warning.
    let expected: String = left_out().map(|entry| format!("  - {entry}\n")).collect();
    let expected = world.write("expected.yaml", format!("server:\n{expected}"));
    let token = world.write("mcp_token.mjs", include_str!("../clients/mcp_token.mjs"));
    let mut seen = BTreeSet::new();
    for revision in REVISIONS {
        let program = "@modelcontextprotocol/conformance/dist/index.js";
        let examined = of_packages(&world, program)
            .args(["server", "--url", &server.url, "--requirements", revision])
            .arg("--expected-failures")
            .arg(&expected)
            .env("NODE_OPTIONS", format!("--import file://{}", token.display()))
            .env("MCP_TOKEN", &server.token)
            .run();
        examined.assert_code(0);
        let out = examined.out();
        let (_, summary) = out.split_once("=== SUMMARY ===").unwrap();
        for line in summary.lines() {
            let Some(line) = line.strip_prefix("✓ ").or_else(|| line.strip_prefix("✗ ")) else {
                continue;
            };
            let (scenario, result) = line.split_once(": ").unwrap();
            // One without a check would have no failure either.
            assert_eq!(result.starts_with("0 passed"), scenario == EMPTY, "{revision} {line}");
            seen.insert(scenario.to_owned());
        }
    }
    let listed = left_out().map(|entry| entry.split(':').next().unwrap());
    let listed = PASSING.iter().copied().chain(listed).chain([EMPTY]).map(str::to_owned);
    assert_eq!(seen, listed.collect::<BTreeSet<_>>());
    let is_passing = |entry: &str| PASSING.contains(&entry.split(':').next().unwrap());
    assert!(!left_out().any(is_passing), "a scenario is in two lists");
    server.end();
    assert!(nothing_is_left(&world));
}

fn inspector(world: &World, server: &[&str], request: &[&str]) -> Invocation {
    let program = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";
    of_packages(world, program)
        .args(["--cli", "--quiet", "--format", "json"])
        .args(request)
        .args(server)
}

/// Lists the tools, and calls three of them, in both eras.
fn inspect(world: &World, server: &[&str]) {
    world.write_in_project("notes", "one\ntwo\n");
    let secret = hidden(world, "secret");
    for era in ["legacy", "modern"] {
        inspect_era(world, server, era, &secret);
    }
}

fn inspect_era(world: &World, server: &[&str], era: &str, secret: &str) {
    let ask = |request: &[&str]| {
        let era = ["--protocol-era", era];
        let output = inspector(world, server, &[&era, request].concat()).run();
        let told = serde_json::from_slice::<Value>(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", output.out(), output.err()));
        let is_error = told["result"]["isError"] == true;
        assert_eq!(output.code() != 0, is_error, "{told}");
        told["result"].clone()
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

/// Proves: TOOL-5 eras
#[test]
fn the_inspector_works_over_pipes() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let program = sandbox_program();
    inspect(&world, &["--", program.to_str().unwrap(), "mcp", "--ask-in", "none"]);
    // A server that takes longer than two seconds to end is killed, and its sandbox ends after it.
    wait_until("nothing is left", || nothing_is_left(&world));
}

/// Proves: TOOL-5 eras, TOOL-1 http-access
#[test]
fn the_inspector_works_over_http_with_the_token() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = McpHttpServer::start(&world, &["--ask-in", "none"]);
    let address = ["--server-url", server.url.as_str(), "--transport", "http"];
    let token = format!("Authorization: Bearer {}", server.token);
    inspect(&world, &[&address[..], &["--header", &token]].concat());
    let refused = inspector(&world, &address, &["--method", "tools/list"]).run();
    assert_ne!(refused.code(), 0, "{}", refused.out());
    assert!(refused.err().contains("auth_required"), "{}", refused.err());
    server.end();
    assert!(nothing_is_left(&world));
}
