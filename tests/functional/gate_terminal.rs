//! Questions and a person at a terminal: one line where there is room for it, never over a full-screen program, and
//! keys that were meant for the command stay the command's (GATE-8, TOOL-2).

use std::fs;
use std::time::Duration;

use palisade_testkit::World;

use crate::gate::{Client, hidden};
use crate::inside::eventually;
use crate::tmux::Tmux;

/// A key is an answer if nothing was typed for 0.6 s before it.
fn think() {
    std::thread::sleep(Duration::from_millis(900));
}

/// The answer of somebody in another terminal.
fn approve_elsewhere(world: &World, words: &[&str]) {
    world.sandbox(["approve"]).args(words).run().assert_code(0);
}

/// Proves: TOOL-2 terminal, GATE-4 once, GATE-1 approve-continues
#[test]
fn one_line_asks_and_one_key_answers() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let tmux = Tmux::new(&world);
    tmux.resize(180, 30);
    tmux.line(&format!("sandbox run -- cat {file}"));
    tmux.wait_for(&format!("wants to read {file}"));
    tmux.wait_for("y once");
    let shown = tmux.visible();
    let directory = world.outside().display().to_string();
    for words in [
        "? cat (",
        "directory:",
        &format!("{directory}/**"),
        "s session",
        "a always",
        "n no",
        "x never",
    ] {
        assert!(shown.contains(words), "`{words}` is missing:\n{shown}");
    }
    think();
    tmux.keys(&["y"]);
    tmux.wait_for("-> allowed once (terminal)");
    tmux.wait_for_line("content of wanted");
    tmux.expect_status(0);
}

/// Proves: TOOL-2 terminal, GATE-1 deny-eacces
#[test]
fn no_is_a_key_too() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let tmux = Tmux::new(&world);
    tmux.resize(180, 30);
    tmux.line(&format!("sandbox run -- cat {file}"));
    tmux.wait_for("n no");
    think();
    tmux.keys(&["n"]);
    tmux.wait_for("-> denied (terminal)");
    tmux.wait_for("Permission denied");
    tmux.wait_for("1 path was denied");
    tmux.expect_status(1);
}

/// Proves: TOOL-2 terminal, GATE-4 session, GATE-4 tree
#[test]
fn the_other_keys_are_for_longer_and_for_more() {
    let world = World::new();
    let (file, in_tree) = (hidden(&world, "a/file"), hidden(&world, "b/one"));
    let beside = hidden(&world, "b/two");
    let tmux = Tmux::new(&world);
    tmux.resize(180, 30);
    tmux.line(&format!("sandbox run -- cat {file} {file} {in_tree} {beside}"));
    tmux.wait_for(&format!("wants to read {file}"));
    think();
    tmux.keys(&["s"]);
    tmux.wait_for("-> allowed for this session (terminal)");
    tmux.wait_for(&format!("wants to read {in_tree}"));
    think();
    tmux.keys(&["d"]);
    tmux.wait_for("-> directory allowed (terminal)");
    tmux.wait_for_line("content of b/two");
    tmux.expect_status(0);
}

/// What somebody types for the command is no answer, though the same letters would be.
///
/// Proves: GATE-8 no-prompt, TOOL-2 terminal
#[test]
fn what_is_typed_for_the_command_grants_nothing() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let tmux = Tmux::new(&world);
    tmux.resize(180, 30);
    tmux.line(&format!("sandbox run -- sh -c 'cat {file} & read line; echo $line >got; wait'"));
    tmux.wait_for("y once");
    tmux.line("yes always do");
    let got = || fs::read_to_string(world.project().join("got")).unwrap_or_default();
    eventually("the line", || got() == "yes always do\n");
    assert!(!tmux.screen().contains("->"), "{}", tmux.screen());
    think();
    tmux.keys(&["n"]);
    tmux.wait_for("-> denied (terminal)");
    tmux.expect_status(0);
}

/// Proves: GATE-1 signals, TOOL-2 terminal
#[test]
fn ctrl_c_ends_a_command_that_waits_for_an_answer() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let tmux = Tmux::new(&world);
    tmux.resize(180, 30);
    tmux.line(&format!("sandbox run -- cat {file}"));
    tmux.wait_for("y once");
    tmux.keys(&["C-c"]);
    tmux.expect_status(130);
    assert!(!tmux.screen().contains("content of"), "{}", tmux.screen());
}

/// Proves: TOOL-2 terminal, TOOL-2 one-queue, PROC-3 job-control
#[test]
fn a_shell_inside_goes_on_after_an_answer_from_elsewhere() {
    let world = World::new();
    let (file, other) = (hidden(&world, "wanted"), hidden(&world, "other"));
    let tmux = Tmux::new(&world);
    tmux.resize(180, 30);
    tmux.line("sandbox run -- env PS1='inside>' bash --norc --noprofile -i");
    tmux.wait_until("its prompt", |screen| screen.trim_end().ends_with("inside>"));
    // A builtin: the shell itself waits.
    tmux.line(&format!("read -r line <{file}; echo \"got: $line\""));
    tmux.wait_for("y once");
    approve_elsewhere(&world, &["--yes", "1"]);
    tmux.wait_for_line("got: content of wanted");
    tmux.wait_for("-> allowed once (answered elsewhere)");
    tmux.line(&format!("cat {other}"));
    tmux.wait_for(&format!("wants to read {other}"));
    tmux.keys(&["C-c"]);
    tmux.wait_until("its prompt", |screen| screen.trim_end().ends_with("inside>"));
    tmux.line("echo still $((40 + 2))");
    tmux.wait_for_line("still 42");
    tmux.line("exit 4");
    tmux.expect_status(4);
}

