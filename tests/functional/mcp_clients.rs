//! `sandbox mcp` with the client of others: the package `mcp` of PyPI, over both transports and in both eras of the protocol.
//! The list of what is installed is `tests/packages/mcp/python.txt`.

use palisade_testkit::{World, python_packages, sandbox_program};

use crate::gate::hidden;
use crate::mcp_support::nothing_is_left;
use crate::sessions_support::Sessions;

const CLIENT: &str = include_str!("../clients/mcp_client.py");

/// What the client said, which has to end well.
fn drive(world: &World, arguments: &[&str]) -> String {
    let script = world.write("mcp_client.py", CLIENT);
    let client = world.bare("/usr/bin/python3").arg(script).args(arguments);
    let client =
        client.env("PYTHONPATH", python_packages("mcp")).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = client.arg(sandbox_program()).run();
    output.assert_code(0);
    output.out().into_owned()
}

fn both_eras(transport: &str) {
    for (mode, revision) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        let world = World::new();
        let wanted = hidden(&world, "wanted");
        let _sessions = Sessions::new(&world);
        let said = drive(&world, &[transport, mode, &wanted]);
        let lines: Vec<&str> = said.lines().collect();
        let expected = [
            format!("revision {revision}").as_str(),
            "tools 14",
            "exit 3 out",
            "asked 1",
            "content of wanted",
            "progress True",
            "applied True",
            "error True",
        ]
        .map(str::to_owned);
        assert_eq!(lines, expected, "{transport} {mode}");
        assert!(world.project().join("made").exists());
        assert!(nothing_is_left(&world), "{transport} {mode}");
    }
}

/// Proves: TOOL-5 eras
#[test]
fn the_client_of_pypi_works_over_pipes_in_both_eras() {
    both_eras("stdio");
}

/// Proves: TOOL-5 eras
#[test]
fn the_client_of_pypi_works_over_http_in_both_eras() {
    both_eras("http");
}

/// What a client gives back is signed, bound to its call and counts once; a long command becomes a task.
///
/// Proves: TOOL-5 eras, TOOL-2 one-queue
#[test]
fn a_stateless_client_brings_answers_and_looks_at_tasks() {
    let world = World::new();
    let (first, second) = (hidden(&world, "first"), hidden(&world, "second"));
    let _sessions = Sessions::new(&world);
    let script = world.write("mcp_stateless.py", include_str!("../clients/mcp_stateless.py"));
    let client = world.bare("/usr/bin/python3").arg(script).args([&first, &second]);
    let output = client.arg(sandbox_program()).run();
    output.assert_code(0);
    let said = output.out();
    let expected = [
        "discovered True",
        "input_required ['approval']",
        "other arguments: requestState: request state failed integrity verification",
        "forged: requestState: request state failed integrity verification",
        "content of first",
        "again: requestState: this call does not wait for an answer",
        "task working",
        "content of second",
        "cancelled",
        "its command has ended",
        "end 0",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    assert!(nothing_is_left(&world));
}
