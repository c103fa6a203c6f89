//! A question in a terminal that the command has prepared: whatever it wrote before, the person reads the question
//! as it is, whole (GATE-8; attack H03).

use palisade_testkit::World;

use crate::gate::hidden;
use crate::inside::eventually;
use crate::tmux::{PROMPT, Tmux};

/// What a command writes before it touches the file; `Install?` is what the person is meant to answer.
const TRICKS: [(&str, &str); 15] = [
    ("a scroll region of two rows", r"\33[2J\33[13;14r\33[14;1H"),
    ("an unclosed device control string", r"\33[2J\33[HInstall? [y/N] \33P"),
    ("an unclosed application string", r"\33[2J\33[HInstall? [y/N] \33_"),
    ("an unclosed title", r"\33[2J\33[HInstall? [y/N] \33]2;"),
    ("half a sequence", r"\33[2J\33[HInstall? [y/N] \33[38;5;"),
    ("concealed text", r"\33[2J\33[HInstall? [y/N] \33[8m"),
    ("line-drawing letters", r"\33[2J\33[H\33(0"),
    ("the other set of letters", r"\33[2J\33[H\33)0\16"),
    ("no wrapping", r"\33[2J\33[H\33[?7l"),
    ("inserting before other text", r"\33[2J\33[Hdecoy\33[4h\r"),
    ("black letters on black", r"\33[2J\33[HInstall? [y/N] \33[30;40m"),
    (
        "everything black",
        r"\33[2J\33[HInstall? [y/N] \33]10;#000000\33\\\33]11;#000000\33\\\33]4;0;#000000;7;#000000;15;#000000\33\\",
    ),
    ("reverse video and no cursor", r"\33[2J\33[HInstall? [y/N] \33[?5h\33[?25l"),
    ("a full screen of its own", r"\33[?1049h\33[2J\33[HInstall? [y/N] \33[8m"),
    ("text below", r"\33[2J\33[2;1H\n\n\n\n\ndecoy decoy\33[3;70Hdecoy\33[H"),
];

/// The panel's first row.
fn is_question(row: &str) -> bool {
    row.starts_with(" sandbox: a question")
}

/// Shows a question after such an output, and what is on the screen then.
fn asked_after(trick: &str, environment: &str) -> (World, String, String, String) {
    let world = World::new();
    let secret = world.write("home/.ssh/id_ed25519", "the key\n").to_string_lossy().into_owned();
    let tmux = Tmux::new(&world);
    tmux.resize(80, 14);
    // By a file: the typed line must not hold the words that are looked for.
    world.write_in_project("evil.sh", format!("printf '{trick}'\nread -r key <'{secret}'\n"));
    tmux.line(&format!("{environment} sandbox run --quiet -- sh evil.sh"));
    tmux.wait_for("then Enter:");
    let (shown, coloured) = (tmux.visible(), tmux.coloured());
    tmux.keys(&["C-c"]);
    // A terminal that the command left odd is still one.
    tmux.line("printf '\\33c'; clear");
    drop(tmux);
    (world, secret, shown, coloured)
}

/// Proves: GATE-8 question-visible, GATE-11 cannot-hide
#[test]
fn what_was_written_before_does_not_touch_the_question() {
    for (what, trick) in TRICKS {
        for environment in ["NO_COLOR=", "NO_COLOR=1"] {
            let (_world, secret, shown, coloured) = asked_after(trick, environment);
            let question = shown.lines().position(is_question);
            let question = question.unwrap_or_else(|| panic!("{what}: no question:\n{shown}"));
            // A long path goes on in the next row.
            let text: String = shown.lines().skip(question).collect();
            assert!(
                text.contains(&format!(" wants to read the secret {secret}")),
                "{what}:\n{shown}"
            );
            assert!(text.trim_end().ends_with("then Enter:"), "{what}:\n{shown}");
            assert!(!text.contains("decoy"), "{what}:\n{shown}");
            let from = coloured.find("sandbox: a question");
            let from = from.unwrap_or_else(|| panic!("{what}:\n{coloured:?}"));
            let row_start = coloured[..from].rfind('\n').map_or(0, |at| at + 1);
            for hidden in ["\u{1b}[8m", "\u{e}", "\u{1b}[30m"] {
                assert!(!coloured[row_start..].contains(hidden), "{what}: {coloured:?}");
            }
            if environment == "NO_COLOR=" {
                let colours = coloured[row_start..].matches("38;2;").count();
                assert!(colours > 5, "{what}: colours of its own: {coloured:?}");
            }
        }
    }
}

