//! A question among what the command writes: between two sequences of it, and not behind a flood of it (GATE-11).

use std::fs;
use std::time::{Duration, Instant};

use palisade_testkit::{World, patiently};

use crate::gate::hidden;
use crate::gate_terminal::looks;
use crate::inside::eventually;
use crate::tmux::Tmux;

/// A key is an answer if nothing was typed for 0.6 s before it.
fn think() {
    std::thread::sleep(Duration::from_millis(900));
}

/// The terminal is busy all the time: the question comes at once, its keys are heard, and nothing of the flood is lost.
///
/// Proves: GATE-11 panel, GATE-11 output-held, GATE-11 between-sequences
#[test]
fn a_flood_of_output_delays_neither_the_question_nor_its_keys() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let tmux = Tmux::new(&world);
    let script = format!(
        "seq 1000000000 & while ! test -e go; do sleep 0.05; done; cat '{file}' >got; kill $!; wait; echo; echo all over\n"
    );
    world.write_in_project("flood.sh", script);
    tmux.line("sandbox run --quiet -- sh flood.sh");
    tmux.wait_until("the flood", |_| {
        tmux.visible().lines().next().is_some_and(|row| row.parse::<u64>().is_ok())
    });
    let asked = Instant::now();
    fs::write(world.project().join("go"), "").unwrap();
    tmux.wait_until("the question", |_| tmux.visible().contains("y once"));
    assert!(asked.elapsed() < patiently(Duration::from_secs(5)), "{:?}", asked.elapsed());
    let below = tmux.visible();
    think();
    tmux.keys(&["?"]);
    tmux.wait_until("the explanation", |_| tmux.visible().contains("allow this time"));
    tmux.keys(&["C-g"]);
    tmux.wait_until("the flood", |_| !tmux.visible().contains("y once"));
    tmux.keys(&["C-g"]);
    tmux.wait_until("the question", |_| tmux.visible().contains("y once"));
    assert_ne!(tmux.visible(), below, "it went on meanwhile");
    think();
    tmux.keys(&["y"]);
    let got = || fs::read_to_string(world.project().join("got")).unwrap_or_default();
    eventually("the answer", || got() == "content of wanted\n");
    tmux.wait_for_line("all over");
    tmux.expect_status(0);
    // Numbers follow each other, whatever was held back between them.
    let mut numbers: Vec<u64> =
        tmux.screen().lines().filter_map(|line| line.parse().ok()).collect();
    // The last was being written when its writer was killed.
    numbers.pop();
    assert!(numbers.len() > 500, "{}", numbers.len());
    assert!(numbers.windows(2).all(|two| two[1] == two[0] + 1), "{numbers:?}");
}

/// Writes the beginning of a sequence, touches the file, and writes the rest when it is told to.
const IN_THE_MIDDLE: &str = r#"
import os, sys, time
def w(b): os.write(1, b)
def until(name):
    while not os.path.exists(name): time.sleep(0.02)
path, first, rest = sys.argv[1], *(eval("b'" + a + "'") for a in sys.argv[2:])
w(b"above\r\n" + first)
pid = os.fork()
if pid == 0:
    try: open(path).read()
    except OSError: pass
    os._exit(0)
if os.path.exists("wait"): until("go")
else: time.sleep(0.05)
w(rest)
os.waitpid(pid, 0)
w(b"\x1b[0m\r\nbelow\r\n")
"#;

/// Proves: GATE-11 screen-restored, GATE-11 between-sequences
#[test]
fn a_sequence_that_a_question_meets_in_the_middle_is_still_one() {
    for (first, rest, shown) in [
        (r"\x1b[3", r"1mred", "\u{1b}[31mred"),
        (r"\x1b]0;ti", r"tle\x07plain", "plain"),
        (r"\x1bP1$r", r"0m\x1b\\plain", "plain"),
        (r"\xe6\xbc", r"\xa2 is one", "漢 is one"),
    ] {
        for waits in [false, true] {
            // Of half a character that stays half a character, a terminal shows what it likes.
            if waits && first.starts_with(r"\xe6") {
                continue;
            }
            let world = World::new();
            let file = hidden(&world, "wanted");
            let tmux = Tmux::new(&world);
            world.write_in_project("middle.py", IN_THE_MIDDLE);
            if waits {
                world.write_in_project("wait", "");
            }
            tmux.line(&format!(
                "clear; sandbox run --quiet -- python3 middle.py {file} '{first}' '{rest}'"
            ));
            tmux.wait_until("the question", |_| tmux.visible().contains("y once"));
            if !waits {
                // The rest is written behind the question.
                think();
            }
            think();
            tmux.keys(&["n"]);
            tmux.wait_until("what is below", |_| !tmux.visible().contains("y once"));
            fs::write(world.project().join("go"), "").unwrap();
            tmux.wait_for_line("below");
            let coloured = tmux.coloured();
            let rows: Vec<&str> = coloured.lines().skip_while(|row| *row != "above").collect();
            assert!(rows.len() > 2, "{coloured:?}");
            assert_eq!(rows[1], shown, "{first} {rest} {waits}: {coloured:?}");
            tmux.expect_status(0);
        }
    }
}

/// Draws all kinds of looks on the screen of a full-screen program, waits, touches the file and waits again.
const DRAWN: &str = r#"
import os, sys, time
def w(text): os.write(1, text.encode())
def until(name):
    while not os.path.exists(name): time.sleep(0.02)
