//! Questions and a person at a terminal: a panel over what is there, which leaves it as it was, and keys that were meant for
//! the command grant nothing (GATE-8, GATE-11, TOOL-2).

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

/// After `su`, the terminal is another user's and cannot be opened anew: the question does not wait for a key that nobody
/// would press.
///
/// Proves: GATE-11 panel
#[test]
fn a_terminal_that_belongs_to_somebody_else_is_asked_in_without_a_key() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let tmux = Tmux::new(&world);
    tmux.line(&format!("chmod 000 $(tty); clear; sandbox run -- cat {file} {file}"));
    tmux.wait_for("y once");
    think();
    tmux.keys(&["s"]);
    tmux.expect_status(0);
}

/// Proves: TOOL-2 terminal, GATE-4 once, GATE-1 approve-continues
#[test]
fn a_panel_asks_and_one_key_answers() {
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
        "sandbox: a question",
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
    tmux.wait_for_line("content of wanted");
    tmux.expect_status(0);
    assert!(!tmux.screen().contains("wants to"), "nothing of it stays:\n{}", tmux.screen());
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
    tmux.wait_for(&format!("wants to read {in_tree}"));
    think();
    tmux.keys(&["d"]);
    tmux.wait_for_line("content of b/two");
    tmux.expect_status(0);
}

/// What somebody types without having read the question is no answer, though the same letters would be; the panel says so.
///
/// Proves: GATE-8 type-ahead, GATE-11 armed, TOOL-2 terminal
#[test]
fn what_is_typed_without_a_pause_grants_nothing() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let tmux = Tmux::new(&world);
    tmux.resize(180, 30);
    tmux.line(&format!("sandbox run -- cat {file}"));
    tmux.wait_for("y once");
    tmux.line("yes always do");
    tmux.wait_for("too fast");
    assert!(tmux.visible().contains("y once"), "{}", tmux.visible());
    think();
    // For good, but not confirmed.
    tmux.keys(&["a"]);
    tmux.wait_for("press Enter to confirm");
    tmux.keys(&["q"]);
    tmux.wait_for("y once");
    think();
    tmux.keys(&["n"]);
    tmux.wait_for("Permission denied");
    tmux.expect_status(1);
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
    tmux.line(&format!("cat {other}"));
    tmux.wait_for(&format!("wants to read {other}"));
    tmux.keys(&["C-c"]);
    tmux.wait_until("its prompt", |screen| screen.trim_end().ends_with("inside>"));
    tmux.line("echo still $((40 + 2))");
    tmux.wait_for_line("still 42");
    tmux.line("exit 4");
    tmux.expect_status(4);
}

/// What a window shows, its colours and where its cursor is.
pub(crate) fn looks(tmux: &Tmux<'_>) -> (String, String) {
    (tmux.coloured(), tmux.show("#{origin_flag} #{mouse_sgr_flag} #{bracket_paste_flag} #{cursor_shape} #{cursor_x},#{cursor_y} #{alternate_on} #{cursor_flag} #{keypad_cursor_flag} #{keypad_flag} #{mouse_any_flag} #{scroll_region_upper} #{scroll_region_lower} #{insert_flag} #{wrap_flag}"))
}

/// An editor that waits for the answer itself can do nothing: the panel is over it, and goes without a trace.
///
/// Proves: GATE-11 panel, GATE-11 screen-restored
#[test]
fn an_editor_is_asked_over_and_looks_the_same_afterwards() {
    for (columns, rows) in [(80, 24), (120, 40)] {
        let world = World::new();
        let file = hidden(&world, "wanted");
        let tmux = Tmux::new(&world);
        tmux.resize(columns, rows);
        world.write_in_project("notes.txt", "first line\nsecond line\n");
        // A long line typed in the editor would make it scroll.
        world.write_in_project("settings.vim", format!("syntax on\nset mouse=a\nlet f='{file}'\n"));
        tmux.line("sandbox run -- vim -N -u settings.vim -i NONE -n notes.txt");
        tmux.wait_until("the text", |_| tmux.visible().starts_with("first line\nsecond line\n~"));
        tmux.line(":exe 'r '.f");
        tmux.wait_until("the question", |_| tmux.visible().contains("y once"));
        assert!(tmux.visible().starts_with("first line\nsecond line\n~"), "{}", tmux.visible());
        // What is below it, and back.
        tmux.keys(&["C-g"]);
        tmux.wait_until("the editor", |_| !tmux.visible().contains("y once"));
        let below = looks(&tmux);
        assert!(below.0.starts_with("first line\nsecond line\n"), "{}", below.0);
        assert!(tmux.title().contains("a question waits"), "{}", tmux.title());
        tmux.keys(&["C-g"]);
        tmux.wait_until("the question", |_| tmux.visible().contains("y once"));
        tmux.keys(&["C-g"]);
        tmux.wait_until("the editor", |_| !tmux.visible().contains("y once"));
        assert_eq!(looks(&tmux), below);
        tmux.keys(&["C-g"]);
        tmux.wait_until("the question", |_| tmux.visible().contains("y once"));
        think();
        // An editor looks at a file more than once.
        tmux.keys(&["s"]);
        tmux.wait_until("the text", |_| tmux.visible().contains("content of wanted"));
        tmux.wait_until("the old title", |_| !tmux.title().contains("palisade"));
        tmux.line(":wq");
        tmux.expect_status(0);
        let written = fs::read_to_string(world.project().join("notes.txt")).unwrap();
        assert_eq!(written, "first line\ncontent of wanted\nsecond line\n");
    }
}

