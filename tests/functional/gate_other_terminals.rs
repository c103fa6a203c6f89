//! Questions at terminals that are not plainly the command's own: one that only shows its output, one without cursor
//! movement, and one that a shell has changed while the run was stopped (GATE-8, GATE-11).

use std::time::Duration;

use palisade_testkit::World;

use crate::gate::hidden;
use crate::tmux::Tmux;

/// A key is an answer if nothing was typed for 0.6 s before it.
fn think() {
    std::thread::sleep(Duration::from_millis(900));
}

/// Proves: GATE-11 panel
#[test]
fn a_command_that_reads_from_a_pipe_is_asked_about_in_a_panel() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let tmux = Tmux::new(&world);
    tmux.resize(180, 30);
    tmux.line("stty -a > before");
    tmux.line(&format!("clear; echo from the pipe | sandbox run -- cat - {file}"));
    tmux.wait_for("y once");
    think();
    tmux.keys(&["y"]);
    tmux.wait_for_line("content of wanted");
    tmux.expect_status(0);
    let screen = tmux.visible();
    assert!(screen.contains("from the pipe\n"), "{screen}");
    assert!(!screen.contains("sandbox: a question"), "{screen}");
    tmux.line("stty -a | diff before - && echo the same");
    tmux.wait_for_line("the same");
}

/// Proves: GATE-11 panel, GATE-5 waiting-told
#[test]
fn a_terminal_without_cursor_movement_is_told_where_to_answer() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let tmux = Tmux::new(&world);
    tmux.resize(180, 30);
    tmux.line(&format!("clear; TERM=dumb sandbox run -- cat {file}"));
    tmux.wait_for(&format!("wants to read {file}; answer with `sandbox approve`"));
    world.sandbox(["approve", "--yes", "1"]).run().assert_code(0);
    tmux.wait_for_line("content of wanted");
    tmux.expect_status(0);
}

/// SIGSTOP cannot be handled: the shell sets its own modes, and `fg` brings back a terminal that echoes.
///
/// Proves: GATE-11 panel, PROC-3 job-control
#[test]
fn a_run_that_was_stopped_from_outside_has_its_terminal_back() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let tmux = Tmux::new(&world);
    tmux.resize(180, 30);
    tmux.line(&format!("tty > tty; clear; sandbox run -- sh -c 'echo $$ up; cat; cat {file}'"));
    tmux.wait_until("the command", |screen| screen.contains(" up\n"));
    let wait_for_raw = |is_raw: bool| {
        tmux.wait_until("the mode", |_| {
            let modes = world.bare("sh").args(["-c", "stty -F $(cat tty) -a"]).run();
            modes.out().contains("-opost") == is_raw
        });
    };
    wait_for_raw(true);
    let stop = "kill -STOP $(pgrep -f -o 'sandbox run -- sh -c echo')";
    world.bare("sh").args(["-c", stop]).run().assert_code(0);
    wait_for_raw(false);
    tmux.line("fg");
    wait_for_raw(true);
    tmux.keys(&["C-d"]);
    tmux.wait_for("y once");
    think();
    tmux.keys(&["y"]);
    tmux.wait_for_line("content of wanted");
    tmux.expect_status(0);
}

/// Proves: GATE-11 panel
#[test]
fn the_panel_counts_the_questions_that_wait() {
    let world = World::new();
    let (first, second) = (hidden(&world, "first"), hidden(&world, "second"));
    let tmux = Tmux::new(&world);
    tmux.resize(180, 30);
    world.write_in_project("two.sh", format!("cat {first} & read go < go; cat {second} & wait\n"));
    tmux.line("mkfifo go; clear; sandbox run -- sh -c '. ./two.sh'");
    tmux.wait_for(&format!("wants to read {first}"));
    assert!(!tmux.visible().contains("more waiting"), "{}", tmux.visible());
    world.bare("sh").args(["-c", "echo go > go"]).run().assert_code(0);
    tmux.wait_for("1 more waiting");
    for answered in [&first, &second] {
        tmux.wait_for(&format!("wants to read {answered}"));
        think();
        tmux.keys(&["y"]);
    }
    tmux.expect_status(0);
}
