//! How a way out ends: with the run, with its supervisor, and when its own process goes; and the way out of
//! kernels without nf_tables.

use std::fs;

use palisade_testkit::am_root;
use rustix::process::{Pid, Signal, kill_process};

use crate::egress_support::Net;
use crate::inside::{below, eventually, lives, status_field};

/// Proves: PROC-1 dies-together, LIFE-4 crash
#[test]
fn a_killed_supervisor_takes_the_download_and_everything_along() {
    let net = Net::new();
    let run = net.spawn(
        &["--allow-host", "web.example"],
        &["curl", "-s", "--noproxy", "*", "-o", "/dev/null", "http://web.example/endless"],
    );
    net.lab.wait_for("the download", |entry| entry["line"] == "GET /endless HTTP/1.1");
    let processes = below(&run);
    assert!(processes.len() >= 3, "supervisor, egress, init and command: {processes:?}");
    run.signal(Signal::KILL);
    run.wait().assert_code(137);
    eventually("all processes gone", || !processes.iter().any(|pid| lives(*pid)));
    // The server's writes fail once nobody reads: nothing holds the connection open.
    eventually("the connection is closed", || open_connections(&net) == 0);
    net.world.sandbox(["audit", "verify"]).run().assert_code(0);
}

/// Established connections to the lab's web server.
fn open_connections(net: &Net) -> usize {
    let output = net.lab.bare(&net.world, "cat").args(["/proc/net/tcp", "/proc/net/tcp6"]).run();
    output.out().lines().filter(|line| line.split_whitespace().nth(3) == Some("01")).count()
}

/// Proves: NET-7 logged
#[test]
fn a_run_that_ends_closes_and_tells_what_was_open() {
    let net = Net::new();
    let output = net.script(
        &["--allow-host", "web.example"],
        "curl -s --noproxy '*' -o /dev/null http://web.example/endless & sleep 0.5",
    );
    output.assert_code(0);
    let closed = net.events("CONNECTION_CLOSED");
    assert!(closed.iter().any(|one| one["host"] == "web.example"), "{closed:#?}");
    eventually("the connection is closed", || open_connections(&net) == 0);
}

/// `CAP_SYS_PTRACE`, which is the broker's.
const TO_LOOK_INTO_CALLERS: &str = "0000000000080000";

/// `CAP_NET_ADMIN` in the sandbox's user namespace, to read the counters of its network; the ordinary user who
/// made that namespace needs none.
fn to_count_packets() -> &'static str {
    if am_root() { "0000000000001000" } else { "0000000000000000" }
}

/// Everything it may do was decided before it met the first byte from inside.
///
/// Proves: SYS-1 egress
#[test]
fn the_process_that_serves_the_way_out_has_no_power_of_its_own() {
    let net = Net::new();
    let flags = ["--static", "--allow-host", "web.example"];
    let run = net.spawn(&flags, &["sh", "-c", "echo ready; sleep 1000"]);
    run.wait_for_stdout("ready");
    // Of those that are not inside it is started last, after the broker. The command may be there a moment earlier;
    // what it sends waits.
    let outside = || below(&run).into_iter().filter(|pid| has_one_number(*pid));
    let last = || outside().max_by_key(|pid| (started(*pid), *pid));
    eventually("an egress process", || {
        let capabilities = last().and_then(|pid| status_field(pid, "CapEff"));
        capabilities.is_some_and(|capabilities| capabilities != TO_LOOK_INTO_CALLERS)
    });
    let egress = last().expect("an egress process");
    for (field, value) in [("NoNewPrivs", "1"), ("Seccomp", "2")] {
        eventually(field, || status_field(egress, field).as_deref() == Some(value));
    }
    let capabilities = status_field(egress, "CapEff").unwrap();
    assert_eq!(capabilities, to_count_packets());
    let ids = status_field(egress, "Uid").unwrap();
    assert!(!ids.split_whitespace().any(|id| id == "0"), "it is nobody's root: {ids}");
    // Killed, it takes the run along: without it nobody would judge.
    kill_process(Pid::from_raw(i32::try_from(egress).unwrap()).unwrap(), Signal::KILL).unwrap();
    let output = run.wait();
    assert_eq!(output.code(), 125, "{}", output.err());
    assert!(output.err().contains("way out"), "{}", output.err());
}

/// When it was, in ticks: numbers of processes begin anew when they run out.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind_name) = stat.rsplit_once(')')?;
    behind_name.split_whitespace().nth(19)?.parse().ok()
}

/// Processes inside have a number there too.
fn has_one_number(pid: u32) -> bool {
    status_field(pid, "NSpid").is_some_and(|numbers| numbers.split_whitespace().count() == 1)
}

/// Proves: NET-5 by-port
#[test]
fn without_nf_tables_the_allowed_ports_work_and_no_other() {
    let net = Net::new();
    let output = net
        .world
        .sandbox_run(
            ["--allow-host", "web.example:80,443,7", "--on-ask", "deny"],
            [
                "sh", "-c",
                "for version in -4 -6; do for scheme in http https; do \
                   curl -sS --noproxy '*' --max-time 10 $version $scheme://web.example/; done; done; \
                 curl -sS --max-time 10 https://web.example/; \
                 curl -s --noproxy '*' --max-time 10 http://web.example:8080/; echo port $?; \
                 curl -s --noproxy '*' --max-time 10 http://other.example/; echo name $?; \
                 curl -s -o /dev/null -w 'page %{http_code}\\n' --noproxy '*' --max-time 10 http://203.0.113.11/; \
                 /usr/bin/python3 -c 'import socket; s = socket.create_connection((\"web.example\", 7), 10); s.sendall(b\"hi\"); print(s.recv(2).decode())'",
            ],
        )
        .layers_off(&["packet-rules"])
        .started_by(&net.lab.enter())
        .run();
    let out = output.out();
    assert_eq!(out.matches("hello from web.example\n").count(), 5, "{out}{}", output.err());
    assert!(out.ends_with("port 7\nname 6\npage 403\nhi\n"), "{out}{}", output.err());
    let front = output.report.as_ref().map(|report| report["network"]["front"].clone());
    assert_eq!(front, Some("by-port".into()));
    assert!(!net.lab.connected("203.0.113.11:"), "{:#?}", net.lab.journal());
}