/// As agents draw: some rows below what was there, again and again, by moving the cursor.
const INLINE: &str = r#"
import os, sys, time
w = sys.stdout.write
w("above\n\33[?25l")
def draw(n):
    for i in range(5):
        w(f"\33[2K\33[3{i+1}mrow {i} step {n}\33[0m\n")
    sys.stdout.flush()
draw(0)
pid = os.fork()
if pid == 0:
    os.close(0)
    try: open(sys.argv[1]).read()
    finally: os._exit(0)
n = 0
while not os.path.exists("stop"):
    time.sleep(0.05)
    if os.path.exists("go") or n < 3:
        n += 1
        w("\33[5A"); draw(n)
w("\33[5A"); draw("last")
os.waitpid(pid, 0)
w("\33[?25hbelow\n")
"#;

/// Proves: GATE-11 screen-restored, GATE-11 output-held
#[test]
fn a_program_that_draws_inline_goes_on_drawing_in_its_place() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let tmux = Tmux::new(&world);
    world.write_in_project("inline.py", INLINE);
    tmux.line(&format!("clear; sandbox run --quiet -- python3 inline.py {file}"));
    tmux.wait_until("the question", |_| tmux.visible().contains("y once"));
    // It goes on behind it, and nothing of that comes through.
    fs::write(world.project().join("go"), "").unwrap();
    think();
    assert!(tmux.visible().contains("y once"), "{}", tmux.visible());
    tmux.resize(90, 25);
    tmux.wait_until("the question again", |_| tmux.visible().contains("y once"));
    think();
    tmux.keys(&["n"]);
    tmux.wait_until("its rows", |_| !tmux.visible().contains("y once"));
    fs::write(world.project().join("stop"), "").unwrap();
    tmux.wait_for_line("below");
    let rows: Vec<String> = tmux
        .visible()
        .lines()
        .skip_while(|row| *row != "above")
        .take(7)
        .map(str::to_owned)
        .collect();
    let drawn = (0..5).map(|row| format!("row {row} step last"));
    let expected: Vec<String> =
        ["above".to_owned()].into_iter().chain(drawn).chain(["below".to_owned()]).collect();
    assert_eq!(rows, expected, "{}", tmux.visible());
    tmux.expect_status(0);
}

/// Proves: GATE-11 panel
#[test]
fn a_pager_in_the_way_is_no_reason_to_wait() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let tmux = Tmux::new(&world);
    tmux.resize(180, 30);
    world.write_in_project("long.txt", "line\n".repeat(200));
    tmux.line(&format!("sandbox run -- sh -c '(while ! test -e go; do sleep 0.05; done; cat {file} >got) & less long.txt; wait'"));
    tmux.wait_until("the first page", |_| tmux.visible().starts_with("line\n"));
    let before = looks(&tmux);
    fs::write(world.project().join("go"), "").unwrap();
    tmux.wait_until("the question", |_| tmux.visible().contains("wants to read"));
    think();
    tmux.keys(&["y"]);
    let got = || fs::read_to_string(world.project().join("got")).unwrap_or_default();
    eventually("the answer", || got() == "content of wanted\n");
    tmux.wait_until("the page", |_| !tmux.visible().contains("y once"));
    assert_eq!(looks(&tmux), before);
    tmux.keys(&["q"]);
    tmux.expect_status(0);
}