/// The colours of the terminal are its own while it asks, and the command's afterwards.
///
/// Proves: GATE-11 cannot-hide
#[test]
fn a_palette_of_one_colour_hides_nothing() {
    let world = World::new();
    let secret = world.write("home/.ssh/id_ed25519", "the key\n").to_string_lossy().into_owned();
    let tmux = Tmux::new(&world);
    let log = world.path().join("written");
    tmux.pipe_to(&log);
    let black = r"\033]10;#000000\033\\\033]11;#000000\033\\\033]4;1;#000000\033\\";
    world.write_in_project(
        "evil.sh",
        format!("printf '{black}'\nread -r key <'{secret}'\nsleep 60\n"),
    );
    tmux.line("sandbox run --quiet -- sh evil.sh");
    tmux.wait_for("then Enter:");
    let written = || String::from_utf8_lossy(&std::fs::read(&log).unwrap_or_default()).into_owned();
    let before =
        |text: String| text.split(" sandbox: a question").next().unwrap_or_default().to_owned();
    eventually("the question in the log", || written().contains("then Enter:"));
    let before = before(written());
    let set = before.rfind("\u{1b}]10;#000000").unwrap();
    for reset in ["\u{1b}]104\u{1b}\\", "\u{1b}]110\u{1b}\\", "\u{1b}]111\u{1b}\\"] {
        assert!(before.rfind(reset).is_some_and(|at| at > set), "{reset:?}: {before:?}");
    }
    tmux.keys(&["C-g"]);
    eventually("its own colours again", || {
        let after = written().rsplit("then Enter:").next().unwrap_or_default().to_owned();
        ["\u{1b}]4;1;#000000", "\u{1b}]10;#000000", "\u{1b}]11;#000000"]
            .iter()
            .all(|set| after.contains(set))
    });
    tmux.keys(&["C-g"]);
    tmux.wait_until("the question", |_| tmux.visible().contains("then Enter:"));
    tmux.keys(&["C-c"]);
    tmux.expect_status(130);
}

/// Proves: GATE-8 question-visible
#[test]
fn the_end_of_a_very_long_path_and_the_keys_stay_on_the_screen() {
    let world = World::new();
    let directory = format!("outside/{}", "verylongdirectoryname/".repeat(100));
    let file = world.write(format!("{directory}wanted.txt"), "content\n");
    let tmux = Tmux::new(&world);
    tmux.resize(80, 14);
    let script = format!("read -r line <'{}'\n", file.display());
    world.write_in_project("far.sh", script);
    tmux.line("clear; sandbox run --quiet -- sh far.sh");
    tmux.wait_for("n no");
    let shown = tmux.visible();
    let length = file.to_str().unwrap().chars().count();
    assert!(shown.lines().any(is_question), "{shown}");
    let text: String = shown.lines().skip_while(|row| !is_question(row)).collect();
    assert!(text.contains(&format!("/wanted.txt ({length} characters)")), "{shown}");
    assert!(shown.trim_end().ends_with("x never"), "{shown}");
    tmux.keys(&["C-c"]);
    tmux.expect_status(130);
}

