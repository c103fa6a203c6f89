//! Traces and metrics by OTLP: what a collector of the user's gets, and that no collector changes a run (TEL-1).

use std::time::{Duration, Instant};

use palisade_testkit::{World, patiently};
use rustix::process::Signal;
use serde_json::json;

use crate::e2b_support::{E2bServer, STREAM, envelope, headers};
use crate::mcp_support::McpClient;
use crate::metrics;
use crate::otlp_support::{Collector, Manner, senders};
use crate::service_support::Server;
use crate::service_warm::{claimed, directories, wait_for_prepared};
use crate::sessions_support::{Sessions, wait_until};
use crate::tools;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

fn caller() -> String {
    format!("00-{TRACE}-{CALLER}-01")
}

/// What a command inside says about itself.
const TELL: &str = "printenv TRACEPARENT; printenv TRACESTATE; env | grep -c ^OTEL_; exit 3";

/// The caller's trace goes on through the run into the command, and the collector gets the tree and the numbers.
///
/// Proves: TEL-1 otlp
#[test]
fn a_run_is_a_tree_of_spans_below_its_caller() {
    let world = World::new();
    let collector = Collector::start(Manner::Good);
    let run = collector.for_program(world.sandbox(["run", "--quiet", "--", "sh", "-c", TELL]));
    let output = run
        .env("TRACEPARENT", caller())
        .env("TRACESTATE", "vendor=1")
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20secret")
        .env("OTEL_SERVICE_NAME", "tests")
        .env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=here")
        .run();
    output.assert_code(3);
    let span = |name: &str| collector.span(name);
    let (run, command) = (span("run"), span("sh"));
    assert_eq!((run.trace.as_str(), run.parent.as_str()), (TRACE, CALLER));
    assert_eq!(run.state, "vendor=1");
    for child in [&span("plan"), &span("launch"), &command] {
        assert_eq!((&child.trace, &child.parent), (&run.trace, &run.id), "{}", child.name);
        assert!(run.start <= child.start && child.start <= child.end, "{child:?}");
        assert!(child.end <= run.end, "{child:?}");
    }
    assert_eq!(output.out(), format!("00-{TRACE}-{}-01\nvendor=1\n0\n", command.id));
    let of_command = |name: &str| command.attributes[name].as_str();
    assert_eq!(of_command("process.executable.name"), "sh");
    assert_eq!((of_command("process.exit.code"), of_command("error.type")), ("3", "exit-code"));
    assert_eq!((command.kind, command.status, run.status), (3, 2, 0));
    assert_eq!(run.attributes["palisade.outcome"], "completed");
    assert_eq!(run.resource["service.name"], "tests");
    assert_eq!(run.resource["deployment.environment.name"], "here");
    wait_until("the numbers come", || collector.metric("palisade.runs", &[]) > 0);
    assert_eq!(collector.metric("palisade.runs", &[("outcome", "completed")]), 1);
    assert_eq!(collector.metric("palisade.sandboxes_created", &[("level", "LEVEL_2")]), 1);
    assert_eq!(collector.metric("palisade.setup", &[]), 1, "a histogram");
    let requests = collector.requests();
    for request in &requests {
        assert_eq!(request.headers["content-type"], "application/x-protobuf");
        assert_eq!(request.headers["x-key"], "a secret");
    }
    let sent: String =
        requests.iter().map(|request| String::from_utf8_lossy(&request.body)).collect();
    assert!(!sent.contains("printenv"), "no command line");
    wait_until("the sender has ended", || senders().is_empty());
}