/// The rest of a pipeline may use the terminal, so no panel is drawn over it.
///
/// Proves: GATE-5 waiting-told
#[test]
fn a_question_in_a_pipeline_is_told_in_a_line() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let tmux = Tmux::new(&world);
    tmux.resize(180, 30);
    tmux.line(&format!("clear; sandbox run -- cat {file} | cat"));
    tmux.wait_for(&format!("wants to read {file}; answer with `sandbox approve`"));
    approve_elsewhere(&world, &["--yes", "1"]);
    tmux.wait_for("content of wanted");
    tmux.expect_status(0);
}

/// rm looks first whether it may write what it is to remove, and asks by itself if it may not.
///
/// Proves: GATE-10 remove, GATE-10 access
#[test]
fn a_file_is_removed_at_a_terminal_as_it_would_be_outside() {
    let world = World::new();
    let file = hidden(&world, "unwanted");
    let tmux = Tmux::new(&world);
    tmux.resize(180, 30);
    tmux.line(&format!("clear; sandbox run -- rm {file}"));
    tmux.wait_for(&format!("wants to look at {file}"));
    tmux.wait_for("y once");
    think();
    tmux.keys(&["y"]);
    tmux.wait_for(&format!("wants to remove {file}"));
    think();
    tmux.keys(&["y"]);
    tmux.expect_status(0);
    assert!(!std::path::Path::new(&file).exists());
}

/// Proves: GATE-11 panel
#[test]
fn a_tiny_terminal_asks_in_one_row_and_grants_nothing_it_cannot_show() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let tmux = Tmux::new(&world);
    world.write_in_project("read.sh", format!("cat {file} >got\n"));
    tmux.resize(20, 5);
    tmux.line("clear; sandbox run -q -- sh read.sh");
    tmux.wait_until("the row", |_| tmux.visible().contains("n? read"));
    think();
    tmux.keys(&["y"]);
    tmux.resize(80, 24);
    tmux.wait_for("not an answer here");
    think();
    tmux.keys(&["y"]);
    let got = || fs::read_to_string(world.project().join("got")).unwrap_or_default();
    eventually("the answer", || got() == "content of wanted\n");
    tmux.expect_status(0);
}

/// Keys are not ours there, and a panel would come too late or never.
///
/// Proves: GATE-11 ask-in
#[test]
fn a_terminal_of_another_session_is_told_where_to_answer() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    for start in ["setsid -w sandbox run", "sandbox run"] {
        let tmux = Tmux::new(&world);
        let end = if start == "sandbox run" { " & wait" } else { "" };
        tmux.line(&format!("clear; {start} -- cat {file}{end}"));
        tmux.wait_for("answer with `sandbox approve`");
        approve_elsewhere(&world, &["--yes", "1"]);
        tmux.wait_for_line("content of wanted");
        tmux.expect_status(0);
    }
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
        tmux.wait_for_line("CONTENT OF DATA/WANTED");
        tmux.keys(&["C-d"]);
        tmux.expect_status(0);
    }
}

/// Proves: FS-2 asked-in-red, GATE-11 secret-typed, TOOL-2 terminal
#[test]
fn a_secret_is_shown_in_red_and_needs_a_word() {
    let world = World::new();
    let secret = world.write("home/.ssh/id_ed25519", "the key\n").to_string_lossy().into_owned();
    let tmux = Tmux::new(&world);
    tmux.resize(180, 30);
    tmux.line(&format!("sandbox run -- cat {secret}"));
    tmux.wait_for(&format!("wants to read the secret {secret}"));
    tmux.wait_for("then Enter:");
    let shown = tmux.coloured();
    assert!(shown.contains("48;2;176;0;0mthe secret"), "{shown:?}");
    assert!(!shown.contains("always") && !shown.contains("directory:"), "{shown}");
    think();
    for key in ["y", "Enter"] {
        tmux.keys(&[key]);
        think();
    }
    assert!(!tmux.screen().contains("the key"), "{}", tmux.screen());
    tmux.wait_for("not an answer here");
    tmux.keys(&["yes"]);
    tmux.wait_for("then Enter: yes");
    tmux.keys(&["Enter"]);
    tmux.wait_for_line("the key");
    tmux.expect_status(0);
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
    assert!(shown.contains("sandbox: a question"), "the screen was cleared:\n{shown}");
    assert!(shown.contains("\\u{1b}[2J") || shown.contains("\\x1b[2J"), "{shown}");
    assert!(!tmux.title().contains("owned"), "{}", tmux.title());
    let mut client = Client::connect(&world);
    let question = client.question();
    assert!(question["path"].as_str().unwrap().ends_with(hostile), "{question}");
    client.deny(&question, "once");
    tmux.expect_status(1);
}
