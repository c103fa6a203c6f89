//! A host that no rule names: the connection waits, somebody answers in the gate's own queue (NET-8).

use std::time::{Duration, Instant};

use palisade_testkit::{Output, Running, patiently};
use serde_json::Value;

use crate::approve_support;
use crate::egress_support::Net;
use crate::tmux::Tmux;

const FETCH: &str = "curl -sS --noproxy '*' --max-time 40 http://other.example/";

fn waiting(net: &Net, script: &str) -> Running {
    net.spawn(&["--quiet", "--network", "proxy", "--on-ask", "wait"], &["sh", "-c", script])
}

fn approve(net: &Net, arguments: &[&str]) -> Output {
    net.sandbox(&[&["approve"], arguments].concat())
}

/// The open questions, as soon as there are so many.
#[track_caller]
fn questions(net: &Net, count: usize) -> Vec<Value> {
    approve_support::questions(count, || approve(net, &["--json"]))
}

/// Proves: NET-8 asked, TOOL-2 socket
#[test]
fn the_connection_waits_and_a_yes_lets_it_through() {
    let net = Net::new();
    let run = waiting(&net, &format!("{FETCH}; {FETCH}"));
    let asked = &questions(&net, 1)[0];
    assert_eq!((&asked["host"], &asked["port"]), (&"other.example".into(), &80.into()), "{asked}");
    assert_eq!(asked["processes"][0]["args"][0], "curl", "{asked}");
    assert!(
        net.lab.journal().is_empty(),
        "nothing left before the answer: {:#?}",
        net.lab.journal()
    );
    let address = asked["address"].as_str().unwrap();
    approve(&net, &["--yes", address, "--once"]).assert_code(0);
    let again = &questions(&net, 1)[0];
    assert_ne!(again["address"], asked["address"]);
    approve(&net, &["--yes", again["address"].as_str().unwrap(), "--once"]).assert_code(0);
    let output = run.wait();
    output.assert_code(0);
    assert_eq!(output.out(), "hello from other.example\n".repeat(2));
    let decided = net.events("HOST_DECIDED");
    assert_eq!(decided.len(), 2, "{decided:#?}");
    assert_eq!(decided[0]["decision"], "allowed", "{decided:#?}");
}

/// Proves: NET-8 asked
#[test]
fn a_yes_for_the_session_holds_for_that_host_and_port_alone() {
    let net = Net::new();
    let more = "curl -sS --noproxy '*' --max-time 40 http://other.example:8080/; echo $?";
    let run = waiting(&net, &format!("{FETCH}; {FETCH}; {more}"));
    let asked = &questions(&net, 1)[0];
    approve(&net, &["--yes", asked["address"].as_str().unwrap(), "--session"]).assert_code(0);
    let again = &questions(&net, 1)[0];
    assert_eq!(again["port"], 8080, "{again}");
    approve(&net, &["--no", again["address"].as_str().unwrap()]).assert_code(0);
    let output = run.wait();
    assert!(output.out().starts_with(&"hello from other.example\n".repeat(2)), "{}", output.out());
    assert!(!net.lab.connected("203.0.113.11:8080"), "{:#?}", net.lab.journal());
}

/// Proves: NET-8 asked
#[test]
fn a_no_is_a_refusal_at_once() {
    let net = Net::new();
    let run = waiting(
        &net,
        &format!("{FETCH} -o page -w '%{{http_code}}\\n'; {FETCH} -o page -w '%{{http_code}}\\n'"),
    );
    let asked = &questions(&net, 1)[0];
    approve(&net, &["--no", asked["address"].as_str().unwrap()]).assert_code(0);
    let output = run.wait();
    assert!(!output.out().contains("200"), "{}", output.out());
    assert!(!net.lab.asked_for("other.example"), "{:#?}", net.lab.journal());
}