/// Proves: TEL-1 otlp
#[test]
fn nothing_is_sent_unless_the_user_says_so_whatever_a_project_says() {
    let world = World::new();
    let collector = Collector::start(Manner::Good);
    let endpoint = format!("OTEL_EXPORTER_OTLP_ENDPOINT={}", collector.endpoint());
    world.write_in_project(".env", format!("{endpoint}\n"));
    let policy =
        format!("process:\n  env:\n    OTEL_EXPORTER_OTLP_ENDPOINT: {}\n", collector.endpoint());
    world.write_in_project(".palisade/policy.yaml", policy);
    world.sandbox(["policy", "trust", "--yes"]).run().assert_code(0);
    let output = world
        .sandbox(["run", "--quiet", "--env", &endpoint, "--", "printenv", "TRACEPARENT"])
        .env("TRACEPARENT", caller())
        .run();
    output.assert_code(0);
    assert_eq!(output.out().trim(), caller(), "the caller's span goes through");
    let off = collector.for_program(world.sandbox(["run", "--quiet", "--", "true"]));
    off.env("OTEL_SDK_DISABLED", "true").run().assert_code(0);
    let unsampled = caller().replace("-01", "-00");
    let run =
        collector.for_program(world.sandbox(["run", "--quiet", "--", "printenv", "TRACEPARENT"]));
    let run = run.env("TRACEPARENT", &unsampled).env("OTEL_METRICS_EXPORTER", "none").run();
    assert_eq!(run.out().trim(), unsampled);
    wait_until("no sender is there", || senders().is_empty());
    assert!(collector.requests().is_empty());
    let shown = collector.for_program(world.sandbox(["run", "--quiet", "--", "echo", "--shown"]));
    shown.env("PALISADE_OTEL_COMMAND_LINES", "1").run().assert_code(0);
    let command = collector.span("echo");
    assert_eq!(command.attributes["process.command_line"], "echo --shown");
    wait_until("the sender has ended", || senders().is_empty());
}

/// A collector that is gone, silent, endless, or sends elsewhere: the command's result is its own, and the run does not wait.
///
/// Proves: TEL-1 otlp
#[test]
fn no_collector_slows_a_run_down_or_changes_its_end() {
    let world = World::new();
    let gone = {
        let collector = Collector::start(Manner::Good);
        collector.endpoint()
    };
    let bad = [Manner::Silent, Manner::Endless, Manner::Redirect].map(Collector::start);
    let endpoints = bad.iter().map(Collector::endpoint).chain([gone.clone()]);
    for endpoint in endpoints {
        let began = Instant::now();
        let output = world
            .sandbox(["run", "--", "sh", "-c", "echo out; exit 5"])
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)
            .env("OTEL_EXPORTER_OTLP_TIMEOUT", "8000")
            .run();
        output.assert_code(5);
        assert_eq!(output.out(), "out\n");
        assert!(!output.err().contains("OTLP"), "{}", output.err());
        assert!(began.elapsed() < patiently(Duration::from_secs(6)), "{endpoint}: it waited");
    }
    wait_until("all senders give up", || senders().is_empty());
    let redirected = bad[2].requests();
    assert!(!redirected.is_empty(), "it was asked");

    let file = world.path().join("palisade.prom");
    let told = world
        .sandbox(["run", "--metrics-file"])
        .arg(&file)
        .args(["--", "true"])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &gone)
        .env("OTEL_EXPORTER_OTLP_TIMEOUT", "2000")
        .env("OTEL_LOG_LEVEL", "info")
        .run();
    told.assert_code(0);
    let lines = told.err().lines().filter(|line| line.contains("OTLP")).count();
    assert_eq!(lines, 1, "{}", told.err());
    assert!(told.err().contains("were not sent"), "{}", told.err());
    let lost = metrics::read(&file)[r#"palisade_telemetry_lost_total{reason="not-sent"}"#];
    assert!(lost >= 4.0, "{lost}");
    wait_until("all senders give up", || senders().is_empty());
}

/// Proves: TEL-1 otlp
#[test]
fn a_busy_collector_is_asked_again() {
    let world = World::new();
    let collector = Collector::start(Manner::BusyAtFirst);
    collector.for_program(world.sandbox(["run", "--quiet", "--", "true"])).run().assert_code(0);
    wait_until("both come again", || {
        let requests = collector.requests();
        let count = |path: &str| requests.iter().filter(|request| request.path == path).count();
        count("/v1/traces") >= 2 && count("/v1/metrics") >= 2
    });
    wait_until("the sender has ended", || senders().is_empty());
}

