//! What people and programs read afterwards: records that could be forged, text that could move
//! the cursor or the eye.

use std::fs;

use palisade_testkit::{Demonstration, World};

/// Escapes to a terminal, a clipboard, and characters that turn or hide text.
const HOSTILE: &str = "\u{1b}[31m\u{1b}]52;c;ZWNobw==\u{7}\u{202e}dlrow\u{200b}\r\u{9b}2J";
const RECORD: &str = "{\"event\":\"sandbox.destroyed\",\"seq\":1}";

fn is_hostile(text: &str) -> bool {
    let controls = |c: char| c.is_control() && c != '\n';
    text.contains(|c| controls(c) || matches!(c, '\u{202e}' | '\u{200b}'))
}

/// Proves: AUD-2 escaped-text
#[test]
fn h03_what_people_are_shown_cannot_steer_their_terminal() {
    let shown = Demonstration::of(
        "H03",
        "put control and direction characters into names that people are shown",
        "text from inside is escaped before it is shown",
    );
    let Some(mut shown) = shown.begin() else { return };
    let world = World::new();
    let bare = world.bare("sh").args(["-c", r#"echo "$0: not found" >&2"#, HOSTILE]).run();
    assert!(is_hostile(&bare.err()));
    shown.worked_bare();

    let output = world.sandbox_run([""; 0], [HOSTILE]).run();
    output.assert_code(127);
    assert!(!is_hostile(&output.err()), "{:?}", output.err());
    world.sandbox_run([""; 0], ["true", HOSTILE]).run().assert_code(0);
    let refused = world.sandbox_run(["--ro", HOSTILE], ["true"]).run();
    assert!(!is_hostile(&refused.err()), "{:?}", refused.err());
    let log = world.sandbox(["audit", "show"]).run();
    log.assert_code(0);
    assert!(log.out().contains("true"), "{}", log.out());
    assert!(!is_hostile(&log.out()), "{:?}", log.out());
    shown.held();
}

/// Proves: AUD-2 escaped-text, AUD-1 one-line
#[test]
fn h04_no_name_forges_a_record() {
    let shown = Demonstration::of(
        "H04",
        "put a newline and a whole record into a name that is recorded",
        "a record is one line of JSON, and names are strings in it",
    );
    let Some(mut shown) = shown.begin() else { return };
    let world = World::new();
    let forged = format!("name\n{RECORD}\n");
    world.bare("sh").args(["-c", r#"echo "ran $0" >> log"#, &forged]).run().assert_code(0);
    let log = fs::read_to_string(world.project().join("log")).unwrap();
    assert!(log.lines().any(|line| line == RECORD));
    shown.worked_bare();

    let records = |world: &World| {
        let log = world.home().join(".local/state/palisade/audit.jsonl");
        let text = fs::read_to_string(log).unwrap();
        assert!(!text.lines().any(|line| line == RECORD), "{text}");
        text.lines().count()
    };
    let plain = World::new();
    plain.sandbox_run([""; 0], ["true", "name"]).run().assert_code(0);
    let world = World::new();
    let project = world.project().join(&forged);
    fs::create_dir_all(&project).unwrap();
    world.sandbox_run([""; 0], ["true", &forged]).cwd(project).run().assert_code(0);
    assert_eq!(records(&world), records(&plain));
    world.sandbox(["audit", "verify"]).run().assert_code(0);
    shown.held();
}
