//! Where a person is asked: `--ask-in` and the key that puts a question aside (GATE-11).

use std::fs;
use std::time::Duration;

use palisade_testkit::World;

use crate::gate::hidden;
use crate::inside::eventually;
use crate::tmux::Tmux;

/// A run that copies a hidden file, and what it got.
fn copies(world: &World) -> String {
    let file = hidden(world, "wanted");
    world.write_in_project("copy.sh", format!("cat '{file}' >got\n"));
    "sh copy.sh".to_owned()
}

fn got(world: &World) -> String {
    fs::read_to_string(world.project().join("got")).unwrap_or_default()
}

/// Proves: GATE-11 ask-in
#[test]
fn nobody_is_asked_where_nobody_is_to_be() {
    let world = World::new();
    let command = copies(&world);
    let tmux = Tmux::new(&world);
    tmux.line(&format!("sandbox run --ask-in none -- {command}"));
    tmux.wait_for("No such file or directory");
    tmux.expect_status(1);
    assert!(!tmux.screen().contains("wants to"), "{}", tmux.screen());
}

/// Proves: GATE-11 ask-in
#[test]
fn a_terminal_that_is_not_to_ask_is_left_alone() {
    let world = World::new();
    let command = copies(&world);
    let tmux = Tmux::new(&world);
    tmux.line(&format!("SANDBOX_ASK_IN=approve sandbox run -- {command}"));
    tmux.wait_for("answer the questions of this run with `sandbox approve`");
    tmux.wait_until("the title", |_| tmux.title().contains("palisade: a question waits"));
    assert!(!tmux.screen().contains("wants to"), "{}", tmux.screen());
    world.sandbox(["approve", "--yes", "1"]).run().assert_code(0);
    tmux.expect_status(0);
    assert_eq!(got(&world), "content of wanted\n");
}

/// Proves: GATE-11 ask-in
#[test]
fn tmux_opens_the_list_of_questions_beside_the_run() {
    let world = World::new();
    let command = copies(&world);
    let tmux = Tmux::new(&world);
    tmux.line(&format!("sandbox run --ask-in tmux -- {command}"));
    tmux.wait_until("a second pane", |_| tmux.show("#{window_panes}").trim() == "2");
    tmux.wait_until("the question", |_| tmux.visible().contains("y once"));
    let end = std::time::Instant::now() + palisade_testkit::patiently(Duration::from_secs(30));
    // The list takes no key that comes too soon.
    while got(&world).is_empty() && std::time::Instant::now() < end {
        tmux.keys(&["y"]);
        std::thread::sleep(Duration::from_millis(700));
    }
    assert_eq!(got(&world), "content of wanted\n");
    eventually("the pane has closed itself", || tmux.show("#{window_panes}").trim() == "1");
    tmux.wait_for_prompt();
}

/// Another session asks at the same time; its question is not shown in the window of this one.
///
/// Proves: GATE-11 ask-in
#[test]
fn a_window_of_tmux_shows_the_questions_of_its_own_run() {
    let world = World::new();
    let other = hidden(&world, "other");
    let command = copies(&world);
    let tmux = Tmux::new(&world);
    let waiting = world.sandbox_run(["--on-ask", "wait"], ["cat", &other]).spawn();
    eventually("the other's question", || {
        world.sandbox(["approve", "--json"]).run().out().contains("/other")
    });
    tmux.line(&format!("sandbox run --ask-in tmux -- {command}"));
    tmux.wait_until("the question", |_| tmux.visible().contains("y once"));
    let shown = tmux.visible();
    assert!(shown.contains("/wanted") && !shown.contains("/other"), "{shown}");
    world
        .sandbox(["approve", "--no", "1", "--only-session", &session_of(&world, "/wanted")])
        .run()
        .assert_code(0);
    tmux.wait_until("the window is closed", |_| tmux.show("#{window_panes}").trim() == "1");
    world.sandbox(["approve", "--no", "1"]).run().assert_code(0);
    waiting.wait().assert_code(1);
}