/// Proves: TEL-1 otlp
#[test]
fn a_wrong_setting_is_told_and_the_run_goes_on() {
    let world = World::new();
    let collector = Collector::start(Manner::Good);
    let run = collector.for_program(world.sandbox(["run", "--", "true"]));
    let output = run.env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc").run();
    output.assert_code(0);
    let expected =
        "OTLP is off: OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported; set it to http/protobuf";
    assert!(output.err().contains(expected), "{}", output.err());
    let json = collector.for_program(world.sandbox(["run", "--quiet", "--", "true"]));
    json.env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json").run().assert_code(0);
    wait_until("both come", || collector.requests().len() >= 2);
    for request in collector.requests() {
        assert_eq!(request.headers["content-type"], "application/json");
        let document: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        assert!(document["resourceSpans"].is_array() || document["resourceMetrics"].is_array());
    }
    wait_until("the sender has ended", || senders().is_empty());
}

/// Each command is below the span that asked for it, soon after its end and long before the session's.
///
/// Proves: TEL-1 otlp
#[test]
fn commands_of_a_session_are_spans_as_they_end() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let collector = Collector::start(Manner::Good);
    let create = collector.for_program(world.sandbox(["create", "--quiet", "--name", "s"]));
    create.run().assert_code(0);
    let exec = |command: &[&str]| world.sandbox(["exec", "s", "--"]).args(command);
    let asked = exec(&["printenv", "TRACEPARENT"]).env("TRACEPARENT", caller()).run();
    let command = collector.span("printenv");
    assert_eq!((command.trace.as_str(), command.parent.as_str()), (TRACE, CALLER));
    assert_eq!(asked.out().trim(), format!("00-{TRACE}-{}-01", command.id));
    assert_eq!(command.attributes["palisade.command.number"], "1");
    exec(&["false"]).run().assert_code(1);
    let failed = collector.span("false");
    assert_eq!((failed.status, failed.attributes["process.exit.code"].as_str()), (2, "1"));
    assert_ne!(failed.trace, TRACE, "nobody asked for it in a trace");
    assert!(collector.spans().iter().all(|span| span.name != "session"), "it is not over");
    let log = sessions.sandbox(&["audit", "show", "--json"]).out().into_owned();
    assert!(log.contains(&format!("\"traceparent\":\"{}\"", caller())), "{log}");
    sessions.sandbox(&["stop", "s"]).assert_code(0);
    let session = collector.span("session");
    assert_eq!((&failed.trace, &failed.parent), (&session.trace, &session.id));
    wait_until("the numbers come", || collector.metric("palisade.session_command", &[]) == 2);
    wait_until("the sender has ended", || senders().is_empty());
}

/// A question is a span as long as the wait, below the command that needed the answer.
///
/// Proves: TEL-1 otlp
#[test]
fn the_wait_for_a_person_is_a_span() {
    let world = World::new();
    let hidden = world.write("home/papers/letter", "read me\n");
    let collector = Collector::start(Manner::Good);
    let run =
        collector.for_program(world.sandbox(["run", "--quiet", "--on-ask", "wait", "--", "cat"]));
    let run = run.arg(&hidden).spawn();
    metrics::answer_the_question(&world, "--yes");
    run.wait().assert_code(0);
    let (question, command) = (collector.span("question"), collector.span("cat"));
    assert_eq!(question.parent, command.id);
    assert!(question.end > question.start && question.start >= command.start);
    let of_question = |name: &str| question.attributes[name].as_str();
    assert_eq!(of_question("palisade.decision"), "allowed");
    assert_eq!(
        (of_question("palisade.decided_by"), of_question("palisade.access")),
        ("socket", "read")
    );
    assert!(!question.attributes.contains_key("file.path"), "{question:?}");
    wait_until("the numbers come", || collector.metric("palisade.question_wait", &[]) == 1);
    wait_until("the sender has ended", || senders().is_empty());
}