/// Proves: NET-8 asked
#[test]
fn many_that_wait_for_one_host_are_one_question() {
    let net = Net::new();
    let run = waiting(&net, &format!("for i in 1 2 3 4; do {FETCH} & done; wait"));
    let asked = &questions(&net, 1)[0];
    // Not only for those that wait by now.
    approve(&net, &["--yes", asked["address"].as_str().unwrap(), "--session"]).assert_code(0);
    let output = run.wait();
    assert_eq!(output.out(), "hello from other.example\n".repeat(4), "{}", output.err());
    let decided = net.events("HOST_DECIDED");
    assert_eq!(decided.len(), 1, "{decided:#?}");
}

/// Proves: NET-8 asked
#[test]
fn a_client_that_gives_up_takes_its_question_along() {
    let net = Net::new();
    let script = "curl -s --noproxy '*' http://other.example/ & read line; kill $!; read line";
    let flags = ["--quiet", "--network", "proxy", "--on-ask", "wait"];
    let mut run =
        net.lab.sandbox_run(&net.world, flags, ["sh", "-c", script]).keep_stdin_open().spawn();
    questions(&net, 1);
    run.send(b"\n");
    questions(&net, 0);
    run.send(b"\n");
    run.wait().assert_code(0);
}

/// Proves: NET-8 asked
#[test]
fn with_nobody_to_ask_the_answer_is_no_and_at_once() {
    let net = Net::new();
    let start = Instant::now();
    let output = net
        .script(&["--network", "proxy"], &format!("{FETCH} -o /dev/null -w '%{{http_code}}\\n'"));
    assert!(!output.out().contains("200"), "{}", output.out());
    assert!(start.elapsed() < patiently(Duration::from_secs(8)), "{:?}", start.elapsed());
    assert!(output.err().contains("--allow-host other.example"), "{}", output.err());
    assert!(!net.lab.asked_for("other.example"), "{:#?}", net.lab.journal());
}

/// Proves: NET-8 asked
#[test]
fn an_answer_for_always_is_kept_for_the_next_run() {
    let net = Net::new();
    let run = waiting(&net, FETCH);
    let asked = &questions(&net, 1)[0];
    approve(&net, &["--yes", asked["address"].as_str().unwrap(), "--always"]).assert_code(0);
    run.wait().assert_code(0);
    let again = net.script(&["--network", "proxy"], FETCH);
    again.assert_code(0);
    assert_eq!(again.out(), "hello from other.example\n");
}

/// Proves: NET-8 other-ports, NET-8 asked
#[test]
fn an_answer_for_always_is_about_one_port_and_the_others_are_asked_about() {
    let net = Net::new();
    let run = waiting(&net, FETCH);
    let asked = &questions(&net, 1)[0];
    approve(&net, &["--yes", asked["address"].as_str().unwrap(), "--always"]).assert_code(0);
    run.wait().assert_code(0);
    let more = "curl -sS --noproxy '*' --max-time 40 http://other.example:8080/";
    let run = waiting(&net, &format!("{FETCH}; {more}; true"));
    let again = &questions(&net, 1)[0];
    let place = (&again["host"], &again["port"]);
    assert_eq!(place, (&"other.example".into(), &8080.into()), "{again}");
    approve(&net, &["--no", again["address"].as_str().unwrap()]).assert_code(0);
    let output = run.wait();
    output.assert_code(0);
    assert!(output.out().starts_with("hello from other.example\n"), "{}", output.out());
    assert!(
        output.out().contains("the port is not allowed, and somebody said no"),
        "{}",
        output.out()
    );
    let unattended =
        net.script(&["--network", "proxy", "--on-ask", "deny"], &format!("{more}; true"));
    let told = unattended.err();
    assert!(told.contains("(allow with --allow-host other.example:8080)"), "{told}");
    let denied = &unattended.report.as_ref().unwrap()["network"]["denied"][0];
    assert_eq!(denied["action"], "proxy_denied_port", "{denied}");
}

