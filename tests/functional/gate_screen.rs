//! A question in a terminal that the command has prepared: whatever it wrote before, the person reads the question
//! as it is, whole (GATE-8; attack H03).

use palisade_testkit::World;

use crate::tmux::Tmux;

/// What a command writes before it touches the file; `Install?` is what the person is meant to answer.
const TRICKS: [(&str, &str); 11] = [
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
    ("text below", r"\33[2J\33[2;1H\n\n\n\n\ndecoy decoy\33[3;70Hdecoy\33[H"),
];

/// Its first row, whatever shell `sh` is.
fn is_question(row: &str) -> bool {
    row.starts_with("? ") && row.contains(") wants to read ")
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
    tmux.wait_for("n no");
    let (shown, coloured) = (tmux.visible(), tmux.coloured());
    tmux.keys(&["C-c"]);
    // A terminal that the command left odd is still one.
    tmux.line("printf '\\33c'; clear");
    drop(tmux);
    (world, secret, shown, coloured)
}

/// Proves: GATE-8 question-visible
#[test]
fn what_was_written_before_does_not_touch_the_question() {
    for (what, trick) in TRICKS {
        for environment in ["NO_COLOR=", "NO_COLOR=1"] {
            let (_world, secret, shown, coloured) = asked_after(trick, environment);
            let question = shown.lines().position(is_question);
            let question = question.unwrap_or_else(|| panic!("{what}: no question:\n{shown}"));
            let text = shown.lines().skip(question).collect::<Vec<_>>().join("\n");
            assert!(
                text.contains(&format!(" wants to read the secret {secret}\n")),
                "{what}:\n{shown}"
            );
            assert!(text.trim_end().ends_with("x never"), "{what}:\n{shown}");
            assert!(!text.contains("decoy"), "{what}:\n{shown}");
            let from = coloured.find("wants to").unwrap_or_else(|| panic!("{what}:\n{coloured:?}"));
            let row_start = coloured[..from].rfind('\n').map_or(0, |at| at + 1);
            for hidden in ["\u{1b}[8m", "\u{e}"] {
                assert!(!coloured[row_start..].contains(hidden), "{what}: {coloured:?}");
            }
        }
    }
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
    assert!(shown.contains(&format!("/wanted.txt ({length} characters)")), "{shown}");
    assert!(shown.trim_end().ends_with("x never"), "{shown}");
    tmux.keys(&["C-c"]);
    tmux.expect_status(130);
}