/// The client names its span in `_meta`; the call is below it, and the command below the call.
///
/// Proves: TEL-1 otlp
#[test]
fn calls_of_tools_are_spans_of_the_model_context_protocol() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let collector = Collector::start(Manner::Good);
    let mut client =
        McpClient::start_with(&world, &[], &json!({}), |program| collector.for_program(program));
    let arguments = json!({ "command": "printenv TRACEPARENT; exit 0" });
    let call = client.ask(
        "tools/call",
        &json!({ "name": "bash", "arguments": arguments, "_meta": { "traceparent": caller() } }),
    );
    client.running.wait_for_stdout(&format!("\"id\":{call},"));
    let told = client.end();
    let span = collector.span("tools/call bash");
    assert_eq!((span.trace.as_str(), span.parent.as_str(), span.kind), (TRACE, CALLER, 2));
    for (name, value) in [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", "bash"),
        ("gen_ai.operation.name", "execute_tool"),
        ("network.transport", "pipe"),
    ] {
        assert_eq!(span.attributes[name], value);
    }
    let command = collector.span("bash");
    assert_eq!((&command.trace, &command.parent), (&span.trace, &span.id));
    let inside = format!("00-{TRACE}-{}-01\n", command.id);
    assert_eq!(told.data(call)["output"], inside);
    wait_until("the sender has ended", || senders().is_empty());
}

/// A request's header reaches the command, also where nothing is sent.
///
/// Proves: TEL-1 otlp
#[test]
fn a_request_over_http_names_its_span() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = Server::start(&world, &[]);
    let made = server.post("/v1/sandboxes", &json!({})).expect(201);
    let path = format!("/v1/sandboxes/{}/commands", made["id"].as_str().unwrap());
    let body = json!({ "argv": ["printenv", "TRACEPARENT"], "wait": true });
    let header = format!("traceparent: {}", caller());
    let answer = server.post_with(&path, &body, &[&header]).expect(200);
    assert_eq!(answer["stdout"]["data"], format!("{}\n", caller()));
    let wrong = server.post_with(&path, &body, &["traceparent: nonsense"]).expect(200);
    assert_eq!(wrong["exitCode"], 1, "{wrong}");
    drop(server);

    let server = Server::start(&world, &["--warm", "1"]);
    wait_for_prepared(&server, 1);
    let run = json!({ "command": { "argv": ["printenv", "TRACEPARENT"] } });
    let answer = server.post_with("/v1/runs", &run, &[&header]).expect(200);
    assert_eq!((claimed(&server), answer["stdout"]["data"].clone()), (1, json!(caller() + "\n")));
}

/// A prepared sandbox is a session from the request that claims it on, in the trace of that request. One that nobody claims is nothing.
///
/// Proves: TEL-1 otlp, TOOL-1 http-warm
#[test]
fn a_prepared_sandbox_is_sent_when_it_is_claimed_and_in_the_trace_of_the_request() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let collector = Collector::start(Manner::Good);
    let header = format!("traceparent: {}", caller());
    let mut server =
        Server::start_with(&world, &["--warm", "1"], |program| collector.for_program(program));
    wait_for_prepared(&server, 1);
    let made = server.post_with("/v1/sandboxes", &json!({ "name": "s" }), &[&header]).expect(201);
    assert_eq!(claimed(&server), 1);
    let said = server.run("s", &["printenv", "TRACEPARENT"]);
    let command = collector.span("printenv");
    assert_eq!(said["stdout"]["data"], format!("00-{TRACE}-{}-01\n", command.id));
    let log = server
        .get(&format!("/v1/audit?sandbox={}&event=session-claimed", made["id"].as_str().unwrap()));
    assert_eq!(log.expect(200)["records"][0]["details"]["traceparent"], caller());
    server.delete("/v1/sandboxes/s").expect(204);
    let session = collector.span("session");
    assert_eq!((session.trace.as_str(), session.parent.as_str()), (TRACE, CALLER));
    assert_eq!((&command.trace, &command.parent), (&session.trace, &session.id));

    wait_for_prepared(&server, 1);
    let body = json!({ "command": { "argv": ["env"] } });
    let run = server.post_with("/v1/runs", &body, &[&header]).expect(200);
    assert_eq!(claimed(&server), 2);
    let command = collector.span("env");
    let own = format!("TRACEPARENT=00-{TRACE}-{}-01\n", command.id);
    assert!(run["stdout"]["data"].as_str().unwrap().contains(&own), "{run}");
    wait_for_prepared(&server, 1);
    server.end(Signal::TERM);
    wait_until("nothing is left", || directories(&world).is_empty());
    wait_until("all senders have ended", || senders().is_empty());
    let spans = collector.spans();
    let count = |name: &str| spans.iter().filter(|span| span.name == name).count();
    assert_eq!((count("session"), count("launch"), count("plan")), (2, 0, 0), "{spans:?}");
    assert_eq!(collector.metric("palisade.session_command", &[]), 2);
}

