//! A question among what the command writes: between two sequences of it, and not behind a flood of it (GATE-11).

use std::fs;
use std::time::{Duration, Instant};

use palisade_testkit::{World, patiently};

use crate::gate::hidden;
use crate::inside::eventually;
use crate::tmux::Tmux;

/// A key is an answer if nothing was typed for 0.6 s before it.
fn think() {
    std::thread::sleep(Duration::from_millis(900));
}

/// The terminal is busy all the time: the question comes at once, its keys are heard, and nothing of the flood is lost.
///
/// Proves: GATE-11 panel, GATE-11 output-held
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
    let numbers: Vec<u64> = tmux.screen().lines().filter_map(|line| line.parse().ok()).collect();
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

/// Proves: GATE-11 screen-restored
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