w("main screen\r\n\33[?1049h\33[2J")
looks = ["1", "2", "3", "4", "5", "7", "8", "9", "53", "4:2", "4:3", "4:4", "4:5", "4:3;58;2;10;20;30", "58:5:9;4",
    "31", "97", "38;5;123", "38;2;1;2;3", "48;5;7", "48;2;9;8;7", "1;3;4;9;38;5;200;48;5;17"]
for row, look in enumerate(looks):
    w(f"\33[{row % 20 + 1};{row // 20 * 40 + 1}H\33[0;{look}m{look} \u6f22\u5b57\33[0m.")
w("\33[3;50H\33]8;id=x;https://example.org/\33\\a link\33]8;;\33\\ and none")
w("\33[5;50H\33(0lqqk\33(B frame \33)0\16x\17")
w("\33[6;50H\33[44mcoloured\33[K\33[0m")
w("\33[7;50H\33[41m\33[5X\33[0m")
w("\33[8;50Habc\33[8;50H\33[4hXY\33[4l")
w("\33[9;99H\33[?7labcdef\33[?7h")
w("\33[10;50Hone\33Dtwo\33[sthree\33[uTHREE\t|\33[Z^")
w("\33[3;20r" + sys.argv[2])
until("go")
try: open(sys.argv[1]).read()
except OSError: pass
w(sys.argv[3])
until("stop")
w("\33[r\33[?6l\33[?1049l\33[0m")
"#;

/// Proves: GATE-11 screen-restored
#[test]
fn everything_that_a_full_screen_program_drew_looks_the_same_afterwards() {
    for (last, next) in [
        (r"\33[12;7H\33[1;9;4:3m", "next"),
        // The cursor waits behind the last column; what comes next wraps.
        (r"\33[12;95Hsix---", "next"),
        (r"\33[12;95H\33[35m----\346\274\242", "next"),
        (r"\33[?6h\33[4;9H\33]8;;https://example.org/b\33\\", "next"),
        // What was kept with the cursor is there still.
        (r"\33[15;3H\33[5;32m\337\33[0m\33[H", r"\338kept"),
        (r"\33(0\33[2 q\33[?25l\33[?1003h\33[?1006h\33[?2004h\33[?1h\33=\33[20;1H", "lqk\r\n\r\n"),
    ] {
        let world = World::new();
        let file = hidden(&world, "wanted");
        let unescaped = |text: &str| text.replace(r"\33", "\\033");
        world.write_in_project("drawn.py", DRAWN);
        // The same without a question: the file is there to be read.
        let shown = |flags: &str, answers: bool| {
            let tmux = Tmux::new(&world);
            for name in ["go", "stop"] {
                let _ = fs::remove_file(world.project().join(name));
            }
            let words =
                format!("\"$(printf '{}')\" \"$(printf '{}')\"", unescaped(last), unescaped(next));
            world.write_in_project(
                "draw.sh",
                format!("sandbox run --quiet {flags} -- python3 drawn.py {file} {words}\n"),
            );
            tmux.line("clear; sh draw.sh");
            tmux.wait_until("the screen", |_| tmux.visible().contains("THREE"));
            // A cell that was erased and one that holds a blank look the same.
            let looks = |tmux: &Tmux<'_>| {
                let (cells, state) = looks(tmux);
                (cells.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"), state)
            };
            let before = looks(&tmux);
            fs::write(world.project().join("go"), "").unwrap();
            if answers {
                tmux.wait_until("the question", |_| tmux.visible().contains("y once"));
                tmux.keys(&["C-g"]);
                tmux.wait_until("what is below", |_| !tmux.visible().contains("y once"));
                assert_eq!(looks(&tmux), before, "{last}");
                tmux.keys(&["C-g"]);
                tmux.wait_until("the question", |_| tmux.visible().contains("y once"));
                think();
                tmux.keys(&["n"]);
                tmux.wait_until("what is below", |_| !tmux.visible().contains("y once"));
            }
            tmux.wait_until("the rest", |_| looks(&tmux) != before);
            let after = looks(&tmux);
            fs::write(world.project().join("stop"), "").unwrap();
            tmux.expect_status(0);
            assert!(tmux.screen().starts_with("main screen\n"), "{}", tmux.screen());
            after
        };
        let without = shown("--on-ask deny", false);
        assert_eq!(shown("", true), without, "{last}");
    }
}

/// Reads what its terminal says about its attributes, while a question is shown.
const ASKS_THE_TERMINAL: &str = r#"
import os, select, sys, termios, tty
before = termios.tcgetattr(0)
tty.setraw(0)
pid = os.fork()
if pid == 0:
    try: open(sys.argv[1]).read()
    except OSError: pass
    os._exit(0)
said = b""
while not said.endswith(b"c") and select.select([0], [], [], 20)[0]:
    said += os.read(0, 100)
os.waitpid(pid, 0)
termios.tcsetattr(0, termios.TCSANOW, before)
print("the terminal said", said.replace(b"\33", b"ESC").decode())
"#;

/// Proves: GATE-11 output-held
#[test]
fn what_the_terminal_answers_the_command_is_no_key_of_the_question() {
    let world = World::new();
    let file = hidden(&world, "wanted");
    let tmux = Tmux::new(&world);
    world.write_in_project("asks.py", ASKS_THE_TERMINAL);
    tmux.line(&format!("clear; sandbox run --quiet -- python3 asks.py {file}"));
    tmux.wait_until("the question", |_| tmux.visible().contains("y once"));
    // As the terminal's answer to what the command asked of it a moment before.
    tmux.keys(&["-H", "1b", "5b", "3f", "36", "32", "63"]);
    think();
    tmux.keys(&["n"]);
    tmux.wait_for("the terminal said ESC[?62c");
    tmux.expect_status(0);
}