/// Proves: TEL-1 otlp
#[test]
fn runs_forks_and_tools_over_http_are_in_the_trace_of_their_request() {
    // Of a host without control groups, too.
    let world = tools::world();
    let _sessions = Sessions::new(&world);
    let collector = Collector::start(Manner::Good);
    let header = format!("traceparent: {}", caller());
    let server = Server::start_with(&world, &[], |program| collector.for_program(program));
    let body = json!({ "command": { "argv": ["true"] } });
    server.post_with("/v1/runs", &body, &[&header]).expect(200);
    let session = collector.span("session");
    assert_eq!((session.trace.as_str(), session.parent.as_str()), (TRACE, CALLER));

    server.create(&json!({ "name": "t", "transaction": "overlay" }));
    let fork = json!({ "name": "f" });
    server.post_with("/v1/sandboxes/t/fork", &fork, &[&header]).expect(201);
    server.run("f", &["id"]);
    assert_eq!(collector.span("id").trace, TRACE);

    let tool = json!({ "name": "look", "description": "d", "command": ["ls"] });
    server.post("/v1/tools", &tool).expect(201);
    let call = json!({ "project": world.project() });
    server.post_with("/v1/tools/look/run", &call, &[&header]).expect(200);
    let run = collector.span("run");
    assert_eq!((run.trace.as_str(), run.parent.as_str()), (TRACE, CALLER));
    for name in ["f", "t"] {
        server.delete(&format!("/v1/sandboxes/{name}?discard=true")).expect(204);
    }
    wait_until("all senders have ended", || senders().is_empty());
}

/// Proves: TEL-1 otlp
#[test]
fn what_an_e2b_client_starts_is_in_the_trace_of_its_request() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    let collector = Collector::start(Manner::Good);
    let span = format!("traceparent: {}", caller());
    let server = E2bServer::start_with(&world, |program| collector.for_program(program));
    let key = format!("X-API-Key: {}", server.token());
    let json_type = "Content-Type: application/json";
    let body = json!({ "templateID": "base" }).to_string();
    let made = server.ask("/v2/sandboxes", &[&key, json_type, &span], Some(body.as_bytes()));
    let made = made.expect(201);
    let text = |name: &str| made[name].as_str().unwrap();
    let [id, token] = headers(text("sandboxID"), text("envdAccessToken"));
    let start = |program: &str, more: &[&str]| {
        let start = json!({ "process": { "cmd": program }, "stdin": false }).to_string();
        let headers = [&[&*id, &*token, STREAM][..], more].concat();
        let path = "/process.Process/Start";
        let answer = server.ask(path, &headers, Some(&envelope(0, start.as_bytes())));
        assert!(answer.body.contains("\"exitCode\":0"), "{}", answer.body);
    };
    start("true", &[&span]);
    start("id", &[]);
    let (named, unnamed) = (collector.span("true"), collector.span("id"));
    let log = sessions.sandbox(&["audit", "show", "--json"]).out().into_owned();
    assert_eq!(log.matches(&format!("\"traceparent\":\"{}\"", caller())).count(), 1, "{log}");
    sessions.sandbox(&["stop", text("sandboxID")]).assert_code(0);
    let session = collector.span("session");
    assert_eq!((session.trace.as_str(), session.parent.as_str()), (TRACE, CALLER));
    assert_eq!((&named.trace, &unnamed.trace), (&session.trace, &session.trace));
    wait_until("all senders have ended", || senders().is_empty());
}
