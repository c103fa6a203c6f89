//! `sandbox serve --e2b`, with E2B's own packages as they are in PyPI and npm.

use std::fs;
use std::os::unix::fs::symlink;

use palisade_testkit::{World, python_packages, sandbox_program};
use rustix::process::Signal;

use crate::e2b_support::E2bServer;
use crate::sessions_support::Sessions;

/// Proves: TOOL-4 sandboxes, TOOL-4 commands, TOOL-4 files, TOOL-4 terminals, TOOL-4 unsupported
#[test]
fn every_call_of_the_python_package_works() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = E2bServer::start(&world);
    let python = server.python(include_str!("e2b/whole.py"), &[]);
    let output = python.run();
    output.assert_code(0);
    assert!(output.out().ends_with("all of it works\n"), "{}", output.out());
    server.expect_nothing_left();
}

/// Proves: TOOL-4 sandboxes, TOOL-4 commands, TOOL-4 files, TOOL-4 terminals, TOOL-4 unsupported
#[test]
fn every_call_of_the_javascript_package_works() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = E2bServer::start(&world);
    let node = server.node(include_str!("e2b/whole.mjs"));
    let output = node.run();
    output.assert_code(0);
    assert!(output.out().ends_with("all of it works\n"), "{}", output.out());
    server.expect_nothing_left();
}

/// Proves: TOOL-4 commands, TOOL-4 files
#[test]
fn many_commands_and_files_are_served_at_once() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let server = E2bServer::start(&world);
    let python = server.python(include_str!("e2b/together.py"), &[]);
    let output = python.run();
    output.assert_code(0);
    server.expect_nothing_left();
}

/// Proves: TOOL-4 survives
#[test]
fn a_server_that_is_killed_loses_no_sandbox_and_no_command() {
    let world = World::new();
    let _sessions = Sessions::new(&world);
    let mut server = E2bServer::start(&world);
    let script = include_str!("e2b/across.py");
    let before = server.python(script, &["before"]);
    let mut before = before.keep_stdin_open().spawn();
    before.wait_for_stdout("\n");
    server.end(Signal::KILL);
    before.send(b"go on\n");
    let before = before.wait();
    before.assert_code(0);
    let told = before.out();
    let (first, error) = told.split_once('\n').unwrap();
    assert!(error.contains("Exception") || error.contains("Error"), "{told}");
    let (id, pid) = first.split_once(' ').unwrap();

    server.restart();
    let after = server.python(script, &["after", id, pid]).run();
    after.assert_code(0);
    assert_eq!(after.out(), "all of it works\n");
    server.expect_nothing_left();
}

/// The documented program, as typed.
/// Proves: TOOL-4 sandboxes
#[test]
fn the_documented_example_works() {
    const PAGE: &str = include_str!("../../docs/e2b.md");
    let packages = python_packages("e2b");
    let block = |kind: &str| {
        let start = format!("```{kind}\n");
        PAGE.split(&start).nth(1).and_then(|rest| rest.split("```").next()).unwrap()
    };
    let world = World::new();
    let sessions = Sessions::new(&world);
    fs::create_dir(world.path().join("bin")).unwrap();
    symlink(sandbox_program(), world.path().join("bin/sandbox")).unwrap();
    let path = format!("{}:/usr/bin:/bin", world.path().join("bin").display());
    world.write_in_project("agent.py", block("python"));
    // Whatever fails, the server ends with the example. Another server may have the port.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let example = block("sh").replace("49983", &port.to_string());
    let listen = format!("--e2b --listen tcp:127.0.0.1:{port}");
    let example = example.replace("--e2b", &listen).replace("kill %1", "");
    let example = format!("trap 'kill %1 || true' EXIT\n{example}");
    let bash = world.bare("bash").args(["-emc", &example]).env("PATH", path);
    let output = bash.env("PYTHONPATH", packages).run();
    output.assert_code(0);
    assert!(output.out().ends_with("the tests pass\n"), "{}", output.out());
    drop(sessions);
}