/// Tab stops of its own, the alignment pattern and margins: after a question the screen is as it was, and tabs go where they
/// went.
///
/// Proves: GATE-11 screen-restored
#[test]
fn what_tabs_and_the_alignment_pattern_arranged_stays() {
    for (what, drawn, then, expected) in [
        (
            "tab stops",
            r"\33[H\33[3g\33[5G\33H\33[20G\33H\r\tone\ttwo\33[5;1H",
            r"\tmore",
            "    more",
        ),
        (
            "tab stops to go back to",
            r"\33[H\33[3g\33[5G\33H\33[40Gend\33[Zone\33[5;1H",
            r"\tmore",
            "    more",
        ),
        ("alignment pattern", r"\33[3;5r\33#8\33[3;3Hone\33[5;1H", "more", "moreEEEE"),
    ] {
        let world = World::new();
        let file = hidden(&world, "wanted");
        let tmux = Tmux::new(&world);
        tmux.resize(60, 14);
        let script = format!(
            "printf '\\33[?1049h\\33[2J{drawn}'\nread -r line\nread -r line <'{file}'\nprintf '{then}'\nread -r line\n"
        );
        world.write_in_project("draw.sh", script);
        tmux.line("sandbox run --quiet -- sh draw.sh");
        tmux.wait_until("what is drawn", |_| tmux.visible().contains("one"));
        tmux.keys(&["Enter"]);
        tmux.wait_until("the question", |_| tmux.visible().contains("y once"));
        // What is below it, and back.
        tmux.keys(&["C-g"]);
        tmux.wait_until("what is below", |_| !tmux.visible().contains("y once"));
        let below = tmux.visible();
        tmux.keys(&["C-g"]);
        tmux.wait_until("the question", |_| tmux.visible().contains("y once"));
        std::thread::sleep(std::time::Duration::from_millis(900));
        tmux.keys(&["y"]);
        tmux.wait_until("what comes then", |_| tmux.visible().contains("more"));
        let shown = tmux.visible();
        let is_old = |row: &&str| !row.contains("more");
        let rows = |text: &str| text.lines().filter(is_old).map(str::to_owned).collect::<Vec<_>>();
        assert!(shown.lines().any(|row| row.starts_with(expected)), "{what}:\n{shown}");
        let (shown, below) = (rows(&shown), rows(&below));
        assert!(shown.iter().all(|row| below.contains(row)), "{what}:\n{shown:#?}\n{below:#?}");
        let first = shown.iter().find(|row| row.contains("one")).unwrap();
        let drawn = match what {
            "tab stops" => format!("{:4}one{:12}two", "", ""),
            "alignment pattern" => "EEoneEEE".to_owned(),
            _ => format!("{:4}one{:32}end", "", ""),
        };
        assert!(first.starts_with(&drawn), "{what}: {first:?}");
        tmux.keys(&["Enter"]);
        tmux.wait_until("the shell", |_| tmux.visible().contains(PROMPT));
    }
}

/// A killed supervisor cannot put back the terminal. The shell has it again, and the next run asks in it as ever, after
/// `reset` and without it.
///
/// Proves: GATE-11 panel
#[test]
fn after_a_supervisor_was_killed_the_next_run_asks_in_the_same_terminal() {
    for tidy_up in ["clear", "reset"] {
        let world = World::new();
        let file = hidden(&world, "wanted");
        let tmux = Tmux::new(&world);
        let script = "echo $$ >pid\nexec sandbox run --quiet -- cat \"$1\"\n";
        world.write_in_project("killed.sh", script);
        tmux.line(&format!("sh killed.sh {file}"));
        tmux.wait_until("the question", |_| tmux.visible().contains("y once"));
        let pid = std::fs::read_to_string(world.project().join("pid")).unwrap();
        let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        tmux.wait_until("the shell", |_| tmux.visible().contains("Killed"));
        // What is typed while `reset` still has the terminal would be lost.
        tmux.line(&format!("{tidy_up}; echo tidied $((1 + 1))"));
        tmux.wait_until("a tidy screen", |_| {
            let screen = tmux.visible();
            screen.contains("tidied 2") && !screen.contains("y once")
        });
        if tidy_up == "reset" {
            tmux.wait_until("lines that wrap", |_| tmux.show("#{wrap_flag}").trim() == "1");
        }
        tmux.line(&format!("sandbox run --quiet -- cat {file}"));
        tmux.wait_until("the next question", |_| tmux.visible().contains("y once"));
        assert!(tmux.visible().contains("wants to read"), "{}", tmux.visible());
        std::thread::sleep(std::time::Duration::from_millis(900));
        tmux.keys(&["y"]);
        tmux.wait_for_line("content of wanted");
        tmux.expect_status(0);
        assert_eq!(tmux.show("#{alternate_on} #{wrap_flag} #{cursor_flag}").trim(), "0 1 1");
    }
}
