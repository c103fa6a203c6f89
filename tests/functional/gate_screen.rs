//! A question in a terminal that the command has prepared: whatever it wrote before, the person reads the question
//! as it is, whole (GATE-8; attack H03).

use palisade_testkit::World;

use crate::inside::eventually;
use crate::tmux::Tmux;

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