/// Proves: NET-7 summary, NET-8 asked
#[test]
fn an_answer_for_never_is_told_with_the_file_that_has_it_and_no_flag() {
    let net = Net::new();
    let flags = ["--network", "proxy", "--on-ask", "wait"];
    let script = format!("{FETCH}; {FETCH}; true");
    let run = net.spawn(&flags, &["sh", "-c", &script]);
    let asked = &questions(&net, 1)[0];
    approve(&net, &["--no", asked["address"].as_str().unwrap(), "--always"]).assert_code(0);
    let first = run.wait();
    let next = net.script(&flags, &script);
    let file = net.world.home().join(".config/palisade/policy.yaml");
    let expected = format!("denied by `other.example:80` in {}", file.display());
    for output in [first, next] {
        output.assert_code(0);
        let told = output.err();
        assert!(told.contains(&expected), "{told}");
        assert!(!told.contains("--allow-host"), "{told}");
    }
    std::fs::remove_file(file).unwrap();
    let run = net.spawn(&flags, &["sh", "-c", FETCH]);
    let asked = &questions(&net, 1)[0];
    approve(&net, &["--yes", asked["address"].as_str().unwrap()]).assert_code(0);
    run.wait().assert_code(0);
}

/// Proves: NET-8 approval
#[test]
fn who_opened_the_network_is_on_record() {
    let net = Net::new();
    let by_variable =
        net.lab.sandbox_run(&net.world, [""; 0], ["true"]).env("SANDBOX_NETWORK", "proxy").run();
    let by_flag = net.script(&["--allow-host", "web.example"], "true");
    for (run, by) in [(by_variable, "SANDBOX_NETWORK"), (by_flag, "--allow-host")] {
        run.assert_code(0);
        let report = run.report.as_ref().unwrap();
        let approval = &report["approvals"][0];
        assert_eq!(approval["what"], "network:proxy", "{report:#}");
        assert!(approval["reason"].to_string().contains(by), "{report:#}");
    }
    let by_nobody = net.script(&[], "true");
    assert!(by_nobody.report.unwrap()["approvals"].as_array().is_none_or(Vec::is_empty));
}

/// Proves: NET-8 hint, NET-8 approval
#[test]
fn a_command_that_looks_like_it_needs_the_network_is_asked_about_once() {
    let net = Net::new();
    let tmux = Tmux::new(&net.world);
    let enter = net.lab.enter().join(" ");
    tmux.line(&format!(
        "{enter} sandbox run -- curl -sS --max-time 10 http://web.example/; echo ended $?"
    ));
    tmux.wait_for("network");
    tmux.line("n");
    tmux.wait_until("no network", |screen| screen.lines().any(|line| line.trim() == "ended 6"));
}

/// Opens more files than questions may be open, and asks the proxy for hosts meanwhile: each for a moment.
const MANY_QUESTIONS: &str = "import os, socket, sys, threading
for number in range(300):
    threading.Thread(target=open, args=(f'{sys.argv[1]}/{number}',)).start()
for number in range(40):
    client = socket.create_connection(('198.18.0.1', 3128))
    client.settimeout(0.3)
    client.sendall(b'CONNECT host-%d.example:443 HTTP/1.1\\r\\nHost: host-%d.example:443\\r\\n\\r\\n' % (number, number))
    try: print(client.recv(65536).decode(), flush=True)
    except TimeoutError: pass
os._exit(0)";

/// A connection waits in line as a call on a file does, and leaves it when its client gives up.
///
/// Proves: NET-8 asked, GATE-5 bounded
#[test]
fn a_host_that_finds_no_room_for_its_question_waits_in_line() {
    let net = Net::new();
    for number in 0..300 {
        net.world.write(format!("outside/many/{number}"), "");
    }
    let directory = net.world.outside().join("many");
    let command = ["/usr/bin/python3", "-c", MANY_QUESTIONS, directory.to_str().unwrap()];
    let output = net.run(&["--network", "proxy", "--on-ask", "wait"], &command);
    output.assert_code(0);
    assert!(!output.out().contains("403"), "{}{}", output.out(), output.err());
    assert!(!output.err().contains("denied without asking"), "{}", output.err());
    let decided = net.events("HOST_DECIDED");
    assert!(decided.iter().all(|one| one["source"] == "withdrawn"), "{decided:#?}");
    let in_line = decided.iter().filter(|one| one["question"].is_null()).count();
    assert!(in_line > 0, "all of them were shown: {decided:#?}");
}