/// Proves: GATE-8 no-prompt
#[test]
fn a_full_screen_program_is_left_alone() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let tmux = Tmux::new(&world);
    tmux.line("sandbox run -- vim -N -u NONE -i NONE -n notes.txt");
    tmux.wait_until("an empty buffer", |_| {
        tmux.visible().lines().nth(1).is_some_and(|line| line.starts_with('~'))
    });
    tmux.line(&format!(":r {file}"));
    tmux.wait_until("the title", |_| tmux.title().contains("palisade: a question waits"));
    assert!(!tmux.visible().contains("wants to"), "{}", tmux.visible());
    assert!(!tmux.visible().contains("y once"), "{}", tmux.visible());
    approve_elsewhere(&world, &["--yes", "1", "--session"]);
    tmux.wait_until("the text", |_| tmux.visible().contains("content of wanted"));
    tmux.wait_until("the old title", |_| !tmux.title().contains("palisade"));
    tmux.line(":wq");
    tmux.expect_status(0);
    let written = fs::read_to_string(world.project().join("notes.txt")).unwrap();
    assert_eq!(written, "\ncontent of wanted\n");
}

/// A question that is still open when the full screen ends appears then.
///
/// Proves: GATE-8 no-prompt
#[test]
fn the_question_comes_once_the_screen_is_free() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let tmux = Tmux::new(&world);
    tmux.resize(180, 30);
    world.write_in_project("long.txt", "line\n".repeat(200));
    tmux.line(&format!("sandbox run -- sh -c '(while ! test -e go; do sleep 0.05; done; cat {file}) & less long.txt; wait'"));
    tmux.wait_until("the first page", |_| tmux.visible().starts_with("line\n"));
    fs::write(world.project().join("go"), "").unwrap();
    tmux.wait_until("the title", |_| tmux.title().contains("palisade: a question waits"));
    assert!(!tmux.visible().contains("wants to"), "{}", tmux.visible());
    tmux.keys(&["q"]);
    tmux.wait_for(&format!("wants to read {file}"));
    think();
    tmux.keys(&["y"]);
    tmux.wait_for_line("content of wanted");
    tmux.expect_status(0);
}

/// Proves: TOOL-2 one-queue, GATE-4 tree
#[test]
fn interpreters_at_their_prompts_wait_and_go_on() {
    for (program, prompt, read) in [
        ("python3 -q", ">>>", "print(open('@').read().strip().upper())"),
        ("node", ">", "console.log(require('fs').readFileSync('@', 'utf8').trim().toUpperCase())"),
    ] {
        let world = World::new();
        let file = hidden(&world, "data/wanted");
        let tmux = Tmux::new(&world);
        tmux.resize(200, 40);
        tmux.line(&format!("sandbox run -- {program}"));
        tmux.wait_until("its prompt", |screen| screen.trim_end().ends_with(prompt));
        tmux.line(&read.replace('@', &file));
        tmux.wait_until("a question", |screen| screen.contains("wants to"));
        assert!(tmux.screen().contains(&file), "{}", tmux.screen());
        approve_elsewhere(&world, &["--yes", "1", "--directory"]);
        tmux.wait_for("-> directory allowed (answered elsewhere)");
        tmux.wait_for_line("CONTENT OF DATA/WANTED");
        tmux.keys(&["C-d"]);
        tmux.expect_status(0);
    }
}

/// Proves: FS-2 asked-in-red, TOOL-2 terminal
#[test]
fn a_secret_is_shown_in_red_and_never_for_good() {
    let world = World::new();
    let secret = world.write("home/.ssh/id_ed25519", "the key\n").to_string_lossy().into_owned();
    let tmux = Tmux::new(&world);
    tmux.resize(180, 30);
    tmux.line(&format!("sandbox run -- cat {secret}"));
    tmux.wait_for(&format!("wants to read the secret {secret}"));
    tmux.wait_for("n no");
    let shown = tmux.coloured();
    assert!(shown.contains("\u{1b}[1m\u{1b}[31mthe secret"), "{shown:?}");
    assert!(!shown.contains("always") && !shown.contains("directory:"), "{shown}");
    think();
    // Not offered, so it is the command's.
    tmux.keys(&["a"]);
    think();
    tmux.keys(&["n"]);
    tmux.wait_for("-> denied (terminal)");
    tmux.expect_status(1);
}

/// Control characters in a name are shown, not obeyed.
///
/// Proves: TOOL-2 terminal
#[test]
fn a_hostile_name_is_written_out() {
    let world = World::new();
    let hostile = "x\u{1b}[2J\u{1b}]0;owned\u{7}\r\ny";
    fs::write(world.outside().join(hostile), "").unwrap();
    let tmux = Tmux::new(&world);
    tmux.resize(180, 30);
    let script = format!(
        "import os\nos.stat(os.path.join({:?}, 'x\\x1b[2J\\x1b]0;owned\\x07\\r\\ny'))\n",
        world.outside()
    );
    world.write_in_project("touch.py", script);
    tmux.line("sandbox run -- python3 touch.py");
    tmux.wait_for("y once");
    let shown = tmux.screen();
    assert!(shown.contains("ready>sandbox run"), "the screen was cleared:\n{shown}");
    assert!(shown.contains("\\u{1b}[2J") || shown.contains("\\x1b[2J"), "{shown}");
    assert!(!tmux.title().contains("owned"), "{}", tmux.title());
    let mut client = Client::connect(&world);
    let question = client.question();
    assert!(question["path"].as_str().unwrap().ends_with(hostile), "{question}");
    client.deny(&question, "once");
    tmux.expect_status(1);
}