/// The name of the session that asks about this.
fn session_of(world: &World, path: &str) -> String {
    let listed = world.sandbox(["approve", "--json"]).run();
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let questions = listed["questions"].as_array().unwrap();
    let asked = questions.iter().find(|question| question.to_string().contains(path)).unwrap();
    asked["session"].as_str().unwrap().to_owned()
}

/// The list closes also where nobody answered: the run is over.
///
/// Proves: GATE-11 ask-in
#[test]
fn what_tmux_opened_closes_with_the_run() {
    let world = World::new();
    let command = copies(&world);
    let tmux = Tmux::new(&world);
    tmux.line(&format!("sandbox run --ask-in tmux --timeout 4 -- {command}"));
    tmux.wait_until("a second pane", |_| tmux.show("#{window_panes}").trim() == "2");
    eventually("the pane has closed itself", || tmux.show("#{window_panes}").trim() == "1");
    tmux.expect_status(124);
    assert_eq!(got(&world), "");
}

/// Proves: GATE-11 ask-in
#[test]
fn where_tmux_cannot_be_reached_the_terminal_asks() {
    let world = World::new();
    let command = copies(&world);
    let tmux = Tmux::new(&world);
    tmux.line(&format!("clear; TMUX=/nonexistent,1,0 sandbox run --ask-in tmux -- {command}"));
    tmux.wait_until("the question", |_| tmux.visible().contains("y once"));
    world.sandbox(["approve", "--yes", "1"]).run().assert_code(0);
    tmux.expect_status(0);
    assert_eq!(got(&world), "content of wanted\n");
}

/// Proves: GATE-11 ask-in
#[test]
fn without_tmux_it_is_said_that_there_is_none() {
    let world = World::new();
    let run = world.sandbox(["run", "--ask-in", "tmux", "--", "true"]).run();
    run.assert_code(125);
    let told = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(told.contains("$TMUX is not set"), "{told}");
}

/// Proves: GATE-11 look-below
#[test]
fn the_key_that_puts_a_question_aside_can_be_chosen() {
    let world = World::new();
    let command = copies(&world);
    let tmux = Tmux::new(&world);
    tmux.line(&format!("sandbox run --ask-key ctrl-o -- {command}"));
    tmux.wait_until("the question", |_| tmux.visible().contains("Ctrl-O look at the program"));
    tmux.keys(&["C-o"]);
    tmux.wait_until("what is below", |_| !tmux.visible().contains("y once"));
    tmux.keys(&["C-o"]);
    tmux.wait_until("the question", |_| tmux.visible().contains("y once"));
    std::thread::sleep(Duration::from_millis(900));
    tmux.keys(&["y"]);
    tmux.expect_status(0);
    assert_eq!(got(&world), "content of wanted\n");
    let run = world.sandbox(["run", "--ask-key", "ctrl-c", "--", "true"]).run();
    run.assert_code(125);
}

/// Proves: GATE-11 look-below
#[test]
fn a_policy_of_the_user_chooses_the_key_and_one_of_a_project_does_not() {
    let key = |world: &World| {
        let planned = world.sandbox(["plan", "--full", "--", "true"]).run();
        planned.assert_code(0);
        let out = planned.out();
        let line = out.lines().find(|line| line.contains("hides a question in the terminal"));
        line.unwrap_or_default().trim().to_owned()
    };
    let world = World::new();
    world.write_in_project(".palisade/policy.yaml", "askKey: ctrl-x\n");
    assert_eq!(key(&world), "ctrl-g hides a question in the terminal");
    world.write("home/.config/palisade/policy.yaml", "askKey: ctrl-]\n");
    assert_eq!(key(&world), "ctrl-] hides a question in the terminal");
    let file = hidden(&world, "wanted");
    let tmux = Tmux::new(&world);
    tmux.line(&format!("sandbox run -q -- cat {file}"));
    tmux.wait_until("the question", |_| tmux.visible().contains("Ctrl-] look at the program"));
    tmux.keys(&["C-]"]);
    tmux.wait_until("what is below", |_| !tmux.visible().contains("y once"));
    tmux.keys(&["C-]"]);
    tmux.wait_until("the question", |_| tmux.visible().contains("y once"));
    tmux.keys(&["C-c"]);
    tmux.expect_status(130);
}
