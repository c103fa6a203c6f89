//! Terminals of sessions: attached to, left and shown again, in real terminals.

use palisade_testkit::World;
use rustix::process::Signal;

use crate::sessions_support::{Sessions, wait_until};
use crate::tmux::Tmux;

/// Proves: LIFE-3 attach
#[test]
fn a_shell_in_a_session_is_left_and_shown_again_with_what_it_wrote() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "s"]);
    let tmux = Tmux::new(&world);
    tmux.line("sandbox exec -t s -- env PS1='inside>' bash --norc --noprofile -i");
    tmux.wait_for("inside>");
    tmux.line("echo $((6 * 7)); stty size");
    tmux.wait_for_line("42");
    tmux.wait_for_line("30 100");
    tmux.keys(&["C-p", "C-q"]);
    tmux.wait_for("detached");
    tmux.wait_for_prompt();
    tmux.line("clear; tmux clear-history 2>/dev/null; sandbox attach s");
    tmux.wait_for_line("42");
    tmux.resize(90, 25);
    tmux.insist(|tmux| tmux.line("stty size"), "25 90");
    tmux.line("exit 6");
    tmux.expect_status(6);
}

/// Proves: LIFE-3 attach
#[test]
fn one_terminal_types_and_the_others_watch() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    sessions.create(&[
        "--name",
        "s",
        "-t",
        "--",
        "env",
        "PS1=inside>",
        "bash",
        "--norc",
        "--noprofile",
        "-i",
    ]);
    let typist = Tmux::new(&world);
    typist.line("sandbox attach s");
    typist.wait_for("inside>");
    let watchers = [Tmux::new(&world), Tmux::new(&world)];
    for watcher in &watchers {
        watcher.line("sandbox attach s");
        watcher.wait_for("only watches");
    }
    typist.line("echo to $((1 + 1)) watchers");
    for watcher in &watchers {
        watcher.wait_for_line("to 2 watchers");
    }
    watchers[0].line("echo not typed");
    watchers[1].keys(&["C-c"]);
    watchers[1].expect_status(0);
    typist.line("echo still here");
    typist.wait_for_line("still here");
    assert!(!typist.screen().contains("not typed"), "{}", typist.screen());
    // Who types leaves, and another takes over.
    typist.keys(&["C-p", "C-q"]);
    typist.wait_for("detached");
    watchers[1].line("sandbox attach s");
    watchers[1].wait_for_line("still here");
    watchers[1].line("exit 9");
    watchers[1].expect_status(9);
    watchers[0].expect_status(9);
}

/// Proves: LIFE-3 attach
#[test]
fn a_program_for_whole_screens_works_in_a_session() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "s"]);
    let tmux = Tmux::new(&world);
    tmux.line("sandbox exec -t s -- vi -u NONE -N written");
    tmux.wait_for("~");
    tmux.keys(&["i"]);
    tmux.line("by hand");
    tmux.keys(&["Escape"]);
    tmux.line(":wq");
    tmux.expect_status(0);
    assert_eq!(std::fs::read_to_string(world.project().join("written")).unwrap(), "by hand\n\n");
}

/// Proves: LIFE-3 attach
#[test]
fn what_a_terminal_is_flooded_with_arrives_whole_for_who_types() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "s"]);
    let output = sessions.sandbox(&["exec", "-t", "s", "--", "seq", "1", "300000"]);
    output.assert_code(0);
    let expected: String = (1..=300_000).map(|number| format!("{number}\r\n")).collect();
    assert!(output.out() == expected, "{} of {} bytes", output.out().len(), expected.len());
}

/// Proves: LIFE-3 attach
#[test]
fn a_terminal_is_readable_again_after_a_program_for_whole_screens_was_left() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "s"]);
    let tmux = Tmux::new(&world);
    tmux.line("sandbox exec -t s -- vi -u NONE -N kept");
    tmux.wait_for("~");
    tmux.keys(&["C-p", "C-q"]);
    tmux.wait_for("detached");
    tmux.expect_status(0);
    assert_eq!(tmux.show("#{alternate_on}").trim(), "0");
    tmux.line("clear; sandbox attach s");
    tmux.wait_until("the editor is back", |_| tmux.show("#{alternate_on}").trim() == "1");
    tmux.line(":q!");
    tmux.expect_status(0);
}

/// Proves: LIFE-3 attach
#[test]
fn no_command_waits_for_a_watcher_that_was_stopped_or_ends_with_its_terminal() {
    let world = World::new();
    let sessions = Sessions::new(&world);
    sessions.create(&["--name", "s"]);
    let script = "echo waiting; until [ -e go ]; do sleep 0.02; done; seq 1 400000; touch done";
    sessions.sandbox(&["exec", "-d", "-t", "s", "--", "sh", "-c", script]).assert_code(0);
    let watcher = world.sandbox(["attach", "--watch", "s"]).spawn();
    watcher.wait_for_stdout("waiting");
    watcher.signal(Signal::STOP);
    world.write_in_project("go", "");
    wait_until("the command is done", || world.project().join("done").exists());
    watcher.signal(Signal::CONT);
    let seen = watcher.wait();
    seen.assert_code(0);
    assert!(seen.out().ends_with("400000\r\n"), "it gets the last of it");
    let typist =
        world.sandbox(["exec", "-t", "s", "--", "sh", "-c", "echo up; sleep 1000"]).spawn();
    typist.wait_for_stdout("up");
    typist.signal(Signal::KILL);
    drop(typist.wait());
    let commands = || sessions.inspect("s")["status"]["commands"].clone();
    wait_until("nobody is attached", || commands()[0]["watchers"] == 0);
    assert_eq!(commands().as_array().map(Vec::len), Some(1), "it goes on");
}
